"""The explorer shows what the library computes, for a bounded number of bytes a node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse.csgraph

from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import compare
from napsets.evaluation.results import Comparison
from napsets.report import ReportData
from napsets.report.explorer import BINS, DRAWN_NODES, EXPLORED_NODES, TOO_LITTLE, VOICES, Explorer, affordable, explore
from napsets.report.sets_page import SetsPage
from napsets.scores.informed import evidence_of
from worlds import FOUR


def explored(comparison: Comparison) -> Explorer:
    """Explore without a map, with numbers for names."""
    count = comparison.graph.num_nodes
    return explore(SetsPage(comparison), names=np.arange(count), ball=np.full(count, -1))


@pytest.fixture(scope="module")
def explorer(comparison: Comparison) -> Explorer:
    return explored(comparison)


@pytest.fixture(scope="module")
def distance(world: dict[str, Any], explorer: Explorer) -> np.ndarray:
    adjacency = world["graph"].to_scipy().astype(np.float64)
    return scipy.sparse.csgraph.dijkstra(adjacency, indices=explorer.nodes, unweighted=True)


def test_thresholds_supports_and_predictions_are_the_methods_own(data: ReportData) -> None:
    explorer = data.explorer
    for m, result in enumerate(data.comparison):
        prediction: Any = result.prediction
        rows = [int(np.flatnonzero(prediction.nodes == node)[0]) for node in explorer.nodes]
        columns = [name for name in ("member", "lower", "upper") if hasattr(prediction, name)]
        assert columns
        for name in ("thresholds", "support", "effective_size", *columns):
            assert np.array_equal(getattr(explorer, name)[m], getattr(prediction, name)[rows])


def test_a_label_is_in_a_set_exactly_where_its_score_is_at_most_the_threshold(explorer: Explorer) -> None:
    for m in range(len(FOUR)):
        assert np.array_equal(explorer.member[m], explorer.scores[0] <= explorer.thresholds[m][:, None])


def test_counts_by_hop_are_those_of_shortest_paths(world, explorer: Explorer, distance: np.ndarray) -> None:
    calibrates = np.isin(np.arange(1500), world["calibration"])
    for k in (1, 2):
        assert np.array_equal(explorer.hop_nodes[:, k - 1], (distance == k).sum(axis=1))
        assert np.array_equal(explorer.hop_counts[0][:, k - 1], (distance[:, calibrates] == k).sum(axis=1))


def test_the_weight_below_the_threshold_is_enough_and_not_more(explorer: Explorer, comparison: Comparison) -> None:
    for m in (1, 2, 3):
        below = explorer.hop_below[m] @ explorer.weights[m]
        needed = (1 - comparison.alpha) * (1 + explorer.hop_counts[0] @ explorer.weights[m])
        finite = np.isfinite(explorer.thresholds[m])
        assert finite.any()
        assert (below[finite] >= needed[finite] - 1e-6).all()
        # One node fewer, the heaviest there is, would not be enough.
        assert (below[finite] - explorer.weights[m].max() < needed[finite]).all()


def test_all_calibration_nodes_below_the_split_threshold_are_counted(
    explorer: Explorer, comparison: Comparison
) -> None:
    scores = comparison.baseline.calibrated.scored.reference.scores
    assert explorer.all_counts.tolist() == [scores.size]
    assert np.array_equal(explorer.all_below[0], (scores[:, None] <= explorer.thresholds[0][None, :]).sum(axis=0))


def test_histograms_hold_every_calibration_node_once(data: ReportData) -> None:
    explorer = data.explorer
    assert np.array_equal(explorer.histogram.sum(axis=3), explorer.hop_counts)
    assert np.array_equal(explorer.all_histogram.sum(axis=1), explorer.all_counts)
    assert explorer.histogram.shape[3] == BINS


def test_neighbours_are_drawn_at_their_hop_and_joined_to_neighbours_one_nearer(world, explorer, distance) -> None:
    graph = world["graph"]
    names = np.array([int(name) for name in explorer.neighbour_names])
    joined = 0
    for i, node in enumerate(explorer.nodes):
        drawn = explorer.drawn[i][explorer.drawn[i] >= 0]
        others, hop, parent = names[drawn], explorer.drawn_hop[i], explorer.drawn_parent[i]
        assert np.unique(others).size == others.size
        assert np.array_equal(distance[i, others], hop[: others.size])
        for c, other in enumerate(others):
            if parent[c] >= -1:
                nearer = node if parent[c] == -1 else others[parent[c]]
                assert other in graph.neighbours(int(nearer))
                joined += 1
            if hop[c] == 1:
                assert parent[c] == -1
    assert joined > explorer.nodes.size


def test_small_neighbourhoods_are_drawn_whole(explorer: Explorer) -> None:
    small = explorer.hop_nodes.max(axis=1) <= DRAWN_NODES // 2
    assert small.any()
    assert np.array_equal((explorer.drawn >= 0).sum(axis=1)[small], explorer.hop_nodes.sum(axis=1)[small])


def test_only_calibration_nodes_show_score_and_label(world, explorer: Explorer, comparison: Comparison) -> None:
    reference = comparison.baseline.calibrated.scored.reference
    scores = dict(zip(reference.nodes.tolist(), reference.scores, strict=True))
    for name, label, score in zip(
        explorer.neighbour_names, explorer.neighbour_label, explorer.neighbour_score[0], strict=True
    ):
        if int(name) in scores:
            assert score == scores[int(name)]
            assert label == world["labels"][int(name)]
        else:
            assert np.isnan(score)
            assert label == -1


def test_every_reason_that_exists_is_represented(explorer: Explorer, comparison: Comparison, world) -> None:
    y = world["labels"]
    aps, naps = comparison["split"].sets, comparison["naps"].sets
    truth = dict(zip(naps.nodes.tolist(), zip(aps.contains(y), naps.contains(y), naps.sizes, strict=True), strict=True))
    for i, node in enumerate(explorer.nodes.tolist()):
        hit, local_hit, size = truth[node]
        assert explorer.reason[i].any()
        if explorer.reason[i, 1]:
            assert local_hit
            assert not hit
        if explorer.reason[i, 2]:
            assert hit
            assert not local_hit
        if explorer.reason[i, 4]:
            assert size == 0
    assert explorer.reason.sum(axis=0).tolist()[:2] != [0, 0]
    short = explorer.reason[:, TOO_LITTLE]
    assert np.isinf(explorer.thresholds[1][short]).all()
    assert short.sum() > 0
    assert explorer.reasons[1:3] == ["NAPS covers, Split APS misses", "Split APS covers, NAPS misses"]


def test_methods_that_score_alike_share_their_scores_and_others_have_their_own(seven, world) -> None:
    compared = compare(**(world | {"methods": seven}))
    explorer = explored(compared)
    assert explorer.scored.tolist() == [0, 0, 0, 0, 1, 2, 0]
    for m, result in enumerate(compared):
        s = explorer.scored[m]
        assert np.array_equal(explorer.scores[s], result.calibrated.score.matrix(explorer.nodes))
        assert np.array_equal(explorer.member[m], explorer.scores[s] <= explorer.thresholds[m][:, None])
        assert explorer.all_histogram[s].sum() == result.calibrated.scored.reference.nodes.size
    assert explorer.all_counts.tolist() == [750, 750, 375]
    assert (explorer.weights[[0, 5, 6]] == 0).all()
    assert (explorer.weights[[1, 4]] == 1).all()
    assert explorer.levels[5] == compared["thr-split"].sets.level


MIXES = [["split", "informed"], ["informed"], ["auto", "split", "naps-exact", "informed", "auto-small"]]


@pytest.mark.parametrize("methods", MIXES, ids=len)
def test_evidence_is_what_an_inspection_tells_for_any_mix_of_methods(world, methods) -> None:
    compared = compare(**(world | {"methods": methods}))
    explorer = explored(compared)
    assert explorer.model.shape == (explorer.nodes.size, 5)
    assert np.array_equal(explorer.model, world["probabilities"][explorer.nodes].astype(np.float32))
    assert len(explorer.sentences) == explorer.voices.shape[0] == explorer.informed.max() + 1
    for m, result in enumerate(compared):
        e = int(explorer.informed[explorer.scored[m]])
        assert (e >= 0) == (evidence_of(result.calibrated.score) is not None)
        if e < 0:
            continue
        for i in range(0, explorer.nodes.size, 150):
            seen = inspect_node(result.calibrated, int(explorer.nodes[i])).evidence
            rows = explorer.voices[e, i][explorer.voices[e, i] >= 0]
            assert explorer.speaking[e, i] == len(seen.voices)
            assert [explorer.neighbour_names[row] for row in rows] == [
                str(voice.node) for voice in seen.voices[:VOICES]
            ]
            assert explorer.neighbour_label[rows].tolist() == [voice.label for voice in seen.voices[:VOICES]]
            assert explorer.voice_hop[e, i, : rows.size].tolist() == [voice.hop for voice in seen.voices[:VOICES]]
            odds = [voice.odds for voice in seen.voices[:VOICES]]
            np.testing.assert_allclose(explorer.voice_odds[e, i, : rows.size], odds, rtol=1e-6)
            assert explorer.sentences[e] == seen.sentence


def test_without_informed_methods_the_page_carries_no_evidence(explorer: Explorer) -> None:
    assert explorer.informed.tolist() == [-1]
    assert explorer.model.size == explorer.voices.size == explorer.speaking.size == len(explorer.sentences) == 0


def room_for(classes: int, hops: int, methods: int, scored: int, evidence: int = 0) -> int:
    page: Any = SimpleNamespace(class_names=range(classes), methods=range(methods))
    return affordable(SetsPage.node_bytes(page, scored, evidence), hops, methods, scored)


def test_more_classes_leave_room_for_fewer_nodes() -> None:
    assert room_for(10, 2, 4, 1) == EXPLORED_NODES
    assert 20 <= room_for(1000, 2, 4, 1) < 60
    assert 20 <= room_for(1000, 2, 4, 2, 1) < room_for(1000, 2, 4, 2)


def test_more_methods_and_scores_leave_room_for_fewer_nodes() -> None:
    assert 100 < room_for(10, 2, 8, 8) < room_for(10, 2, 8, 2) <= EXPLORED_NODES
