"""The verdict: intervals that hold as often as they say, a choice that follows its rule, words that say the numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import betabinom, binom

import napsets as ns
from napsets.evaluation import verdict
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison, compare
from napsets.evaluation.verdict import (
    Interval,
    Verdict,
    coverage_band,
    evenness,
    falls_short,
    foresee,
    gaps_of,
    judge_methods,
    predicted_classes,
    size_change,
)
from napsets.levels import Exact
from napsets.localisers import Everyone
from napsets.methods import METHODS, Method


def make_world(seed: int, n: int = 700, labelled: int = 200, edges: int = 3500, classes: int = 4) -> dict[str, Any]:
    """A ring whose nodes link to those near them, mostly of their class; the first class is harder than the others."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    source = rng.integers(n, size=edges)
    ends = np.stack([source, (source + rng.integers(1, 40, size=edges)) % n])
    kept = (labels[ends[0]] == labels[ends[1]]) | (rng.random(edges) < 0.15)
    strength = np.where(labels == 0, 0.8, 2.0)
    logits = strength[:, None] * (np.arange(classes) == labels[:, None]) + rng.normal(size=(n, classes))
    order = rng.permutation(n)
    return {
        "graph": ns.Graph.from_edge_index(ends[:, kept], num_nodes=n),
        "probabilities": np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True),
        "labels": labels,
        "calibration": order[:labelled],
        "nodes": order[labelled:],
    }


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(**make_world(1, n=3000, labelled=1200, edges=60000), alphas=CURVE_ALPHAS)


# -- coverage beside chance --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [9, 30, 1000])
@pytest.mark.parametrize("judged", [1, 17, 800])
def test_the_band_is_that_of_the_beta_binomial_law(labels: int, judged: int) -> None:
    place = math.ceil((labels + 1) * 0.9 - 1e-9)
    law = betabinom(judged, place, labels + 1 - place)
    low, high = coverage_band(labels, 0.1, judged)
    assert (low, high) == pytest.approx((law.ppf(0.025) / judged, law.ppf(0.975) / judged))
    for hits in {0, judged // 2, judged - 1, judged}:
        assert falls_short(hits, judged, labels, 0.1) == pytest.approx(law.cdf(hits), abs=1e-12)


def test_of_infinitely_many_nodes_it_is_the_beta_law_and_without_labels_every_set_is_full() -> None:
    assert coverage_band(99, 0.1) == pytest.approx((beta_law(90, 10).ppf(0.025), beta_law(90, 10).ppf(0.975)))
    assert coverage_band(8, 0.1, 50) == (1.0, 1.0)
    assert falls_short(50, 50, 8, 0.1) == 1.0
    assert falls_short(49, 50, 8, 0.1) == 0.0


def test_of_millions_of_judged_nodes_the_law_is_that_of_a_little_fewer() -> None:
    below, beyond = (coverage_band(200_000, 0.1, judged) for judged in (1_000_000, 1_000_001))
    assert below == pytest.approx(beyond, abs=3e-6)
    assert falls_short(898_000, 1_000_000, 200_000, 0.1) == pytest.approx(
        falls_short(898_001, 1_000_001, 200_000, 0.1), rel=0.01
    )
    assert coverage_band(2000, 0.1, 50_000_000) == pytest.approx(coverage_band(2000, 0.1), abs=1e-4)


def test_coverage_lies_in_its_band_as_often_as_it_says() -> None:
    draws, inside = 300, 0
    rng = np.random.default_rng(0)
    for _ in range(draws):
        p = rng.dirichlet(np.ones(3), size=300)
        y = (rng.random(300)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=2)
        split = ns.SplitConformal(seed=int(rng.integers(1000))).calibrate(p, y, calibration=np.arange(100))
        share = ns.coverage(split.predict(np.arange(100, 300)), y)
        low, high = coverage_band(100, 0.1, 200)
        inside += low <= share <= high
    # A discrete law leaves at least 95 % inside; the ends of the band belong to it.
    assert binom.cdf(inside, draws, 0.95) > 1e-3


# -- what a method buys ------------------------------------------------------------------------------------------------


def test_intervals_hold_what_they_estimate_as_often_as_they_say() -> None:
    """Over draws of nodes and labels: what is estimated is the mean over all draws."""
    draws, names = 80, ("split", "naps-exact", "daps")
    found: list[list[Interval]] = [[], []]
    for d in range(draws):
        world = make_world(1000 + d, n=400, labelled=150, edges=1500)
        compared = compare(**world, methods=names, alphas=(0.05, 0.1, 0.15))
        for m, one in enumerate(found, start=1):
            one.append(size_change(compared, compared.results[m]))
    for one in found:
        values = np.array([change.value for change in one])
        holds = sum(change.low <= values.mean() <= change.high for change in one)
        assert binom.cdf(holds, draws, 0.95) > 1e-3
        # Nor are they far wider than they need be.
        assert np.mean([change.high - change.low for change in one]) < 3.0 * 2 * 1.96 * values.std(ddof=1)


def test_evenness_is_paired_by_neighbourhood_and_chance_cancels(found: Comparison) -> None:
    over, gaps = gaps_of(found)
    assert over == "neighbourhood"
    assert len({gap.chance for gap in gaps}) == 1
    one = evenness(gaps[2], gaps[0])
    apart = np.abs(gaps[2].coverage - 0.9) - np.abs(gaps[0].coverage - 0.9)
    assert one.value == pytest.approx(gaps[2].excess - gaps[0].excess)
    assert one.high - one.value == pytest.approx(one.value - one.low)
    assert (one.high - one.low) / 2 > 1.959 * apart.std(ddof=1) / math.sqrt(apart.size)
    wider = evenness(gaps[2], gaps[0], miss=0.01)
    assert wider.low < one.low < one.high < wider.high


def test_without_two_neighbourhoods_evenness_is_that_over_degrees() -> None:
    world = make_world(9, edges=60)
    found = compare(**world, methods=("split", "informed"), alphas=CURVE_ALPHAS)
    over, gaps = gaps_of(found)
    assert over == "degree"
    expected = ns.coverage_gap(
        found.baseline.sets, world["labels"], ns.groups_by_degree(world["graph"], 5, world["nodes"])
    )
    assert gaps[0].gap == expected.gap
    told = replace(found.verdict(), kept=False, evenness=Interval(0.0, -1.0, 1.0), over=over)
    assert "points off in a group by degree against" in told.buys


def test_the_same_sets_change_nothing_for_sure(found: Comparison) -> None:
    assert size_change(found, found.baseline) == Interval(0.0, 0.0, 0.0)


def test_other_labels_are_part_of_the_uncertainty_where_the_curve_is_known() -> None:
    world = make_world(4)
    known = compare(**world, methods=("split", "informed"), alphas=CURVE_ALPHAS)
    plain = compare(**world, methods=("split", "informed"))
    wide, narrow = (size_change(one, one.results[1]) for one in (known, plain))
    assert wide.value == narrow.value
    assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)


# -- which method ------------------------------------------------------------------------------------------------------


def test_what_chose_by_itself_is_taken_with_what_it_buys(found: Comparison) -> None:
    told = found.verdict()
    auto = found["auto"]
    assert (told.method, told.rivals, told.judged) == ("auto", 0, 1800)
    assert told.change == size_change(found, auto)
    assert told.change.value == pytest.approx(auto.mean_size / found.baseline.mean_size - 1)
    assert told.change.below
    assert told.coverage == auto.coverage
    assert told.band == coverage_band(600, 0.1, 1800)
    assert (told.labels, told.apart, told.level_labels, told.proven) == (1200, 600, 600, True)
    assert told.choice == str(auto.calibrated.choice)


def test_a_method_picked_by_the_judged_labels_pays_for_the_picking(found: Comparison) -> None:
    only = replace(found, results=tuple(one for one in found if one.name != "auto"))
    told = judge_methods(only)
    assert (told.method, told.rivals) == ("informed", 3)
    assert told.change == size_change(only, only["informed"], 0.05 / 3)
    assert told.change.low < size_change(only, only["informed"]).low
    assert "It was picked among 4 by these labels, which the intervals allow for" in told.lines[1]


def test_where_nothing_is_clearly_better_the_baseline_is_kept() -> None:
    world = make_world(2)
    rng = np.random.default_rng(0)
    world["graph"] = ns.Graph.from_edge_index(rng.integers(700, size=(2, 3500)), num_nodes=700)
    told = compare(**world, methods=("split", "naps", "naps-exact"), alphas=CURVE_ALPHAS).verdict()
    assert told.method == "split"
    assert math.isnan(told.change.value)
    assert told.lines[0].startswith("Keep APS split: sets of ")
    assert "no other method here is clearly better" in told.lines[0]


def test_what_covers_too_little_is_not_taken_however_small_its_sets_are(monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "greedy", lambda s: Method(s.score, Everyone(), Short(), s.seed))
    world = make_world(1, n=3000, labelled=1200, edges=60000)
    compared = compare(**world, methods=("split", "greedy"))
    assert compared["greedy"].mean_size < compared["split"].mean_size
    assert compared["greedy"].coverage < 0.8
    assert compared.verdict().method == "split"
    alone = compare(**world, methods=("greedy",)).verdict()
    assert alone.lines[0].endswith("it is all that was looked at.")
    assert "less than chance explains" in alone.mind


class Short(Exact):
    """A level that asks for half of what it should."""

    def fit(self, reference: Any, shares: Any, scores: Any) -> Any:
        order = np.argsort(scores)[: scores.size // 2]
        return super().fit(reference, shares[order], scores[order])


LESS, MORE, OPEN = Interval(-0.2, -0.3, -0.1), Interval(0.2, 0.1, 0.3), Interval(0.0, -0.1, 0.1)


@pytest.mark.parametrize(
    ("size", "even", "taken"),
    [
        pytest.param([OPEN, LESS, LESS], [OPEN, OPEN, OPEN], "informed", id="the smallest of those clearly smaller"),
        pytest.param([OPEN, LESS, LESS], [OPEN, OPEN, MORE], "naps-exact", id="none that is clearly less even"),
        pytest.param([OPEN, OPEN, OPEN], [OPEN, LESS, OPEN], "naps-exact", id="a more even one of no other size"),
        pytest.param([MORE, MORE, OPEN], [LESS, LESS, OPEN], "split", id="no evenness for larger sets"),
        pytest.param([OPEN, OPEN, OPEN], [OPEN, OPEN, OPEN], "split", id="the baseline where all is open"),
    ],
)
def test_the_judged_labels_pick_by_this_rule(monkeypatch, found: Comparison, size, even, taken) -> None:
    only = replace(found, results=found.results[:4])
    assert [one.name for one in only] == ["split", "naps", "naps-exact", "informed"]
    assert only["informed"].mean_size < only["naps-exact"].mean_size
    gaps = gaps_of(only)[1]
    monkeypatch.setattr(verdict, "size_change", lambda _, one, *__: size[only.results.index(one) - 1])
    places = {id(gap): m for m, gap in enumerate(gaps)}
    monkeypatch.setattr(verdict, "gaps_of", lambda _: ("neighbourhood", gaps))
    monkeypatch.setattr(verdict, "evenness", lambda gap, *_: even[places[id(gap)] - 1])
    assert judge_methods(only).method == taken


@pytest.mark.parametrize(("size", "even", "taken"), [(MORE, OPEN, "split"), (MORE, LESS, "auto"), (OPEN, OPEN, "auto")])
def test_what_chose_by_itself_is_left_only_where_it_is_clearly_worse(monkeypatch, found, size, even, taken) -> None:
    only = replace(found, results=(found.baseline, found["auto"]))
    monkeypatch.setattr(verdict, "size_change", lambda *_: size)
    monkeypatch.setattr(verdict, "evenness", lambda *_: even)
    assert judge_methods(only).method == taken


# -- what to mind ------------------------------------------------------------------------------------------------------


def test_nothing_to_mind_is_said_with_what_was_looked_at(found: Comparison) -> None:
    told = found.verdict()
    assert told.warnings == ()
    assert (
        told.lines[2] == "Mind: nothing found; labels, support, and drift in degree and predicted class were looked at."
    )


def test_few_labels_and_too_few_are_warned_of() -> None:
    world = make_world(3)
    few = compare(**(world | {"calibration": world["calibration"][:40]}), methods=("split",)).verdict()
    assert few.mind.startswith("40 labels are few: with others, coverage could as well be ")
    none = compare(**(world | {"calibration": world["calibration"][:5]}), methods=("split",)).verdict()
    assert none.mind == "5 labels are too few to set a level at alpha = 0.1, which takes 9: every set holds every label"


def test_too_little_support_is_counted() -> None:
    world = make_world(5, edges=400)
    told = compare(**world, methods=("naps",)).verdict()
    short = told.warnings[0]
    assert "get every label, because too few labelled nodes are near" in short


def test_labels_of_one_kind_of_nodes_are_warned_of_with_how_far_they_are_apart() -> None:
    world = make_world(6, n=2000, labelled=600)
    predicted = world["probabilities"].argmax(axis=1)
    order = np.argsort(predicted == 0, kind="stable")
    biased = world | {"calibration": order[:600], "nodes": order[600:]}
    told = compare(**biased, methods=("split",)).verdict(class_names=["cat", "dog", "owl", "bat"])
    drift = [one for one in told.warnings if "predicted class" in one]
    assert len(drift) == 1
    assert drift[0].startswith(
        "calibrating nodes differ from judged ones in predicted class: nodes predicted to be cat"
    )
    assert "are 0 % of the calibrating and" in drift[0]


def test_labelled_nodes_are_also_compared_with_those_that_have_no_label() -> None:
    world = make_world(7, n=2000, labelled=600)
    order = np.argsort(world["graph"].degrees, kind="stable")[::-1]
    labels = np.full(2000, -1)
    labels[order[:800]] = world["labels"][order[:800]]
    shuffled = np.random.default_rng(0).permutation(order[:800])
    told = compare(
        **(world | {"labels": labels, "calibration": shuffled[:400], "nodes": shuffled[400:]}), methods=("split",)
    ).verdict()
    assert [one.split(":")[0] for one in told.warnings] == ["labelled nodes differ from unlabelled ones in degree"]


# -- words -------------------------------------------------------------------------------------------------------------


def test_three_lines_say_the_numbers(found: Comparison) -> None:
    told = found.verdict()
    buys, sure, mind = told.lines
    change = [f"{100 * end:+.1f}".replace("-", "−") for end in (told.change.value, told.change.low, told.change.high)]
    assert buys.startswith(
        f"Take Auto: sets of {told.size:.2f} labels against {told.baseline_size:.2f} of APS split "
        f"({change[0]} %, 95 % interval {change[1]} to {change[2]} %), and coverage "
    )
    assert f"where chance alone gives {100 * told.chance:.1f}." in buys
    assert f"How sure: {100 * told.coverage:.1f} % of 1,800 judged nodes are covered; 90 % were asked for" in sure
    assert f"chance gives {100 * told.band[0]:.1f} to {100 * told.band[1]:.1f} % in 95 of 100 draws" in sure
    assert sure.endswith("Cost: 600 of 1,200 labels only set the level.")
    assert str(told) == "\n".join((buys, sure, mind))
    assert told.row()["lines"] == [buys, sure, mind]
    assert told.row()["change"]["value"] == told.change.value


def test_the_first_warning_stands_in_the_lines_and_the_others_are_counted(found: Comparison) -> None:
    told = replace(found.verdict(), warnings=("first", "second", "third"))
    assert told.lines[2] == "Mind: first (2 more warnings)."


@pytest.mark.parametrize(
    ("ends", "word"), [((-0.02, -0.03, -0.01), "more even"), ((0.02, 0.01, 0.03), "less even"), ((0, -1, 1), "as even")]
)
def test_evenness_is_claimed_only_where_it_is_clear(found: Comparison, ends: Any, word: str) -> None:
    told = replace(found.verdict(), evenness=Interval(*ends))
    assert f"and coverage {word}" in told.buys


def test_no_theorem_no_promise(found: Comparison) -> None:
    told = replace(found.verdict(), proven=False)
    assert "no theorem promises it" in told.sure


@pytest.mark.parametrize("name", ["auto", "split", "naps"])
def test_without_truth_it_says_what_is_expected_and_promised(name: str) -> None:
    world = make_world(8, n=1500, labelled=500, edges=9000)
    calibrated = ns.make_method(name).calibrate(
        *(world[key] for key in ("graph", "probabilities", "labels", "calibration"))
    )
    sets = calibrated.predict(world["nodes"])
    told = foresee(
        calibrated, name, name, alpha=0.1, nodes=len(sets), size=ns.mean_size(sets), infinite=sets.infinite,
        graph=world["graph"], predicted=predicted_classes(world["probabilities"]), asked=world["nodes"],
    )  # fmt: skip
    assert isinstance(told, Verdict)
    assert (told.judged, told.nodes, told.labels) == (0, 1000, 500)
    assert math.isnan(told.coverage)
    assert told.lines[0].count(f"sets of {ns.mean_size(sets):.2f} labels for 1,000 nodes") == 1
    if name == "auto":
        score = [one for one in calibrated.choice.candidates if one.step == "score"]
        chosen = next(one for one in score if one.chosen)
        assert told.baseline_size == score[0].value
        assert told.change.value == pytest.approx(chosen.value / score[0].value - 1)
        assert f"{chosen.value:.2f} expected against {score[0].value:.2f} of the model alone" in told.buys
    else:
        assert "nothing was compared" in told.buys
    low, high = coverage_band(250 if name == "auto" else 500, 0.1)
    promise = f"coverage is {100 * low:.1f} to {100 * high:.1f} % in 95 of 100 draws of them"
    assert (promise in told.sure) == (name != "naps")
