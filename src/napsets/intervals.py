"""PredictionIntervals: what a predictor of numbers gives, with the numbers that explain it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_integers,
)
from napsets.checks.frozen import frozen, sealed
from napsets.checks.names import choose
from napsets.errors import InvalidInputError, MissingDependencyError
from napsets.per_node import PerNode
from napsets.sets import Per

__all__ = ["PredictionIntervals"]


@dataclass(frozen=True, eq=False, repr=False)
class PredictionIntervals(PerNode):
    """An interval for the number of each of some nodes. Arrays that somebody could still write to are copied.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, in the order in which they were asked for.
    lower, upper : numpy.ndarray
        The ends, which belong to the interval; −∞ and +∞ where the threshold is +∞.
    thresholds, support, effective_size, alpha, num_nodes, level, ids
        As in `PredictionSets`.
    centre : numpy.ndarray, optional
        The best guess for each node.

    Examples
    --------
    >>> intervals = PredictionIntervals([4, 2], [0.0, 1.0], [2.0, np.inf], [1.0, np.inf], [30, 3], [30.0, 3.0], 0.1)
    >>> intervals[0], intervals.infinite, intervals.contains([1.5, 0.5], per="set").tolist()
    ((0.0, 2.0), 1, [True, False])
    """

    what: ClassVar[str] = "interval"
    shown: ClassVar[tuple[str, ...]] = ("node", "lower", "upper", "threshold", "support")

    nodes: IntArray
    lower: FloatArray
    upper: FloatArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    alpha: float
    num_nodes: int | None = None
    level: float | None = None
    ids: npt.NDArray[Any] | None = None
    centre: FloatArray | None = None

    def __post_init__(self) -> None:
        self.check_rows()
        for name in ("lower", "upper", "thresholds", "support", "effective_size", "centre"):
            if name == "centre" and self.centre is None:
                continue
            column = as_array(name, getattr(self, name))
            if column.shape != self.nodes.shape or column.ndim != 1:
                raise InvalidInputError(f"`{name}` must have one entry a node, {len(self)}; got shape {column.shape}")
            if column.dtype.kind not in "fiu" or np.isnan(column).any():
                raise InvalidInputError(f"`{name}` must hold numbers, none of them NaN; got dtype {column.dtype}")
            object.__setattr__(self, name, frozen(column))
        if (self.lower > self.upper).any():
            row = int((self.lower > self.upper).argmax())
            raise InvalidInputError(
                f"`lower` must be at most `upper`; row {row} goes from {self.lower[row]:g} to {self.upper[row]:g}"
            )

    def one(self, row: int) -> tuple[float, float]:
        """Return the ends of one interval."""
        return float(self.lower[row]), float(self.upper[row])

    @cached_property
    def widths(self) -> FloatArray:
        """How far the ends of each interval are apart."""
        return sealed(self.upper - self.lower)

    @property
    def infinite(self) -> int:
        """Number of nodes with too little support, whose interval is the whole line."""
        return int(np.isposinf(self.thresholds).sum())

    def contains(self, targets: ArrayLike, *, per: Per = "node") -> BoolArray:
        """Return whether each interval contains its node's target.

        Parameters
        ----------
        targets : array of numbers
            One for each node of the graph, indexed by node id; those of nodes without an interval may be NaN.
        per : {"node", "set"}
            With "set", one for each interval instead, in the order of `nodes`.
        """
        y = self.own_labels(targets, per=per)
        inside: BoolArray = (self.lower <= y) & (y <= self.upper)
        return inside

    def own_labels(self, targets: ArrayLike, *, per: Per = "node") -> FloatArray:
        """Return the target of each interval's node; the parameters are those of `contains`."""
        y = as_array("targets", targets)
        if y.dtype.kind not in "fiu" or y.ndim != 1:
            raise InvalidInputError(f"`targets` must be numbers, one a node; got {y.dtype} of shape {y.shape}")
        if choose("per", per, {"node": True, "set": False}):
            nodes = check_integers("nodes", self.nodes)
            if nodes.min(initial=0) < 0:
                raise InvalidInputError(f"`nodes` must hold ids from 0 to be found in `targets`; got {nodes.min()}")
            needed = int(nodes.max(initial=-1)) + 1 if self.num_nodes is None else self.num_nodes
            if y.size < needed or (self.num_nodes is not None and y.size != needed):
                raise InvalidInputError(
                    f"`targets` must have one entry a node of the graph, {needed}, indexed by node id; got {y.size}. "
                    f"Pass per='set' if they have one entry an interval."
                )
            y = y[nodes]
        elif y.size != len(self):
            raise InvalidInputError(
                f"`targets` must have one entry an interval, {len(self)}, with per='set'; got {y.size}"
            )
        if np.isnan(y).any():
            row = int(np.isnan(y).argmax())
            raise InvalidInputError(
                f"`targets` must be known where there is an interval; node {self.nodes[row]} has NaN"
            )
        return y.astype(np.float64, copy=False)

    # -- tables ------------------------------------------------------------------------------------------------

    def to_arrow(self) -> Any:
        """Return a PyArrow table: node, lower, upper, width, threshold, support, effective_size, alpha."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingDependencyError("pyarrow", "cli") from error
        columns = {
            "node": pa.array(self.called),
            "lower": pa.array(self.lower, pa.float64()),
            "upper": pa.array(self.upper, pa.float64()),
            "width": pa.array(self.widths, pa.float64()),
            "threshold": pa.array(self.thresholds, pa.float64()),
            "support": pa.array(self.support, pa.int64()),
            "effective_size": pa.array(self.effective_size, pa.float64()),
            "alpha": pa.array(np.full(len(self), self.alpha)),
        }
        if self.centre is not None:
            columns["prediction"] = pa.array(self.centre, pa.float64())
        return pa.table(columns)

    # -- for people --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not len(self):
            return f"PredictionIntervals(no nodes, alpha={self.alpha:g})"
        finite = self.widths[np.isfinite(self.widths)]
        told = f"mean width {finite.mean():.4g}" if finite.size else "none of finite width"
        return (
            f"PredictionIntervals({len(self):,} nodes, alpha={self.alpha:g}: {told}, {self.infinite:,} with too little "
            f"support)"
        )

    def html_cells(self, row: int) -> tuple[str, ...]:
        """Return ends, threshold and support of one row, for notebooks."""
        numbers = (self.lower[row], self.upper[row], self.thresholds[row])
        return (*(f"{value:.4g}".replace("inf", "∞") for value in numbers), f"{self.support[row]:,}")
