"""CSV as batches of Arrow columns: text where a column holds ids or names, numbers everywhere else.

Only an empty cell is missing. ``NA``, ``null`` and ``nan`` are what they say: classes, ids and nodes are called so.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from napsets.errors import FileFormatError
from napsets.files._arrow import arrow

__all__ = ["csv_batches", "csv_header", "not_utf8"]

#: What Arrow takes for a number.
_NUMBER = r"(?i)^\s*-?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)\s*$"

#: Bytes that are looked at to tell UTF-16 by.
_HEAD = 64


def csv_header(name: str, path: Path, separator: str = ",") -> list[str]:
    """Return the names of the columns; `name` is the argument that the file came from."""
    with arrow().input_stream(path) as stream:
        head = stream.read(_HEAD)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
        raise not_utf8(name, path, "it seems to be UTF-16")
    with arrow().csv.open_csv(path, parse_options=_parse_options(separator)) as reader:
        try:
            return list(reader.schema.names)
        except UnicodeDecodeError as error:
            raise not_utf8(name, path, error) from error


def not_utf8(name: str, path: Path, reason: object) -> FileFormatError:
    """Return the error of a text in another encoding, which says how to save it."""
    return FileFormatError(
        f"`{name}` must be UTF-8 text; {path} is not: {reason}. Save it as UTF-8: a spreadsheet calls that CSV UTF-8, "
        f'in Python it is encoding="utf-8".'
    )


def csv_batches(
    name: str, path: Path, columns: Sequence[str], text: Sequence[str], rows: int, separator: str = ","
) -> Iterator[Any]:
    """Give record batches of the columns, of at most so many rows.

    Parameters
    ----------
    name, path
        The argument and the file, for messages.
    columns : sequence of str
        What to read.
    text : sequence of str
        Which of them hold text; the others hold numbers.
    rows : int
        Rows of a batch.
    separator : str
        What separates the cells.
    """
    pa = arrow()
    types = {column: pa.string() if column in text else pa.float64() for column in columns}
    try:
        for batch in _read(path, types, separator):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
    except pa.ArrowInvalid as error:
        if "conversion error" in str(error):
            if "invalid UTF8" in str(error):
                raise not_utf8(name, path, "it seems to be Latin-1 or another encoding of old") from error
            _blame(name, path, [column for column in columns if column not in text], separator)
        raise


def _parse_options(separator: str) -> Any:
    # Otherwise a quoted line break fails where it happens to lie on the border of two blocks.
    return arrow().csv.ParseOptions(newlines_in_values=True, delimiter=separator)


def _read(path: Path, types: dict[str, Any], separator: str) -> Iterator[Any]:
    pa = arrow()
    options = pa.csv.ConvertOptions(
        include_columns=list(types),
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with pa.csv.open_csv(path, parse_options=_parse_options(separator), convert_options=options) as reader:
        yield from reader


def _blame(name: str, path: Path, columns: list[str], separator: str) -> None:
    """Name the first column with a cell that is no number, and say whether it is one cell or the whole column."""
    pa = arrow()
    seen = 0
    for batch in _read(path, dict.fromkeys(columns, pa.string()), separator):
        for column in columns:
            cells = batch.column(column)
            fine = pa.compute.match_substring_regex(cells, _NUMBER).fill_null(True)
            odd = pa.compute.indices_nonzero(pa.compute.invert(fine))
            if not len(odd):
                continue
            row = odd[0].as_py()
            what = f"has the invalid value {cells[row].as_py()!r} in row {seen + row}"
            advice = "Write a number there, or drop that row."
            if 2 * len(odd) > len(cells):
                what, advice = f"holds text there; row {seen + row} {what.split(' in row')[0]}", "Drop that column."
            raise FileFormatError(f"`{name}` must hold numbers in the column {column}; {path} {what}. {advice}")
        seen += batch.num_rows
