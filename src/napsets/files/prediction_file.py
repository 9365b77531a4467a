"""Files of predictions: their columns, and reading them.

Sets and intervals have ``node`` (as in the user's files), ``threshold`` (+∞ where the neighbourhood has too little
mass), ``support``, ``effective_size`` and ``alpha``. Sets have ``labels`` (a list of class names, or of integers where
the user's labels are integers) and ``size``; then, where they are known, ``prediction`` (the most probable label) and
``probability``; and on request ``p_values``, the p-value of every class by its name (a structure; a JSON object in
CSV). Intervals have ``lower``, ``upper`` and ``width``, and ``prediction``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.checks.values import check_size, shown
from napsets.errors import arrow
from napsets.files import paths
from napsets.files.formats import METADATA_KEY, TableFile, open_table
from napsets.files.ids import NodeIds, id_column, own_ids
from napsets.files.labels import sorted_names
from napsets.files.outputs import number_column, plain_array, refuse_empty
from napsets.files.reading import PLAIN, Reading
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns that every file of sets, or of intervals, has.
REQUIRED: dict[type[Prediction], tuple[str, ...]] = {
    PredictionSets: ("node", "labels", "size", "threshold", "support", "effective_size", "alpha"),
    PredictionIntervals: ("node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha"),
}

#: The columns of a model's best guesses, which a file may lack.
GUESSES: dict[type[Prediction], tuple[str, ...]] = {
    PredictionSets: ("prediction", "probability"),
    PredictionIntervals: ("prediction",),
}


def prediction_schema(
    prediction: type[Prediction],
    id_type: pa.DataType,
    metadata: Mapping[str, object],
    *,
    guesses: bool = True,
    integer_labels: bool = False,
    valued: Sequence[str] = (),
) -> pa.Schema:
    """Return the Arrow schema of a file, with best guesses or without, and with p-values of the classes `valued`."""
    pa = arrow()
    label = pa.int64() if integer_labels else pa.string()
    types = {"node": id_type, "labels": pa.list_(label), "size": pa.int32(), "support": pa.int64()}
    types["prediction"] = label if prediction is PredictionSets else pa.float64()
    types["p_values"] = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in valued])
    names = (*REQUIRED[prediction], *(GUESSES[prediction] if guesses else ()), *(("p_values",) if valued else ()))
    fields = [pa.field(name, types.get(name, pa.float64()), nullable=False) for name in names]
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(dict(metadata)).encode()})


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """A file of sets or of intervals in memory."""

    ids: NodeIds  #: the ids of the nodes, in the order of the file
    prediction: Prediction  #: their sets or intervals, on the places 0..n−1
    metadata: dict[str, Any]  #: version and settings; empty where the file has none
    complete: bool  #: whether the file lists all classes; otherwise they are those that are in a set

    @property
    def sets(self) -> PredictionSets:
        """The prediction, of a file of sets."""
        assert isinstance(self.prediction, PredictionSets)
        return self.prediction

    @property
    def class_names(self) -> list[str]:
        """The classes; none where the truth is a number."""
        return list(getattr(self.prediction, "class_names", None) or ())


def read_prediction(path: str | os.PathLike[str], reading: Reading = PLAIN) -> PredictionFile:
    """Read a file of intervals where it has their ends and no labels, otherwise of sets.

    Parameters
    ----------
    path : path
        The file.
    reading : Reading
        How it is read.

    Raises
    ------
    FileFormatError
        Where the file is not one of predictions, or its labels contradict its metadata.
    """
    table = open_table("sets", path, reading)
    intervals = {"lower", "upper"} <= set(table.columns) and "labels" not in table.columns
    required = REQUIRED[PredictionIntervals if intervals else PredictionSets]
    table.require(*required)
    metadata = table.about()
    rows = table.read([*required, *(["prediction"] if intervals and "prediction" in table.columns else [])], _TEXT)
    if not len(rows):
        raise table.fault("have at least one row", "has none")
    ids = id_column(table, rows)

    def numbers(column: str) -> FloatArray:
        return number_column(table, rows[column], column, ids).astype(np.float64, copy=False)

    alphas = np.unique(numbers("alpha"))
    if alphas.size != 1:
        raise table.fault("have one alpha for all rows", f"has {alphas.size} alphas")
    with paths.reading(table.path, folder=True):  # which names the file where its numbers cannot be
        common: dict[str, Any] = {
            "nodes": np.arange(len(rows)),
            "thresholds": numbers("threshold"),
            "support": np.nan_to_num(numbers("support")).astype(np.int64),
            "effective_size": numbers("effective_size"),
            "alpha": float(alphas[0]),
            "num_nodes": len(rows),
        }
        result: Prediction
        if intervals:
            centre = numbers("prediction") if "prediction" in rows.column_names else None
            for end in ("lower", "upper"):
                check_size(end, numbers(end))
            result = PredictionIntervals(lower=numbers("lower"), upper=numbers("upper"), centre=centre, **common)
        else:
            names = metadata.get("class_names")
            result = _sets(table, _label_lists(table, rows["labels"].combine_chunks(), ids), names, common)
    return PredictionFile(own_ids(table, ids), result, metadata, "class_names" in metadata)


def read_sets(path: str | os.PathLike[str]) -> PredictionFile:
    """Read a file of sets, as `read_prediction` does."""
    return read_prediction(path)


#: The columns that are text in CSV.
_TEXT = ("node", "labels")


def _sets(table: TableFile, labels: pa.Array, names: list[str] | None, common: Mapping[str, Any]) -> PredictionSets:
    """Return the sets of lists of labels; the classes are those in a set where the metadata names none."""
    compute, flat = arrow().compute, labels.flatten()
    names = sorted_names(flat.unique().to_pylist()) if names is None else names
    codes = compute.index_in(flat, value_set=arrow().array(names, flat.type))
    if codes.null_count:
        strange = flat.filter(compute.is_null(codes))[0].as_py()
        raise table.fault("hold labels that are among the class_names of its metadata", f"has {strange!r}")
    member = np.zeros((len(labels), len(names)), dtype=bool)
    lengths = plain_array(compute.list_value_length(labels)).astype(np.int64)
    member[np.repeat(np.arange(len(labels)), lengths), plain_array(codes)] = True
    return PredictionSets(member=member, class_names=list(names), **common)


def _label_lists(table: TableFile, lists: pa.Array, ids: pa.ChunkedArray) -> pa.Array:
    """Return the labels of each row as a list of text; in CSV, a cell is a JSON array."""
    pa = arrow()
    if not table.typed:
        lists = pa.array([_names_in(table, text) for text in lists.to_pylist()], pa.list_(pa.string()))
    kind = lists.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or pa.types.is_nested(kind.value_type):
        raise table.fault("hold lists of names in its column labels", f"has {kind} there")
    refuse_empty(table, "labels", lists, ids)
    if lists.flatten().null_count:
        raise table.fault("hold lists of names in its column labels", "has an empty name in one")
    return lists.cast(pa.large_list(pa.large_string()))


def _names_in(table: TableFile, text: str | None) -> list[str]:
    try:
        cell = json.loads(text or "")
    except (ValueError, RecursionError):
        cell = None
    if not isinstance(cell, list) or {type(name) for name in cell} not in (set(), {str}, {int}):
        must = 'hold a JSON array in each cell of its column labels, as in ["cat", "dog"] or [3, 7]'
        raise table.fault(must, f"has {shown(text)}")
    return [str(name) for name in cell]
