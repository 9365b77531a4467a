"""The explorer shows what the library computes, for a bounded number of bytes a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.csgraph

from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import Comparison, compare
from napsets.report import explorer as module
from napsets.report.around import BINS, DRAWN_NODES, EXPLORED_NODES, TOO_LITTLE, VOICES
from napsets.report.explorer import Explorer, explorer
from napsets.scores.informed import evidence_of
from worlds import FOUR


@pytest.fixture(scope="module")
def found(world: dict[str, Any], comparison: Comparison) -> Explorer:
    ball = np.full(world["graph"].num_nodes, -1)
    return explorer(world["graph"], comparison, world["labels"], names=np.arange(1500), ball=ball)


@pytest.fixture(scope="module")
def distance(world: dict[str, Any], found: Explorer) -> np.ndarray:
    adjacency = world["graph"].to_scipy().astype(np.float64)
    return scipy.sparse.csgraph.dijkstra(adjacency, indices=found.nodes, unweighted=True)


def test_thresholds_sets_and_supports_are_the_predictors(found: Explorer, comparison: Comparison) -> None:
    for m, result in enumerate(comparison):
        rows = [int(np.flatnonzero(result.sets.nodes == node)[0]) for node in found.nodes]
        assert np.array_equal(found.thresholds[m], result.sets.thresholds[rows])
        assert np.array_equal(found.support[m], result.sets.support[rows])
        assert np.array_equal(found.effective_size[m], result.sets.effective_size[rows])
        assert np.array_equal(found.member[m], result.sets.member[rows])


def test_a_label_is_in_a_set_exactly_where_its_score_is_at_most_the_threshold(found: Explorer) -> None:
    for m in range(len(FOUR)):
        assert np.array_equal(found.member[m], found.scores[0] <= found.thresholds[m][:, None])


def test_counts_by_hop_are_those_of_shortest_paths(world, found: Explorer, distance: np.ndarray) -> None:
    calibrates = np.isin(np.arange(1500), world["calibration"])
    for k in (1, 2):
        assert np.array_equal(found.hop_nodes[:, k - 1], (distance == k).sum(axis=1))
        assert np.array_equal(found.hop_counts[0][:, k - 1], (distance[:, calibrates] == k).sum(axis=1))


def test_the_weight_below_the_threshold_is_enough_and_not_more(found: Explorer, comparison: Comparison) -> None:
    for m in (1, 2, 3):
        below = found.hop_below[m] @ found.weights[m]
        needed = (1 - comparison.alpha) * (1 + found.hop_counts[0] @ found.weights[m])
        finite = np.isfinite(found.thresholds[m])
        assert finite.any()
        assert (below[finite] >= needed[finite] - 1e-6).all()
        # One node fewer, the heaviest there is, would not be enough.
        assert (below[finite] - found.weights[m].max() < needed[finite]).all()


def test_all_calibration_nodes_below_the_split_threshold_are_counted(found: Explorer, comparison: Comparison) -> None:
    scores = comparison.baseline.calibrated.scored.reference.scores
    assert found.all_counts.tolist() == [scores.size]
    assert np.array_equal(found.all_below[0], (scores[:, None] <= found.thresholds[0][None, :]).sum(axis=0))


def test_histograms_hold_every_calibration_node_once(found: Explorer, comparison: Comparison) -> None:
    assert np.array_equal(found.histogram.sum(axis=3), found.hop_counts)
    assert found.all_histogram.sum() == comparison.given.calibration.size
    assert found.histogram.shape[3] == BINS


def test_neighbours_are_drawn_at_their_hop_and_joined_to_neighbours_one_nearer(world, found, distance) -> None:
    graph = world["graph"]
    names = np.array([int(name) for name in found.neighbour_names])
    joined = 0
    for i, node in enumerate(found.nodes):
        drawn = found.drawn[i][found.drawn[i] >= 0]
        others, hop, parent = names[drawn], found.drawn_hop[i], found.drawn_parent[i]
        assert np.unique(others).size == others.size
        assert np.array_equal(distance[i, others], hop[: others.size])
        for c, other in enumerate(others):
            if parent[c] >= -1:
                nearer = node if parent[c] == -1 else others[parent[c]]
                assert other in graph.neighbours(int(nearer))
                joined += 1
            if hop[c] == 1:
                assert parent[c] == -1
    assert joined > found.nodes.size


def test_small_neighbourhoods_are_drawn_whole(found: Explorer) -> None:
    small = found.hop_nodes.max(axis=1) <= DRAWN_NODES // 2
    assert small.any()
    assert np.array_equal((found.drawn >= 0).sum(axis=1)[small], found.hop_nodes.sum(axis=1)[small])


def test_only_calibration_nodes_show_score_and_label(world, found: Explorer, comparison: Comparison) -> None:
    reference = comparison.baseline.calibrated.scored.reference
    scores = dict(zip(reference.nodes.tolist(), reference.scores, strict=True))
    for name, label, score in zip(found.neighbour_names, found.neighbour_label, found.neighbour_score[0], strict=True):
        if int(name) in scores:
            assert score == scores[int(name)]
            assert label == world["labels"][int(name)]
        else:
            assert np.isnan(score)
            assert label == -1


def test_every_reason_that_exists_is_represented(found: Explorer, comparison: Comparison, world) -> None:
    y = world["labels"]
    aps, naps = comparison["split"].sets, comparison["naps"].sets
    truth = dict(zip(naps.nodes.tolist(), zip(aps.contains(y), naps.contains(y), naps.sizes, strict=True), strict=True))
    for i, node in enumerate(found.nodes.tolist()):
        hit, local_hit, size = truth[node]
        assert found.reason[i].any()
        if found.reason[i, 1]:
            assert local_hit
            assert not hit
        if found.reason[i, 2]:
            assert hit
            assert not local_hit
        if found.reason[i, 4]:
            assert size == 0
    assert found.reason.sum(axis=0).tolist()[:2] != [0, 0]
    short = found.reason[:, TOO_LITTLE]
    assert np.isinf(found.thresholds[1][short]).all()
    assert short.sum() > 0
    assert found.reasons[1:3] == ["NAPS covers, APS split misses", "APS split covers, NAPS misses"]


def test_methods_that_score_alike_share_their_scores_and_others_have_their_own(seven, world) -> None:
    compared = compare(**(world | {"methods": seven}))
    ball = np.full(world["graph"].num_nodes, -1)
    found = explorer(world["graph"], compared, world["labels"], names=np.arange(1500), ball=ball)
    assert found.scored.tolist() == [0, 0, 0, 0, 1, 2, 0]
    for m, result in enumerate(compared):
        s = found.scored[m]
        assert np.array_equal(found.scores[s], result.calibrated.score.matrix(found.nodes))
        assert np.array_equal(found.member[m], found.scores[s] <= found.thresholds[m][:, None])
        assert found.all_histogram[s].sum() == result.calibrated.scored.reference.nodes.size
    assert found.all_counts.tolist() == [750, 750, 375]
    assert (found.weights[[0, 5, 6]] == 0).all()
    assert (found.weights[[1, 4]] == 1).all()
    assert found.levels[5] == compared["thr-split"].sets.level


MIXES = [["split", "informed"], ["informed"], ["auto", "split", "naps-exact", "informed", "auto-small"]]


@pytest.mark.parametrize("methods", MIXES, ids=len)
def test_evidence_is_what_an_inspection_tells_for_any_mix_of_methods(world, methods) -> None:
    compared = compare(**(world | {"methods": methods}))
    ball = np.full(world["graph"].num_nodes, -1)
    found = explorer(world["graph"], compared, world["labels"], names=np.arange(1500), ball=ball)
    assert found.model.shape == (found.nodes.size, 5)
    assert np.array_equal(found.model, world["probabilities"][found.nodes].astype(np.float32))
    assert len(found.sentences) == found.voices.shape[0] == found.informed.max() + 1
    for m, result in enumerate(compared):
        e = int(found.informed[found.scored[m]])
        assert (e >= 0) == (evidence_of(result.calibrated.score) is not None)
        if e < 0:
            continue
        for i in range(0, found.nodes.size, 150):
            seen = inspect_node(result.calibrated, int(found.nodes[i])).evidence
            rows = found.voices[e, i][found.voices[e, i] >= 0]
            assert found.speaking[e, i] == len(seen.voices)
            assert [found.neighbour_names[row] for row in rows] == [str(voice.node) for voice in seen.voices[:VOICES]]
            assert found.neighbour_label[rows].tolist() == [voice.label for voice in seen.voices[:VOICES]]
            assert found.voice_hop[e, i, : rows.size].tolist() == [voice.hop for voice in seen.voices[:VOICES]]
            told = [voice.odds for voice in seen.voices[:VOICES]]
            np.testing.assert_allclose(found.voice_odds[e, i, : rows.size], told, rtol=1e-6)
            assert found.sentences[e] == seen.sentence


def test_without_informed_methods_the_page_carries_no_evidence(found: Explorer) -> None:
    assert found.informed.tolist() == [-1]
    assert found.model.size == found.voices.size == found.speaking.size == len(found.sentences) == 0


def test_more_classes_leave_room_for_fewer_nodes() -> None:
    assert module._affordable(10, 2, 4, 1) == EXPLORED_NODES
    assert 20 <= module._affordable(1000, 2, 4, 1) < 60
    assert 20 <= module._affordable(1000, 2, 4, 2, 1) < module._affordable(1000, 2, 4, 2)


def test_more_methods_and_scores_leave_room_for_fewer_nodes() -> None:
    assert 100 < module._affordable(10, 2, 8, 8) < module._affordable(10, 2, 8, 2) <= EXPLORED_NODES
