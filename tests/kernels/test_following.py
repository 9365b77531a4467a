"""Searches in rows that grow, against a search over sets and masses added up score by score."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from napsets.kernels import following
from napsets.kernels.growing import AHEAD, GrowingRows, OrderedPairs, Walk, walk_hops
from oracles import adjacency_sets, hops_from, pooled_threshold, rows_of
from strategies import TIED, cases


@njit
def walked(source, hops, rows, walk, marks):
    """Walk as kernels do: Python cannot call what is a part of them."""
    return walk_hops(source, hops, rows, walk, marks, 1)


def rows_and_walk(neighbours, hops):
    """The rows of adjacency sets as living graphs hold them, and room for a search in them."""
    indptr, indices = (np.array(part) for part in rows_of(neighbours))
    size, none = len(neighbours), np.zeros(1, dtype=np.int64)
    walk = Walk(np.zeros(size, np.int64), none, np.empty(size, np.int64), np.empty(hops + 1, np.int64))
    return GrowingRows(indptr[:-1].copy(), np.diff(indptr), indices.astype(np.int32)), walk


@given(st.integers(1, 3 * AHEAD), st.integers(0, 3), st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_walk_lists_each_hop_once_and_at_the_last_only_what_is_marked(size, hops, seed):
    rng = np.random.default_rng(seed)
    hubs = np.stack([rng.integers(2, size=size) * (size - 1), np.arange(size)])  # rings wider than what is asked for
    neighbours = adjacency_sets(np.concatenate([hubs, rng.integers(size, size=(2, 9))], axis=1).T.tolist(), size)
    rows, walk = rows_and_walk(neighbours, hops)
    marked = rng.random(size) < 0.5
    for source in (0, size - 1):
        count = walked(source, hops, rows, walk, marked)
        distance, starts = hops_from(neighbours, source), [0, *walk.ends[:-1].tolist()]
        assert count == walk.ends[-1]
        for k, (start, end) in enumerate(zip(starts, walk.ends.tolist(), strict=True)):
            ring = {v for v, hop in distance.items() if hop == k and (k < hops or k == 0 or marked[v])}
            assert sorted(walk.queue[start:end].tolist()) == sorted(ring)


@given(cases(scores=TIED), st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 1.3]), st.data())
@settings(max_examples=60)
def test_thresholds_are_those_of_masses_added_up_score_by_score(case, pool, alike, data):
    neighbours = adjacency_sets(case.edges, case.num_nodes)
    hops, size = len(case.weights), case.num_nodes
    groups = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    level = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
    rows, walk = rows_and_walk(neighbours, hops)
    member, scores = np.zeros(size, dtype=bool), np.zeros(size)
    known, known_scores = np.array(case.calibration), np.array(case.scores, dtype=float)
    member[known], scores[known] = True, known_scores
    everyone, same = OrderedPairs(), OrderedPairs()
    everyone.fill(np.zeros(known.size), known_scores)
    same.fill(groups[known].astype(float), known_scores)
    weights = np.array(case.weights, dtype=float)
    rules = np.arange(3)
    question = following.ThresholdQuery(weights, pool, alike, np.full(3, level), rules, 1e-9)
    reference = following.Known(member, scores, groups, everyone.blocks, same.blocks, known.size)
    values, near = np.empty((size, 3)), np.empty((size, hops), np.int64)
    following.find_thresholds(np.arange(size), rows, reference, walk, question, values, near)
    for v in range(size):
        distance = hops_from(neighbours, v)
        others = [(scores[i], distance.get(i, 0), groups[i] == groups[v]) for i in case.calibration if i != v]
        assert near[v].tolist() == [sum(hop == k for _, hop, _ in others) for k in range(1, hops + 1)]
        for rule in rules.tolist():
            assert values[v, rule] == pooled_threshold(others, weights.tolist(), level, rule, pool, alike)
