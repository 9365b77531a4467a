"""Reading files of predictions: sets or intervals, as they were written, or refused with what is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.checks.values import shown
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, own_ids
from napsets.files.outputs import number_column
from napsets.files.prediction_columns import COLUMNS_OF, Common, PredictionColumns, PredictionRows, Rule, columns_of
from napsets.files.reading import PLAIN, IdKind, Reading
from napsets.predictions import Prediction, PredictionSets


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """A file of sets or of intervals in memory."""

    ids: NodeIds  #: the ids of the nodes, in the order of the file
    prediction: Prediction  #: what it has for them, on the places 0..n−1
    metadata: dict[str, Any]  #: version and settings; empty where the file has none
    #: Whether the file says what all classes are; otherwise they are those that some set has, or that are predicted.
    complete: bool

    @property
    def sets(self) -> PredictionSets:
        """The prediction, of a file of sets."""
        assert isinstance(self.prediction, PredictionSets)
        return self.prediction

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
    _check_recorded(table, metadata)
    rows = _read_rows(table, columns)
    _check_numbers(rows, columns.rules(rows.numbers))
    common: Common = {
        "nodes": np.arange(len(rows.ids)),
        "thresholds": rows.numbers["threshold"],
        "support": rows.numbers["support"].astype(np.int64),
        "effective_size": rows.numbers["effective_size"],
        "alpha": _one_alpha(table, rows.numbers["alpha"], metadata),
        "num_nodes": len(rows.ids),
    }
    names = metadata.get("class_names")
    result = columns.build(rows, [str(name) for name in names] if isinstance(names, list) else None, common)
    return PredictionFile(rows.ids, result, metadata, names is not None)


def read_sets(path: str | os.PathLike[str], *, ids: IdKind = "auto") -> PredictionFile:
    """Read a sets file; `ids` as in `Reading`, and the rest as in `read_prediction`."""
    return read_prediction(path, Reading(ids=ids), prediction=PredictionSets)


def _read_rows(table: TableFile, columns: PredictionColumns) -> PredictionRows:
    # The prediction of sets says which classes there are.
    wanted = [name for name in dict.fromkeys((*columns.required, "prediction")) if name in table.columns]
    rows = table.read(wanted, ("node", *columns.cells)).combine_chunks()
    if not len(rows):
        raise FileFormatError(f"`{table.name}` must have at least one row; {table.path} has none")
    numbers, names = {}, {}
    for name in rows.schema.names:
        values = rows.column(name).combine_chunks()
        if name in columns.cells:
            names[name] = columns.cells[name](table, values)
        elif name != "node":
            numbers[name] = number_column(table, values, name).astype(np.float64, copy=False)
    return PredictionRows(table, own_ids(table, id_column(table, rows)), numbers, names)


def _check_numbers(rows: PredictionRows, rules: Mapping[str, Rule]) -> None:
    """Raise for numbers that their columns cannot have; the rules of support, effective size and alpha are known."""
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


def _one_alpha(table: TableFile, column: FloatArray, metadata: Mapping[str, object]) -> float:
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


def _check_recorded(table: TableFile, settings: Mapping[str, object]) -> None:
    """Raise for recorded settings that an evaluation uses and napsets cannot have written."""
    counts = [settings[key] for key in ("num_nodes", "calibration", "level_labels") if key in settings]
    wrong = [value for value in counts if type(value) is not int or not 0 <= value < 2**63]
    wrong += [settings[key] for key in ("directed",) if not isinstance(settings.get(key, False), bool)]
    wrong += [settings[key] for key in ("direction",) if settings.get(key, "out") not in ("out", "in", "both")]
    if wrong:
        raise FileFormatError(
            f"`{table.name}` must record settings that napsets can have; the metadata of {table.path} has "
            f"{shown(wrong[0])}. Write the file again."
        )
