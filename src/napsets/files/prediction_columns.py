"""The columns of files of predictions: what sets and intervals are in a table, and which tables are neither.

Both have ``node`` (as the user's files had it), ``threshold`` (+∞ where the neighbourhood has too little mass),
``support``, ``effective_size`` and ``alpha``. Sets have ``labels`` (a list of class names, or of integers where the
user's labels are integers) and ``size``; then, where they are known, ``prediction`` (the most probable label) and
``probability`` (how probable it is); and on request ``p_values``, the p-value of every class by its name (a structure;
a JSON object in CSV, a matrix in npz). Intervals have ``lower``, ``upper`` and ``width``, and ``prediction``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE, BoolArray, FloatArray, IntArray
from napsets.checks.values import check_size
from napsets.errors import FileFormatError, arrow
from napsets.files import places
from napsets.files.cells import (
    class_codes,
    label_lists,
    named_fields,
    p_value_fields,
    p_value_matrix,
    plain_array,
    predicted_names,
)
from napsets.files.formats import TableFile
from napsets.files.labels import sorted_names
from napsets.files.npz_format import METADATA_KEY, npz_array
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

#: What a column's numbers must be: where they are, and in words.
Rule = tuple[BoolArray, str]

#: Rows of probabilities that are looked through at a time.
_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class PredictionRows:
    """The rows of a file: ids, numbers by column, and other columns as Arrow arrays."""

    ids: Any
    numbers: dict[str, FloatArray]
    others: dict[str, Any]

    def __len__(self) -> int:
        return len(self.ids)


class PredictionColumns(ABC):
    """What one kind of prediction is in a table."""

    #: The columns that every file has.
    required: ClassVar[tuple[str, ...]]
    #: Further columns, each of which a file may lack.
    optional: ClassVar[tuple[str, ...]]
    #: Further columns, which a file has on request.
    on_request: ClassVar[tuple[str, ...]] = ()
    #: Columns that hold no numbers.
    texts: ClassVar[tuple[str, ...]] = ("node",)
    #: What null stands for in JSON Lines, which has no infinity.
    endless: ClassVar[Mapping[str, float]]

    @abstractmethod
    def types(self, *, integer_labels: bool = False) -> dict[str, Any]:
        """Return the Arrow type of each column but the ids."""

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
        types = self.types(integer_labels=integer_labels) | {"node": id_type}
        types["p_values"] = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in valued])
        names = (*self.required, *(self.optional if optional else ()), *(("p_values",) if valued else ()))
        fields = [pa.field(name, types[name], nullable=False) for name in names]
        return pa.schema(fields, metadata={METADATA_KEY: json.dumps(dict(metadata)).encode()})

    def guessing(self, calibrated: Any) -> bool:
        """Return whether a method knows what the optional columns hold."""
        return True

    def with_guesses(self, table: Any, calibrated: Any, nodes: IntArray, class_names: list[str] | None) -> Any:
        """Return a table of nodes with the optional columns, which that of a prediction may lack."""
        return table

    def present(self, table: TableFile) -> tuple[str, ...]:
        """Return the columns that a file has: the required ones, and those of the optional ones that are there."""
        return (*self.required, *(name for name in (*self.optional, *self.on_request) if name in table.columns))

    def batches(self, table: TableFile, columns: Sequence[str]) -> Iterator[Any]:
        """Give record batches of the columns."""
        return table.batches(columns, text=self.texts)

    def other(self, table: TableFile, column: Any, name: str) -> Any:
        """Return a column that holds no numbers, or refuse it."""
        raise NotImplementedError(name)

    @abstractmethod
    def bounded(self, numbers: Mapping[str, FloatArray]) -> BoolArray:
        """Return which rows leave something out, so that their threshold is not +∞."""

    @abstractmethod
    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        """Return what the numbers that only this kind has must be."""

    @abstractmethod
    def check(self, table: TableFile, rows: PredictionRows) -> None:
        """Refuse rows whose columns contradict each other."""

    def class_names(self, rows: PredictionRows) -> list[str]:
        """Return the classes that rows have, where a file does not list them."""
        return []

    def guesses(
        self, table: TableFile, rows: PredictionRows, class_names: list[str]
    ) -> tuple[npt.NDArray[Any] | None, FloatArray | None]:
        """Return what is predicted for each row, and how probable that is, where the file says so."""
        return rows.numbers.get("prediction"), None

    @abstractmethod
    def build(
        self, table: TableFile, rows: PredictionRows, class_names: list[str], common: dict[str, Any]
    ) -> Prediction:
        """Return the prediction, from what is its own and what all have in common."""


class _SetColumns(PredictionColumns):
    """Sets of labels."""

    required = ("node", "labels", "size", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction", "probability")
    on_request = ("p_values",)
    texts = ("node", "labels", "prediction", "p_values")
    endless: ClassVar[Mapping[str, float]] = {"threshold": np.inf}

    def types(self, *, integer_labels: bool = False) -> dict[str, Any]:
        pa = arrow()
        label, number, count = pa.int64() if integer_labels else pa.string(), pa.float64(), pa.int64()
        return {
            "labels": pa.list_(label), "size": pa.int32(), "threshold": number, "support": count,
            "effective_size": number, "alpha": number, "prediction": label, "probability": number,
        }  # fmt: skip

    def guessing(self, calibrated: Any) -> bool:
        return _probabilities(calibrated) is not None  # which predict labels

    def with_guesses(self, table: Any, calibrated: Any, nodes: IntArray, class_names: list[str] | None) -> Any:
        return with_first_choices(table, _probabilities(calibrated), nodes, class_names or [])

    def batches(self, table: TableFile, columns: Sequence[str]) -> Iterator[Any]:
        """Give record batches of the columns; in npz, the set of row i is ``labels[offsets[i]:offsets[i + 1]]``."""
        if table.format != "npz":
            yield from super().batches(table, columns)
            return
        pa = arrow()
        table.require("offsets")
        with places.reading(table.path, table.name), np.load(table.path, allow_pickle=False) as archive:
            arrays = {
                name: npz_array("sets", table.path, archive, name, ndim=2 if name == "p_values" else 1)
                for name in (*columns, "offsets")
            }
        labels, offsets = arrays.pop("labels"), arrays.pop("offsets")
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or not arrays["node"].size:
            raise FileFormatError(
                f"`sets` must have arrays of one length, at least 1, except for labels and offsets; {table.path} has "
                f"{lengths}"
            )
        whole = offsets.dtype.kind in "iu" and offsets.size == arrays["node"].size + 1
        if not whole or offsets[0] or offsets[-1] != labels.size or (offsets[1:] < offsets[:-1]).any():
            raise FileFormatError(
                f"`sets` must have offsets that cut its {labels.size} labels into {arrays['node'].size} sets: integers "
                f"that rise from 0 to {labels.size}, one more than there are sets. Those of {table.path} do not."
            )
        names = pa.array(labels.astype(str), pa.large_string())
        lists = pa.LargeListArray.from_arrays(pa.array(offsets.astype(np.int64)), names)
        typed = {name: pa.array(array) for name, array in arrays.items() if name != "p_values"} | {"labels": lists}
        if "p_values" in arrays:
            typed["p_values"] = named_fields(table, arrays["p_values"])
        yield pa.RecordBatch.from_arrays([typed[name] for name in columns], names=list(columns))

    def other(self, table: TableFile, column: Any, name: str) -> Any:
        kinds = {"labels": label_lists, "prediction": predicted_names, "p_values": p_value_fields}
        return kinds[name](table, column)

    def bounded(self, numbers: Mapping[str, FloatArray]) -> BoolArray:
        empty: BoolArray = numbers["size"] == 0
        return empty

    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
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

    def check(self, table: TableFile, rows: PredictionRows) -> None:
        lengths, sizes = _lengths(rows), rows.numbers["size"]
        fits = lengths == sizes
        if not fits.all():
            row = int(fits.argmin())
            raise FileFormatError(
                f"`sets` must have sizes that fit their lists; row {row} of {table.path} has {lengths[row]} labels "
                f"and size {sizes[row]:.0f}"
            )

    def class_names(self, rows: PredictionRows) -> list[str]:
        if "p_values" in rows.others:
            return [field.name for field in rows.others["p_values"].type]
        names = set(rows.others["labels"].flatten().unique().to_pylist())
        if "prediction" in rows.others:
            names |= set(rows.others["prediction"].to_pylist())
        return sorted_names(list(names))

    def guesses(
        self, table: TableFile, rows: PredictionRows, class_names: list[str]
    ) -> tuple[npt.NDArray[Any] | None, FloatArray | None]:
        if "prediction" not in rows.others:
            return None, None
        codes = class_codes(table, rows.others["prediction"], class_names, "predictions")
        return codes, rows.numbers.get("probability")

    def build(
        self, table: TableFile, rows: PredictionRows, class_names: list[str], common: dict[str, Any]
    ) -> Prediction:
        lengths = _lengths(rows)
        codes = class_codes(table, rows.others["labels"].flatten(), class_names, "labels")
        member = np.zeros((len(rows), len(class_names)), dtype=bool)
        member[np.repeat(np.arange(len(rows)), lengths), codes] = True
        repeated = member.sum(axis=1) != lengths
        if repeated.any():
            raise FileFormatError(
                f"`sets` must have each label once in a set; row {int(repeated.argmax())} of {table.path} repeats one"
            )
        if "p_values" in rows.others:
            common |= {"p_values": p_value_matrix(table, rows.others["p_values"], class_names)}
        return PredictionSets(member=member, class_names=class_names, **common)


class _IntervalColumns(PredictionColumns):
    """Intervals of numbers."""

    required = ("node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha")
    optional = ("prediction",)
    endless: ClassVar[Mapping[str, float]] = {"lower": -np.inf, "upper": np.inf, "width": np.inf, "threshold": np.inf}

    def types(self, *, integer_labels: bool = False) -> dict[str, Any]:
        pa = arrow()
        names = (*self.required, *self.optional)
        return {name: pa.int64() if name == "support" else pa.float64() for name in names}

    def bounded(self, numbers: Mapping[str, FloatArray]) -> BoolArray:
        return np.isfinite(numbers["width"])

    def rules(self, numbers: Mapping[str, FloatArray]) -> dict[str, Rule]:
        rules = {name: (~np.isnan(numbers[name]), "a number or infinite") for name in ("lower", "upper", "threshold")}
        if "prediction" in numbers:
            rules["prediction"] = (np.isfinite(numbers["prediction"]), "a finite number")
        return rules

    def check(self, table: TableFile, rows: PredictionRows) -> None:
        lower, upper, width = (rows.numbers[name] for name in ("lower", "upper", "width"))
        crossed = lower > upper
        if crossed.any():
            row = int(crossed.argmax())
            raise FileFormatError(
                f"each lower of `sets` must be at most its upper; row {row} of {table.path} goes from {lower[row]:g} "
                f"to {upper[row]:g}"
            )
        with places.reading(table.path, folder=True):  # which says whose numbers are too large
            for name in ("lower", "upper"):
                check_size(name, rows.numbers[name])
        fits = np.isclose(width, upper - lower, rtol=1e-9, atol=0.0)
        if not fits.all():
            row = int(fits.argmin())
            raise FileFormatError(
                f"`sets` must have widths that fit their ends; row {row} of {table.path} goes from {lower[row]:g} to "
                f"{upper[row]:g} and has the width {width[row]:g}"
            )

    def build(
        self, table: TableFile, rows: PredictionRows, class_names: list[str], common: dict[str, Any]
    ) -> Prediction:
        numbers = rows.numbers
        return PredictionIntervals(
            lower=numbers["lower"], upper=numbers["upper"], centre=numbers.get("prediction"), **common
        )


#: The columns of a sets file.
SETS = _SetColumns()

COLUMNS_OF: dict[type[Prediction], PredictionColumns] = {PredictionSets: SETS, PredictionIntervals: _IntervalColumns()}


def columns_of(table: TableFile) -> PredictionColumns:
    """Return what a file holds: intervals where it has their ends and no labels, otherwise sets."""
    intervals = {"lower", "upper"} <= set(table.columns) and "labels" not in table.columns
    return COLUMNS_OF[PredictionIntervals if intervals else PredictionSets]


def _probabilities(calibrated: Any) -> Any:
    return getattr(getattr(calibrated, "score", None), "probabilities", None)


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


def _lengths(rows: PredictionRows) -> IntArray:
    """Return how many labels each list has."""
    return plain_array(arrow().compute.list_value_length(rows.others["labels"])).astype(np.int64)
