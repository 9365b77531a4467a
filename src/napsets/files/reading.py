r"""How people's files are read and written: one record, made once, that every reader and writer takes.

>>> reading = Reading(columns="node=id, labels.node=uid", separator=";")
>>> reading.name_of("labels", "node"), reading.name_of("nodes", "node"), reading.separator_of("y.csv")
('uid', 'id', ';')
>>> Reading().separator_of("y.csv"), Reading().separator_of("y.tsv.gz")
(',', '\t')
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from napsets.checks.compressed import WeightsAre, check_weights_are
from napsets.checks.values import choose
from napsets.errors import InvalidInputError

Format = Literal["parquet", "csv", "jsonl", "npz"]
IdKind = Literal["auto", "integer", "string"]
LabelsAre = Literal["auto", "names", "indices"]

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
class Reading:
    """How files are read, and how CSV is written.

    Attributes
    ----------
    ids : {"auto", "integer", "string"}
        What ids are. "auto" keeps the file's type; in CSV, integers if every id looks like one.
    labels_are : {"auto", "names", "indices"}
        What a label is: a class's name or its number from 0. With "auto": names where every label is one, numbers where
        none is; a mixture is refused.
    skip_unknown : bool
        Leave out rows that name a node which the file of probabilities lacks, or a label that is not a class, instead
        of refusing them.
    logits : bool
        The model's outputs are from before its softmax: any finite numbers, which become probabilities.
    normalise : bool
        Divide each row of probabilities by its sum, where that is 1 or 100 except for rounding.
    ignore_columns : str or sequence of str
        Columns of the file of probabilities that are not classes; as text, ``split,year``.
    directed : bool
        Follow edges from source to target only.
    weights_are : {"lengths", "strengths"}, optional
        What the column ``weight`` says of an edge: how long it is, or how strong, which makes it 1 / strength long.
    columns : mapping or str, optional
        From napsets' name of a column, or ``file.column``, to the user's; or as text, ``node=id,label=class``. Files of
        predictions are napsets' own: their columns are called as ever.
    separator : str, optional
        What separates the cells of CSV, one character or "tab"; by default a comma, and a tab in files called ``.tsv``.
    format : {"parquet", "csv", "tsv", "jsonl", "npz"}, optional
        The format of files whose name does not say it.
    """

    ids: IdKind = "auto"
    labels_are: LabelsAre = "auto"
    skip_unknown: bool = False
    logits: bool = False
    normalise: bool = False
    ignore_columns: str | Sequence[str] = ()
    directed: bool = False
    weights_are: WeightsAre | None = None
    columns: Mapping[str, str] | str | None = None
    separator: str | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        choose("ids", self.ids, dict.fromkeys(("auto", "integer", "string")))
        choose("labels_are", self.labels_are, dict.fromkeys(("auto", "names", "indices")))
        check_weights_are(self.weights_are)
        ignored = self.ignore_columns
        listed = ignored.split(",") if isinstance(ignored, str) else ignored
        object.__setattr__(self, "ignore_columns", tuple(name.strip() for name in listed if name.strip()))
        if self.logits and self.normalise:
            raise InvalidInputError("`normalise` must be False with logits, which a softmax makes sum to 1; got True")
        names = _parse_columns(self.columns) if isinstance(self.columns, str) else dict(self.columns or {})
        for key in names:
            file, _, column = key.rpartition(".")
            choose("columns", column, COLUMNS)
            if file:
                choose("columns", file, dict.fromkeys(COLUMNS[column]))
        object.__setattr__(self, "columns", names)
        if self.separator is not None:
            separator = {"\\t": "\t", "tab": "\t"}.get(self.separator.lower(), self.separator)
            if len(separator.encode()) != 1 or separator in '"\r\n':
                raise InvalidInputError(
                    f"`separator` must be one character, no quote and no line break; got {separator!r}"
                )
            object.__setattr__(self, "separator", separator)
        if self.format is not None:
            choose("format", self.format, FORMATS)

    def name_of(self, file: str, column: str) -> str:
        """Return what a column is called in a file, which is known by the argument that it came from."""
        names = self.columns
        if file not in COLUMNS.get(column, ()) or not isinstance(names, dict):
            return column
        return str(names.get(f"{file}.{column}", names.get(key_of(file, column), column)))

    def separator_of(self, path: str | os.PathLike[str]) -> str:
        """Return what separates the cells of a CSV file."""
        if self.separator is not None:
            return self.separator
        text = os.fspath(path).lower()
        suffix = next((suffix for suffix in SUFFIXES if text.endswith(suffix)), None)
        tabs = suffix.startswith(".tsv") if suffix else self.format == "tsv"
        return "\t" if tabs else ","

    def format_of(self, name: str, path: str | os.PathLike[str]) -> Format:
        """Return the format of a file, by its name or else by `format`; `name` is the argument it came from."""
        text = os.fspath(path).lower()
        for suffix, kind in SUFFIXES.items():
            if text.endswith(suffix):
                return kind
        if self.format is not None:
            return FORMATS[self.format]
        if os.path.isdir(path):  # as Spark and pandas write: a folder of parts
            return "parquet"
        raise InvalidInputError(
            f"`{name}` must be a file that ends in {', '.join(SUFFIXES)}; got {os.fspath(path)}. For other "
            f"names, pass --format."
        )


#: Files as napsets would write them.
PLAIN = Reading()


def key_of(file: str, column: str) -> str:
    """Return by what key a column of a file is called otherwise: its name, with the file's where that is needed."""
    return f"{file}.{column}" if (file, column) in _WHOLE_NAMES else column


def _parse_columns(text: str) -> dict[str, str]:
    """Return the pairs of ``node=id,label=class``."""
    pairs: dict[str, str] = {}
    for part in text.split(",") if text else []:
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        if not (ours and equals and theirs):
            raise InvalidInputError(f"`columns` must be names as in node=id,label=class; got {text!r}")
        if ours in pairs:
            raise InvalidInputError(f"`columns` must name a column once; {ours} is there twice")
        pairs[ours] = theirs
    return pairs
