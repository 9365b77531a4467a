"""Whether labelled nodes are like the others, as far as that is visible without labels.

Every guarantee assumes that the labelled nodes are a random sample. This can be checked with what is known of all
nodes: how many neighbours a node has, what the model predicts for it, how confident the model is, and how many of its
neighbours the model predicts alike. For a random sample, the shares of groups differ from those of the other nodes by
chance alone, and a χ² test gives the p-value. With a million nodes every difference is significant, so a difference
must also be large: its size is the distance in total variation, the share of the labelled nodes that would have to be
exchanged.

A model is more confident about nodes that it was trained on, and about easy nodes. Labels of such nodes give thresholds
that are too small for the others, so a difference in this direction withdraws the promise (`Drift.easier`). The score
at the predicted label adds nothing to these tests: for the scores of a row it is a function of the top probability and
of the node's own random number. Labels on which a model is right far more often than its probabilities promise
(`Accuracy`) are another sign of training on them. A model to which none of the labels is improbable has seen them: a
model that has not is sometimes sure of something else. This is claimed only where another sign agrees: it is right more
often than it promises, or about the labelled nodes it is less confident than about the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, IntArray
from napsets.evaluation.kinds import SETS, Kind, by_fifths
from napsets.graph import Graph

if TYPE_CHECKING:
    from napsets.evaluation.results import Comparison

#: False alarms are as rare as this, over all differences that are looked at together.
ALARM = 0.001
#: A smaller distance is too small to report, however small its p-value.
WORTH = 0.05
#: A model is suspiciously good where it is right so often, and so much more often than its probabilities promise; one
#: that is merely too cautious is seldom right so often.
_RIGHT, _TOO_GOOD = 0.95, 0.05
#: A leak is claimed where labels without it would be as probable as they are less often than this: in general, and
#: where the confidence about the labelled nodes differs from that about the others, which nothing else explains.
_LEAKED, _LEAKED_TOO = 1e-6, 0.01
#: Outputs that are sharpened at most, the smallest probability that counts, and the largest power.
_MOST_OUTPUTS, _SMALLEST, _SHARPEST = 5_000, 1e-12, 50.0
#: Groups in which fewer nodes are expected are put together, or χ² would not follow its law.
_FEWEST = 5.0
#: Nodes that are compared on each side at most: more could not show a difference that matters.
_MOST = 1 << 18


@dataclass(frozen=True)
class Drift:
    """A difference between two sets of nodes in one respect."""

    what: str  #: The respect: "degree", "predicted class" or "prediction".
    between: tuple[str, str]  #: What the two sets are called.
    #: Distance in total variation: the share of the first that would have to be exchanged to look like the second.
    distance: float
    #: How often chance alone would put a random part of the nodes so far from the rest, by the law of χ².
    p_value: float
    group: str  #: The group whose shares differ most, as words that follow "nodes".
    shares: tuple[float, float]  #: Its share of the first set and of the second.
    ease: str = ""  #: The measure of how easy nodes are for the model, if it is compared.
    #: Its average over the first set and over the second; larger where nodes are easier.
    means: tuple[float, float] = (math.nan, math.nan)

    @property
    def easier(self) -> bool:
        """Whether the first set is the easier one for the model."""
        return self.means[0] > self.means[1]

    def matters(self, looks: int) -> bool:
        """Whether it is worth a warning: large, and more than chance among this many looks."""
        return self.p_value * looks < ALARM and self.distance >= WORTH


def drifts(
    graph: Graph,
    predicted: AnyArray,
    first: IntArray,
    second: IntArray,
    *,
    kind: Kind = SETS,
    between: tuple[str, str] = ("labelled", "other"),
    class_names: Sequence[str] | None = None,
    score: object = None,
    outputs: AnyArray | None = None,
) -> tuple[Drift, ...]:
    """Compare two sets of nodes in degree, in the predictions and, with `outputs`, in the model's confidence."""
    if not (first.size and second.size):
        return ()
    first, second = _at_most(first), _at_most(second)
    both = np.union1d(first, second)
    degree = by_fifths("degree", graph.degrees, both, _neighbours)
    drifts = []
    # One at a time: each takes some numbers per node.
    for respect in chain([degree], kind.respects(graph, predicted, outputs, score, both, class_names)):
        groups, values = respect.groups, respect.values
        drift = drift_of(groups[first], groups[second], respect.names, what=respect.what, between=between)
        if respect.ease:
            means = float(values[first].mean()), float(values[second].mean())
            drift = replace(drift, ease=respect.ease, means=means)
        drifts.append(drift)
    return tuple(drifts)


def drifts_in(comparison: Comparison, class_names: Sequence[str] | None = None) -> tuple[Drift, ...]:
    """Compare the calibration nodes with the evaluation nodes, and nodes with a label with those that have none."""
    calibration, judged = comparison.data.calibration, comparison.nodes
    labelled = np.union1d(calibration, judged)
    look = partial(
        drifts, comparison.graph, comparison.predicted, kind=comparison.kind, class_names=class_names,
        score=comparison.settings["score"], outputs=comparison.data.outputs,
    )  # fmt: skip
    return look(calibration, judged, between=("calibration", "evaluation")) + look(
        labelled, comparison.unlabelled, between=("labelled", "unlabelled")
    )


def drift_of(first: IntArray, second: IntArray, names: Sequence[str], *, what: str, between: tuple[str, str]) -> Drift:
    """Compare the groups of two sets of nodes, numbered from 0, as many as there are `names`."""
    counts = np.stack([np.bincount(groups, minlength=len(names)) for groups in (first, second)])
    shares = counts / counts.sum(axis=1, keepdims=True)
    difference = shares[0] - shares[1]
    most = int(np.abs(difference).argmax())
    return Drift(
        what,
        between,
        0.5 * float(np.abs(difference).sum()),
        _p_value(_merged(counts)),
        names[most],
        (float(shares[0, most]), float(shares[1, most])),
    )


def _at_most(nodes: IntArray) -> IntArray:
    """Return the nodes, or where they are very many, as many as are compared, evenly spread."""
    return nodes[:: -(-nodes.size // _MOST)]


def _neighbours(degrees: IntArray) -> str:
    low, high = int(degrees.min()), int(degrees.max())
    if low == high:
        return f"with {low} neighbour{'s' * (low != 1)}"
    return f"with {low:,} to {high:,} neighbours"


def _merged(counts: IntArray) -> IntArray:
    """Put groups together, the smallest first, until each is large enough for the law of χ²."""
    counts = counts[:, np.argsort(counts.sum(axis=0), kind="stable")]
    smaller_side = counts.sum(axis=1).min() / max(int(counts.sum()), 1)
    while counts.shape[1] > 1 and counts[:, 0].sum() * smaller_side < _FEWEST:
        joined = counts[:, :1] + counts[:, 1:2]
        rest = counts[:, 2:]
        place = int(np.searchsorted(rest.sum(axis=0), joined.sum()))
        counts = np.concatenate([rest[:, :place], joined, rest[:, place:]], axis=1)
    return counts


def _p_value(counts: IntArray) -> float:
    """Return the p-value of Pearson's test that the rows of a table have the same shares."""
    from scipy.special import chdtrc

    if counts.shape[1] < 2:
        return 1.0
    total = counts.sum()
    expected: FloatArray = counts.sum(axis=1, keepdims=True) * (counts.sum(axis=0, keepdims=True) / total)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(chdtrc(counts.shape[1] - 1, statistic))


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a model on the labelled nodes, and the accuracy that its probabilities promise."""

    nodes: int  #: Labelled nodes.
    #: The two shares.
    share: float
    promised: float
    #: How often a model whose probabilities are right would be right so often, or more: the binomial tail at the
    #: average promise, which is on the safe side (Hoeffding, 1956).
    p_value: float
    #: The smallest probability that the model gives to the label of a labelled node, which share of nodes would have a
    #: smaller one if the model had not seen the labels, and whether it has: none of the labels is improbable.
    least: float = 0.0
    below: float = 0.0
    leaked: bool = False

    @property
    def chance(self) -> float:
        """The probability that no label is improbable if the model has not seen the labels."""
        return (1.0 - self.below) ** self.nodes

    @property
    def better(self) -> bool:
        """Whether the model is right far more often than its probabilities say, beyond chance."""
        return self.p_value < ALARM and self.share - self.promised >= _TOO_GOOD

    @property
    def too_good(self) -> bool:
        """Whether it is nearly always right, too."""
        return self.better and self.share >= _RIGHT


def accuracy_on(
    kind: Kind, outputs: AnyArray, truth: AnyArray, others: AnyArray | None = None, looks: Sequence[Drift] = ()
) -> Accuracy | None:
    """Compare a model's accuracy on labelled nodes with what it promises; None for models of numbers.

    `others` are its outputs for nodes without a label, and `looks` are differences between the two.

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
    found = Accuracy(int(truth.size), hits / truth.size, mean, tail)
    look = confidence_of(looks)
    harder = look is not None and look.matters(len(looks)) and not look.easier
    if others is None or not len(others) or not (found.better or harder):
        return found
    least = float(outputs[np.arange(truth.size), truth].min())
    if harder and not found.too_good:
        below = min(_share_below(least, rows, found, flatten=True) for rows in (outputs, others))
    else:
        below = _share_below(least, others, found)
    easier = look is not None and look.easier and look.p_value < ALARM
    if outputs.shape[1] < 3 and not (easier or harder):  # two classes may be smoothed towards each other
        return found
    found = replace(found, least=least, below=below)
    # What makes nodes harder shows elsewhere too; more right answers than promised on harder nodes alone are a leak.
    alone = harder and not any(other.matters(len(looks)) for other in looks if other is not look)
    chance = min(found.chance, found.p_value) if alone else found.chance
    return replace(found, leaked=chance < (_LEAKED_TOO if easier or alone else _LEAKED))


def confidence_of(looks: Sequence[Drift]) -> Drift | None:
    """Return the difference in confidence between the nodes with a label and the others, where it was looked at."""
    return next((look for look in reversed(looks) if look.what == "confidence"), None)


def _share_below(least: float, outputs: AnyArray, accuracy: Accuracy, *, flatten: bool = False) -> float:
    """Estimate the share of nodes whose true class has a smaller probability, from the outputs alone.

    A model may be too cautious, or with `flatten` too sure: the outputs are raised to the power at which they promise
    the accuracy seen (at its upper end), once as they are, and once less what a row gives to every class (not of two
    classes, where nothing would be left of the smaller one). The smaller of the two shares counts.
    """
    error = math.sqrt(accuracy.share * (1.0 - accuracy.share) / accuracy.nodes)
    wanted = min(accuracy.share + 2.0 * error, 1.0 - 0.5 / accuracy.nodes)
    sample = outputs[:: -(-len(outputs) // _MOST_OUTPUTS)].astype(np.float64)
    shares = []
    for rows in (sample, sample - sample.min(axis=1, keepdims=True))[: 1 + (sample.shape[1] > 2)]:
        logs = np.log(np.maximum(rows, _SMALLEST))
        low, high = 1.0 / _SHARPEST if flatten else 1.0, _SHARPEST
        for _ in range(30):
            middle = math.sqrt(low * high)
            sharpened = _powers(logs, middle)
            low, high = (middle, high) if sharpened.max(axis=1).mean() < wanted else (low, middle)
        shares.append(float((sharpened * (sample < least)).sum(axis=1).mean()))
    return min(shares)


def _powers(logs: FloatArray, power: float) -> FloatArray:
    """Return rows of probabilities, given as logarithms, raised to a power and normalised."""
    powers = np.exp(power * (logs - logs.max(axis=1, keepdims=True)))
    normalised: FloatArray = powers / powers.sum(axis=1, keepdims=True)
    return normalised
