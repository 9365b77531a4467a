"""The thresholds of some nodes, and which labels they let into a set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray


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
        """Return those of some of the nodes."""
        return replace(
            self,
            values=self.values[rows],
            support=self.support[rows],
            effective_size=self.effective_size[rows],
            by_group=None if self.by_group is None else self.by_group[rows],
        )


def members(score_matrix: FloatArray, thresholds: FloatArray, *, top_labels: IntArray | None = None) -> BoolArray:
    """Return which labels belong to which set: S(x, y) ≤ τ, and where that leaves none, the top label if given.

    Thresholds have the shape (nodes,), or (nodes, labels) where each label has its own.
    """
    member: BoolArray = score_matrix <= (thresholds[:, None] if thresholds.ndim == 1 else thresholds)
    if top_labels is not None:
        empty = np.flatnonzero(~member.any(axis=1))
        member[empty, top_labels[empty]] = True
    return member
