"""The columns of files of predictions.

Sets and intervals have ``node`` (as in the user's files), ``threshold`` (+∞ where the neighbourhood has too little
mass), ``support``, ``effective_size`` and ``alpha``. Sets have ``labels`` (a list of class names, or of integers where
the user's labels are integers) and ``size``; then, where they are known, ``prediction`` (the most probable label) and
``probability``; and on request ``p_values``, the p-value of every class by its name (a structure; a JSON object in
CSV). Intervals have ``lower``, ``upper`` and ``width``, and ``prediction``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypedDict

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_size, shown
from napsets.errors import FileFormatError, arrow
from napsets.files.formats import METADATA_KEY, TableFile
from napsets.files.labels import sorted_names
from napsets.files.outputs import number_column, plain_array, refuse_empty
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of probabilities that are looked through at a time.
_ROWS = 1 << 14


class Common(TypedDict):
    """What sets and intervals both have."""

    nodes: IntArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    alpha: float
    num_nodes: int


def with_first_choices(
    table: pa.Table, probabilities: npt.NDArray[np.floating], nodes: IntArray, class_names: Sequence[str]
) -> pa.Table:
    """Return a table with the most probable label of each node by name, the first of equals, and its probability."""
    pa = arrow()
    best, top = np.empty(nodes.size, dtype=np.int64), np.empty(nodes.size)
    for start in range(0, nodes.size, _ROWS):
        rows = slice(start, start + _ROWS)
        part = probabilities[nodes[rows]]
        best[rows] = part.argmax(axis=1)
        top[rows] = part.max(axis=1)
    labels = pa.array(class_names, pa.string()).take(pa.array(best))
    return table.append_column("prediction", labels).append_column("probability", pa.array(top))


# -- the cells of sets -------------------------------------------------------------------------------------------------


def _label_lists(table: TableFile, lists: pa.Array) -> pa.Array:
    """Return the labels of each row as a list of text; in CSV, a cell is a JSON array."""
    pa = arrow()
    if not table.typed:
        lists = pa.array([_names_in(table, text) for text in lists.to_pylist()], pa.list_(pa.string()))
    kind = lists.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or pa.types.is_nested(kind.value_type):
        raise FileFormatError(f"`sets` must hold lists of names in its column labels; in {table.path} it is {kind}")
    refuse_empty(table, "labels", lists, lists.flatten())
    return lists.cast(pa.large_list(pa.large_string()))


def _names_in(table: TableFile, text: str | None) -> list[str]:
    try:
        cell = json.loads(text or "")
    except (ValueError, RecursionError):
        cell = None
    if not isinstance(cell, list) or {type(name) for name in cell} not in (set(), {str}, {int}):
        raise FileFormatError(
            f'`sets` must hold a JSON array in each cell of its column labels, as in ["cat", "dog"] or [3, 7]; '
            f"{table.path} has {shown(text)}"
        )
    return [str(name) for name in cell]


def _predicted_names(table: TableFile, values: pa.Array) -> pa.Array:
    """Return predicted labels as text."""
    types = arrow().types
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_integer(values.type)):
        raise FileFormatError(f"`sets` must hold names in its column prediction; in {table.path} it is {values.type}")
    refuse_empty(table, "prediction", values)
    return values.cast(arrow().large_string())


# -- the two kinds -----------------------------------------------------------------------------------------------------


class PredictionColumns(ABC):
    """One kind of prediction as a table."""

    #: The columns that every file has.
    required: ClassVar[tuple[str, ...]]
    #: Further columns, each of which a file may lack.
    optional: ClassVar[tuple[str, ...]]
    #: The columns of names.
    named: ClassVar[tuple[str, ...]] = ()

    def schema(
        self,
        id_type: pa.DataType,
        metadata: Mapping[str, object],
        *,
        optional: bool = True,
        integer_labels: bool = False,
        valued: Sequence[str] = (),
    ) -> pa.Schema:
        """Return the Arrow schema of a file, with the optional columns or without, and p-values of `valued` classes."""
        pa = arrow()
        label = pa.int64() if integer_labels else pa.string()
        types = {"node": id_type, "labels": pa.list_(label), "size": pa.int32(), "support": pa.int64()}
        types["prediction"] = label if "prediction" in self.named else pa.float64()
        types["p_values"] = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in valued])
        names = (*self.required, *(self.optional if optional else ()), *(("p_values",) if valued else ()))
        fields = [pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names]
        return pa.schema(fields, metadata={METADATA_KEY: json.dumps(dict(metadata)).encode()})

    @abstractmethod
    def build(self, table: TableFile, rows: pa.Table, class_names: Sequence[str] | None, common: Common) -> Prediction:
        """Return the prediction that rows hold."""


class _SetColumns(PredictionColumns):
    """Sets of labels."""

    required = ("node", "labels", "size", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction", "probability")
    named = ("labels", "prediction")

    def build(self, table: TableFile, rows: pa.Table, class_names: Sequence[str] | None, common: Common) -> Prediction:
        pc, count = arrow().compute, len(rows)
        labels = _label_lists(table, rows["labels"].combine_chunks())
        flat, lengths = labels.flatten(), plain_array(pc.list_value_length(labels)).astype(np.int64)
        if class_names is None:  # those that are in a set, or predicted
            seen = set(flat.unique().to_pylist())
            if "prediction" in rows.column_names:
                seen |= set(_predicted_names(table, rows["prediction"].combine_chunks()).to_pylist())
            class_names = sorted_names(list(seen))
        codes = pc.index_in(flat, value_set=arrow().array(class_names, flat.type))
        if codes.null_count:
            strange = flat.filter(pc.is_null(codes))[0].as_py()
            raise FileFormatError(
                f"`sets` must hold labels that are among the class_names of its metadata; {table.path} has {strange!r}"
            )
        member = np.zeros((count, len(class_names)), dtype=bool)
        member[np.repeat(np.arange(count), lengths), plain_array(codes)] = True
        return PredictionSets(member=member, class_names=list(class_names), **common)


class _IntervalColumns(PredictionColumns):
    """Intervals of numbers."""

    required = ("node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction",)

    def build(self, table: TableFile, rows: pa.Table, class_names: Sequence[str] | None, common: Common) -> Prediction:
        lower, upper = numbers(table, rows, "lower"), numbers(table, rows, "upper")
        check_size("lower", lower)
        check_size("upper", upper)
        centre = numbers(table, rows, "prediction") if "prediction" in rows.column_names else None
        return PredictionIntervals(lower=lower, upper=upper, centre=centre, **common)


def numbers(table: TableFile, rows: pa.Table, column: str) -> FloatArray:
    """Return a column of numbers."""
    return number_column(table, rows[column].combine_chunks(), column).astype(np.float64, copy=False)


#: The columns of a sets file.
SETS = _SetColumns()

COLUMNS_OF: dict[type[Prediction], PredictionColumns] = {PredictionSets: SETS, PredictionIntervals: _IntervalColumns()}


def columns_of(table: TableFile) -> PredictionColumns:
    """Return the kind of a file: intervals where it has their ends and no labels, otherwise sets."""
    intervals = {"lower", "upper"} <= set(table.columns) and "labels" not in table.columns
    return COLUMNS_OF[PredictionIntervals if intervals else PredictionSets]
