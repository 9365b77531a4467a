"""What each kind of evidence does to a node's outputs: together the kinds are the whole change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad_vec

import napsets as ns
from napsets.advice.evidence import even_factors
from napsets.advice.explanation import Explained
from napsets.advice.inspection import inspect_node
from napsets.levels import Exact
from napsets.localisers import Everyone, Hops
from napsets.methods import Method, make_method
from napsets.scores import THR, ByLabel, Diffused, Informed, InformedIntervals
from napsets.scores.exponents import PRIOR
from napsets.scores.informed import evidence_of
from worlds import draw_world


def drawn(seed: int = 0, nodes: int = 240, *, same: bool = True, classes: int = 3) -> dict:
    """Classes whose nodes link to their own kind, or to other kinds only; the last three nodes stand alone."""
    inputs = draw_world(seed, nodes, classes, 8 * nodes, same=same, strength=1.2, alone=3)
    del inputs["nodes"]
    return inputs


SCORES = {
    "informed": Informed(),
    "diffused": Diffused(Informed(THR())),
    "by label": ByLabel(Informed(), 0.5),
}


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), directed=st.booleans(), narrow=st.booleans(), same=st.booleans())
def test_factors_of_all_kinds_multiply_to_what_changed_the_probabilities(name, seed, directed, narrow, same):
    inputs = drawn(seed, same=same)
    if directed:
        ends = np.random.default_rng(seed).integers(0, 240, (2, 900))
        inputs["graph"] = ns.Graph.from_edge_index(ends, num_nodes=240, directed=True)
    if narrow:
        inputs["probabilities"] = inputs["probabilities"].astype(np.float32)
    calibrated = Method(SCORES[name], Hops(2, pool=10.0), Exact()).calibrate(**inputs)
    for node in (0, 7, 100, 239):
        seen = inspect_node(calibrated, node)
        evidence = seen.evidence
        np.testing.assert_array_equal(evidence.informed, seen.probabilities)
        np.testing.assert_array_equal(evidence.model, inputs["probabilities"][node].astype(np.float64))
        together = np.maximum(evidence.model, 1e-6) * evidence.effects.prod(axis=0)
        np.testing.assert_allclose(together, evidence.informed, rtol=1e-4 if narrow else 1e-9)
        names = {kind.name for kind in evidence.kinds}
        assert {"model", "around", "near", "alike", "recalibration"} <= names
        assert names - {"recalibration"} <= set(vars(evidence_of(calibrated.score).exponents))


@settings(max_examples=50, deadline=None)
@given(
    arrays(np.float64, (3, 4), elements=st.floats(-6, 6)),
    arrays(np.float64, 4, elements=st.floats(-8, 0)),
    st.permutations(range(3)),
)
def test_a_factor_is_what_the_kind_does_when_all_are_let_in_evenly(logs, start, order):
    factors = even_factors(logs, start)

    def charged(t: float) -> np.ndarray:
        way = start + t * logs.sum(axis=0)
        p = np.exp(way - way.max())
        return logs @ (p / p.sum())

    expected = np.exp(logs - quad_vec(charged, 0, 1, epsabs=1e-11)[0][:, None])
    np.testing.assert_allclose(factors, expected, rtol=1e-6)
    np.testing.assert_allclose(even_factors(logs[order], start), factors[order], rtol=1e-9)
    # A kind that tells no class from another changes nothing.
    np.testing.assert_allclose(even_factors(np.vstack([logs, np.full(4, 2.5)]), start)[3], 1.0, rtol=1e-9)


def test_each_kind_counts_the_labels_around_the_node():
    inputs = drawn(classes=4)
    calibrated = make_method("informed").calibrate(**inputs)
    bound, graph = evidence_of(calibrated.score), calibrated.graph
    label_of = np.full(240, -1)
    label_of[bound.reference.nodes] = bound.reference.labels
    predicted = inputs["probabilities"].argmax(axis=1)
    for node in (3, 50, int(bound.reference.nodes[4]), 239):
        evidence = inspect_node(calibrated, node).evidence
        kinds = {kind.name: kind for kind in evidence.kinds}
        near = [int(u) for u in graph.neighbours(node) if label_of[u] >= 0]
        assert evidence.labelled.tolist() == near
        assert evidence.truth.tolist() == label_of[near].tolist()
        np.testing.assert_allclose(kinds["near"].counts, np.bincount(label_of[near], minlength=4), atol=1e-9)
        alike = np.flatnonzero((predicted == predicted[node]) & (label_of >= 0) & (np.arange(240) != node))
        np.testing.assert_allclose(kinds["alike"].counts, np.bincount(label_of[alike], minlength=4), atol=1e-9)
        assert kinds["around"].value.sum() == pytest.approx(1.0)
        assert all((kind.counts is None) == (kind.name not in PRIOR) for kind in evidence.kinds)
        assert (kinds["near"].effect == pytest.approx(1.0)) == (not near)


@pytest.mark.parametrize("with_graph", [True, False])
def test_similar_nodes_that_spoke_are_named(with_graph):
    inputs, features = drawn(classes=4), np.random.default_rng(0).normal(size=(240, 6))
    calibrated = make_method("informed").calibrate(
        **inputs | ({} if with_graph else {"graph": None}), features=features
    )
    bound = evidence_of(calibrated.score)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    for node in (3, int(bound.reference.nodes[4]), 239):
        seen = inspect_node(calibrated, node)
        others = bound.reference.nodes[bound.reference.nodes != node]
        others = others[unit[others] @ unit[node] > 0.0]
        nearest = others[np.argsort(-(unit[others] @ unit[node]), kind="stable")][:25]
        assert seen.evidence.similar.tolist() == nearest.tolist()
        assert seen.evidence.similar_truth.tolist() == inputs["labels"][nearest].tolist()
        kinds = {kind.name: kind for kind in seen.evidence.kinds}
        counts = np.bincount(inputs["labels"][nearest[:5]], minlength=4)
        np.testing.assert_allclose(kinds["similar_5"].counts, counts, atol=1e-9)
        explained = Explained(seen, lambda nodes: nodes.tolist(), inputs["labels"], list("abcd"), neighbours=10)
        assert [row["node"] for row in explained.record()["evidence"]["similar"]] == nearest[:10].tolist()
        table = next(table for table in explained.tables() if "similar features" in table.title)
        assert table.title == f"Labelled nodes with the most similar features (10 of {nearest.size})"
        assert [row[0] for row in table.rows] == [str(node) for node in nearest[:10]]


def test_other_methods_have_no_evidence_to_show():
    inputs = drawn()
    for name in ("split", "naps", "naps-exact", "daps"):
        assert inspect_node(make_method(name).calibrate(**inputs), 0).evidence is None
    assert evidence_of(None) is None


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    hops=st.integers(1, 2),
    score=st.sampled_from(["cqr", "absolute", "normalised"]),
    directed=st.booleans(),
)
def test_terms_of_all_kinds_add_up_to_the_shift_of_the_outputs(seed, hops, score, directed):
    rng = np.random.default_rng(seed)
    graph = ns.Graph.from_edge_index(rng.integers(0, 198, (2, 600)), num_nodes=200, directed=directed)
    x = rng.normal(size=200)
    targets = x + graph.neighbour_means(rng.normal(size=(200, 1)))[:, 0]
    outputs = {
        "cqr": np.column_stack([x - 1, x + 1]),
        "absolute": x[:, None],
        "normalised": np.column_stack([x, 0.5 + np.abs(x)]),
    }[score]
    method = Method(InformedIntervals(score, hops=hops), Everyone(), Exact())
    calibrated = method.calibrate(graph, outputs, targets, np.arange(150))
    for node in (0, 160, 199):
        seen = inspect_node(calibrated, node)
        evidence = seen.evidence
        assert [kind.name for kind in evidence.kinds] == ["recalibration", "near", "far"][: 1 + hops]
        np.testing.assert_array_equal(evidence.informed, seen.outputs)
        np.testing.assert_array_equal(evidence.model, outputs[node])
        np.testing.assert_allclose(evidence.effects.sum(axis=0), seen.outputs - outputs[node], rtol=0, atol=1e-9)
        reference = calibrated.score.reference
        near = np.intersect1d(graph.neighbours(node), reference.nodes)
        assert evidence.kinds[1].counts == near.size
        residuals = targets[near] - calibrated.score.score.centre(outputs)[near]
        assert evidence.kinds[1].value == pytest.approx(residuals.sum() / (near.size + 1))
        assert evidence.truth.tolist() == targets[evidence.labelled].tolist()


def test_tables_write_factors_that_multiply_to_what_they_explain():
    inputs = drawn(classes=7)
    names = [f"class {y}" for y in range(7)]
    calibrated = make_method("informed").calibrate(**inputs)
    explained = Explained(inspect_node(calibrated, 0), lambda nodes: nodes.tolist(), inputs["labels"], names, 3)
    record = explained.record()["evidence"]
    table = next(table for table in explained.tables() if table.title.startswith("Evidence"))
    assert len(table.head) == 2 + 5
    assert table.note == "5 of 7 classes are shown."
    first, *kinds, last = [[float(cell.strip("× %")) for cell in row[2:]] for row in table.rows]
    np.testing.assert_allclose(np.prod(kinds, axis=0) * first, last, rtol=0.02, atol=0.1)
    assert last == sorted(last, reverse=True)
    for row in record["outputs"]:
        factors = [kind["factors"][row["label"]] for kind in record["kinds"]]
        assert np.prod(factors) * row["model"] == pytest.approx(row["informed"])
