"""The verdict: intervals that hold as often as they say, a choice that follows its rule, words that say the numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation import gains, verdict
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.findings import Finding
from napsets.evaluation.gains import Interval, evenness, gaps_of, size_change
from napsets.evaluation.results import Comparison
from napsets.evaluation.verdict import Verdict, foresee, judge_methods
from napsets.levels import Exact, coverage_band
from napsets.localisers import Everyone
from napsets.methods import METHODS, Method
from napsets.methods.table import name_of
from worlds import compare_intervals, make_numbers, make_ring

# -- which method ------------------------------------------------------------------------------------------------------


def test_what_chose_by_itself_is_taken_with_what_it_buys(ring_comparison: Comparison) -> None:
    verdict = ring_comparison.verdict()
    auto = ring_comparison["auto"]
    assert (verdict.method, verdict.rivals, verdict.judged) == ("auto", 0, 1800)
    assert verdict.change == size_change(ring_comparison, auto)
    assert verdict.change.value == pytest.approx(auto.mean_size / ring_comparison.baseline.mean_size - 1)
    assert verdict.change.below
    assert verdict.coverage == auto.coverage
    assert verdict.band == coverage_band(600, 0.1, 1800)
    assert (verdict.labels, verdict.held_out, verdict.level_labels, verdict.proven) == (1200, 600, 600, True)
    assert verdict.choice == str(auto.calibrated.choice)


def test_a_method_picked_by_the_judged_labels_pays_for_the_picking(ring_comparison: Comparison) -> None:
    only = replace(ring_comparison, results=tuple(one for one in ring_comparison if one.name != "auto"))
    verdict = judge_methods(only)
    assert (verdict.method, verdict.rivals) == ("informed", 4)
    assert verdict.change == size_change(only, only["informed"], 0.05 / 4)
    assert verdict.change.low < size_change(only, only["informed"]).low
    assert "It was picked among 5 methods on these nodes, which the intervals allow for" in verdict.lines[1]


def test_where_nothing_is_clearly_better_the_baseline_is_kept() -> None:
    world = make_ring(2)
    rng = np.random.default_rng(0)
    world["graph"] = ns.Graph.from_edge_index(rng.integers(700, size=(2, 3500)), num_nodes=700)
    verdict = compare(**world, methods=("split", "naps", "naps-exact"), alphas=CURVE_ALPHAS).verdict()
    assert verdict.method == "split"
    assert math.isnan(verdict.change.value)
    assert verdict.lines[0].startswith("Keep split APS: average set size ")
    assert "no other method here is clearly better" in verdict.lines[0]


def test_what_covers_too_little_is_not_taken_however_small_its_sets_are(monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "greedy", lambda score="aps": Method(score, Everyone(), Short()))
    world = make_ring(1, nodes=3000, labelled=1200, edges=60000)
    compared = compare(**world, methods=("split", "greedy"))
    assert compared["greedy"].mean_size < compared["split"].mean_size
    assert compared["greedy"].coverage < 0.8
    assert compared.verdict().method == "split"
    alone = compare(**world, methods=("greedy",)).verdict()
    assert alone.lines[0].endswith("no other method was compared.")
    assert "too low for chance" in alone.first_warning


class Short(Exact):
    """A level that asks for half of what it should."""

    def fit(self, reference: Any, shares: Any, scores: Any) -> Any:
        order = np.argsort(scores)[: scores.size // 2]
        return super().fit(reference, shares[order], scores[order])


LESS, MORE, OPEN = Interval(-0.2, -0.3, -0.1), Interval(0.2, 0.1, 0.3), Interval(0.0, -0.1, 0.1)


def replace_measure(monkeypatch, name: str, function: Any) -> None:
    """Replace a measure of what a method gains, wherever a verdict uses it."""
    for module in (gains, verdict):
        monkeypatch.setattr(module, name, function, raising=module is gains)


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
def test_the_judged_labels_pick_by_this_rule(monkeypatch, ring_comparison: Comparison, size, even, taken) -> None:
    only = replace(ring_comparison, results=ring_comparison.results[:4])
    assert [one.name for one in only] == ["split", "naps", "naps-exact", "informed"]
    assert only["informed"].mean_size < only["naps-exact"].mean_size
    gaps = gaps_of(only)[1]
    replace_measure(monkeypatch, "size_change", lambda _, one, *__, **___: size[only.results.index(one) - 1])
    places = {id(gap): m for m, gap in enumerate(gaps)}
    replace_measure(monkeypatch, "gaps_of", lambda _: ("neighbourhood", gaps))
    replace_measure(monkeypatch, "evenness", lambda gap, *_: even[places[id(gap)] - 1])
    assert judge_methods(only).method == taken


@pytest.mark.parametrize(
    ("size", "even", "taken"),
    [
        pytest.param(MORE, OPEN, "split", id="larger"),
        pytest.param(MORE, LESS, "split", id="larger, though more even"),
        pytest.param(OPEN, OPEN, "split", id="no clear gain"),
        pytest.param(LESS, MORE, "split", id="smaller, but less even"),
        pytest.param(LESS, OPEN, "auto", id="smaller"),
        pytest.param(OPEN, LESS, "auto", id="more even and no larger"),
    ],
)
def test_plain_aps_stays_unless_the_gain_of_auto_is_clear(monkeypatch, ring_comparison, size, even, taken) -> None:
    only = replace(ring_comparison, results=(ring_comparison.baseline, ring_comparison["auto"]))
    replace_measure(monkeypatch, "size_change", lambda *_, **__: size)
    replace_measure(monkeypatch, "evenness", lambda *_: even)
    assert judge_methods(only).method == taken


# -- words -------------------------------------------------------------------------------------------------------------


def test_the_lines_say_the_numbers(ring_comparison: Comparison) -> None:
    verdict = ring_comparison.verdict()
    gain, certainty, *rest = verdict.lines
    change = [
        f"{100 * end:+.1f}".replace("-", "−") for end in (verdict.change.value, verdict.change.low, verdict.change.high)
    ]
    assert gain.startswith(
        f"Use Auto: average set size {verdict.size:.2f}, compared with {verdict.baseline_size:.2f} for split APS "
        f"({change[0]} %, 95 % interval {change[1]} to {change[2]} %) and {verdict.plain.size:.2f} for split "
        "THR. Coverage is "
    )
    assert f"chance alone gives {100 * verdict.chance:.1f}." in gain
    assert (
        f"Coverage: {100 * verdict.coverage:.1f} % of the 1,800 evaluation nodes are covered (target 90 %; "
        in certainty
    )
    assert f"between {100 * verdict.band[0]:.1f} and {100 * verdict.band[1]:.1f} % in 95 of 100 cases)" in certainty
    assert certainty.endswith("Cost: 600 of the 1,200 labels are used only to set the level.")
    assert str(verdict) == "\n".join((gain, certainty, *rest))
    assert verdict.row()["lines"] == [gain, certainty, *rest]
    assert verdict.row()["change"]["value"] == verdict.change.value


def test_all_warnings_are_printed_and_a_withdrawn_promise_stands_first(ring_comparison: Comparison) -> None:
    few, alpha = (
        Finding("few labels", {"labels": 60, "low": 0.8, "high": 0.95}),
        Finding("alpha as coverage", {"alpha": 0.9}),
    )
    verdict = replace(ring_comparison.verdict(), findings=(few, alpha))
    assert [line.split(":")[0] for line in verdict.lines[-2:]] == ["Warning", "Warning"]
    assert "only 60 labels set the level" in verdict.lines[-2]
    assert "set `alpha=0.1`" in verdict.lines[-1]
    trained = Finding("trained on labels", {"labels": 7}, True, ("unseen labels",))
    withdrawn = replace(verdict, findings=(trained, few))
    assert withdrawn.lines[0].startswith("No promise of coverage can be made: the model was trained on 7 calibration")
    assert "only 60 labels" in withdrawn.lines[-1]


def test_each_surface_names_what_helps_in_its_own_words(ring_comparison: Comparison) -> None:
    sample = Finding("trained on labels", {"labels": 7}, True, ("sample",))
    alpha = Finding("alpha as coverage", {"alpha": 0.9})
    verdict = replace(ring_comparison.verdict(), findings=(sample, alpha))
    python, terminal = str(verdict), str(replace(verdict, surface="terminal"))
    for text in ("`calibration=`", "`evidence=`", "`alpha=0.1`"):
        assert text in python
        assert text not in terminal
    for text in ("`--labels`", "`--evidence`", "`--alpha 0.1`"):
        assert text in terminal
        assert text not in python


def test_the_smallest_sets_are_named_with_how_even_they_are(ring_comparison: Comparison) -> None:
    smallest = replace(ring_comparison.verdict(), smallest=None)
    assert not any("If small sets matter most" in line for line in smallest.lines)
    other = verdict.Alternative("thr", "Split THR", 1.1, LESS, 0.08, MORE)
    changed = replace(ring_comparison.verdict(), smallest=other, under=0.05)
    assert changed.lines[2] == (
        "If small sets matter most: split THR makes the smallest sets, average set size 1.10 (−20.0 %, 95 % interval "
        "−30.0 to −10.0 %); its coverage is less even (8.0 points short of the target per neighbourhood, compared with "
        "5.0)."
    )


def test_split_thr_is_in_every_comparison_and_named_where_it_is_smallest(ring_comparison: Comparison) -> None:
    assert "thr" in [result.name for result in ring_comparison]
    only = replace(ring_comparison, results=(ring_comparison.baseline, ring_comparison["thr"]))
    verdict = judge_methods(only)
    smaller = size_change(only, only["thr"]).below
    assert (verdict.method == "thr" or verdict.smallest is not None) == smaller


@pytest.mark.parametrize(
    ("ends", "word"),
    [
        ((-0.02, -0.03, -0.01), "more even"),
        ((0.02, 0.01, 0.03), "less even"),
        ((0, -1, 1), "not clearly more or less even"),
    ],
)
def test_evenness_is_claimed_only_where_it_is_clear(ring_comparison: Comparison, ends: Any, word: str) -> None:
    verdict = replace(ring_comparison.verdict(), evenness=Interval(*ends))
    assert f"Coverage is {word}" in verdict.gain


def test_no_theorem_no_promise(ring_comparison: Comparison) -> None:
    verdict = replace(ring_comparison.verdict(), proven=False)
    assert "No theorem guarantees it" in verdict.certainty


@pytest.mark.parametrize("name", ["auto", "split", "naps"])
def test_without_truth_it_says_what_is_expected_and_promised(name: str) -> None:
    world = make_ring(8, nodes=1500, labelled=500, edges=9000)
    calibrated = ns.make_method(name).calibrate(
        *(world[key] for key in ("graph", "probabilities", "labels", "calibration"))
    )
    sets = calibrated.predict(world["nodes"])
    verdict = foresee(
        calibrated, name, alpha=0.1, nodes=world["nodes"], size=ns.mean_size(sets), infinite=sets.infinite,
        outputs=world["probabilities"],
    )  # fmt: skip
    assert isinstance(verdict, Verdict)
    assert (verdict.judged, verdict.nodes, verdict.labels) == (0, 1000, 500)
    assert math.isnan(verdict.coverage)
    assert verdict.gain.count(f"average set size {ns.mean_size(sets):.2f} on 1,000 nodes") == 1
    if name == "auto":
        assert "which ignore the graph; it chose " in verdict.gain
    else:
        assert "no other method was tried" in verdict.gain
    low, high = coverage_band(249 if name == "auto" else 500, 0.1)
    plain = [name for name in ("split", "thr") if name != name_of(calibrated.method)]
    for other, size in zip(plain, (verdict.baseline_size, getattr(verdict.plain, "size", None)), strict=False):
        alone = ns.make_method(other).calibrate(
            *(world[key] for key in ("graph", "probabilities", "labels", "calibration"))
        )
        assert size == ns.mean_size(alone.predict(world["nodes"]))
        assert f"{size:.2f} for split {'THR' if other == 'thr' else 'APS'}" in verdict.gain
    promise = f"it lies between {100 * low:.1f} and {100 * high:.1f} % in 95 of 100 draws of labels"
    assert (promise in verdict.certainty) == (name != "naps")


# -- intervals ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def widths() -> Comparison:
    return compare_intervals(**make_numbers(), seed=4, alphas=CURVE_ALPHAS)


def test_the_verdict_says_widths(widths: Comparison) -> None:
    verdict = widths.verdict()
    assert verdict.prediction is ns.PredictionIntervals
    assert (verdict.method, verdict.baseline, verdict.infinite) == ("auto", "Split CQR", widths["auto"].infinite_rate)
    assert verdict.change == size_change(widths, widths["auto"])
    assert verdict.lines[0].startswith(
        f"Use Auto: average interval width {verdict.size:.3g}, compared with {verdict.baseline_size:.3g} for split CQR"
    )
    assert "in degree, prediction, confidence" in verdict.checked[-1]
    assert json.loads(json.dumps(verdict.row()))["lines"] == list(verdict.lines)


def test_widths_are_paired_where_both_are_finite(widths: Comparison) -> None:
    naps, split = widths["naps"], widths["split"]
    both = np.isfinite(naps.sizes)
    assert size_change(widths, naps).value == pytest.approx(naps.sizes[both].mean() / split.sizes[both].mean() - 1)
    verdict = replace(judge_methods(replace(widths, results=(split, naps))), kept=False)
    forced = replace(verdict, infinite=naps.infinite_rate, change=size_change(widths, naps))
    share = 100 * naps.infinite_rate
    assert f"where both are finite; {share:.1f} % of them are the whole line, compared with 0.0 %" in forced.gain


@pytest.mark.parametrize(
    ("width", "endless", "even", "taken"),
    [
        pytest.param(LESS, OPEN, OPEN, "naps", id="clearly narrower"),
        pytest.param(LESS, MORE, OPEN, "split", id="narrower, but the whole line more often"),
        pytest.param(OPEN, OPEN, LESS, "naps", id="more even and no wider"),
        pytest.param(OPEN, MORE, LESS, "split", id="more even, but the whole line more often"),
    ],
)
def test_the_whole_line_counts_as_wider(monkeypatch, widths, width, endless, even, taken) -> None:
    only = replace(widths, results=(widths["split"], widths["naps"]))
    replace_measure(monkeypatch, "size_change", lambda *_, **__: width)
    replace_measure(monkeypatch, "endless_change", lambda *_, **__: endless)
    replace_measure(monkeypatch, "evenness", lambda *_: even)
    assert judge_methods(only).method == taken


def test_evenness_is_that_of_the_gaps(widths: Comparison) -> None:
    over, gaps = gaps_of(widths)
    assert over == "degree"  # of neighbourhoods there are too few
    assert widths.verdict().evenness == evenness(gaps[4], gaps[0])
