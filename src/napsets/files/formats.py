"""Files of rows as batches of Arrow columns, whatever their format.

A `TableFile` knows its column names and gives batches of the requested columns. Parquet (a file, or a folder of parts),
CSV (plain or gzip), JSON Lines and npz look alike from here on, except for one thing: CSV has no types, so the columns
that hold ids and names are read from it as text, all others as numbers, and only an empty cell is missing (``NA``,
``null`` and ``nan`` are what they say). JSON Lines has one object per line. The keys of the first are the columns; what
a later object lacks, or has as null, is an empty cell, and text that looks like a number or a date stays text. Columns
have the names of napsets, whatever the file calls them (`Reading.columns`).
"""

from __future__ import annotations

import codecs
import difflib
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from napsets.errors import FileFormatError, arrow
from napsets.files import paths
from napsets.files.npz_format import about_fault, npz_batches, npz_header
from napsets.files.reading import COLUMNS, PLAIN, Format, Reading, key_of

#: Rows that are decoded at a time.
BATCH_ROWS = 1 << 16

#: The key in the metadata of Parquet under which napsets keeps its settings, as JSON.
METADATA_KEY = b"napsets"

#: The file in a folder of parts that holds what a single file has in its metadata; readers of Parquet pass over it.
SIDECAR = "_napsets.json"

#: Columns that hold ids or names: in a file without types they are text, so that ``007`` stays ``007``.
_TEXT_COLUMNS = {
    "edges": ("source", "target"),
    "labels": ("node", "label", "split"),
    "groups": ("node", "group"),
    "sets": ("node", "labels"),
}

#: The columns of a list of edges without a header.
_EDGE_COLUMNS = ("source", "target", "weight")

#: What Arrow takes for a number.
_NUMBER = r"(?i)^\s*-?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)\s*$"

#: Bytes that are read to detect UTF-16.
_HEAD = 64


@dataclass(frozen=True)
class TableFile:
    """A file of rows; `name` is the argument that it came from, with which messages start."""

    name: str
    path: Path
    format: Format
    columns: tuple[str, ...]  # by napsets' names
    settings: bytes | None = None  # what napsets wrote in addition to the rows, as JSON
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
            first = _EDGE_COLUMNS[: len(self.columns)]
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
        with paths.reading(self.path, self.name, folder=True):
            for batch in self._batches(theirs, rows, (*text, *_TEXT_COLUMNS.get(self.name, ("node",)))):
                yield batch.rename_columns(list(columns)) if self.column_names else batch

    def _batches(self, columns: list[str], rows: int, text: Sequence[str]) -> Iterator[Any]:
        if self.format == "parquet":
            return _parquet_batches(self, columns, rows)
        if self.format == "csv":
            return _csv_batches(self, columns, [self.column_names.get(column, column) for column in text], rows)
        if self.format == "jsonl":
            return _jsonl_batches(self, columns, rows)
        return npz_batches(self.name, self.path, columns, rows)

    def about(self) -> dict[str, Any]:
        """Return what napsets wrote in addition to the rows, if anything; ``class_names`` are distinct strings."""
        try:
            about = json.loads("{}" if self.settings is None else self.settings)
            fault = about_fault(about)
        except (ValueError, RecursionError) as error:
            fault = f"holds no JSON: {_json_fault(error)}"
        if fault is not None:
            raise FileFormatError(
                f"`{self.name}` must be described as napsets describes it; the metadata of {self.path} {fault}. "
                f"Write the file again."
            )
        return dict(about)


def open_table(
    name: str, path: str | os.PathLike[str], reading: Reading = PLAIN, *, kind: Format | None = None
) -> TableFile:
    """Open a file, or a folder of Parquet files, far enough to know its columns; `kind` is its format, if known."""
    source, kind = Path(path), kind or reading.format_of(name, path)
    with paths.reading(source, name, folder=kind == "parquet"):
        settings = None
        if kind == "csv":
            columns = _csv_header(name, source, reading.separator_of(source))
        elif kind == "jsonl":
            columns = _jsonl_header(name, source)
        else:
            columns, settings = _parquet_header(source) if kind == "parquet" else npz_header(name, source)
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
    # One that has a name of napsets' by chance, where another column stands for it, is hidden.
    ours = {theirs: column for column, theirs in column_names.items()}
    shown = tuple(ours.get(column, column) for column in columns if column in ours or column not in column_names)
    return TableFile(name, source, kind, shown, settings, reading, column_names)


def _json_fault(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _parts(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    parts = sorted(part for part in path.rglob("*.parquet") if not part.name.startswith(("_", ".")))
    if not parts:
        raise FileFormatError(f"{path} must hold Parquet files; there are none in this folder")
    return parts


def _parquet_header(path: Path) -> tuple[list[str], bytes | None]:
    schema = arrow().parquet.read_schema(_parts(path)[0])
    sidecar = path / SIDECAR  # what a folder of parts says of them all, where Spark's engine has written it
    settings = sidecar.read_bytes() if sidecar.is_file() else (schema.metadata or {}).get(METADATA_KEY)
    return list(schema.names), settings


def _parquet_batches(table: TableFile, columns: list[str], rows: int) -> Iterator[Any]:
    for part in _parts(table.path):
        # Without prefetching and with a small buffer, what is in memory is a batch, not a row group.
        with arrow().parquet.ParquetFile(part, pre_buffer=False, buffer_size=1 << 20) as file:
            missing = [column for column in columns if column not in file.schema_arrow.names]
            if missing:
                raise FileFormatError(
                    f"`{table.name}` must have the same columns in all its parts; {part} lacks {', '.join(missing)}"
                )
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                batch.validate(full=True)  # text that is no UTF-8 would otherwise fail somewhere else
                yield batch


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv_header(name: str, path: Path, separator: str) -> list[str]:
    with arrow().input_stream(path) as stream:
        head = stream.read(_HEAD)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
        raise _not_utf8(name, path, "it seems to be UTF-16")
    try:
        first = _first_line(path, separator)
    except UnicodeDecodeError as error:
        raise _not_utf8(name, path, error) from error
    except arrow().ArrowInvalid as error:
        # Decimal commas give rows more cells than the header has, if semicolons separate the columns.
        line = head.partition(b"\n")[0]
        if separator == "," and b";" in line and b"," not in line:
            raise FileFormatError(
                f"`{name}` must have its columns separated by ','; those of {path} seem to be separated by ';': say so "
                f"with --separator ';', and write numbers with decimal points, not commas."
            ) from error
        raise
    return list(_EDGE_COLUMNS[: len(first)]) if _is_edge(name, first) else first


def _first_line(path: Path, separator: str) -> list[str]:
    with arrow().csv.open_csv(path, parse_options=_parse_options(separator)) as reader:
        return list(reader.schema.names)


def _parse_options(separator: str) -> Any:
    # Otherwise a quoted line break fails where it happens to lie on the border of two blocks.
    return arrow().csv.ParseOptions(newlines_in_values=True, delimiter=separator)


def _is_edge(name: str, first: Sequence[str]) -> bool:
    """Whether the first line of a list of edges is an edge, two integers and maybe a number, and no header."""
    if name != "edges" or len(first) not in (2, 3):
        return False
    whole = all(re.fullmatch(r"\s*-?\d+\s*", cell) for cell in first[:2])
    return whole and all(re.fullmatch(_NUMBER, cell) for cell in first[2:])


def _not_utf8(name: str, path: Path, reason: object) -> FileFormatError:
    """Return the error of a text in another encoding, which says how to save it."""
    return FileFormatError(
        f"`{name}` must be UTF-8 text; {path} is not: {reason}. Save it as UTF-8: a spreadsheet calls that CSV UTF-8, "
        f'in Python it is encoding="utf-8".'
    )


def _csv_batches(table: TableFile, columns: Sequence[str], text: Sequence[str], rows: int) -> Iterator[Any]:
    pa = arrow()
    try:
        for batch in _read_csv(table, {column: "string" if column in text else "float64" for column in columns}):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
    except pa.ArrowInvalid as error:
        if "conversion error" in str(error):
            if "invalid UTF8" in str(error):
                reason = "it seems to be Latin-1 or another older encoding"
                raise _not_utf8(table.name, table.path, reason) from error
            _refuse_text(table, [column for column in columns if column not in text])
        raise


def _read_csv(table: TableFile, types: dict[str, str]) -> Iterator[Any]:
    csv, separator = arrow().csv, table.reading.separator_of(table.path)
    first = _first_line(table.path, separator)
    names = csv.ReadOptions(column_names=list(_EDGE_COLUMNS[: len(first)]) if _is_edge(table.name, first) else None)
    options = csv.ConvertOptions(
        include_columns=list(types),
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with csv.open_csv(table.path, names, _parse_options(separator), options) as reader:
        yield from reader


def _refuse_text(table: TableFile, columns: list[str]) -> None:
    """Name the first column with a cell that is not a number, and say whether it is one cell or the whole column."""
    compute = arrow().compute
    seen = 0
    for batch in _read_csv(table, dict.fromkeys(columns, "string")):
        for column in columns:
            cells = batch.column(column)
            fine = compute.match_substring_regex(cells, _NUMBER).fill_null(True)
            odd = compute.indices_nonzero(compute.invert(fine))
            if not len(odd):
                continue
            row = odd[0].as_py()
            value = f"has the invalid value {cells[row].as_py()!r}"
            what, advice = f"{value} in row {seen + row}", "Write a number there, or drop that row."
            if 2 * len(odd) > len(cells):
                what, advice = f"holds text there; row {seen + row} {value}", "Drop that column."
                if table.name == "probabilities":
                    advice = f"If it is not a class, add --ignore-columns {column}."
            advice = number_advice(str(cells[row].as_py())) or advice
            raise FileFormatError(
                f"`{table.name}` must hold numbers in the column {column}; {table.path} {what}. {advice}"
            )
        seen += batch.num_rows


def number_advice(text: str) -> str:
    """Say how a text that nearly is a number should be written; nothing of any other.

    Examples
    --------
    >>> number_advice("0,25"), number_advice("25 %"), number_advice("cat")
    ('Write decimal points instead of decimal commas: 0.25.', 'Write shares instead of percentages: 0.25.', '')
    """
    plain = text.strip()
    if re.fullmatch(r"-?\d+,\d+(e[-+]?\d+)?", plain):
        return f"Write decimal points instead of decimal commas: {plain.replace(',', '.')}."
    share = re.fullmatch(r"(\d+(?:[.,]\d+)?)\s*%", plain)
    return f"Write shares instead of percentages: {float(share[1].replace(',', '.')) / 100:g}." if share else ""


# -- JSON Lines --------------------------------------------------------------------------------------------------------


def _jsonl_header(name: str, path: Path) -> list[str]:
    for _, row in _objects(name, path):
        return list(row)
    raise FileFormatError(f"`{name}` must have at least one row; {path} has none")


def _jsonl_batches(table: TableFile, columns: Sequence[str], rows: int) -> Iterator[Any]:
    lines = _objects(table.name, table.path)
    while part := list(islice(lines, rows)):
        arrays = [_jsonl_column(table, column, part) for column in columns]
        yield arrow().RecordBatch.from_arrays(arrays, names=list(columns))


def _objects(name: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the number and the object of each line that is not empty."""
    with io.TextIOWrapper(arrow().input_stream(path), encoding="utf-8-sig", newline="\n") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _object(f"`{name}` must hold one JSON object per line; line {number} of {path}", line)
        except UnicodeDecodeError as error:
            raise _not_utf8(name, path, error) from error


def _object(opening: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{opening} is none: {_json_fault(error)}") from error
    if not isinstance(row, dict):
        text = json.dumps(row, ensure_ascii=False)
        raise FileFormatError(
            f"{opening} is {text if len(text) <= 60 else text[:60] + '…'}. A file that is one long JSON array is not "
            f"JSON Lines: write one object per line."
        )
    return row


def _jsonl_column(table: TableFile, column: str, lines: Sequence[tuple[int, dict[str, Any]]]) -> Any:
    pa = arrow()
    values = [row.get(column) for _, row in lines]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError) as error:
        kinds = {type(value).__name__ for value in values if value is not None}
        first = next(number for (number, _), value in zip(lines, values, strict=True) if value is not None)
        fault = f"values of several types ({', '.join(sorted(kinds))})" if len(kinds) > 1 else str(error).split("\n")[0]
        raise FileFormatError(
            f"`{table.name}` must have one type in each column; {column} of {table.path} has, from line {first} on, "
            f"{fault}. Write them alike."
        ) from error
