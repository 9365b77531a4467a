"""PredictionIntervals: what they hold, as tables and for people; and intervals from every method."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import kstest

import napsets as ns
from napsets.errors import InvalidInputError, NapsetsWarning
from oracles import place_in_law, same_bits
from searches import hop_thresholds

RNG = np.random.default_rng(0)
SIZE = 300
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 1200)), SIZE)
X = RNG.normal(size=SIZE)
Y = 2 * X + RNG.normal(size=SIZE)
Q = np.column_stack([2 * X - 1, 2 * X + 1])
CALIBRATION, REST = np.arange(200), np.arange(200, 300)
LEVEL = 1e-3


def make(**changes):
    values = {
        "nodes": np.array([4, 1, 7]),
        "lower": np.array([0.0, -1.0, -np.inf]),
        "upper": np.array([2.0, -1.0, np.inf]),
        "thresholds": np.array([0.5, -0.2, np.inf]),
        "support": np.array([12, 30, 1]),
        "effective_size": np.array([10.5, 30.0, 1.0]),
        "alpha": 0.1,
        "num_nodes": 8,
    }
    return ns.PredictionIntervals(**(values | changes))


def test_widths_ends_and_what_is_inside():
    intervals = make(ids=["a", "b", "c"])
    assert intervals.widths.tolist() == [2.0, 0.0, math.inf]
    assert intervals[0] == intervals["a"] == (0.0, 2.0)
    assert list(intervals)[1] == (-1.0, -1.0)
    assert intervals[1:].nodes.tolist() == [1, 7]
    assert intervals.infinite == 1
    targets = np.array([0, -1.0, np.nan, 0, 2.0, 0, 0, 9.0])
    assert intervals.contains(targets).tolist() == [True, True, True]
    assert intervals.contains([2.5, -1.0, 0.0], per="set").tolist() == [False, True, True]


def test_the_table_has_a_row_an_interval():
    table = make(ids=["a", "b", "c"], centre=[1.0, -1.0, 0.0]).to_arrow()
    assert table.column_names == [
        "node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha", "prediction",
    ]  # fmt: skip
    assert table["node"].to_pylist() == ["a", "b", "c"]
    assert make().to_pandas()["upper"].tolist() == [2.0, -1.0, math.inf]
    assert make().to_polars()["width"].to_list() == [2.0, 0.0, math.inf]


def test_people_read_how_wide_they_are():
    assert repr(make()) == "PredictionIntervals(3 nodes, alpha=0.1: mean width 1, 1 with too little support)"
    assert "<td>-∞</td><td>∞</td>" in make()._repr_html_()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower": np.array([3.0, -1.0, 0.0])}, "`lower` must be at most `upper`; row 0 goes from 3 to 2"),
        ({"upper": np.array([2.0, np.nan, 1.0])}, "`upper` must hold numbers, none of them NaN"),
        ({"support": np.array([1])}, "`support` must have one entry per node, 3"),
        ({"ids": ["a"]}, "`ids` must have one name per interval, 3"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        make(**changes)


def test_unknown_targets_and_intervals_that_are_not_there_are_named():
    with pytest.raises(InvalidInputError, match="node 4 has NaN"):
        make().contains(np.full(8, np.nan))
    with pytest.raises(InvalidInputError, match="one entry per node of the graph, 8"):
        make().contains([1.0])
    with pytest.raises(KeyError, match="no interval is of that node"):
        make(ids=["a", "b", "c"])["x"]
    with pytest.raises(KeyError, match="the intervals have no ids"):
        make()["x"]
    with pytest.raises(IndexError, match="there are 3 intervals"):
        make()[3]


def test_split_cqr_is_the_order_statistic():
    prediction = ns.SplitConformal("cqr").calibrate(Q, Y, CALIBRATION).predict(REST, 0.1)
    scores = np.sort(np.maximum(Q[:200, 0] - Y[:200], Y[:200] - Q[:200, 1]))
    tau = scores[math.ceil(201 * 0.9) - 1]
    assert np.allclose(prediction.lower, Q[200:, 0] - tau, rtol=0, atol=1e-13)
    assert np.allclose(prediction.upper, Q[200:, 1] + tau, rtol=0, atol=1e-13)


def test_local_intervals_have_the_thresholds_of_neighbourhoods():
    calibrated = ns.NAPS(hops=2, decay="hyperbolic", score="absolute").calibrate(GRAPH, 2 * X, Y, CALIBRATION)
    tau = hop_thresholds(GRAPH, np.abs(Y - 2 * X)[:200], CALIBRATION, REST, [1, 0.5], 0.2)
    assert same_bits(calibrated.predict(REST, 0.2).thresholds, tau)


@pytest.mark.parametrize("exact", [False, True])
def test_coverage_of_intervals_follows_the_beta_binomial_law(exact):
    rng = np.random.default_rng(3)
    labelled, tested, alpha = 58, 30, 0.1
    results = []
    for draw in range(400):
        x = rng.normal(size=labelled + tested)
        y = x + rng.standard_t(3, size=x.size) * (1 + np.abs(x))
        q = np.column_stack([x - 1, x + 1])
        graph = ns.Graph.from_edge_index(rng.integers(x.size, size=(2, 200)), x.size)
        if exact:
            method = ns.NAPS(pool=5.0, score="cqr", exact=True, seed=draw).calibrate(graph, q, y, np.arange(labelled))
        else:
            method = ns.SplitConformal("cqr", seed=draw).calibrate(q, y, np.arange(labelled))
        judging = labelled // 2 if exact else labelled
        count = int(method.predict(np.arange(labelled, labelled + tested), alpha).contains(y).sum())
        results.append(place_in_law(count, tested, judging, alpha, rng.random()))
    assert kstest(results, "uniform").pvalue > LEVEL


@pytest.mark.parametrize(
    "predictor",
    [
        ns.NAPS(score="cqr"), ns.NAPS(score="cqr", pool=5.0, exact=True), ns.NAPS(score="cqr", by="degree", pool=3.0),
        ns.NAPS(score=ns.InformedIntervals("cqr"), pool=5.0, exact=True), ns.SplitConformal("cqr"),
        ns.Auto(score="cqr"), ns.SplitConformal("cqr", by=np.arange(SIZE) % 3),
    ],
    ids=["naps", "exact", "degrees", "informed", "split", "auto", "groups"],
)  # fmt: skip
def test_every_predictor_gives_intervals_and_the_same_from_a_file(tmp_path, predictor):
    names = np.array([f"n{i}" for i in range(SIZE)])
    predictor = predictor.calibrate(GRAPH, Q, Y, calibration=CALIBRATION, ids=names)
    predictor.save(tmp_path / "one.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)
        one, other = (each.predict(REST) for each in (predictor, ns.load(tmp_path / "one.npz")))
        both = predictor.predict(REST, [0.05, 0.4])
    assert same_bits(one.lower, other.lower)
    assert same_bits(one.upper, other.upper)
    assert one.ids.tolist() == names[REST].tolist()
    assert (both[0].widths >= both[1].widths).all()


def test_auto_says_how_wide_it_expects_intervals_to_be():
    auto = ns.Auto(score="cqr").calibrate(GRAPH, Q, Y, CALIBRATION)
    assert "interval width" in auto.choice.reason
    assert not any("those alike" in one.name for one in auto.choice.candidates)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ns.NAPS(score="cqr", by="class"), "`by` must group nodes with a score of numbers"),
        (lambda: ns.Auto(score="aps"), "`score` must be a score of numbers, or None"),
        (lambda: ns.SplitConformal("cqr").calibrate(Q, Y, []), "`calibration` must hold at least one node"),
        (
            lambda: ns.SplitConformal("cqr").calibrate(Q, np.where(X > 0, Y, np.nan), [0, 1, 2, 3, 4, 5]),
            "target is known",
        ),
        (lambda: ns.SplitConformal("cqr").calibrate(Q, Y[:5], [0]), "`targets` must be numbers, one per node, 300"),
        (lambda: ns.SplitConformal("cqr").calibrate(Q, Y, [0], class_names=["a"]), "`class_names` must be None"),
        (lambda: ns.NAPS(score="cqr", alike=3.0).calibrate(GRAPH, Q, Y, [0, 1]), "`alike` needs predicted labels"),
        (lambda: ns.NAPS(score="cqr").calibrate(GRAPH, Q[:9], Y[:9], [0]), "one row per node of the graph, 300; got 9"),
    ],
)
def test_what_intervals_cannot_be_made_of_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_coverage_width_and_gaps_of_intervals_are_measured_like_those_of_sets():
    prediction = ns.SplitConformal("cqr").calibrate(Q, Y, CALIBRATION).predict(REST, 0.1)
    inside = prediction.contains(Y)
    assert ns.coverage(prediction, Y) == inside.mean()
    assert ns.mean_width(prediction) == prediction.widths.mean()
    groups = np.arange(SIZE) % 2
    gap = ns.coverage_gap(prediction, Y, groups)
    assert gap.coverage.tolist() == [inside[groups[REST] == g].mean() for g in (0, 1)]
    with pytest.raises(InvalidInputError, match="`intervals` must be"):
        ns.mean_width(ns.SplitConformal().calibrate([[0.5, 0.5]] * 4, [0, 1, 0, 1], [0, 1]).predict([2]))


@pytest.mark.parametrize("score", ["absolute", "cqr", "normalised"])
def test_a_target_whose_score_is_the_threshold_is_inside_whatever_the_rounding(score):
    for value in np.arange(0.1, 3.0, 0.1):
        outputs = {"absolute": [0.2], "cqr": [0.2, 0.3], "normalised": [0.2, 0.7]}[score]
        rows, targets = np.tile(outputs, (200, 1)), np.full(200, value)
        prediction = ns.SplitConformal(score).calibrate(rows, targets, np.arange(100)).predict(np.arange(100, 200))
        assert prediction.contains(targets).all()


def test_intervals_do_not_depend_on_the_unit_of_targets():
    plain, large = (
        ns.NAPS(score=ns.InformedIntervals("cqr"), pool=5.0, exact=True)
        .calibrate(GRAPH, Q * unit, Y * unit, CALIBRATION)
        .predict(REST)
        for unit in (1.0, 1e10)
    )
    assert np.allclose(large.widths, 1e10 * plain.widths, rtol=1e-6)


def test_intervals_of_nodes_that_cannot_be_are_refused():
    with pytest.raises(InvalidInputError, match="`nodes` must hold ids from 0 to 3; got 9"):
        ns.PredictionIntervals([9], [0.0], [1.0], [1.0], [3], [3.0], 0.1, num_nodes=4)
