"""Files of rows as batches of Arrow columns, whatever their format.

A `TableFile` knows its column names and gives batches of the requested columns. Parquet (a file, or a folder of parts),
CSV (plain or gzip), JSON Lines and npz look alike from here on, except for one thing: CSV has no types, so the columns
that hold ids and names are read from it as text. Columns have the names of napsets, whatever the file calls them
(`Reading.columns`). What napsets keeps in addition to the rows is read here too.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from napsets.checks.values import shown
from napsets.errors import FileFormatError, arrow
from napsets.files import places
from napsets.files.npz_format import METADATA_KEY, is_nested_beyond, npz_batches, npz_header
from napsets.files.reading import COLUMNS, PLAIN, Format, Reading, key_of
from napsets.files.text_formats import csv_batches, csv_header, jsonl_batches, jsonl_header

#: Rows that are decoded at a time.
BATCH_ROWS = 1 << 16

#: Columns that hold ids or names: in a file without types they are text, so that ``007`` stays ``007``.
_TEXT_COLUMNS = {
    "edges": ("source", "target"),
    "labels": ("node", "label", "split"),
    "groups": ("node", "group"),
    "sets": ("node", "labels"),
}

#: Deeper JSON is not a description of a file; what walks through it later need not expect it.
_DEEPEST = 20

#: The file in a folder of parts that holds what a single file has in its metadata; readers of Parquet pass over it.
SIDECAR = "_napsets.json"


@dataclass(frozen=True)
class TableFile:
    """A file of rows; `name` is the argument that it came from, with which messages start."""

    name: str
    path: Path
    format: Format
    columns: tuple[str, ...]  # by napsets' names
    metadata: dict[bytes, bytes]  # what the file has in addition to its rows
    reading: Reading = PLAIN
    #: What the file calls a column, where that is not napsets' name.
    column_names: dict[str, str] = field(default_factory=dict)

    @property
    def typed(self) -> bool:
        """Whether the file says which type a column has."""
        return self.format != "csv"

    def require(self, *columns: str) -> None:
        """Refuse a file that lacks a column."""
        missing = [self.column_names.get(column, column) for column in columns if column not in self.columns]
        if missing:
            wanted = ", ".join(self.column_names.get(column, column) for column in columns)
            theirs = [self.column_names.get(column, column) for column in self.columns]
            shown = ", ".join(theirs[:12]) + (", …" if len(theirs) > 12 else "")
            raise FileFormatError(
                f"`{self.name}` must have the column{'s' * (len(columns) > 1)} {wanted}; {self.path} lacks "
                f"{', '.join(missing)}. It has: {shown}. {self._way_out(missing)}"
            )

    def _way_out(self, missing: Sequence[str]) -> str:
        ours = {theirs: column for column, theirs in self.column_names.items() if theirs in missing}
        if ours:
            theirs, column = next(iter(ours.items()))
            return (
                f"--columns says that {column} is called {theirs}; for this file alone, write "
                f"--columns {self.name}.{column}=…"
            )
        spaced = [column for column in self.columns if column != column.strip() and column.strip() in missing]
        if spaced:
            return f"Remove the spaces around the column name {spaced[0]!r}."
        marks = [mark for mark in (";", "\t", "|", ",", " ") if any(mark in column for column in self.columns)]
        if self.format == "csv" and len(self.columns) == 1 and marks:
            return f"Its columns seem to be separated by {marks[0]!r}: say so with --separator {marks[0]!r}."
        lower = {column.lower(): column for column in self.columns}
        for column in missing:
            near = difflib.get_close_matches(column, list(lower), n=1, cutoff=0.8)
            if near:
                what = "array" if self.format == "npz" else "column"
                return f"Rename its {what} {lower[near[0]]} to {column}.{self._renaming(column, lower[near[0]])}"
        way = f"Rename its columns, or pass another file.{self._renaming(missing[0], '…')}"
        if self.name == "edges" and set(missing) == {"source", "target"} and len(self.columns) in (2, 3):
            first = ("source", "target", "weight")[: len(self.columns)]
            way += f". If its first line is an edge already, put the line {','.join(first)} before it."
        return way

    def _renaming(self, column: str, theirs: str) -> str:
        """Say how a column that has another name is read as it is, where one may have another name."""
        if self.name not in COLUMNS.get(column, ()):
            return ""
        return f" Or say what it is called: --columns {key_of(self.name, column)}={theirs}"

    def batches(self, columns: Sequence[str], *, rows: int = BATCH_ROWS, text: Sequence[str] = ()) -> Iterator[Any]:
        """Give record batches of the columns, in the order of the file; in CSV, `text` and ids and names are text."""
        theirs = [self.column_names.get(column, column) for column in columns]
        with places.reading(self.path, self.name, folder=True):
            for batch in self._batches(theirs, rows, (*text, *_TEXT_COLUMNS.get(self.name, ("node",)))):
                yield batch.rename_columns(list(columns)) if self.column_names else batch

    def _batches(self, columns: list[str], rows: int, text: Sequence[str]) -> Iterator[Any]:
        if self.format == "parquet":
            return _parquet_batches(self.name, self.path, columns, rows)
        if self.format == "csv":
            texts = [self.column_names.get(column, column) for column in text]
            return csv_batches(self.name, self.path, columns, texts, rows, self.reading.separator_of(self.path))
        if self.format == "jsonl":
            return jsonl_batches(self.name, self.path, columns, rows)
        return npz_batches(self.name, self.path, columns, rows)

    def about(self) -> dict[str, Any]:
        """Return what napsets wrote in addition to the rows, empty where it wrote nothing.

        Its ``class_names``, where there are any, are distinct strings.
        """
        try:
            about = json.loads(self.metadata.get(METADATA_KEY, b"{}"))
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise self._bad_about(f"holds no JSON: {reason}") from error
        fault = about_fault(about)
        if fault is not None:
            raise self._bad_about(fault)
        return dict(about)

    def _bad_about(self, what: str) -> FileFormatError:
        return FileFormatError(
            f"`{self.name}` must be described as napsets describes it; the metadata of {self.path} {what}. "
            f"Write the file again."
        )

    def num_rows(self) -> int | None:
        """Return the number of rows, where that can be known without reading them."""
        if self.format != "parquet":
            return None
        with places.reading(self.path, self.name, folder=True):
            return sum(int(arrow().parquet.read_metadata(part).num_rows) for part in _parts(self.path))


def open_table(
    name: str, path: str | os.PathLike[str], reading: Reading = PLAIN, *, kind: Format | None = None
) -> TableFile:
    """Open a file, or a folder of Parquet files, far enough to know its columns.

    `name` is the argument that it came from; `kind` its format, where its name need not say it.
    """
    source, kind = Path(path), kind or reading.format_of(name, path)
    with places.reading(source, name, folder=kind == "parquet"):
        metadata: dict[bytes, bytes] = {}
        if kind == "csv":
            columns = csv_header(name, source, reading.separator_of(source))
        elif kind == "jsonl":
            columns = jsonl_header(name, source)
        else:
            columns, metadata = _parquet_header(source) if kind == "parquet" else npz_header(name, source)
    repeated = sorted({column for column in columns if columns.count(column) > 1})
    if repeated:
        raise FileFormatError(f"`{name}` must not repeat a column; {source} has {repeated[0]!r} more than once")
    column_names = {ours: reading.name_of(name, ours) for ours in COLUMNS}
    # What an npz file only implies, such as the ids of rows without ids, has no other name.
    implied = set(columns) if kind == "npz" else set()
    column_names = {
        ours: theirs
        for ours, theirs in column_names.items()
        if ours != theirs and not (ours in implied and theirs not in columns)
    }
    return TableFile(name, source, kind, _renamed(columns, column_names), metadata, reading, column_names)


def _renamed(columns: Sequence[str], column_names: dict[str, str]) -> tuple[str, ...]:
    """Return columns by napsets' names; one that has such a name by chance, where another stands for it, is hidden."""
    ours = {theirs: column for column, theirs in column_names.items()}
    return tuple(ours.get(column, column) for column in columns if column in ours or column not in column_names)


def about_fault(about: Any) -> str | None:
    """Return why something cannot be what napsets writes in addition to rows, None where it can."""
    if not isinstance(about, dict):
        return f"holds no JSON object; it is {shown(about)}"
    if is_nested_beyond(about, _DEEPEST):
        return f"is nested deeper than {_DEEPEST} levels"
    names = about.get("class_names")
    listed = isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names)
    if names is not None and not listed:
        return f"has class_names that are not a list of strings: {shown(names)}"
    if names is not None and len(set(names)) < len(names):
        return f"has class_names that repeat a name: {shown(names)}"
    return None


# -- Parquet -------------------------------------------------------------------------------------------------------


def _parts(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    parts = sorted(part for part in path.rglob("*.parquet") if not part.name.startswith(("_", ".")))
    if not parts:
        raise FileFormatError(f"{path} must hold Parquet files; there are none in this folder")
    return parts


def _parquet_header(path: Path) -> tuple[list[str], dict[bytes, bytes]]:
    schema = arrow().parquet.read_schema(_parts(path)[0])
    return list(schema.names), dict(schema.metadata or {}) | _sidecar(path)


def _sidecar(path: Path) -> dict[bytes, bytes]:
    """Return what a folder of parts says of them all, where Spark's engine has written it."""
    file = path / SIDECAR
    return {METADATA_KEY: file.read_bytes()} if file.is_file() else {}


def _parquet_batches(name: str, path: Path, columns: list[str], rows: int) -> Iterator[Any]:
    for part in _parts(path):
        # Without prefetching and with a small buffer, what is in memory is a batch, not a row group.
        with arrow().parquet.ParquetFile(part, pre_buffer=False, buffer_size=1 << 20) as file:
            missing = [column for column in columns if column not in file.schema_arrow.names]
            if missing:
                raise FileFormatError(
                    f"`{name}` must have the same columns in all its parts; {part} lacks {', '.join(missing)}"
                )
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                batch.validate(full=True)  # text that is no UTF-8 would otherwise fail somewhere else
                yield batch
