"""The verdict: which method to use, what it gains, how certain that is, what it costs, and what to watch for.

*What it gains* is measured against the first method on the same nodes (`judgement`). Intervals are 95 % ones. Where a
method is picked because it did best on the evaluation nodes, they hold for all methods together (Bonferroni), so that
picking cannot flatter it. *How certain* is coverage compared with the band in which it lies in 95 of 100 draws if the
method keeps its promise (`napsets.levels`). *What to watch for* stands in `cautions` and `gaps`; the sentences are in
`verdict_words`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.errors import NapsetsWarning
from napsets.evaluation.cautions import (
    SHORT,
    accuracy_on,
    checked,
    drifts_in,
    find_cautions,
    is_proven,
    is_shifted,
    level_labels,
    level_nodes,
)
from napsets.evaluation.drift import Drift, drifts
from napsets.evaluation.gaps import CoverageGap, WeakGroup, degree_names, describe_weak, gap_within, weak_groups
from napsets.evaluation.judgement import MISS, Interval, endless_change, evenness, gaps_of, paired_sizes, size_change
from napsets.evaluation.kinds import kind_of
from napsets.evaluation.metrics import mean
from napsets.evaluation.verdict_words import Alternative, Verdict
from napsets.levels import coverage_band, falls_short
from napsets.methods import title

if TYPE_CHECKING:
    from napsets.evaluation.results import Comparison, MethodResult
    from napsets.methods import Calibrated

#: Groupings whose groups have no names, or no threshold of their own that would help.
_UNNAMED = ("neighbourhood", "confidence", "prediction", "width")
#: Labels that are predicted again to see which classes are covered too little, at most.
_MOST_LABELS = 20_000


def judge_methods(comparison: Comparison, *, class_names: Sequence[str] | None = None) -> Verdict:
    """Return the verdict on a comparison.

    A method other than the baseline must be clearly better: clearly smaller (intervals: narrower) and not clearly less
    even, or clearly more even and not clearly larger. Where a method that chooses by itself is better in this sense, it
    is recommended, because it chose without the labels that judge; otherwise the smallest of the others, then the most
    even one, then the baseline. A method that covers too little is never recommended. A method that gives the whole
    line clearly more often than the baseline counts as wider.
    """
    over, gaps = gaps_of(comparison)
    looks = drifts_in(comparison, class_names)
    rivals, best = _pick(comparison, gaps)
    result, baseline, gap = comparison.results[best], comparison.baseline, gaps[best]
    miss = MISS / max(rivals, 1)
    other = best > 0
    weak = _weak_in(comparison, result, class_names)
    labelled = np.union1d(comparison.data.calibration, comparison.nodes)
    withdrawn, cautions = find_cautions(
        result.calibrated, comparison.alpha, infinite=result.infinite, nodes=result.nodes, looks=looks,
        hits=result.hits, trained=comparison.data.trained, weak=_sentences(weak, result.calibrated, comparison.alpha),
        accuracy=accuracy_on(comparison.kind, comparison.data.outputs[labelled], comparison.truth[labelled]),
    )  # fmt: skip
    size, plain = (mean(sizes) for sizes in paired_sizes(result, baseline))
    promise = _promise(result.calibrated)
    return Verdict(
        method=result.name,
        title=result.title,
        baseline=baseline.title,
        alpha=comparison.alpha,
        nodes=result.nodes,
        judged=result.nodes,
        size=size,
        baseline_size=plain,
        change=size_change(comparison, result, miss) if other else Interval(),
        over=over,
        groups=int(gap.groups.size),
        inside=gap.share,
        gap=gap.gap,
        baseline_gap=gaps[0].gap,
        chance=gap.chance,
        evenness=evenness(gap, gaps[0], miss) if other else Interval(),
        coverage=result.coverage,
        band=coverage_band(promise["level_labels"], comparison.alpha, result.nodes),
        rivals=rivals,
        withdrawn=withdrawn,
        warnings=cautions,
        looked_at=checked(looks, [what for what in result.gaps if what not in _UNNAMED]),
        weak=tuple(group for groups, _ in weak.values() for group in groups),
        smallest=_smallest(comparison, gaps, best),
        kept=not other,
        **promise,
        **comparison.kind.infinite_shares(
            mean(np.isinf(result.sizes)), mean(np.isinf(baseline.sizes)), float(np.median(result.sizes))
        ),
    )


# -- which method ------------------------------------------------------------------------------------------------------


def _pick(comparison: Comparison, gaps: Sequence[CoverageGap]) -> tuple[int, int]:
    """Return among how many rivals the judged labels picked (0 where they did not), and the place of the method."""
    results = comparison.results
    covers = [m for m, result in enumerate(results) if not _is_short(result, comparison.alpha)]
    for m in covers:
        if results[m].calibrated.choice is not None and (m == 0 or _is_better(comparison, gaps, m)):
            return 0, m
    rivals = len(results) - 1
    if covers and 0 not in covers:
        return rivals, min(covers, key=lambda m: results[m].size)
    miss = MISS / max(rivals, 1)
    better = {m: _is_better(comparison, gaps, m, miss) for m in covers if m > 0}
    smaller = [m for m, how in better.items() if how == "smaller"]
    if smaller:
        return rivals, min(smaller, key=lambda m: results[m].size)
    evener = [m for m, how in better.items() if how == "more even"]
    return rivals, min(evener, key=lambda m: gaps[m].gap, default=0)


def _is_better(comparison: Comparison, gaps: Sequence[CoverageGap], m: int, miss: float = MISS) -> str:
    """Return in what a method is clearly better than the baseline, without being clearly worse in the other."""
    larger, smaller = _sizes(comparison, comparison.results[m], miss)
    even = evenness(gaps[m], gaps[0], miss)
    if smaller and not even.above:
        return "smaller"
    return "more even" if even.below and not larger else ""


def _sizes(comparison: Comparison, result: MethodResult, miss: float = MISS) -> tuple[bool, bool]:
    """Return whether a method is clearly larger than the baseline, and whether it is clearly smaller."""
    change, endless = size_change(comparison, result, miss), endless_change(comparison, result, miss)
    return change.above or endless.above, change.below and not endless.above


def _is_short(result: MethodResult, alpha: float) -> bool:
    return falls_short(result.hits, result.nodes, level_labels(result.calibrated), alpha) < SHORT


def _smallest(comparison: Comparison, gaps: Sequence[CoverageGap], best: int) -> Alternative | None:
    """Return the method of the smallest sets, if they are clearly smaller than those of the method to use."""
    miss = MISS / max(len(comparison.results) - 1, 1)
    against = comparison.results[best]
    covers = [m for m, result in enumerate(comparison.results) if not _is_short(result, comparison.alpha)]
    m = min(covers, key=lambda m: comparison.results[m].size, default=best)
    result = comparison.results[m]
    change = size_change(comparison, result, miss, against=against)
    if m == best or not change.below or endless_change(comparison, result, miss, against=against).above:
        return None
    even = evenness(gaps[m], gaps[best], miss)
    return Alternative(result.name, result.title, result.size, change, gaps[m].gap, even)


# -- classes and groups ------------------------------------------------------------------------------------------------


def _weak_in(
    comparison: Comparison, result: MethodResult, class_names: Sequence[str] | None
) -> dict[str, tuple[list[WeakGroup], int]]:
    """Return the groups that a method covers too little, and how many groups there are, by grouping."""
    count, data = level_labels(result.calibrated), comparison.data
    weak = {}
    for what, gap in result.gaps.items():
        if what in _UNNAMED:
            continue
        labels = None
        if what == "class" and gap.groups.dtype.kind in "iu":
            labels = np.bincount(data.truth[data.calibration], minlength=int(gap.groups.max(initial=-1)) + 1)
            labels = labels[gap.groups]
        groups = weak_groups(gap, what, _names(gap, what, class_names), level_labels=count, labels=labels)
        if groups:
            weak[what] = groups, int(gap.groups.size)
    return weak


def _names(gap: CoverageGap, what: str, class_names: Sequence[str] | None) -> list[str]:
    """Return what groups are called."""
    if gap.groups.dtype.kind not in "iu":
        return [str(name) for name in gap.groups]
    if what == "degree":
        return degree_names(int(gap.groups.max(initial=-1)) + 1)[: gap.groups.size]
    if what != "class":
        return [f"{what} {group}" for group in gap.groups]
    return [f"class {y}" if class_names is None else str(class_names[y]) for y in gap.groups]


def _sentences(weak: Mapping[str, tuple[list[WeakGroup], int]], calibrated: Calibrated, alpha: float) -> list[str]:
    """Return what is said of weak groups, a sentence per grouping."""
    by = getattr(calibrated.method.groups, "of", None)
    own = "class" if by == "label" else by
    return [describe_weak(groups, alpha, count, by_group=own == what) for what, (groups, count) in weak.items()]


def _weak_labels(
    calibrated: Calibrated, alpha: float, class_names: Sequence[str] | None
) -> dict[str, tuple[list[WeakGroup], int]]:
    """Return the classes that are covered too little among the labels that set the level."""
    nodes, truth = level_nodes(calibrated)
    if truth.dtype.kind not in "iu" or not truth.size:
        return {}
    some = np.unique(np.linspace(0, nodes.size - 1, min(nodes.size, _MOST_LABELS)).astype(np.int64))
    nodes, truth = nodes[some], truth[some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)  # these nodes calibrated, which is what they are taken for
        covered = calibrated.predict(nodes, alpha).contains(truth, per="set")
    gap = gap_within(covered, truth, alpha)
    groups = weak_groups(
        gap, "class", _names(gap, "class", class_names), level_labels=None, labels=np.bincount(truth)[gap.groups]
    )
    return {"class": (groups, int(gap.groups.size))} if groups else {}


# -- predictions without truth -----------------------------------------------------------------------------------------


def _promise(calibrated: Calibrated) -> dict[str, Any]:
    """Return what a verdict says of a method, whatever it predicted."""
    scored, choice = calibrated.scored, calibrated.choice
    return {
        "labels": int(scored.calibration.size),
        "level_labels": level_labels(calibrated),
        "held_out": int(scored.level_nodes.size),
        "held_out_are_evidence": calibrated.full is not None,
        "proven": is_proven(calibrated),
        "shifted": is_shifted(calibrated),
        "choice": None if choice is None else str(choice),
        "prediction": calibrated.prediction,
    }


def foresee(
    calibrated: Calibrated,
    method: str,
    *,
    alpha: float,
    nodes: IntArray,
    size: float,
    infinite: int,
    outputs: npt.NDArray[Any],
    class_names: Sequence[str] | None = None,
) -> Verdict:
    """Return the verdict on predictions that no truth judges: what was chosen, is expected and is promised."""
    kind, score, labelled = kind_of(calibrated.prediction), calibrated.method.score, calibrated.scored.calibration
    looks: tuple[Drift, ...] = ()
    if calibrated.graph is not None:
        others = np.zeros(len(outputs), dtype=bool)
        others[nodes] = True
        others[labelled] = False
        looks = drifts(
            calibrated.graph, kind.predicted(score, outputs), labelled, np.flatnonzero(others), kind=kind,
            between=("labelled", "predicted"), class_names=class_names, score=score, outputs=outputs,
        )  # fmt: skip
    promise = _promise(calibrated)
    plain, change = (math.nan, Interval()) if calibrated.grouped is not None else _expectation(calibrated.choice)
    weak = _weak_labels(calibrated, alpha, class_names)
    own, truth = level_nodes(calibrated)
    withdrawn, cautions = find_cautions(
        calibrated, alpha, infinite=infinite, nodes=int(nodes.size), looks=looks,
        weak=_sentences(weak, calibrated, alpha), accuracy=accuracy_on(kind, outputs[own], truth),
    )  # fmt: skip
    return Verdict(
        method=method,
        title=title(method, score),
        baseline="the model alone",
        alpha=alpha,
        nodes=int(nodes.size),
        judged=0,
        size=size,
        baseline_size=plain,
        change=change,
        band=coverage_band(promise["level_labels"], alpha),
        withdrawn=withdrawn,
        warnings=cautions,
        looked_at=checked(looks, ["class"] if truth.dtype.kind in "iu" and truth.size else []),
        weak=tuple(group for groups, _ in weak.values() for group in groups),
        grouped=calibrated.grouped is not None,
        **promise,
        **kind.infinite_shares(infinite / max(nodes.size, 1)),
    )


def _expectation(choice: Any) -> tuple[float, Interval]:
    """Return the size expected of the model alone, and by which share what was chosen is expected to change it."""
    from scipy.special import ndtri

    scores = [candidate for candidate in getattr(choice, "candidates", ()) if candidate.step == "score"]
    chosen = next((candidate for candidate in scores if candidate.chosen), None)
    if chosen is None or chosen is scores[0] or not 0 < scores[0].value < math.inf:
        return math.nan, Interval()
    plain = scores[0].value
    share, half = chosen.difference / plain, -float(ndtri(MISS / 2)) * chosen.se / plain
    return plain, Interval(share, share - half, share + half)
