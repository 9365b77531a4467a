"""Writing the sets file: one row a node, written as it is made, with the settings in its metadata.

Columns: ``node`` (as the user's files had it), ``labels`` (list of class names, or of integers where the user's labels
are integers), ``size``, ``threshold`` (+∞ where the
neighbourhood has too little mass), ``support``, ``effective_size``, ``alpha``; then, where they are known,
``prediction`` (the most probable label) and ``probability`` (how probable it is). In Parquet the key ``napsets`` of the
file's metadata holds a JSON object with the version and the settings. CSV has no lists and no place for
settings: there ``labels`` is a JSON array in a cell. JSON Lines has no place for settings either, and no infinity: a
threshold of +∞ is null there. npz keeps lists as ``labels`` and ``offsets``.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from napsets.files.dialect import dialect
from napsets.files.formats import METADATA_KEY, arrow, format_of
from napsets.files.places import check_output, replacing
from napsets.version import __version__

__all__ = [
    "COLUMNS",
    "PREDICTION",
    "ROW_GROUP",
    "check_writable",
    "describe_settings",
    "sets_schema",
    "writing_rows",
    "writing_sets",
]

#: Nodes written at a time, and rows of a Parquet row group.
ROW_GROUP = 1 << 16

COLUMNS = ("node", "labels", "size", "threshold", "support", "effective_size", "alpha")

#: Further columns, both of which a file has or neither: the most probable label, and its probability.
PREDICTION = ("prediction", "probability")


def check_writable(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = ()) -> None:
    """Refuse a sets file that cannot or must not be written, before any work is done; see `check_output`."""
    format_of("output", path)
    check_output(path, inputs)


def sets_schema(
    id_type: Any, metadata: Mapping[str, Any], *, predicting: bool = False, integer_labels: bool = False
) -> Any:
    """Return the Arrow schema of a sets file, with the columns `PREDICTION` if so asked."""
    pa = arrow()
    label = pa.int64() if integer_labels else pa.string()
    types = [id_type, pa.list_(label), pa.int32(), pa.float64(), pa.int64(), pa.float64(), pa.float64()]
    kinds = dict(zip(COLUMNS, types, strict=True))
    if predicting:
        kinds |= dict(zip(PREDICTION, (label, pa.float64()), strict=True))
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(metadata).encode()})


def describe_settings(
    settings: Mapping[str, Any], class_names: list[str], *, nodes: int, calibration: int
) -> dict[str, Any]:
    """Return what the metadata of a sets file says: the version, the classes and how the sets were made."""
    return {
        "napsets": __version__,
        "class_names": class_names,
        "num_nodes": nodes,
        "calibration": calibration,
        **settings,
    }


class Writer(Protocol):
    """What takes the sets, some nodes at a time."""

    def write(self, table: Any) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish the file."""


@contextmanager
def writing_sets(
    path: str | os.PathLike[str],
    id_type: Any,
    metadata: Mapping[str, Any],
    *,
    predicting: bool = False,
    integer_labels: bool = False,
) -> Iterator[Writer]:
    """Give a writer of sets; the file appears under its name when all went well, and otherwise not at all.

    Parameters
    ----------
    path : path
        Where to; the ending chooses the format.
    id_type : pyarrow.DataType
        Type of the ids.
    metadata : mapping
        What JSON can hold: version and settings.
    predicting : bool
        Whether the rows have the columns `PREDICTION` too.
    integer_labels : bool
        Whether labels, which come as text, are to be written as integers.
    """
    schema = sets_schema(id_type, metadata, predicting=predicting, integer_labels=integer_labels)
    with writing_rows(path, schema, metadata) as writer:
        yield writer


@contextmanager
def writing_rows(path: str | os.PathLike[str], schema: Any, metadata: Mapping[str, Any]) -> Iterator[Writer]:
    """Give a writer of rows of any schema; the rest as in `writing_sets`."""
    target = Path(path)
    kind = format_of("output", target)
    with replacing(target) as draft:
        if kind == "parquet":
            writer: Writer = _ParquetWriter(draft, schema)
        elif kind == "csv":
            writer = _CsvWriter(draft, schema, dialect().separator_of(target), compress=_compressed(target))
        elif kind == "jsonl":
            writer = _JsonLinesWriter(draft, schema, compress=_compressed(target))
        else:
            writer = _NpzWriter(draft, schema, metadata)
        try:
            yield writer
        except BaseException:
            _abandon(writer)
            raise
        writer.close()


def _abandon(writer: Writer) -> None:
    """Close what will be thrown away; that it cannot be finished is known already."""
    try:
        writer.close()
    except (OSError, ValueError, arrow().ArrowException):
        return


class _ParquetWriter:
    def __init__(self, draft: Path, schema: Any) -> None:
        self.schema = schema
        self.writer = arrow().parquet.ParquetWriter(draft, schema, compression="zstd")

    def write(self, table: Any) -> None:
        self.writer.write_table(table.cast(self.schema), row_group_size=ROW_GROUP)

    def close(self) -> None:
        self.writer.close()


def _compressed(target: Path) -> bool:
    return target.name.lower().endswith(".gz")


class _Stream:
    """A file of lines, plain or compressed."""

    def __init__(self, draft: Path, schema: Any, *, compress: bool) -> None:
        self.schema = schema
        self.file = open(draft, "wb")  # noqa: SIM115  (closed by close)
        # Neither the time nor the draft's name go into the file: the same sets are the same bytes.
        self.stream: Any = gzip.GzipFile("", "wb", fileobj=self.file, mtime=0) if compress else self.file

    def close(self) -> None:
        try:
            self.stream.close()
        finally:
            self.file.close()


class _CsvWriter(_Stream):
    def __init__(self, draft: Path, schema: Any, separator: str, *, compress: bool) -> None:
        super().__init__(draft, schema, compress=compress)
        self.separator = separator
        self.header = True

    def write(self, table: Any) -> None:
        pa = arrow()
        table = table.cast(self.schema)
        if "labels" in table.column_names:
            texts = pa.array([json.dumps(names, ensure_ascii=False) for names in table.column("labels").to_pylist()])
            table = table.set_column(1, "labels", texts)
        options = pa.csv.WriteOptions(include_header=self.header, delimiter=self.separator)
        pa.csv.write_csv(table, self.stream, options)
        self.header = False


class _JsonLinesWriter(_Stream):
    def write(self, table: Any) -> None:
        for row in table.cast(self.schema).to_pylist():
            plain = {
                key: None if isinstance(value, float) and math.isinf(value) else value for key, value in row.items()
            }
            self.stream.write(json.dumps(plain, ensure_ascii=False, allow_nan=False).encode() + b"\n")


class _NpzWriter:
    """Keeps all rows until the end: npz cannot grow."""

    def __init__(self, draft: Path, schema: Any, metadata: Mapping[str, Any]) -> None:
        self.draft = draft
        self.schema = schema
        self.metadata = metadata
        self.tables: list[Any] = []

    def write(self, table: Any) -> None:
        self.tables.append(table.cast(self.schema))

    def close(self) -> None:
        if not self.tables:
            return
        table = arrow().concat_tables(self.tables).combine_chunks()
        arrays = {name: _plain(table.column(name)) for name in table.column_names if name != "labels"}
        arrays["about"] = np.array(json.dumps(self.metadata))
        if "labels" in table.column_names:
            arrays["labels"] = _plain(table.column("labels").combine_chunks().flatten())
            arrays["offsets"] = np.concatenate([[0], np.cumsum(arrays["size"], dtype=np.int64)])
        with open(self.draft, "wb") as stream:
            np.savez_compressed(stream, **arrays)


def _plain(column: Any) -> Any:
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    return values.astype(np.str_) if values.dtype == object else values
