"""What a method buys: intervals that hold as often as they say, paired by node and by neighbourhood."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.gains import Interval, endless_change, evenness, gaps_of, paired_sizes, size_change
from napsets.evaluation.results import Comparison
from worlds import compare_intervals, make_numbers, make_ring


def test_intervals_hold_what_they_estimate_as_often_as_they_say() -> None:
    """Over draws of nodes and labels: what is estimated is the mean over all draws."""
    draws, names = 80, ("split", "naps-exact", "daps")
    intervals: list[list[Interval]] = [[], []]
    for d in range(draws):
        world = make_ring(1000 + d, nodes=400, labelled=150, edges=1500)
        compared = compare(**world, methods=names, alphas=(0.05, 0.1, 0.15))
        for m, one in enumerate(intervals, start=1):
            one.append(size_change(compared, compared.results[m]))
    for one in intervals:
        values = np.array([change.value for change in one])
        holds = sum(change.low <= values.mean() <= change.high for change in one)
        assert binom.cdf(holds, draws, 0.95) > 1e-3
        # Nor are they far wider than they need be.
        assert np.mean([change.high - change.low for change in one]) < 3.0 * 2 * 1.96 * values.std(ddof=1)


def test_evenness_is_paired_by_neighbourhood_and_chance_cancels(ring_comparison: Comparison) -> None:
    over, gaps = gaps_of(ring_comparison)
    assert over == "neighbourhood"
    assert len({gap.chance for gap in gaps}) == 1
    one = evenness(gaps[2], gaps[0])
    apart = np.maximum(0.9 - gaps[2].coverage, 0.0) - np.maximum(0.9 - gaps[0].coverage, 0.0)
    assert one.value == pytest.approx(gaps[2].under - gaps[0].under)
    assert one.high - one.value == pytest.approx(one.value - one.low)
    assert (one.high - one.low) / 2 > 1.959 * apart.std(ddof=1) / math.sqrt(apart.size)
    wider = evenness(gaps[2], gaps[0], miss=0.01)
    assert wider.low < one.low < one.high < wider.high


def test_without_two_neighbourhoods_evenness_is_that_over_degrees() -> None:
    world = make_ring(9, edges=60)
    comparison = compare(**world, methods=("split", "informed"), alphas=CURVE_ALPHAS)
    over, gaps = gaps_of(comparison)
    assert over == "degree"
    expected = ns.coverage_gap(
        comparison.baseline.sets, world["labels"], ns.groups_by_degree(world["graph"], 5, world["nodes"])
    )
    assert gaps[0].gap == expected.gap
    verdict = replace(comparison.verdict(), kept=False, evenness=Interval(0.0, -1.0, 1.0), over=over)
    assert "points short of the target per group by degree on average, compared with" in verdict.gain


def test_one_comparison_has_one_interval_which_allows_for_other_labels() -> None:
    world = make_ring(4)
    report = compare(**world, methods=("split", "informed"), alphas=CURVE_ALPHAS)
    plain = compare(**world, methods=("split", "informed"))
    assert size_change(report, report.results[1]) == size_change(plain, plain.results[1])
    assert str(report.verdict()) == str(plain.verdict())
    still = replace(plain, results=tuple(replace(result, slope=0.0) for result in plain))
    wide, narrow = (size_change(one, one.results[1]) for one in (plain, still))
    assert wide.value == narrow.value
    assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)


def test_whole_lines_are_counted_by_node_and_left_out_of_widths() -> None:
    compared = compare_intervals(**make_numbers(degree=4), methods=["split", "naps", "naps-exact"])
    naps, split = compared["naps"], compared.baseline
    apart = [float(math.isinf(a)) - float(math.isinf(b)) for a, b in zip(naps.sizes, split.sizes, strict=True)]
    mean = sum(apart) / len(apart)
    spread = math.sqrt(sum((one - mean) ** 2 for one in apart) / (len(apart) - 1) / len(apart))
    change = endless_change(compared, naps)
    assert change.above
    assert (change.value, change.high) == pytest.approx((mean, mean + 1.959964 * spread))
    widths, others = paired_sizes(naps, split)
    both = [i for i in range(len(apart)) if math.isfinite(naps.sizes[i]) and math.isfinite(split.sizes[i])]
    assert widths.tolist() == [naps.sizes[i] for i in both]
    assert others.tolist() == [split.sizes[i] for i in both]


def test_where_no_width_is_finite_nothing_is_compared() -> None:
    world = make_numbers(n=300, labelled=150)
    compared = compare_intervals(**(world | {"calibration": world["calibration"][:5]}), methods=["split", "naps"])
    assert math.isinf(compared.baseline.mean_width)
    assert size_change(compared, compared["naps"]) == Interval(0.0, 0.0, 0.0)  # the very same lines
    widths, _ = paired_sizes(compared["naps"], compared.baseline)
    assert widths.size == 0
