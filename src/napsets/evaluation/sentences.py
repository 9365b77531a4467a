"""The sentences of verdicts: the method, what it gains, how certain that is, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from napsets.checks.text import percent
from napsets.evaluation.finding_sentences import remedy_text
from napsets.predictions import PredictionIntervals

if TYPE_CHECKING:
    from napsets.evaluation.gains import Interval
    from napsets.evaluation.verdict import Verdict

#: A width as it is written.
wide = PredictionIntervals.size_text


def lines(verdict: Verdict) -> tuple[str, ...]:
    """Return the verdict line by line: whether the promise is withdrawn, the method, how certain, and all warnings."""
    noun = verdict.prediction.noun
    withdrawn = [f"No promise of coverage can be made: {verdict.withdrawn}."] if verdict.withdrawn else []
    withdrawn += [f"What to do: {verdict.remedy}."] if verdict.remedy else []
    smaller = [f"If small {noun}s matter most: {verdict.smaller}."] if verdict.smaller else []
    others = [text for text in verdict.warnings if text != verdict.withdrawn]
    warnings = [f"Warning: {text}." for text in others]
    if not verdict.warnings:
        warnings = [f"Warnings: {verdict.first_warning}."]
    return (
        *withdrawn,
        f"{verdict.headline}: {verdict.gain}.",
        f"Coverage: {verdict.certainty}. Cost: {verdict.cost}.",
        *smaller,
        *warnings,
    )


def remedy(verdict: Verdict) -> str:
    """Return the remedy where other labels would restore the promise; empty where nothing is wrong with them."""
    return remedy_text(verdict, "sample") if any("sample" in finding.helps for finding in verdict.findings) else ""


def headline(verdict: Verdict) -> str:
    """Return the method, in two or three words."""
    if not verdict.judged:
        return f"{named(verdict.title, first=True)}{' (method chosen automatically)' * (verdict.choice is not None)}"
    return f"{'Keep' if verdict.kept else 'Use'} {named(verdict.title)}"


def gain(verdict: Verdict) -> str:
    """Describe the gain over the baseline, with intervals."""
    size = verdict.prediction.of_size(verdict.size)
    if not verdict.judged:
        return _expected(verdict, size)
    if verdict.kept:
        beaten = "no other method was compared" if not verdict.rivals else "no other method here is clearly better"
        return f"{size}; {beaten}"
    if verdict.change.value == verdict.change.low == verdict.change.high == 0.0:
        return f"the same {verdict.prediction.noun}s as {named(verdict.baseline)}: {size}"
    return f"{_beside(verdict, size)}{_aside(verdict)}{_evenly(verdict)}"


def certainty(verdict: Verdict) -> str:
    """Describe the certainty: coverage compared with chance, and the basis of the promise."""
    low, high = verdict.band
    band = f"{100 * low:.1f} and {100 * high:.1f} %"
    if not verdict.judged:
        measure = "" if verdict.withdrawn else f". {remedy_text(verdict, 'measure')}"
        return f"{_promised(verdict, band)}{measure}"
    backed = "" if verdict.proven else ". No theorem guarantees it for this method"
    if verdict.shifted:
        backed = f". What is guaranteed is {_of_population(verdict)}, not of these nodes"
    return (
        f"{100 * verdict.coverage:.1f} % of the {verdict.judged:,} evaluation nodes are covered (target "
        f"{100 * (1.0 - verdict.alpha):g} %; with other random labels it would lie between {band} in 95 of 100 cases)"
        f"{', which is less than chance usually explains' if verdict.coverage < low else ''}{backed}{_picked(verdict)}"
    )


def cost(verdict: Verdict) -> str:
    """Describe the labels that the method costs."""
    if verdict.evidence:
        setting = f"all {verdict.held_out:,} calibration labels set the level"
        return f"none; {verdict.evidence:,} labels are evidence, and {setting}"
    if verdict.held_out:
        return f"{verdict.held_out:,} of the {verdict.labels:,} labels are used only to set the level"
    return f"none; all {verdict.labels:,} labels set the threshold{'' if verdict.proven else 's'}"


def smaller(verdict: Verdict) -> str:
    """Describe the method with the smallest sets and its evenness; empty where none is clearly smaller."""
    other = verdict.smallest
    if other is None:
        return ""
    even = ""
    if not math.isnan(other.under) and not math.isnan(verdict.under):
        how = how_even(other.evenness, "not clearly less even")
        even = f"; its coverage is {how} ({100 * other.under:.1f} points short of the target per {_group(verdict)}, "
        even += f"compared with {100 * verdict.under:.1f})"
    size = verdict.prediction.of_size(other.size)
    return f"{named(other.title)} makes the smallest {verdict.prediction.noun}s, {size}{_ends(other.change)}{even}"


def _promised(verdict: Verdict, band: str) -> str:
    """Describe the promise for predictions that no truth judges."""
    if verdict.withdrawn:
        return (
            f"not known. {100 * (1.0 - verdict.alpha):g} % can be expected only if the {_sample(verdict)} nodes are a "
            f"random sample that the model was not trained on"
        )
    if verdict.shifted:
        return f"guaranteed to be {_of_population(verdict)}"
    if not verdict.proven:
        return "no theorem guarantees it for this method; it may be off where neighbours differ"
    drawn = "the calibration nodes were drawn" if verdict.evidence else "the nodes were labelled"
    if verdict.grouped:
        labels = f"{verdict.level_labels:,} labels set their levels"
        return f"guaranteed in each group with enough labels if {drawn} at random: {labels}"
    return (
        f"guaranteed if {drawn} at random: {verdict.level_labels:,} labels set the level, so it lies between {band} in "
        f"95 of 100 draws of labels"
    )


def _sample(verdict: Verdict) -> str:
    return "calibration" if verdict.evidence else "labelled"


def _of_population(verdict: Verdict) -> str:
    """Describe the promise for the population that importance weights describe."""
    return (
        f"at least {100 * (1.0 - verdict.alpha):g} % on average over the population that the importance weights "
        f"describe, as far as these are right"
    )


def _beside(verdict: Verdict, size: str) -> str:
    """Return a size next to those of the methods that ignore the graph, and by which share it differs."""
    plain = verdict.prediction.size_text(verdict.baseline_size)
    text = f"{size}, compared with {plain} for {named(verdict.baseline)}{_ends(verdict.change)}"
    if verdict.plain is None:
        return text
    return f"{text} and {verdict.prediction.size_text(verdict.plain.size)} for {named(verdict.plain.title)}"


def _aside(verdict: Verdict) -> str:
    """Describe the share of predictions without a finite size, which an average leaves out."""
    if not (verdict.infinite or verdict.baseline_infinite):
        return ""
    share, endless = percent(verdict.infinite or 0.0), verdict.prediction.endless
    if not verdict.judged:
        return f" ({share} of them are the {endless}, which is not counted in the average)"
    plain = percent(verdict.baseline_infinite or 0.0)
    return f" where both are finite; {share} of them are the {endless}, compared with {plain}"


def _group(verdict: Verdict) -> str:
    return "neighbourhood" if verdict.over == "neighbourhood" else "group by degree"


def _evenly(verdict: Verdict) -> str:
    if not verdict.groups or math.isnan(verdict.evenness.value):
        return ""
    how = how_even(verdict.evenness, "not clearly more or less even")
    plain = verdict.plain
    other = "" if plain is None else f", {named(plain.title)} {100 * plain.under:.1f}"
    return (
        f". Coverage is {how}: {100 * verdict.under:.1f} points short of the target per {_group(verdict)} on average, "
        f"compared with {100 * verdict.baseline_under:.1f}{_difference(verdict.evenness)}{other}; chance alone gives "
        f"{100 * verdict.chance:.1f}"
    )


def _picked(verdict: Verdict) -> str:
    if verdict.choice is not None:
        return ". It was chosen without the labels of these nodes"
    if verdict.rivals < 2 or verdict.kept:
        return ""
    return f". It was picked among {verdict.rivals + 1} methods on these nodes, which the intervals allow for"


def _expected(verdict: Verdict, size: str) -> str:
    """Describe the size of predictions that no truth judges, compared with methods that ignore the graph."""
    start = f"{size} on {verdict.nodes:,} nodes{_aside(verdict)}"
    if not math.isnan(verdict.baseline_size):
        start = f"{_beside(verdict, start)}, which {'ignore' if verdict.plain else 'ignores'} the graph"
    if verdict.grouped:
        larger = f"{verdict.prediction.noun}s are usually larger than without groups"
        return f"{start}; {larger}, because every group must meet the target"
    if verdict.choice is None:
        return f"{start}; no other method was tried ({remedy_text(verdict, 'compare')})"
    return f"{start}; it chose {verdict.choice}"


def named(title: str, *, first: bool = False) -> str:
    """Return the name of a method within a sentence, or at its start.

    Examples
    --------
    >>> named("Split APS"), named("Split APS", first=True), named("Split absolute"), named("Auto")
    ('split APS', 'Split APS', 'split conformal prediction with absolute residuals', 'Auto')
    """
    split, _, score = title.partition(" ")
    if split != "Split":
        return title
    plain = f"conformal prediction with {score} residuals" if score in ("absolute", "normalised") else score
    return f"{split if first else split.lower()} {plain}"


def how_even(evenness: Interval, otherwise: str) -> str:
    """Describe whether coverage is more or less even, as far as that is clear."""
    return "less even" if evenness.above else "more even" if evenness.below else otherwise


def _ends(change: Interval) -> str:
    """Return a change in percent, with its interval where it has one."""
    value, low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (change.value, change.low, change.high))
    return f" ({value} %)" if math.isnan(change.low) else f" ({value} %, 95 % interval {low} to {high} %)"


def _difference(change: Interval) -> str:
    """Return the interval of a difference in points, without its value: rounded numbers need not add up."""
    if math.isnan(change.low):
        return ""
    low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (change.low, change.high))
    return f" (95 % interval of the difference: {low} to {high})"


def compared_methods(whole_lines: Mapping[str, float]) -> str:
    """Return the methods whose widths are compared where all of them are finite, by their shares of whole lines.

    Examples
    --------
    >>> compared_methods({"NAPS": 0.2, "Split": 0.0}), compared_methods({"NAPS": 0.9, "Split": 0.0})
    ('all methods', 'all methods except NAPS')
    """
    endless = [title for title, share in whole_lines.items() if share > 0.5]
    left_out = endless if len(endless) < len(whole_lines) else []
    return "all methods" + (f" except {', '.join(left_out)}" if left_out else "")
