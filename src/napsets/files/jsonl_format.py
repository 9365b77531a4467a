"""JSON Lines as batches of Arrow columns: an object a line, whose keys are the columns.

The keys of the first object are the columns of the file; a key that a later object lacks, or has as null, is an empty
cell. Values are what JSON says they are: text that looks like a number or a date stays text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from napsets.errors import FileFormatError
from napsets.files._arrow import arrow
from napsets.files.csv_format import not_utf8

__all__ = ["jsonl_batches", "jsonl_header"]


def jsonl_header(name: str, path: Path) -> list[str]:
    """Return the keys of the first object; `name` is the argument that the file came from."""
    for _, row in _rows(name, path):
        return list(row)
    raise FileFormatError(f"`{name}` must have at least one row; {path} has none")


def jsonl_batches(name: str, path: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Give record batches of the columns, of at most so many rows."""
    pa = arrow()
    lines = _rows(name, path)
    while part := list(islice(lines, rows)):
        arrays = [_column(name, path, column, part) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _rows(name: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the number and the object of each line that is not empty."""
    with arrow().input_stream(path) as stream:
        number = 0
        try:
            for line in _lines(stream):
                number += 1
                if line.strip():
                    yield number, _object(name, path, number, line)
        except UnicodeDecodeError as error:
            raise not_utf8(name, path, error) from error


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
            f"`{name}` must hold one JSON object a line; line {number} of {path} is none: {reason}"
        ) from error
    if not isinstance(row, dict):
        raise FileFormatError(
            f"`{name}` must hold one JSON object a line; line {number} of {path} is {_shortened(row)}. A file that is "
            f"one long JSON array is no JSON Lines: write an object a line."
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
        told = f"values of several types ({', '.join(sorted(kinds))})" if len(kinds) > 1 else str(error).split("\n")[0]
        raise FileFormatError(
            f"`{name}` must have one type in each column; {column} of {path} has, from line {first} on, {told}. Write "
            f"them alike."
        ) from error


def _shortened(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"
