"""Decays: the paper's three, functions of k, and arrays."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.localisers.hops import DECAYS


@pytest.mark.parametrize(
    ("decay", "weights"),
    [
        ("uniform", [1, 1, 1, 1]),
        ("hyperbolic", [1, 1 / 2, 1 / 3, 1 / 4]),
        ("geometric", [1 / 2, 1 / 4, 1 / 8, 1 / 16]),  # 2^−k as in the paper's text, not 2^−(k−1)
        (lambda k: k * k, [1, 4, 9, 16]),
        ([5, 0, 2.5, 1], [5, 0, 2.5, 1]),
        (np.float32([1, 0.5, 0.25, 0]), [1, 0.5, 0.25, 0]),
    ],
)
def test_a_decay_gives_one_weight_a_hop(decay, weights):
    decayed = ns.hop_weights(decay, 4)
    assert decayed.tolist() == weights
    assert decayed.dtype == np.float64


def test_a_new_decay_is_one_more_entry(monkeypatch):
    monkeypatch.setitem(DECAYS, "square", lambda k: 1 / k**2)
    assert ns.hop_weights("square", 2).tolist() == [1, 0.25]
