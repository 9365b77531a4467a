"""What a method promises, and what to watch for: low coverage, labels that are no random sample, little support.

Some findings withdraw the promise: the model is more confident about the labelled nodes than about the others, because
it was trained on them or because they are easy; or the labelled nodes differ strongly from the others. Coverage on the
other nodes is then likely to be lower than on the labelled ones, whatever the method, and the verdict says so first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.evaluation.drift import ALARM, Drift, drifts
from napsets.evaluation.kinds import Kind, kind_of
from napsets.levels import coverage_band, falls_short, fewest_ranks

if TYPE_CHECKING:
    from napsets.evaluation.results import Comparison
    from napsets.methods import Calibrated


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


def is_shifted(calibrated: Calibrated) -> bool:
    """Return whether coverage is a theorem for the population that importance weights describe, if these are right."""
    return not calibrated.is_exact and bool(getattr(calibrated.method.localiser, "shifted", False))


#: A method is said to fall short where chance would make it cover so little less often than this.
SHORT = 0.001
#: A smaller share of nodes without a threshold of their own is too small to report.
_LEAST_SHARE = 0.1
#: Drift of this size withdraws the promise, whatever it is in.
_GRAVE = 0.2
#: So does a smaller one, where it shows that the model finds the labelled nodes easier.
_EASIER = 0.1
#: Labels are few where another draw of them could cost this much coverage.
_FEW = 0.05
#: A model is suspiciously good where it is right so often, and so much more often than its probabilities promise; one
#: that is merely too cautious is seldom right so often.
_RIGHT, _TOO_GOOD = 0.95, 0.05
#: From this share of right predictions on, it is likely that a model was trained on labels that it is surer of.
_NEARLY_ALL = 0.995
#: Where a model is suspiciously good, this p-value of a difference in confidence is enough.
_SUPPORTING = 0.01


@dataclass(frozen=True)
class Accuracy:
    """How often a model is right about the labelled nodes, and how often its probabilities promise it to be."""

    #: The two shares.
    share: float
    promised: float
    #: How often a model whose probabilities are right would be right so often, or more: the binomial tail at the
    #: average promise, which is on the safe side (Hoeffding, 1956).
    p_value: float

    @property
    def too_good(self) -> bool:
        """Whether the model is nearly always right, and far more often than its probabilities say, beyond chance."""
        return self.p_value < ALARM and self.share >= _RIGHT and self.share - self.promised >= _TOO_GOOD

    def __str__(self) -> str:
        return (
            f"the model is right for {100 * self.share:.1f} % of the labelled nodes, though its probabilities "
            f"promise {100 * self.promised:.1f} %"
        )


def drifts_in(comparison: Comparison, class_names: Sequence[str] | None = None) -> tuple[Drift, ...]:
    """Compare the calibration nodes with the evaluation nodes, and nodes with a label with those that have none."""
    calibration, judged = comparison.data.calibration, comparison.nodes
    labelled = np.union1d(calibration, judged)
    others = np.setdiff1d(np.flatnonzero(~comparison.known), comparison.training)
    unlabelled = np.setdiff1d(others, labelled, assume_unique=True)
    look = partial(
        drifts, comparison.graph, comparison.predicted, kind=comparison.kind, class_names=class_names,
        score=comparison.settings.score, outputs=comparison.data.outputs,
    )  # fmt: skip
    return look(calibration, judged, between=("calibration", "evaluation")) + look(
        labelled, unlabelled, between=("labelled", "unlabelled")
    )


def accuracy_on(kind: Kind, outputs: npt.NDArray[Any], truth: npt.NDArray[Any]) -> Accuracy | None:
    """Return how often the model is right about labelled nodes, and what it promises; None where it promises nothing.

    Examples
    --------
    >>> from napsets.evaluation.kinds import SETS
    >>> accuracy_on(SETS, np.tile([0.75, 0.25], (40, 1)), np.zeros(40, dtype=int)).p_value < 1e-4
    True
    """
    from scipy.special import bdtrc

    counted = kind.accuracy(outputs, truth)
    if counted is None or not truth.size:
        return None
    hits, promised = counted
    mean = min(promised / truth.size, 1.0)
    tail = float(bdtrc(hits - 1, truth.size, mean)) if hits > promised else 1.0
    return Accuracy(hits / truth.size, mean, tail)


def find_cautions(
    calibrated: Calibrated,
    alpha: float,
    *,
    infinite: int,
    nodes: int,
    looks: Sequence[Drift] = (),
    hits: int | None = None,
    accuracy: Accuracy | None = None,
    trained: int = 0,
    weak: Sequence[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return why the promise of a method does not hold (or nothing), and all warnings, the gravest first.

    Of the `nodes`, `infinite` lack support and, where all were judged, `hits` are covered. `trained` labelled nodes are
    known to have been trained on, and `weak` says which classes and groups are covered too little.
    """
    count, kind = level_labels(calibrated), kind_of(calibrated.prediction)
    short = []
    if hits is not None and falls_short(hits, nodes, count, alpha) < SHORT:
        short.append(
            f"coverage is {100 * hits / nodes:.1f} % instead of {100 * (1 - alpha):g} %, too low for chance; the "
            f"calibration nodes probably differ from the evaluation nodes"
        )
    large = sorted((look for look in looks if look.matters(len(looks))), key=lambda look: -look.distance)
    reasons, used = _reasons(large, looks, accuracy, trained)
    too_good = [f"{accuracy}; {_TRAINED}"] if accuracy is not None and accuracy.too_good and not reasons else []
    drifted = [_on_drift(look) for look in large if look not in used]
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
    warnings = (
        *reasons,
        *short,
        *too_few,
        *([alpha_as_coverage] if alpha > 0.5 else []),
        *weak,
        *drifted,
        *([unsupported] if share >= _LEAST_SHARE and not too_few else []),
        *few,
        *too_good,
    )
    return reasons[0] if reasons else "", warnings


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


def checked(looks: Sequence[Drift], weak: Sequence[str] = ()) -> str:
    """Return what was checked for warnings, in words."""
    differences = list(dict.fromkeys(look.what for look in looks))
    parts = ["number of labels", "support", *([f"coverage by {' and '.join(weak)}"] if weak else [])]
    if differences:
        parts.append(f"whether labelled nodes differ from the others in {', '.join(differences)}")
    return ", ".join(parts)
