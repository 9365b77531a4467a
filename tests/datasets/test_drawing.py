"""The edges of a block model against a slow twin that searches instead of guessing where to look."""

from __future__ import annotations

import numpy as np
import pytest

from napsets.datasets.synthetic import _draw_edges

MASK = (1 << 64) - 1


def hash64(word):
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def unit(word):
    return (word >> 11) * 2.0**-53


def slow_edges(running, order, block_ends, same, seed, edges):
    total, pairs = running[-1], []
    for e in range(edges):
        word = hash64(seed ^ hash64(e))
        at = (e + unit(word)) * (total / edges)
        block = int(np.searchsorted(block_ends, at, side="right"))
        low = block_ends[block - 1] if block else 0.0
        width = block_ends[block] - low
        word = hash64(word)
        draw = unit(hash64(word))
        goal = low + draw * width if unit(word) < same or width >= total else draw * (total - width)
        if not (unit(word) < same or width >= total) and goal >= low:
            goal += width
        source, target = (int(np.searchsorted(running, value, side="right")) for value in (at, goal))
        pairs.append((int(order[min(source, order.size - 1)]), int(order[min(target, order.size - 1)])))
    return pairs


@pytest.mark.parametrize("same", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("blocks", [1, 4])
def test_each_edge_is_where_its_hash_puts_it(same, blocks):
    rng = np.random.default_rng(blocks)
    weights = rng.random(60) ** -0.7
    order = rng.permutation(60).astype(np.int32)
    running = np.cumsum(weights)
    block_ends = running[np.linspace(60 // blocks, 60, blocks).astype(int) - 1]
    source, target = np.empty(500, np.int32), np.empty(500, np.int32)
    _draw_edges(running, order, block_ends, same, 12345, source, target)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == slow_edges(
        running, order, block_ends, same, 12345, 500
    )
