"""What to mind is said where it matters, the gravest first, and nothing where nothing does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import compare
from napsets.evaluation.results import Comparison
from worlds import compare_intervals, make_numbers, make_ring


def test_no_warning_is_said_with_what_was_checked(ring_comparison: Comparison) -> None:
    verdict = ring_comparison.verdict()
    assert verdict.warnings == ()
    assert verdict.lines[-1] == (
        "Warnings: none (checked: number of labels, support, coverage by neighbourhood and class and degree on 1,800 "
        "labels, whether labelled nodes differ from the others in degree, predicted class, confidence, agreement with "
        "neighbours)."
    )


def test_few_labels_and_too_few_are_warned_of() -> None:
    world = make_ring(3)
    few = compare(**(world | {"calibration": world["calibration"][:40]}), methods=("split",)).verdict()
    assert few.first_warning.startswith("only 40 labels set the level: with others, coverage could be anywhere from ")
    none = compare(**(world | {"calibration": world["calibration"][:5]}), methods=("split",)).verdict()
    assert (
        none.first_warning
        == "5 labels are too few for alpha = 0.1, which needs at least 9: every set holds every label"
    )


def test_classes_without_a_threshold_of_their_own_are_named_as_predict_names_them() -> None:
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.integers(2, size=395), np.full(5, 2)])
    p, names, every = rng.dirichlet(np.ones(3), size=400), ["cat", "dog", "eel"], np.arange(400)
    graph = ns.Graph.from_edge_index(rng.integers(400, size=(2, 900)), 400)
    calibrated = ns.SplitConformal(by="class").calibrate(graph, p, labels, every[200:], class_names=names)
    with pytest.warns(ns.NapsetsWarning, match=r"1 of 3 classes have fewer than 9 labels \('eel'\)"):
        calibrated.predict()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert any("1 of 3 classes have fewer than 9 labels ('eel')" in text for text in calibrated.warnings())


def test_too_little_support_is_counted() -> None:
    world = make_ring(5, edges=400)
    verdict = compare(**world, methods=("naps",)).verdict()
    short = verdict.warnings[0]
    assert "get every label, because there are too few labelled nodes near them" in short


def test_labels_of_one_kind_of_nodes_are_warned_of_with_how_far_they_are_apart() -> None:
    world = make_ring(6, nodes=2000, labelled=600)
    predicted = world["probabilities"].argmax(axis=1)
    order = np.argsort(predicted == 0, kind="stable")
    biased = world | {"calibration": order[:600], "nodes": order[600:]}
    verdict = compare(**biased, methods=("split",)).verdict(class_names=["cat", "dog", "owl", "bat"])
    drift = [one for one in verdict.warnings if "predicted class" in one]
    assert len(drift) == 1
    assert drift[0].startswith(
        "the calibration nodes differ from the evaluation nodes in predicted class: nodes predicted to be cat"
    )
    assert "make up 0 % of the calibration and" in drift[0]


def test_labelled_nodes_are_also_compared_with_those_that_have_no_label() -> None:
    world = make_ring(7, nodes=2000, labelled=600)
    order = np.argsort(world["graph"].degrees, kind="stable")[::-1]
    labels = np.full(2000, -1)
    labels[order[:800]] = world["labels"][order[:800]]
    shuffled = np.random.default_rng(0).permutation(order[:800])
    verdict = compare(
        **(world | {"labels": labels, "calibration": shuffled[:400], "nodes": shuffled[400:]}), methods=("split",)
    ).verdict()
    assert "the labelled nodes differ from the unlabelled nodes in degree" in [
        one.split(":")[0] for one in verdict.warnings
    ]
    assert verdict.withdrawn


def test_few_labels_the_whole_line_and_drift_are_warned_of() -> None:
    world = make_numbers()
    few = compare_intervals(**(world | {"calibration": world["calibration"][:5]}), methods=("split",)).verdict()
    assert few.first_warning == (
        "5 labels are too few for alpha = 0.1, which needs at least 9: every interval is the whole line"
    )
    assert few.lines[0].startswith("Keep split CQR: no interval is finite")
    short = compare_intervals(**(make_numbers(3, degree=2)), methods=("naps",)).verdict()
    assert any(
        "get the whole line, because there are too few labelled nodes near them" in one for one in short.warnings
    )
    middle = world["outputs"].mean(axis=1)
    order = np.argsort(middle, kind="stable")
    drifted = compare_intervals(
        **(world | {"calibration": order[:450], "nodes": order[450:]}), methods=("split",)
    ).verdict()
    warnings = [one for one in drifted.warnings if "in prediction" in one]
    assert warnings
    assert (
        "the calibration nodes differ from the evaluation nodes in prediction: nodes predicted to have " in warnings[0]
    )
