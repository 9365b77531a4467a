"""Counting bits by block, and weighing counts: what every way of choosing thresholds shares."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import count_bits_of_eight, jit, part
from napsets.kernels.layout import BLOCK_WORDS

__all__ = ["count_blocks", "weigh"]


@jit
def count_blocks(bits, mask, blocks, running):
    """Write into ``running[k, b]`` how many masked bits hop k+1 has before block b; the last column is the total."""
    for k in range(bits.shape[0]):
        row, total = bits[k], np.int64(0)
        for b in range(blocks):
            running[k, b] = total
            total += count_bits_of_eight(row, mask, b * BLOCK_WORDS)
        running[k, blocks] = total


@part
def weigh(weights, d, counts, column):
    """Weigh integer counts in the order of the hops, as the specification does."""
    mass = 0.0
    for k in range(weights.shape[1]):
        mass += weights[d, k] * np.float64(counts[k, column])
    return mass
