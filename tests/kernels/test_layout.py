"""A layout numbers the calibration nodes by score, and packs groups of them into words."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.kernels.layout import BLOCK_WORDS, Layout
from napsets.kernels.search import _group_masks, _ranks


def test_calibration_nodes_come_first_by_score_then_the_others():
    graph = ns.Graph([0, 1, 3, 4, 4], [1, 0, 2, 1])
    layout = Layout(graph, np.array([3, 1, 0]), np.array([0.5, 0.1, 0.3]))
    assert layout.nodes.tolist() == [1, 0, 3, 2]
    assert layout.numbers[layout.nodes].tolist() == [0, 1, 2, 3]
    assert layout.sorted_scores.tolist() == [0.1, 0.3, 0.5]
    assert (layout.starts.tolist(), layout.stops.tolist()) == ([1, 0, 4, 3], [3, 1, 4, 4])
    columns, middles = layout.renumber()
    assert [sorted(columns[a:b].tolist()) for a, b in zip(layout.starts, layout.stops, strict=True)] == [
        [1, 3], [0], [], [0],
    ]  # fmt: skip
    assert columns[1] == 1  # of the two neighbours of node 1, the one that calibrates
    assert middles.tolist() == [2, 1, 4, 4]


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1200])
def test_masks_and_ranks_count_the_nodes_of_groups(size):
    rng = np.random.default_rng(size)
    empty = ns.Graph(np.zeros(1301, np.int64), np.zeros(0, np.int32))
    layout = Layout(empty, rng.permutation(1300)[:size], rng.random(size))
    assert layout.mask.size == layout.mask_words
    assert layout.mask_words % BLOCK_WORDS == 0
    flags = np.unpackbits(layout.mask.view(np.uint8), bitorder="little").astype(bool)
    assert np.flatnonzero(flags).tolist() == list(range(size))
    (ranks,) = _ranks(layout.mask[None], np.int64)
    assert ranks.tolist() == [int(flags[: 64 * w].sum()) for w in range(layout.mask_words + 1)]
    groups = rng.integers(-1, 3, size)
    group_masks = _group_masks(groups, np.array([0, 2]), layout.mask_words)
    for name, row in zip((0, 2), group_masks, strict=True):
        bits = np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)
        assert np.flatnonzero(bits).tolist() == np.flatnonzero(groups == name).tolist()


def test_of_equal_scores_the_first_stays_first():
    scores = np.repeat([0.5, 0.25], 500)
    layout = Layout(ns.Graph(np.zeros(1001, np.int64), np.empty(0, np.int32)), np.arange(1000)[::-1].copy(), scores)
    assert layout.nodes.tolist() == [*range(499, -1, -1), *range(999, 499, -1)]
