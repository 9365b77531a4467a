"""One bundle of metrics: each is the function of its name, and the standard errors are the textbook's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.judgement import METRICS, check_groups, halves, judge_rows
from napsets.evaluation.kinds import kind_of

STRATA = [(0, 1), (2, 3)]
NODES = np.array([3, 5, 0, 7])
LABELS = np.array([2, -1, -1, 0, -1, 1, -1, 1])
MEMBER = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1]], bool)


def make(rows=4):
    infinite = np.array([0.5, 0.1, np.inf, 0.7])[:rows]
    ones = np.ones(rows)
    return ns.PredictionSets(NODES[:rows], MEMBER[:rows], infinite, ones.astype(int), ones, 0.25, num_nodes=8)


def judge(sets, strata=STRATA, neighbourhoods=None, **groups):
    ranges = kind_of(type(sets)).check_strata(strata, sets)
    groups = {name: group[sets.nodes] for name, group in groups.items()}
    return judge_rows(sets, sets.own_labels(LABELS), strata=ranges, neighbourhoods=neighbourhoods, groups=groups)


def test_every_metric_is_the_function_of_its_name():
    sets, parts = make(), [np.array([3, 5]), np.array([0, 7])]
    worth = judge(sets, neighbourhoods=np.array([0, 0, 1, 1]))
    assert worth.row() == {
        "nodes": 4,
        "coverage": ns.coverage(sets, LABELS),
        "coverage_se": math.sqrt(0.75 * 0.25 / 4),
        "mean_size": ns.mean_size(sets),
        "mean_size_se": np.std([1, 0, 3, 2], ddof=1) / 2,
        "size_given_coverage": ns.size_given_coverage(sets, LABELS),
        "sscv": ns.sscv(sets, LABELS, STRATA),
        "pccv": ns.pccv(sets, LABELS, parts),
        # Two pairs, each with 0, 1 or 2 of 2 covered at 3/4: the worse is 1/4, 1/4 or 3/4 off.
        "pccv_chance": pytest.approx(0.25 + 0.5 * (1 - (1 - 0.25**2) ** 2)),
        "singleton_rate": ns.singleton_rate(sets),
        "empty_rate": ns.empty_rate(sets),
        "full_rate": ns.full_rate(sets),
        "infinite": 1,
    }
    assert tuple(worth.row()) == METRICS


def test_gaps_stand_in_the_row_under_the_name_of_their_grouping():
    sides = np.array(["east", "", "", "west", "", "west", "", "east"])
    worth = judge(make(), **{"side": sides, "class": LABELS})
    assert set(worth.gaps) == {"side", "class"}
    assert worth.gaps["side"].groups.tolist() == ["east", "west"]
    assert worth.gaps["side"].coverage.tolist() == [1.0, 0.5]
    row = worth.row()
    assert row["gap_side"] == worth.gaps["side"].gap == 0.25
    assert row["excess_side"] == row["gap_side"] - row["chance_side"]
    assert (row["under_side"], row["over_side"], row["share_side"]) == (0.125, 0.125, 1.0)
    assert {name for name in row if name not in METRICS} == {
        f"{name}_{kind}"
        for kind in ("side", "class")
        for name in ("gap", "chance", "excess", "under", "over", "worst", "worst_chance", "share")
    }


def test_groupings_without_names_are_refused():
    with pytest.raises(ns.InvalidInputError, match=r"`groups` must be a Mapping.*Write groups=\{'region': regions\}"):
        check_groups(LABELS)
    with pytest.raises(ns.InvalidInputError, match="`groups` must map names to arrays; got 3 for a name"):
        check_groups({3: LABELS})


def test_what_cannot_be_known_is_nan():
    worth = judge(make(1))
    assert math.isnan(worth.pccv)
    assert math.isnan(worth.pccv_chance)
    assert math.isnan(worth.mean_size_se)
    assert worth.coverage_se == 0.0
    nothing = judge(make(0))
    assert nothing.nodes == nothing.infinite == 0
    assert all(math.isnan(nothing.row()[name]) for name in METRICS[1:-1])


def test_strata_are_the_usual_ones_by_default_and_none_of_intervals():
    assert judge(make(), strata=None).row() == judge(make(), strata=[(0, 1), (2, 3)]).row()
    ends = np.zeros(4), np.ones(4)
    intervals = ns.PredictionIntervals(NODES, *ends, np.ones(4), np.ones(4, int), np.ones(4), 0.25)
    with pytest.raises(ns.InvalidInputError, match="`strata` must be None for intervals"):
        judge(intervals)


def test_halves_share_no_node_and_follow_the_seed():
    nodes = np.arange(11) * 3
    first, second = halves(nodes, seed=4)
    assert sorted([*first, *second]) == nodes.tolist()
    assert (first.size, second.size) == (5, 6)
    np.testing.assert_array_equal(halves(nodes, seed=4)[0], first)
    assert halves(nodes, seed=5)[0].tolist() != first.tolist()
    with pytest.raises(ns.InvalidInputError, match="at least two labelled nodes"):
        halves(nodes[:1], seed=0)
