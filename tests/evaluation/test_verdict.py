"""The verdict: intervals that hold as often as they say, a choice that follows its rule, words that say the numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation import verdict
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison, compare
from napsets.evaluation.verdict import (
    Interval,
    Verdict,
    coverage_band,
    foresee,
    gaps_of,
    judge_methods,
    predicted_classes,
    size_change,
)
from napsets.levels import Exact
from napsets.localisers import Everyone
from napsets.methods import METHODS, Method
from worlds import make_ring

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
    world = make_ring(2)
    rng = np.random.default_rng(0)
    world["graph"] = ns.Graph.from_edge_index(rng.integers(700, size=(2, 3500)), num_nodes=700)
    told = compare(**world, methods=("split", "naps", "naps-exact"), alphas=CURVE_ALPHAS).verdict()
    assert told.method == "split"
    assert math.isnan(told.change.value)
    assert told.lines[0].startswith("Keep APS split: sets of ")
    assert "no other method here is clearly better" in told.lines[0]


def test_what_covers_too_little_is_not_taken_however_small_its_sets_are(monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "greedy", lambda s: Method(s.score, Everyone(), Short(), s.seed))
    world = make_ring(1, n=3000, labelled=1200, edges=60000)
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
    world = make_ring(8, n=1500, labelled=500, edges=9000)
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
