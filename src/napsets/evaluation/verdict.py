"""The verdict: which method to use, what it gains, how certain that is, what it costs, and what to watch for.

*What it gains* is measured against the first method on the same nodes (`judgement`). Intervals are 95 % ones. Where a
method is picked because it did best on the evaluation nodes, they hold for all methods together (Bonferroni), so that
picking cannot flatter it. *How certain* is coverage compared with the band in which it lies in 95 of 100 draws if the
method keeps its promise (`napsets.levels`). *What to watch for* are low coverage, classes and groups below the target
(`gaps`), labels that are no random sample (`drift`) and little support. The sentences are in `verdict_words`.

Some findings withdraw the promise: the model is more confident about the labelled nodes than about the others, because
it was trained on them or because they are easy; or the labelled nodes differ strongly from the others. Coverage on the
other nodes is then likely to be lower than on the labelled ones, whatever the method, and the verdict says so first.
Only labels that set the level must be a random sample; labels that are none can become evidence, which is not checked.
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
from napsets.evaluation.drift import Accuracy, Drift, accuracy_on, drifts, drifts_in
from napsets.evaluation.gaps import CoverageGap, find_weak, gap_within
from napsets.evaluation.judgement import MISS, endless_change, evenness, gaps_of, paired_sizes, size_change
from napsets.evaluation.kinds import kind_of
from napsets.evaluation.metrics import mean
from napsets.evaluation.verdict_words import Alternative, Interval, Verdict, level_labels, level_nodes, promise_of
from napsets.levels import coverage_band, falls_short, fewest_ranks
from napsets.methods import Calibrated, Choice, title
from napsets.methods.table import name_of
from napsets.predictions import Prediction

if TYPE_CHECKING:
    from napsets.evaluation.results import Comparison, MethodResult

#: Groupings whose groups have no names, or no threshold of their own that would help.
_UNNAMED = ("neighbourhood", "confidence", "prediction", "width")
#: A method is said to fall short where chance would make it cover so little less often than this.
_SHORT = 0.001
#: A smaller share of nodes without a threshold of their own is too small to report.
_LEAST_SHARE = 0.1
#: Drift of this size withdraws the promise, whatever it is in.
_GRAVE = 0.2
#: So does a smaller one, where it shows that the model finds the labelled nodes easier.
_EASIER = 0.1
#: Labels are few where another draw of them could cost this much coverage.
_FEW = 0.05
#: From this share of right predictions on, it is likely that a model was trained on labels that it is surer of.
_NEARLY_ALL = 0.995
#: Where a model is suspiciously good, this p-value of a difference in confidence is enough.
_SUPPORTING = 0.01
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
    covers = [m for m, result in enumerate(comparison) if not _is_short(result, comparison.alpha)]
    rivals, best = _pick(comparison, gaps, covers)
    result, baseline, gap, data = comparison.results[best], comparison.baseline, gaps[best], comparison.data
    calibrated, alpha = result.calibrated, comparison.alpha
    miss = MISS / max(rivals, 1)
    other = best > 0
    labelled = np.union1d(data.calibration, comparison.nodes)
    size, plain = (mean(sizes) for sizes in paired_sizes(result, baseline))
    return Verdict(
        method=result.name,
        title=result.title,
        baseline=baseline.title,
        alpha=alpha,
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
        band=coverage_band(level_labels(calibrated), alpha, result.nodes),
        rivals=rivals,
        smallest=_smallest(comparison, gaps, covers, best),
        kept=not other,
        **promise_of(calibrated),
        **_cautions(
            calibrated, alpha, infinite=result.infinite, nodes=result.nodes, hits=result.hits, class_names=class_names,
            gaps={what: gap for what, gap in result.gaps.items() if what not in _UNNAMED},
            truth=data.truth[data.calibration], looks=drifts_in(comparison, class_names), trained=data.trained,
            accuracy=accuracy_on(comparison.kind, data.outputs[labelled], comparison.truth[labelled]),
        ),
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
    outputs: npt.NDArray[Any],
    class_names: Sequence[str] | None = None,
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
    # Evidence is no random sample: what sizes it led to expect says little about these nodes.
    expects = calibrated.grouped is None and not scored.evidence
    plain, change = _expectation(calibrated.choice) if expects else (math.nan, Interval())
    own, truth = level_nodes(calibrated)
    gaps, some = {}, truth
    if truth.dtype.kind in "iu" and truth.size:
        places = np.unique(np.linspace(0, own.size - 1, min(own.size, _MOST_LABELS)).astype(np.int64))
        some = truth[places]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)  # these nodes calibrated, which is what they are taken for
            covered = calibrated.predict(own[places], alpha).contains_own(some)
        gaps = {"class": gap_within(covered, some, alpha)}
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
        band=coverage_band(level_labels(calibrated), alpha),
        grouped=calibrated.grouped is not None,
        **promise_of(calibrated),
        **_cautions(
            calibrated, alpha, infinite=infinite, nodes=int(nodes.size), class_names=class_names, gaps=gaps, truth=some,
            looks=looks, accuracy=accuracy_on(kind, outputs[own], truth),
        ),
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


def _expectation(choice: Choice | None) -> tuple[float, Interval]:
    """Return the size expected of the model alone, and by which share what was chosen is expected to change it."""
    from scipy.special import ndtri

    scores = [candidate for candidate in getattr(choice, "candidates", ()) if candidate.step == "score"]
    chosen = next((candidate for candidate in scores if candidate.chosen), None)
    if chosen is None or chosen is scores[0] or not 0 < scores[0].value < math.inf:
        return math.nan, Interval()
    plain = scores[0].value
    share, half = chosen.difference / plain, -float(ndtri(MISS / 2)) * chosen.se / plain
    return plain, Interval(share, share - half, share + half)


# -- which method ------------------------------------------------------------------------------------------------------


def _pick(comparison: Comparison, gaps: Sequence[CoverageGap], covers: Sequence[int]) -> tuple[int, int]:
    """Return among how many rivals the judged labels picked (0 where they did not), and the place of the method."""
    results, rivals = comparison.results, len(comparison) - 1
    for m in covers:
        if results[m].calibrated.choice is not None and (m == 0 or _is_better(comparison, gaps, m)):
            return 0, m
    if covers and 0 not in covers:
        return rivals, min(covers, key=lambda m: results[m].size)
    better = {m: _is_better(comparison, gaps, m, MISS / max(rivals, 1)) for m in covers if m > 0}
    smaller = [m for m, how in better.items() if how == "smaller"]
    if smaller:
        return rivals, min(smaller, key=lambda m: results[m].size)
    evener = [m for m, how in better.items() if how == "more even"]
    return rivals, min(evener, key=lambda m: gaps[m].gap, default=0)


def _is_better(comparison: Comparison, gaps: Sequence[CoverageGap], m: int, miss: float = MISS) -> str:
    """Return in what a method is clearly better than the baseline, without being clearly worse in the other."""
    result, even = comparison.results[m], evenness(gaps[m], gaps[0], miss)
    change, endless = size_change(comparison, result, miss), endless_change(comparison, result, miss)
    if change.below and not (endless.above or even.above):
        return "smaller"
    return "more even" if even.below and not (change.above or endless.above) else ""


def _is_short(result: MethodResult, alpha: float) -> bool:
    return falls_short(result.hits, result.nodes, level_labels(result.calibrated), alpha) < _SHORT


def _smallest(
    comparison: Comparison, gaps: Sequence[CoverageGap], covers: Sequence[int], best: int
) -> Alternative | None:
    """Return the method of the smallest sets, if they are clearly smaller than those of the method to use."""
    miss = MISS / max(len(comparison) - 1, 1)
    against = comparison.results[best]
    m = min(covers, key=lambda m: comparison.results[m].size, default=best)
    result = comparison.results[m]
    change = size_change(comparison, result, miss, against=against)
    if m == best or not change.below or endless_change(comparison, result, miss, against=against).above:
        return None
    even = evenness(gaps[m], gaps[best], miss)
    return Alternative(result.name, result.title, result.size, change, gaps[m].gap, even)


# -- what to watch for -------------------------------------------------------------------------------------------------


def _cautions(
    calibrated: Calibrated,
    alpha: float,
    *,
    infinite: int,
    nodes: int,
    class_names: Sequence[str] | None,
    gaps: Mapping[str, CoverageGap],
    truth: npt.NDArray[Any],
    looks: Sequence[Drift],
    accuracy: Accuracy | None,
    hits: int | None = None,
    trained: int = 0,
) -> dict[str, Any]:
    """Return why the promise of a method does not hold, all warnings, the gravest first, and what was checked.

    Of the `nodes`, `infinite` lack support and, where all were judged, `hits` are covered; `truth` is that of labelled
    nodes, of which the model is known to have been trained on `trained`. The names are those of a verdict's fields.
    """
    count, kind = level_labels(calibrated), kind_of(calibrated.prediction)
    short = []
    if hits is not None and falls_short(hits, nodes, count, alpha) < _SHORT:
        short.append(
            f"coverage is {100 * hits / nodes:.1f} % instead of {100 * (1 - alpha):g} %, too low for chance; the "
            f"calibration nodes probably differ from the evaluation nodes"
        )
    by = getattr(calibrated.method.groups, "of", None)
    weak, too_low = find_weak(
        gaps,
        class_names,
        level_labels=None if hits is None else count,
        truth=truth,
        by="class" if by == "label" else by,
    )
    large = sorted((look for look in looks if look.matters(len(looks))), key=lambda look: -look.distance)
    reasons, used = _reasons(large, looks, accuracy, trained)
    too_good = [f"{accuracy}; {_TRAINED}"] if accuracy is not None and accuracy.too_good and not reasons else []
    few, too_few = _on_labels(count, alpha, kind.with_too_few)
    share = infinite / max(nodes, 1)
    unsupported = (
        f"{infinite:,} of {nodes:,} nodes ({100 * share:.0f} %) {kind.without_support}, because there are too few "
        f"labelled nodes near them"
    )
    alpha_as_coverage = (
        f"alpha = {alpha:g} is the error rate: {calibrated.prediction.noun}s may miss the truth {100 * alpha:g} % of "
        f"the time. For {100 * alpha:g} % coverage, set alpha = {1 - alpha:.3g}"
    )
    cautions = (
        *reasons,
        *short,
        *too_few,
        *([alpha_as_coverage] if alpha > 0.5 else []),
        *too_low,
        *(_on_drift(look) for look in large if look not in used),
        *([unsupported] if share >= _LEAST_SHARE and not too_few else []),
        *few,
        *too_good,
    )
    checked = ["number of labels", "support"]
    if gaps:
        checked.append(f"coverage by {' and '.join(gaps)}")
    if looks:
        differences = ", ".join(dict.fromkeys(look.what for look in looks))
        checked.append(f"whether labelled nodes differ from the others in {differences}")
    return {
        "withdrawn": reasons[0] if reasons else "",
        "remedy": _REMEDY if used else "",
        "warnings": cautions,
        "looked_at": ", ".join(checked),
        "weak": tuple(weak),
    }


#: Advice if the labels may have been used for training.
_TRAINED = "if it was trained on these labels, calibrate on others (otherwise it is merely too cautious)"


def _reasons(
    large: Sequence[Drift], looks: Sequence[Drift], accuracy: Accuracy | None, trained: int
) -> tuple[list[str], list[Drift]]:
    """Return why the promise does not hold, the clearest reason first, and the differences that say so."""
    reasons = []
    if trained:
        labels = "1 calibration label" if trained == 1 else f"{trained:,} calibration labels"
        reasons.append(f"the model was trained on {labels} (`train_mask`). {_OTHERS}")
    easier = [look for look in large if look.easier and look.distance >= _EASIER]
    too_good = accuracy is not None and accuracy.too_good
    if not easier and too_good:
        easier = [look for look in looks if look.easier and look.p_value < _SUPPORTING][:1]
    cause = ""
    if accuracy is not None and not trained and (too_good or accuracy.share > _NEARLY_ALL):
        cause = f". It was probably trained on them: it is right for {100 * accuracy.share:.1f} % of them. {_OTHERS}"
    reasons += [_on_drift(look) + (cause if look is easier[0] else "") for look in easier]
    rest = [look for look in large if look.distance >= _GRAVE and not look.ease]
    return reasons + [_on_drift(look) for look in rest], [*easier, *rest]


#: Advice if the labels are no random sample.
_REMEDY = (
    "label a few hundred nodes drawn at random among those without a label, and pass these as calibration (`--labels`) "
    "and the labels that you have as evidence (`--evidence`)"
)
#: Advice if they were.
_OTHERS = "Calibrate on labels that it has not seen"


def _on_drift(look: Drift) -> str:
    """Return a difference in words, with what follows from it."""
    first, second = look.between
    if not look.ease:
        return f"{look}; coverage may differ there"
    surer, other = (first, second) if look.easier else (second, first)
    reading = str(look)
    finding = f"the model finds the {surer} nodes easier than the {other} nodes. {reading[:1].upper()}{reading[1:]}"
    if look.easier:
        return finding
    return f"{finding}. If it was trained on some of the {second} nodes, leave those out (--training)"


def _on_labels(count: int, alpha: float, consequence: str) -> tuple[list[str], list[str]]:
    """Return what to say where labels are few, and where they are too few for any threshold."""
    needed = fewest_ranks(alpha)
    if count < needed:
        text = f"{count:,} labels are too few for alpha = {alpha:g}, which needs at least {needed:,}"
        return [], [f"{text}: {consequence}"]
    low, high = coverage_band(count, alpha)
    if low >= 1.0 - alpha - _FEW:
        return [], []
    text = f"only {count:,} labels set the level: with others, coverage could be anywhere from {100 * low:.0f} to"
    return [f"{text} {100 * high:.0f} %"], []
