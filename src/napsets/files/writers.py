"""Writing predictions, and any rows, to a file of any format, some at a time; it appears whole or not at all.

Parquet keeps settings in its metadata, npz in an array. CSV has no lists and no place for settings: a list is a JSON
array in a cell there, a structure a JSON object. JSON Lines has no place for settings either, and no infinity, which is
null there. npz keeps the lists of a column ``labels`` as that array and ``offsets``, and a structure as a matrix.

Memory. Beside the interpreter and its libraries, what is held while predictions are written is the model's outputs, the
graph and a few arrays of one entry per node; predictions are made and written some nodes at a time. `memory_bound`
states it as a formula, and a test holds a run to it.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from napsets import __version__
from napsets.errors import InvalidInputError, NapsetsWarning, arrow
from napsets.files.inputs import Inputs
from napsets.files.paths import check_output, replacing
from napsets.files.prediction_columns import COLUMNS_OF, with_first_choices
from napsets.files.reading import PLAIN, Reading
from napsets.predictions import Summary

#: Rows of a Parquet row group.
ROW_GROUP = 1 << 16

#: Nodes predicted at a time: a few row groups, so that what a search needs to start is paid for rarely.
CHUNK = 4 * ROW_GROUP


def check_writable(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = (), reading: Reading = PLAIN
) -> None:
    """Refuse a file that cannot or must not be written, before any work is done; see `check_output`."""
    reading.format_of("output", path)
    check_output(path, inputs)


# -- predictions -------------------------------------------------------------------------------------------------------


def memory_bound(nodes: int, classes: int, edges: int, *, width: int = 4, evidence: bool = False) -> int:
    """Return the most bytes that a prediction from Parquet files with integer ids holds.

    400 MB + nodes · (2·width·classes + 150) + edges · 30, however many nodes are predicted; with evidence,
    nodes · classes · 64 more. `edges` are rows of their file; `width` is 4 where the file of probabilities has float32,
    otherwise 8; evidence are the labels around each node, which `auto` and `informed` weigh.
    """
    return 400_000_000 + nodes * (2 * width * classes + 150 + 64 * classes * evidence) + edges * 30


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
    probabilities = getattr(getattr(calibrated, "score", None), "probabilities", None)  # which predict labels
    guessing = probabilities is not None or "probability" not in columns.optional
    more: dict[str, Any] = {} if p_values is False else {"p_values": p_values}
    if more and not inputs.class_names:
        raise InvalidInputError("`p_values` must be left out for intervals, which have no list of candidates")
    schema = columns.schema(
        inputs.ids.output_type, metadata, optional=guessing, integer_labels=inputs.integer_labels,
        valued=(inputs.class_names or ()) if more else (),
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
            if probabilities is not None:
                table = with_first_choices(table, probabilities, part, inputs.class_names or ())
            writer.write(table.select(schema.names))
            summary = rows.summary() if summary is None else summary + rows.summary()
    written: Summary = summary
    return written


def _report(progress: Callable[[int, int], None], start: int, total: int, done: int, _: int) -> None:
    progress(start + done, total)


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowWriter:
    """What takes rows, some at a time."""

    schema: Any
    add: Callable[[Any], object]

    def write(self, table: Any) -> None:
        """Add rows."""
        self.add(table.cast(self.schema))


@contextmanager
def writing_rows(
    path: str | os.PathLike[str], schema: Any, metadata: Mapping[str, Any], reading: Reading = PLAIN
) -> Iterator[RowWriter]:
    """Give a writer of rows; the file appears under its name when all went well, and otherwise not at all.

    Its ending chooses the format, or else `reading`. The metadata, what JSON can hold, is in the schema of Parquet too.
    """
    target = Path(path)
    kind = reading.format_of("output", target)
    with replacing(target) as draft:
        if kind == "parquet":
            with arrow().parquet.ParquetWriter(draft, schema, compression="zstd") as parquet:
                yield RowWriter(schema, partial(parquet.write_table, row_group_size=ROW_GROUP))
        elif kind == "npz":  # which cannot grow: all rows are kept until the end
            tables: list[Any] = []
            yield RowWriter(schema, tables.append)
            _write_npz(draft, tables, metadata)
        else:
            # Neither the time nor the draft's name go into the file: the same sets are the same bytes.
            compress = target.name.lower().endswith(".gz")
            with open(draft, "wb") as file, (
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compress else nullcontext(file)
            ) as stream:  # fmt: skip
                if kind == "jsonl":
                    yield RowWriter(schema, partial(_write_json_lines, stream))
                else:
                    options = arrow().csv.WriteOptions(delimiter=reading.separator_of(target))
                    flat_schema = _flat(schema.empty_table()).schema
                    with arrow().csv.CSVWriter(stream, flat_schema, write_options=options) as csv:
                        yield RowWriter(schema, lambda table: csv.write_table(_flat(table)))


def _flat(table: Any) -> Any:
    """Return a table with JSON texts in place of lists and structures."""
    pa = arrow()
    for place, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):
            texts = [json.dumps(cell, ensure_ascii=False) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, column.name, pa.array(texts, pa.string()))
    return table


def _write_json_lines(stream: Any, table: Any) -> None:
    for row in table.to_pylist():
        plain = {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in row.items()}
        stream.write(json.dumps(plain, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _write_npz(draft: Path, tables: list[Any], metadata: Mapping[str, Any]) -> None:
    table = arrow().concat_tables(tables).combine_chunks()
    arrays = {name: _plain(table.column(name).combine_chunks()) for name in table.column_names if name != "labels"}
    arrays["about"] = np.array(json.dumps(metadata))
    if "labels" in table.column_names:
        arrays["labels"] = _plain(table.column("labels").combine_chunks().flatten())
        arrays["offsets"] = np.concatenate([[0], np.cumsum(arrays["size"], dtype=np.int64)])
    with open(draft, "wb") as stream:
        np.savez_compressed(stream, **arrays)


def _plain(column: Any) -> Any:
    if arrow().types.is_struct(column.type):
        return np.column_stack([_plain(part) for part in column.flatten()])
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(np.str_) if values.dtype == object else values
