"""The verdict: which method to take, what it buys, how sure that is, what it costs, and what to mind.

One record makes the words of the report, of the demo and of `predict`, always in three lines.

*What it buys* is compared with the first method on the same nodes. The change of size is a ratio of means; its variance
is that of the nodes, by linearisation, and that of the labels: another draw of them would move coverage as the Beta law
says, and sizes along each method's curve of size against coverage. Evenness is the mean distance of coverage from
1 − alpha over neighbourhoods (or, where there are not two, fifths by degree), paired by group, with Student's law; what
chance alone gives is the same for all methods and cancels. Intervals are 95 % ones. Where a method is picked because it
did best on the judged nodes, they hold for all methods together (Bonferroni), so that picking cannot flatter it.

*How sure* is coverage beside the band in which it lies in 95 of 100 draws if the method keeps its promise: with n
labels that set the level, of which the k-th smallest does, k = ⌈(n+1)(1−α)⌉, the hits among m judged nodes follow the
beta-binomial law of k and n + 1 − k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.evaluation.drift import Drift, drifts
from napsets.evaluation.gaps import CoverageGap
from napsets.levels import fewest_ranks, rank_place

if TYPE_CHECKING:
    from napsets.evaluation.comparison import Comparison, MethodResult
    from napsets.graph import Graph
    from napsets.methods import Calibrated

__all__ = ["Interval", "Verdict", "coverage_band", "falls_short", "foresee", "gaps_of", "judge_methods", "warnings_on"]

#: How often an interval misses.
_MISS = 0.05
#: A method is said to fall short where chance would make it cover so little less often than this.
_SHORT = 0.001
#: A smaller share of nodes without a threshold of their own is not worth a word.
_WORTH_SAYING = 0.1
#: Drift of this size is graver than few labels or little support.
_GRAVE = 0.2
#: Labels are few where another draw of them could cost this much coverage.
_FEW = 0.05
#: Of more judged nodes the beta-binomial law is a Beta law to all digits that are shown.
_MANY = 1_000_000


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
            return f"sets of {self.size:.2f} labels; {beaten}"
        if self.change == Interval(0.0, 0.0, 0.0):
            return f"the same sets as {self.baseline}, of {self.size:.2f} labels"
        told = f"sets of {self.size:.2f} labels against {self.baseline_size:.2f} of {self.baseline}"
        return f"{told}{_ends(self.change, 100.0, ' %')}{self._evenly()}"

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

    def _expected(self) -> str:
        told = f"sets of {self.size:.2f} labels for {self.nodes:,} nodes"
        if self.choice is None:
            return f"{told}; nothing was compared, and `napsets recommend` tries methods on these labels"
        if math.isnan(self.change.value):
            return f"{told}; it chose {self.choice}"
        expected = (1.0 + self.change.value) * self.baseline_size
        beside = f"{expected:.2f} expected against {self.baseline_size:.2f} of {self.baseline}"
        return f"{told}; {beside}{_ends(self.change, 100.0, ' %')}"


def _ends(found: Interval, scale: float, unit: str) -> str:
    value, low, high = (f"{scale * end:+.1f}".replace("-", "−") for end in (found.value, found.low, found.high))
    if math.isnan(found.low):
        return f" ({value}{unit})"
    return f" ({value}{unit}, 95 % interval {low} to {high}{unit})"


# -- coverage beside chance --------------------------------------------------------------------------------------------


def coverage_band(labels: int, alpha: float, judged: int | None = None, share: float = 0.95) -> tuple[float, float]:
    """Return where coverage lies in that share of draws, if a method is exact: the Beta or beta-binomial law.

    Parameters
    ----------
    labels : int
        Labels that set the level.
    alpha : float
        Error rate.
    judged : int, optional
        Nodes on which coverage is counted; without, the coverage of infinitely many.
    share : float
        How much of the law the band holds, as much below it as above.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_band(1000, 0.1)]
    [0.881, 0.918]
    >>> [round(end, 3) for end in coverage_band(1000, 0.1, judged=500)]
    [0.866, 0.93]
    """
    from scipy.special import betaincinv

    if rank_place(labels, alpha) > labels:  # thresholds are infinite
        return 1.0, 1.0
    tails = 0.5 * (1.0 - share), 0.5 * (1.0 + share)
    if judged is None or judged > _MANY:
        shape = _beta_law(labels, alpha, judged)
        low, high = (float(betaincinv(*shape, tail)) for tail in tails)
        return low, high
    below = _hits_law(labels, alpha, judged)
    low, high = (min(int(np.searchsorted(below, tail)), judged) / judged for tail in tails)
    return low, high


def falls_short(hits: int, judged: int, labels: int, alpha: float) -> float:
    """Return how often an exact method would cover so few of the judged nodes, or fewer."""
    from scipy.special import betainc

    if rank_place(labels, alpha) > labels:
        return float(hits >= judged)
    if judged > _MANY:
        return float(betainc(*_beta_law(labels, alpha, judged), hits / judged))
    return float(_hits_law(labels, alpha, judged)[hits])


def _beta_law(labels: int, alpha: float, judged: int | None) -> tuple[float, float]:
    """Return the law of coverage: exact of infinitely many nodes; of many, the one of the same mean and variance."""
    a = rank_place(labels, alpha)
    total = labels + 1.0
    if judged is not None:  # of a beta-binomial share the variance is m(1−m)(n+1+judged)/(judged·(n+2)), with n labels
        total = judged * (total + 1.0) / (total + judged) - 1.0
    mean = a / (labels + 1)
    return mean * total, (1.0 - mean) * total


def _hits_law(labels: int, alpha: float, judged: int) -> FloatArray:
    """Return P(hits ≤ each of 0..judged): the beta-binomial law."""
    from scipy.special import betaln, gammaln

    a = rank_place(labels, alpha)
    b = labels + 1 - a
    hits = np.arange(judged + 1)
    ways = gammaln(judged + 1) - gammaln(hits + 1) - gammaln(judged - hits + 1)
    found: FloatArray = np.cumsum(np.exp(ways + betaln(hits + a, judged - hits + b) - betaln(a, b)))
    return found


# -- what a method buys ------------------------------------------------------------------------------------------------


def size_change(found: Comparison, result: MethodResult, miss: float = _MISS) -> Interval:
    """Return by which share a method's sets are larger than the baseline's on the same nodes."""
    from scipy.special import ndtri

    plain = found.baseline
    if np.array_equal(result.sets.member, plain.sets.member):
        return Interval(0.0, 0.0, 0.0)
    ratio = result.mean_size / plain.mean_size if plain.mean_size > 0 else math.nan
    sizes, others = result.sets.sizes.astype(np.float64), plain.sets.sizes
    if sizes.size < 2 or math.isnan(ratio):
        return Interval(ratio - 1.0)
    rest = (sizes - ratio * others) / plain.mean_size
    variance = float(rest.var(ddof=1)) / rest.size
    # Another draw of labels moves both; as if by themselves, which is on the safe side where they share labels.
    variance += _of_labels(found, result) / plain.mean_size**2
    variance += _of_labels(found, plain) * (ratio / plain.mean_size) ** 2
    half = -float(ndtri(miss / 2)) * math.sqrt(variance)
    return Interval(ratio - 1.0, ratio - 1.0 - half, ratio - 1.0 + half)


def _of_labels(found: Comparison, result: MethodResult) -> float:
    """Return the variance of a mean size over draws of labels: that of coverage, times the slope of size squared."""
    rates = np.array(found.alphas)
    if rates.size < 2:
        return 0.0
    near = np.sort(np.argsort(np.abs(rates - found.alpha), kind="stable")[:3])
    coverage, size = result.curve_coverage[near], result.curve_size[near]
    spread = coverage - coverage.mean()
    if not (spread**2).sum():
        return 0.0
    slope = float((spread * size).sum() / (spread**2).sum())
    count = _level_labels(result.calibrated)
    place = min(rank_place(count, found.alpha), count)
    mean = place / (count + 1)
    return slope**2 * mean * (1 - mean) / (count + 2)


def evenness(gap: CoverageGap, other: CoverageGap, miss: float = _MISS) -> Interval:
    """Return by how much coverage in a group is further from 1 − alpha than another's, paired by group."""
    from scipy.special import stdtrit

    target = 1.0 - gap.alpha
    apart = np.abs(gap.coverage - target) - np.abs(other.coverage - target)
    if apart.size < 2:
        return Interval(float(apart.mean()) if apart.size else math.nan)
    half = -float(stdtrit(apart.size - 1, miss / 2)) * float(apart.std(ddof=1)) / math.sqrt(apart.size)
    return Interval(float(apart.mean()), float(apart.mean()) - half, float(apart.mean()) + half)


def gaps_of(found: Comparison) -> tuple[str, list[CoverageGap]]:
    """Return over which groups evenness is looked at, and each method's coverage in them.

    They are the comparison's neighbourhoods, or fifths by degree where there are not two neighbourhoods to compare.
    """
    over = "neighbourhood" if len(found.partition) > 1 else "degree"
    return over, [result.gaps[over] for result in found]


# -- the verdict -------------------------------------------------------------------------------------------------------


def judge_methods(found: Comparison, *, class_names: Sequence[str] | None = None) -> Verdict:
    """Return the verdict on a comparison.

    The method is the first that chooses by itself, because it did so without the labels that judge, unless it covers
    too little or is clearly worse than the baseline. Otherwise it is the one with the smallest sets among those that
    cover, are not clearly less even than the baseline and are clearly smaller; then the most even one, if that is
    clear; then the baseline.

    Parameters
    ----------
    found : Comparison
        What `compare` returned; the first method is the baseline.
    class_names : sequence of str, optional
        What classes are called.
    """
    over, gaps = gaps_of(found)
    looks = _drifts(found, class_names)
    picked, best = _pick(found, gaps)
    result, gap = found.results[best], gaps[best]
    miss = _MISS / max(picked, 1)
    other = best > 0
    worth = warnings_on(
        result.calibrated, found.alpha, infinite=result.infinite, nodes=result.nodes, looks=looks, hits=_hits(result)
    )
    count = _level_labels(result.calibrated)
    choice = result.calibrated.choice
    return Verdict(
        method=result.name,
        title=result.title,
        baseline=found.baseline.title,
        alpha=found.alpha,
        nodes=result.nodes,
        judged=result.nodes,
        labels=int(found.given.calibration.size),
        level_labels=count,
        apart=int(result.calibrated.scored.apart.size),
        size=result.mean_size,
        baseline_size=found.baseline.mean_size,
        change=size_change(found, result, miss) if other else Interval(),
        over=over,
        groups=int(gap.groups.size),
        inside=gap.share,
        gap=gap.gap,
        baseline_gap=gaps[0].gap,
        chance=gap.chance,
        evenness=evenness(gap, gaps[0], miss) if other else Interval(),
        coverage=result.coverage,
        band=coverage_band(count, found.alpha, result.nodes),
        proven=is_proven(result.calibrated),
        rivals=picked,
        choice=None if choice is None else str(choice),
        warnings=tuple(worth),
        looked_at=_looked_at(looks),
        kept=not other,
    )


def _pick(found: Comparison, gaps: Sequence[CoverageGap]) -> tuple[int, int]:
    """Return among how many rivals the judged labels picked (0 where they did not), and the place of the method."""
    places = range(len(found.results))
    covers = [m for m in places if not _is_short(found.results[m], found.alpha)]
    for m in covers:
        if found.results[m].calibrated.choice is not None:
            worse = size_change(found, found.results[m]).above and not evenness(gaps[m], gaps[0]).below
            if m == 0 or not worse:
                return 0, m
    rivals = len(found.results) - 1
    if covers and 0 not in covers:
        return rivals, min(covers, key=lambda m: found.results[m].mean_size)
    miss = _MISS / max(rivals, 1)
    others = [m for m in covers if m > 0]
    size = {m: size_change(found, found.results[m], miss) for m in others}
    even = {m: evenness(gaps[m], gaps[0], miss) for m in others}
    smaller = [m for m in others if size[m].below and not even[m].above]
    if smaller:
        return rivals, min(smaller, key=lambda m: found.results[m].mean_size)
    evener = [m for m in others if even[m].below and not size[m].above]
    return rivals, min(evener, key=lambda m: gaps[m].gap, default=0)


def _is_short(result: MethodResult, alpha: float) -> bool:
    return falls_short(_hits(result), result.nodes, _level_labels(result.calibrated), alpha) < _SHORT


def _hits(result: MethodResult) -> int:
    return round(result.coverage * result.nodes)


def _level_labels(calibrated: Calibrated) -> int:
    """Return how many labels set the level: those kept apart, or all where none is."""
    scored = calibrated.scored
    return int(scored.apart.size if calibrated.is_exact else scored.calibration.size)


def is_proven(calibrated: Calibrated) -> bool:
    """Return whether coverage is a theorem for labels gathered at random: an exact level, or weights that need none."""
    return calibrated.is_exact or bool(getattr(calibrated.method.localiser, "proven", False))


def _drifts(found: Comparison, class_names: Sequence[str] | None) -> tuple[Drift, ...]:
    """Compare who calibrates with who is judged, and who has a label with who has none."""
    predicted = predicted_classes(found.given.outputs)
    calibration, judged = found.given.calibration, found.baseline.sets.nodes
    looks = drifts(
        found.graph, predicted, calibration, judged, between=("calibrating", "judged"), class_names=class_names
    )
    labelled, rest = np.union1d(calibration, judged), np.flatnonzero(found.labels < 0)
    rest = np.setdiff1d(rest, labelled, assume_unique=True)
    names = ("labelled", "unlabelled")
    return looks + drifts(found.graph, predicted, labelled, rest, between=names, class_names=class_names)


def predicted_classes(outputs: Any, piece: int = 1 << 18) -> IntArray:
    """Return the most probable class of each node, some nodes at a time."""
    found = np.empty(outputs.shape[0], dtype=np.int64)
    for start in range(0, found.size, piece):
        found[start : start + piece] = outputs[start : start + piece].argmax(axis=1)
    return found


def warnings_on(
    calibrated: Calibrated,
    alpha: float,
    *,
    infinite: int,
    nodes: int,
    looks: Sequence[Drift] = (),
    hits: int | None = None,
) -> list[str]:
    """Return what to mind about a method, the gravest first.

    Parameters
    ----------
    calibrated : Calibrated
        The method.
    alpha : float
        Error rate.
    infinite, nodes : int
        Nodes that lack support, of so many.
    looks : sequence of Drift
        Differences between labelled nodes and others that were looked at.
    hits : int, optional
        Nodes that are covered, where all were judged.
    """
    count, told = _level_labels(calibrated), []
    if hits is not None and falls_short(hits, nodes, count, alpha) < _SHORT:
        told.append(
            f"it covers {100 * hits / nodes:.1f} % where {100 * (1 - alpha):g} % were asked for, less than chance "
            f"explains; labels and judged nodes may differ"
        )
    large = sorted((look for look in looks if look.matters(len(looks))), key=lambda look: -look.distance)
    drifted = [f"{look}; coverage may differ there" for look in large]
    grave = sum(look.distance >= _GRAVE for look in large)
    few, too_few = _on_labels(count, alpha)
    share = infinite / max(nodes, 1)
    told_short = f"{infinite:,} of {nodes:,} nodes ({100 * share:.0f} %) get every label"
    short = [f"{told_short}, because too few labelled nodes are near"]
    return [
        *told,
        *too_few,
        *drifted[:grave],
        *(short if share >= _WORTH_SAYING and not too_few else []),
        *few,
        *drifted[grave:],
    ]


def _on_labels(count: int, alpha: float) -> tuple[list[str], list[str]]:
    """Return what to say where labels are few, and where they are too few for any threshold."""
    needed = fewest_ranks(alpha)
    if count < needed:
        told = f"{count:,} labels are too few to set a level at alpha = {alpha:g}, which takes {needed:,}"
        return [], [f"{told}: every set holds every label"]
    low, high = coverage_band(count, alpha)
    if low >= 1.0 - alpha - _FEW:
        return [], []
    told = f"{count:,} labels are few: with others, coverage could as well be {100 * low:.0f} or {100 * high:.0f} %"
    return [told], []


def _looked_at(looks: Sequence[Drift]) -> str:
    return "labels, support, and drift in degree and predicted class" if looks else "labels and support"


def foresee(
    calibrated: Calibrated,
    method: str,
    title: str,
    *,
    alpha: float,
    nodes: int,
    size: float,
    infinite: int,
    graph: Graph,
    predicted: IntArray,
    asked: IntArray,
    class_names: Sequence[str] | None = None,
) -> Verdict:
    """Return the verdict on sets that no truth judges: what was chosen, what is expected and what is promised.

    Parameters
    ----------
    calibrated : Calibrated
        The method, calibrated.
    method, title : str
        Its name, and what tables call it.
    alpha : float
        Error rate.
    nodes, size, infinite
        How many sets there are, their mean size, and how many of them lack support.
    graph, predicted, asked, class_names
        The graph, the most probable class of each node, the nodes predicted, and what classes are called.
    """
    labelled = calibrated.scored.calibration
    rest = np.setdiff1d(asked, labelled)
    looks = drifts(graph, predicted, labelled, rest, between=("labelled", "predicted"), class_names=class_names)
    count, choice = _level_labels(calibrated), calibrated.choice
    plain, change = _expectation(choice)
    return Verdict(
        method=method,
        title=title,
        baseline="the model alone",
        alpha=alpha,
        nodes=nodes,
        judged=0,
        labels=int(labelled.size),
        level_labels=count,
        apart=int(calibrated.scored.apart.size),
        size=size,
        baseline_size=plain,
        change=change,
        band=coverage_band(count, alpha),
        proven=is_proven(calibrated),
        choice=None if choice is None else str(choice),
        warnings=tuple(warnings_on(calibrated, alpha, infinite=infinite, nodes=nodes, looks=looks)),
        looked_at=_looked_at(looks),
    )


def _expectation(choice: Any) -> tuple[float, Interval]:
    """Return the size expected of the model alone, and by which share what was chosen is expected to change it."""
    from scipy.special import ndtri

    scores = [one for one in getattr(choice, "candidates", ()) if one.step == "score"]
    chosen = [one for one in scores if one.chosen]
    if not chosen or chosen[0] is scores[0] or scores[0].value <= 0:
        return math.nan, Interval()
    plain = scores[0].value
    share, half = chosen[0].difference / plain, -float(ndtri(_MISS / 2)) * chosen[0].se / plain
    return plain, Interval(share, share - half, share + half)
