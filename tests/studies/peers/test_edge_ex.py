"""EdgeEx against its definition written out."""

from __future__ import annotations

import pytest

from napsets.methods import make_method
from oracles import adjacency_sets, weighed_threshold


@pytest.mark.parametrize("directed", [False, True])
def test_the_weight_of_a_node_is_one_over_its_degree(answers, directed):
    calibrated = answers.calibrate(make_method("edge-ex"), directed)
    sets = calibrated.predict(answers.nodes, alpha=0.2)
    edges = list(zip(*answers.arrays["edges"].tolist(), strict=True))
    degrees = [max(len(row), 1) for row in adjacency_sets([(a, b) for a, b in edges if a != b], 400, directed)]
    scores = calibrated.score.at(answers.calibration, answers.labels[answers.calibration])
    for node, threshold in zip(answers.nodes.tolist(), sets.thresholds.tolist(), strict=True):
        weights = [1 / degrees[i] if i != node else 0.0 for i in answers.calibration.tolist()]
        levels = (0.8 * (1 + shift) for shift in (-1e-9, 0.0, 1e-9))
        assert threshold in {weighed_threshold(scores, weights, 1 / degrees[node], level) for level in levels}
