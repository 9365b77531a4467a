"""u is a function of seed and id, the same on every machine for ever."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import napsets as ns
from napsets.randomness import hash_ids

MASK = (1 << 64) - 1
PINNED = ["0x1.7169852efd579p-1", "0x1.9ba2314ae3b88p-3"]


def finalise(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def uniform(node, seed):
    """SplitMix64 started at the hash of the seed, at step `node`, in Python's own integers."""
    golden = 0x9E3779B97F4A7C15
    stream = finalise((seed + golden) & MASK)
    return (finalise((stream + (node + 1) * golden) & MASK) >> 11) / 2**53


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_the_hash_is_that_of_python_integers(seed):
    ids = [0, 1, 2, 1000, 2**31, 2**53 + 1, 2**63 - 1, -1]
    assert ns.node_uniforms(ids, seed).tolist() == [uniform(i & MASK, seed & MASK) for i in ids]


def test_the_numbers_of_this_version_stay_what_they_are():
    assert [x.hex() for x in ns.node_uniforms([0, 123456789], seed=7).tolist()] == PINNED


def test_neither_order_nor_type_nor_company_of_ids_matters():
    ids = np.random.default_rng(0).permutation(1000)
    whole = ns.node_uniforms(np.arange(1000), seed=3)
    assert np.array_equal(ns.node_uniforms(ids, seed=3), whole[ids])
    for dtype in (np.int16, np.uint32, np.uint64):
        assert np.array_equal(ns.node_uniforms(ids.astype(dtype), seed=3), whole[ids])
    assert ns.node_uniforms([], seed=3).shape == (0,)


@pytest.mark.parametrize("ids", [np.arange(100_000), np.arange(100_000) * 4096, np.arange(100_000) + 2**62])
def test_the_numbers_are_uniform_and_seeds_are_independent(ids):
    one, other = ns.node_uniforms(ids, seed=0), ns.node_uniforms(ids, seed=1)
    assert one.min() >= 0
    assert one.max() < 1
    assert kstest(one, "uniform").pvalue > 1e-4
    # Correlation of independent uniforms has standard deviation n^−1/2; 4.9 of them is a tail of 1e-6.
    assert abs(np.corrcoef(one, other)[0, 1]) < 4.9 / np.sqrt(ids.size)
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 4.9 / np.sqrt(ids.size)


def fnv1a(text):
    word = 0xCBF29CE484222325
    for byte in text.encode():
        word = ((word ^ byte) * 0x100000001B3) & MASK
    return word


def test_strings_go_through_fnv_1a_of_their_utf_8_bytes():
    texts = ["", "a", "node-17", "naïve", "図", "a" * 100, "𝔸"]
    expected = [fnv1a(text) for text in texts]
    assert hash_ids(texts).tolist() == expected
    assert hash_ids(np.array(texts, dtype=object)).tolist() == expected
    assert hash_ids([texts[2]]).tolist() == [expected[2]]
    assert hash_ids([""]).tolist() == [fnv1a("")]


def test_text_that_utf8_cannot_hold_is_refused():
    with pytest.raises(ns.InvalidInputError, match="`ids` must be text that UTF-8 can hold"):
        ns.node_uniforms(["\ud800", "b"])
