"""An inspection explains just the interval that the predictor gives, and what shifted it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import IntervalInspection, inspect_node
from napsets.levels import Exact, Nominal
from napsets.localisers import LOCALISERS, CovariateShift, Everyone, Hops, PathLengths
from napsets.methods import Method, list_methods, make_method
from napsets.scores import InformedIntervals
from oracles import same_bits

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

SIZE = 160
RNG = np.random.default_rng(5)
ENDS = RNG.integers(SIZE - 2, size=(2, 420))  # the last two stand alone
GRAPH = ns.Graph.from_edge_index(ENDS, SIZE, lengths=RNG.uniform(0.5, 2.0, 420))
X = RNG.normal(size=SIZE)
HIDDEN = GRAPH.neighbour_means(RNG.normal(size=(SIZE, 1)))[:, 0]
Y = 2 * X + 3 * HIDDEN + 0.5 * RNG.normal(size=SIZE)
OUTPUTS = {
    "cqr": np.column_stack([2 * X - 1, 2 * X + 1]),
    "absolute": 2 * X,
    "normalised": np.column_stack([2 * X, 0.5 + np.abs(X)]),
}
CALIBRATION = np.sort(RNG.choice(SIZE, 130, replace=False))
REST = np.setdiff1d(np.arange(SIZE), CALIBRATION)
SOME = np.concatenate([REST[:6], CALIBRATION[:4], [SIZE - 2, SIZE - 1]])

LOCAL = {
    "everyone": Everyone(),
    "hops": Hops(2, "geometric"),
    "pooled": Hops(1, pool=5.0),
    "path-lengths": PathLengths(2.0, "gaussian", pool=2.0),
    "covariate-shift": CovariateShift(1.0 / np.maximum(GRAPH.degrees, 1)),
}
LEVEL = {"nominal": Nominal(), "global": Nominal("global"), "exact": Exact()}
GROUPS = {"none": None, "degree": "degree", "own": np.arange(SIZE) % 3}


def assert_same(seen, intervals, row):
    """What is explained is what was predicted, to the last bit."""
    assert isinstance(seen, IntervalInspection)
    for one, other in (
        (seen.lower, intervals.lower[row]),
        (seen.upper, intervals.upper[row]),
        (seen.centre, intervals.centre[row]),
        (seen.threshold, intervals.thresholds[row]),
        (seen.effective_size, intervals.effective_size[row]),
    ):
        assert same_bits(one, other)
    assert seen.support == intervals.support[row]
    assert seen.width == intervals.widths[row]


def explained(calibrated, nodes, alpha):
    """The inspections of some nodes, each compared with what is predicted."""
    intervals = calibrated.predict(nodes, alpha)
    results = []
    for row, node in enumerate(nodes):
        results.append(inspect_node(calibrated, node, alpha))
        assert_same(results[-1], intervals, row)
    return results


def test_every_localiser_is_among_those_explained():
    weighted = {ns.Weights, ns.LabelShift}  # weights of the user's own, which belong to one graph
    assert {type(local) for local in LOCAL.values()} == set(LOCALISERS.values()) - weighted


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("level", LEVEL)
@pytest.mark.parametrize("local", LOCAL)
def test_what_is_explained_is_what_is_predicted(local, level, groups):
    method = Method(ns.CQR(), LOCAL[local], LEVEL[level], groups=GROUPS[groups])
    calibrated = method.calibrate(GRAPH, OUTPUTS["cqr"], Y, CALIBRATION)
    for seen in explained(calibrated, SOME, 0.2):
        assert seen.columns == ("lower", "upper")
        assert seen.model.tolist() == seen.outputs.tolist() == OUTPUTS["cqr"][seen.node].tolist()
        assert seen.calibrates == bool(np.isin(seen.node, CALIBRATION))
        assert same_bits(seen.neighbour_targets, Y[seen.neighbours])
        assert seen.node not in seen.neighbours
        scores = np.maximum(
            OUTPUTS["cqr"][seen.neighbours, 0] - Y[seen.neighbours],
            Y[seen.neighbours] - OUTPUTS["cqr"][seen.neighbours, 1],
        )
        assert np.array_equal(seen.neighbour_scores, scores)
        assert seen.reason()


@pytest.mark.parametrize("score", OUTPUTS)
@pytest.mark.parametrize("predictor", ["naps", "informed", "auto", "split"])
def test_any_predictor_and_score_can_be_explained_and_the_same_from_a_file(tmp_path, score, predictor):
    predictors = {
        "naps": ns.NAPS(score=score, pool=3.0, exact=True),
        "informed": ns.NAPS(score=InformedIntervals(score), pool=5.0, exact=True),
        "auto": ns.Auto(score=score),
        "split": ns.SplitConformal(score),
    }[predictor]
    inputs = {"calibration": CALIBRATION}
    outputs = (OUTPUTS[score], Y) if predictor == "split" else (GRAPH, OUTPUTS[score], Y)
    predictors = predictors.calibrate(*outputs, **inputs)
    predictors.save(tmp_path / "one.npz")
    again = ns.load(tmp_path / "one.npz")
    for seen, loaded in zip(explained(predictors, SOME, 0.2), explained(again, SOME, 0.2), strict=True):
        assert (seen.lower, seen.upper) == (loaded.lower, loaded.upper)
        assert seen.reason() == loaded.reason()
        assert (seen.evidence is None) == (loaded.evidence is None) == (seen.model.tolist() == seen.outputs.tolist())
        assert loaded.neighbour_targets.tolist() == seen.neighbour_targets.tolist()
        if seen.evidence is not None:
            assert loaded.evidence.labelled.tolist() == seen.evidence.labelled.tolist()
            np.testing.assert_array_equal(loaded.evidence.effects, seen.evidence.effects)


#: Methods whose score or groups look at labels.
OF_LABELS = {"thr", "daps", "snaps", "by-class", "clustered"}


@pytest.mark.parametrize("name", sorted(set(list_methods()) - OF_LABELS))
def test_any_method_of_the_table_that_takes_numbers_can_be_explained(name):
    calibrated = make_method(name, score="cqr").calibrate(GRAPH, OUTPUTS["cqr"], Y, CALIBRATION)
    explained(calibrated, SOME[:5], 0.2)


def test_the_reason_tells_the_cases_apart_in_the_words_of_intervals():
    naps = ns.NAPS(score="cqr").calibrate(GRAPH, OUTPUTS["cqr"], Y, CALIBRATION)
    alone = inspect_node(naps, SIZE - 1)
    assert (alone.lower, alone.upper) == (-np.inf, np.inf)
    assert alone.fell_back
    assert alone.reason() == (
        "No calibration node is in reach, so there is nothing to calibrate on: the threshold is ∞ and the interval is "
        "the whole line."
    )
    reasons = [inspect_node(naps, node, 0.2).reason() for node in range(SIZE)]
    assert any(text.startswith("The threshold ") and "smallest score" in text for text in reasons)
    assert any("which they cannot reach: the threshold is ∞ and the interval is the whole line" in t for t in reasons)
    instead = ns.NAPS(score="cqr", fallback="global").calibrate(GRAPH, OUTPUTS["cqr"], Y, CALIBRATION)
    assert inspect_node(instead, SIZE - 1).reason().endswith("of all calibration nodes is used instead.")


def test_too_few_labels_kept_apart_are_named_as_the_reason():
    exact = ns.SplitConformal(InformedIntervals("cqr"))
    exact = exact.calibrate(OUTPUTS["cqr"], Y, CALIBRATION[:12], graph=GRAPH)
    assert inspect_node(exact, 0, alpha=0.05).reason() == (
        "Too few labels were held out to set a level at alpha = 0.05: the threshold is ∞ and the interval is the "
        "whole line."
    )


def test_an_interval_of_one_point_is_said_to_be_one():
    reach = np.where(np.arange(SIZE) % 2, 10.0, 1.0)
    split = ns.SplitConformal("cqr").calibrate(
        np.column_stack([X - reach, X + reach]), X, np.arange(1, SIZE, 2)
    )  # whose scores are all −10
    seen = inspect_node(split, 0)
    assert seen.lower == seen.upper == seen.centre
    assert seen.reason().endswith("No target's score is that low: the interval is the best guess alone.")


def test_the_rule_is_what_the_ends_are_made_by():
    for score, rule in (("cqr", "[lower − τ, upper + τ]"), ("absolute", "prediction ± τ")):
        seen = inspect_node(ns.SplitConformal(score).calibrate(OUTPUTS[score], Y, CALIBRATION), 0)
        assert seen.rule == rule
        reach = seen.threshold
        assert seen.lower == pytest.approx(seen.outputs[0] - reach)
        assert seen.upper == pytest.approx(seen.outputs[-1] + reach)
    scaled = inspect_node(ns.SplitConformal("normalised").calibrate(OUTPUTS["normalised"], Y, CALIBRATION), 0)
    assert scaled.rule == "prediction ± τ · spread"
    assert scaled.upper == pytest.approx(scaled.outputs[0] + scaled.threshold * scaled.outputs[1])


def test_inspecting_warns_of_nothing():
    naps = ns.NAPS(score="cqr").calibrate(GRAPH, OUTPUTS["cqr"], Y, CALIBRATION)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inspect_node(naps, CALIBRATION[0])
