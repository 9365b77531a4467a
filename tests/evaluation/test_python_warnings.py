"""What the command warns of, Python warns of too: few labels, coverage as alpha, training nodes, directions."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import napsets as ns
from worlds import make_ring

WORLD = make_ring(3, nodes=900, labelled=400)
ARRAYS = WORLD["graph"], WORLD["probabilities"], WORLD["labels"], WORLD["calibration"]


def test_enough_labels_at_a_usual_alpha_raise_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ns.SplitConformal().calibrate(*ARRAYS).predict(WORLD["nodes"])


def test_coverage_in_place_of_alpha_is_warned_of() -> None:
    calibrated = ns.SplitConformal(alpha=0.9).calibrate(*ARRAYS)
    with pytest.warns(ns.NapsetsWarning, match="alpha = 0.9 is the error rate.*For 90 % coverage, alpha must be 0.1"):
        sets = calibrated.predict(WORLD["nodes"])
    assert ns.coverage(sets, WORLD["labels"]) < 0.3
    assert "`alpha=0.1`" in str(calibrated.verdict(WORLD["nodes"]))


def test_labels_whose_draw_moves_coverage_are_warned_of_as_in_the_verdict() -> None:
    calibrated = ns.SplitConformal().calibrate(*ARRAYS[:3], WORLD["calibration"][:100])
    with pytest.warns(ns.NapsetsWarning, match="100 labels are few: with others, coverage could be anywhere from 84"):
        calibrated.predict(WORLD["nodes"])
    assert any("only 100 labels set the level" in text for text in calibrated.verdict(WORLD["nodes"]).warnings)


def test_training_nodes_among_those_predicted_are_counted() -> None:
    graph = WORLD["graph"]
    ends = np.stack([np.repeat(np.arange(graph.num_nodes), graph.degrees), graph.indices])
    mask = np.zeros(graph.num_nodes, dtype=bool)
    mask[WORLD["nodes"][:70]] = True
    data = SimpleNamespace(edge_index=ends, num_nodes=graph.num_nodes, train_mask=mask)
    calibrated = ns.NAPS().calibrate(data, *ARRAYS[1:])
    with pytest.warns(ns.NapsetsWarning, match="70 of the 500 nodes to predict are in `train_mask`"):
        calibrated.predict()
    assert any("70 of the 500 nodes to predict are in `train_mask`" in text for text in calibrated.warnings())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrated.predict(WORLD["nodes"][70:])


def test_calibration_nodes_that_trained_the_model_withdraw_the_promise_of_every_verdict() -> None:
    graph = WORLD["graph"]
    ends = np.stack([np.repeat(np.arange(graph.num_nodes), graph.degrees), graph.indices])
    mask = np.zeros(graph.num_nodes, dtype=bool)
    mask[WORLD["calibration"][:20]] = True
    data = SimpleNamespace(edge_index=ends, num_nodes=graph.num_nodes, train_mask=mask)
    message = "`calibration` holds 20 of the nodes of `train_mask`"
    with pytest.warns(ns.NapsetsWarning, match=message):
        calibrated = ns.NAPS(exact=True).calibrate(data, *ARRAYS[1:])
    with pytest.warns(ns.NapsetsWarning, match=message):
        compared = ns.compare(data, *ARRAYS[1:], WORLD["nodes"], methods=["split"])
    for verdict in (calibrated.verdict(), compared.verdict()):
        assert verdict.withdrawn.startswith("the model was trained on 20 calibration labels")
        assert verdict.lines[0].startswith("No promise of coverage can be made: the model was trained on 20 ")


def test_a_direction_without_effect_is_warned_of() -> None:
    with pytest.warns(ns.NapsetsWarning, match="`direction` has no effect: the graph is undirected"):
        ns.NAPS(direction="in").calibrate(*ARRAYS)
