"""The sets: duality with the scores, nestedness in alpha, and names of nodes and classes that do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from oracles import aps_row, same_bits
from strategies import alphas, probability_rows, problems

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

SCORES = [ns.APS(), ns.APS(randomized=False), ns.THR(), ns.RAPS(0.05, 1), ns.SAPS(0.2), ns.SAPS(randomized=False)]


def fitted(problem, score=None, **changes):
    """Both predictors, calibrated on a problem."""
    score = score or ns.APS()
    data = {"probabilities": problem.probabilities, "labels": problem.labels, "calibration": problem.calibration}
    data |= changes
    graph = data.pop("graph", problem.graph)
    naps = ns.NAPS(problem.hops, problem.decay, score, seed=5).calibrate(graph, **data)
    return naps, ns.SplitConformal(score, seed=5).calibrate(**data)


def everyone(problem):
    return np.arange(problem.graph.num_nodes)


@given(problem=problems())
def test_a_label_is_in_the_set_exactly_if_its_score_is_at_most_the_threshold(problem):
    nodes = everyone(problem)
    for score in SCORES:
        scores = score.matrix(problem.probabilities, ns.node_uniforms(nodes, 5))
        for predictor in fitted(problem, score):
            sets = predictor.predict(nodes, problem.alpha)
            assert np.array_equal(sets.member, scores <= sets.thresholds[:, None]), score


@given(problem=problems(), other=alphas)
def test_sets_are_nested_as_alpha_falls(problem, other):
    low, high = sorted([problem.alpha, float(other)])
    for predictor in fitted(problem):
        small, large = (predictor.predict(everyone(problem), alpha) for alpha in (high, low))
        assert (small.member <= large.member).all()
        assert (small.thresholds <= large.thresholds).all()


@given(problem=problems(), random=st.randoms(use_true_random=False))
def test_relabelling_nodes_permutes_the_sets_and_changes_nothing_else(problem, random):
    n = problem.graph.num_nodes
    new = np.array(random.sample(range(n), n))  # node v is now called new[v]
    old = np.argsort(new)
    graph = problem.graph.subgraph(old)
    changed = {
        "graph": graph,
        "probabilities": problem.probabilities[old],
        "labels": problem.labels[old],
        "calibration": problem.calibration,  # by their ids
        "ids": old,  # u belongs to the node, not to its place
    }
    for before, after in zip(fitted(problem), fitted(problem, **changed), strict=True):
        one, other = before.predict(everyone(problem), problem.alpha), after.predict(everyone(problem), problem.alpha)
        assert np.array_equal(one.member, other.member)
        assert same_bits(one.thresholds, other.thresholds)
        assert np.array_equal(one.support, other.support)
        assert same_bits(one.effective_size, other.effective_size)


@given(problem=problems(distinct=True), random=st.randoms(use_true_random=False))
def test_relabelling_classes_permutes_the_columns_and_changes_nothing_else(problem, random):
    classes = problem.probabilities.shape[1]
    new = np.array(random.sample(range(classes), classes))
    changed = {"probabilities": problem.probabilities[:, np.argsort(new)], "labels": new[problem.labels]}
    for score in SCORES:
        for before, after in zip(fitted(problem, score), fitted(problem, score, **changed), strict=True):
            one, other = (p.predict(everyone(problem), problem.alpha) for p in (before, after))
            assert np.array_equal(one.member, other.member[:, new]), score
            assert same_bits(one.thresholds, other.thresholds), score


@given(problem=problems(), size=st.integers(1, 7), threads=st.integers(1, 4), random=st.randoms(use_true_random=False))
def test_batches_threads_and_row_order_change_no_set(problem, size, threads, random):
    nodes = np.array(random.sample(range(problem.graph.num_nodes), problem.graph.num_nodes))
    naps, split = fitted(problem)
    whole, flat = naps.predict(everyone(problem), problem.alpha), split.predict(everyone(problem), problem.alpha)
    for start in range(0, nodes.size, size):
        batch = nodes[start : start + size]
        part = naps.predict(batch, problem.alpha, threads=threads)
        assert np.array_equal(part.member, whole.member[batch])
        assert same_bits(part.thresholds, whole.thresholds[batch])
        assert np.array_equal(split.predict(batch, problem.alpha).member, flat.member[batch])


@given(problem=problems())
def test_a_label_that_a_node_never_shows_cannot_change_its_set(problem):
    # Labels outside `calibration`, and a node's own label, play no part: here they are all unknown.
    hidden = np.full_like(problem.labels, -1)
    hidden[problem.calibration] = problem.labels[problem.calibration]
    for one, other in zip(fitted(problem), fitted(problem, labels=hidden), strict=True):
        assert np.array_equal(one.predict(everyone(problem)).member, other.predict(everyone(problem)).member)


@given(problem=problems())
def test_without_empty_sets_the_top_label_fills_them_and_nothing_else_changes(problem):
    for predictor in fitted(problem):
        loose = predictor.predict(everyone(problem), problem.alpha)
        strict = predictor.predict(everyone(problem), problem.alpha, allow_empty=False)
        assert (strict.sizes >= 1).all()
        empty = loose.sizes == 0
        assert np.array_equal(strict.member[~empty], loose.member[~empty])
        top = [int(np.argmax(row)) for row in problem.probabilities[empty]]
        assert [np.flatnonzero(row).tolist() for row in strict.member[empty]] == [[y] for y in top]


@given(data=st.data(), rows=st.integers(1, 5), classes=st.integers(1, 8))
def test_aps_scores_follow_their_definition_bit_for_bit(data, rows, classes):
    p = data.draw(probability_rows(rows, classes))
    u = data.draw(st.lists(st.floats(0, 1), min_size=rows, max_size=rows))
    expected = [aps_row(row.tolist(), ui) for row, ui in zip(p, u, strict=True)]
    assert same_bits(ns.aps_scores(p, u), expected)


@given(data=st.data(), rows=st.integers(1, 6), classes=st.integers(1, 8), narrow=st.booleans())
def test_the_score_at_a_label_is_the_matrix_entry_bit_for_bit(data, rows, classes, narrow):
    p = data.draw(probability_rows(rows, classes)).astype(np.float32 if narrow else np.float64)
    u = np.array(data.draw(st.lists(st.floats(0, 1), min_size=rows, max_size=rows)))
    y = np.array(data.draw(st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)))
    for score in SCORES:
        assert same_bits(score.at(p, y, u), score.matrix(p, u)[np.arange(rows), y]), score


@given(problem=problems(), nodes=st.lists(st.integers(0, 1), max_size=6))
def test_asking_for_a_node_twice_gives_its_set_twice(problem, nodes):
    naps, _ = fitted(problem)
    sets, both = (naps.predict(some, problem.alpha) for some in (nodes, [0, 1]))
    assert np.array_equal(sets.member, both.member[nodes])
