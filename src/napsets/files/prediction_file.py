"""Reading files of predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.values import shown
from napsets.errors import FileFormatError
from napsets.files import paths
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, own_ids
from napsets.files.prediction_columns import COLUMNS_OF, columns_of, numbers
from napsets.files.reading import PLAIN, Reading
from napsets.predictions import Prediction, PredictionSets


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """A file of sets or of intervals in memory."""

    ids: NodeIds  #: the ids of the nodes, in the order of the file
    prediction: Prediction  #: their sets or intervals, on the places 0..n−1
    metadata: dict[str, Any]  #: version and settings; empty where the file has none
    #: Whether the file lists all classes; otherwise they are those that are in a set, or predicted.
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
    """Read a file of sets or of intervals.

    Parameters
    ----------
    path : path
        The file.
    reading : Reading
        How it is read.
    prediction : type, optional
        The kind of prediction; by default its columns decide.

    Raises
    ------
    FileFormatError
        Where the file is not one of predictions, or its labels contradict its metadata.
    """
    table = open_table("sets", path, reading)
    columns = columns_of(table) if prediction is None else COLUMNS_OF[prediction]
    table.require(*columns.required)
    metadata = table.about()
    _check_recorded(table, metadata)
    # Which classes there are can follow from the predictions of sets.
    wanted = [name for name in dict.fromkeys((*columns.required, "prediction")) if name in table.columns]
    rows = table.read(wanted, ("node", *columns.named))
    if not len(rows):
        raise FileFormatError(f"`{table.name}` must have at least one row; {table.path} has none")
    ids, alphas = own_ids(table, id_column(table, rows)), np.unique(numbers(table, rows, "alpha"))
    if alphas.size != 1:
        raise FileFormatError(f"`sets` must have one alpha for all rows; {table.path} has {alphas.size} alphas")
    names = metadata.get("class_names")
    with paths.reading(table.path, folder=True):  # which names the file where its numbers cannot be
        result = columns.build(table, rows, names, {
            "nodes": np.arange(len(ids)),
            "thresholds": numbers(table, rows, "threshold"),
            "support": np.nan_to_num(numbers(table, rows, "support")).astype(np.int64),
            "effective_size": numbers(table, rows, "effective_size"),
            "alpha": float(alphas[0]),
            "num_nodes": len(ids),
        })  # fmt: skip
    return PredictionFile(ids, result, metadata, names is not None)


def read_sets(path: str | os.PathLike[str]) -> PredictionFile:
    """Read a sets file, as `read_prediction` does."""
    return read_prediction(path, prediction=PredictionSets)


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
