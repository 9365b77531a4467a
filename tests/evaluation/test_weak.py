"""Classes and groups that are covered too little are named, the worst first; chance alone names hardly any."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom

import napsets as ns
from napsets.evaluation.comparison import compare
from napsets.evaluation.finding_sentences import weak_facts
from napsets.evaluation.findings import weak_numbers
from napsets.evaluation.gaps import ALARM, gap_within, weak_groups
from napsets.evaluation.verdict import foresee
from napsets.levels import rank_place
from worlds import make_ring


def hard_classes(seed: int, classes: int = 58, nodes: int = 9000):
    """A world in which the model never finds the last two classes and finds all others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=nodes)
    guess = np.where(y >= classes - 2, 0, y)
    p = np.full((nodes, classes), 0.02 / (classes - 1))
    p[np.arange(nodes), guess] = 0.98
    p /= p.sum(axis=1, keepdims=True)
    graph = ns.Graph.from_edge_index(rng.integers(nodes, size=(2, 3 * nodes)), num_nodes=nodes)
    order = rng.permutation(nodes)
    parts = {"calibration": order[: nodes // 2], "nodes": order[nodes // 2 :]}
    return {"graph": graph, "probabilities": p, "labels": y, **parts}


def test_classes_that_are_never_covered_are_named_worst_first_with_what_helps() -> None:
    world = hard_classes(0)
    verdict = compare(**world, methods=("split",)).verdict([f"c{k}" for k in range(58)])
    assert {group.name for group in verdict.weak if group.what == "class"} == {"c56", "c57"}
    assert [group.coverage for group in verdict.weak[:2]] == [0.0, 0.0]
    sentence = next(text for text in verdict.warnings if "classes are covered" in text)
    assert sentence.startswith(
        "2 of 58 classes are covered less often than the target of 90 %, by more than chance: c5"
    )
    assert "(0 % of " in sentence
    assert (
        'What helps: `by="class"`, or more labels in these classes. Tried, `by="class"` changes the average' in sentence
    )
    assert "What helps: `--by class`" in str(compare(**world, methods=("split",)).verdict(surface="terminal"))
    assert verdict.row()["weak"][0]["name"] == verdict.weak[0].name


def test_predict_names_them_from_the_labels_that_set_the_level() -> None:
    world = hard_classes(1)
    calibrated = ns.make_method("split").calibrate(
        *(world[key] for key in ("graph", "probabilities", "labels", "calibration"))
    )
    verdict = foresee(
        calibrated, "split", alpha=0.1, nodes=world["nodes"], size=1.0, infinite=0, outputs=world["probabilities"]
    )
    assert {group.name for group in verdict.weak} == {"class 56", "class 57"}
    by_class = ns.make_method("by-class").calibrate(
        *(world[key] for key in ("graph", "probabilities", "labels", "calibration"))
    )
    healed = foresee(
        by_class, "by-class", alpha=0.1, nodes=world["nodes"], size=1.0, infinite=0, outputs=world["probabilities"]
    )
    assert healed.weak == ()


def test_the_users_own_groups_are_named_too() -> None:
    world = make_ring(4, nodes=3000, labelled=1000)
    confident = world["probabilities"].max(axis=1)
    region = np.where(confident < np.quantile(confident, 0.1), "north", "south")
    labels = world["labels"].copy()
    north = region == "north"
    labels[north] = world["probabilities"][north].argmin(axis=1)
    verdict = compare(**(world | {"labels": labels}), methods=("split",), groups={"region": region}).verdict()
    assert [group.name for group in verdict.weak if group.what == "region"] == ["north"]
    assert any("groups by region is covered less often" in text and "`by=`" in text for text in verdict.warnings)


def test_the_tail_is_that_of_the_beta_binomial_law_times_the_number_of_groups() -> None:
    covered = np.repeat([True, False, True], [400, 40, 60])
    groups = np.repeat([0, 1], [400, 100])
    weak = weak_groups(gap_within(covered, groups, 0.1), "class", ["a", "b"], level_labels=500)
    place = rank_place(500, 0.1)
    assert [group.name for group in weak] == ["b"]
    assert weak[0].p_value == pytest.approx(2 * betabinom.cdf(60, 100, place, 501 - place), rel=1e-6)


@pytest.mark.parametrize("level_labels", [None, 200])
def test_chance_names_a_group_no_more_often_than_it_may(level_labels: int | None) -> None:
    rng, draws, alarms = np.random.default_rng(5), 600, 0
    sizes = rng.integers(5, 200, size=40)
    groups = np.repeat(np.arange(40), sizes)
    for _ in range(draws):
        place = 0 if level_labels is None else rank_place(level_labels, 0.1)
        rate = 0.9 if level_labels is None else rng.beta(place, level_labels + 1 - place)
        gap = gap_within(rng.random(groups.size) < rate, groups, 0.1)
        alarms += bool(weak_groups(gap, "class", [str(k) for k in range(40)], level_labels=level_labels))
    assert binom.sf(alarms - 1, draws, ALARM) > 1e-3


def test_many_weak_groups_are_counted_and_the_worst_named() -> None:
    covered, groups = np.zeros(500, dtype=bool), np.repeat(np.arange(10), 50)
    covered[-20:] = True
    text = weak_facts(weak_numbers(gap_within(covered, groups, 0.1), "class", [*"abcdefghij"], level_labels=None))
    assert text.startswith(
        "10 of 10 classes are covered less often than the target of 90 %, by more than chance: a (0 %"
    )
    assert text.endswith("h (0 % of 50 nodes), and 2 more")
