"""Informed probabilities: the evidence is the definition's, no label speaks for itself, and the fit is the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import napsets as ns
from napsets.features import Directions, check_features, nearest_reference
from napsets.scores import Labelled
from napsets.scores.evidence import SHARES_PRIOR, Evidence, means_around, walk
from napsets.scores.exponents import (
    PRIOR,
    RECALIBRATION_RIDGE,
    RIDGE,
    Exponents,
    conditional_logit,
    fit_recalibration,
    recalibrated,
)
from napsets.scores.informed import Informed, informed_probabilities
from napsets.scores.linear import _RIDGES, SCALE, linear_scores
from worlds import block_model


def slow_features(p, graph, nodes, labels, v, nearest=None):
    """The definition, node by node, with loops."""
    classes = p.shape[1]
    neighbours = [graph.indices[graph.indptr[u] : graph.indptr[u + 1]] for u in range(graph.num_nodes)]
    known = dict(zip(nodes.tolist(), labels.tolist(), strict=True))
    half = {node: place % 2 for place, node in enumerate(nodes.tolist())}

    def mean(u, of):
        return np.mean([of(w) for w in neighbours[u]], axis=0) if len(neighbours[u]) else p[u]

    def met(u, steps):
        """The labels that walks meet, 0.9 for each step; those of the other half twice from a reference node."""
        total = np.zeros(classes)
        for w in neighbours[u] if steps else ():
            if w in known and half.get(v) != half[w]:
                total[known[w]] += 1.0 + (v in known)
            total += met(w, steps - 1)
        return 0.9 * total / max(len(neighbours[u]), 1)

    around = (mean(v, lambda u: p[u]) + mean(v, lambda u: mean(u, lambda w: p[w]))) / 2
    shares = np.bincount(labels, minlength=classes) + SHARES_PRIOR * p.mean(axis=0)
    shares /= shares.sum()
    near, alike = np.zeros((2, classes))
    for u in neighbours[v]:
        if u in known:
            near[known[u]] += 1
    for w, y in known.items():
        if w != v and p[w].argmax() == p[v].argmax():
            alike[y] += 1
    counted = {"near": near, "alike": alike, "wide": met(v, 2)}
    for count in (5, 25) if nearest is not None else ():
        similar = [known[w] for w in nearest[v, :count].tolist() if w >= 0]
        counted[f"similar_{count}"] = np.bincount(similar, minlength=classes)
    parts = [np.log(np.maximum(p[v], 1e-6)), np.log(np.maximum(around, 1e-6))]
    for name, n in counted.items():
        k = PRIOR[name]
        parts.append(np.log((n + k * shares) / (k * shares)))
    return np.stack(parts, axis=1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(2, 5), st.booleans(), st.booleans())
def test_the_evidence_is_that_of_the_definition(seed, nodes, classes, directed, similar):
    rng = np.random.default_rng(seed)
    ends = rng.integers(nodes, size=(2, rng.integers(0, 3 * nodes)))
    graph = ns.Graph.from_edge_index(ends, num_nodes=nodes, directed=directed)
    p = rng.dirichlet(np.ones(classes), nodes)
    chosen = rng.permutation(nodes)[: rng.integers(1, nodes + 1)]
    labels = rng.integers(classes, size=chosen.size)
    nearest = None
    if similar:
        features = check_features("features", rng.normal(size=(nodes, 3)))
        nearest = nearest_reference(features, chosen, rng.random(nodes), 25)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napsets.scores.evidence._MOST_WALKED", 0)  # two steps
        evidence = Evidence(p, graph, Labelled(chosen, labels), nearest=nearest)
    found = evidence.features(np.arange(nodes))
    assert evidence.names == ("model", "around", "near", "alike", "wide", "similar_5", "similar_25")[: 5 + 2 * similar]
    for v in range(nodes):
        expected = slow_features(p, graph, chosen, labels, v, nearest)
        np.testing.assert_allclose(found[v], expected, rtol=1e-9, atol=1e-9)


def test_walks_of_many_steps_obey_their_recursion():
    graph, _, labels = block_model(0.8)
    nodes = np.arange(0, 600, 4)
    met = walk(graph, Labelled(nodes, labels[nodes]), 3)
    known = np.zeros((600, 3))
    known[nodes, labels[nodes]] = 1.0
    exact = np.zeros((600, 3))
    for _ in range(12):
        exact = 0.9 * graph.neighbour_means(known + exact)
    others = np.setdiff1d(np.arange(600), nodes)
    np.testing.assert_allclose(met[others], exact[others], rtol=1e-9)
    assert met[nodes].sum() == pytest.approx(exact[nodes].sum(), rel=0.1)


def test_a_nodes_own_label_is_not_among_its_evidence():
    graph, p, labels = block_model(0.8)
    nodes = np.arange(0, 600, 2)
    before = Evidence(p, graph, Labelled(nodes, labels[nodes]))
    v = 10
    changed = labels[nodes].copy()
    changed[v // 2] = (changed[v // 2] + 1) % 3
    after = Evidence(p, graph, Labelled(nodes, changed))
    after.shares = before.shares  # of all labels, in which one more or less of a kind shows
    np.testing.assert_allclose(before.features(np.array([v])), after.features(np.array([v])), rtol=1e-9, atol=1e-12)


def penalised(z, y, *penalties):
    """The negative log likelihood of labels, and what is added to it."""
    top = z.max(axis=1)
    return (top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - z[np.arange(y.size), y]).sum() + sum(penalties)


def test_the_exponents_are_the_optimum_of_the_penalised_likelihood():
    graph, p, labels = block_model(0.7, seed=3)
    nodes = np.arange(0, 600, 3)
    evidence = Evidence(p, graph, Labelled(nodes, labels[nodes]))
    features, y = evidence.features(nodes), labels[nodes]
    offsets = recalibrated(np.ones((y.size, 0)), np.array([[0.3, 0.0, -0.1]]))

    def loss(theta):
        return penalised(offsets + features @ theta, y, RIDGE / 2 * ((theta - np.eye(5)[0]) ** 2).sum())

    best = minimize(loss, np.eye(5)[0], method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(conditional_logit(features, y, offsets), best, atol=1e-4)


def recalibration_loss(inputs, y, offsets, coefficients):
    """The objective of a recalibration, with coefficients of inputs of mean 0 and deviation 1."""
    x = np.column_stack([(inputs - inputs.mean(axis=0)) / inputs.std(axis=0), np.ones(y.size)])
    b = coefficients.reshape(x.shape[1], -1)
    return penalised(offsets + x @ b, y, RECALIBRATION_RIDGE / 2 * (b**2).sum())


def standardised(inputs, recalibration):
    """The same recalibration in terms of inputs of mean 0 and deviation 1."""
    constants = recalibration[-1] + inputs.mean(axis=0) @ recalibration[:-1]
    return np.vstack([recalibration[:-1] * inputs.std(axis=0)[:, None], constants])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(20, 80), st.integers(2, 4))
def test_the_recalibration_comes_close_to_the_optimum_of_its_penalised_likelihood(seed, nodes, classes):
    rng = np.random.default_rng(seed)
    inputs, offsets = 3.0 + 2.0 * rng.normal(size=(nodes, 3)), rng.normal(size=(nodes, classes))
    y = (inputs[:, 0] + rng.normal(size=nodes) > 3.0).astype(np.int64)
    fitted = fit_recalibration(inputs, y, offsets, np.zeros((4, classes)))
    again = fit_recalibration(inputs, y, offsets, fitted)
    best = minimize(lambda b: recalibration_loss(inputs, y, offsets, b), np.zeros(4 * classes), method="BFGS")
    for recalibration, slack in ((fitted, 1e-2), (again, 1e-3)):
        assert recalibration_loss(inputs, y, offsets, standardised(inputs, recalibration)) <= best.fun + slack


def test_a_row_is_recalibrated_to_the_same_bits_alone_as_among_others():
    rng = np.random.default_rng(0)
    inputs, recalibration = rng.normal(size=(500, 9)), rng.normal(size=(10, 4))
    alone = np.vstack([recalibrated(inputs[[i]], recalibration) for i in range(500)])
    np.testing.assert_array_equal(recalibrated(inputs, recalibration), alone)
    np.testing.assert_allclose(alone, inputs @ recalibration[:-1] + recalibration[-1], atol=1e-12)


def test_labels_that_the_model_confuses_are_told_apart_by_the_recalibration():
    graph, p, labels = block_model(1 / 3, nodes=900, strength=2.0)
    confused = p[:, [1, 2, 0]]  # says 1 where it means 2, and so on
    nodes = np.arange(0, 900, 3)
    rest = np.setdiff1d(np.arange(900), nodes)
    informed = informed_probabilities(confused, graph, nodes, labels[nodes])[0]
    assert (confused[rest].argmax(axis=1) == labels[rest]).mean() < 0.2
    assert (informed[rest].argmax(axis=1) == labels[rest]).mean() > 0.6


def test_a_great_many_classes_are_not_recalibrated():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(65), 200)
    graph = ns.Graph.from_edge_index(rng.integers(200, size=(2, 400)), num_nodes=200)
    few, many = (Evidence(q, graph, Labelled(np.arange(100), np.arange(100) % 64)).fit() for q in (p[:, :64], p))
    assert few.recalibration.shape == (2 * 64 + 2, 64)
    assert many.recalibration is None


def test_without_edges_and_with_no_sense_in_the_labels_hardly_anything_changes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 300)
    graph = ns.Graph.from_edge_index([[], []], num_nodes=300)
    nodes = np.arange(150)
    labels = (p[nodes].cumsum(axis=1) > rng.random((150, 1))).argmax(axis=1)  # the model is right about itself
    informed, exponents = informed_probabilities(p, graph, nodes, labels)
    assert abs(exponents.model + exponents.around - 1) < 0.35  # the neighbours' mean is the node's own here
    assert np.abs(informed - p).mean() < 0.1
    np.testing.assert_allclose(informed.sum(axis=1), 1.0)


@pytest.mark.parametrize(("same", "sign"), [(0.85, 1), (0.02, -1)], ids=["homophilous", "heterophilous"])
def test_the_sign_of_the_evidence_is_found(same, sign):
    graph, p, labels = block_model(same, seed=1)
    nodes = np.arange(0, 600, 2)
    others = np.arange(1, 600, 2)
    informed, exponents = informed_probabilities(p, graph, nodes, labels[nodes])
    assert np.sign(exponents.near) == sign
    before, after = ((q[others].argmax(axis=1) == labels[others]).mean() for q in (p, informed))
    assert after > before + 0.05
    assert (exponents.odds("near") > 1) == (sign > 0)


def test_what_a_neighbour_does_depends_on_how_frequent_its_label_is():
    exponents = Exponents(near=1.0)
    assert exponents.odds("near", np.array([0.5, 0.5])) == pytest.approx(2.0)  # (1 + 2·½) / (2·½)
    assert exponents.odds("near", np.full(10, 0.1)) == pytest.approx(exponents.odds("near"))
    assert Exponents(near=0.0).odds("near") == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": [5000]}, "`nodes` must hold ids from 0 to 599"),
        ({"labels": np.full(100, -1)}, "`labels` must be known to be scored"),
        ({"nodes": [1, 1], "labels": [0, 0]}, "`nodes` must not repeat"),
        ({"features": np.ones(3)}, "`features` must be a table of numbers"),
        ({"probabilities": np.ones((600, 3))}, "`probabilities` must have rows that sum to 1"),
    ],
)
def test_bad_arguments_are_named(change, message):
    graph, p, labels = block_model(0.8)
    arguments = {"probabilities": p, "graph": graph, "nodes": np.arange(100), "labels": labels[:100]} | change
    with pytest.raises(ns.InvalidInputError, match=message):
        informed_probabilities(**arguments)


def test_many_classes_are_weighed_in_pieces_that_do_not_show(monkeypatch):
    graph, p, labels = block_model(0.8)
    whole, _ = informed_probabilities(p, graph, np.arange(200), labels[:200])
    monkeypatch.setattr("napsets.scores.evidence._ENTRIES", 50)
    pieces, _ = informed_probabilities(p, graph, np.arange(200), labels[:200])
    assert np.array_equal(whole, pieces)


def test_float32_stays_float32_and_rows_sum_to_one():
    graph, p, labels = block_model(0.8)
    informed, _ = informed_probabilities(p.astype(np.float32), graph, np.arange(100), labels[:100])
    assert informed.dtype == np.float32
    np.testing.assert_allclose(informed.sum(axis=1), 1.0, rtol=1e-5)


def test_it_needs_an_exact_level_and_a_graph():
    graph, p, labels = block_model(0.8)
    with pytest.raises(ns.InvalidInputError, match="`level` must be exact for a score that learns from labels"):
        ns.NAPS(score=Informed())
    with pytest.raises(ns.InvalidInputError, match="`graph` or `features` must be given"):
        ns.SplitConformal(Informed()).calibrate(p, labels, np.arange(100))
    sets = ns.SplitConformal(Informed()).calibrate(p, labels, np.arange(200), graph=graph).predict(np.arange(200, 600))
    assert sets.level is not None
    assert ns.NAPS(score="informed", exact=True).calibrate(graph, p, labels, np.arange(200)) is not None


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr("napsets.kernels.threads.SMALL", -1)
    graph, p, labels = block_model(0.8)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("NAPSETS_THREADS", threads)
        results.append(informed_probabilities(p, graph, np.arange(200), labels[:200])[0])
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_the_gain_of_each_kind_is_what_the_likelihood_falls_by_without_it():
    graph, p, labels = block_model(0.8)
    nodes = np.arange(0, 600, 2)
    evidence = Evidence(p, graph, Labelled(nodes, labels[nodes]))
    learned, features = evidence.fit(), evidence.features(nodes)
    theta = np.array([getattr(learned.exponents, name) for name in learned.kinds])
    offsets = evidence.recalibration(learned, nodes)

    def mean(exponents):
        return -penalised(offsets + features @ exponents, labels[nodes]) / nodes.size

    for j, gain in enumerate(learned.gains):
        assert gain == pytest.approx(mean(theta) - mean(theta * (np.arange(theta.size) != j)), abs=1e-9)
    assert learned.gains[2] > 0.01


def test_similar_nodes_are_evidence_without_a_graph():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=900)
    features = np.eye(3)[labels] + 0.4 * rng.normal(size=(900, 3))
    p = rng.dirichlet(np.ones(3), 900)  # of a model that knows nothing
    informed, exponents = informed_probabilities(p, None, np.arange(300), labels[:300], features=features)
    assert exponents.near == exponents.around == exponents.wide == 0.0
    assert (informed[300:].argmax(axis=1) == labels[300:]).mean() > 0.8
    assert exponents.odds("similar_5") > 1.25


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), with_graph=st.booleans(), classes=st.integers(2, 4))
def test_the_linear_model_predicts_each_reference_node_without_its_own_label(seed, with_graph, classes):
    rng = np.random.default_rng(seed)
    graph = block_model(nodes=40, classes=classes, seed=seed)[0] if with_graph else None
    features = check_features("features", rng.normal(size=(40, 6)))
    directions = Directions.of(features)
    nodes = np.sort(rng.permutation(40)[:25])
    labels = rng.integers(classes, size=25)
    scores = linear_scores(features, directions, graph, Labelled(nodes, labels), classes)
    rows = directions.rows(features)
    rows = rows / np.linalg.norm(rows, axis=1)[:, None]
    if graph is not None:
        rows = np.hstack([rows, means_around(graph, rows)])
    truth = np.eye(classes)[labels]

    def fit(kept, ridge):
        """Minimise the squared error with an intercept that no ridge holds back."""
        x = np.column_stack([rows[nodes[kept]], np.ones(kept.sum())])
        penalty = ridge * np.eye(x.shape[1])
        penalty[-1, -1] = 0.0
        return np.column_stack([rows, np.ones(40)]) @ np.linalg.solve(x.T @ x + penalty, x.T @ truth[kept])

    everyone = np.ones(25, dtype=bool)
    left_out = {ridge: np.stack([fit(np.arange(25) != i, ridge)[nodes[i]] for i in range(25)]) for ridge in _RIDGES}
    ridge = min(_RIDGES, key=lambda ridge: ((left_out[ridge] - truth) ** 2).sum())
    assert_allclose(scores[nodes], SCALE * left_out[ridge], atol=1e-8)
    others = np.delete(np.arange(40), nodes)
    assert_allclose(scores[others], SCALE * fit(everyone, ridge)[others], atol=1e-8)


def test_the_linear_model_reads_features_in_blocks_that_do_not_show(monkeypatch):
    graph, _, labels = block_model(nodes=60)
    features = check_features("features", np.random.default_rng(0).random((60, 5)))
    directions, known = Directions.of(features), Labelled(np.arange(20), labels[:20])
    whole = linear_scores(features, directions, graph, known, 3)
    monkeypatch.setattr("napsets.scores.linear._BLOCK", 7)
    assert_allclose(linear_scores(features, directions, graph, known, 3), whole, atol=1e-12)


def test_features_that_say_nothing_leave_a_linear_model_of_shares():
    features = check_features("features", np.ones((12, 2)))
    known = Labelled(np.arange(6), np.array([0, 0, 0, 0, 1, 1]))
    scores = linear_scores(features, Directions.of(features), None, known, 2)
    assert_allclose(scores[6:], np.tile([SCALE * 4 / 6, SCALE * 2 / 6], (6, 1)))
