"""The verdict: which method to use, what it gains, how certain that is, what it costs, and what to watch for.

*What it gains* is measured against split conformal prediction, which ignores the graph, on the same nodes
(`gains`): against the first method, or, for a method that prefers small sets, against split THR. Intervals are 95 %
ones. Where a method is picked because it did best on the evaluation nodes, they hold for all methods together
(Bonferroni), so that picking cannot flatter it. *How certain* is coverage compared with the band in which it lies in 95
of 100 draws if the method keeps its promise (`napsets.levels`). *What to watch for* are `findings`, some of which
withdraw the promise: the verdict says so first. The words are in `sentences`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import AnyArray, IntArray
from napsets.checks.values import Record
from napsets.errors import NapsetsWarning, Surface
from napsets.evaluation import sentences
from napsets.evaluation.drift import Drift, accuracy_on, drifts, drifts_in
from napsets.evaluation.finding_sentences import sentence_of
from napsets.evaluation.findings import Finding, find_all
from napsets.evaluation.gains import (
    MISS,
    Alternative,
    Interval,
    baseline_of,
    evenness,
    gaps_of,
    is_short,
    paired_sizes,
    pick,
    plain_alternative,
    size_change,
    smallest_alternative,
)
from napsets.evaluation.gaps import CoverageGap, WeakGroup, gap_within
from napsets.evaluation.kinds import kind_of
from napsets.evaluation.metrics import mean
from napsets.evaluation.results import Comparison
from napsets.levels import Nominal, coverage_band
from napsets.localisers import Everyone
from napsets.methods import Calibrated, Method, title
from napsets.methods.data import known_to_model
from napsets.methods.table import name_of
from napsets.predictions import Prediction, PredictionSets
from napsets.scores import APS, THR
from napsets.scores.informed import evidence_of
from napsets.scores.informed_intervals import BoundInformedIntervals

#: Groupings whose groups have no names that would tell a reader anything.
_UNNAMED = ("confidence", "prediction", "width")
#: Nodes on which methods without the graph are tried, and labels that are predicted again, at most.
_MOST_NODES = 20_000


@dataclass(frozen=True, repr=False, kw_only=True)
class Verdict:
    """The method to use, and why."""

    #: Its name in the table of methods, and what tables call it.
    method: str
    title: str
    baseline: str  #: The title of what it is compared with.
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
    #: How far coverage falls short of 1 − alpha in a group, on average; the same of the baseline, and by chance.
    under: float = math.nan
    baseline_under: float = math.nan
    chance: float = math.nan
    evenness: Interval = field(default_factory=Interval)  #: `under` less `baseline_under`.
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
    findings: tuple[Finding, ...] = ()  #: What to know before the predictions are used, the gravest first.
    checked: tuple[str, ...] = ()  #: What was looked at for findings.
    plain: Alternative | None = None  #: Another method without the graph, beside the baseline.
    smallest: Alternative | None = None  #: The method of the smallest sets, where they are clearly smaller.
    grouped: bool = False  #: Whether coverage is to hold within groups.
    kept: bool = False  #: Whether the method is the baseline itself.
    #: Of intervals: the median width of all (+∞ where most are the whole line), the share that are the whole line, and
    #: that share of the baseline.
    median: float | None = None
    infinite: float | None = None
    baseline_infinite: float | None = None
    prediction: type[Prediction] = PredictionSets  #: What is predicted: `PredictionSets` or `PredictionIntervals`.
    surface: Surface = "python"  #: Where the verdict is read, which decides how it names what helps.

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings in words, the gravest first."""
        return tuple(sentence_of(finding, self) for finding in self.findings)

    @property
    def withdrawn(self) -> str:
        """Why the promise does not hold for nodes without a label; empty where there is no reason."""
        first = next((finding for finding in self.findings if finding.withdraws), None)
        return "" if first is None else sentence_of(first, self)

    @property
    def remedy(self) -> str:
        """The remedy, where other labels would help."""
        return sentences.remedy(self)

    @property
    def weak(self) -> tuple[WeakGroup, ...]:
        """Classes and groups that are covered too little, by more than chance, the worst of each kind first."""
        found = (finding.numbers["groups"] for finding in self.findings if finding.kind == "weak groups")
        return tuple(group for groups in found for group in groups)

    @property
    def headline(self) -> str:
        """The method, in two or three words."""
        return sentences.headline(self)

    @property
    def gain(self) -> str:
        """The gain over the baseline, with intervals."""
        return sentences.gain(self)

    @property
    def certainty(self) -> str:
        """The certainty: coverage compared with chance, and the basis of the promise."""
        return sentences.certainty(self)

    @property
    def cost(self) -> str:
        """The labels that the method costs."""
        return sentences.cost(self)

    @property
    def first_warning(self) -> str:
        """The gravest warning, or a note that there are none."""
        return self.warnings[0] if self.findings else f"none (checked: {', '.join(self.checked)})"

    @property
    def smaller(self) -> str:
        """The method with the smallest sets and its evenness; empty where none is clearly smaller."""
        return sentences.smaller(self)

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict line by line: whether the promise is withdrawn, the method, how certain, and all warnings."""
        return sentences.lines(self)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def row(self) -> Record:
        """Return plain values, for JSON; fields that few verdicts have are left out of the others."""
        values = {"apart" if name == "held_out" else name: value for name, value in asdict(self).items()}
        for name in ("prediction", "surface"):
            del values[name]
        for name in ("median", "infinite", "baseline_infinite"):
            if values[name] is None:
                del values[name]
        words: Record = {"withdrawn": self.withdrawn, "remedy": self.remedy, "warnings": self.warnings}
        values |= words | {"weak": [asdict(group) for group in self.weak], "lines": list(self.lines)}
        for name in ("shifted", "evidence", "remedy", "plain"):
            if not values[name]:
                del values[name]
        return values


def judge_methods(
    comparison: Comparison, *, class_names: Sequence[str] | None = None, surface: Surface = "python"
) -> Verdict:
    """Return the verdict on a comparison.

    A method other than the baseline must be clearly better: clearly smaller (intervals: narrower) and not clearly less
    even by more than a tenth of alpha, or clearly more even and not clearly larger. Where a method that chooses by
    itself is better in this sense, it is recommended, because it chose without the labels that judge; otherwise the
    smallest of the others, then the most even one, then the baseline. A method that covers too little is never
    recommended. A method that gives the whole line clearly more often than the baseline counts as wider.
    """
    over, gaps = gaps_of(comparison)
    covers = [m for m, result in enumerate(comparison) if not is_short(result, comparison.alpha)]
    rivals, best = pick(comparison, gaps, covers)
    against = baseline_of(comparison, best)
    result, baseline, gap, data = comparison.results[best], comparison.results[against], gaps[best], comparison.data
    calibrated, alpha = result.calibrated, comparison.alpha
    miss = MISS / max(rivals, 1)
    other = best != against
    labelled, unlabelled = np.union1d(data.calibration, comparison.nodes), comparison.unlabelled
    size, plain = (mean(sizes) for sizes in paired_sizes(result, baseline))
    looks = drifts_in(comparison, class_names)
    groups = {what: gap for what, gap in result.gaps.items() if what not in _UNNAMED}
    return Verdict(
        method=result.name,
        title=result.title,
        baseline=baseline.title,
        alpha=alpha,
        nodes=result.nodes,
        judged=result.nodes,
        size=size,
        baseline_size=plain,
        change=size_change(comparison, result, miss, against=baseline) if other else Interval(),
        over=over,
        groups=int(gap.groups.size),
        inside=gap.share,
        under=gap.under,
        baseline_under=gaps[against].under,
        chance=gap.chance / 2.0,
        evenness=evenness(gap, gaps[against], miss) if other else Interval(),
        coverage=result.coverage,
        band=coverage_band(calibrated.level_size, alpha, result.nodes),
        rivals=rivals,
        plain=plain_alternative(comparison, gaps, best, against),
        smallest=smallest_alternative(comparison, gaps, covers, best),
        kept=not other,
        findings=find_all(
            calibrated, alpha, infinite=result.infinite, nodes=comparison.nodes, hits=result.hits, gaps=groups,
            class_names=class_names, truth=comparison.truth, looks=looks, trained=data.trained,
            accuracy=accuracy_on(
                comparison.kind, data.outputs[labelled], comparison.truth[labelled], data.outputs[unlabelled], looks
            ),
        ),
        checked=_checked(groups, looks, result.nodes),
        surface=surface,
        **_promise_of(calibrated),
        **comparison.kind.infinite_shares(
            mean(np.isinf(result.sizes)), mean(np.isinf(baseline.sizes)), float(np.median(result.sizes))
        ),
    )  # fmt: skip


def foresee(
    calibrated: Calibrated,
    method: str,
    *,
    alpha: float,
    nodes: IntArray,
    size: float,
    infinite: int,
    outputs: AnyArray,
    class_names: Sequence[str] | None = None,
    surface: Surface = "python",
) -> Verdict:
    """Return the verdict on predictions that no truth judges: what was chosen, is expected and is promised."""
    kind, score, scored = kind_of(calibrated.prediction), calibrated.method.score, calibrated.scored
    looks: tuple[Drift, ...] = ()
    if calibrated.graph is not None:
        others = np.zeros(len(outputs), dtype=bool)
        others[nodes] = True
        others[scored.calibration] = False
        looks = drifts(
            calibrated.graph, kind.predicted(score, outputs), scored.sample, np.flatnonzero(others), kind=kind,
            between=("calibration" if scored.evidence else "labelled", "predicted"), class_names=class_names,
            score=score, outputs=outputs,
        )  # fmt: skip
    level_nodes, truth = calibrated.scored.level_truth()
    gaps, count = {}, level_nodes.size
    if truth.dtype.kind in "iu" and truth.size:
        places = _evenly(level_nodes.size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)  # these nodes calibrated, which is what they are taken for
            covered = calibrated.predict(positions=level_nodes[places], alpha=alpha).contains_own(truth[places])
        gaps, count = {"class": gap_within(covered, truth[places], alpha)}, places.size
    plain, other = _without_graph(calibrated, alpha, nodes)
    return Verdict(
        method=method,
        title=title(method, score),
        baseline="" if plain is None else plain.title,
        alpha=alpha,
        nodes=int(nodes.size),
        judged=0,
        size=size,
        baseline_size=math.nan if plain is None else plain.size,
        change=Interval() if plain is None or not plain.size > 0 else Interval(size / plain.size - 1.0),
        plain=other,
        band=coverage_band(calibrated.level_size, alpha),
        grouped=calibrated.grouped is not None,
        findings=find_all(
            calibrated, alpha, infinite=infinite, nodes=nodes, gaps=gaps, class_names=class_names, looks=looks,
            accuracy=accuracy_on(kind, outputs[level_nodes], truth, outputs[nodes[_evenly(nodes.size)]], looks),
            trained=scored.data.trained, known=known_to_model(scored.data, nodes),
        ),
        checked=_checked(gaps, looks, count),
        surface=surface,
        **_promise_of(calibrated),
        **kind.infinite_shares(infinite / max(nodes.size, 1)),
    )  # fmt: skip


def _foresee_prediction(calibrated: Calibrated, prediction: Prediction, method: str | None) -> Verdict:
    """Return the verdict on one prediction; by default, the method has the name that its settings have in the table."""
    summary, usual = prediction.summary(), "auto" if calibrated.choice is not None else name_of(calibrated.method)
    return foresee(
        calibrated, method or usual, alpha=prediction.alpha, nodes=prediction.nodes, size=summary.size,
        infinite=summary.infinite, outputs=calibrated.outputs, class_names=calibrated.scored.class_names,
    )  # fmt: skip


Calibrated.foresee = _foresee_prediction


def _without_graph(
    calibrated: Calibrated, alpha: float, nodes: IntArray
) -> tuple[Alternative | None, Alternative | None]:
    """Return the method without the graph that serves as baseline, and a second one where there are two.

    Both are calibrated on the same labels. Their sizes are averages over some of the nodes.
    """
    scored, method = calibrated.scored, calibrated.method
    truth = np.full(scored.reference.num_nodes, -1 if scored.labels.dtype.kind in "iu" else math.nan)
    truth[scored.reference.nodes[: scored.labels.size]], truth[scored.level_nodes] = scored.labels, scored.level_labels
    if not nodes.size or scored.labels.size < scored.reference.nodes.size:
        return None, None
    data = replace(
        scored.data, truth=truth, calibration=scored.sample, graph=None, evidence=None, features=None, split=None,
        progress=None, _scored={},
    )  # fmt: skip
    small = getattr(calibrated.choice, "prefer", "") == "small" or isinstance(method.score, THR)
    scores: list[Any] = [THR(), APS()] if small else [APS(), THR()]
    if calibrated.prediction is not PredictionSets:
        scores = [getattr(method.score, "base", method.score)]
    found = []
    for score in scores:
        split = Method(score, Everyone(), Nominal(), method.seed, method.allow_empty)
        if (split.score, split.localiser) == (method.score, method.localiser) and calibrated.grouped is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)
            prediction = split.calibrate_data(data).predict(positions=nodes[_evenly(nodes.size)], alpha=alpha)
        name = name_of(split)
        found.append(Alternative(name, title(name, score), prediction.summary().size))
    return (*found, None, None)[:2]  # type: ignore[return-value]


def _evenly(size: int) -> IntArray:
    """Return at most `_MOST_NODES` evenly spaced places below `size`."""
    return np.unique(np.linspace(0, size - 1, min(size, _MOST_NODES)).astype(np.int64))


def _checked(gaps: dict[str, CoverageGap], looks: Sequence[Drift], nodes: int) -> tuple[str, ...]:
    """Return the checks behind the findings, with the number of labels."""
    checked = ["number of labels", "support"]
    if gaps:
        checked.append(f"coverage by {' and '.join(gaps)} on {nodes:,} labels")
    if looks:
        differences = ", ".join(dict.fromkeys(look.what for look in looks))
        checked.append(f"whether labelled nodes differ from the others in {differences}")
    return tuple(checked)


def _promise_of(calibrated: Calibrated) -> Record:
    """Return the fields of a verdict that depend on the method alone."""
    scored, choice = calibrated.scored, calibrated.choice
    return {
        "labels": int(scored.calibration.size),
        "level_labels": calibrated.level_size,
        "held_out": int(scored.level_nodes.size),
        "evidence": int(scored.reference.nodes.size) if scored.evidence else 0,
        "informed": isinstance(calibrated.score, BoundInformedIntervals) or evidence_of(calibrated.score) is not None,
        "proven": calibrated.is_proven,
        "shifted": not calibrated.is_exact and bool(getattr(calibrated.method.localiser, "shifted", False)),
        "choice": None if choice is None else str(choice),
        "prediction": calibrated.prediction,
    }
