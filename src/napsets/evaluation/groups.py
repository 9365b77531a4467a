"""Groups of nodes within which coverage is measured: an array with one entry per node of the graph, −1 for none.

Groups by degree, confidence or neighbourhood do not use labels; groups by class do. Any array of integers or names can
be used as well. The module also measures how easy each node is for the model, as far as that is visible without its
label: a model is more confident about nodes that it was trained on, and about typical nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_index, check_integers, check_probabilities
from napsets.checks.values import check_count
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.graph import Graph, check_graph
from napsets.groups import by_quantiles

#: Into this many groups of about equal size nodes are cut by a number.
FIFTHS = 5
_MOST_BINS = 10**6
#: Nodes whose neighbours are compared at a time.
_PIECE = 1 << 18


def groups_by_class(labels: ArrayLike) -> IntArray:
    """Return the class of each node; −1 where it is unknown."""
    return check_integers("labels", labels).astype(np.int64)


def groups_by_degree(graph: Graph, bins: int = 5, nodes: ArrayLike | None = None) -> IntArray:
    """Return groups of about equal size, by the number of neighbours: 0 has the fewest.

    Parameters
    ----------
    graph : Graph
        Where degrees are counted.
    bins : int
        Largest number of groups; nodes of equal degree are in the same group.
    nodes : array, optional
        Node indices or a boolean mask: the nodes that are grouped. All others are in no group.

    Examples
    --------
    >>> groups_by_degree(Graph.from_edge_index([[0, 0, 1], [1, 2, 2]], num_nodes=4), bins=2).tolist()
    [1, 1, 1, 0]
    """
    degrees = check_graph(graph).degrees
    return _by_quantiles(degrees, bins, nodes)


def groups_by_confidence(probabilities: ArrayLike, bins: int = 5, nodes: ArrayLike | None = None) -> IntArray:
    """Return groups of about equal size, by the largest probability of a node: 0 is the least confident.

    Parameters
    ----------
    probabilities : array of shape (nodes, classes)
        A model's probabilities.
    bins, nodes
        As in `groups_by_degree`.

    Examples
    --------
    >>> groups_by_confidence([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]], bins=2).tolist()
    [1, 0, 0, 1]
    """
    return _by_quantiles(check_probabilities(probabilities).max(axis=1), bins, nodes)


def groups_by_neighbourhood(
    graph: Graph, nodes: ArrayLike, radius: int = 2, min_size: int = 30, seed: int = 0
) -> IntArray:
    """Return disjoint neighbourhoods, those of `neighbourhood_partition`: 0 is the largest; small ones are none."""
    balls = neighbourhood_partition(graph, nodes, radius, min_size, seed)
    return groups_of_partition(balls, graph.num_nodes)


def groups_of_partition(partition: Sequence[IntArray], num_nodes: int) -> IntArray:
    """Return the number of the part that each node is in; −1 for none."""
    groups = np.full(num_nodes, -1, dtype=np.int64)
    for number, part in enumerate(partition):
        groups[part] = number
    return groups


def usual_groups(
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    nodes: ArrayLike,
    *,
    seed: int = 0,
) -> dict[str, IntArray]:
    """Return the groups over which evenness is always measured, by name.

    They are neighbourhoods of two hops with at least 30 of the nodes, classes, and fifths of the nodes by degree and by
    the model's confidence.
    """
    partition = neighbourhood_partition(graph, nodes, seed=seed)
    return {
        "neighbourhood": groups_of_partition(partition, check_graph(graph).num_nodes),
        "class": groups_by_class(labels),
        "degree": groups_by_degree(graph, nodes=nodes),
        "confidence": groups_by_confidence(probabilities, nodes=nodes),
    }


def named_fifths(
    values: npt.NDArray[Any], nodes: IntArray, name: Callable[[npt.NDArray[Any]], str]
) -> tuple[IntArray, list[str]]:
    """Cut nodes into fifths by a value that each has; return the group of every node, and the names of the groups."""
    groups = by_quantiles(values, FIFTHS, nodes)
    own = groups[nodes]
    return groups, [name(values[nodes[own == g]]) for g in range(int(own.max()) + 1)]


def _by_quantiles(values: npt.NDArray[np.generic], bins: int, nodes: ArrayLike | None) -> IntArray:
    count = check_count("bins", bins, minimum=1, maximum=_MOST_BINS)
    return by_quantiles(values, count, None if nodes is None else check_index("nodes", nodes, values.size))


@dataclass(frozen=True)
class Ease:
    """Something that says how easy each node is for the model."""

    #: What it is, and what its average is called.
    what: str
    average: str
    values: FloatArray  #: One number per node, larger where the node is easier.
    name: Callable[[FloatArray], str]  #: Names a group of nodes by their values, as words behind "nodes".


def ease_of_labels(graph: Graph, predicted: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> Iterator[Ease]:
    """Yield the top probability of each node, then the share of its neighbours that are predicted alike."""
    yield Ease(
        "confidence",
        "the average top probability",
        outputs.max(axis=1).astype(np.float64),
        lambda some: f"with a top probability of {some.min():.2f} to {some.max():.2f}",
    )
    yield Ease(
        "agreement with neighbours",
        "the average share of neighbours with the same predicted label",
        agreement(graph, predicted),
        lambda some: f"that agree with {100 * some.min():.0f} to {100 * some.max():.0f} % of their neighbours",
    )


def ease_of_numbers(score: Any, outputs: npt.NDArray[Any]) -> list[Ease]:
    """Return how narrow the model's own interval is, where it gives one: the negated width or spread."""
    base = getattr(score, "base", score)
    last, checked = base.columns[-1], base.check(outputs)
    if last not in ("upper", "spread"):
        return []
    width = np.abs(checked[:, 1] - checked[:, 0]) if last == "upper" else checked[:, 1]
    name = "the average width that the model gives"
    return [Ease("confidence", name, -width, lambda some: f"with a width of {-some.max():.3g} to {-some.min():.3g}")]


def agreement(graph: Graph, predicted: npt.NDArray[Any]) -> FloatArray:
    """Return which share of each node's neighbours has the same predicted class; 0 without neighbours.

    Examples
    --------
    >>> triangle = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]], num_nodes=4)
    >>> agreement(triangle, np.array([0, 0, 1, 1])).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    shares = np.zeros(graph.num_nodes, dtype=np.float64)
    for start in range(0, graph.num_nodes, _PIECE):
        ends = graph.indptr[start : start + _PIECE + 1]
        degrees = np.diff(ends)
        own = np.repeat(np.arange(degrees.size), degrees)
        alike = predicted[graph.indices[ends[0] : ends[-1]]] == predicted[start + own]
        shares[start : start + _PIECE] = np.bincount(own[alike], minlength=degrees.size) / np.maximum(degrees, 1)
    return shares
