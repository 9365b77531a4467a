"""Scores + graph + decay → one threshold a node.

Calibration nodes are numbered in the order of their scores; a search then leaves a node's neighbourhood as bits
that stand in score order, and the weighted quantile is a matter of counting bits (see `napsets.kernels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_alpha,
    check_index,
    check_kind,
    check_list,
    check_scores,
)
from napsets.checks.frozen import frozen
from napsets.errors import InvalidInputError
from napsets.graph import Graph, check_graph
from napsets.localisers.decay import hop_weights as decay_weights
from napsets.localisers.depth import check_room, useful_hops
from napsets.quantile import effective_size

if TYPE_CHECKING:
    from napsets.kernels.hub_rows import HubRows

__all__ = ["CalibrationIndex", "HopThresholds", "hop_thresholds", "neighbourhood_thresholds", "split_thresholds"]


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

    @property
    def effective_size(self) -> FloatArray:
        """(Σw)²/Σw² of each neighbourhood, 0 where it has no weight; shape ``(decays, nodes)``."""
        return effective_size(self.weights, self.hop_counts)


class CalibrationIndex:
    """A graph whose calibration nodes are numbered in ascending order of their scores.

    Building it costs a sort of the scores; it serves any number of nodes, decays, alphas and splits.

    Parameters
    ----------
    graph : Graph
        The graph whose neighbourhoods count.
    scores : array of shape (calibration nodes,)
        ``scores[i]`` is the score of ``calibration[i]`` at its label.
    calibration : array
        Node indices or a boolean mask.
    """

    def __init__(self, graph: Graph, scores: ArrayLike, calibration: ArrayLike) -> None:
        self.graph = graph = check_graph(graph)
        self.calibration = frozen(check_index("calibration", calibration, graph.num_nodes, unique=True))
        if self.calibration.size == 0:
            raise InvalidInputError("`calibration` must hold at least one node; it is empty")
        values = check_scores("scores", scores, size=self.calibration.size)
        order = np.argsort(values)  # which of two equal scores comes first changes no threshold
        self.sorted_scores: FloatArray = values[order]
        others = np.ones(graph.num_nodes, dtype=bool)
        others[self.calibration] = False
        #: nodes[number] is a node, numbers[node] its number: calibration nodes first, by score.
        self.nodes: IntArray = np.concatenate([self.calibration[order], np.flatnonzero(others)])
        self.numbers = np.empty(graph.num_nodes, dtype=graph.indices.dtype)
        self.numbers[self.nodes] = np.arange(graph.num_nodes)
        self.starts = graph.indptr[:-1][self.nodes]
        self.stops = graph.indptr[1:][self.nodes]
        #: What `renumber` returns, where it was asked for.
        self.renumbered: tuple[npt.NDArray[Any], IntArray] | None = None

    def renumber(self, threads: int = 1) -> tuple[npt.NDArray[Any], IntArray]:
        """Return the neighbours by number instead of id, and where those that calibrate end in each row.

        The first is a copy of the graph's largest array, in which the calibration nodes of each row come first. It
        is made once, when it pays.
        """
        if self.renumbered is None:
            from napsets.kernels.csr import renumbered

            graph = self.graph
            columns, middles = renumbered(graph.indptr, graph.indices, self.numbers, self.calibration.size, threads)
            self.renumbered = columns, middles[self.nodes]
        return self.renumbered

    @cached_property
    def hub_degree(self) -> int:
        """The degree from which on a node's row is held as a bit vector, where searches want that."""
        from napsets.kernels.hub_rows import least_hub_degree

        return least_hub_degree(self.stops - self.starts)

    @cached_property
    def hubs(self) -> HubRows:
        """The rows of well connected nodes as bit vectors."""
        from napsets.kernels.hub_rows import hub_rows

        columns, middles = self.renumber()
        return hub_rows(self.hub_degree, self.starts, middles, self.stops, columns)

    def masks(self, splits: BoolArray | None) -> npt.NDArray[np.uint64]:
        """Pack, for each split, which calibration nodes it uses into words, padded to whole blocks."""
        from napsets.kernels.selection import BLOCK_WORDS

        size = self.calibration.size
        words = -(-size // (64 * BLOCK_WORDS)) * BLOCK_WORDS
        flags = np.zeros((1 if splits is None else splits.shape[0], words * 64), dtype=bool)
        if splits is None:
            flags[:, :size] = True
        else:
            flags[:, self.numbers[self.calibration]] = splits
        return np.packbits(flags, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


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
        Node indices or a boolean mask: where thresholds are wanted. A node never calibrates itself.
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
    found = neighbourhood_thresholds(index, nodes, weights, alpha, threads=threads, progress=progress)
    values = found.values
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
    """Do what `hop_thresholds` does with an index made once, keeping the counts by hop beside the thresholds."""
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
        For each split, the nodes whose thresholds are wanted.
    hop_weights, alpha, threads, progress
        As in `hop_thresholds`.
    """
    used, asked = as_array("splits", splits), check_list("nodes", nodes, "arrays, one a split")
    _checked(index)
    if used.dtype != np.bool_ or used.shape != (len(asked), index.calibration.size):
        raise InvalidInputError(
            f"`splits` must be boolean of shape ({len(asked)}, {index.calibration.size}): one row for each entry of "
            f"`nodes`, one column a calibration node; got {used.dtype} of shape {used.shape}"
        )
    chosen = [check_index("nodes", part, index.graph.num_nodes) for part in asked]
    sizes = [part.size for part in chosen]
    pair_split = np.repeat(np.arange(len(chosen)), sizes)
    pair_node = np.concatenate([np.empty(0, dtype=np.int64), *chosen])
    found = _thresholds(index, pair_node, pair_split, used, hop_weights, alpha, threads, progress, strategy)
    ends = np.cumsum(sizes)
    return [
        HopThresholds(found.values[:, :, end - size : end], found.hop_counts[end - size : end], found.weights)
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
    from napsets.kernels.few import are_few, thresholds_of_few
    from napsets.kernels.threads import available_threads

    weights = _weight_rows(hop_weights)
    alphas = np.array([check_alpha(rate) for rate in _rates(alpha)])
    # Hops at which there is no node add nothing to any sum, not even a rounding error.
    weights = np.ascontiguousarray(weights[:, : useful_hops(index.graph, nodes, weights.shape[1])])
    decays, hops = weights.shape
    check_room(nodes.size, hops)
    values = np.full((nodes.size, decays, alphas.size), np.inf)
    counts = np.zeros((nodes.size, hops), dtype=np.int64)
    if strategy is None and hops and are_few(index.graph, nodes.size, hops):
        available_threads(threads)
        used = None if splits is None or pair_split is None else splits[pair_split]
        values, counts = thresholds_of_few(index, nodes, used, weights, 1.0 - alphas)
        if progress is not None and nodes.size:
            progress(nodes.size, nodes.size)
    elif hops and nodes.size:
        from napsets.kernels.search import Job, handling_order, search

        order = handling_order(index.graph, nodes, hops)
        ordered = nodes[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sources = ordered[first]
        split = np.zeros(nodes.size, dtype=np.int64) if pair_split is None else pair_split[order]
        job = Job(
            index=index,
            sources=sources,
            pair_offsets=np.append(first, nodes.size).astype(np.int64),
            pair_split=split,
            masks=index.masks(splits),
            weights=weights,
            levels=1.0 - alphas,
            thresholds=np.empty_like(values),
            hop_counts=np.empty_like(counts),
        )
        search(job, threads=threads, progress=progress, strategy=strategy)
        values[order] = job.thresholds
        counts[order] = job.hop_counts
    return HopThresholds(np.ascontiguousarray(values.transpose(1, 2, 0)), counts, weights)


def _rates(alpha: Any) -> list[Any]:
    """Return the error rates one by one, whether one was given or several."""
    try:
        return [alpha] if isinstance(alpha, str | dict | set) else list(alpha)
    except TypeError:  # a number, or an array without dimensions
        return [alpha]


def _checked(index: object) -> CalibrationIndex:
    way = "Make one with CalibrationIndex(graph, scores, calibration)."
    return check_kind("index", index, CalibrationIndex, way=way)


def _weight_rows(hop_weights: ArrayLike) -> FloatArray:
    array = as_array("hop_weights", hop_weights)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] == 0):
        raise InvalidInputError(f"`hop_weights` must have shape (hops,) or (decays, hops); got {array.shape}")
    rows = np.atleast_2d(array)
    return np.stack([decay_weights(row, rows.shape[1], name="hop_weights") for row in rows])
