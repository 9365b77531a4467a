r"""The settings with which files are read and written: one record for all readers and writers.

>>> reading = Reading(rename={"uid": "node", "class": "label"}, separator=";")
>>> reading.renamed("labels", ["uid", "class", "date"]), reading.separator_of("y.csv")
(['node', 'label', 'date'], ';')
>>> Reading().separator_of("y.csv"), Reading().separator_of("y.tsv.gz")
(',', '\t')
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from napsets.checks.compressed import WeightsAre, check_weights_are
from napsets.errors import InvalidInputError

Format = Literal["parquet", "csv"]

#: Formats by how the name of a file ends.
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
}


@dataclass(frozen=True)
class Reading:
    """How files are read, and how CSV is written.

    Attributes
    ----------
    skip_unknown : bool
        Leave out rows that name a node which the file of probabilities lacks, or a label that is not a class, instead
        of refusing them.
    logits : bool
        The model's outputs are from before its softmax: any finite numbers, which become probabilities.
    ignore_columns : sequence of str
        Columns of the file of probabilities that are not classes.
    directed : bool
        Follow edges from source to target only.
    weights_are : {"lengths", "strengths"}, optional
        What the column ``weight`` says of an edge: how long it is, or how strong, which makes it 1 / strength long.
    rename : mapping
        Columns with other names, from the file's name to napsets': ``{"uid": "node"}``. Each holds for every file that
        has such a column, except files of predictions, which napsets wrote.
    separator : str, optional
        The character between the cells of CSV; by default a comma, and a tab in files called ``.tsv``.
    header : bool
        Whether the first line of a CSV names its columns. Without it, columns are taken in the documented order, and
        classes are called 0, 1, 2, …
    """

    skip_unknown: bool = False
    logits: bool = False
    ignore_columns: Sequence[str] = ()
    directed: bool = False
    weights_are: WeightsAre | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        check_weights_are(self.weights_are)
        separator = self.separator
        if separator is not None and (len(separator.encode()) != 1 or separator in '"\r\n'):
            raise InvalidInputError(f"`separator` must be one character, no quote and no line break; got {separator!r}")

    def renamed(self, file: str, columns: Sequence[str]) -> list[str]:
        """Return napsets' names of a file's columns; a file is known by the argument that it came from."""
        return [column if file == "sets" else self.rename.get(column, column) for column in columns]

    def separator_of(self, path: str | os.PathLike[str]) -> str:
        """Return the separator of a CSV file."""
        if self.separator is not None:
            return self.separator
        return "\t" if os.fspath(path).lower().endswith((".tsv", ".tsv.gz")) else ","


def format_of(name: str, path: str | os.PathLike[str]) -> Format:
    """Return the format of a file, by how its name ends; `name` is the argument that it came from."""
    text = os.fspath(path).lower()
    if os.path.isdir(path) and not text.endswith(tuple(SUFFIXES)):  # as Spark, pandas and DuckDB write
        text = next((part.name.lower() for part in parts_of(Path(path))), ".parquet")
    for suffix, kind in SUFFIXES.items():
        if text.endswith(suffix):
            return kind
    raise InvalidInputError(
        f"`{name}` must be a file that ends in {', '.join(SUFFIXES)}, or a folder of such files; got {os.fspath(path)}"
    )


def parts_of(folder: Path) -> list[Path]:
    """Return the files of a folder that hold rows, in the order of their names."""
    found = (part for part in folder.rglob("*") if part.name.lower().endswith(tuple(SUFFIXES)))
    return sorted(part for part in found if not part.name.startswith(("_", ".")))


#: Files as napsets would write them.
PLAIN = Reading()
