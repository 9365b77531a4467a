"""An inspection explains the set, or the interval, that `predict` makes, whatever the settings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.advice.inspection import inspect_node
from oracles import same_bits
from strategies import problems

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

SCORES = [ns.APS(), ns.APS(randomized=False), ns.THR(), ns.RAPS(0.05, 1), ns.SAPS(), ns.SAPS(3.0)]
DECAYS = ["uniform", "hyperbolic", "geometric", [1.0, 0.0, 0.5], [0.0, 0.0, 0.0], [1e-200, 1e-190, 1e-180]]


@given(
    problem=problems(max_nodes=12),
    score=st.sampled_from(SCORES),
    decay=st.sampled_from(DECAYS),
    fallback=st.sampled_from(["full", "global"]),
    allow_empty=st.booleans(),
)
def test_threshold_support_effective_size_and_set_are_those_of_predict(problem, score, decay, fallback, allow_empty):
    weights = decay if isinstance(decay, str) else decay[: problem.hops]
    naps = ns.NAPS(problem.hops, weights, score, seed=5, allow_empty=allow_empty, fallback=fallback)
    naps = naps.calibrate(problem.graph, problem.probabilities, problem.labels, problem.calibration)
    nodes = np.arange(problem.graph.num_nodes)
    sets = naps.predict(nodes, problem.alpha)
    own = ns.NAPS(problem.hops, weights, score, seed=5, allow_empty=allow_empty)
    own = own.calibrate(problem.graph, problem.probabilities, problem.labels, problem.calibration)
    around = own.predict(nodes, problem.alpha)
    for node in nodes:
        seen = inspect_node(naps, node, problem.alpha)
        assert same_bits(seen.threshold, sets.thresholds[node])
        assert seen.support == sets.support[node]
        assert same_bits(seen.effective_size, sets.effective_size[node])
        assert seen.member.tolist() == sets.member[node].tolist()
        assert seen.neighbourhood_support == around.support[node]
        assert same_bits(seen.neighbourhood_effective_size, around.effective_size[node])
        assert seen.fell_back == np.isinf(around.thresholds[node])


#: Few distinct values, so that ties and intervals of one point are common.
numbers = st.sampled_from([-3.0, -0.5, 0.0, 0.25, 0.5, 1.0, 7.0])


@given(
    problem=problems(max_nodes=12),
    rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=12, max_size=12),
    decay=st.sampled_from(DECAYS),
    fallback=st.sampled_from(["full", "global"]),
)
def test_interval_and_threshold_are_those_of_predict_and_follow_from_the_neighbours(problem, rows, decay, fallback):
    weights = decay if isinstance(decay, str) else decay[: problem.hops]
    drawn = np.array(rows)[: problem.graph.num_nodes]
    naps = ns.NAPS(problem.hops, weights, "cqr", fallback=fallback)
    naps = naps.calibrate(problem.graph, drawn[:, :2], drawn[:, 2], problem.calibration)
    nodes = np.arange(problem.graph.num_nodes)
    intervals = naps.predict(nodes, problem.alpha)
    for node in nodes:
        seen = inspect_node(naps, node, problem.alpha)
        assert (seen.lower, seen.upper) == intervals[int(node)]
        assert same_bits(seen.threshold, intervals.thresholds[node])
        assert seen.support == intervals.support[node]
        assert same_bits(seen.effective_size, intervals.effective_size[node])
        assert seen.neighbour_targets.tolist() == drawn[seen.neighbours, 2].tolist()
        if not seen.fell_back:
            around = ns.weighted_quantile(seen.neighbour_scores, seen.neighbour_weights, alpha=problem.alpha)
            assert seen.threshold == around
        alone = seen.reason().endswith("the interval is the best guess alone.")
        assert alone == (seen.threshold < seen.smallest_score)
        assert not alone or seen.lower == seen.upper == seen.centre
