"""A graph laid out for searches: nodes numbered by score, rows by number, hubs as vectors, splits as masks.

Nothing here is compiled, nor loads the compiler: what kernels have to make is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from napsets.kernels.hub_rows import HubRows

__all__ = ["BLOCK_WORDS", "FEW_HOPS", "Adjacency", "Layout", "pack"]

#: Words in a block: the bits of one are counted by a single instruction, where there is one.
BLOCK_WORDS = 8
#: Hops that are walked as asked for. Beyond them it pays to look up first how deep the graph is, and a bit vector a
#: hop would be nearly empty.
FEW_HOPS = 64


@dataclass(frozen=True)
class Adjacency:
    """A graph as compressed sparse rows.

    Attributes
    ----------
    indptr : numpy.ndarray
        Row v is ``indices[indptr[v]:indptr[v + 1]]``; int64.
    indices : numpy.ndarray
        Neighbours by id, int32 or int64.
    directed : bool
        Whether an edge may lack its way back.
    make_reverse : callable, optional
        Returns the rows along edges that go the other way, from whoever keeps them; without it they are made here.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[Any]
    directed: bool = False
    make_reverse: Callable[[], tuple[npt.NDArray[np.int64], npt.NDArray[Any]]] | None = None

    def reverse(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the rows along edges that go the other way: those of the graph itself, if it is not directed."""
        if not self.directed:
            return self.indptr, self.indices
        if self.make_reverse is not None:
            return self.make_reverse()
        from napsets.kernels.csr import reversed_rows

        return reversed_rows(self.indptr, self.indices)[:2]

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return int(self.indptr.size - 1)

    @property
    def num_edges(self) -> int:
        """Number of stored entries."""
        return int(self.indices.size)

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Neighbours of each node."""
        return np.diff(self.indptr)


class Layout:
    """An adjacency whose calibration nodes are numbered in ascending order of their scores.

    Parameters
    ----------
    adjacency : Adjacency
        The graph to be searched.
    calibration : numpy.ndarray
        Node ids, each at most once.
    scores : numpy.ndarray
        ``scores[i]`` is that of ``calibration[i]``: whatever the calibration nodes are to be numbered by.

    Attributes
    ----------
    sorted_scores : numpy.ndarray
        ``sorted_scores[number]``, float64.
    nodes, numbers : numpy.ndarray
        ``nodes[number]`` is a node and ``numbers[node]`` its number: calibration nodes first, by score.
    starts, stops : numpy.ndarray
        Where the row of a number starts and stops.
    renumbered : tuple or None
        What `renumber` returns, once it was asked for.
    """

    def __init__(self, adjacency: Adjacency, calibration: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> None:
        self.adjacency = adjacency
        self.calibration = calibration
        order = np.argsort(scores)  # which of two equal scores comes first changes no threshold
        self.sorted_scores: npt.NDArray[np.float64] = scores[order].astype(np.float64, copy=False)
        others = np.ones(adjacency.num_nodes, dtype=bool)
        others[calibration] = False
        self.nodes: npt.NDArray[np.int64] = np.concatenate([calibration[order], np.flatnonzero(others)])
        self.numbers = np.empty(adjacency.num_nodes, dtype=adjacency.indices.dtype)
        self.numbers[self.nodes] = np.arange(adjacency.num_nodes)
        self.starts = adjacency.indptr[:-1][self.nodes]
        self.stops = adjacency.indptr[1:][self.nodes]
        self.renumbered: tuple[npt.NDArray[Any], npt.NDArray[np.int64]] | None = None

    @property
    def size(self) -> int:
        """Number of calibration nodes: numbers below it are theirs."""
        return int(self.calibration.size)

    @property
    def mask_words(self) -> int:
        """Words that hold a bit for each calibration node, in whole blocks."""
        return -(-self.size // (64 * BLOCK_WORDS)) * BLOCK_WORDS

    def renumber(self, threads: int = 1) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the neighbours by number instead of id, and where those that calibrate end in each row.

        The first is a copy of the graph's largest array, in which the calibration nodes of each row come first. It
        is made once, when it pays.
        """
        if self.renumbered is None:
            from napsets.kernels.csr import renumbered

            adjacency = self.adjacency
            columns, middles = renumbered(adjacency.indptr, adjacency.indices, self.numbers, self.size, threads)
            self.renumbered = columns, middles[self.nodes]
        return self.renumbered

    @cached_property
    def hub_degree(self) -> int:
        """The degree from which on a node is a hub: its row is held as a bit vector, where searches want that."""
        from napsets.kernels.hub_rows import least_hub_degree

        return least_hub_degree(self.stops - self.starts)

    @cached_property
    def hub_rows(self) -> HubRows:
        """The rows of hubs as bit vectors."""
        from napsets.kernels.hub_rows import hub_rows

        columns, middles = self.renumber()
        return hub_rows(self.hub_degree, self.starts, middles, self.stops, columns)

    def masks(self, splits: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.uint64]:
        """Pack, for each split, which calibration nodes it uses into words: bit b of word w is number 64·w + b.

        ``splits[s, i]`` says it of ``calibration[i]``; None stands for one split that uses all of them.
        """
        flags = np.zeros((1 if splits is None else splits.shape[0], self.mask_words * 64), dtype=bool)
        if splits is None:
            flags[:, : self.size] = True
        else:
            flags[:, self.numbers[self.calibration]] = splits
        return pack(flags)


def pack(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Pack the last axis, whole words of flags, into bits."""
    return np.packbits(flags, axis=-1, bitorder="little").view("<u8").astype(np.uint64, copy=False)
