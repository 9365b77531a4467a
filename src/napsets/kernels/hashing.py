"""Random numbers as hashes of counters: the same whatever thread draws them, in whatever order."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit

__all__ = ["below", "hash64", "to_unit"]


@jit
def hash64(word):
    """Return SplitMix64's output for a state: a bijection that scatters neighbouring words."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@jit
def to_unit(word):
    """Turn a word into a number in [0, 1) by its upper 53 bits."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def below(word, bound):
    """Turn a word into an integer in 0..bound−1, for bounds under 2³²; biased by less than bound / 2³²."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
