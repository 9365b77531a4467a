"""The columns of files of predictions: what sets and intervals are in a table, and which tables are neither.

Both have ``node`` (as the user's files had it), ``threshold`` (+∞ where the neighbourhood has too little mass),
``support``, ``effective_size`` and ``alpha``. Sets have ``labels`` (a list of class names, or of integers where the
user's labels are integers) and ``size``; then, where they are known, ``prediction`` (the most probable label) and
``probability`` (how probable it is); and on request ``p_values``, the p-value of every class by its name (a structure;
a JSON object in CSV). Intervals have ``lower``, ``upper`` and ``width``, and ``prediction``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypedDict

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.checks.values import check_size, shown
from napsets.errors import FileFormatError, arrow
from napsets.files import paths
from napsets.files.formats import METADATA_KEY, TableFile
from napsets.files.ids import NodeIds
from napsets.files.labels import sorted_names
from napsets.files.outputs import plain_array, refuse_empty
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

if TYPE_CHECKING:
    import pyarrow as pa

#: What a column's numbers must be: where they are, and in words.
Rule = tuple[BoolArray, str]

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


@dataclass(frozen=True, eq=False)
class PredictionRows:
    """The rows of a file: ids, numbers by column, and columns of names as Arrow arrays."""

    table: TableFile
    ids: NodeIds
    numbers: dict[str, FloatArray]
    names: dict[str, pa.Array]

    def refuse_first(self, wrong: BoolArray, rule: str, fault: Callable[[int], str]) -> None:
        """Raise for rows that break a rule: say what is wrong with the first."""
        if wrong.any():
            row = int(wrong.argmax())
            raise FileFormatError(f"{rule}; {self.table.at(row, self.ids.values[row].as_py())} {fault(row)}")


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


def label_lists(table: TableFile, lists: pa.Array) -> pa.Array:
    """Return the labels of each row as a list of text; in CSV, a cell is a JSON array."""
    pa = arrow()
    if not table.typed:
        lists = pa.array([_names_in(table, text) for text in lists.to_pylist()], pa.list_(pa.string()))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise FileFormatError(f"`sets` must hold lists in its column labels; in {table.path} it is {lists.type}")
    flat = lists.flatten()
    if pa.types.is_nested(flat.type):
        raise FileFormatError(f"`sets` must hold lists of names in its column labels; {table.path} nests them")
    refuse_empty(table, "labels", lists, flat)
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


def predicted_names(table: TableFile, values: pa.Array) -> pa.Array:
    """Return predicted labels as text."""
    types = arrow().types
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_integer(values.type)):
        raise FileFormatError(f"`sets` must hold names in its column prediction; in {table.path} it is {values.type}")
    refuse_empty(table, "prediction", values)
    return values.cast(arrow().large_string())


def _class_codes(table: TableFile, labels: pa.Array, class_names: Sequence[str]) -> IntArray:
    """Return labels as class indices."""
    pc = arrow().compute
    codes = pc.index_in(labels, value_set=arrow().array(class_names, labels.type))
    if codes.null_count:
        strange = labels.filter(pc.is_null(codes))[0].as_py()
        raise FileFormatError(
            f"`sets` must hold labels that are among the class_names of its metadata; {table.path} has {strange!r}"
        )
    return plain_array(codes).astype(np.int64)


# -- the two kinds -----------------------------------------------------------------------------------------------------


class PredictionColumns(ABC):
    """What one kind of prediction is in a table."""

    #: The columns that every file has.
    required: ClassVar[tuple[str, ...]]
    #: Further columns, each of which a file may lack.
    optional: ClassVar[tuple[str, ...]]
    #: Columns of names, each with the function that checks its cells and returns them as text.
    cells: ClassVar[Mapping[str, Callable[[TableFile, pa.Array], pa.Array]]] = {}

    def schema(
        self,
        id_type: pa.DataType,
        metadata: Mapping[str, object],
        *,
        optional: bool = True,
        integer_labels: bool = False,
        valued: Sequence[str] = (),
    ) -> pa.Schema:
        """Return the Arrow schema of a file, with the optional columns or without, and p-values of some classes."""
        pa = arrow()
        label = pa.int64() if integer_labels else pa.string()
        types = {"node": id_type, "labels": pa.list_(label), "size": pa.int32(), "support": pa.int64()}
        types["prediction"] = label if "prediction" in self.cells else pa.float64()
        types["p_values"] = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in valued])
        names = (*self.required, *(self.optional if optional else ()), *(("p_values",) if valued else ()))
        fields = [pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names]
        return pa.schema(fields, metadata={METADATA_KEY: json.dumps(dict(metadata)).encode()})

    @abstractmethod
    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        """Return the rules for the numbers that only this kind has."""

    @abstractmethod
    def build(self, rows: PredictionRows, class_names: Sequence[str] | None, common: Common) -> Prediction:
        """Return the prediction that rows hold; raise for rows whose columns contradict each other."""


class _SetColumns(PredictionColumns):
    """Sets of labels."""

    required = ("node", "labels", "size", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction", "probability")
    cells: ClassVar[Mapping[str, Callable[[TableFile, pa.Array], pa.Array]]] = {
        "labels": label_lists,
        "prediction": predicted_names,
    }

    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        size, threshold = numbers["size"], numbers["threshold"]
        return {
            "size": ((size == np.floor(size)) & (size >= 0), "an integer of at least 0"),
            # An exact level may need no label: the set is then empty, or it gets the best label.
            "threshold": (
                (threshold > -np.inf) | (np.isneginf(threshold) & (size <= 1)),
                "a number or +∞, or −∞ for a set of at most one label",
            ),
        }

    def build(self, rows: PredictionRows, class_names: Sequence[str] | None, common: Common) -> Prediction:
        labels, sizes = rows.names["labels"], rows.numbers["size"]
        lengths = plain_array(arrow().compute.list_value_length(labels)).astype(np.int64)
        rows.refuse_first(
            lengths != sizes,
            "`sets` must have sizes that fit their lists",
            lambda row: f"has {lengths[row]} labels and size {sizes[row]:.0f}",
        )
        flat = labels.flatten()
        if class_names is None:  # those that some set has, or that are predicted
            seen = set(flat.unique().to_pylist())
            class_names = sorted_names(list(seen.union(*(rows.names[name].to_pylist() for name in ["prediction"]
                                                         if name in rows.names))))  # fmt: skip
        member = np.zeros((len(rows.ids), len(class_names)), dtype=bool)
        codes = _class_codes(rows.table, flat, class_names)
        member[np.repeat(np.arange(len(rows.ids)), lengths), codes] = True
        rows.refuse_first(
            member.sum(axis=1) != lengths, "`sets` must have each label once in a set", lambda row: "repeats one"
        )
        if "prediction" in rows.names:
            _class_codes(rows.table, rows.names["prediction"], class_names)
        return PredictionSets(member=member, class_names=list(class_names), **common)


class _IntervalColumns(PredictionColumns):
    """Intervals of numbers."""

    required = ("node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction",)

    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        rules = {name: (~np.isnan(numbers[name]), "a number or infinite") for name in ("lower", "upper", "threshold")}
        if "prediction" in numbers:
            rules["prediction"] = (np.isfinite(numbers["prediction"]), "a finite number")
        return rules

    def build(self, rows: PredictionRows, class_names: Sequence[str] | None, common: Common) -> Prediction:
        lower, upper, width = (rows.numbers[name] for name in ("lower", "upper", "width"))
        rows.refuse_first(
            lower > upper,
            "each lower of `sets` must be at most its upper",
            lambda row: f"goes from {lower[row]:g} to {upper[row]:g}",
        )
        with paths.reading(rows.table.path, folder=True):  # which says whose numbers are too large
            for name in ("lower", "upper"):
                check_size(name, rows.numbers[name])
        rows.refuse_first(
            ~np.isclose(width, upper - lower, rtol=1e-9, atol=0.0),
            "`sets` must have widths that fit their ends",
            lambda row: f"goes from {lower[row]:g} to {upper[row]:g} and has the width {width[row]:g}",
        )
        return PredictionIntervals(lower=lower, upper=upper, centre=rows.numbers.get("prediction"), **common)


#: The columns of a sets file.
SETS = _SetColumns()

COLUMNS_OF: dict[type[Prediction], PredictionColumns] = {PredictionSets: SETS, PredictionIntervals: _IntervalColumns()}


def columns_of(table: TableFile) -> PredictionColumns:
    """Return what a file holds: intervals where it has their ends and no labels, otherwise sets."""
    intervals = {"lower", "upper"} <= set(table.columns) and "labels" not in table.columns
    return COLUMNS_OF[PredictionIntervals if intervals else PredictionSets]
