r"""What people's files are like, where they are not as napsets would write them: one place for all readers and writers.

A `Dialect` says how CSV is separated, which format a file has whose name does not tell, and what columns are called. It
holds for every file that is opened within `speaking`, so that no reader has to pass it on; a `TableFile` keeps what
held when it was opened. Sets files are napsets' own: their columns are called as ever.

>>> with speaking(Dialect.parse(columns="node=id, labels.node=uid", separator=";")):
...     dialect().name_of("labels", "node"), dialect().name_of("nodes", "node"), dialect().separator_of("y.csv")
('uid', 'id', ';')
>>> dialect().separator_of("y.csv"), dialect().separator_of("y.tsv.gz")
(',', '\t')
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from napsets.checks.names import choose
from napsets.errors import InvalidInputError

__all__ = ["COLUMNS", "FORMATS", "SUFFIXES", "Dialect", "Format", "dialect", "format_of", "key_of", "speaking"]

Format = Literal["parquet", "csv", "jsonl", "npz"]

#: Formats by the names that users give them.
FORMATS: dict[str, Format] = {"parquet": "parquet", "csv": "csv", "tsv": "csv", "jsonl": "jsonl", "npz": "npz"}

#: Formats by how the name of a file ends.
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".jsonl": "jsonl",
    ".jsonl.gz": "jsonl",
    ".ndjson": "jsonl",
    ".npz": "npz",
}

#: Columns that a user may call otherwise, and the files that have them.
COLUMNS: dict[str, tuple[str, ...]] = {
    "node": ("probabilities", "labels", "nodes", "features", "groups"),
    "source": ("edges",),
    "target": ("edges", "labels"),
    "label": ("labels",),
    "group": ("groups",),
    "probabilities": ("probabilities",),
    "prediction": ("probabilities",),
    "spread": ("probabilities",),
    "lower": ("probabilities",),
    "upper": ("probabilities",),
}

#: Columns that share their name with one of another file and mean something else: they need the file's name before
#: them. A plain ``target=dst`` is where an edge goes; the number that a node has is ``labels.target=price``.
_WHOLE_NAMES = {("labels", "target")}


@dataclass(frozen=True)
class Dialect:
    """How files are written.

    Attributes
    ----------
    columns : mapping
        From napsets' name of a column, or ``file.column``, to the user's.
    separator : str, optional
        What separates the cells of CSV, one character; by default a comma, and a tab in files called ``.tsv``.
    format : {"parquet", "csv", "tsv", "jsonl", "npz"}, optional
        The format of files whose name does not say it.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        for key in self.columns:
            file, _, column = key.rpartition(".")
            choose("columns", column, COLUMNS)
            if file:
                choose("columns", file, dict.fromkeys(COLUMNS[column]))
        if self.separator is not None and (len(self.separator.encode()) != 1 or self.separator in '"\r\n'):
            raise InvalidInputError(
                f"`separator` must be one character, no quote and no line break; got {self.separator!r}"
            )
        if self.format is not None:
            choose("format", self.format, FORMATS)

    @classmethod
    def parse(cls, columns: str | None = None, separator: str | None = None, format: str | None = None) -> Dialect:
        """Make one from what people write: ``node=id,label=class`` and ``;``, ``|`` or ``tab``."""
        pairs = {}
        for part in columns.split(",") if columns else []:
            ours, equals, theirs = (text.strip() for text in part.partition("="))
            if not (ours and equals and theirs):
                raise InvalidInputError(f"`columns` must be names as in node=id,label=class; got {columns!r}")
            if ours in pairs:
                raise InvalidInputError(f"`columns` must name a column once; {ours} is there twice")
            pairs[ours] = theirs
        words = {"\\t": "\t", "tab": "\t"}
        return cls(pairs, None if separator is None else words.get(separator.lower(), separator), format)

    def name_of(self, file: str, column: str) -> str:
        """Return what a column is called in a file, which is known by the argument that it came from."""
        if file not in COLUMNS.get(column, ()):
            return column
        return self.columns.get(f"{file}.{column}", self.columns.get(key_of(file, column), column))

    def separator_of(self, path: str | os.PathLike[str]) -> str:
        """Return what separates the cells of a CSV file."""
        if self.separator is not None:
            return self.separator
        text = os.fspath(path).lower()
        named = next((suffix for suffix in SUFFIXES if text.endswith(suffix)), None)
        tabs = named.startswith(".tsv") if named else self.format == "tsv"
        return "\t" if tabs else ","


def key_of(file: str, column: str) -> str:
    """Return by what key a column of a file is called otherwise: its name, with the file's where that is needed."""
    return f"{file}.{column}" if (file, column) in _WHOLE_NAMES else column


_CURRENT: ContextVar[Dialect] = ContextVar("dialect", default=Dialect())  # noqa: B039  (it never changes)


def dialect() -> Dialect:
    """Return what holds here."""
    return _CURRENT.get()


@contextmanager
def speaking(spoken: Dialect) -> Iterator[None]:
    """Let a dialect hold for all files that are opened, read or written inside."""
    token = _CURRENT.set(spoken)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def format_of(name: str, path: str | os.PathLike[str]) -> Format:
    """Return the format of a file, by its name or else by the dialect; `name` is the argument it came from."""
    text = os.fspath(path).lower()
    for suffix, kind in SUFFIXES.items():
        if text.endswith(suffix):
            return kind
    asked = dialect().format
    if asked is not None:
        return FORMATS[asked]
    raise InvalidInputError(
        f"`{name}` must be a file that ends in {', '.join(SUFFIXES)}; got {os.fspath(path)}. Where names say nothing, "
        f"--format does."
    )
