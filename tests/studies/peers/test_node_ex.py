"""NodeEx is `split` under another name: a quantile of the labelled nodes' scores."""

from __future__ import annotations

import math

import numpy as np

from napsets.methods import make_method


def test_node_ex_is_another_name_of_split():
    for settings in ({}, {"score": "informed"}, {"seed": 3, "allow_empty": False, "by": "degree", "level": "exact"}):
        assert make_method("node-ex", **settings) == make_method("split", **settings)


def test_the_threshold_is_the_order_statistic_of_the_scores(answers):
    calibrated = answers.calibrate(make_method("node-ex", score="thr"))
    fresh = np.setdiff1d(answers.nodes, answers.calibration)
    probabilities = answers.probabilities[answers.calibration, answers.labels[answers.calibration]]
    place = math.ceil(0.8 * (answers.calibration.size + 1) - 1e-9)
    sets = calibrated.predict(fresh, alpha=0.2)
    assert (sets.thresholds == np.sort(1.0 - probabilities)[place - 1]).all()
