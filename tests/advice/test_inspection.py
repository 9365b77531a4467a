"""An inspection explains just the set that the predictor gives."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.advice.threshold import hop_rings
from napsets.errors import InvalidInputError, NotCalibratedError
from napsets.methods import list_methods, make_method


def calibrated(seed: int, **settings) -> ns.NAPS:
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 60, (2, 110))
    graph = ns.Graph.from_edge_index(edges, num_nodes=62)  # the last two stand alone
    p, y = rng.dirichlet(np.ones(4), 62), rng.integers(0, 4, 62)
    return ns.NAPS(**settings).calibrate(graph, p, y, calibration=rng.choice(62, 30, replace=False))


@pytest.mark.parametrize("decay", ["uniform", "hyperbolic", "geometric"])
def test_the_threshold_follows_from_the_neighbours_listed(decay):
    naps = calibrated(1, hops=3, decay=decay)
    for node in range(62):
        seen = inspect_node(naps, node, alpha=0.3)
        assert seen.threshold == ns.weighted_quantile(seen.neighbour_scores, seen.neighbour_weights, alpha=0.3)
        assert seen.total_mass == pytest.approx(seen.neighbour_weights.sum())
        assert (seen.reached_mass >= seen.needed_mass) == (not seen.fell_back)
        assert node not in seen.neighbours
        assert np.isin(seen.neighbours, naps.scored.calibration).all()
        assert sum(row.calibration for row in seen.hops) == seen.neighbours.size
        assert (np.diff(seen.neighbour_scores) >= 0).all()


def test_a_node_that_falls_back_shows_what_the_set_rests_on_and_what_its_neighbourhood_has():
    naps = calibrated(0, hops=2, fallback="global")
    seen = inspect_node(naps, 61, alpha=0.3)  # it stands alone
    assert seen.fell_back
    assert (seen.support, seen.effective_size) == (30, 30.0)
    assert (seen.neighbourhood_support, seen.neighbourhood_effective_size) == (0, 0.0)
    near = next(seen for seen in (inspect_node(naps, node, alpha=0.3) for node in range(60)) if not seen.fell_back)
    assert near.neighbourhood_support == near.support == near.neighbours.size
    assert near.neighbourhood_effective_size == near.effective_size


def test_rings_are_the_nodes_at_each_distance():
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 40, (2, 60))
    graph = ns.Graph.from_edge_index(edges, num_nodes=40)
    other = nx.Graph(edges.T.tolist())
    other.add_nodes_from(range(40))
    for node in range(40):
        distance = nx.single_source_shortest_path_length(other, node)
        expected = [sorted(v for v, d in distance.items() if d == k) for k in range(1, 5)]
        assert [ring.tolist() for ring in hop_rings(graph, node, 4)] == expected


def test_hops_count_nodes_calibration_nodes_and_scores_within():
    star = ns.Graph.from_edge_index([[0, 0, 0, 3], [1, 2, 3, 4]], num_nodes=5)
    naps = ns.NAPS(hops=2, decay="hyperbolic", score=ns.THR())
    naps = naps.calibrate(star, [[0.8, 0.2]] * 5, [0, 0, 1, 0, 1], calibration=[1, 2, 4])
    first, second = inspect_node(naps, 0, alpha=0.5).hops
    assert (first.hop, first.nodes, first.calibration, first.weight, first.mass) == (1, 3, 2, 1.0, 2.0)
    assert (second.hop, second.nodes, second.calibration, second.weight, second.mass) == (2, 1, 1, 0.5, 0.5)
    assert first.median_score == pytest.approx(0.5)
    assert (first.within, second.within) == (2, 1)


def test_the_reason_tells_the_three_cases_apart():
    naps = calibrated(0, hops=2)
    reasons = {node: inspect_node(naps, node, alpha=0.3).reason() for node in range(62)}
    assert reasons[61].startswith("No calibration node is in reach")
    assert any("which they cannot reach: the threshold is ∞" in text for text in reasons.values())
    assert any(text.startswith("The threshold 0.") for text in reasons.values())
    instead = inspect_node(calibrated(0, hops=2, fallback="global"), 61, alpha=0.3).reason()
    assert instead.endswith("of all calibration nodes is used instead.")


def test_a_calibration_node_is_said_to_be_one():
    naps = calibrated(0)
    own = int(naps.scored.calibration[0])
    assert inspect_node(naps, own).calibrates
    assert own not in inspect_node(naps, own).neighbours


def test_bad_arguments_are_named():
    naps = calibrated(0)
    with pytest.raises(InvalidInputError, match="`node` must hold ids from 0 to 61; got 62"):
        inspect_node(naps, 62)
    with pytest.raises(InvalidInputError, match="`node` must be one node; got 2"):
        inspect_node(naps, [1, 2])
    with pytest.raises(InvalidInputError, match="`alpha`"):
        inspect_node(naps, 1, alpha=0)
    with pytest.raises(InvalidInputError, match="`calibrated` must be a Calibrated; got APS"):
        inspect_node(ns.APS(), 1)
    for predictor in (ns.NAPS(), ns.SplitConformal()):
        with pytest.raises(NotCalibratedError):
            inspect_node(predictor, 1)


@pytest.mark.parametrize("name", list_methods())
def test_any_method_of_the_table_can_be_explained(name):
    naps = calibrated(2)
    scored = naps.scored
    rng = np.random.default_rng(2)
    rng.integers(0, 60, (2, 110))
    p, y = rng.dirichlet(np.ones(4), 62), rng.integers(0, 4, 62)
    other = make_method(name).calibrate(naps.graph, p, y, scored.calibration)
    rest = np.setdiff1d(np.arange(62), scored.calibration)
    sets = other.predict(rest, alpha=0.3)
    for row, node in enumerate(rest):
        seen = inspect_node(other, node, alpha=0.3)
        assert seen.member.tolist() == sets.member[row].tolist()
        assert seen.threshold == sets.thresholds[row]
        assert seen.support == sets.support[row]
        assert seen.reason()


def test_a_split_is_explained_by_all_calibration_nodes():
    naps = calibrated(2)
    scored = naps.scored
    split = make_method("split").on(scored)
    node = int(scored.calibration[0])
    seen = inspect_node(split, node, alpha=0.3)
    assert seen.hops == ()
    assert sorted([*seen.neighbours, node]) == scored.calibration.tolist()
    assert seen.threshold == ns.weighted_quantile(seen.neighbour_scores, seen.neighbour_weights, alpha=0.3)
    assert seen.reached_mass >= seen.needed_mass > seen.reached_mass - 1
