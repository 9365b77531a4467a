"""Prediction: what a calibrated method gives for some nodes, whether sets of labels or intervals of numbers.

Everything after the score (comparison, judgement, files, report, inspection, command) is written against `Prediction`
and asks it for what differs. Only its two subclasses, `PredictionSets` and `PredictionIntervals`, know their kind.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_column,
    check_index,
    check_integers,
    frozen,
)
from napsets.checks.frames import find_rows, index_of
from napsets.checks.text import html_table
from napsets.checks.values import check_alpha, check_count, check_path, choose, plain, shown
from napsets.errors import InvalidInputError, imported
from napsets.predictions.rows import Rows
from napsets.predictions.summary import Summary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: What the truth has one entry for: each node of the graph, or each row of the prediction.
Per = Literal["node", "set"]

Self = TypeVar("Self", bound="Prediction")

#: Rows that a notebook shows.
_SHOWN = 10


class Prediction(Rows, ABC):
    """A prediction for each of some nodes.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, in the order in which they were passed.
    thresholds, support, effective_size : numpy.ndarray
        τ of each node, how many calibration nodes it is based on, and (Σw)²/Σw² of their weights.
    alpha : float
        The error rate.
    num_nodes : int or None
        Nodes of the whole graph: how many entries of the truth `contains` and the metrics expect.
    level : float or None
        The level at which an exact method took its thresholds.
    ids : numpy.ndarray or None
        What the nodes are called, one name per row: integers or text.
    """

    #: What kind of task it belongs to, as the command calls it.
    task: ClassVar[Literal["classification", "regression"]]
    #: What a row is, in messages.
    noun: ClassVar[str]
    #: What its size is called.
    size_name: ClassVar[str]
    #: What the truth and the model's outputs are called as arguments.
    truth_name: ClassVar[str]
    outputs_name: ClassVar[str]
    #: The column of the truth in a file, and what stands for one that is unknown.
    truth_column: ClassVar[str]
    unknown: ClassVar[float]
    #: What a row is called where the threshold is +∞.
    endless: ClassVar[str]
    #: The columns that a notebook shows.
    shown: ClassVar[tuple[str, ...]]

    nodes: AnyArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    alpha: float
    num_nodes: int | None
    level: float | None
    ids: AnyArray | None

    # -- what differs: properties of the class, without a prediction ---------------------------------------------------

    @classmethod
    @abstractmethod
    def check_outputs(cls, outputs: ArrayLike, *, num_nodes: int | None = None) -> AnyArray:
        """Check a model's outputs, one row per node."""

    @classmethod
    def of_logits(cls, logits: ArrayLike) -> FloatArray:
        """Convert logits to probabilities, or raise for a score of numbers."""
        raise InvalidInputError("`logits` must be False with a score of numbers, which needs no probabilities")

    @classmethod
    @abstractmethod
    def check_truth(cls, truth: ArrayLike, outputs: AnyArray) -> AnyArray:
        """Check the truth, one entry per row of the outputs."""

    @classmethod
    @abstractmethod
    def known(cls, truth: AnyArray) -> BoolArray:
        """Mark where the truth is known."""

    @classmethod
    @abstractmethod
    def size_text(cls, size: float) -> str:
        """Return an average size in digits."""

    @classmethod
    def of_size(cls, size: float) -> str:
        """Return an average size in words."""
        return f"average {cls.noun} {cls.size_name} {cls.size_text(size)}"

    # -- what differs: of a prediction ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def sizes(self) -> AnyArray:
        """The size of each row: the number of labels in a set, the width of an interval."""

    @abstractmethod
    def contains_own(self, truth: AnyArray) -> BoolArray:
        """Whether each row contains its node's truth, one entry per row, as `own_labels` returns it."""

    @abstractmethod
    def same_as(self, other: object) -> bool:
        """Whether another prediction is identical for the same nodes."""

    @abstractmethod
    def summary(self) -> Summary:
        """Return the prediction in a few numbers."""

    @abstractmethod
    def one(self, row: int) -> Any:
        """Return the set or the interval of one row."""

    @abstractmethod
    def to_arrow(self) -> pyarrow.Table:
        """Return a PyArrow table."""

    @abstractmethod
    def html_cells(self, row: int) -> tuple[str, ...]:
        """Return the cells of one row after its node, for notebooks."""

    @classmethod
    def of_names(cls, truth: ArrayLike, class_names: Sequence[str] | None) -> ArrayLike:
        """Return the truth in numbers, where it may be given by the names of classes."""
        return truth

    @abstractmethod
    def _as_truth(self, truth: ArrayLike) -> AnyArray:
        """Return the truth as an array of its type with one dimension."""

    @abstractmethod
    def _check_own(self, truth: AnyArray) -> AnyArray:
        """Check that the truth of each row is known."""

    # -- what is the same ----------------------------------------------------------------------------------------------

    def check_rows(self) -> None:
        """Check nodes, ids, alpha and the number of nodes, and bring them to one form."""
        nodes = as_column("nodes", self.nodes)  # which may be names, for tables
        if nodes.ndim != 1:
            raise InvalidInputError(f"`nodes` must have one dimension; got shape {nodes.shape}")
        object.__setattr__(self, "nodes", frozen(nodes))
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        if self.ids is not None:
            names = as_column("ids", self.ids)
            if names.shape != self.nodes.shape:
                raise InvalidInputError(
                    f"`ids` must have one name per {self.noun}, {self.nodes.size}; got shape {names.shape}"
                )
            object.__setattr__(self, "ids", frozen(names))
        if self.num_nodes is not None:
            object.__setattr__(self, "num_nodes", check_count("num_nodes", self.num_nodes))
            if self.nodes.size:  # otherwise they may be any names
                low, high = int(check_integers("nodes", self.nodes).min()), int(self.nodes.max())
                if low < 0 or high >= self.num_nodes:
                    bad = low if low < 0 else high
                    raise InvalidInputError(f"`nodes` must hold ids from 0 to {self.num_nodes - 1}; got {bad}")

    def with_names(self: Self, num_nodes: int, ids: AnyArray | None, class_names: Sequence[str] | None) -> Self:
        """Return the same rows with the size of the graph and the names of nodes and classes, as far as it has some."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}  # type: ignore[arg-type]
        return type(self).unchecked(**values | {"num_nodes": num_nodes, "ids": ids, "class_names": class_names})

    @property
    def infinite(self) -> int:
        """Number of nodes with too little support: their threshold is +∞, and nothing is excluded."""
        return int(np.isposinf(self.thresholds).sum())

    def own_labels(self, truth: ArrayLike, *, per: Per = "node") -> AnyArray:
        """Return the truth of each row's node.

        Parameters
        ----------
        truth : array
            One label, or number, for each node of the graph, indexed by node id; those of nodes without a row may be
            unknown.
        per : {"node", "set"}
            With "set", it has one entry for each row instead, in the order of `nodes`. Which of the two is meant is
            never guessed from the length: for all nodes in another order both would fit.
        """
        by_node = choose("per", per, {"node": True, "set": False})
        index = index_of(truth) if by_node else None
        y = self._as_truth(truth)
        if by_node:
            y = self._of_nodes(y) if index is None else self._of_index(y, index)
        elif y.size != len(self):
            raise InvalidInputError(
                f"`{self.truth_name}` must have one entry per {self.noun}, {len(self)}, with per='set'; got {y.size}. "
                f"Leave `per` out if they have one entry per node of the graph."
            )
        return self._check_own(y)

    def contains(self, truth: ArrayLike, *, per: Per = "node") -> BoolArray:
        """Whether each row contains its node's truth; the parameters are those of `own_labels`."""
        return self.contains_own(self.own_labels(truth, per=per))

    def coverage(self, truth: ArrayLike, *, per: Per = "node") -> float:
        """Return the share of rows that contain their node's truth; the parameters are those of `own_labels`."""
        inside = self.contains(truth, per=per)
        return float(inside.mean()) if inside.size else math.nan

    def _of_nodes(self, truth: AnyArray) -> AnyArray:
        nodes = check_integers("nodes", self.nodes)
        if nodes.min(initial=0) < 0:
            raise InvalidInputError(
                f"`nodes` must hold ids from 0 to be found in `{self.truth_name}`; got {nodes.min()}"
            )
        needed = int(nodes.max(initial=-1)) + 1 if self.num_nodes is None else self.num_nodes
        if truth.size < needed or (self.num_nodes is not None and truth.size != needed):
            at_least = "at least " if self.num_nodes is None else ""
            raise InvalidInputError(
                f"`{self.truth_name}` must have one entry per node of the graph, {at_least}{needed}, indexed by node "
                f"id; got {truth.size}. Pass per='set' if they have one entry per {self.noun}, in the same order."
            )
        return np.asarray(truth[nodes])

    def _of_index(self, truth: AnyArray, index: AnyArray) -> AnyArray:
        """Return the truth of each row from a pandas series, by its index; one that counts from 0 has positions."""
        if index.dtype.kind in "iu" and np.array_equal(index, np.arange(index.size)):
            return self._of_nodes(truth)
        rows = find_rows(index, self.row_names)
        if rows.min(initial=0) < 0:
            raise InvalidInputError(
                f"`{self.truth_name}` must have an index that holds every node of the {self.noun}s; it lacks "
                f"{shown(plain(self.row_names[rows < 0][0]))}"
            )
        return np.asarray(truth[rows])

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self.one(row) for row in range(len(self)))

    def __getitem__(self, which: Any) -> Any:
        """Return one row, by its place or by the name of its node, or several rows as a prediction.

        A number is a place among the rows. Nodes that are called by numbers are found with `loc`.
        """
        if isinstance(which, str):
            return self.one(self._place_of(which))
        if isinstance(which, slice):
            return self._take(np.arange(len(self))[which])
        chosen = as_array("which", which)
        if chosen.ndim == 0 and chosen.dtype.kind in "iu":
            if not -len(self) <= int(chosen) < len(self):
                raise IndexError(f"there are {len(self)} {self.noun}s, numbered from 0; got {int(chosen)}")
            return self.one(int(chosen))
        return self._take(check_index("which", chosen, len(self)))

    def _place_of(self, name: str) -> int:
        if name in self._places:
            return self._places[name]
        if self.ids is None and self.nodes.dtype.kind not in "UO":
            raise KeyError(f"{name!r}: the {self.noun}s have no ids: pass ids=... to calibrate")
        raise KeyError(f"{name!r}: no {self.noun} is of that node")

    @cached_property
    def _places(self) -> dict[str, int]:
        named = self.nodes if self.ids is None and self.nodes.dtype.kind in "UO" else self.ids
        names = [] if named is None else named.tolist()
        texts = {name: row for row, name in enumerate(names) if isinstance(name, str)}  # before an integer like it
        return {str(name): row for row, name in enumerate(names)} | texts

    @property
    def loc(self: Self) -> ByName[Self]:
        """The rows by what their nodes are called, integers or text: ``sets.loc[17]``, ``sets.loc[[17, 23]]``."""
        return ByName(self)

    @property
    def row_names(self) -> AnyArray:
        """The names of the nodes where they have any, otherwise their numbers."""
        return self.nodes if self.ids is None else self.ids

    def node_column(self) -> pyarrow.Array:
        """Return the names of the nodes as an Arrow column, which holds integers or text, but not both."""
        pa, names = imported("pyarrow", "cli"), self.row_names
        if names.dtype == object and len({isinstance(name, str) for name in names}) == 2:
            texts = names.astype(str)
            if len(set(texts.tolist())) < len(set(names.tolist())):
                raise InvalidInputError(
                    "`ids` must differ as text to be a column of a table; an integer and a text do not"
                )
            names = texts
        return pa.array(names)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the same table as a pandas frame."""
        imported("pandas", "spark")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the same table as a Polars frame."""
        return imported("polars", "polars").from_arrow(self.to_arrow())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_arrow` to a Parquet or a CSV file, whole or not at all; lists are JSON text in CSV."""
        target = check_path("path", path)
        writer = choose("path", target.suffix.lower(), {".parquet": _write_parquet, ".csv": _write_csv})
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            writer(self.to_arrow(), part)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        rows = ((self.row_names[i], *self.html_cells(i)) for i in range(min(_SHOWN, len(self))))
        more = f"<p>… and {len(self) - _SHOWN:,} more</p>" if len(self) > _SHOWN else ""
        return f"<p>{escape(repr(self))}</p>{html_table(self.shown, rows)}{more}"


def _write_parquet(table: pyarrow.Table, path: Path) -> None:
    imported("pyarrow.parquet", "cli", "pyarrow").write_table(table, path)


def _write_csv(table: pyarrow.Table, path: Path) -> None:
    pa, csv = imported("pyarrow", "cli"), imported("pyarrow.csv", "cli", "pyarrow")
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            cells = [json.dumps(cell, ensure_ascii=False) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    csv.write_csv(table, path)


class ByName(Generic[Self]):
    """The rows of a prediction by what their nodes are called: ``sets.loc[17]``, ``sets.loc[["ann", "bob"]]``."""

    def __init__(self, prediction: Self) -> None:
        self._prediction = prediction

    def __repr__(self) -> str:
        return f"rows of {self._prediction!r} by the ids of their nodes"

    def __getitem__(self, names: object) -> Any:
        wanted = as_column("names", names)
        rows = find_rows(self._prediction.row_names, wanted.reshape(-1))
        if rows.min(initial=0) < 0:
            name = wanted.reshape(-1)[rows < 0][0]
            raise KeyError(f"{name.item() if isinstance(name, np.generic) else name!r}: no row is of that node")
        return self._prediction.one(int(rows[0])) if wanted.ndim == 0 else self._prediction[rows]
