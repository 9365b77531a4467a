"""The verdict: which method to take, what it buys, how sure that is, what it costs, and what to mind.

*What it buys* is compared with the first method on the same nodes (`gains`). Intervals are 95 % ones. Where a method is
picked because it did best on the judged nodes, they hold for all methods together (Bonferroni), so that picking cannot
flatter it. *How sure* is coverage beside the band in which it lies in 95 of 100 draws if the method keeps its promise
(`promises`). *What to mind* is found in `cautions`, and the sentences are in `verdict_words`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.evaluation.cautions import SHORT, drifts_in, looked_at, warnings_on
from napsets.evaluation.drift import drifts, predicted_classes
from napsets.evaluation.gains import MISS, Interval, endless_change, evenness, gaps_of, paired_sizes, size_change
from napsets.evaluation.gaps import CoverageGap
from napsets.evaluation.promises import coverage_band, falls_short, is_proven, level_labels
from napsets.evaluation.side_by_side import Compared, SideBySide
from napsets.evaluation.verdict_words import IntervalVerdict, Verdict

if TYPE_CHECKING:
    from napsets.graph import Graph
    from napsets.methods import Calibrated

__all__ = [
    "Interval",
    "IntervalVerdict",
    "Verdict",
    "coverage_band",
    "evenness",
    "falls_short",
    "foresee",
    "gaps_of",
    "is_proven",
    "judge_methods",
    "predicted_classes",
    "size_change",
    "warnings_on",
]


def judge_methods(found: SideBySide[Any], *, class_names: Sequence[str] | None = None) -> Verdict:
    """Return the verdict on a comparison.

    The method is the first that chooses by itself, because it did so without the labels that judge, unless it covers
    too little or is clearly worse than the baseline. Otherwise it is the one with the smallest sets among those that
    cover, are not clearly less even than the baseline and are clearly smaller; then the most even one, if that is
    clear; then the baseline. So it is with the widths of intervals, and a method that gives the whole line clearly more
    often than the baseline counts as wider.

    Parameters
    ----------
    found : Comparison or IntervalComparison
        What `compare` or `compare_intervals` returned; the first method is the baseline.
    class_names : sequence of str, optional
        What classes are called.
    """
    over, gaps = gaps_of(found)
    looks = drifts_in(found, class_names)
    picked, best = _pick(found, gaps)
    result, gap = found.results[best], gaps[best]
    miss = MISS / max(picked, 1)
    other = best > 0
    worth = warnings_on(
        result.calibrated, found.alpha, infinite=result.infinite, nodes=result.nodes, looks=looks, hits=result.hits
    )
    size, plain = (_mean(sizes) for sizes in paired_sizes(result, found.baseline))
    promised = _promised(result.calibrated)
    return _kind(result.calibrated)(
        method=result.name,
        title=result.title,
        baseline=found.baseline.title,
        alpha=found.alpha,
        nodes=result.nodes,
        judged=result.nodes,
        size=size,
        baseline_size=plain,
        change=size_change(found, result, miss) if other else Interval(),
        over=over,
        groups=int(gap.groups.size),
        inside=gap.share,
        gap=gap.gap,
        baseline_gap=gaps[0].gap,
        chance=gap.chance,
        evenness=evenness(gap, gaps[0], miss) if other else Interval(),
        coverage=result.coverage,
        band=coverage_band(promised["level_labels"], found.alpha, result.nodes),
        rivals=picked,
        warnings=tuple(worth),
        looked_at=looked_at(looks),
        kept=not other,
        **promised,
        **_endless(result, found.baseline),
    )


def _pick(found: SideBySide[Any], gaps: Sequence[CoverageGap]) -> tuple[int, int]:
    """Return among how many rivals the judged labels picked (0 where they did not), and the place of the method."""
    places = range(len(found.results))
    covers = [m for m in places if not _is_short(found.results[m], found.alpha)]
    for m in covers:
        if found.results[m].calibrated.choice is not None:
            larger, _ = _sizes(found, found.results[m])
            if m == 0 or not larger or evenness(gaps[m], gaps[0]).below:
                return 0, m
    rivals = len(found.results) - 1
    if covers and 0 not in covers:
        return rivals, min(covers, key=lambda m: found.results[m].size)
    miss = MISS / max(rivals, 1)
    others = [m for m in covers if m > 0]
    size = {m: _sizes(found, found.results[m], miss) for m in others}
    even = {m: evenness(gaps[m], gaps[0], miss) for m in others}
    smaller = [m for m in others if size[m][1] and not even[m].above]
    if smaller:
        return rivals, min(smaller, key=lambda m: found.results[m].size)
    evener = [m for m in others if even[m].below and not size[m][0]]
    return rivals, min(evener, key=lambda m: gaps[m].gap, default=0)


def _sizes(found: SideBySide[Any], result: Compared, miss: float = MISS) -> tuple[bool, bool]:
    """Return whether a method is clearly larger than the baseline, and whether it is clearly smaller."""
    change, endless = size_change(found, result, miss), endless_change(found, result, miss)
    return change.above or endless.above, change.below and not endless.above


def _is_short(result: Compared, alpha: float) -> bool:
    return falls_short(result.hits, result.nodes, level_labels(result.calibrated), alpha) < SHORT


def _kind(calibrated: Calibrated) -> type[Verdict]:
    return IntervalVerdict if calibrated.is_regression else Verdict


def _promised(calibrated: Calibrated) -> dict[str, Any]:
    """Return what a verdict says of a method whatever it made."""
    scored, choice = calibrated.scored, calibrated.choice
    return {
        "labels": int(scored.calibration.size),
        "level_labels": level_labels(calibrated),
        "apart": int(scored.apart.size),
        "proven": is_proven(calibrated),
        "choice": None if choice is None else str(choice),
    }


def _endless(result: Compared, plain: Compared) -> dict[str, Any]:
    """Return what a mean width leaves out; nothing of sets, whose sizes are finite."""
    if not result.calibrated.is_regression:
        return {}
    return {
        "median": float(np.median(result.sizes)),
        "infinite": float(np.isinf(result.sizes).mean()),
        "baseline_infinite": float(np.isinf(plain.sizes).mean()),
    }


def _mean(sizes: npt.NDArray[Any]) -> float:
    return float(sizes.mean()) if sizes.size else math.nan


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
    predicted: npt.NDArray[Any],
    asked: IntArray,
    class_names: Sequence[str] | None = None,
) -> Verdict:
    """Return the verdict on sets or intervals that no truth judges: what was chosen, is expected and is promised.

    Parameters
    ----------
    calibrated : Calibrated
        The method, calibrated.
    method, title : str
        Its name, and what tables call it.
    alpha : float
        Error rate.
    nodes, size, infinite
        How many sets or intervals there are, their mean size (of intervals, that of the finite ones), and how many of
        them lack support.
    graph, predicted, asked, class_names
        The graph, the most probable class of each node or the number predicted, the nodes asked for, and what classes
        are called.
    """
    labelled = calibrated.scored.calibration
    rest = np.setdiff1d(asked, labelled)
    looks = drifts(graph, predicted, labelled, rest, between=("labelled", "predicted"), class_names=class_names)
    promised = _promised(calibrated)
    endless: dict[str, Any] = {"infinite": infinite / max(nodes, 1)} if calibrated.is_regression else {}
    plain, change = _expectation(calibrated.choice)
    return _kind(calibrated)(
        method=method,
        title=title,
        baseline="the model alone",
        alpha=alpha,
        nodes=nodes,
        judged=0,
        size=size,
        baseline_size=plain,
        change=change,
        band=coverage_band(promised["level_labels"], alpha),
        warnings=tuple(warnings_on(calibrated, alpha, infinite=infinite, nodes=nodes, looks=looks)),
        looked_at=looked_at(looks),
        **promised,
        **endless,
    )


def _expectation(choice: Any) -> tuple[float, Interval]:
    """Return the size expected of the model alone, and by which share what was chosen is expected to change it."""
    from scipy.special import ndtri

    scores = [one for one in getattr(choice, "candidates", ()) if one.step == "score"]
    chosen = [one for one in scores if one.chosen]
    if not chosen or chosen[0] is scores[0] or not 0 < scores[0].value < math.inf:
        return math.nan, Interval()
    plain = scores[0].value
    share, half = chosen[0].difference / plain, -float(ndtri(MISS / 2)) * chosen[0].se / plain
    return plain, Interval(share, share - half, share + half)
