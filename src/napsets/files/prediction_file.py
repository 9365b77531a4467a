"""Reading files of predictions: sets or intervals, as they were written, or refused with what is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray
from napsets.checks.values import LARGEST_HOPS, shown
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, joined_ids
from napsets.files.outputs import number_column, read_whole
from napsets.files.prediction_columns import COLUMNS_OF, PredictionColumns, PredictionRows, Rule, columns_of
from napsets.files.reading import PLAIN, IdKind, Reading
from napsets.localisers.hops import check_decay
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.predictions import Prediction, PredictionSets


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """A file of sets or of intervals in memory."""

    ids: NodeIds  #: the ids of the nodes, in the order of the file
    prediction: Any  #: what it has for them, on the places 0..n−1
    metadata: dict[str, Any]  #: version and settings; empty where the file has none
    #: Whether the file says what all classes are; otherwise they are those that some set has, or that are predicted.
    complete: bool
    #: The best guess for each node, a class index or a number, and its probability; None where the file does not say.
    predictions: npt.NDArray[Any] | None = None
    probabilities: FloatArray | None = None

    @property
    def sets(self) -> PredictionSets:
        """The prediction, of a file of sets."""
        sets: PredictionSets = self.prediction
        return sets

    @property
    def class_names(self) -> list[str]:
        """The classes; none where the truth is a number."""
        return list(getattr(self.prediction, "class_names", None) or ())


def read_prediction(
    path: str | os.PathLike[str], reading: Reading = PLAIN, *, prediction: type[Prediction] | None = None
) -> PredictionFile:
    """Read a file of sets or of intervals, of any of the formats; its columns say which it is.

    Parameters
    ----------
    path : path
        The file.
    reading : Reading
        How it is read.
    prediction : type, optional
        What it must hold.

    Raises
    ------
    FileFormatError
        Where the file is none of predictions, or its columns and its metadata contradict each other or what numbers can
        be.
    """
    table = open_table("sets", path, reading)
    columns = columns_of(table) if prediction is None else COLUMNS_OF[prediction]
    table.require(*columns.required)
    metadata = table.about()
    check_recorded(table.name, table.path, metadata)
    rows = _read_rows(table, columns)
    _check_numbers(rows, columns.rules(rows.numbers))
    common = {
        "nodes": np.arange(len(rows.ids)),
        "thresholds": rows.numbers["threshold"],
        "support": rows.numbers["support"].astype(np.int64),
        "effective_size": rows.numbers["effective_size"],
        "alpha": _one_alpha(table, rows.numbers["alpha"], metadata),
        "num_nodes": len(rows.ids),
    }
    names = metadata.get("class_names")
    result, predictions, probabilities = columns.build(rows, None if names is None else list(names), common)
    return PredictionFile(rows.ids, result, metadata, names is not None, predictions, probabilities)


def read_sets(path: str | os.PathLike[str], *, ids: IdKind = "auto") -> PredictionFile:
    """Read a sets file; `ids` as in `Reading`, and the rest as in `read_prediction`."""
    return read_prediction(path, Reading(ids=ids), prediction=PredictionSets)


def _read_rows(table: TableFile, columns: PredictionColumns) -> PredictionRows:
    known = dict.fromkeys((*columns.required, *columns.optional, *columns.cells))
    rows = read_whole(table, [name for name in known if name in table.columns], ("node", *columns.cells))
    numbers, others = {}, {}
    for name in rows.schema.names:
        if name in columns.cells:
            others[name] = columns.cells[name](table, rows.column(name))
        elif name != "node":
            numbers[name] = _numbers(table, rows.column(name), name, columns.endless)
    if table.format == "jsonl":  # where −∞ is null too: rows that leave something out have no threshold of +∞
        nothing = np.isposinf(numbers["threshold"]) & columns.bounded(numbers)
        numbers["threshold"] = np.where(nothing, -np.inf, numbers["threshold"])
    return PredictionRows(table, joined_ids(table, [id_column(table, rows)]), numbers, others)


def _numbers(table: TableFile, values: Any, name: str, endless: Mapping[str, float]) -> FloatArray:
    """Return a column of numbers without empty cells; in JSON Lines, null is the infinity of columns that have one."""
    pa = arrow()
    kinds = (pa.types.is_null, pa.types.is_integer, pa.types.is_floating)
    if table.format == "jsonl" and name in endless and any(is_kind(values.type) for is_kind in kinds):
        values = values.cast(pa.float64(), safe=False).fill_null(endless[name])
    return number_column(table, values, name).astype(np.float64, copy=False)


def _check_numbers(rows: PredictionRows, rules: Mapping[str, Rule]) -> None:
    """Refuse numbers that their columns cannot have; the rules of support, effective size and alpha are known."""
    support, size, alpha = (rows.numbers[name] for name in ("support", "effective_size", "alpha"))
    known: dict[str, Rule] = {
        "support": ((support == np.floor(support)) & (support >= 0) & (support < 2**53), "a count"),
        "effective_size": (np.isfinite(size) & (size >= 0), "at least 0"),
        "alpha": ((alpha > 0) & (alpha < 1), "strictly between 0 and 1"),
    }
    for name, (fine, what) in (dict(rules) | known).items():
        rows.refuse_first(~fine, f"each {name} of `sets` must be {what}", partial(_has, rows.numbers[name]))


def _has(numbers: FloatArray, row: int) -> str:
    return f"has {numbers[row]:g}"


def _one_alpha(table: TableFile, column: FloatArray, metadata: Mapping[str, Any]) -> float:
    """Return the alpha of all rows, which must be that of the metadata."""
    alphas = np.unique(column)
    if alphas.size != 1:
        raise FileFormatError(f"`sets` must have one alpha for all rows; {table.path} has {alphas.size} alphas")
    alpha = float(alphas[0])
    if metadata.get("alpha", alpha) != alpha:
        raise FileFormatError(
            f"`sets` must have the alpha that its metadata says, {metadata['alpha']!r}; the column alpha of "
            f"{table.path} has {alpha:g}"
        )
    return alpha


# -- settings in metadata ----------------------------------------------------------------------------------------------

_COUNT = 2**63 - 1

#: The settings of each kind that napsets records, and what they must be.
_INTEGERS = {
    "hops": LARGEST_HOPS, "seed": 2**64 - 1, "num_nodes": _COUNT, "calibration": _COUNT, "level_labels": _COUNT
}  # fmt: skip
_CHOICES = {
    "task": ("classification", "regression"),
    "direction": ("out", "in", "both"),
    "weights_are": ("lengths", "strengths"),
    "fallback": ("full", "global"),
    "level": ("nominal", "exact"),
    "p_values": ("plain", "smoothed"),
    "ids": ("auto", "integer", "string"),
    "labels_are": ("auto", "names", "indices"),
}
_TEXTS = {
    "score": "a name",
    "method": "a name",
    "features": "the name of a file",
    "by": "the name of a grouping or of a file",
}
_FLAGS = ("allow_empty", "directed", "skip_unknown", "logits")


def check_recorded(name: str, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Refuse settings of a kind or size that napsets does not write; those that it does not know are passed over."""
    opening = f"`{name}` must record settings that napsets can have; those of {os.fspath(path)}"
    for key, value in settings.items():
        wanted = _wanted(key, value)
        if wanted is not None:
            raise FileFormatError(
                f"{opening} have the {key} {shown(value)}, which must be {wanted}. Write the file again."
            )
    by_length = isinstance(settings.get("decay"), str) and settings["decay"] in LENGTH_DECAYS
    if "decay" in settings and "hops" in settings and not by_length:
        try:
            check_decay(settings["decay"], settings["hops"])
        except InvalidInputError as error:
            raise FileFormatError(f"{opening} do not fit each other: {error}") from error


def _wanted(key: str, value: Any) -> str | None:
    """Return what a setting must be, None where it is so or not known."""
    number = value if _is_number(value) else math.nan
    if key in _INTEGERS:
        fine, wanted = (
            isinstance(value, int) and 0 <= number <= _INTEGERS[key],
            f"an integer from 0 to {_INTEGERS[key]}",
        )
    elif key in _CHOICES:
        fine, wanted = value in _CHOICES[key], f"one of {', '.join(_CHOICES[key])}"
    elif key in _TEXTS:
        fine, wanted = isinstance(value, str), _TEXTS[key]
    elif key in _FLAGS:
        fine, wanted = isinstance(value, bool), "true or false"
    elif key == "alpha":
        fine, wanted = 0 < number < 1, "a number strictly between 0 and 1"
    elif key in ("pool", "alike"):
        fine, wanted = 0 <= number < math.inf, "a number from 0"
    elif key == "radius":
        fine, wanted = 0 < number < math.inf, "a positive number"
    elif key == "decay":
        fine = isinstance(value, str) or (isinstance(value, list) and all(map(_is_number, value)))
        wanted = "a name or a list of numbers"
    else:
        fine, wanted = key != "method_description" or isinstance(value, dict), "a description of a method"
    return None if fine else wanted


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
