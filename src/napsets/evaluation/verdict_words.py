"""The words of a verdict: numbers in sentences, always the same three lines.

One record makes the words of the report, of the demo and of `predict`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from napsets.evaluation.gains import Interval

__all__ = ["IntervalVerdict", "Verdict", "whose_finite", "wide"]


@dataclass(frozen=True)
class Verdict:
    """Which method to take, and what speaks for it.

    Attributes
    ----------
    method, title : str
        Its name in the table of methods, and what tables call it.
    baseline : str
        The title of what it is compared with, or what that is in words.
    kept : bool
        Whether it is the baseline itself.
    alpha : float
        Error rate.
    nodes, judged : int
        Nodes with sets, and those of them whose labels judged.
    labels, level_labels : int
        Labelled nodes that calibrated, and those of them that set the level.
    apart : int
        Labels that were kept apart and did nothing else.
    size, baseline_size : float
        Labels in a set, on average.
    change : Interval
        By which share sets are larger than the baseline's; NaN where they are its own.
    over : {"neighbourhood", "degree"}
        Over which kind of groups evenness was looked at.
    groups : int
        How many groups there are.
    inside : float
        Which share of the judged nodes is in them.
    gap, baseline_gap, chance : float
        How far coverage is from 1 − alpha in a group, on average; the same of the baseline, and by chance.
    evenness : Interval
        `gap` less `baseline_gap`.
    coverage : float
        The share of judged nodes that are covered; NaN where none is judged.
    band : (float, float)
        Where coverage lies in 95 of 100 draws if the method keeps its promise.
    proven : bool
        Whether that promise is a theorem for labels gathered at random.
    rivals : int
        Methods among which it was picked by looking at the judged nodes; 0 where it was not.
    choice : str or None
        What a method that chooses chose, and why.
    warnings : tuple of str
        What to mind, the gravest first.
    looked_at : str
        What was looked at for warnings.
    """

    method: str
    title: str
    baseline: str
    alpha: float
    nodes: int
    judged: int
    labels: int
    level_labels: int
    apart: int
    size: float
    baseline_size: float = math.nan
    change: Interval = field(default_factory=Interval)
    over: str = "neighbourhood"
    groups: int = 0
    inside: float = math.nan
    gap: float = math.nan
    baseline_gap: float = math.nan
    chance: float = math.nan
    evenness: Interval = field(default_factory=Interval)
    coverage: float = math.nan
    band: tuple[float, float] = (math.nan, math.nan)
    proven: bool = False
    rivals: int = 0
    choice: str | None = None
    warnings: tuple[str, ...] = ()
    looked_at: str = "labels and support"
    kept: bool = False

    @property
    def headline(self) -> str:
        """The method, in two or three words."""
        if not self.judged:
            return f"{self.title}, as asked for" if self.choice is None else f"{self.title}, by its own choice"
        return f"Keep {self.title}" if self.kept else f"Take {self.title}"

    @property
    def buys(self) -> str:
        """What it buys beside the baseline, with intervals."""
        if not self.judged:
            return self._expected()
        if self.kept:
            beaten = "it is all that was looked at" if not self.rivals else "no other method here is clearly better"
            return f"{self._sized()}; {beaten}"
        if self.change == Interval(0.0, 0.0, 0.0):
            return self._same()
        told = f"{self._sized()} against {self._amount(self.baseline_size)} of {self.baseline}"
        return f"{told}{_ends(self.change, 100.0, ' %')}{self._aside()}{self._evenly()}"

    @property
    def sure(self) -> str:
        """How sure that is: coverage beside chance, and what the promise rests on."""
        asked, (low, high) = 1.0 - self.alpha, self.band
        draws = f"{100 * low:.1f} to {100 * high:.1f} % in 95 of 100 draws"
        if not self.judged:
            promise = (
                f"proven where labels were gathered at random: with the {self.level_labels:,} labels that set the "
                f"level, coverage is {draws} of them"
                if self.proven
                else "no theorem promises its coverage, which may stray where neighbours differ"
            )
            return f"{promise}. No truth judges these nodes; `napsets report` judges methods on half of the labels"
        backed = "" if self.proven else "; no theorem promises it"
        return (
            f"{100 * self.coverage:.1f} % of {self.judged:,} judged nodes are covered; {100 * asked:g} % were asked "
            f"for, and chance gives {draws}{backed}{self._picked()}"
        )

    @property
    def cost(self) -> str:
        """What it costs."""
        if self.apart:
            return f"{self.apart:,} of {self.labels:,} labels only set the level"
        return f"all {self.labels:,} labels make thresholds, none is kept apart"

    @property
    def mind(self) -> str:
        """The warning that matters most, or that there is none."""
        return self.warnings[0] if self.warnings else f"nothing found; {self.looked_at} were looked at"

    @property
    def lines(self) -> tuple[str, str, str]:
        """The verdict in three lines."""
        more = len(self.warnings) - 1
        others = f" ({more} more warning{'s' * (more > 1)})" if more > 0 else ""
        return (
            f"{self.headline}: {self.buys}.",
            f"How sure: {self.sure}. Cost: {self.cost}.",
            f"Mind: {self.mind}{others}.",
        )

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def row(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"lines": list(self.lines)}

    def _amount(self, size: float) -> str:
        """Return a size as it is written."""
        return f"{size:.2f}"

    def _sized(self) -> str:
        """Return what is made, and how large."""
        return f"sets of {self._amount(self.size)} labels"

    def _same(self) -> str:
        return f"the same sets as {self.baseline}, of {self._amount(self.size)} labels"

    def _aside(self) -> str:
        """Return what a mean size does not say."""
        return ""

    def _evenly(self) -> str:
        if not self.groups or math.isnan(self.evenness.value):
            return ""
        how = "as even, as far as can be told"
        if self.evenness.below or self.evenness.above:
            how = "more even" if self.evenness.below else "less even"
        where = "in a neighbourhood" if self.over == "neighbourhood" else "in a group by degree"
        return (
            f", and coverage {how}: {100 * self.gap:.1f} points off {where} against "
            f"{100 * self.baseline_gap:.1f}{_ends(self.evenness, 100.0, '')}, where chance alone gives "
            f"{100 * self.chance:.1f}"
        )

    def _picked(self) -> str:
        if self.choice is not None:
            return ". It chose without their labels"
        if self.rivals < 2 or self.kept:
            return ""
        return f". It was picked among {self.rivals + 1} by these labels, which the intervals allow for"

    def _adviser(self) -> str:
        return "`napsets recommend` tries methods on these labels"

    def _expected(self) -> str:
        told = f"{self._sized()} for {self.nodes:,} nodes{self._aside()}"
        if self.choice is None:
            return f"{told}; nothing was compared, and {self._adviser()}"
        if math.isnan(self.change.value):
            return f"{told}; it chose {self.choice}"
        expected = (1.0 + self.change.value) * self.baseline_size
        beside = f"{self._amount(expected)} expected against {self._amount(self.baseline_size)} of {self.baseline}"
        return f"{told}; {beside}{_ends(self.change, 100.0, ' %')}"


def _ends(found: Interval, scale: float, unit: str) -> str:
    value, low, high = (f"{scale * end:+.1f}".replace("-", "−") for end in (found.value, found.low, found.high))
    if math.isnan(found.low):
        return f" ({value}{unit})"
    return f" ({value}{unit}, 95 % interval {low} to {high}{unit})"


@dataclass(frozen=True)
class IntervalVerdict(Verdict):
    """A verdict on intervals: sizes are widths, on the nodes where both methods' intervals are finite.

    Attributes
    ----------
    median : float
        The median width of all intervals, +∞ where most are the whole line.
    infinite, baseline_infinite : float
        The share of intervals that are the whole line, and the same of the baseline.
    """

    median: float = math.nan
    infinite: float = 0.0
    baseline_infinite: float = 0.0

    def _amount(self, size: float) -> str:
        return wide(size)

    def _sized(self) -> str:
        return "no interval is finite" if math.isnan(self.size) else f"intervals {wide(self.size)} wide"

    def _adviser(self) -> str:
        return "`napsets report --task regression` compares methods on half of the targets"

    def _same(self) -> str:
        return f"the same intervals as {self.baseline}, {wide(self.size)} wide"

    def _aside(self) -> str:
        if not (self.infinite or self.baseline_infinite):
            return ""
        if not self.judged:
            return f", {_share(self.infinite)} of them the whole line, whose width is not counted"
        told = f" where both are finite; {_share(self.infinite)} of them are the whole line against"
        return f"{told} {_share(self.baseline_infinite)}"


def whose_finite(whole_lines: Mapping[str, float]) -> str:
    """Return the methods whose widths are compared where all of them are finite, by their shares of whole lines.

    Examples
    --------
    >>> whose_finite({"NAPS": 0.2, "Split": 0.0}), whose_finite({"NAPS": 1.0, "Split": 0.0})
    ('all methods', 'all methods but NAPS')
    """
    endless = [title for title, share in whole_lines.items() if share == 1.0]
    left_out = endless if len(endless) < len(whole_lines) else []
    return "all methods" + (f" but {', '.join(left_out)}" if left_out else "")


def wide(width: float) -> str:
    """Return a width as it is written: three digits, or all before the point.

    Examples
    --------
    >>> wide(4.7812), wide(0.00123), wide(12345.6), wide(math.inf), wide(math.nan)
    ('4.78', '0.00123', '12,346', '∞', '–')
    """
    if math.isnan(width):
        return "–"
    if math.isinf(width):
        return "∞"
    return f"{width:,.0f}" if abs(width) >= 1000 else f"{width:.3g}"


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
