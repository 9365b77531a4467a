"""The columns of files of predictions: what sets and intervals are in a table, and which tables are neither.

Both have ``node`` (as the user's files had it), ``threshold`` (+∞ where the neighbourhood has too little mass),
``support``, ``effective_size`` and ``alpha``. Sets have ``labels`` (a list of class names, or of integers where the
user's labels are integers) and ``size``; then, where they are known, ``prediction`` (the most probable label) and
``probability`` (how probable it is); and on request ``p_values``, the p-value of every class by its name (a structure;
a JSON object in CSV, a matrix in npz). Intervals have ``lower``, ``upper`` and ``width``, and ``prediction``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE, BoolArray, FloatArray, IntArray
from napsets.checks.values import check_size, shown
from napsets.errors import FileFormatError, arrow
from napsets.files import paths
from napsets.files.formats import METADATA_KEY, TableFile
from napsets.files.ids import NodeIds
from napsets.files.labels import sorted_names
from napsets.files.outputs import plain_array, refuse_empty
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

#: What a column's numbers must be: where they are, and in words.
Rule = tuple[BoolArray, str]

#: Rows of probabilities that are looked through at a time.
_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class PredictionRows:
    """The rows of a file: ids, numbers by column, and other columns as Arrow arrays."""

    table: TableFile
    ids: NodeIds
    numbers: dict[str, FloatArray]
    others: dict[str, Any]

    def refuse_first(self, wrong: BoolArray, rule: str, fault: Callable[[int], str]) -> None:
        """Refuse rows that break a rule: say what is wrong with the first."""
        if wrong.any():
            row = int(wrong.argmax())
            raise FileFormatError(f"{rule}; row {row} of {self.table.path} {fault(row)}")


def with_first_choices(table: Any, probabilities: npt.NDArray[Any], nodes: IntArray, class_names: Sequence[str]) -> Any:
    """Return a table with the most probable label of each node by name, the first of equals, and its probability."""
    pa = arrow()
    best, top = np.empty(nodes.size, dtype=np.int64), np.empty(nodes.size)
    for start in range(0, nodes.size, _ROWS):
        rows = slice(start, start + _ROWS)
        some = probabilities[nodes[rows]]
        best[rows] = some.argmax(axis=1)
        top[rows] = some.max(axis=1)
    labels = pa.array(class_names, pa.string()).take(pa.array(best))
    return table.append_column("prediction", labels).append_column("probability", pa.array(top))


# -- the cells of sets -------------------------------------------------------------------------------------------------


def _json_cells(table: TableFile, texts: Any, kind: str, column: str, is_fine: Callable[[Any], bool]) -> list[Any]:
    """Return what the cells of a CSV say in JSON: an array or an object; `column` comes with an example."""
    cells = []
    for text in texts.to_pylist():
        try:
            cell = json.loads(text or "")
        except (ValueError, RecursionError):
            cell = None
        if not is_fine(cell):
            raise FileFormatError(
                f"`sets` must hold a JSON {kind} in each cell of its column {column}; {table.path} has {shown(text)}"
            )
        cells.append(cell)
    return cells


def _is_label_list(cell: Any) -> bool:
    return isinstance(cell, list) and {type(name) for name in cell} in (set(), {str}, {int})


def _label_lists(table: TableFile, lists: Any) -> Any:
    """Return the labels of each row as a list of text."""
    pa = arrow()
    if not table.typed:
        cells = _json_cells(table, lists, "array", 'labels, as in ["cat", "dog"] or [3, 7]', _is_label_list)
        lists = pa.array([[str(name) for name in cell] for cell in cells], pa.list_(pa.string()))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise FileFormatError(f"`sets` must hold lists in its column labels; in {table.path} it is {lists.type}")
    flat = lists.flatten()
    if pa.types.is_nested(flat.type):
        raise FileFormatError(f"`sets` must hold lists of names in its column labels; {table.path} nests them")
    refuse_empty(table, "labels", lists, flat)
    return lists.cast(pa.large_list(pa.large_string()))


def _predicted_names(table: TableFile, values: Any) -> Any:
    """Return predicted labels as text."""
    types = arrow().types
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_integer(values.type)):
        raise FileFormatError(f"`sets` must hold names in its column prediction; in {table.path} it is {values.type}")
    refuse_empty(table, "prediction", values)
    return values.cast(arrow().large_string())


def _seen_names(rows: PredictionRows) -> list[str]:
    """Return the classes that the rows have, where a file does not list them."""
    if "p_values" in rows.others:
        return [field.name for field in rows.others["p_values"].type]
    names = set(rows.others["labels"].flatten().unique().to_pylist())
    if "prediction" in rows.others:
        names |= set(rows.others["prediction"].to_pylist())
    return sorted_names(list(names))


def _class_codes(table: TableFile, labels: Any, class_names: list[str], what: str) -> IntArray:
    """Return labels as class indices."""
    pc = arrow().compute
    codes = pc.index_in(labels, value_set=arrow().array(class_names, labels.type))
    if codes.null_count:
        strange = labels.filter(pc.is_null(codes))[0].as_py()
        raise FileFormatError(
            f"`sets` must hold {what} that are among the class_names of its metadata; {table.path} has {strange!r}"
        )
    return plain_array(codes).astype(np.int64)


def _is_number_object(cell: Any) -> bool:
    return isinstance(cell, dict) and all(type(value) in (int, float) for value in cell.values())


def _p_value_fields(table: TableFile, values: Any) -> Any:
    """Return p-values as a structure with a field per class."""
    pa = arrow()
    if not table.typed:
        column = 'p_values, as in {"cat": 0.41, "dog": 0.02}'
        values = pa.array(_json_cells(table, values, "object", column, _is_number_object))
    types = pa.types
    if types.is_fixed_size_list(values.type):  # a matrix of npz
        values = _named_fields(table, values)
    if not types.is_struct(values.type) or not values.type.num_fields:
        raise FileFormatError(
            f"`sets` must hold a number for each class in its column p_values; in {table.path} it is {values.type}"
        )
    parts = values.flatten()
    refuse_empty(table, "p_values", values, *parts)
    if not all(types.is_floating(part.type) or types.is_integer(part.type) for part in parts):
        raise FileFormatError(f"`sets` must hold numbers in its column p_values; in {table.path} it is {values.type}")
    names = [field.name for field in values.type]
    return pa.StructArray.from_arrays([part.cast(pa.float64()) for part in parts], names)


def _named_fields(table: TableFile, rows: Any) -> Any:
    """Return p-values in one column per class as a structure, whose fields the metadata names."""
    names, width = table.about().get("class_names") or [], rows.type.list_size
    if len(names) != width:
        raise FileFormatError(
            f"`sets` must list a class in its metadata for each column of p_values, {width}; {table.path} lists "
            f"{len(names)}"
        )
    matrix = plain_array(rows.flatten()).reshape(-1, width)
    return arrow().StructArray.from_arrays([arrow().array(column) for column in matrix.T], names)


def _p_value_matrix(rows: PredictionRows, class_names: list[str]) -> FloatArray:
    """Return p-values with one column per class, in the order of the classes."""
    values = rows.others["p_values"]
    names = [field.name for field in values.type]
    if sorted(names) != sorted(class_names):
        raise FileFormatError(
            f"`sets` must have p_values of the classes of its metadata; {rows.table.path} has those of {shown(names)}"
        )
    matrix = np.column_stack([plain_array(values.field(name)) for name in class_names])
    wrong: BoolArray = ((matrix < 0) | (matrix > 1) | np.isnan(matrix)).any(axis=1)
    rows.refuse_first(wrong, "each of p_values of `sets` must be from 0 to 1", lambda row: "has others")
    return matrix


# -- the two kinds -----------------------------------------------------------------------------------------------------


class _Columns:
    """What one kind of prediction is in a table."""

    #: The columns that every file has.
    required: ClassVar[tuple[str, ...]]
    #: Further columns, each of which a file may lack.
    optional: ClassVar[tuple[str, ...]]
    #: What null stands for in JSON Lines, which has no infinity.
    endless: ClassVar[Mapping[str, float]]
    #: Columns other than ``node`` that hold no numbers, each with what returns its cells as they are used, or refuses
    #: them; those that are neither required nor optional are written on request.
    cells: ClassVar[Mapping[str, Callable[[TableFile, Any], Any]]] = {}

    def schema(
        self,
        id_type: Any,
        metadata: Mapping[str, Any],
        *,
        optional: bool = True,
        integer_labels: bool = False,
        valued: Sequence[str] = (),
    ) -> Any:
        """Return the Arrow schema of a file, with the optional columns or without, and p-values of some classes."""
        pa = arrow()
        label = pa.int64() if integer_labels else pa.string()
        types = {"node": id_type, "labels": pa.list_(label), "size": pa.int32(), "support": pa.int64()}
        types["prediction"] = label if "prediction" in self.cells else pa.float64()
        types["p_values"] = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in valued])
        names = (*self.required, *(self.optional if optional else ()), *(("p_values",) if valued else ()))
        fields = [pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names]
        return pa.schema(fields, metadata={METADATA_KEY: json.dumps(dict(metadata)).encode()})


#: The prediction of a file, what is predicted for each row, and how probable that is, where the file says so.
Built = tuple[Prediction, npt.NDArray[Any] | None, FloatArray | None]


class _SetColumns(_Columns):
    """Sets of labels."""

    required = ("node", "labels", "size", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction", "probability")
    endless: ClassVar[Mapping[str, float]] = {"threshold": np.inf}
    cells: ClassVar[Mapping[str, Callable[[TableFile, Any], Any]]] = {
        "labels": _label_lists,
        "prediction": _predicted_names,
        "p_values": _p_value_fields,
    }

    def bounded(self, numbers: Mapping[str, FloatArray]) -> BoolArray:
        """Return which rows leave something out, so that their threshold is not +∞."""
        empty: BoolArray = numbers["size"] == 0
        return empty

    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        """Return what the numbers that only this kind has must be."""
        size, threshold = numbers["size"], numbers["threshold"]
        rules: dict[str, Rule] = {
            "size": ((size == np.floor(size)) & (size >= 0), "an integer of at least 0"),
            # An exact level may need no label: the set is then empty, or it gets the best label.
            "threshold": (
                (threshold > -np.inf) | (np.isneginf(threshold) & (size <= 1)),
                "a number or +∞, or −∞ for a set of at most one label",
            ),
        }
        if "probability" in numbers:
            chance = numbers["probability"]
            rules["probability"] = ((chance >= 0) & (chance <= 1 + ROW_SUM_TOLERANCE), "from 0 to 1")
        return rules

    def build(self, rows: PredictionRows, class_names: list[str] | None, common: dict[str, Any]) -> Built:
        """Return what rows hold; refuse those whose columns contradict each other. All predictions have `common`."""
        labels, sizes = rows.others["labels"], rows.numbers["size"]
        lengths = plain_array(arrow().compute.list_value_length(labels)).astype(np.int64)
        rows.refuse_first(
            lengths != sizes,
            "`sets` must have sizes that fit their lists",
            lambda row: f"has {lengths[row]} labels and size {sizes[row]:.0f}",
        )
        names = _seen_names(rows) if class_names is None else class_names
        member = np.zeros((len(rows.ids), len(names)), dtype=bool)
        codes = _class_codes(rows.table, labels.flatten(), names, "labels")
        member[np.repeat(np.arange(len(rows.ids)), lengths), codes] = True
        rows.refuse_first(
            member.sum(axis=1) != lengths, "`sets` must have each label once in a set", lambda row: "repeats one"
        )
        p_values = _p_value_matrix(rows, names) if "p_values" in rows.others else None
        sets = PredictionSets(member=member, class_names=names, p_values=p_values, **common)
        if "prediction" not in rows.others:
            return sets, None, None
        predicted = _class_codes(rows.table, rows.others["prediction"], names, "predictions")
        return sets, predicted, rows.numbers.get("probability")


class _IntervalColumns(_Columns):
    """Intervals of numbers, likewise."""

    required = ("node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction",)
    endless: ClassVar[Mapping[str, float]] = {"lower": -np.inf, "upper": np.inf, "width": np.inf, "threshold": np.inf}

    def bounded(self, numbers: Mapping[str, FloatArray]) -> BoolArray:
        return np.isfinite(numbers["width"])

    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        rules = {name: (~np.isnan(numbers[name]), "a number or infinite") for name in ("lower", "upper", "threshold")}
        if "prediction" in numbers:
            rules["prediction"] = (np.isfinite(numbers["prediction"]), "a finite number")
        return rules

    def build(self, rows: PredictionRows, class_names: list[str] | None, common: dict[str, Any]) -> Built:
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
        centre = rows.numbers.get("prediction")
        return PredictionIntervals(lower=lower, upper=upper, centre=centre, **common), centre, None


#: The columns of a sets file.
SETS = _SetColumns()

PredictionColumns = _SetColumns | _IntervalColumns

COLUMNS_OF: dict[type[Prediction], PredictionColumns] = {PredictionSets: SETS, PredictionIntervals: _IntervalColumns()}


def columns_of(table: TableFile) -> PredictionColumns:
    """Return what a file holds: intervals where it has their ends and no labels, otherwise sets."""
    intervals = {"lower", "upper"} <= set(table.columns) and "labels" not in table.columns
    return COLUMNS_OF[PredictionIntervals if intervals else PredictionSets]
