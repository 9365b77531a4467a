"""How easy a node is for the model, as far as that shows without its label.

A model is surer of nodes whose labels it was trained on, and of nodes that are like most others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray
from napsets.graph import Graph

__all__ = ["Ease", "agreement", "ease_of_labels", "ease_of_numbers"]


@dataclass(frozen=True)
class Ease:
    """Something that says how easy each node is for the model.

    Attributes
    ----------
    what, average : str
        What it is, and what its average is called.
    values : numpy.ndarray
        One number per node, larger where the node is easier.
    name : callable
        Names a group of nodes by their values, as words behind "nodes".
    """

    what: str
    average: str
    values: FloatArray
    name: Callable[[FloatArray], str]


def ease_of_labels(graph: Graph, predicted: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> Iterator[Ease]:
    """Yield the top probability of each node, then the share of its neighbours that are predicted alike."""
    yield Ease("confidence", "the average top probability", outputs.max(axis=1).astype(np.float64), _by_probability)
    yield Ease(
        "agreement with neighbours",
        "the average share of neighbours with the same predicted label",
        agreement(graph, predicted),
        _by_agreement,
    )


def ease_of_numbers(score: Any, outputs: npt.NDArray[Any]) -> list[Ease]:
    """Return how narrow the model's own interval is, where it gives one: the negated width or spread."""
    base = getattr(score, "base", score)
    last, checked = base.columns[-1], base.check(outputs)
    if last not in ("upper", "spread"):
        return []
    width = np.abs(checked[:, 1] - checked[:, 0]) if last == "upper" else checked[:, 1]
    return [Ease("confidence", "the average width that the model gives", -width, _by_width)]


def _by_probability(some: FloatArray) -> str:
    return f"with a top probability of {some.min():.2f} to {some.max():.2f}"


def _by_agreement(some: FloatArray) -> str:
    return f"that agree with {100 * some.min():.0f} to {100 * some.max():.0f} % of their neighbours"


def _by_width(some: FloatArray) -> str:
    return f"with a width of {-some.max():.3g} to {-some.min():.3g}"


def agreement(graph: Graph, predicted: npt.NDArray[Any], piece: int = 1 << 18) -> FloatArray:
    """Return which share of each node's neighbours has the same predicted class; 0 without neighbours.

    Examples
    --------
    >>> triangle = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]], num_nodes=4)
    >>> agreement(triangle, np.array([0, 0, 1, 1])).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    shares = np.zeros(graph.num_nodes, dtype=np.float64)
    for start in range(0, graph.num_nodes, piece):
        ends = graph.indptr[start : start + piece + 1]
        degrees = np.diff(ends)
        own = np.repeat(np.arange(degrees.size), degrees)
        alike = predicted[graph.indices[ends[0] : ends[-1]]] == predicted[start + own]
        shares[start : start + piece] = np.bincount(own[alike], minlength=degrees.size) / np.maximum(degrees, 1)
    return shares
