"""Files of rows as Arrow tables: Parquet and CSV, single files (also gzipped) and folders of parts.

A `TableFile` knows its columns, and reads them under napsets' names (see `Reading.rename`).
CSV has no types: its columns of ids and names are read as text, all others as numbers, and only an empty cell is
missing (``NA``, ``null`` and ``nan`` are what they say). Messages count rows as people see them: the lines of a CSV,
the rows of Parquet from 0.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napsets.checks.values import shown
from napsets.errors import FileFormatError, arrow
from napsets.files import paths
from napsets.files.archives import is_nested_beyond
from napsets.files.reading import PLAIN, Format, Reading, format_of, parts_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import InvalidRow

#: The key in the metadata of Parquet under which napsets keeps its settings, as JSON.
METADATA_KEY = b"napsets"

#: The file in a folder of parts that holds what a single file has in its metadata; readers of Parquet pass over it.
SIDECAR = "_napsets.json"

#: Columns that hold ids or names: in a file without types they are text, so that ``007`` stays ``007``.
_TEXT_COLUMNS = {
    "edges": ("source", "target"),
    "labels": ("node", "label"),
    "groups": ("node", "group"),
    "sets": ("node", "labels"),
}

#: The columns of a CSV without a header; more columns are numbered from 0.
_NAMELESS = {"edges": ("source", "target", "weight"), "labels": ("node", "label"), "groups": ("node", "group")}

#: Deeper JSON is not a description of a file.
_DEEPEST = 20

#: What Arrow takes for a number.
_NUMBER = r"(?i)^\s*-?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)\s*$"


@dataclass(frozen=True)
class TableFile:
    """A file of rows; `name` is the argument that it came from, with which messages start."""

    name: str
    path: Path
    format: Format
    columns: tuple[str, ...]  # by napsets' names
    settings: bytes | None = None  # what napsets wrote in addition to the rows, as JSON
    reading: Reading = PLAIN
    originals: dict[str, str] = field(default_factory=dict)  # the file's own names, where they are others
    rows: pa.Table | None = None  # the rows themselves, where there is no file

    @classmethod
    def in_memory(cls, name: str, rows: pa.Table, reading: Reading = PLAIN) -> TableFile:
        """Return an Arrow table as one that readers of files take in place of a path."""
        return cls(name, Path("the DataFrame"), "parquet", tuple(rows.column_names), reading=reading, rows=rows)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def typed(self) -> bool:
        """Whether the file says which type a column has."""
        return self.format != "csv"

    def require(self, *columns: str) -> None:
        """Raise if the file lacks a column."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            theirs = ", ".join(self.columns[:12]) + (", …" if len(self.columns) > 12 else "")
            raise FileFormatError(
                f"`{self.name}` must have the column{'s' * (len(columns) > 1)} {', '.join(columns)}; {self.path} lacks "
                f"{', '.join(missing)}. It has: {theirs}. {self._remedy(columns, missing)}"
            )

    def _remedy(self, columns: Sequence[str], missing: Sequence[str]) -> str:
        """Return what may help where columns are missing."""
        marks = [mark for mark in (";", "\t", "|", ",", " ") if any(mark in column for column in self.columns)]
        if self.format == "csv" and len(self.columns) == 1 and marks:
            if self.reading.separator is not None:
                return f"Its columns seem to be separated by {marks[0]!r}: --separator holds for all CSV files."
            return f"Its columns seem to be separated by {marks[0]!r}: add --separator {shown_mark(marks[0])}."
        simple = {re.sub(r"[\W_]", "", column.lower()): column for column in self.columns}
        for column in missing:
            near = difflib.get_close_matches(column, list(simple), n=1, cutoff=0.8)
            if near:
                old = simple[near[0]]
                return f"If {old!r} is meant, rename it, or add --rename {_quoted(f'{old}={column}')}."
        data = self.format == "csv" and self.reading.header and len(missing) == len(columns) <= len(self.columns)
        header = "If its first line is a row already, add --no-header; " if data else ""
        remedy = f"{header}if a column has another name, add --rename OLD={missing[0]}."
        return remedy[0].upper() + remedy[1:]

    def at(self, row: int, node: object = None, *, path: bool = True) -> str:
        """Name a row for a message, as people find it in the file, and the node that it is of."""
        place = f"line {_line_of(self, row)}" if self.format == "csv" else f"row {row}"
        return place + f" of {self.path}" * path + ("" if node is None else f" (node {node!r})")

    def read(self, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows, in the order of the file; in CSV, `text` and ids and names are text."""
        if self.rows is not None:
            return self.rows.select(list(columns))
        theirs = {self.originals.get(column, column): column for column in columns}
        words = {*text, *_TEXT_COLUMNS.get(self.name, ("node",))}
        with paths.reading(self.path, self.name, folder=True):
            if self.format == "csv":
                table = _read_csv(self, {old: "string" if new in words else "float64" for old, new in theirs.items()})
            else:
                # Columns are decoded from a small buffer, so that compressed pages are not held with them.
                options = arrow().dataset.ParquetFragmentScanOptions(
                    use_buffered_stream=True, buffer_size=1 << 20, pre_buffer=False
                )
                table = _dataset(self.name, self.path).to_table(list(theirs), fragment_scan_options=options)
                table.validate(full=True)  # text that is no UTF-8 would otherwise fail somewhere else
        return table.rename_columns(list(columns))

    def about(self) -> dict[str, Any]:
        """Return what napsets wrote in addition to the rows, if anything; ``class_names`` are distinct strings."""
        try:
            about = json.loads(b"{}" if self.settings is None else self.settings)
            fault = None if isinstance(about, dict) else f"holds no JSON object; it is {shown(about)}"
            if is_nested_beyond(about, _DEEPEST):
                fault = f"is nested deeper than {_DEEPEST} levels"
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            fault = f"holds no JSON: {reason}"
        names = None if fault else about.get("class_names")
        if names is not None:
            listed = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
            if not listed or len(set(names)) < len(names):
                fault = f"has class_names that are not a list of distinct strings: {shown(names)}"
        if fault is not None:
            raise FileFormatError(
                f"`{self.name}` must be described as napsets describes it; the metadata of {self.path} {fault}. "
                f"Write the file again."
            )
        return dict(about)


def shown_mark(mark: str) -> str:
    """Return a separator as one types it."""
    return "tab" if mark == "\t" else f"'{mark}'"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w=.-]+", text) else f"'{text}'"


def open_table(name: str, path: str | os.PathLike[str], reading: Reading = PLAIN) -> TableFile:
    """Open a file, or a folder of files, far enough to know its columns; an open table is returned unchanged."""
    if isinstance(path, TableFile):
        return path
    source, kind = Path(path), format_of(name, path)
    with paths.reading(source, name, folder=True):
        settings = None
        if kind == "csv":
            theirs = _csv_header(name, source, reading)
        else:
            schema = _dataset(name, source).schema
            sidecar = source / SIDECAR  # what a folder of parts says of them all, where Spark's engine has written it
            settings = sidecar.read_bytes() if sidecar.is_file() else (schema.metadata or {}).get(METADATA_KEY)
            theirs = list(schema.names)
    ours = reading.renamed(name, theirs)
    repeated = [column for column, count in Counter(ours).items() if count > 1]
    if repeated:
        raise FileFormatError(f"`{name}` must not repeat a column; {source} has {repeated[0]!r} more than once")
    originals = {new: old for new, old in zip(ours, theirs, strict=True) if new != old}
    return TableFile(name, source, kind, tuple(ours), settings, reading, originals)


def _parts(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    parts = parts_of(path)
    if not parts:
        raise FileFormatError(f"{path} must hold Parquet or CSV files; there are none in this folder")
    return parts


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _dataset(name: str, path: Path) -> pa.dataset.Dataset:
    """Return the parts of a file or folder as one dataset, whose columns all parts have, with types that fit."""
    pa = arrow()
    parts = _parts(path)
    whole = pa.dataset.dataset([str(part) for part in parts], format="parquet")
    if len(parts) == 1:
        return whole
    schemas = [fragment.physical_schema for fragment in whole.get_fragments()]
    for part, schema in zip(parts, schemas, strict=True):
        missing = [column for column in schemas[0].names if column not in set(schema.names)]
        if missing:
            raise FileFormatError(
                f"`{name}` must have the same columns in all its parts; {part} lacks {', '.join(missing)}"
            )
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive").with_metadata(schemas[0].metadata)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FileFormatError(f"`{name}` must have columns of one type in all parts of {path}: {error}") from error
    return whole.replace_schema(schema)


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Give the line number and the cells of each record of a CSV file that is not blank."""
    csv.field_size_limit(1 << 30)
    with io.TextIOWrapper(arrow().input_stream(path), encoding="utf-8-sig", newline="") as stream:
        reader, line = csv.reader(stream, delimiter=separator), 1
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1


def _csv_header(name: str, path: Path, reading: Reading) -> list[str]:
    first = _parts(path)[0]
    with arrow().input_stream(first) as stream:
        if b"\0" in stream.read(64):
            raise _not_utf8(name, first, "it seems to be UTF-16")
    try:
        cells = next(_records(first, reading.separator_of(first)), (0, None))[1]
    except UnicodeDecodeError as error:
        raise _not_utf8(name, first, error) from error
    if cells is None:
        raise FileFormatError(f"`{name}` must have a header and rows; {first} is empty")
    if reading.header or name == "sets":
        return cells
    known = _NAMELESS.get(name, ("node",))
    return [*known[: len(cells)], *map(str, range(len(cells) - len(known)))]


def _line_of(table: TableFile, row: int) -> int:
    """Return the line on which a row of a CSV starts, counted from 1; the last line where it cannot be found."""
    header, line = int(table.reading.header or table.name == "sets"), 0
    for part in _parts(table.path):
        records = islice(_records(part, table.reading.separator_of(part)), header, None)
        for line, _ in records:
            if row == 0:
                return line
            row -= 1
    return line


def _not_utf8(name: str, path: Path, reason: object) -> FileFormatError:
    """Return the error of a text in another encoding, which says how to save it."""
    return FileFormatError(
        f"`{name}` must be UTF-8 text; {path} is not: {reason}. Save it as UTF-8: a spreadsheet calls that CSV UTF-8, "
        f'in Python it is encoding="utf-8".'
    )


def _read_csv(table: TableFile, types: Mapping[str, str]) -> pa.Table:
    pa = arrow()
    parts, short = [], list[str]()

    def refuse(row: InvalidRow) -> str:
        short.append(f"a row with {row.actual_columns} cells where {row.expected_columns} are expected: {row.text!r}")
        return "error"

    names = None
    if not (table.reading.header or table.name == "sets"):
        names = [table.originals.get(column, column) for column in table.columns]
    for part in _parts(table.path):
        separator = table.reading.separator_of(part)
        # Otherwise a quoted line break fails where it happens to lie on the border of two blocks.
        parse = pa.csv.ParseOptions(newlines_in_values=True, delimiter=separator, invalid_row_handler=refuse)
        convert = pa.csv.ConvertOptions(
            include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )  # fmt: skip
        try:
            parts.append(
                pa.csv.read_csv(part, pa.csv.ReadOptions(column_names=names, use_threads=False), parse, convert)
            )
        except pa.ArrowInvalid as error:
            if "invalid UTF8" in str(error):
                raise _not_utf8(table.name, part, "it seems to be Latin-1 or another older encoding") from error
            if "conversion error" in str(error):
                _refuse_text(table, [column for column in types if types[column] != "string"])
            if not short:
                raise
            commas = separator != "," and "," in short[0]
            remedy = "Write decimal points instead of decimal commas" if commas else "Quote cells that hold a separator"
            raise FileFormatError(
                f"`{table.name}` must have as many cells in each row as its header; {part} has {short[0]}. {remedy}, "
                f"or check --separator."
            ) from error
    return pa.concat_tables(parts)


def _refuse_text(table: TableFile, columns: Sequence[str]) -> None:
    """Raise for the first cell that is not a number, with its row and node, and for whole columns of text."""
    compute = arrow().compute
    node = table.originals.get("node", "node") if "node" in table.columns else None
    cells = _read_csv(table, dict.fromkeys([*columns, *([node] if node else [])], "string"))
    for column in columns:
        odd = compute.indices_nonzero(
            compute.invert(compute.match_substring_regex(cells[column], _NUMBER).fill_null(True))
        )
        if not len(odd):
            continue
        row = odd[0].as_py()
        value = cells[column][row].as_py()
        what = f"{table.at(row, None if node is None else cells[node][row].as_py())} has {value!r}"
        advice = "Write a number there, or drop that row."
        if 2 * len(odd) > len(cells):
            what, advice = f"{what}, and most other rows have text too", "Drop that column."
            if table.name == "probabilities":
                advice = f"If it is not a class, add --ignore-columns {column}."
        raise FileFormatError(
            f"`{table.name}` must hold numbers in the column {column}; {what}. {number_advice(value) or advice}"
        )


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
