"""Files of rows as Arrow tables: Parquet and CSV, single files (also gzipped) and folders, by `pyarrow.dataset`.

A `TableFile` knows its columns, and reads them under napsets' names (see `Reading.rename`).
CSV has no types: columns of ids and names are read as text, all others as numbers, and only an empty cell is
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
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napsets.errors import FileFormatError, arrow
from napsets.files import paths
from napsets.files.reading import PLAIN, Format, Reading, format_of, parts_of

if TYPE_CHECKING:
    import pyarrow as pa

#: The key in the metadata of Parquet under which napsets keeps its settings, as JSON.
METADATA_KEY = b"napsets"

#: The file in a folder of parts that holds what a single file has in its metadata; readers of Parquet pass over it.
SIDECAR = "_napsets.json"

#: The columns of a CSV without a header; more columns are numbered from 0.
_NAMELESS = {"edges": ("source", "target", "weight"), "labels": ("node", "label"), "groups": ("node", "group")}

#: Where pyarrow found a cell of CSV that is no number; the header is row 1, and blank lines do not count.
_NO_NUMBER = re.compile(r"column #(\d+): Row #(\d+): CSV conversion error to double")

#: The name that pandas gives an index without a name in Parquet; it is read by nobody else as a column.
_PANDAS_INDEX = r"__index_level_\d+__"


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

    def fault(
        self, must: str, got: str, advice: str = "", *, row: int | None = None, node: object = None
    ) -> FileFormatError:
        """Return the error of a file that must be something and is not, with the row and the node where that is so."""
        place = str(self.path) if row is None else self.at(row, node)
        return FileFormatError(f"`{self.name}` must {must}; {place} {got}{'. ' * bool(advice)}{advice}")

    def require(self, *columns: str) -> None:
        """Raise if the file lacks a column."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            theirs = ", ".join(self.columns[:12]) + (", …" if len(self.columns) > 12 else "")
            raise self.fault(
                f"have the column{'s' * (len(columns) > 1)} {', '.join(columns)}", f"lacks {', '.join(missing)}",
                f"It has: {theirs}. {self._remedy(columns, missing)}",
            )  # fmt: skip

    def _remedy(self, columns: Sequence[str], missing: Sequence[str]) -> str:
        """Return a hint for a file that lacks columns."""
        marks = [mark for mark in (";", "\t", "|", ",", " ") if any(mark in column for column in self.columns)]
        if self.format == "csv" and len(self.columns) == 1 and marks:
            mark = "tab" if marks[0] == "\t" else shlex.quote(marks[0])
            return f"Its columns seem to be separated by {marks[0]!r}: add --separator {mark}."
        simple = {re.sub(r"[\W_]", "", column.lower()): column for column in self.columns}
        for column in missing:
            near = difflib.get_close_matches(column, list(simple), n=1, cutoff=0.8)
            if near:
                old = simple[near[0]]
                return f"If {old!r} is meant, rename it, or add --rename {shlex.quote(f'{old}={column}')}."
        data = self.format == "csv" and self.reading.header and len(missing) == len(columns) <= len(self.columns)
        header = "If its first line is a row already, add --no-header; " if data else ""
        remedy = f"{header}if a column has another name, add --rename OLD={missing[0]}."
        return remedy[0].upper() + remedy[1:]

    def at(self, row: int, node: object = None, *, path: bool = True) -> str:
        """Name a row for a message, as people find it in the file, and the node that it is of."""
        place = f"line {_line_of(self, row)}" if self.format == "csv" else f"row {row}"
        return place + f" of {self.path}" * path + ("" if node is None else f" (node {node!r})")

    @property
    def has_header(self) -> bool:
        """Whether columns of CSV are named in the file; files of predictions always have names."""
        return self.reading.header or self.name == "sets"

    def read(self, columns: Sequence[str], text: Sequence[str] = ("node",)) -> pa.Table:
        """Return columns of all rows, in the order of the file; in CSV, those of `text` are text, others numbers."""
        if self.rows is not None:
            return self.rows.select(list(columns))
        theirs = {self.originals.get(column, column): column for column in columns}
        with paths.reading(self.path, self.name, folder=True):
            if self.format == "csv":
                pa = arrow()
                schema = pa.schema([(old, pa.string() if new in text else pa.float64()) for old, new in theirs.items()])
                table = pa.concat_tables([_read_part(self, part, schema) for part in _parts(self.path)])
            else:
                # Columns are decoded from a small buffer, so that compressed pages are not held with them.
                options = arrow().dataset.ParquetFragmentScanOptions(
                    use_buffered_stream=True, buffer_size=1 << 20, pre_buffer=False
                )
                table = _parquet(self.path).to_table(list(theirs), fragment_scan_options=options)
                table.validate(full=True)  # text that is no UTF-8 would otherwise fail somewhere else
        return table.rename_columns(list(columns))

    def about(self) -> dict[str, Any]:
        """Return the settings that napsets wrote with the rows, if any; ``class_names`` are distinct strings."""
        try:
            about = dict(json.loads(b"{}" if self.settings is None else self.settings))
            names = about.get("class_names")
            listed = isinstance(names, list) and {*map(type, names)} == {str}
            good = names is None or (listed and len({*names}) == len(names))
        except (ValueError, TypeError, RecursionError):
            good = False
        if not good:
            raise self.fault("have metadata as napsets writes them", "has others", "Write the file again.")
        return about


def open_table(name: str, path: str | os.PathLike[str], reading: Reading = PLAIN) -> TableFile:
    """Open a file, or a folder of files, far enough to know its columns; an open table is returned unchanged."""
    if isinstance(path, TableFile):
        return path
    source, kind = Path(path), format_of(name, path)
    table = TableFile(name, source, kind, (), reading=reading)
    with paths.reading(source, name, folder=True):
        settings = None
        if kind == "csv":
            theirs = _csv_columns(table)
        else:
            schema = _parquet(source).schema
            sidecar = source / SIDECAR  # what a folder of parts says of them all, where Spark's engine has written it
            settings = sidecar.read_bytes() if sidecar.is_file() else (schema.metadata or {}).get(METADATA_KEY)
            theirs = [column for column in schema.names if not re.fullmatch(_PANDAS_INDEX, column)]
    names = theirs
    if kind == "csv" and not table.has_header:
        known = _NAMELESS.get(name, ("node",))
        names = [*known[: len(theirs)], *map(str, range(len(theirs) - len(known)))]
    ours = reading.renamed(name, names)
    repeated = [column for column, count in Counter(ours).items() if count > 1]
    if repeated:
        raise table.fault("not repeat a column", f"has {repeated[0]!r} more than once")
    originals = {new: old for new, old in zip(ours, theirs, strict=True) if new != old}
    return replace(table, columns=tuple(ours), settings=settings, originals=originals)


def _parts(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    parts = parts_of(path)
    if not parts:
        raise FileFormatError(f"{path} must hold Parquet or CSV files; there are none in this folder")
    return parts


def _parquet(path: Path) -> pa.dataset.Dataset:
    """Return the parts of a file or folder as one dataset, with the columns and types of the first part."""
    return arrow().dataset.dataset([str(part) for part in _parts(path)], format="parquet")


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv(table: TableFile, part: Path, schema: pa.Schema) -> pa.dataset.Dataset:
    """Return a file of CSV as a dataset."""
    pa = arrow()
    form = pa.dataset.CsvFileFormat(
        # Otherwise a quoted line break fails where it happens to lie on the border of two blocks.
        pa.csv.ParseOptions(newlines_in_values=True, delimiter=table.reading.separator_of(part)),
        convert_options=pa.csv.ConvertOptions(
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
        read_options=pa.csv.ReadOptions(autogenerate_column_names=not table.has_header, use_threads=False),
    )
    return pa.dataset.dataset(str(part), schema=schema, format=form)


def _csv_columns(table: TableFile) -> list[str]:
    """Return the names that the first line of a CSV holds; without a header, those that pyarrow gives."""
    first = _parts(table.path)[0]
    cells = next((cells for _, cells in _records(table, first)), None)
    if cells is None:
        raise FileFormatError(f"`{table.name}` must have a header and rows; {first} is empty")
    if any(mark in cell for cell in cells for mark in ("\0", "\ufffd")):
        raise _not_utf8(table, first)
    return cells if table.has_header else [f"f{i}" for i in range(len(cells))]


def _read_part(table: TableFile, part: Path, schema: pa.Schema) -> pa.Table:
    try:
        return _csv(table, part, schema).to_table(use_threads=False)
    except arrow().ArrowInvalid as error:
        raise _csv_fault(table, part, error) from error


def _records(table: TableFile, part: Path) -> Iterator[tuple[int, list[str]]]:
    """Return the line number and the cells of each record of a CSV file that is not blank."""
    csv.field_size_limit(1 << 30)
    with io.TextIOWrapper(arrow().input_stream(part), "utf-8-sig", errors="replace", newline="") as stream:
        reader, line = csv.reader(stream, delimiter=table.reading.separator_of(part)), 1
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1


def _line_of(table: TableFile, row: int) -> int:
    """Return the line on which a row of a CSV starts, counted from 1; the last line where it cannot be found."""
    line = 0
    for part in _parts(table.path):
        for line, _ in islice(_records(table, part), int(table.has_header), None):
            if row == 0:
                return line
            row -= 1
    return line


def _csv_fault(table: TableFile, part: Path, error: Exception) -> FileFormatError | Exception:
    """Return the error that says what is wrong with a CSV that pyarrow does not read, and what to do about it."""
    text = str(error)
    if "UTF8" in text:
        return _not_utf8(table, part)
    short = re.search(r"Expected (\d+) columns, got (\d+): (.*)", text, re.DOTALL)
    if short is not None:
        commas = table.reading.separator_of(part) != "," and "," in short[3]
        remedy = "Write decimal points instead of decimal commas" if commas else "Quote cells that hold a separator"
        return FileFormatError(
            f"`{table.name}` must have as many cells in each row as its header; {part} has a row with {short[2]} cells "
            f"where {short[1]} are expected: {short[3]!r}. {remedy}, or check --separator."
        )
    found = _NO_NUMBER.search(text)
    if found is None:
        return error
    place, record = int(found[1]), int(found[2])
    line, cells = next(islice(_records(table, part), record - 1, None))
    column, node = table.columns[place], cells[table.columns.index("node")] if "node" in table.columns else None
    advice = number_advice(cells[place]) or "Write a number there, or drop that row."
    if table.name == "probabilities":
        advice += f" If the column is not a class, add --ignore-columns {column}."
    return FileFormatError(
        f"`{table.name}` must hold numbers in the column {column}; line {line} of {part}"
        f"{'' if node is None else f' (node {node!r})'} has {cells[place]!r}. {advice}"
    )


def _not_utf8(table: TableFile, part: Path) -> FileFormatError:
    """Return the error of a text in another encoding, which says how to save it."""
    return FileFormatError(
        f"`{table.name}` must be UTF-8 text; {part} is not: it seems to be UTF-16, Latin-1 or another encoding. "
        f'Save it as UTF-8: a spreadsheet calls that CSV UTF-8, in Python it is encoding="utf-8".'
    )


def number_advice(text: str) -> str:
    """Return a hint for text that is almost a number; empty for any other text.

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
