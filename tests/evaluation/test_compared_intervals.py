"""Comparisons of intervals: widths counted honestly, gaps over groups, and methods that fit."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.kinds import interval_methods
from napsets.evaluation.results import Comparison
from napsets.methods import METHODS
from worlds import compare_intervals, make_numbers, never_supported

NAMES = ("split", "naps", "naps-exact", "informed", "auto")


def test_widths_are_counted_honestly(numbers, number_comparison: Comparison) -> None:
    y = numbers["targets"][numbers["nodes"]]
    for result in number_comparison:
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
    assert number_comparison["naps"].infinite >= 10  # those without neighbours
    assert number_comparison["split"].infinite == 0


def test_where_all_are_finite_widths_can_be_compared(number_comparison: Comparison) -> None:
    everywhere = [
        i
        for i in range(len(number_comparison.nodes))
        if all(math.isfinite(result.sizes[i]) for result in number_comparison)
    ]
    assert 0 < len(everywhere) < number_comparison.nodes.size
    for row, result in zip(number_comparison.rows(), number_comparison, strict=True):
        assert row["shared"] == pytest.approx(len(everywhere) / number_comparison.nodes.size)
        assert row["shared_width"] == pytest.approx(result.sizes[everywhere].mean())
        assert row["shared_width_se"] == pytest.approx(
            result.sizes[everywhere].std(ddof=1) / math.sqrt(len(everywhere))
        )


def test_a_method_of_whole_lines_alone_leaves_the_widths_of_the_others_to_be_compared(
    numbers, number_comparison, monkeypatch
):
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    among = compare_intervals(**numbers, methods=[*NAMES, "nowhere"], seed=3)
    assert among["nowhere"].infinite_rate == 1.0
    assert 0.0 < among.finite.mean() < 1.0
    assert among.shared_sizes()[:-1] == compare_intervals(**numbers, methods=NAMES, seed=3).shared_sizes()
    assert among.shared_sizes()[-1][0] == math.inf
    alone = compare_intervals(**numbers, methods=["nowhere"])
    assert not alone.finite.any()
    assert math.isnan(alone.shared_sizes()[0][0])


def test_gaps_stand_over_neighbourhoods_degrees_predictions_own_widths_and_the_users_groups(numbers) -> None:
    side = np.where(np.arange(900) < 400, "east", "west")
    number_comparison = compare_intervals(**numbers, methods=["split", "naps"], groups={"side": side}, seed=4)
    graph, y, nodes = numbers["graph"], numbers["targets"], numbers["nodes"]
    middle = numbers["outputs"].mean(axis=1)
    order = np.sort(middle[nodes])
    fifth = np.full(900, -1)
    fifth[nodes] = [sum(value >= order[k * nodes.size // 5] for k in range(5)) - 1 for value in middle[nodes]]
    groups = {
        "neighbourhood": ns.groups_by_neighbourhood(graph, nodes, seed=4),
        "degree": ns.groups_by_degree(graph, 5, nodes),
        "prediction": fifth,
        "side": side,
    }
    for result, row in zip(number_comparison, number_comparison.rows(), strict=True):
        assert list(result.gaps) == [*groups, "width"]
        for kind, each in groups.items():
            gap = ns.coverage_gap(result.intervals, y, each)
            assert (row[f"gap_{kind}"], row[f"chance_{kind}"]) == (gap.gap, gap.chance)
        assert result.pccv == ns.pccv(result.intervals, y, number_comparison.partition)
    widest = number_comparison["naps"].gaps["width"]
    assert widest.coverage[-1] == pytest.approx(
        number_comparison["naps"]
        .intervals.contains(y)[np.argsort(number_comparison["naps"].sizes)][-widest.sizes[-1] :]
        .mean()
    )


def test_intervals_of_one_width_are_one_group(numbers) -> None:
    number_comparison = compare_intervals(
        **(numbers | {"outputs": numbers["outputs"].mean(axis=1)}), methods=["split"], score="absolute"
    )
    assert number_comparison.baseline.title == "Split absolute"
    assert number_comparison.baseline.gaps["width"].sizes.tolist() == [numbers["nodes"].size]


def test_methods_of_labels_are_refused_with_those_of_numbers(numbers) -> None:
    for name in ("daps", "thr", "by-class", "snaps"):
        with pytest.raises(
            ns.InvalidInputError,
            match=rf"`methods` must make intervals .*; '{name}' looks at labels. Those that do",
        ):
            compare_intervals(**numbers, methods=["split", name])
    assert {"split", "naps", "naps-lengths", "by-degree", "auto"} <= set(interval_methods())
    with pytest.raises(ns.InvalidInputError, match="got 'nap'"):
        compare_intervals(**numbers, methods=["nap"])


def test_every_method_of_numbers_can_be_compared() -> None:
    numbers = make_numbers(1, n=400, labelled=200)
    names = [name for name in interval_methods() if name not in ("naps-lengths", "by-community")]  # need more
    number_comparison = compare_intervals(**numbers, methods=names)
    assert {"split", "naps", "naps-h", "naps-g", "naps-exact", "by-degree", "informed", "auto", "auto-small"} == set(
        names
    )
    assert all(result.coverage > 0.75 for result in number_comparison)
