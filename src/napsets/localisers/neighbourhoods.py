"""Scores + graph + weights by hop → one threshold per node, for arrays, without a method.

Calibration nodes are numbered in the order of their scores; a search then leaves a node's neighbourhood as bits
that stand in score order, and the weighted quantile is a matter of counting bits (see `napsets.kernels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_index,
    check_scores,
    frozen,
    sealed,
)
from napsets.checks.values import check_alpha, check_kind, check_list, check_progress, check_threads, is_several, shown
from napsets.errors import InvalidInputError
from napsets.graph import Graph, check_graph
from napsets.kernels.layout import Layout
from napsets.localisers.base import check_room, useful_hops
from napsets.localisers.hops import DECAYS as DECAYS
from napsets.localisers.hops import Sizes, Weighting
from napsets.localisers.hops import hop_weights as hop_weights
from napsets.quantile import ROUNDING


class CalibrationIndex:
    """A graph whose calibration nodes are numbered in ascending order of their scores.

    Building it costs a sort of the scores; it serves any number of nodes, decays, alphas and splits.

    Parameters
    ----------
    graph, scores, calibration
        As in `hop_thresholds`.

    Attributes
    ----------
    sorted_scores : numpy.ndarray
        The scores in ascending order.
    nodes, numbers : numpy.ndarray
        ``nodes[number]`` is a node, and ``numbers[node]`` its number: calibration nodes first, by score.
    """

    def __init__(self, graph: Graph, scores: ArrayLike, calibration: ArrayLike) -> None:
        self.graph = graph = check_graph(graph)
        self.calibration = frozen(check_index("calibration", calibration, graph.num_nodes, unique=True))
        if self.calibration.size == 0:
            raise InvalidInputError("`calibration` must hold at least one node; it is empty")
        values = check_scores("scores", scores, size=self.calibration.size)
        #: The same for kernels.
        self.layout = layout = Layout(graph, self.calibration, values)
        self.sorted_scores, self.nodes, self.numbers = layout.sorted_scores, layout.nodes, layout.numbers


@dataclass(frozen=True)
class HopThresholds:
    """What one pass over the neighbourhoods of some nodes gives.

    Attributes
    ----------
    values : numpy.ndarray
        Thresholds of shape ``(decays, alphas, nodes)``; +∞ where the mass falls short.
    hop_counts : numpy.ndarray
        Calibration nodes at each hop, shape ``(nodes, hops)``.
    weights : numpy.ndarray
        The decays' weights, shape ``(decays, hops)``.

    Of more than 64 hops, those at which there is no node of the graph may be left out.
    """

    values: FloatArray
    hop_counts: IntArray
    weights: FloatArray

    @property
    def support(self) -> IntArray:
        """Number of calibration nodes with positive weight, shape ``(decays, nodes)``."""
        return (self.weights > 0).astype(np.int64) @ self.hop_counts.T

    @cached_property
    def effective_size(self) -> FloatArray:
        """(Σw)²/Σw² of each neighbourhood, 0 where it has no weight; shape ``(decays, nodes)``."""
        sizes = Sizes(self.hop_counts, np.zeros(self.hop_counts.shape[0], dtype=np.int64))
        return sealed(np.stack([sizes.effective_size(Weighting(weights)) for weights in self.weights]))


def hop_thresholds(
    graph: Graph,
    scores: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    hop_weights: ArrayLike,
    alpha: float | Sequence[float] = 0.1,
    *,
    threads: int | None = None,
    progress: Any = None,
) -> FloatArray:
    """Return the threshold of each node, from the calibration nodes around it.

    Parameters
    ----------
    graph : Graph
        The graph whose neighbourhoods count.
    scores : array of shape (calibration nodes,)
        ``scores[i]`` is the score of ``calibration[i]`` at its label.
    calibration : array
        Node indices or a boolean mask: whose labels may be used.
    nodes : array
        Node indices or a boolean mask: the nodes to compute thresholds for. A node never calibrates itself.
    hop_weights : array of shape (hops,) or (decays, hops)
        ``hop_weights[k-1]`` is the weight of a calibration node k hops away; several rows share one search.
    alpha : float or sequence of floats
        Error rates; several share one search.
    threads : int, optional
        Threads to use; by default all cores. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, total)`` in nodes.

    Returns
    -------
    numpy.ndarray
        Shape ``(nodes,)``, with an axis for decays in front if `hop_weights` has two dimensions and then one for
        alphas if `alpha` is a sequence. +∞ where 1−α of the mass cannot be reached.

    Examples
    --------
    >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], num_nodes=4)
    >>> hop_thresholds(path, [0.2, 0.6, 0.4], calibration=[1, 2, 3], nodes=[0], hop_weights=[1, 1], alpha=0.5)
    array([0.6])
    """
    weights = as_array("hop_weights", hop_weights)
    index = CalibrationIndex(graph, scores, calibration)
    values = neighbourhood_thresholds(index, nodes, weights, alpha, threads=threads, progress=progress).values
    if np.ndim(alpha) == 0:
        values = values[:, 0]
    return values[0] if weights.ndim == 1 else values


def neighbourhood_thresholds(
    index: CalibrationIndex,
    nodes: ArrayLike,
    hop_weights: ArrayLike,
    alpha: float | Sequence[float],
    *,
    threads: int | None = None,
    progress: Any = None,
    strategy: str | None = None,
) -> HopThresholds:
    """Do what `hop_thresholds` does with an index made once, and keep the counts by hop as well as the thresholds."""
    chosen = check_index("nodes", nodes, _checked(index).graph.num_nodes)
    return _thresholds(index, chosen, None, None, hop_weights, alpha, threads, progress, strategy)


def split_thresholds(
    index: CalibrationIndex,
    splits: BoolArray,
    nodes: Sequence[ArrayLike],
    hop_weights: ArrayLike,
    alpha: float | Sequence[float],
    *,
    threads: int | None = None,
    progress: Any = None,
    strategy: str | None = None,
) -> list[HopThresholds]:
    """Compute thresholds under many calibration splits of the same nodes, searching around each node only once.

    Parameters
    ----------
    index : CalibrationIndex
        Made with the scores of every node that calibrates in any split.
    splits : boolean array of shape (splits, calibration nodes)
        ``splits[s, i]`` says whether ``index.calibration[i]`` calibrates in split s.
    nodes : sequence of arrays
        For each split, the nodes to compute thresholds for.
    hop_weights, alpha, threads, progress
        As in `hop_thresholds`.
    """
    used, node_lists = as_array("splits", splits), check_list("nodes", nodes, "arrays, one per split")
    _checked(index)
    if used.dtype != np.bool_ or used.shape != (len(node_lists), index.calibration.size):
        raise InvalidInputError(
            f"`splits` must be boolean of shape ({len(node_lists)}, {index.calibration.size}): one row for each entry "
            f"of `nodes`, one column per calibration node; got {used.dtype} of shape {used.shape}"
        )
    chosen = [check_index("nodes", part, index.graph.num_nodes) for part in node_lists]
    sizes = [part.size for part in chosen]
    pair_split = np.repeat(np.arange(len(chosen)), sizes)
    pair_node = np.concatenate([np.empty(0, dtype=np.int64), *chosen])
    pairs = _thresholds(index, pair_node, pair_split, used, hop_weights, alpha, threads, progress, strategy)
    ends = np.cumsum(sizes)
    return [
        HopThresholds(pairs.values[:, :, end - size : end], pairs.hop_counts[end - size : end], pairs.weights)
        for size, end in zip(sizes, ends, strict=True)
    ]


def _thresholds(
    index: CalibrationIndex,
    nodes: IntArray,
    pair_split: IntArray | None,
    splits: BoolArray | None,
    hop_weights: ArrayLike,
    alpha: float | Sequence[float],
    threads: int | None,
    progress: Any,
    strategy: str | None,
) -> HopThresholds:
    from napsets.kernels.layout import Reach
    from napsets.kernels.search import find_thresholds

    weights = _weight_rows(hop_weights)
    rates = check_list("alpha", alpha, "error rates") if is_several(alpha) else [alpha]
    alphas = np.array([check_alpha(rate) for rate in rates])
    options = {
        "threads": check_threads(threads),
        "strategy": check_strategy(strategy),
        "progress": check_progress(progress),
    }
    # Hops at which there is no node add nothing to any sum, not even a rounding error.
    weights = np.ascontiguousarray(weights[:, : useful_hops(index.graph, nodes, weights.shape[1])])
    check_room(nodes.size, weights.shape[1])
    values, counts = find_thresholds(
        index.layout,
        nodes,
        weights,
        Reach(1.0 - alphas, ROUNDING),
        splits=splits,
        pair_split=pair_split,
        **options,
    )
    return HopThresholds(np.ascontiguousarray(values.transpose(1, 2, 0)), counts, weights)


def check_strategy(strategy: object) -> str | None:
    """Return the way to search by its name, or None for the fastest."""
    if strategy is None:
        return None
    from napsets.kernels.jobs import STRATEGIES

    if isinstance(strategy, str) and strategy in STRATEGIES:
        return strategy
    raise InvalidInputError(f"`strategy` must be one of {', '.join(STRATEGIES)}, or None; got {shown(strategy)}")


def _checked(index: object) -> CalibrationIndex:
    way = "Make one with CalibrationIndex(graph, scores, calibration)."
    return check_kind("index", index, CalibrationIndex, way=way)


def _weight_rows(weights: ArrayLike) -> FloatArray:
    array = as_array("hop_weights", weights)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] == 0):
        raise InvalidInputError(f"`hop_weights` must have shape (hops,) or (decays, hops); got {array.shape}")
    rows = np.atleast_2d(array)
    return np.stack([hop_weights(row, rows.shape[1], name="hop_weights") for row in rows])
