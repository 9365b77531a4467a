"""Writing predictions, and any rows, to Parquet or CSV, some at a time; a file appears whole or not at all.

Parquet keeps settings in its metadata. CSV has no lists and no place for settings: a list is a JSON array in a cell
there, a structure a JSON object.

Memory. Beside the interpreter and its libraries, what is held while predictions are written is the model's outputs, the
graph and a few arrays of one entry per node; predictions are made and written some nodes at a time. A test holds a run
to the formula in the help of `napsets predict`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

from napsets import __version__
from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError, NapsetsWarning, arrow
from napsets.files.inputs import Inputs
from napsets.files.paths import check_output, replacing
from napsets.files.prediction_file import GUESSES, prediction_schema
from napsets.files.reading import PLAIN, Reading, format_of
from napsets.predictions import Prediction, Summary

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a Parquet row group.
ROW_GROUP = 1 << 16

#: Rows of probabilities that are looked through at a time.
_ROWS = 1 << 14

#: Nodes predicted at a time: a few row groups, so that what a search needs to start is paid for rarely.
CHUNK = 4 * ROW_GROUP


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise, before any work is done, if a file of predictions cannot be written; see `check_output`."""
    format_of("output", path)
    check_output(path)


class Describes(Protocol):
    """A method that plain JSON describes."""

    def describe(self) -> dict[str, object]:
        """Return the description."""


class Predicts(Protocol):
    """What was calibrated, and predicts nodes by their places."""

    def predict(self, nodes: IntArray, alpha: float, **options: object) -> Prediction:
        """Return the predictions of nodes."""


# -- predictions -------------------------------------------------------------------------------------------------------


def describe_settings(
    settings: Mapping[str, object],
    class_names: list[str] | None,
    *,
    nodes: int,
    calibration: int,
    level_labels: int | None = None,
    method: Describes | None = None,
) -> dict[str, object]:
    """Return the metadata of a file of predictions: the version, the classes and how it was made.

    The settings go by the names of options. Recorded are also how many nodes there are, how many of them calibrated and
    how many labels set the level, and the method by its description, if it has one.
    """
    description = None
    if method is not None:
        with suppress(InvalidInputError):  # functions, and what no table has a name for, have no description
            description = method.describe()
    known: dict[str, object] = {
        "napsets": __version__,
        "class_names": class_names,
        "num_nodes": nodes,
        "calibration": calibration,
        "level_labels": level_labels,
        **settings,
        "method_description": description,
    }
    return {key: value for key, value in known.items() if value is not None}


def write_prediction(
    inputs: Inputs,
    path: str | os.PathLike[str],
    calibrated: Predicts,
    *,
    alpha: float,
    metadata: Mapping[str, object],
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
        The separator of CSV.
    p_values : bool or "smoothed"
        Whether sets are written with the p-value of every label.
    progress : callable
        Called as ``progress(done, total)`` in nodes.

    Returns
    -------
    Summary
        What was written, in numbers.
    """
    nodes = inputs.nodes
    probabilities = getattr(getattr(calibrated, "score", None), "probabilities", None)  # which predict labels
    guesses = probabilities is not None or "probability" not in GUESSES[inputs.prediction]
    more: dict[str, object] = {} if p_values is False else {"p_values": p_values}
    if more and not inputs.class_names:
        raise InvalidInputError("`p_values` must be left out for intervals, which have no list of candidates")
    schema = prediction_schema(
        inputs.prediction, inputs.ids.output_type, metadata, guesses=guesses, integer_labels=inputs.integer_labels,
        valued=(inputs.class_names or ()) if more else (),
    )  # fmt: skip
    summary: Summary | None = None
    with writing_rows(path, schema, reading) as write, warnings.catch_warnings():
        # `read_inputs` has noted nodes whose truth is known once; other warnings are to be seen.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        for start in range(0, max(nodes.size, 1), CHUNK):
            part = nodes[start : start + CHUNK]
            report = partial(_report, progress, start, nodes.size)
            rows = calibrated.predict(part, alpha, progress=report, **more).with_names(
                len(inputs.ids), None, inputs.class_names
            )
            write(prediction_rows(rows, inputs.ids.take(part), probabilities, part, schema))
            summary = rows.summary() if summary is None else summary + rows.summary()
    assert summary is not None
    return summary


def prediction_rows(
    prediction: Prediction,
    ids: pa.Array,
    probabilities: npt.NDArray[np.floating] | None,
    rows: IntArray,
    schema: pa.Schema,
) -> pa.Table:
    """Return a prediction as an Arrow table of this schema, with the first choices of rows of `probabilities`."""
    table = prediction.to_arrow().set_column(0, "node", ids)
    if probabilities is not None:
        table = _with_guesses(table, probabilities, rows, getattr(prediction, "class_names", None) or ())
    return table.select(schema.names).cast(schema)


def _with_guesses(
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


def _report(progress: Callable[[int, int], None], start: int, total: int, done: int, _: int) -> None:
    progress(start + done, total)


# -- rows --------------------------------------------------------------------------------------------------------------


@contextmanager
def writing_rows(
    path: str | os.PathLike[str], schema: pa.Schema, reading: Reading = PLAIN
) -> Iterator[Callable[[pa.Table], None]]:
    """Give a function that writes rows; the file appears under its name when all went well, and otherwise not at all.

    Its ending chooses the format.
    """
    target = Path(path)
    with replacing(target) as draft:
        if format_of("output", target) == "parquet":
            with arrow().parquet.ParquetWriter(draft, schema, compression="zstd") as parquet:
                yield lambda table: parquet.write_table(table.cast(schema), row_group_size=ROW_GROUP)
            return
        options = arrow().csv.WriteOptions(delimiter=reading.separator_of(target))
        flat_schema = _flat(schema.empty_table()).schema
        compression = "gzip" if target.name.lower().endswith(".gz") else None
        with (
            arrow().output_stream(str(draft), compression=compression) as stream,
            arrow().csv.CSVWriter(stream, flat_schema, write_options=options) as csv,
        ):
            yield lambda table: csv.write_table(_flat(table.cast(schema)))


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with JSON texts in place of lists and structures."""
    pa = arrow()
    for place, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):
            texts = [json.dumps(cell, ensure_ascii=False) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, column.name, pa.array(texts, pa.string()))
    return table
