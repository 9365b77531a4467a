"""Choosing thresholds by counting bits, against the specification on the scores that the bits stand for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from napsets.kernels._jit import borrowed, count_bits, count_bits_of_eight, jit, lowest_bit, prefetch, sort_in_place
from napsets.kernels.layout import BLOCK_WORDS, EndingScratch, Pairs, Selection
from napsets.kernels.selection import finish
from napsets.quantile import ROUNDING, hop_quantile
from oracles import same_bits


@jit
def bits_of(word):
    return count_bits(word), lowest_bit(word)


@jit
def read_ahead(array, position):
    prefetch(array, position)
    return array[position]


@pytest.mark.parametrize("word", [1, 2, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x0F0F00F000000000, 0b1011000])
def test_machine_instructions_count_and_find_bits(word):
    assert bits_of(np.uint64(word)) == (bin(word).count("1"), (word & -word).bit_length() - 1)


@jit
def bits_shared(row, mask, position):
    return count_bits_of_eight(row, mask, position)


def test_bits_of_eight_words_are_counted_at_once():
    rng = np.random.default_rng(0)
    row, mask = rng.integers(2**63, size=(2, 40)).astype(np.uint64) * np.uint64(2)
    for position in (0, 5, 32):
        both = (row & mask)[position : position + 8]
        assert bits_shared(row, mask, position) == sum(bin(word).count("1") for word in both.tolist())


@jit
def sums_of(room, nothing):
    room, nothing = borrowed(room), borrowed(nothing)
    total = 0
    for _ in range(3):
        room.running[0, 0] += room.counts[0, 0]
        total += room.running[0, 0] + room.counts[0, 1]
    return total, nothing is None


def test_borrowed_arrays_are_those_of_their_owner_who_still_owns_them():
    room = EndingScratch(np.full((1, 2), 5), np.array([[1, 7]]))
    before = [sys.getrefcount(array) for array in room]
    assert sums_of(room, None) == (6 + 7 + 8 + 3 * 7, True)
    assert room.running.tolist() == [[8, 5]]
    assert [sys.getrefcount(array) for array in room] == before


def test_a_prefetch_changes_nothing():
    assert read_ahead(np.arange(10, dtype=np.int32), 7) == 7


def pack(flags):
    return np.packbits(flags, axis=-1, bitorder="little").view(np.uint64)


@pytest.mark.parametrize("blocks", [1, 2, 3, 9])
@pytest.mark.parametrize("share", [0.0, 0.003, 0.2, 1.0])
def test_selection_from_bits_is_the_quantile_of_their_scores(blocks, share):
    rng = np.random.default_rng(blocks)
    size = blocks * BLOCK_WORDS * 64
    scores = np.sort(np.round(rng.random(size), 2))
    hop = np.where(rng.random(size) < share, rng.integers(1, 4, size), 0)
    used = rng.random(size) < 0.7
    bits = pack(np.stack([hop == k for k in (1, 2, 3)]))
    weights = np.array([[1.0, 1.0, 1.0], [1.0, 1 / 2, 1 / 3], [0.0, 0.0, 2.5]])
    alphas = np.array([0.5, 0.1, 0.9, 0.001])
    thresholds, counts = np.empty((3, 4)), np.empty(3, np.int64)
    running = np.empty((3, blocks + 1), np.int64)
    room = EndingScratch(running, np.empty((3, 2), np.int64))
    rules = np.zeros(4, np.int8)
    wanted = Selection(weights, 1.0 - alphas, rules, ROUNDING, scores, thresholds[None], counts[None])
    pairs = Pairs(np.arange(2), pack(used))
    kept = used & (hop > 0)
    expected = [[hop_quantile(scores[kept], hop[kept], w, a) for a in alphas] for w in weights]
    per_block = [[(hop[used & (np.arange(size) < 512 * b)] == k).sum() for b in range(blocks + 1)] for k in (1, 2, 3)]
    ring = rng.permutation(np.append(np.flatnonzero(hop == 1), size + 70))  # one of them does not calibrate
    for first in (None, ring):
        thresholds[:], counts[:], running[:] = np.nan, -1, -1
        finish(0, 0, bits, first, room, pairs, wanted, None, None)
        assert same_bits(thresholds, expected)
        assert counts.tolist() == [int((hop[used] == k).sum()) for k in (1, 2, 3)]
        assert running.tolist() == per_block


@jit
def sorted_copy(values):
    values = values.copy()
    sort_in_place(values)
    return values


@pytest.mark.parametrize("size", [0, 1, 2, 5, 14, 200, 3000])
def test_numbers_are_sorted_in_place(size):
    rng = np.random.default_rng(size)
    for values in (rng.random(size), rng.integers(10, size=size), np.arange(size)[::-1] / 3, np.full(size, np.inf)):
        assert np.array_equal(sorted_copy(np.ascontiguousarray(values)), np.sort(values))
