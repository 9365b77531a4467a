"""Comparing intervals must give the intervals of the predictors, honest widths, and a verdict that follows them."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation import verdict
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.interval_comparison import IntervalComparison, compare_intervals, interval_methods
from napsets.evaluation.interval_judgement import judge_intervals
from napsets.evaluation.verdict import Interval, IntervalVerdict, evenness, gaps_of, judge_methods, size_change
from napsets.methods import METHODS, make_method
from worlds import make_numbers, never_supported

NAMES = ("split", "naps", "naps-exact", "informed", "auto")


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    return make_numbers()


@pytest.fixture(scope="module")
def found(world: dict[str, Any]) -> IntervalComparison:
    return compare_intervals(**world, seed=4, alphas=CURVE_ALPHAS)


# -- what is compared --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_method_gives_the_intervals_of_its_predictor(world, found: IntervalComparison, name: str) -> None:
    given = [world[key] for key in ("graph", "outputs", "targets", "calibration")]
    alone = make_method(name, score="cqr", seed=4).calibrate(*given).predict(world["nodes"], 0.1)
    for part in ("nodes", "lower", "upper", "thresholds", "support", "effective_size", "centre"):
        assert np.array_equal(getattr(found[name].intervals, part), getattr(alone, part)), part


def test_a_judged_target_never_calibrates(world, found: IntervalComparison) -> None:
    """Whatever the judged targets are, the intervals stay as they are."""
    changed = world["targets"].copy()
    changed[world["nodes"]] += 1000.0
    for one, other in zip(found, compare_intervals(**(world | {"targets": changed}), seed=4), strict=True):
        assert one.same_as(other)
        assert other.coverage < 0.2


def test_widths_are_counted_honestly(world, found: IntervalComparison) -> None:
    y = world["targets"][world["nodes"]]
    for result in found:
        low, high = result.intervals.lower.tolist(), result.intervals.upper.tolist()
        widths = [b - a for a, b in zip(low, high, strict=True)]
        finite = [width for width in widths if math.isfinite(width)]
        inside = [a <= t <= b for a, b, t in zip(low, high, y, strict=True)]
        assert result.coverage == pytest.approx(sum(inside) / len(inside))
        assert result.finite_width == pytest.approx(sum(finite) / len(finite))
        assert result.infinite_rate == pytest.approx(1 - len(finite) / len(widths))
        assert result.median_width == pytest.approx(statistics.median(widths))
        if len(finite) < len(widths):
            assert result.mean_width == math.inf
            assert math.isnan(result.mean_width_se)
        else:
            mean = sum(widths) / len(widths)
            error = math.sqrt(sum((width - mean) ** 2 for width in widths) / (len(widths) - 1) / len(widths))
            assert (result.mean_width, result.mean_width_se) == pytest.approx((mean, error))
    assert found["naps"].infinite >= 10  # those without neighbours
    assert found["split"].infinite == 0


def test_where_all_are_finite_widths_can_be_compared(found: IntervalComparison) -> None:
    everywhere = [i for i in range(len(found.nodes)) if all(math.isfinite(result.sizes[i]) for result in found)]
    assert 0 < len(everywhere) < found.nodes.size
    for row, result in zip(found.rows(), found, strict=True):
        assert row["shared"] == pytest.approx(len(everywhere) / found.nodes.size)
        assert row["shared_width"] == pytest.approx(result.sizes[everywhere].mean())
        assert row["shared_width_se"] == pytest.approx(
            result.sizes[everywhere].std(ddof=1) / math.sqrt(len(everywhere))
        )


def test_a_method_of_whole_lines_alone_leaves_the_widths_of_the_others_to_be_compared(world, found, monkeypatch):
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    among = compare_intervals(**world, methods=[*NAMES, "nowhere"], seed=3)
    assert among["nowhere"].infinite_rate == 1.0
    assert 0.0 < among.finite.mean() < 1.0
    assert among.shared_widths()[:-1] == compare_intervals(**world, methods=NAMES, seed=3).shared_widths()
    assert among.shared_widths()[-1][0] == math.inf
    alone = compare_intervals(**world, methods=["nowhere"])
    assert not alone.finite.any()
    assert math.isnan(alone.shared_widths()[0][0])


def test_gaps_stand_over_neighbourhoods_degrees_predictions_own_widths_and_the_users_groups(world) -> None:
    side = np.where(np.arange(900) < 400, "east", "west")
    found = compare_intervals(**world, methods=["split", "naps"], groups={"side": side}, seed=4)
    graph, y, nodes = world["graph"], world["targets"], world["nodes"]
    middle = world["outputs"].mean(axis=1)
    order = np.sort(middle[nodes])
    fifth = np.full(900, -1)
    fifth[nodes] = [sum(value >= order[k * nodes.size // 5] for k in range(5)) - 1 for value in middle[nodes]]
    groups = {
        "neighbourhood": ns.groups_by_neighbourhood(graph, nodes, seed=4),
        "degree": ns.groups_by_degree(graph, 5, nodes),
        "prediction": fifth,
        "side": side,
    }
    for result, row in zip(found, found.rows(), strict=True):
        assert list(result.gaps) == [*groups, "width"]
        for kind, each in groups.items():
            gap = ns.coverage_gap(result.intervals, y, each)
            assert (row[f"gap_{kind}"], row[f"chance_{kind}"]) == (gap.gap, gap.chance)
        assert result.pccv == ns.pccv(result.intervals, y, found.partition)
    widest = found["naps"].gaps["width"]
    assert widest.coverage[-1] == pytest.approx(
        found["naps"].intervals.contains(y)[np.argsort(found["naps"].sizes)][-widest.sizes[-1] :].mean()
    )


def test_intervals_of_one_width_are_one_group(world) -> None:
    found = compare_intervals(
        **(world | {"outputs": world["outputs"].mean(axis=1)}), methods=["split"], score="absolute"
    )
    assert found.baseline.title == "Absolute split"
    assert found.baseline.gaps["width"].sizes.tolist() == [world["nodes"].size]


def test_the_curve_is_what_each_alpha_alone_would_give(world, found: IntervalComparison) -> None:
    for a, rate in ((4, 0.1), (12, 0.5)):
        assert found.alphas[a] == rate
        for one, many in zip(compare_intervals(**world, alpha=rate, seed=4, methods=NAMES[:4]), found, strict=False):
            assert many.curve_coverage[a] == pytest.approx(one.coverage)
            assert many.curve_size[a] == pytest.approx(one.finite_width)
            assert many.curve_median[a] == pytest.approx(one.median_width)
            assert many.curve_infinite[a] == pytest.approx(one.infinite_rate)


def test_rows_survive_json(found: IntervalComparison) -> None:
    rows = json.loads(json.dumps(found.rows()))
    assert [row["method"] for row in rows] == list(NAMES)
    assert [row["title"] for row in rows] == ["CQR split", "NAPS", "NAPS exact", "Informed", "Auto"]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_methods_of_labels_are_refused_with_those_of_numbers(world) -> None:
    for name in ("daps", "daps-thr", "by-class", "snaps", "cf-gnn"):
        with pytest.raises(
            ns.InvalidInputError,
            match=rf"`methods` must make intervals .*; '{name}' looks at labels. Those that do",
        ):
            compare_intervals(**world, methods=["split", name])
    assert {"split", "naps", "pagerank", "rlcp", "by-degree", "auto"} <= set(interval_methods())
    with pytest.raises(ns.InvalidInputError, match="got 'nap'"):
        compare_intervals(**world, methods=["nap"])


def test_each_comparison_names_the_other_where_the_score_is_of_the_other_kind(world) -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`score` must be one of labels; CQR .* Take compare_intervals\."):
        compare(*(world[key] for key in world), score="cqr")
    with pytest.raises(ns.InvalidInputError, match=r"`score` must be one of numbers: .*; APS .* Take compare\."):
        compare_intervals(**world, score="aps", methods=["split"])


def test_unknown_targets_among_the_nodes_are_refused(world) -> None:
    targets = world["targets"].copy()
    targets[world["nodes"][:2]] = np.nan
    with pytest.raises(ns.InvalidInputError, match=rf"2 do not, node {world['nodes'][0]} first"):
        compare_intervals(**(world | {"targets": targets}))


def test_judging_wants_intervals() -> None:
    with pytest.raises(ns.InvalidInputError, match="`intervals` must be"):
        judge_intervals(np.ones(3), [1.0, 2.0, 3.0])  # type: ignore[arg-type]


def test_every_method_of_numbers_can_be_compared() -> None:
    world = make_numbers(1, n=400, labelled=200)
    names = [name for name in interval_methods() if name not in ("naps-lengths", "by-community")]  # need more
    found = compare_intervals(**world, methods=names)
    assert len(names) > 10
    assert all(result.coverage > 0.75 for result in found)


# -- the verdict -------------------------------------------------------------------------------------------------------


def test_the_verdict_says_widths(found: IntervalComparison) -> None:
    told = found.verdict()
    assert isinstance(told, IntervalVerdict)
    assert (told.method, told.baseline, told.infinite) == ("auto", "CQR split", found["auto"].infinite_rate)
    assert told.change == size_change(found, found["auto"])
    assert told.lines[0].startswith(
        f"Take Auto: intervals {told.size:.3g} wide against {told.baseline_size:.3g} of CQR"
    )
    assert "drift in degree and prediction were looked at" in told.lines[2] or told.warnings
    assert json.loads(json.dumps(told.row()))["lines"] == list(told.lines)


def test_widths_are_paired_where_both_are_finite(world, found: IntervalComparison) -> None:
    naps, split = found["naps"], found["split"]
    both = np.isfinite(naps.sizes)
    assert size_change(found, naps).value == pytest.approx(naps.sizes[both].mean() / split.sizes[both].mean() - 1)
    told = replace(judge_methods(replace(found, results=(split, naps))), kept=False)
    forced = IntervalVerdict(
        **{name: getattr(told, name) for name in told.__dataclass_fields__}
        | {"infinite": naps.infinite_rate, "change": size_change(found, naps)}
    )
    share = 100 * naps.infinite_rate
    assert f"where both are finite; {share:.1f} % of them are the whole line against 0.0 %" in forced.buys


LESS, MORE, OPEN = Interval(-0.2, -0.3, -0.1), Interval(0.2, 0.1, 0.3), Interval(0.0, -0.1, 0.1)


@pytest.mark.parametrize(
    ("width", "endless", "even", "taken"),
    [
        pytest.param(LESS, OPEN, OPEN, "naps", id="clearly narrower"),
        pytest.param(LESS, MORE, OPEN, "split", id="narrower, but the whole line more often"),
        pytest.param(OPEN, OPEN, LESS, "naps", id="more even and no wider"),
        pytest.param(OPEN, MORE, LESS, "split", id="more even, but the whole line more often"),
    ],
)
def test_the_whole_line_counts_as_wider(monkeypatch, found, width, endless, even, taken) -> None:
    only = replace(found, results=(found["split"], found["naps"]))
    monkeypatch.setattr(verdict, "size_change", lambda *_: width)
    monkeypatch.setattr(verdict, "endless_change", lambda *_: endless)
    monkeypatch.setattr(verdict, "evenness", lambda *_: even)
    assert judge_methods(only).method == taken


def test_evenness_is_that_of_the_gaps(found: IntervalComparison) -> None:
    over, gaps = gaps_of(found)
    assert over == "neighbourhood"
    assert found.verdict().evenness == evenness(gaps[4], gaps[0])


def test_few_labels_the_whole_line_and_drift_are_warned_of(world) -> None:
    few = compare_intervals(**(world | {"calibration": world["calibration"][:5]}), methods=("split",)).verdict()
    assert few.mind == (
        "5 labels are too few to set a level at alpha = 0.1, which takes 9: every interval is the whole line"
    )
    assert few.lines[0].startswith("Keep CQR split: no interval is finite")
    short = compare_intervals(**(make_numbers(3, degree=2)), methods=("naps",)).verdict()
    assert any("get the whole line, because too few labelled nodes are near" in one for one in short.warnings)
    middle = world["outputs"].mean(axis=1)
    order = np.argsort(middle, kind="stable")
    drifted = compare_intervals(
        **(world | {"calibration": order[:450], "nodes": order[450:]}), methods=("split",)
    ).verdict()
    told = [one for one in drifted.warnings if "in prediction" in one]
    assert told
    assert "calibrating nodes differ from judged ones in prediction: nodes predicted to have " in told[0]


def test_a_method_of_the_users_own_is_compared_too(monkeypatch, world) -> None:
    monkeypatch.setitem(METHODS, "near", lambda s: ns.Method(s.score, ns.Hops(1, pool=30.0), seed=s.seed))
    assert "near" in interval_methods()
    assert compare_intervals(**world, methods=["split", "near"])["near"].coverage > 0.8
