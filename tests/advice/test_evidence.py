"""Informed probabilities are what their parts add up to, and each voice is as loud as the odds that fall without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import napsets as ns
from napsets.advice.evidence import EvidenceExplainer
from napsets.advice.inspection import inspect_node
from napsets.levels import Exact
from napsets.localisers import Everyone, Hops
from napsets.methods import Method, make_method
from napsets.scores import APS, THR, ByLabel, Diffused, Informed, Labelled
from napsets.scores.evidence import Evidence
from napsets.scores.informed import evidence_of
from worlds import draw_world


def drawn(nodes: int = 240, *, same: bool = True) -> dict:
    """Three classes whose nodes link to their own kind, or to other kinds only; the last three nodes stand alone."""
    inputs = draw_world(0, nodes, 3, 8 * nodes, same=same, strength=1.2, alone=3)
    del inputs["nodes"]
    return inputs


SCORES = {
    "informed": Informed(),
    "near alone": Informed(hops=1),
    "no neighbours' labels": Informed(hops=0),
    "diffused": Diffused(Informed(THR())),
    "by label": ByLabel(Informed(), 0.5),
}


def softmax(z: np.ndarray) -> np.ndarray:
    raised = np.exp(z - z.max())
    return raised / raised.sum()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_contributions_add_up_to_the_informed_probabilities(name, dtype):
    inputs = drawn()
    inputs["probabilities"] = inputs["probabilities"].astype(dtype)
    calibrated = Method(SCORES[name], Hops(2, pool=10.0), Exact()).calibrate(**inputs)
    for node in (0, 7, 100, 239):
        seen = inspect_node(calibrated, node)
        evidence = seen.evidence
        tolerance = 1e-12 if dtype is np.float64 else 1e-6
        np.testing.assert_allclose(
            softmax(evidence.contributions.sum(axis=0)), evidence.informed, rtol=0, atol=tolerance
        )
        np.testing.assert_array_equal(evidence.informed, seen.probabilities)
        np.testing.assert_array_equal(evidence.model, inputs["probabilities"][node].astype(np.float64))
        np.testing.assert_allclose(evidence.contributions.mean(axis=1), 0.0, atol=1e-12)
        assert evidence.factors == ("model", "around", "near", "far", "alike")


@pytest.mark.parametrize("same", [True, False])
def test_a_voice_is_as_loud_as_the_odds_that_fall_without_it(same):
    inputs = drawn(same=same)
    calibrated = make_method("informed").calibrate(**inputs)
    bound, graph = evidence_of(calibrated.score), calibrated.graph
    explainer = EvidenceExplainer(bound, graph)
    reference, bag, exponents = bound.reference, bound.bag.labelled, bound.exponents

    def without(node):
        """The evidence with one label less, all else as it is."""
        left = [Labelled(part.nodes[part.nodes != node], part.labels[part.nodes != node]) for part in (reference, bag)]
        return Evidence(bound.outputs, graph, left[0], 2, learned=bound.learned).with_bag(left[1])

    assert (exponents.near > 0) == same
    theta = np.array([exponents.model, exponents.around, exponents.near, exponents.far, 0.0])
    for node in (3, 50, int(reference.nodes[4]), int(bag.nodes[4])):
        voices = explainer.voices(node)
        assert voices
        assert [abs(voice.log_odds) for voice in voices] == sorted((abs(v.log_odds) for v in voices), reverse=True)
        before = without(-1).features(np.array([node]))[0] @ theta
        for voice in voices[::5]:
            after = without(voice.node).features(np.array([node]))[0] @ theta
            fallen = (before - before[(voice.label + 1) % 3]) - (after - after[(voice.label + 1) % 3])
            assert fallen[voice.label] == pytest.approx(voice.log_odds, abs=1e-9)
            assert voice.odds == pytest.approx(np.exp(voice.log_odds))


def test_only_labelled_nodes_within_two_hops_speak_and_never_the_node_itself():
    calibrated = make_method("informed").calibrate(**drawn())
    bound = evidence_of(calibrated.score)
    explainer = EvidenceExplainer(bound, calibrated.graph)
    speaking = bound.reference, bound.bag.labelled
    labels = {int(v): int(y) for part in speaking for v, y in zip(part.nodes, part.labels, strict=True)}
    for node in range(0, 240, 13):
        near = set(calibrated.graph.neighbours(node).tolist())
        far = {int(w) for u in near for w in calibrated.graph.neighbours(u)} - near - {node}
        voices = explainer.voices(node)
        assert {voice.node for voice in voices} == (near | far) & set(labels) - {node}
        for voice in voices:
            assert voice.label == labels[voice.node]
            assert voice.hop == (1 if voice.node in near else 2)
    assert explainer.voices(239) == ()


def test_a_loud_neighbour_is_what_the_sentence_says():
    calibrated = make_method("informed").calibrate(**drawn())
    evidence = inspect_node(calibrated, 0).evidence
    assert evidence.sentence.startswith("a labelled neighbour multiplies the odds of its label by ")
    bound = evidence_of(calibrated.score)
    factor = float(evidence.sentence.rsplit(" ", 1)[1])
    assert factor == pytest.approx(((1 + 2 / 3) / (2 / 3)) ** bound.exponents.near, abs=0.05)


def test_other_methods_have_no_evidence_to_show():
    inputs = drawn()
    for name in ("split", "naps", "naps-exact", "daps"):
        assert inspect_node(make_method(name).calibrate(**inputs), 0).evidence is None
    assert evidence_of(None) is None


def test_auto_is_inspected_like_what_it_chose(tmp_path):
    inputs = drawn(600)
    auto = ns.Auto().calibrate(**inputs)
    seen, same = inspect_node(auto, 5), inspect_node(auto.calibrated(), 5)
    assert seen.member.tolist() == same.member.tolist()
    assert seen.evidence.voices == same.evidence.voices
    auto.save(tmp_path / "auto.npz")
    loaded = inspect_node(ns.Auto.load(tmp_path / "auto.npz"), 5)
    assert loaded.evidence.voices == seen.evidence.voices
    np.testing.assert_array_equal(loaded.evidence.contributions, seen.evidence.contributions)


def test_a_directed_graph_speaks_along_its_edges():
    inputs = drawn()
    rng = np.random.default_rng(1)
    inputs["graph"] = ns.Graph.from_edge_index(rng.integers(0, 240, (2, 900)), num_nodes=240, directed=True)
    calibrated = Method(Informed(APS()), Everyone(), Exact()).calibrate(**inputs)
    for node in range(0, 240, 31):
        evidence = inspect_node(calibrated, node).evidence
        np.testing.assert_allclose(softmax(evidence.contributions.sum(axis=0)), evidence.informed, atol=1e-12)
        assert np.isfinite([voice.log_odds for voice in evidence.voices]).all()
    assert replace(evidence, voices=()).voices == ()
