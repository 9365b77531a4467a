"""CSV and JSON Lines as batches of Arrow columns.

In CSV a column is text where it holds ids or names, numbers everywhere else, and only an empty cell is missing: ``NA``,
``null`` and ``nan`` are what they say, since classes, ids and nodes are called so. JSON Lines has one object per line,
whose keys are the columns. The keys of the first object are the columns of the file; a key that a later object lacks,
or has as null, is an empty cell. Values are what JSON says: text that looks like a number or a date stays text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from napsets.errors import FileFormatError, arrow

#: What Arrow takes for a number.
_NUMBER = r"(?i)^\s*-?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)\s*$"

#: Bytes that are read to detect UTF-16.
_HEAD = 64


def csv_header(name: str, path: Path, separator: str = ",") -> list[str]:
    """Return the names of the columns, as far as the file names them; `name` is the argument that it came from."""
    with arrow().input_stream(path) as stream:
        head = stream.read(_HEAD)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
        raise _not_utf8(name, path, "it seems to be UTF-16")
    try:
        with arrow().csv.open_csv(path, parse_options=_parse_options(separator)) as reader:
            first = list(reader.schema.names)
            return list(_EDGE_COLUMNS[: len(first)]) if _is_headless(name, first) else first
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


#: The columns of a list of edges without a header.
_EDGE_COLUMNS = ("source", "target", "weight")


def _is_headless(name: str, first: Sequence[str]) -> bool:
    """Whether the first line of a list of edges is an edge: two integers, and maybe a number."""
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


def csv_batches(
    name: str, path: Path, columns: Sequence[str], text: Sequence[str], rows: int, separator: str = ","
) -> Iterator[Any]:
    """Give record batches of the columns, of at most this many rows: `text` as text, all others as numbers."""
    pa = arrow()
    types = {column: pa.string() if column in text else pa.float64() for column in columns}
    try:
        for batch in _read(path, types, separator, headless=_headless(name, path, separator)):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
    except pa.ArrowInvalid as error:
        if "conversion error" in str(error):
            if "invalid UTF8" in str(error):
                raise _not_utf8(name, path, "it seems to be Latin-1 or another older encoding") from error
            _blame(name, path, [column for column in columns if column not in text], separator)
        raise


def _parse_options(separator: str) -> Any:
    # Otherwise a quoted line break fails where it happens to lie on the border of two blocks.
    return arrow().csv.ParseOptions(newlines_in_values=True, delimiter=separator)


def _headless(name: str, path: Path, separator: str) -> list[str]:
    """Return the columns of a list of edges without a header; none where the file names its columns."""
    with arrow().csv.open_csv(path, parse_options=_parse_options(separator)) as reader:
        first = list(reader.schema.names)
    return list(_EDGE_COLUMNS[: len(first)]) if _is_headless(name, first) else []


def _read(path: Path, types: dict[str, Any], separator: str, *, headless: Sequence[str] = ()) -> Iterator[Any]:
    pa = arrow()
    names = pa.csv.ReadOptions(column_names=list(headless)) if headless else pa.csv.ReadOptions()
    options = pa.csv.ConvertOptions(
        include_columns=list(types),
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with pa.csv.open_csv(path, names, _parse_options(separator), options) as reader:
        yield from reader


def _blame(name: str, path: Path, columns: list[str], separator: str) -> None:
    """Name the first column with a cell that is not a number, and say whether it is one cell or the whole column."""
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
                what = f"holds text there; row {seen + row} {what.split(' in row')[0]}"
                advice = f"If it is not a class, add --ignore-columns {column}." if name == "probabilities" else ""
                advice = advice or "Drop that column."
            advice = number_advice(str(cells[row].as_py())) or advice
            raise FileFormatError(f"`{name}` must hold numbers in the column {column}; {path} {what}. {advice}")
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


# -- JSON Lines ----------------------------------------------------------------------------------------------------


def jsonl_header(name: str, path: Path) -> list[str]:
    """Return the keys of the first object; `name` is the argument that the file came from."""
    for _, row in _lines_as_objects(name, path):
        return list(row)
    raise FileFormatError(f"`{name}` must have at least one row; {path} has none")


def jsonl_batches(name: str, path: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Give record batches of the columns, of at most this many rows."""
    pa = arrow()
    lines = _lines_as_objects(name, path)
    while part := list(islice(lines, rows)):
        arrays = [_column(name, path, column, part) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _lines_as_objects(name: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the number and the object of each line that is not empty."""
    with arrow().input_stream(path) as stream:
        number = 0
        try:
            for line in _lines(stream):
                number += 1
                if line.strip():
                    yield number, _object(name, path, number, line)
        except UnicodeDecodeError as error:
            raise _not_utf8(name, path, error) from error


def _lines(stream: Any, size: int = 1 << 20) -> Iterator[str]:
    """Give the lines of a stream of bytes, read in large pieces."""
    rest = b""
    while piece := stream.read(size):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8-sig" if line.startswith(b"\xef\xbb\xbf") else "utf-8")
    if rest:
        yield rest.decode("utf-8-sig" if rest.startswith(b"\xef\xbb\xbf") else "utf-8")


def _object(name: str, path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise FileFormatError(
            f"`{name}` must hold one JSON object per line; line {number} of {path} is none: {reason}"
        ) from error
    if not isinstance(row, dict):
        raise FileFormatError(
            f"`{name}` must hold one JSON object per line; line {number} of {path} is {_shortened(row)}. A file "
            f"that is one long JSON array is not JSON Lines: write one object per line."
        )
    return row


def _column(name: str, path: Path, column: str, rows: Sequence[tuple[int, dict[str, Any]]]) -> Any:
    pa = arrow()
    values = [row.get(column) for _, row in rows]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError) as error:
        kinds = {type(value).__name__ for value in values if value is not None}
        first = next(number for (number, _), value in zip(rows, values, strict=True) if value is not None)
        fault = f"values of several types ({', '.join(sorted(kinds))})" if len(kinds) > 1 else str(error).split("\n")[0]
        raise FileFormatError(
            f"`{name}` must have one type in each column; {column} of {path} has, from line {first} on, {fault}. Write "
            f"them alike."
        ) from error


def _shortened(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"
