"""Reading what is known of nodes: labels, numbers, groups, and lists of nodes; labels become class indices.

A whole number may be written with a decimal point, as pandas writes integers that have gaps: ``2.0`` is ``2``, in every
format, unless a class is called ``2.0``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import FileFormatError, arrow
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, listed, looks_integer, read_node_rows
from napsets.files.reading import PLAIN, LabelsAre, Reading

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class NodeTruth:
    """What is true of nodes."""

    #: A class index for each node, −1 where it has no label; or a number, NaN where it is unknown.
    values: npt.NDArray[Any]
    class_names: list[str] | None = None
    #: Whether labels are integers in the file, so that they can come back as such: every class is called by an integer,
    #: and the file has numbers; or text that looks so, if it is CSV.
    integers: bool = False


def read_labels(
    path: PathLike,
    nodes: NodeIds,
    class_names: Sequence[str] | None,
    reading: Reading = PLAIN,
    *,
    notes: list[str] | None = None,
    strict: bool = False,
) -> NodeTruth:
    """Read a table with the columns ``node`` and ``label`` into one label for each of `nodes`.

    A node that is not there, or whose label is an empty cell, NaN in a column of numbers, or −1 (unless a class is
    called so), is unlabelled. Without `class_names` the distinct labels are the classes; ``2.0`` is read as ``2`` where
    no class is called ``2.0``. `notes` says what was left out, and how the labels were read. With `strict`, labels that
    are not classes are refused also where rows of unknown nodes are left out.
    """
    rows = read_label_rows(path, nodes, reading, notes=notes)
    skip = reading.skip_unknown and not strict
    codes, names = class_indices(rows.table, rows.texts, class_names, reading.labels_are, notes, skip_unknown=skip)
    unlabelled = int((codes < 0).sum())
    if unlabelled and notes is not None:
        notes.append(
            f"{unlabelled:,} of the {codes.size:,} rows of `labels` ({rows.table.path}) have no label: an empty cell, "
            f"NaN or −1"
        )
    labels = np.full(len(nodes), -1, dtype=np.int64)
    labels[rows.places[rows.places >= 0]] = codes[rows.places >= 0]
    integers = not rows.named and looks_integer(arrow().array(names, arrow().large_string()))
    return NodeTruth(labels, names, integers)


@dataclass(frozen=True, eq=False)
class LabelRows:
    """The rows of a file of labels."""

    table: TableFile
    places: IntArray  # of each row's node, none twice; −1 where it is unknown and to be left out
    texts: Any  # each row's label, null where there is none: an Arrow array
    named: bool  # whether the file says that its labels are text
    more: dict[str, list[Any]]  # further columns, each a list of Arrow arrays


def read_label_rows(
    path: PathLike,
    nodes: NodeIds,
    reading: Reading = PLAIN,
    *,
    notes: list[str] | None = None,
    more: Sequence[str] = (),
) -> LabelRows:
    """Read the rows of a file of labels, with those of the columns `more` that it has; the rest as in `read_labels`."""
    types = arrow().types
    table = open_table("labels", path, reading)
    others = [column for column in more if column in table.columns]
    places, columns = read_node_rows(table, nodes, "label", *others, notes=notes)
    labels = columns.pop("label")
    named = table.typed and not all(types.is_integer(part.type) or types.is_floating(part.type) for part in labels)
    return LabelRows(table, places, column_texts(table, labels, "label"), named, columns)


def read_targets(
    path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> FloatArray:
    """Read a table with the columns ``node`` and ``target`` into one number for each of `nodes`, NaN where unknown."""
    table = open_table("labels", path, reading)
    places, columns = read_node_rows(table, nodes, "target", notes=notes)
    numbers = np.concatenate([np.empty(0), *(_numbers_or_nan(table, part) for part in columns["target"])])
    numbers[~np.isfinite(numbers)] = np.nan
    unknown = int(np.isnan(numbers).sum())
    if unknown and notes is not None:
        notes.append(
            f"{unknown:,} of the {places.size:,} rows of `labels` ({table.path}) have no target: an empty cell, NaN or "
            f"infinite"
        )
    targets = np.full(len(nodes), np.nan)
    targets[places[places >= 0]] = numbers[places >= 0]
    return targets


def _numbers_or_nan(table: TableFile, values: Any) -> FloatArray:
    """Return targets that are numbers, or text that reads as numbers, with NaN for empty cells."""
    pa = arrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kinds = ("integer", "floating", "decimal", "null", "string", "large_string")
    wanted = f"`{table.name}` must hold numbers in the column target; in {table.path}"
    if not any(getattr(pa.types, f"is_{kind}")(values.type) for kind in kinds):
        raise FileFormatError(f"{wanted} it is {values.type}")
    try:
        numbers = values.cast(pa.float64(), safe=False)  # integers may be larger than a float knows to the last digit
    except pa.ArrowInvalid as error:
        raise FileFormatError(f"{wanted} not all of it is: {error}") from error
    array: FloatArray = numbers.to_numpy(zero_copy_only=False)
    return array


def read_nodes(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None) -> IntArray:
    """Read a table with the column ``node`` into places among `nodes`, in the order of the file."""
    places, _ = read_node_rows(open_table("nodes", path, reading), nodes, notes=notes)
    return places[places >= 0]


def read_groups(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN) -> npt.NDArray[Any]:
    """Read a table with the columns ``node`` and ``group`` into the name of the group of each of `nodes`.

    A node that is not there, or whose group is an empty cell, is in none: its name is empty.
    """
    table = open_table("groups", path, reading)
    places, columns = read_node_rows(table, nodes, "group")
    if not places.size:
        raise FileFormatError(f"`groups` must have at least one row; {table.path} has none")
    names = np.array(column_texts(table, columns["group"], "group").fill_null("").to_pylist(), dtype=np.str_)
    groups = np.zeros(len(nodes), dtype=names.dtype)
    groups[places[places >= 0]] = names[places >= 0]
    return groups


def column_texts(table: TableFile, parts: list[Any], column: str) -> Any:
    """Return a column of names or numbers as one array of text, null where there is none."""
    pa = arrow()
    texts = [_texts(table, part, column) for part in parts]
    return pa.chunked_array(texts, type=pa.large_string()).combine_chunks()


def _texts(table: TableFile, values: Any, column: str) -> Any:
    """Return names or numbers as text, null where there is none: an empty cell, or NaN in a column of numbers."""
    pa = arrow()
    pc = pa.compute
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if pa.types.is_floating(values.type):
        # What pandas makes of integers with gaps: a number is written as it would be in a column of integers.
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53))
        integers = pc.if_else(whole, values, pa.scalar(0.0, values.type)).cast(pa.int64())
        values = pc.if_else(whole, integers.cast(pa.large_string()), values.cast(pa.large_string()))
    if pa.types.is_null(values.type) or pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        values = values.cast(pa.large_string())
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise FileFormatError(
            f"`{table.name}` must hold names or numbers in its column {column}; in {table.path} it is {values.type}"
        )
    return values.cast(pa.large_string())


_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0*")

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")


class ClassNames:
    """The classes of a table, to be found by name or by number."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._exact = {name: y for y, name in enumerate(self.names)}
        self._loose: dict[str, int] = {}
        for y, name in enumerate(self.names):
            self._loose.setdefault(_plain(name), y)

    def __len__(self) -> int:
        return len(self.names)

    def named(self, text: str) -> int:
        """Return the class of that name, −1 where there is none."""
        return self._exact.get(text, self._loose.get(_plain(text), -1))

    def numbered(self, text: str) -> int:
        """Return the class of that number, −1 where there is none."""
        plain = _plain(text)
        inside = len(plain) <= len(str(len(self))) and re.fullmatch("0|[1-9][0-9]*", plain) and int(plain) < len(self)
        return int(plain) if inside else -1

    def strangers(self, texts: Sequence[str], labels_are: LabelsAre) -> list[str]:
        """Return the texts that are no class, by name or by number as far as labels may be those."""
        finders = {"names": [self.named], "indices": [self.numbered]}.get(labels_are, [self.named, self.numbered])
        return [text for text in texts if all(find(text) < 0 for find in finders)]

    def is_missing(self, text: str) -> bool:
        """Whether a text stands for no label: nothing, or −1 where no class is called so."""
        return text == "" or (_plain(text) == "-1" and self.named(text) < 0)


def class_indices(
    table: TableFile,
    texts: Any,
    class_names: Sequence[str] | None,
    labels_are: LabelsAre = "auto",
    notes: list[str] | None = None,
    *,
    skip_unknown: bool = False,
) -> tuple[IntArray, list[str]]:
    """Turn labels as text into class indices, −1 where there is none; return the classes too.

    A null, an empty text and −1 stand for no label. Without `class_names` the distinct labels are the classes. With
    "auto", labels are names where every label is one, and numbers from 0 where none is; a mixture is refused. `notes`
    says that labels were read as numbers or, with `skip_unknown`, left out.
    """
    encoded = texts.dictionary_encode()
    distinct: list[str] = encoded.dictionary.to_pylist()
    classes = ClassNames(_distinct_classes(table, distinct) if class_names is None else class_names)
    known = [text for text in distinct if not classes.is_missing(text)]
    if skip_unknown:
        strangers = classes.strangers(known, labels_are)
        if strangers and notes is not None:
            notes.append(f"left out: rows of {table.path} with labels that are not classes: {listed(strangers)}")
        if labels_are == "auto" and any(classes.named(text) >= 0 for text in known):
            strangers = classes.strangers(known, "names")  # numbers among names are not a class here
        known = [text for text in known if text not in set(strangers)]
    find, kept = _rule(table, known, classes, labels_are, notes), set(known)
    codes = np.array([find(text) if text in kept else -1 for text in distinct] + [-1], dtype=np.int64)
    place = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return codes[place], classes.names


def sorted_names(names: Sequence[str]) -> list[str]:
    """Sort class names, numbers by value."""
    digits = {name: name.lstrip("0") if name.isdecimal() else "" for name in names}
    return sorted(names, key=lambda name: (not name.isdecimal(), len(digits[name]), digits[name], name))


def _distinct_classes(table: TableFile, distinct: Sequence[str]) -> list[str]:
    """Return the classes of labels that are all there is to know them by."""
    nothing = ClassNames([])
    labels = [text for text in distinct if not nothing.is_missing(text)]
    if not all(_NUMBER.fullmatch(text) for text in labels):
        return sorted_names(labels)
    fractions = [text for text in labels if not _plain(text).lstrip("-").isdecimal()]
    if fractions:
        raise FileFormatError(
            f"`{table.name}` must be class names or whole class numbers; {table.path} has {listed(fractions)}"
        )
    return sorted_names(list({_plain(text) for text in labels}))


def _rule(
    table: TableFile, known: Sequence[str], classes: ClassNames, labels_are: LabelsAre, notes: list[str] | None
) -> Callable[[str], int]:
    """Return the function that finds a label's class, or refuse labels that are ambiguous or not a class."""
    nameless, numberless = classes.strangers(known, "names"), classes.strangers(known, "indices")
    if labels_are != "indices" and not nameless:
        return classes.named
    if classes.strangers(known, labels_are):
        raise FileFormatError(_strange(table, known, classes, labels_are))
    if labels_are == "auto" and len(nameless) < len(known):
        raise FileFormatError(_mixed(table, known, nameless, numberless))
    if labels_are == "auto" and notes is not None:
        first = ", ".join(f"{y} is {name!r}" for y, name in enumerate(classes.names[:3]))
        notes.append(
            f"the labels of {table.path} are not names of classes and were read as class numbers from 0 ({first}"
            f"{', …' if len(classes) > 3 else ''}); --labels-are indices says so without this note"
        )
    return classes.numbered


def _mixed(table: TableFile, known: Sequence[str], nameless: Sequence[str], numberless: Sequence[str]) -> str:
    """Say that some labels are names and others numbers, and which of the two all of them can be."""
    named = [text for text in known if text not in set(nameless)]
    way = 'If all of them are numbers, say so with --labels-are indices (in Python: labels_are="indices"); otherwise'
    if numberless:
        way = f"They cannot all be numbers either, because {listed(numberless)} {_are(numberless)} not:"
    return (
        f"`{table.name}` must be class names or class numbers, not both; in {table.path} {listed(named)} "
        f"{_are(named)} names of classes, but {listed(nameless)} can only be numbers. {way} write them the same way."
    )


def _strange(table: TableFile, known: Sequence[str], classes: ClassNames, labels_are: LabelsAre) -> str:
    """Say which labels are not what they should be, and what may be meant."""
    strange = classes.strangers(known, labels_are)
    spaced = [text for text in strange if text != text.strip() and not classes.strangers([text.strip()], labels_are)]
    other: LabelsAre = "indices" if labels_are == "names" else "names"
    if labels_are != "auto" and not classes.strangers(known, other):
        what = "names of classes" if other == "names" else "numbers of classes"
        way = f'All labels are {what}: say so with --labels-are {other} (in Python: labels_are="{other}").'
    else:
        way = "Name the columns of `probabilities` as the labels are named."
        if spaced:
            way = f"Remove the spaces around them: {spaced[0]!r} should be {spaced[0].strip()!r}."
        elif labels_are == "indices":
            way = "Count the classes from 0, in the order of the columns of `probabilities`."
        if table.name == "labels":
            way += " If they stand for unknown labels, add --skip-unknown, which leaves these nodes out."
    names, numbers = f"class names ({listed(classes.names)})", f"class numbers from 0 to {len(classes) - 1}"
    allowed = {"names": names, "indices": numbers}.get(labels_are, f"{names} or {numbers}")
    others = f"{len(strange)} other{'s' * (len(strange) != 1)}"
    return f"`{table.name}` must be {allowed}; {table.path} has {others}: {listed(strange)}. {way}"


def _are(texts: Sequence[str]) -> str:
    return "is" if len(texts) == 1 else "are"


def _plain(text: str) -> str:
    """Return a whole number without its decimal point, and any other text as it is."""
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else "0" if whole[1] == "-0" else whole[1]
