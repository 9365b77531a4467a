"""PredictionSets: a set of labels for each of some nodes, with the numbers that explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_integers,
    check_labels,
    check_probabilities,
    frozen,
    sealed,
)
from napsets.checks.frames import label_numbers
from napsets.checks.values import check_names
from napsets.errors import InvalidInputError, imported
from napsets.predictions.prediction import Prediction
from napsets.predictions.summary import SetsSummary

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, eq=False)
class NodeThresholds:
    """The thresholds of some nodes at one error rate, and what they rest on."""

    alpha: float  #: The error rate.
    values: FloatArray  #: τ of each node. Where groups of labels have thresholds of their own, the smallest of them.
    #: How many calibration nodes each threshold rests on, and (Σw)²/Σw² of their weights.
    support: IntArray
    effective_size: FloatArray
    level: float | None = None  #: The level at which an exact method took its thresholds.
    allow_empty: bool = True  #: Whether a set may be empty; otherwise it gets the label with the smallest score.
    by_group: FloatArray | None = None  #: Thresholds of groups of labels, shape (nodes, groups).
    label_groups: IntArray | None = None  #: Which of these groups each label is in.

    @property
    def by_label(self) -> FloatArray | None:
        """Thresholds of shape (nodes, labels), where labels have their own."""
        return None if self.by_group is None else self.by_group[:, self.label_groups]

    def __getitem__(self, rows: slice) -> NodeThresholds:
        """Return the thresholds of a slice of the nodes."""
        return replace(
            self,
            values=self.values[rows],
            support=self.support[rows],
            effective_size=self.effective_size[rows],
            by_group=None if self.by_group is None else self.by_group[rows],
        )


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets(Prediction):
    """One set of labels for each of some nodes. Writable arrays are copied.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, in the order in which they were passed.
    member : numpy.ndarray
        Boolean of shape ``(nodes, classes)``: ``member[i, y]`` says whether y is in the set of ``nodes[i]``.
    thresholds : numpy.ndarray
        τ of each node; +∞ gives the full set. Where each label has its own, the smallest of them.
    support : numpy.ndarray
        How many calibration nodes each threshold rests on.
    effective_size : numpy.ndarray
        (Σw)²/Σw² of their weights.
    alpha : float
        The error rate.
    class_names : sequence of str, optional
        Names to use for the classes in tables.
    num_nodes : int, optional
        Nodes of the whole graph: how many labels `contains` and the metrics expect.
    level : float, optional
        The level at which an exact method took its thresholds; None for those that take them at 1 − alpha, or at a
        level for each group.
    label_thresholds : numpy.ndarray, optional
        Of shape ``(nodes, classes)``, where a method has a threshold for each label.
    p_values : numpy.ndarray, optional
        The p-value of every candidate, shape ``(nodes, classes)``, if requested with
        ``predict(..., p_values=True)``: a label is in the set exactly if its p-value is over alpha. They test "the
        node has this label": a small one is evidence against the label.
    ids : array of integers or strings, optional
        What the nodes are called, one name per set: ``sets.loc["user-7"]`` finds one, and tables have them.

    Examples
    --------
    >>> sets = PredictionSets([4, 2], [[True, True], [False, True]], [0.9, 0.8], [30, 30], [30.0, 30.0], 0.1,
    ...                       class_names=["cat", "dog"], ids=["tom", "rex"])
    >>> sets[0], sets["rex"], [len(labels) for labels in sets]
    (['cat', 'dog'], ['dog'], [2, 1])
    """

    task: ClassVar[Literal["classification", "regression"]] = "classification"
    noun: ClassVar[str] = "set"
    size_name: ClassVar[str] = "size"
    truth_name: ClassVar[str] = "labels"
    outputs_name: ClassVar[str] = "probabilities"
    truth_column: ClassVar[str] = "label"
    unknown: ClassVar[float] = -1
    endless: ClassVar[str] = "full set"
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
    ids: AnyArray | None = None
    p_values: FloatArray | None = None

    def __post_init__(self) -> None:
        member = as_array("member", self.member)
        if member.ndim != 2 or member.dtype != np.bool_:
            shape = f"{member.dtype} of shape {member.shape}"
            raise InvalidInputError(f"`member` must be boolean of shape (nodes, classes); got {shape}")
        object.__setattr__(self, "member", frozen(member))
        object.__setattr__(self, "class_names", check_names("class_names", self.class_names))
        self.check_rows()
        if self.nodes.shape != member.shape[:1]:
            raise InvalidInputError(
                f"`nodes` must have one entry per row of `member`, {member.shape[0]}; got shape {self.nodes.shape}"
            )
        for name in ("thresholds", "support", "effective_size"):
            self.check_column(name)
        for name in ("label_thresholds", "p_values"):
            if getattr(self, name) is not None:
                table = frozen(as_array(name, getattr(self, name)))
                if table.shape != self.member.shape:
                    raise InvalidInputError(
                        f"`{name}` must have the shape of `member`, {self.member.shape}; got {table.shape}"
                    )
                object.__setattr__(self, name, table)
        if self.class_names is not None and len(self.class_names) != self.num_classes:
            raise InvalidInputError(
                f"`class_names` must have one name per class, {self.num_classes}; got {len(self.class_names)}"
            )

    @classmethod
    def of_scores(
        cls, nodes: IntArray, matrix: FloatArray, thresholds: NodeThresholds, top_labels: IntArray | None
    ) -> PredictionSets:
        """Make sets from scores, shape (nodes, classes), and thresholds, without validation.

        `top_labels` stand in for empty sets where these are not allowed.
        """
        by_label = thresholds.by_label
        top = None if thresholds.allow_empty else top_labels
        return cls.unchecked(
            nodes=nodes,
            member=members(matrix, thresholds.values if by_label is None else by_label, top_labels=top),
            thresholds=thresholds.values,
            support=thresholds.support,
            effective_size=thresholds.effective_size,
            alpha=thresholds.alpha,
            level=thresholds.level,
            label_thresholds=by_label,
        )

    @classmethod
    def check_outputs(cls, outputs: ArrayLike, *, num_nodes: int | None = None) -> AnyArray:
        """Check that rows are probabilities."""
        return check_probabilities(outputs, num_nodes=num_nodes)

    @classmethod
    def of_logits(cls, logits: ArrayLike) -> FloatArray:
        """Return the softmax of each row."""
        values = as_array("probabilities", logits)
        if values.ndim != 2 or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise InvalidInputError(
                f"`probabilities` must be finite logits of shape (nodes, classes); got {values.dtype} of shape "
                f"{values.shape}" + " with NaN or infinite entries" * (values.ndim == 2)
            )
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        powers = np.exp(values - values.max(axis=1, keepdims=True, initial=-np.inf), dtype=np.float64)
        rows: FloatArray = powers / powers.sum(axis=1, keepdims=True)
        return rows

    @classmethod
    def of_names(cls, truth: ArrayLike, class_names: Sequence[str] | None) -> ArrayLike:
        """Return labels as numbers of classes, −1 where one is missing; names are looked up."""
        return label_numbers(truth, class_names)

    @classmethod
    def check_truth(cls, truth: ArrayLike, outputs: AnyArray) -> IntArray:
        """Check labels: from 0, −1 where unknown."""
        return check_labels(truth, size=outputs.shape[0], num_classes=outputs.shape[1])

    @classmethod
    def known(cls, truth: AnyArray) -> BoolArray:
        """Mark the labels that are known."""
        known: BoolArray = truth >= 0
        return known

    @classmethod
    def size_text(cls, size: float) -> str:
        """Return the average number of labels in digits."""
        return f"{size:.2f}"

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, which: int | np.integer | str) -> list[Any]: ...

        @overload
        def __getitem__(self, which: slice | Sequence[int] | AnyArray) -> PredictionSets: ...

        def __getitem__(self, which: Any) -> Any: ...

    def one(self, row: int) -> list[Any]:
        """Return the labels of one set."""
        labels = np.flatnonzero(self.member[row]).tolist()
        return labels if self.class_names is None else [self.class_names[y] for y in labels]

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.member.shape[1])

    @cached_property
    def sizes(self) -> IntArray:
        """Number of labels in each set."""
        return sealed(self.member.sum(axis=1, dtype=np.int64))

    def summary(self) -> SetsSummary:
        """Return the sets in numbers: how many of each size, and how many lack support."""
        counts = np.bincount(self.sizes, minlength=self.num_classes + 1)
        return SetsSummary(counts, self.infinite, int((self.support == 0).sum()))

    def labels(self) -> list[IntArray]:
        """Return each set as an ascending array of class indices."""
        _, column = np.nonzero(self.member)
        return np.split(column, np.cumsum(self.sizes)[:-1]) if len(self) else []

    def contains_own(self, truth: AnyArray) -> BoolArray:
        """Whether each set contains its node's label, one entry per set; nothing is checked."""
        inside: BoolArray = self.member[np.arange(len(self)), truth]
        return inside

    def same_as(self, other: object) -> bool:
        """Whether other sets hold the same labels."""
        return isinstance(other, PredictionSets) and np.array_equal(self.member, other.member)

    def _as_truth(self, truth: ArrayLike) -> AnyArray:
        return check_integers("labels", self.of_names(truth, self.class_names))

    def _check_own(self, truth: AnyArray) -> IntArray:
        if truth.size and (truth.min() < 0 or truth.max() >= self.num_classes):
            row = int(np.argmax((truth < 0) | (truth >= self.num_classes)))
            raise InvalidInputError(
                f"`labels` must be known, from 0 to {self.num_classes - 1}, where there is a set; "
                f"node {self.nodes[row]} has {truth[row]}"
            )
        return truth.astype(np.int64, copy=False)

    # -- tables ------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pyarrow.Table:
        """Return a PyArrow table: node, labels, size, threshold, support, effective_size, alpha.

        Labels are the names of classes where these have some, otherwise integers; nodes are what their ids are. Sets
        with p-values also have a column ``p_values``, which has a field per class.
        """
        pa = imported("pyarrow", "cli")
        _, column = np.nonzero(self.member)
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        values = pa.array(column, pa.int64())
        if self.class_names is not None:
            values = pa.array(list(self.class_names), pa.string()).take(values)
        index_type = pa.int32() if offsets[-1] < 2**31 else pa.int64()
        list_array = pa.ListArray if index_type == pa.int32() else pa.LargeListArray
        columns = {
            "node": self.node_column(),
            "labels": list_array.from_arrays(pa.array(offsets, index_type), values),
            "size": pa.array(self.sizes, pa.int32()),
            "threshold": pa.array(self.thresholds),
            "support": pa.array(self.support, pa.int64()),
            "effective_size": pa.array(self.effective_size),
            "alpha": pa.array(np.full(len(self), self.alpha)),
        }
        if self.p_values is not None:
            names = self.class_names or [str(y) for y in range(self.num_classes)]
            columns["p_values"] = pa.StructArray.from_arrays(list(map(pa.array, self.p_values.T)), list(names))
        return pa.table(columns)

    # -- for people --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not len(self):
            return f"PredictionSets(no nodes, alpha={self.alpha:g})"
        summary = self.summary()
        return (
            f"PredictionSets({summary.nodes:,} nodes, {summary.num_classes} classes, alpha={self.alpha:g}: "
            f"mean size {summary.mean_size:.2f}, {summary.empty:,} empty, {summary.full:,} full, "
            f"{summary.infinite:,} with too little support)"
        )

    def html_cells(self, row: int) -> tuple[str, ...]:
        """Return set, size, threshold and support of one row, for notebooks."""
        return (
            "{" + ", ".join(map(str, self.one(row))) + "}",
            str(self.sizes[row]),
            f"{self.thresholds[row]:.4f}" if np.isfinite(self.thresholds[row]) else "∞",
            f"{self.support[row]:,}",
        )


def members(score_matrix: FloatArray, thresholds: FloatArray, *, top_labels: IntArray | None = None) -> BoolArray:
    """Mark the labels in each set: S(x, y) ≤ τ, and where that leaves none, the top label if given.

    Thresholds have the shape (nodes,), or (nodes, labels) where each label has its own.
    """
    member: BoolArray = score_matrix <= (thresholds[:, None] if thresholds.ndim == 1 else thresholds)
    if top_labels is not None:
        empty = np.flatnonzero(~member.any(axis=1))
        member[empty, top_labels[empty]] = True
    return member
