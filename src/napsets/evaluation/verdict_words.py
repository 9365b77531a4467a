"""The words of a verdict: what it recommends, how certain that is, and all warnings; and what a method promises.

One record makes the words of the report, of the demo and of `predict`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.checks.text import percent
from napsets.evaluation.gaps import WeakGroup
from napsets.evaluation.kinds import kind_of
from napsets.methods import Calibrated
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores.informed import evidence_of
from napsets.scores.informed_intervals import BoundInformedIntervals

#: A width as it is written.
wide = PredictionIntervals.size_text


@dataclass(frozen=True)
class Interval:
    """A value with the ends of its 95 % interval; NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def below(self) -> bool:
        """Whether it is less than 0, by more than chance."""
        return self.high < 0.0

    @property
    def above(self) -> bool:
        """Whether it is more than 0, by more than chance."""
        return self.low > 0.0


@dataclass(frozen=True)
class Alternative:
    """The method of the smallest sets, where they are clearly smaller than those of the method to use."""

    #: Its name in the table of methods, and what tables call it.
    method: str
    title: str
    size: float  #: The average size of its sets, or width of its intervals.
    change: Interval  #: By which share they are larger than those of the method to use; below 0.
    gap: float  #: How far its coverage is from 1 − alpha in a group, on average.
    evenness: Interval  #: `gap` less that of the method to use.


@dataclass(frozen=True, repr=False)
class Verdict:
    """Which method to use, and why."""

    #: Its name in the table of methods, and what tables call it.
    method: str
    title: str
    baseline: str  #: The title of what it is compared with, or what that is in words.
    alpha: float  #: Error rate.
    #: Nodes that were predicted, and those of them whose labels judged.
    nodes: int
    judged: int
    #: Labelled nodes that calibrated, those of them that set the level, and those that were held out for it.
    labels: int
    level_labels: int
    held_out: int
    #: The average number of labels in a set; of intervals, the average width where both methods' are finite.
    size: float
    baseline_size: float = math.nan
    #: By which share sets are larger, or intervals wider, than the baseline's; NaN where they are its own.
    change: Interval = field(default_factory=Interval)
    #: Over which kind of groups evenness was measured ("neighbourhood" or "degree"), how many groups there are, and
    #: which share of the judged nodes is in them.
    over: str = "neighbourhood"
    groups: int = 0
    inside: float = math.nan
    #: How far coverage is from 1 − alpha in a group, on average; the same of the baseline, and by chance.
    gap: float = math.nan
    baseline_gap: float = math.nan
    chance: float = math.nan
    evenness: Interval = field(default_factory=Interval)  #: `gap` less `baseline_gap`.
    coverage: float = math.nan  #: The share of judged nodes that are covered; NaN where none is judged.
    #: Where coverage lies in 95 of 100 draws if the method keeps its promise.
    band: tuple[float, float] = (math.nan, math.nan)
    #: Whether that promise is a theorem for nodes labelled at random, or for the population that importance weights
    #: describe.
    proven: bool = False
    shifted: bool = False
    rivals: int = 0  #: Methods among which it was picked by looking at the judged nodes; 0 where it was not.
    choice: str | None = None  #: What a method that chooses chose, and why.
    evidence: int = 0  #: Labels of any origin that taught, beside those that set the level.
    informed: bool = False  #: Whether the labels, or targets, of neighbours correct the model.
    withdrawn: str = ""  #: Why the promise does not hold for nodes without a label; empty where there is no reason.
    remedy: str = ""  #: What to do about it, where other labels would help.
    warnings: tuple[str, ...] = ()  #: What to watch for, the gravest first.
    looked_at: str = "number of labels, support"  #: What was checked for warnings.
    #: Classes and groups that are covered too little, by more than chance, the worst of each kind first.
    weak: tuple[WeakGroup, ...] = ()
    smallest: Alternative | None = None  #: The method of the smallest sets, where they are clearly smaller.
    grouped: bool = False  #: Whether coverage is to hold within groups.
    kept: bool = False  #: Whether the method is the baseline itself.
    #: Of intervals: the median width of all (+∞ where most are the whole line), the share that are the whole line, and
    #: that share of the baseline.
    median: float | None = None
    infinite: float | None = None
    baseline_infinite: float | None = None
    prediction: type[Prediction] = PredictionSets  #: What is predicted: `PredictionSets` or `PredictionIntervals`.

    @property
    def headline(self) -> str:
        """The method, in two or three words."""
        if not self.judged:
            return f"{named(self.title, first=True)}{'' if self.choice is None else ' (method chosen automatically)'}"
        return f"{'Keep' if self.kept else 'Use'} {named(self.title)}"

    @property
    def gain(self) -> str:
        """What it gains over the baseline, with intervals."""
        if not self.judged:
            return self._expected()
        if self.kept:
            beaten = "no other method was compared" if not self.rivals else "no other method here is clearly better"
            return f"{self.prediction.of_size(self.size)}; {beaten}"
        if self.change == Interval(0.0, 0.0, 0.0):
            return f"the same {self.prediction.noun}s as {named(self.baseline)}: {self.prediction.of_size(self.size)}"
        return f"{self._beside(self.prediction.of_size(self.size))}{self._aside()}{self._evenly()}"

    @property
    def certainty(self) -> str:
        """How certain that is: coverage compared with chance, and what the promise rests on."""
        low, high = self.band
        band = f"{100 * low:.1f} and {100 * high:.1f} %"
        if not self.judged:
            measure = "" if self.withdrawn else ". To measure it on half of your labels, run `napsets report`"
            return f"{self._promised(band)}{measure}"
        backed = "" if self.proven else ". No theorem guarantees it for this method"
        if self.shifted:
            backed = f". What is guaranteed is {self._of_population()}, not of these nodes"
        return (
            f"{100 * self.coverage:.1f} % of the {self.judged:,} evaluation nodes are covered (target "
            f"{100 * (1.0 - self.alpha):g} %; with other random labels it would lie between {band} in 95 of 100 cases)"
            f"{', which is less than chance usually explains' if self.coverage < low else ''}{backed}{self._picked()}"
        )

    @property
    def cost(self) -> str:
        """What it costs."""
        if self.evidence:
            setting = f"all {self.held_out:,} calibration labels set the level"
            return f"none; {self.evidence:,} labels are evidence, and {setting}"
        if self.held_out:
            return f"{self.held_out:,} of the {self.labels:,} labels are used only to set the level"
        return f"none; all {self.labels:,} labels set the threshold{'' if self.proven else 's'}"

    @property
    def first_warning(self) -> str:
        """The warning that matters most, or that there is none."""
        return self.warnings[0] if self.warnings else f"none (checked: {self.looked_at})"

    @property
    def smaller(self) -> str:
        """Which method makes smaller sets, and how even it is; empty where none is clearly smaller."""
        other = self.smallest
        if other is None:
            return ""
        size = self.prediction.of_size(other.size)
        even = ""
        if not math.isnan(other.gap) and not math.isnan(self.gap):
            how = _how_even(other.evenness, "not clearly less even")
            even = f"; its coverage is {how} ({100 * other.gap:.1f} points off the target per {self._group}, compared "
            even += f"with {100 * self.gap:.1f})"
        change = _ends(other.change)
        return f"{named(other.title)} makes the smallest {self.prediction.noun}s, {size}{change}{even}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict line by line: whether the promise is withdrawn, the method, how certain, and all warnings."""
        withdrawn = [f"No promise of coverage can be made: {self.withdrawn}."] if self.withdrawn else []
        withdrawn += [f"What to do: {self.remedy}."] if self.remedy else []
        smaller = [f"If small {self.prediction.noun}s matter most: {self.smaller}."] if self.smaller else []
        others = [text for text in self.warnings if text != self.withdrawn]
        warnings = [f"Warning: {text}." for text in others]
        if not self.warnings:
            warnings = [f"Warnings: {self.first_warning}."]
        return (
            *withdrawn,
            f"{self.headline}: {self.gain}.",
            f"Coverage: {self.certainty}. Cost: {self.cost}.",
            *smaller,
            *warnings,
        )

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def row(self) -> dict[str, Any]:
        """Return plain values, for JSON; those that only intervals have stand there for intervals alone."""
        values = {"apart" if name == "held_out" else name: value for name, value in asdict(self).items()}
        del values["prediction"]
        for name in ("median", "infinite", "baseline_infinite"):
            if values[name] is None:
                del values[name]
        for name in ("shifted", "evidence", "remedy"):  # what few verdicts have
            if not values[name]:
                del values[name]
        return values | {"lines": list(self.lines)}

    def _promised(self, band: str) -> str:
        """Return what is promised of predictions that no truth judges."""
        if self.withdrawn:
            return (
                f"not known. {100 * (1.0 - self.alpha):g} % can be expected only if the {self._sample} nodes are a "
                f"random sample that the model was not trained on"
            )
        if self.shifted:
            return f"guaranteed to be {self._of_population()}"
        if not self.proven:
            return "no theorem guarantees it for this method; it may be off where neighbours differ"
        if self.grouped:
            labels = f"{self.level_labels:,} labels set their levels"
            return f"guaranteed in each group with enough labels if {self._drawn} at random: {labels}"
        return (
            f"guaranteed if {self._drawn} at random: {self.level_labels:,} labels set the level, so it lies between "
            f"{band} in 95 of 100 cases"
        )

    @property
    def _sample(self) -> str:
        return "calibration" if self.evidence else "labelled"

    @property
    def _drawn(self) -> str:
        return "the calibration nodes were drawn" if self.evidence else "the nodes were labelled"

    def _of_population(self) -> str:
        """Return what is promised of the population that importance weights describe."""
        return (
            f"at least {100 * (1.0 - self.alpha):g} % on average over the population that the importance weights "
            f"describe, as far as these are right"
        )

    def _beside(self, size: str) -> str:
        """Return a size next to that of the baseline, and by which share it differs."""
        plain = self.prediction.size_text(self.baseline_size)
        return f"{size}, compared with {plain} for {named(self.baseline)}{_ends(self.change)}"

    def _aside(self) -> str:
        """Return what an average size does not say: how many have no finite one."""
        if not (self.infinite or self.baseline_infinite):
            return ""
        share, endless = percent(self.infinite or 0.0), self.prediction.endless
        if not self.judged:
            return f" ({share} of them are the {endless}, which is not counted in the average)"
        plain = percent(self.baseline_infinite or 0.0)
        return f" where both are finite; {share} of them are the {endless}, compared with {plain}"

    @property
    def _group(self) -> str:
        return "neighbourhood" if self.over == "neighbourhood" else "group by degree"

    def _evenly(self) -> str:
        if not self.groups or math.isnan(self.evenness.value):
            return ""
        how = _how_even(self.evenness, "not clearly more or less even")
        return (
            f". Coverage is {how}: {100 * self.gap:.1f} points off the target per {self._group} on average, compared "
            f"with {100 * self.baseline_gap:.1f}{_difference(self.evenness)}; chance alone gives "
            f"{100 * self.chance:.1f}"
        )

    def _picked(self) -> str:
        if self.choice is not None:
            return ". It was chosen without the labels of these nodes"
        if self.rivals < 2 or self.kept:
            return ""
        return f". It was picked among {self.rivals + 1} methods on these nodes, which the intervals allow for"

    def _expected(self) -> str:
        start = f"{self.prediction.of_size(self.size)} on {self.nodes:,} nodes{self._aside()}"
        if self.grouped:
            larger = f"{self.prediction.noun}s are usually larger than without groups"
            return f"{start}; {larger}, because every group must meet the target"
        if self.choice is None:
            return f"{start}; no other method was tried ({kind_of(self.prediction).adviser})"
        if math.isnan(self.change.value):
            return f"{start}; it chose {self.choice}"
        expected = self.prediction.size_text((1.0 + self.change.value) * self.baseline_size)
        return f"{start}. Before looking at these nodes, {self._beside(f'{expected} was expected')}"


def named(title: str, *, first: bool = False) -> str:
    """Return what a method is called within a sentence, or first in it.

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


def _how_even(evenness: Interval, otherwise: str) -> str:
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


def whose_finite(whole_lines: Mapping[str, float]) -> str:
    """Return the methods whose widths are compared where all of them are finite, by their shares of whole lines.

    Examples
    --------
    >>> whose_finite({"NAPS": 0.2, "Split": 0.0}), whose_finite({"NAPS": 0.9, "Split": 0.0})
    ('all methods', 'all methods except NAPS')
    """
    endless = [title for title, share in whole_lines.items() if share > 0.5]
    left_out = endless if len(endless) < len(whole_lines) else []
    return "all methods" + (f" except {', '.join(left_out)}" if left_out else "")


# -- what a calibrated method promises ---------------------------------------------------------------------------------


def level_labels(calibrated: Calibrated) -> int:
    """Return how many labels set the level: those held out, or all where none is."""
    scored = calibrated.scored
    return int(scored.level_nodes.size if calibrated.is_exact else scored.calibration.size)


def level_nodes(calibrated: Calibrated) -> tuple[IntArray, npt.NDArray[Any]]:
    """Return the nodes whose labels set the level, and their truth; none where a file did not keep the truth."""
    scored = calibrated.scored
    if calibrated.is_exact:
        nodes, truth = scored.level_nodes, scored.level_labels
    else:
        nodes, truth = scored.reference.nodes, scored.labels
    return nodes[: truth.size], truth


def is_proven(calibrated: Calibrated) -> bool:
    """Return whether coverage is a theorem for nodes labelled at random: an exact level, or weights that need none."""
    return calibrated.is_exact or bool(getattr(calibrated.method.localiser, "proven", False))


def promise_of(calibrated: Calibrated) -> dict[str, Any]:
    """Return what a verdict says of a method, whatever it predicted, by the names of its fields."""
    scored, bound, choice = calibrated.scored, calibrated.score, calibrated.choice
    return {
        "labels": int(scored.calibration.size),
        "level_labels": level_labels(calibrated),
        "held_out": int(scored.level_nodes.size),
        "evidence": int(scored.reference.nodes.size) if scored.evidence else 0,
        "informed": isinstance(bound, BoundInformedIntervals) or evidence_of(bound) is not None,
        "proven": is_proven(calibrated),
        "shifted": not calibrated.is_exact and bool(getattr(calibrated.method.localiser, "shifted", False)),
        "choice": None if choice is None else str(choice),
        "prediction": calibrated.prediction,
    }
