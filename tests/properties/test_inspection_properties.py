"""An inspection explains the set that `predict` makes, whatever the settings."""

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
    naps = ns.NAPS(problem.hops, weights, score, 5, allow_empty, fallback)
    naps.calibrate(problem.graph, problem.probabilities, problem.labels, problem.calibration)
    nodes = np.arange(problem.graph.num_nodes)
    sets = naps.predict(nodes, problem.alpha)
    own = ns.NAPS(problem.hops, weights, score, 5, allow_empty)
    own.calibrate(problem.graph, problem.probabilities, problem.labels, problem.calibration)
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
