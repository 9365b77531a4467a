"""Files of predictions: sets or intervals, written as they are made, and read back as they were.

Memory. Beside the interpreter and its libraries, what is held while they are written is the model's outputs, the graph
and a few arrays of one entry per node; predictions are made and written some nodes at a time. `memory_bound` states it
as a formula, and a test holds a run to it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray
from napsets.errors import FileFormatError, InvalidInputError, NapsetsWarning, arrow
from napsets.files.cells import plain_array, refuse_empty
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, joined_ids
from napsets.files.inputs import Inputs
from napsets.files.npz_format import check_recorded
from napsets.files.prediction_columns import COLUMNS_OF, PredictionColumns, PredictionRows, columns_of
from napsets.files.reading import PLAIN, IdKind, Reading
from napsets.files.writers import ROW_GROUP, writing_rows
from napsets.predictions import Prediction, PredictionSets, Summary
from napsets.version import __version__

#: Nodes predicted at a time: a few row groups, so that what a search needs to start is paid for rarely.
CHUNK = 4 * ROW_GROUP


def memory_bound(nodes: int, classes: int, edges: int, *, width: int = 4, evidence: bool = False) -> int:
    """Return the most bytes that a prediction from Parquet files with integer ids holds.

    400 MB + nodes · (2·width·classes + 150) + edges · 30, however many nodes are predicted; with evidence,
    nodes · classes · 64 more. `edges` are rows of their file; `width` is 4 where the file of probabilities has float32,
    otherwise 8; evidence are the labels around each node, which `auto` and `informed` weigh.
    """
    return 400_000_000 + nodes * (2 * width * classes + 150 + 64 * classes * evidence) + edges * 30


# -- writing -----------------------------------------------------------------------------------------------------------


def describe_settings(
    settings: Mapping[str, Any],
    class_names: list[str] | None,
    *,
    nodes: int,
    calibration: int,
    level_labels: int | None = None,
    method: Any = None,
) -> dict[str, Any]:
    """Return what the metadata of a file of predictions says: the version, the classes and how it was made.

    The settings go by the names of options. Recorded are also how many nodes there are, how many of them calibrated and
    how many labels set the level, and the method by its description, if it has one.
    """
    known = {
        "class_names": class_names,
        "num_nodes": nodes,
        "calibration": calibration,
        "level_labels": level_labels,
        **settings,
        "method_description": None,
    }
    if method is not None:
        with suppress(InvalidInputError):  # functions, and what no table has a name for, have no description
            known["method_description"] = method.describe()
    optional = ("class_names", "level_labels", "method_description")
    return {"napsets": __version__} | {
        key: value for key, value in known.items() if value is not None or key not in optional
    }


def write_prediction(
    inputs: Inputs,
    path: str | os.PathLike[str],
    calibrated: Any,
    *,
    alpha: float,
    metadata: Mapping[str, Any],
    reading: Reading = PLAIN,
    p_values: bool | Literal["smoothed"] = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Predict and write some nodes at a time.

    Parameters
    ----------
    inputs : Inputs
        What was read.
    path : path
        The file to write.
    calibrated : Calibrated
        What predicts, calibrated on these inputs (see `Inputs.calibrate`). Where its `score` has `probabilities`, these
        predict labels.
    alpha : float
        Error rate.
    metadata : mapping
        What the file's metadata holds (see `describe_settings`).
    reading : Reading
        The file's format, where its name does not say it, and its separator.
    p_values : bool or "smoothed"
        Whether sets are written with the p-value of every label.
    progress : callable
        Called as ``progress(done, total)`` in nodes.

    Returns
    -------
    Summary
        What was written, in numbers.
    """
    columns, nodes = COLUMNS_OF[inputs.prediction], inputs.nodes
    guessing = columns.guessing(calibrated)
    more: dict[str, Any] = {} if p_values is False else {"p_values": p_values}
    schema = columns.schema(
        inputs.ids.output_type, metadata, optional=guessing, integer_labels=inputs.integer_labels,
        valued=_classes(inputs) if more else (),
    )  # fmt: skip
    summary: Any = None
    with writing_rows(path, schema, metadata, reading) as writer, warnings.catch_warnings():
        # `read_inputs` has noted nodes whose truth is known once; other warnings are to be seen.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        for start in range(0, max(nodes.size, 1), CHUNK):
            part = nodes[start : start + CHUNK]
            report = partial(_report, progress, start, nodes.size)
            rows = calibrated.predict(part, alpha, progress=report, **more).with_names(
                len(inputs.ids), None, inputs.class_names
            )
            table = rows.to_arrow().set_column(0, "node", inputs.ids.take(part))
            if guessing:
                table = columns.with_guesses(table, calibrated, part, inputs.class_names)
            writer.write(table.select(schema.names))
            summary = rows.summary() if summary is None else summary + rows.summary()
    written: Summary = summary
    return written


def _classes(inputs: Inputs) -> list[str]:
    """Return the names of the classes that p-values are of."""
    if not inputs.class_names:
        raise InvalidInputError("`p_values` must be left out for intervals, which have no list of candidates")
    return list(inputs.class_names)


def _report(progress: Callable[[int, int], None], start: int, total: int, done: int, _: int) -> None:
    progress(start + done, total)


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """A file of sets or of intervals in memory.

    Attributes
    ----------
    ids : NodeIds
        The ids of the nodes, in the order of the file.
    prediction : Prediction
        What it has for them, on the places 0..n−1; `sets` is another name for it.
    metadata : dict
        Version and settings; empty where the file has none.
    complete : bool
        Whether the file says what all classes are; otherwise they are those that some set has, or that are predicted.
    predictions, probabilities : numpy.ndarray or None
        The best guess for each node, a class index or a number, and its probability; None where the file does not say.
    """

    ids: NodeIds
    prediction: Any
    metadata: dict[str, Any]
    complete: bool
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
    _check_numbers(table, rows.numbers, columns.rules(rows.numbers))
    columns.check(table, rows)
    names = metadata.get("class_names")
    class_names = columns.class_names(rows) if names is None else list(names)
    common = {
        "nodes": np.arange(len(rows)),
        "thresholds": rows.numbers["threshold"],
        "support": rows.numbers["support"].astype(np.int64),
        "effective_size": rows.numbers["effective_size"],
        "alpha": _one_alpha(table, rows.numbers["alpha"], metadata),
        "num_nodes": len(rows),
    }
    return PredictionFile(
        NodeIds(rows.ids, "sets", table.path),
        columns.build(table, rows, class_names, common),
        metadata,
        names is not None,
        *columns.guesses(table, rows, class_names),
    )


def read_sets(path: str | os.PathLike[str], *, ids: IdKind = "auto") -> PredictionFile:
    """Read a sets file; `ids` as in `Reading`, and the rest as in `read_prediction`."""
    return read_prediction(path, Reading(ids=ids), prediction=PredictionSets)


def _read_rows(table: TableFile, columns: PredictionColumns) -> PredictionRows:
    present = columns.present(table)
    ids: list[Any] = []
    numbers: dict[str, list[Any]] = {name: [] for name in present if name not in columns.texts}
    others: dict[str, list[Any]] = {name: [] for name in present if name in columns.texts and name != "node"}
    for batch in columns.batches(table, present):
        ids.append(id_column(table, batch, "node"))
        for name, parts in others.items():
            parts.append(columns.other(table, batch.column(name), name))
        for name, parts in numbers.items():
            parts.append(_numbers(table, batch.column(name), name, columns.endless))
    if not ids:
        raise FileFormatError(f"`sets` must have at least one row; {table.path} has none")
    joined = {name: np.concatenate(parts).astype(np.float64, copy=False) for name, parts in numbers.items()}
    if table.format == "jsonl":  # where −∞ is null too: rows that leave something out have no threshold of +∞
        nothing = np.isposinf(joined["threshold"]) & columns.bounded(joined)
        joined["threshold"] = np.where(nothing, -np.inf, joined["threshold"])
    return PredictionRows(
        joined_ids(table, ids), joined, {name: _joined(table, name, parts) for name, parts in others.items()}
    )


def _joined(table: TableFile, name: str, parts: list[Any]) -> Any:
    """Return one column of several batches, which must be of one type."""
    if any(part.type != parts[0].type for part in parts):
        raise FileFormatError(f"`sets` must have the same classes in all rows of {name}; those of {table.path} differ")
    return arrow().concat_arrays(parts)


def _numbers(table: TableFile, values: Any, name: str, endless: Mapping[str, float]) -> npt.NDArray[Any]:
    """Return a column of numbers without empty cells; in JSON Lines, null is the infinity of columns that have one."""
    pa = arrow()
    if table.format == "jsonl" and name in endless:
        values = (values if pa.types.is_floating(values.type) else values.cast(pa.float64())).fill_null(endless[name])
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise FileFormatError(f"`sets` must hold numbers in its column {name}; in {table.path} it is {values.type}")
    refuse_empty(table, name, values)
    return plain_array(values)


def _check_numbers(
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
