"""Reading a sets file, and refusing one whose parts contradict each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE, BoolArray, FloatArray, IntArray
from napsets.errors import FileFormatError
from napsets.files.classes import sorted_names
from napsets.files.formats import TableFile, arrow, open_table
from napsets.files.ids import IdKind, NodeIds, id_column
from napsets.files.npz_format import npz_array
from napsets.files.numbers import joined_ids
from napsets.files.places import reading
from napsets.files.sets_file import COLUMNS, PREDICTION
from napsets.files.settings import check_recorded
from napsets.sets import PredictionSets

__all__ = ["SetsFile", "check_numbers", "one_alpha", "plain_numbers", "read_sets", "whole_numbers"]

_TEXTS = ("node", "labels", "prediction")
_NUMBERS = tuple(name for name in (*COLUMNS, *PREDICTION) if name not in _TEXTS)
#: What null stands for in JSON Lines.
_ENDLESS = {"threshold": np.inf}


@dataclass(frozen=True, eq=False)
class SetsFile:
    """A sets file in memory.

    Attributes
    ----------
    ids : NodeIds
        The ids of the nodes, in the order of the file.
    sets : PredictionSets
        Their sets, on the places 0..n−1.
    metadata : dict
        Version and settings; empty where the file has none.
    complete : bool
        Whether the file says what all classes are; otherwise they are those that some set has, or that are predicted.
    predictions, probabilities : numpy.ndarray or None
        The most probable label of each node, a class index, and its probability; None where the file does not say.
    """

    ids: NodeIds
    sets: PredictionSets
    metadata: dict[str, Any]
    complete: bool
    predictions: IntArray | None = None
    probabilities: FloatArray | None = None

    @property
    def class_names(self) -> list[str]:
        """The classes."""
        return list(self.sets.class_names or ())


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a file as it has them: ids, numbers by column, all labels one after the other, and predictions."""

    ids: Any
    numbers: dict[str, npt.NDArray[Any]]
    labels: Any
    lengths: IntArray
    predictions: Any = None


def read_sets(path: str | os.PathLike[str], *, ids: IdKind = "auto") -> SetsFile:
    """Read a sets file of any of the formats.

    Parameters
    ----------
    path : path
        The file.
    ids : {"auto", "integer", "string"}
        How to read ids. "auto" keeps the file's type; in CSV, integers if every id looks like one.

    Raises
    ------
    FileFormatError
        Where the file is no sets file, or its columns and its metadata contradict each other or what numbers can be.
    """
    table = open_table("sets", path)
    table.require(*COLUMNS)
    metadata = table.about()
    check_recorded(table.name, table.path, metadata)
    with reading(table.path, table.name, folder=True):
        rows = _npz_rows(table, ids) if table.format == "npz" else _rows(table, ids)
    names = metadata.get("class_names")
    class_names = _seen(rows) if names is None else list(names)
    numbers = _checked(table, rows)
    alpha = one_alpha(table, numbers["alpha"], metadata)
    sets = PredictionSets(
        np.arange(rows.lengths.size),
        _member(table, rows, class_names),
        numbers["threshold"],
        numbers["support"].astype(np.int64),
        numbers["effective_size"],
        alpha,
        class_names,
        num_nodes=rows.lengths.size,
    )
    return SetsFile(
        NodeIds(rows.ids, "sets", table.path),
        sets,
        metadata,
        names is not None,
        None if rows.predictions is None else _codes(table, rows.predictions, class_names, "predictions"),
        numbers.get("probability"),
    )


# -- rows ----------------------------------------------------------------------------------------------------------


def _columns(table: TableFile) -> tuple[str, ...]:
    """Return the columns that the file has: those that every sets file has, and predictions if it says both parts."""
    return (*COLUMNS, *(PREDICTION if set(PREDICTION) <= set(table.columns) else ()))


def _rows(table: TableFile, kind: IdKind) -> _Rows:
    pa = arrow()
    columns = _columns(table)
    ids, labels, lengths, predictions = [], [], [], []
    numbers: dict[str, list[Any]] = {name: [] for name in _NUMBERS if name in columns}
    # A class may be called 007: names are text, where a file has no types.
    for batch in table.batches(columns, text=_TEXTS):
        ids.append(id_column(table, batch, "node", "string" if kind == "string" else "auto"))
        lists = batch.column("labels")
        if not table.typed:
            lists = pa.array([_parsed(table, text) for text in lists.to_pylist()], pa.list_(pa.string()))
        labels.append(_flat(table, lists))
        lengths.append(pa.compute.list_value_length(lists).to_numpy(zero_copy_only=False))
        for name, parts in numbers.items():
            parts.append(plain_numbers(table, whole_numbers(table, batch.column(name), name, _ENDLESS), name))
        if "prediction" in columns:
            predictions.append(_names(table, batch.column("prediction")))
    if not ids:
        raise FileFormatError(f"`sets` must have at least one row; {table.path} has none")
    nodes = joined_ids(table, ids, kind)
    joined = {name: np.concatenate(parts) for name, parts in numbers.items()}
    said = pa.concat_arrays(predictions) if predictions else None
    return _Rows(nodes, joined, pa.concat_arrays(labels), np.concatenate(lengths).astype(np.int64), said)


def _flat(table: TableFile, lists: Any) -> Any:
    """Return the labels of all lists, one after the other."""
    pa = arrow()
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise FileFormatError(f"`sets` must hold lists in its column labels; in {table.path} it is {lists.type}")
    flat = lists.flatten()
    if pa.types.is_nested(flat.type):
        raise FileFormatError(f"`sets` must hold lists of names in its column labels; {table.path} nests them")
    if lists.null_count or flat.null_count:
        raise FileFormatError(f"`sets` must have no empty cell; the column labels of {table.path} has some")
    return flat.cast(pa.large_string())


def whole_numbers(table: TableFile, values: Any, name: str, endless: Mapping[str, float]) -> Any:
    """Return numbers with the infinity that JSON has not: null there, in columns that may be endless."""
    pa = arrow()
    if table.format != "jsonl" or name not in endless:
        return values
    return (values if pa.types.is_floating(values.type) else values.cast(pa.float64())).fill_null(endless[name])


def _names(table: TableFile, values: Any) -> Any:
    """Return predicted labels as text."""
    types = arrow().types
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_integer(values.type)):
        raise FileFormatError(f"`sets` must hold names in its column prediction; in {table.path} it is {values.type}")
    if values.null_count:
        raise FileFormatError(f"`sets` must have no empty cell; the column prediction of {table.path} has some")
    return values.cast(arrow().large_string())


def plain_numbers(table: TableFile, values: Any, name: str) -> npt.NDArray[Any]:
    """Return a column of numbers without empty cells."""
    types = arrow().types
    if not (types.is_integer(values.type) or types.is_floating(values.type)):
        raise FileFormatError(f"`sets` must hold numbers in its column {name}; in {table.path} it is {values.type}")
    if values.null_count:
        raise FileFormatError(f"`sets` must have no empty cell; the column {name} of {table.path} has some")
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def _npz_rows(table: TableFile, kind: IdKind) -> _Rows:
    """Read arrays: the set of node i is ``labels[offsets[i]:offsets[i + 1]]``."""
    pa = arrow()
    table.require("offsets")
    columns = _columns(table)
    with np.load(table.path, allow_pickle=False) as archive:
        arrays = {name: npz_array("sets", table.path, archive, name) for name in (*columns, "offsets")}
    labels, offsets = arrays.pop("labels"), arrays.pop("offsets")
    lengths = {name: array.size for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or not arrays["node"].size:
        raise FileFormatError(
            f"`sets` must have arrays of one length, at least 1, but for labels and offsets; {table.path} has {lengths}"
        )
    if not _cut(offsets, arrays["node"].size, labels.size):
        raise FileFormatError(
            f"`sets` must have offsets that cut its {labels.size} labels into {arrays['node'].size} sets: integers "
            f"that rise from 0 to {labels.size}, one more than there are sets. Those of {table.path} do not."
        )
    batch = pa.RecordBatch.from_arrays([pa.array(arrays["node"])], names=["node"])
    numbers = {name: plain_numbers(table, pa.array(arrays[name]), name) for name in _NUMBERS if name in columns}
    names = pa.array(labels.astype(str), pa.large_string())
    ends: IntArray = offsets.astype(np.int64)
    said = _names(table, pa.array(arrays["prediction"])) if "prediction" in columns else None
    nodes = joined_ids(table, [id_column(table, batch, "node", "string" if kind == "string" else "auto")], kind)
    return _Rows(nodes, numbers, names, ends[1:] - ends[:-1], said)


def _cut(offsets: npt.NDArray[Any], sets: int, labels: int) -> bool:
    """Whether offsets cut so many labels into so many sets."""
    if offsets.dtype.kind not in "iu" or offsets.size != sets + 1:
        return False
    return bool(offsets[0] == 0 and offsets[-1] == labels and (offsets[1:] >= offsets[:-1]).all())


def _parsed(table: TableFile, text: str | None) -> list[str]:
    try:
        names = json.loads(text or "")
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or {type(name) for name in names} not in (set(), {str}, {int}):
        shown = repr(text) if text is None or len(text) <= 80 else repr(text[:80]) + "…"
        raise FileFormatError(
            f"`sets` must hold a JSON array in each cell of its column labels; {table.path} has {shown}. "
            f'The array holds names, as in ["cat", "dog"], or integers.'
        )
    return [str(name) for name in names]


# -- what they say -------------------------------------------------------------------------------------------------


def _seen(rows: _Rows) -> list[str]:
    """Return the classes that some set has, or that are predicted."""
    found = set(rows.labels.unique().to_pylist())
    return sorted_names(list(found if rows.predictions is None else found | set(rows.predictions.to_pylist())))


def _checked(table: TableFile, rows: _Rows) -> dict[str, FloatArray]:
    """Return the numbers as float64, each of which can be what its column says."""
    numbers = {name: values.astype(np.float64, copy=False) for name, values in rows.numbers.items()}
    if table.format == "jsonl":  # which has no infinity: a set that nobody is in has not that of full ones
        nobody = np.isposinf(numbers["threshold"]) & (numbers["size"] == 0)
        numbers["threshold"] = np.where(nobody, -np.inf, numbers["threshold"])
    rules: dict[str, tuple[BoolArray, str]] = {
        "size": ((numbers["size"] == np.floor(numbers["size"])) & (numbers["size"] >= 0), "an integer of at least 0"),
        # An exact level may ask for nothing: the set is then empty, or the best label stands in for it.
        "threshold": (
            (numbers["threshold"] > -np.inf) | (np.isneginf(numbers["threshold"]) & (numbers["size"] <= 1)),
            "a number or +∞, or −∞ for a set of at most one label",
        ),
    }
    if "probability" in numbers:
        chance = numbers["probability"]
        rules["probability"] = ((chance >= 0) & (chance <= 1 + ROW_SUM_TOLERANCE), "from 0 to 1")
    check_numbers(table, numbers, rules)
    fits = rows.lengths == numbers["size"]
    if not fits.all():
        row = int(fits.argmin())
        raise FileFormatError(
            f"`sets` must have sizes that fit their lists; row {row} of {table.path} has {rows.lengths[row]} labels "
            f"and size {numbers['size'][row]:.0f}"
        )
    return numbers


def check_numbers(
    table: TableFile, numbers: Mapping[str, FloatArray], rules: Mapping[str, tuple[BoolArray, str]]
) -> None:
    """Refuse numbers that their columns cannot have; the rules of support, effective size and alpha are known."""
    support, size, alpha = (numbers[name] for name in ("support", "effective_size", "alpha"))
    known: dict[str, tuple[BoolArray, str]] = {
        "support": ((support == np.floor(support)) & (support >= 0) & (support < 2**53), "a count"),
        "effective_size": (np.isfinite(size) & (size >= 0), "at least 0"),
        "alpha": ((alpha > 0) & (alpha < 1), "strictly between 0 and 1"),
    }
    for name, (fine, what) in (dict(rules) | known).items():
        if not fine.all():
            row = int(fine.argmin())
            raise FileFormatError(
                f"each {name} of `sets` must be {what}; row {row} of {table.path} has {numbers[name][row]:g}"
            )


def one_alpha(table: TableFile, column: FloatArray, metadata: Mapping[str, Any]) -> float:
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


def _codes(table: TableFile, labels: Any, class_names: list[str], what: str) -> IntArray:
    """Return labels as class indices."""
    pc = arrow().compute
    codes = pc.index_in(labels, value_set=arrow().array(class_names, labels.type))
    if codes.null_count:
        strange = labels.filter(pc.is_null(codes))[0].as_py()
        raise FileFormatError(
            f"`sets` must hold {what} that are among the class_names of its metadata; {table.path} has {strange!r}"
        )
    found: IntArray = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _member(table: TableFile, rows: _Rows, class_names: list[str]) -> BoolArray:
    codes = _codes(table, rows.labels, class_names, "labels")
    member = np.zeros((rows.lengths.size, len(class_names)), dtype=bool)
    member[np.repeat(np.arange(rows.lengths.size), rows.lengths), codes] = True
    repeated = member.sum(axis=1) != rows.lengths
    if repeated.any():
        raise FileFormatError(
            f"`sets` must have each label once in a set; row {int(repeated.argmax())} of {table.path} repeats one"
        )
    return member
