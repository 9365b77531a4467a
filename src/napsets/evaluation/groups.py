"""Groups of nodes within which coverage is measured: an array with one entry per node of the graph, −1 for none.

Groups by degree, confidence or neighbourhood do not use labels; groups by class do. Any array of integers or names can
be used as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, IntArray, check_index, check_integers, check_probabilities
from napsets.checks.values import check_count
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.graph import Graph, check_graph
from napsets.groups import by_quantiles

#: Into this many groups of about equal size nodes are cut by a number.
FIFTHS = 5
_MOST_BINS = 10**6


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


def _by_quantiles(values: npt.NDArray[np.generic], bins: int, nodes: ArrayLike | None) -> IntArray:
    count = check_count("bins", bins, minimum=1, maximum=_MOST_BINS)
    return by_quantiles(values, count, None if nodes is None else check_index("nodes", nodes, values.size))
