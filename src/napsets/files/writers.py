"""Writing rows to a file of any format, some at a time; the file appears whole or not at all.

Parquet keeps settings in its metadata, npz in an array. CSV has no lists and no place for settings: a list is a JSON
array in a cell there, a structure a JSON object. JSON Lines has no place for settings either, and no infinity, which is
null there. npz keeps the lists of a column ``labels`` as that array and ``offsets``, and a structure as a matrix.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from napsets.errors import arrow
from napsets.files.places import check_output, replacing
from napsets.files.reading import PLAIN, Reading

#: Rows of a Parquet row group.
ROW_GROUP = 1 << 16


def check_writable(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = (), reading: Reading = PLAIN
) -> None:
    """Refuse a file that cannot or must not be written, before any work is done; see `check_output`."""
    reading.format_of("output", path)
    check_output(path, inputs)


class Writer(Protocol):
    """What takes rows, some at a time."""

    def write(self, table: Any) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish the file."""


@contextmanager
def writing_rows(
    path: str | os.PathLike[str], schema: Any, metadata: Mapping[str, Any], reading: Reading = PLAIN
) -> Iterator[Writer]:
    """Give a writer of rows; the file appears under its name when all went well, and otherwise not at all.

    Its ending chooses the format, or else `reading`. The metadata, what JSON can hold, is in the schema of Parquet too.
    """
    target = Path(path)
    kind = reading.format_of("output", target)
    compress = target.name.lower().endswith(".gz")
    with replacing(target) as draft:
        if kind == "parquet":
            writer: Writer = _ParquetWriter(draft, schema)
        elif kind == "csv":
            writer = _CsvWriter(draft, schema, reading.separator_of(target), compress=compress)
        elif kind == "jsonl":
            writer = _JsonLinesWriter(draft, schema, compress=compress)
        else:
            writer = _NpzWriter(draft, schema, metadata)
        try:
            yield writer
        except BaseException:
            with suppress(OSError, ValueError, arrow().ArrowException):  # it will be thrown away
                writer.close()
            raise
        writer.close()


class _ParquetWriter:
    def __init__(self, draft: Path, schema: Any) -> None:
        self.schema = schema
        self.writer = arrow().parquet.ParquetWriter(draft, schema, compression="zstd")

    def write(self, table: Any) -> None:
        self.writer.write_table(table.cast(self.schema), row_group_size=ROW_GROUP)

    def close(self) -> None:
        self.writer.close()


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
        for place, name in enumerate(table.column_names):
            if pa.types.is_nested(table.schema.field(name).type):
                texts = [json.dumps(cell, ensure_ascii=False) for cell in table.column(name).to_pylist()]
                table = table.set_column(place, name, pa.array(texts))
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
    if arrow().types.is_struct(column.type):
        return np.column_stack([_plain(part) for part in column.combine_chunks().flatten()])
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    return values.astype(np.str_) if values.dtype == object else values
