"""Whether labelled nodes are like the others, in what can be seen without labels.

Every guarantee rests on labels gathered at random. Whether they were shows in two things that are known of all nodes:
how many neighbours a node has, and what the model predicts for it. If the labelled nodes are a random part, the
shares of groups among them and among the others differ by chance alone, and a χ² test says how often chance would do as
much. With a million nodes every difference is more than chance, so a difference must also be large: its size is the
share of the labelled nodes that would have to be exchanged (the distance in total variation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.graph import Graph
from napsets.groups import by_quantiles

__all__ = ["ALARM", "WORTH", "Drift", "drift_of", "drifts", "predicted_classes"]

#: False alarms are as rare as this, over all differences that are looked at together.
ALARM = 0.001
#: A smaller distance is not worth a word, however sure it is.
WORTH = 0.05
#: Groups in which fewer nodes are expected are put together, or χ² would not follow its law.
_FEWEST = 5.0


@dataclass(frozen=True)
class Drift:
    """How far two sets of nodes are apart in one respect.

    Attributes
    ----------
    what : str
        The respect: "degree", "predicted class" or "prediction".
    between : (str, str)
        What the two sets are called.
    distance : float
        Distance in total variation: the share of the first that would have to be exchanged to look like the second.
    p_value : float
        How often chance alone would put a random part of the nodes so far from the rest, by the law of χ².
    group : str
        The group whose shares differ the most, as words behind "nodes".
    shares : (float, float)
        Its share of the first set and of the second.
    """

    what: str
    between: tuple[str, str]
    distance: float
    p_value: float
    group: str
    shares: tuple[float, float]

    def matters(self, looks: int) -> bool:
        """Return whether it is worth a warning: more than chance, among so many looks, and large."""
        return self.p_value * looks < ALARM and self.distance >= WORTH

    def __str__(self) -> str:
        first, second = self.between
        sure = "p < 10⁻⁶" if self.p_value < 1e-6 else f"p = {self.p_value:.2g}"
        return (
            f"{first} nodes differ from {second} ones in {self.what}: nodes {self.group} are "
            f"{100 * self.shares[0]:.0f} % of the {first} and {100 * self.shares[1]:.0f} % of the {second} "
            f"({100 * self.distance:.0f} % would have to be exchanged; {sure})"
        )


def drifts(
    graph: Graph,
    predicted: npt.NDArray[Any],
    first: IntArray,
    second: IntArray,
    *,
    between: tuple[str, str] = ("labelled", "other"),
    class_names: Sequence[str] | None = None,
) -> tuple[Drift, ...]:
    """Compare two sets of nodes in degree and in what is predicted of them.

    Parameters
    ----------
    graph : Graph
        Where degrees are counted; nodes are cut into fifths.
    predicted : array of shape (nodes,)
        The most probable class of each node; or numbers, which are cut into fifths.
    first, second : arrays of integers
        The nodes.
    between : (str, str)
        What the two sets are called.
    class_names : sequence of str, optional
        What classes are called.
    """
    if not (first.size and second.size):
        return ()
    both = np.union1d(first, second)
    degrees = graph.degrees
    by_degree = _fifths(degrees, both, _neighbours)
    if predicted.dtype.kind == "f":
        of_model, what = _fifths(predicted, both, _predictions), "prediction"
    else:
        count = int(predicted[both].max()) + 1
        names = [f"class {y}" for y in range(count)] if class_names is None else class_names
        of_model = predicted, [f"predicted to be {names[y]}" for y in range(count)]
        what = "predicted class"
    return tuple(
        drift_of(groups[first], groups[second], called, what=name, between=between)
        for name, (groups, called) in (("degree", by_degree), (what, of_model))
    )


def predicted_classes(outputs: Any, piece: int = 1 << 18) -> IntArray:
    """Return the most probable class of each node, some nodes at a time."""
    found = np.empty(outputs.shape[0], dtype=np.int64)
    for start in range(0, found.size, piece):
        found[start : start + piece] = outputs[start : start + piece].argmax(axis=1)
    return found


def _fifths(values: npt.NDArray[Any], nodes: IntArray, called: Callable[[Any], str]) -> tuple[IntArray, list[str]]:
    """Cut nodes into fifths by a number that each has; return the group of every node, and what groups are called."""
    groups = by_quantiles(values, 5, nodes)
    mine = groups[nodes]
    return groups, [called(values[nodes[mine == g]]) for g in range(int(mine.max()) + 1)]


def drift_of(first: IntArray, second: IntArray, names: Sequence[str], *, what: str, between: tuple[str, str]) -> Drift:
    """Compare the groups of two sets of nodes, numbered from 0, as many as there are `names`."""
    counts = np.stack([np.bincount(each, minlength=len(names)) for each in (first, second)])
    shares = counts / counts.sum(axis=1, keepdims=True)
    apart = shares[0] - shares[1]
    most = int(np.abs(apart).argmax())
    return Drift(
        what,
        between,
        0.5 * float(np.abs(apart).sum()),
        _p_value(_merged(counts)),
        names[most],
        (float(shares[0, most]), float(shares[1, most])),
    )


def _neighbours(degrees: IntArray) -> str:
    low, high = int(degrees.min()), int(degrees.max())
    if low == high:
        return f"with {low} neighbour{'s' * (low != 1)}"
    return f"with {low:,} to {high:,} neighbours"


def _predictions(values: FloatArray) -> str:
    return f"predicted to have {values.min():.3g} to {values.max():.3g}"


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
