"""Comparing methods must give the very predictions that the predictors give, and honest numbers about them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.kinds import interval_methods, size_strata
from napsets.evaluation.results import Comparison
from napsets.methods import METHODS, make_method
from worlds import FOUR, compare_intervals, draw_world


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    """The last node has no edge: its neighbourhood has no mass at all."""
    return draw_world(3, 600, 5, 12000, other=0.2, strength=2.0, alone=1) | {"methods": FOUR}


@pytest.fixture(scope="module")
def comparison(world: dict[str, Any]) -> Comparison:
    return compare(**world, alpha=0.1, hops=2, seed=4, alphas=CURVE_ALPHAS)


class Case:
    """A comparison of one kind of predictions, and how to make it again with other arguments."""

    def __init__(self, world: dict[str, Any], comparison: Comparison, score: str, parts: tuple[str, ...]) -> None:
        self.world, self.comparison, self.score, self.parts = world, comparison, score, parts
        _, self.outputs, self.truth, *_ = world

    def again(self, **changes: Any) -> Comparison:
        function = compare if self.score == "aps" else compare_intervals
        return function(**(self.world | {"seed": 4} | changes))


@pytest.fixture(params=["sets", "intervals"])
def case(request, world, comparison, numbers, number_comparison) -> Case:
    if request.param == "sets":
        return Case(world, comparison, "aps", ("nodes", "member", "thresholds", "support", "effective_size"))
    ends = ("nodes", "lower", "upper", "thresholds", "support", "effective_size", "centre")
    return Case(numbers, number_comparison, "cqr", ends)


# -- sets and intervals alike ------------------------------------------------------------------------------------------


def test_each_method_gives_what_it_predicts_alone(case: Case) -> None:
    for result in case.comparison:
        data = [case.world[key] for key in ("graph", case.outputs, case.truth, "calibration")]
        alone = make_method(result.name, score=case.score, seed=4).calibrate(*data).predict(case.world["nodes"], 0.1)
        for part in case.parts:
            assert np.array_equal(getattr(result.prediction, part), getattr(alone, part)), part


def test_a_judged_truth_never_calibrates(case: Case) -> None:
    """Whatever the judged labels or targets are, the predictions stay as they are."""
    changed, nodes = case.world[case.truth].copy(), case.world["nodes"]
    changed[nodes] = (changed[nodes] + 1) % 5 if case.score == "aps" else changed[nodes] + 1000.0
    for one, other in zip(case.comparison, case.again(**{case.truth: changed}), strict=True):
        assert one.same_as(other)
        assert other.coverage < one.coverage - 0.2


def test_the_curve_is_what_each_alpha_alone_would_give(case: Case) -> None:
    names = [result.name for result in case.comparison if result.name != "auto"]  # which chooses for its alpha
    for a, rate in ((4, 0.1), (12, 0.5)):
        assert case.comparison.alphas[a] == rate
        for one in case.again(alpha=rate, methods=names):
            many = case.comparison[one.name]
            assert many.curve_coverage[a] == pytest.approx(one.coverage, abs=1e-12)
            assert many.curve_size[a] == pytest.approx(one.size, abs=1e-12)
            for name, measure in {"median": "median_width", "infinite": "infinite_rate"}.items():
                assert (name in many.curves) == (case.score == "cqr")
                if name in many.curves:
                    assert getattr(many, f"curve_{name}")[a] == pytest.approx(getattr(one, measure))


def test_chunks_do_not_change_a_bit(case: Case, monkeypatch) -> None:
    monkeypatch.setattr("napsets.methods.thresholds._CHUNK_ENTRIES", 35)
    for one, other in zip(case.again(alphas=CURVE_ALPHAS[3:5]), case.comparison, strict=True):
        assert one.same_as(other)
        assert one.curve_coverage.tolist() == other.curve_coverage[3:5].tolist()
        assert one.curve_size.tolist() == other.curve_size[3:5].tolist()


def test_rows_survive_json(case: Case) -> None:
    rows = json.loads(json.dumps(case.comparison.rows()))
    titles = {
        "aps": ["Split APS", "NAPS", "NAPS-H", "NAPS-G"],
        "cqr": ["Split CQR", "NAPS", "NAPS exact", "Informed", "Auto"],
    }
    assert [row["method"] for row in rows] == [result.name for result in case.comparison]
    assert [row["title"] for row in rows] == titles[case.score]
    assert rows[1]["coverage"] == case.comparison["naps"].coverage


def test_an_unknown_truth_among_the_nodes_is_refused(case: Case) -> None:
    truth, nodes = case.world[case.truth].copy(), case.world["nodes"]
    truth[nodes[:2]] = -1 if case.score == "aps" else np.nan
    with pytest.raises(ns.InvalidInputError, match=rf"2 do not, node {nodes[0]} first"):
        case.again(**{case.truth: truth})


def test_a_measure_that_there_is_not_is_an_attribute_error(case: Case) -> None:
    other = "mean_width" if case.score == "aps" else "mean_size"
    with pytest.raises(AttributeError, match=f"'MethodResult' object has no attribute '{other}'"):
        getattr(case.comparison.baseline, other)


def test_a_method_of_the_users_own_is_compared_too(monkeypatch, case: Case) -> None:
    monkeypatch.setitem(METHODS, "near", lambda score="aps": ns.Method(score, ns.Hops(1, pool=30.0)))
    assert "near" in interval_methods()
    assert case.again(methods=["split", "near"])["near"].coverage > 0.8


# -- sets --------------------------------------------------------------------------------------------------------------


def test_metrics_are_those_of_the_library(world: dict[str, Any], comparison: Comparison) -> None:
    partition = ns.neighbourhood_partition(world["graph"], world["nodes"], seed=4)
    assert partition
    for result in comparison:
        y, sets = world["labels"], result.sets
        assert result.coverage == ns.coverage(sets, y)
        assert result.mean_size == ns.mean_size(sets)
        assert result.size_given_coverage == ns.size_given_coverage(sets, y)
        assert result.sscv == ns.sscv(sets, y, [(0, 1), (2, 3), (4, 5)])
        assert result.pccv == ns.pccv(sets, y, partition)
        assert result.infinite == np.isinf(sets.thresholds).sum()


def test_gaps_are_those_over_the_usual_groups_and_the_users_own(world: dict[str, Any]) -> None:
    side = np.where(np.arange(600) < 300, "east", "west")
    number_comparison = compare(**world, seed=4, groups={"side": side})
    y, nodes = world["labels"], world["nodes"]
    groups = {
        "neighbourhood": ns.groups_by_neighbourhood(world["graph"], nodes, seed=4),
        "class": y,
        "degree": ns.groups_by_degree(world["graph"], 5, nodes),
        "confidence": ns.groups_by_confidence(world["probabilities"], 5, nodes),
        "side": side,
    }
    for result, row in zip(number_comparison, number_comparison.rows(), strict=True):
        assert list(result.gaps) == list(groups)
        for kind, each in groups.items():
            gap = ns.coverage_gap(result.sets, y, each)
            assert row[f"gap_{kind}"] == gap.gap
            assert row[f"chance_{kind}"] == gap.chance
        assert result.gaps["neighbourhood"].worst == pytest.approx(result.pccv)
        assert result.gaps["neighbourhood"].worst_chance == pytest.approx(result.pccv_chance)


def test_standard_errors_follow_their_formulas(comparison: Comparison) -> None:
    for result in comparison:
        n = len(result.sets)
        assert result.coverage_se == pytest.approx(math.sqrt(result.coverage * (1 - result.coverage) / n))
        assert result.mean_size_se == pytest.approx(result.sets.sizes.std(ddof=1) / math.sqrt(n))


def test_a_node_without_neighbours_gets_the_full_set_and_is_counted(comparison: Comparison) -> None:
    assert comparison["split"].infinite == 0
    for name in ("naps", "naps-h", "naps-g"):
        sets = comparison[name].sets
        row = int(np.flatnonzero(sets.nodes == 599)[0])
        assert sets.thresholds[row] == np.inf
        assert sets.member[row].all()
        assert comparison[name].infinite >= 1


def test_another_score_and_string_ids_are_used(world: dict[str, Any]) -> None:
    ids = np.array([f"node-{i}" for i in range(600)])
    number_comparison = compare(**world, score=ns.RAPS(), ids=ids, seed=1)
    naps = ns.NAPS(score=ns.RAPS(), seed=1).calibrate(
        world["graph"], world["probabilities"], world["labels"], world["calibration"], ids=ids
    )
    assert np.array_equal(number_comparison["naps"].sets.member, naps.predict(world["nodes"]).member)


def test_progress_reaches_the_number_of_nodes(world: dict[str, Any]) -> None:
    calls: list[tuple[int, int]] = []
    compare(**world, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (world["nodes"].size, world["nodes"].size)


@pytest.mark.parametrize("classes", range(1, 60))
def test_strata_hold_every_size_once(classes: int) -> None:
    sizes = [size for low, high in size_strata(classes) for size in range(low, high + 1)]
    assert sizes == list(range(classes + 1))


def test_no_nodes_are_refused(world: dict[str, Any]) -> None:
    with pytest.raises(ns.InvalidInputError, match="`nodes` must hold at least one node"):
        compare(**(world | {"nodes": []}))


def test_judging_calibration_nodes_warns(world: dict[str, Any]) -> None:
    with pytest.warns(ns.NapsetsWarning, match="holds 1 calibration nodes"):
        compare(**(world | {"nodes": np.append(world["nodes"], world["calibration"][0])}))


def test_an_unknown_method_is_a_key_error(comparison: Comparison) -> None:
    with pytest.raises(KeyError, match="NAPS-X"):
        comparison["NAPS-X"]


def test_a_score_that_learns_is_refused_for_methods_that_keep_no_labels_apart(world: dict[str, Any]) -> None:
    with pytest.raises(
        ns.InvalidInputError, match="`score` must not learn from labels where 'naps' is compared"
    ) as info:
        compare(**world, score="informed")
    assert "exact=True" not in str(info.value)
    number_comparison = compare(
        **(world | {"methods": ["split", "naps-exact", "informed"]}), score="informed", level="exact"
    )
    assert np.array_equal(number_comparison["split"].sets.member, number_comparison["informed"].sets.member)
    with pytest.raises(ns.InvalidInputError, match="`fallback` must be"):
        compare(**world, score="informed", fallback="none")


def test_settings_and_methods_that_there_are_not_are_named(world: dict[str, Any]) -> None:
    with pytest.raises(
        ns.InvalidInputError, match=r"`settings` must be one of .*; got 'pol' \(did you mean 'pool'\?\)"
    ):
        compare(**world, pol=3.0)
    with pytest.raises(ns.InvalidInputError, match=r"`methods` must hold names of methods, .*; got \['naps'\] in it"):
        compare(**(world | {"methods": [["naps"]]}))


def test_what_was_only_tried_is_not_kept(world: dict[str, Any]) -> None:
    number_comparison = compare(**(world | {"methods": ["split", "auto"]}))
    assert not number_comparison.data._scored


def test_the_table_says_what_its_errors_are(ring_comparison: Comparison) -> None:
    _, head, first = str(ring_comparison).splitlines()[:3]
    assert "coverage ± 1.96 se" in head
    result = ring_comparison.baseline
    assert f"{result.coverage:.3f} ± {1.96 * result.coverage_se:.3f}" in first
