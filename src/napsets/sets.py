"""PredictionSets: what a predictor gives, with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_integers,
    check_names,
)
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.checks.names import choose
from napsets.errors import InvalidInputError, MissingDependencyError
from napsets.per_node import PerNode
from napsets.scores import BoundScore

__all__ = ["Per", "PredictionSets", "SetsSummary", "members", "score_pieces"]

#: What labels have one entry for: each node of the graph, or each set.
Per = Literal["node", "set"]


#: Entries of the score matrix held at a time.
_CHUNK_ENTRIES = 1 << 20


def score_pieces(score: BoundScore, nodes: IntArray) -> Iterator[tuple[slice, FloatArray]]:
    """Give the scores of every label of the nodes, some rows at a time: which rows, and their matrix."""
    step = max(1, _CHUNK_ENTRIES // max(1, score.probabilities.shape[1]))
    for start in range(0, nodes.size, step):
        rows = slice(start, min(start + step, nodes.size))
        yield rows, score.matrix(nodes[rows])


def members(score_matrix: FloatArray, thresholds: FloatArray, *, top_labels: IntArray | None = None) -> BoolArray:
    """Return which labels belong to which set: S(x, y) ≤ τ, and where that leaves none, the top label if given.

    Thresholds have the shape (nodes,), or (nodes, labels) where each label has its own.
    """
    member: BoolArray = score_matrix <= (thresholds[:, None] if thresholds.ndim == 1 else thresholds)
    if top_labels is not None:
        empty = np.flatnonzero(~member.any(axis=1))
        member[empty, top_labels[empty]] = True
    return member


@dataclass(frozen=True, eq=False)
class SetsSummary(Sealed):
    """Sets in numbers; the summaries of two pieces of the same work add up (``+``).

    Attributes
    ----------
    size_counts : numpy.ndarray
        How many sets have 0, 1, …, classes labels.
    infinite : int
        Nodes with too little support: their threshold is +∞, and their set is full.
    unreached : int
        Nodes whose threshold rests on no calibration node at all.
    capped : int
        Neighbourhoods that `max_neighbourhood` has cut, on Spark.
    """

    size_counts: IntArray
    infinite: int
    unreached: int
    capped: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_counts", frozen(self.size_counts))

    def __add__(self, other: SetsSummary) -> SetsSummary:
        return SetsSummary(
            self.size_counts + other.size_counts,
            self.infinite + other.infinite,
            self.unreached + other.unreached,
            self.capped + other.capped,
        )

    @property
    def nodes(self) -> int:
        """Number of sets."""
        return int(self.size_counts.sum())

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.size_counts.size - 1

    @property
    def mean_size(self) -> float:
        """Average number of labels in a set; NaN where there is none."""
        labels = float(self.size_counts @ np.arange(self.size_counts.size))
        return labels / self.nodes if self.nodes else float("nan")

    @property
    def empty(self) -> int:
        """Sets without any label."""
        return int(self.size_counts[0])

    @property
    def singletons(self) -> int:
        """Sets of one label."""
        return int(self.size_counts[1:2].sum())

    @property
    def full(self) -> int:
        """Sets with every label."""
        return int(self.size_counts[-1])


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets(PerNode):
    """One set of labels for each of some nodes. Arrays that somebody could still write to are copied.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, in the order in which they were asked for.
    member : numpy.ndarray
        Boolean of shape ``(nodes, classes)``: ``member[i, y]`` says whether y is in the set of ``nodes[i]``.
    thresholds : numpy.ndarray
        τ of each node; +∞ gives the full set. Where each label has its own, the smallest of them.
    support : numpy.ndarray
        How many calibration nodes each threshold rests on.
    effective_size : numpy.ndarray
        (Σw)²/Σw² of their weights.
    alpha : float
        The error rate asked for.
    class_names : sequence of str, optional
        Names to use for the classes in tables.
    num_nodes : int, optional
        Nodes of the whole graph: how many labels `contains` and the metrics expect.
    level : float, optional
        The level at which an exact method took its thresholds; None for those that take them at 1 − alpha, or at a
        level for each group.
    label_thresholds : numpy.ndarray, optional
        Of shape ``(nodes, classes)``, where a method has a threshold for each label.
    ids : array of str, optional
        What the nodes are called, one name a set: ``sets["user-7"]`` finds one, and tables have them.

    Examples
    --------
    >>> sets = PredictionSets([4, 2], [[True, True], [False, True]], [0.9, 0.8], [30, 30], [30.0, 30.0], 0.1,
    ...                       class_names=["cat", "dog"], ids=["tom", "rex"])
    >>> sets[0], sets["rex"], [len(labels) for labels in sets]
    (['cat', 'dog'], ['dog'], [2, 1])
    """

    what: ClassVar[str] = "set"
    shown: ClassVar[tuple[str, ...]] = ("node", "set", "size", "threshold", "support")

    nodes: IntArray
    member: BoolArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    alpha: float
    class_names: Sequence[str] | None = None
    num_nodes: int | None = None
    level: float | None = None
    label_thresholds: FloatArray | None = None
    ids: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        for name in ("member", "thresholds", "support", "effective_size"):
            object.__setattr__(self, name, frozen(as_array(name, getattr(self, name))))
        object.__setattr__(self, "class_names", check_names("class_names", self.class_names))
        self.check_rows()
        if self.member.ndim != 2 or self.member.dtype != np.bool_:
            what = f"{self.member.dtype} of shape {self.member.shape}"
            raise InvalidInputError(f"`member` must be boolean of shape (nodes, classes); got {what}")
        for name in ("nodes", "thresholds", "support", "effective_size"):
            column = getattr(self, name)
            if column.shape != self.member.shape[:1]:
                raise InvalidInputError(
                    f"`{name}` must have one entry a row of `member`, {len(self)}; got shape {column.shape}"
                )
            if name != "nodes" and (column.dtype.kind not in "fiub" or np.isnan(column).any()):
                raise InvalidInputError(f"`{name}` must hold numbers, none of them NaN; got dtype {column.dtype}")
        if self.label_thresholds is not None:
            each = frozen(as_array("label_thresholds", self.label_thresholds))
            if each.shape != self.member.shape:
                raise InvalidInputError(
                    f"`label_thresholds` must have the shape of `member`, {self.member.shape}; got {each.shape}"
                )
            object.__setattr__(self, "label_thresholds", each)
        if self.class_names is not None and len(self.class_names) != self.num_classes:
            raise InvalidInputError(
                f"`class_names` must have one name a class, {self.num_classes}; got {len(self.class_names)}"
            )

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, which: int | np.integer[Any] | str) -> list[Any]: ...

        @overload
        def __getitem__(self, which: slice | Sequence[int] | npt.NDArray[Any]) -> PredictionSets: ...

        def __getitem__(self, which: Any) -> Any: ...

    def one(self, row: int) -> list[Any]:
        """Return the labels of one set."""
        found = np.flatnonzero(self.member[row]).tolist()
        return found if self.class_names is None else [self.class_names[y] for y in found]

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.member.shape[1])

    @cached_property
    def sizes(self) -> IntArray:
        """Number of labels in each set."""
        return sealed(self.member.sum(axis=1, dtype=np.int64))

    @property
    def infinite(self) -> int:
        """Number of nodes with too little support: their threshold is +∞, and their set is full."""
        return int(np.isposinf(self.thresholds).sum())

    def summary(self) -> SetsSummary:
        """Return the sets in numbers: how many of each size, and how many lack support."""
        counts = np.bincount(self.sizes, minlength=self.num_classes + 1)
        return SetsSummary(counts, self.infinite, int((self.support == 0).sum()))

    def labels(self) -> list[IntArray]:
        """Return each set as an ascending array of class indices."""
        _, column = np.nonzero(self.member)
        return np.split(column, np.cumsum(self.sizes)[:-1]) if len(self) else []

    def contains(self, labels: ArrayLike, *, per: Per = "node") -> BoolArray:
        """Return whether each set contains its node's label; the parameters are those of `own_labels`."""
        y = self.own_labels(labels, per=per)
        return self.member[np.arange(len(self)), y]

    def own_labels(self, labels: ArrayLike, *, per: Per = "node") -> IntArray:
        """Return the label of each set's node.

        Parameters
        ----------
        labels : array of integers
            One label for each node of the graph, indexed by node id; those of nodes without a set may be −1.
        per : {"node", "set"}
            With "set", `labels` has one label for each set instead, in the order of `nodes`. Which of the two is
            meant is never guessed from the length: for all nodes in another order both would fit.
        """
        y = check_integers("labels", labels)
        if choose("per", per, {"node": True, "set": False}):
            y = self._of_nodes(y)
        elif y.size != len(self):
            raise InvalidInputError(
                f"`labels` must have one entry a set, {len(self)}, with per='set'; got {y.size}. Leave `per` out if "
                f"they have one entry a node of the graph."
            )
        if y.size and (y.min() < 0 or y.max() >= self.num_classes):
            row = int(np.argmax((y < 0) | (y >= self.num_classes)))
            raise InvalidInputError(
                f"`labels` must be known, from 0 to {self.num_classes - 1}, where there is a set; "
                f"node {self.nodes[row]} has {y[row]}"
            )
        return y.astype(np.int64, copy=False)

    def _of_nodes(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        nodes = check_integers("nodes", self.nodes)
        if nodes.min(initial=0) < 0:
            raise InvalidInputError(f"`nodes` must hold ids from 0 to be found in `labels`; got {nodes.min()}")
        needed = int(nodes.max(initial=-1)) + 1 if self.num_nodes is None else self.num_nodes
        if labels.size < needed or (self.num_nodes is not None and labels.size != needed):
            at_least = "at least " if self.num_nodes is None else ""
            raise InvalidInputError(
                f"`labels` must have one entry a node of the graph, {at_least}{needed}, indexed by node id; got "
                f"{labels.size}. Pass per='set' if they have one entry a set, in the order of the sets."
            )
        own: npt.NDArray[Any] = labels[nodes]
        return own

    # -- tables ------------------------------------------------------------------------------------------------

    def to_arrow(self) -> Any:
        """Return a PyArrow table: node, labels, size, threshold, support, effective_size, alpha."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingDependencyError("pyarrow", "cli") from error
        _, column = np.nonzero(self.member)
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        names = [str(y) for y in range(self.num_classes)] if self.class_names is None else list(self.class_names)
        values = pa.array(names, pa.string()).take(pa.array(column, pa.int64()))
        index_type = pa.int32() if offsets[-1] < 2**31 else pa.int64()
        list_array = pa.ListArray if index_type == pa.int32() else pa.LargeListArray
        return pa.table(
            {
                "node": pa.array(self.called),
                "labels": list_array.from_arrays(pa.array(offsets, index_type), values),
                "size": pa.array(self.sizes, pa.int32()),
                "threshold": pa.array(self.thresholds),
                "support": pa.array(self.support, pa.int64()),
                "effective_size": pa.array(self.effective_size),
                "alpha": pa.array(np.full(len(self), self.alpha)),
            }
        )

    # -- for people --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not len(self):
            return f"PredictionSets(no nodes, alpha={self.alpha:g})"
        told = self.summary()
        return (
            f"PredictionSets({told.nodes:,} nodes, {told.num_classes} classes, alpha={self.alpha:g}: "
            f"mean size {told.mean_size:.2f}, {told.empty:,} empty, {told.full:,} full, "
            f"{told.infinite:,} with too little support)"
        )

    def html_cells(self, row: int) -> tuple[str, ...]:
        """Return set, size, threshold and support of one row, for notebooks."""
        return (
            escape("{" + ", ".join(map(str, self.one(row))) + "}"),
            str(self.sizes[row]),
            f"{self.thresholds[row]:.4f}" if np.isfinite(self.thresholds[row]) else "∞",
            f"{self.support[row]:,}",
        )
