"""Reading what is known of nodes: labels, numbers, groups, and lists of nodes; labels become class indices.

A whole number may be written with a decimal point, as pandas writes integers that have gaps: ``2.0`` is ``2``, in every
format, unless a class is called ``2.0``.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import FileFormatError, arrow
from napsets.files.formats import number_advice, open_table
from napsets.files.ids import NodeIds, NodeRows, listed, looks_integer, read_node_rows
from napsets.files.reading import PLAIN, Reading

if TYPE_CHECKING:
    import pyarrow as pa

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class NodeTruth:
    """What is true of nodes."""

    #: A class index for each node, −1 where it has no label; or a number, NaN where it is unknown.
    values: IntArray | FloatArray
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
    called so), is unlabelled. Without `class_names` the distinct labels are the classes. `notes` says what was left
    out, and how the labels were read. With `strict`, labels that are not classes are refused also where rows of
    unknown nodes are left out.
    """
    rows = read_label_rows(path, nodes, reading, notes=notes)
    skip = reading.skip_unknown and not strict
    codes, names = class_indices(rows, class_names, notes, skip_unknown=skip)
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
class LabelRows(NodeRows):
    """The rows of a file of labels."""

    texts: pa.ChunkedArray  # each row's label, null where there is none
    named: bool  # whether the file says that its labels are text


def read_label_rows(
    path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> LabelRows:
    """Read the rows of a file of labels, as `read_labels` does."""
    types = arrow().types
    rows = read_node_rows(open_table("labels", path, reading), nodes, "label", notes=notes)
    kind = rows.columns["label"].type
    named = rows.table.typed and not (types.is_integer(kind) or types.is_floating(kind))
    return LabelRows(**vars(rows), texts=column_texts(rows, "label"), named=named)


def read_targets(
    path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> FloatArray:
    """Read a table with the columns ``node`` and ``target`` into one number for each of `nodes`, NaN where unknown."""
    table = open_table("labels", path, reading)
    column = "target" if reading.header else "label"  # as the second column is called where columns have no names
    rows = read_node_rows(table, nodes, column, notes=notes)
    numbers = _numbers_or_nan(rows, column)
    numbers[~np.isfinite(numbers)] = np.nan
    unknown = int(np.isnan(numbers).sum())
    if unknown and notes is not None:
        notes.append(
            f"{unknown:,} of the {numbers.size:,} rows of `labels` ({table.path}) have no target: an empty cell, NaN "
            f"or infinite"
        )
    targets = np.full(len(nodes), np.nan)
    targets[rows.places[rows.places >= 0]] = numbers[rows.places >= 0]
    return targets


def _numbers_or_nan(rows: NodeRows, column: str) -> FloatArray:
    """Return targets that are numbers, or text that reads as numbers, with NaN for empty cells."""
    pa = arrow()
    table, values = rows.table, rows.columns[column]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kinds = ("integer", "floating", "decimal", "null", "string", "large_string")
    wanted = f"`{table.name}` must hold numbers in the column target"
    if not any(getattr(pa.types, f"is_{kind}")(values.type) for kind in kinds):
        raise FileFormatError(f"{wanted}; in {table.path} it is {values.type}")
    try:
        numbers = values.cast(pa.float64(), safe=False)  # integers may be larger than a float knows to the last digit
    except pa.ArrowInvalid:
        row = next(row for row, text in enumerate(values.to_pylist()) if not _is_number(text))
        text = values[row].as_py()
        fault = f"{wanted}; {table.at(row, rows.ids[row].as_py())} has {text!r}."
        raise FileFormatError(f"{fault} {number_advice(text)}".rstrip()) from None
    return np.array(numbers.to_numpy(), dtype=np.float64)


def _is_number(text: str | None) -> bool:
    try:
        float(text or 0)
    except ValueError:
        return False
    return True


def read_nodes(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None) -> IntArray:
    """Read a table with the column ``node`` into places among `nodes`, in the order of the file."""
    places = read_node_rows(open_table("nodes", path, reading), nodes, notes=notes).places
    return places[places >= 0].astype(np.int64)


def read_groups(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN) -> npt.NDArray[np.str_]:
    """Read a table with the columns ``node`` and ``group`` into the name of the group of each of `nodes`.

    A node that is not there, or whose group is an empty cell, is in none: its name is empty.
    """
    rows = read_node_rows(open_table("groups", path, reading), nodes, "group")
    if not rows.places.size:
        raise FileFormatError(f"`groups` must have at least one row; {rows.table.path} has none")
    names = np.array(column_texts(rows, "group").fill_null("").to_pylist(), dtype=np.str_)
    groups = np.zeros(len(nodes), dtype=names.dtype)
    groups[rows.places[rows.places >= 0]] = names[rows.places >= 0]
    return groups


def column_texts(rows: NodeRows, column: str) -> pa.ChunkedArray:
    """Return names or numbers as text, null where there is none: an empty cell, or NaN in a column of numbers."""
    pa = arrow()
    pc, types, values = pa.compute, pa.types, rows.columns[column]
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if types.is_float16(values.type):
        values = values.cast(pa.float32())
    if types.is_floating(values.type):
        # What pandas makes of integers with gaps: a number is written as it would be in a column of integers.
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53))
        integers = pc.if_else(whole, values, pa.scalar(0.0, values.type)).cast(pa.int64())
        values = pc.if_else(whole, integers.cast(pa.large_string()), values.cast(pa.large_string()))
    kind = values.type
    if not any(
        check(kind)
        for check in (types.is_null, types.is_integer, types.is_boolean, types.is_string, types.is_large_string)
    ):
        raise FileFormatError(
            f"`{rows.table.name}` must hold names or numbers in its column {column}; in {rows.table.path} it is {kind}"
        )
    return values.cast(pa.large_string())


# -- labels as classes -------------------------------------------------------------------------------------------------

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

    def strangers(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that are no class, neither by name nor by number."""
        return [text for text in texts if self.named(text) < 0 and self.numbered(text) < 0]

    def is_missing(self, text: str) -> bool:
        """Whether a text stands for no label: nothing, or −1 where no class is called so."""
        return text == "" or (_plain(text) == "-1" and self.named(text) < 0)


def class_indices(
    rows: LabelRows, class_names: Sequence[str] | None, notes: list[str] | None = None, *, skip_unknown: bool = False
) -> tuple[IntArray, list[str]]:
    """Turn the labels of rows into class indices, −1 where there is none; return the classes too.

    A null, an empty text and −1 stand for no label. Labels are names where every label is one, and numbers from 0 where
    none is; a mixture is refused. Without `class_names` the distinct labels are the classes. `notes` says that labels
    were read as numbers or, with `skip_unknown`, left out.
    """
    encoded = rows.texts.combine_chunks().dictionary_encode()
    distinct: list[str] = encoded.dictionary.to_pylist()
    classes = ClassNames(_distinct_classes(rows, distinct) if class_names is None else class_names)
    known = [text for text in distinct if not classes.is_missing(text)]
    if skip_unknown:
        strangers = classes.strangers(known)
        if strangers and notes is not None:
            notes.append(f"left out: rows of {rows.table.path} with labels that are not classes: {listed(strangers)}")
        if any(classes.named(text) >= 0 for text in known):
            strangers = [text for text in known if classes.named(text) < 0]  # numbers among names are no classes
        known = [text for text in known if text not in set(strangers)]
    find, kept = _finder(rows, known, classes, notes), set(known)
    codes = np.array([find(text) if text in kept else -1 for text in distinct] + [-1], dtype=np.int64)
    place = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return codes[place], classes.names


def sorted_names(names: Sequence[str]) -> list[str]:
    """Sort class names, numbers by value."""
    digits = {name: name.lstrip("0") if name.isdecimal() else "" for name in names}
    return sorted(names, key=lambda name: (not name.isdecimal(), len(digits[name]), digits[name], name))


def _distinct_classes(rows: LabelRows, distinct: Sequence[str]) -> list[str]:
    """Return the classes where nothing but the labels says which there are."""
    labels = [text for text in distinct if not ClassNames([]).is_missing(text)]
    if not all(_NUMBER.fullmatch(text) for text in labels):
        return sorted_names(labels)
    fractions = [text for text in labels if not _plain(text).lstrip("-").isdecimal()]
    if fractions:
        raise FileFormatError(
            f"`{rows.table.name}` must be class names or whole class numbers; {rows.table.path} has {listed(fractions)}"
        )
    return sorted_names(list({_plain(text) for text in labels}))


def _finder(
    rows: LabelRows, known: Sequence[str], classes: ClassNames, notes: list[str] | None
) -> Callable[[str], int]:
    """Return the function that finds a label's class; raise for labels that are ambiguous or not a class."""
    unnamed = [text for text in known if classes.named(text) < 0]
    if not unnamed:
        return classes.named
    name, path, strange = rows.table.name, rows.table.path, classes.strangers(known)
    if strange:
        row = arrow().compute.index(rows.texts, strange[0]).as_py()
        raise FileFormatError(
            f"`{name}` must be class names ({listed(classes.names)}) or class numbers from 0 to {len(classes) - 1}; "
            f"{path} has {len(strange)} other label{'s' * (len(strange) != 1)}: {listed(strange)}, first in "
            f"{rows.at(row)}. {_remedy(name, known, strange, classes)}"
        )
    if len(unnamed) < len(known):
        named = [text for text in known if text not in set(unnamed)]
        raise FileFormatError(
            f"`{name}` must be class names or class numbers, not both; in {path} {listed(named)} "
            f"{'is a name' if len(named) == 1 else 'are names'} of classes, but {listed(unnamed)} can only be numbers. "
            f"Write them the same way."
        )
    if notes is not None:
        first = ", ".join(f"{y} is {text!r}" for y, text in enumerate(classes.names[:3]))
        notes.append(
            f"the labels of {path} are not names of classes and were read as class numbers from 0 ({first}"
            f"{', …' if len(classes) > 3 else ''})"
        )
    return classes.numbered


def _remedy(name: str, known: Sequence[str], strange: Sequence[str], classes: ClassNames) -> str:
    """Describe what labels that are no classes may mean."""
    count, numbers = len(classes), {_plain(text) for text in known}
    if numbers <= {str(y) for y in range(1, count + 1)} and str(count) in numbers:
        return "They seem to count the classes from 1: subtract 1, so that the first class is 0."
    spaced = next((text for text in strange if text != text.strip() and not classes.strangers([text.strip()])), None)
    guess = next((pair for text in strange[:_LOOKED_AT] if (pair := _guess(text, classes))), None)
    remedy = "Name the columns of `probabilities` as the labels are named."
    if spaced is not None:
        remedy = f"Remove the spaces around them: {spaced!r} should be {spaced.strip()!r}."
    elif guess is not None:
        remedy = f"{guess[0]!r}: did you mean {guess[1]!r}?"
    if name == "labels":
        remedy += " If they stand for unknown labels, add --skip-unknown, which leaves these nodes out."
    return remedy


def _guess(text: str, classes: ClassNames) -> tuple[str, str] | None:
    """Return a label with the class that it resembles most, if any."""
    lower = {name.lower(): name for name in classes.names}
    near = [lower[text.lower()]] if text.lower() in lower else difflib.get_close_matches(text, classes.names, 1)
    return (text, near[0]) if near else None


#: Labels for which a similar name is looked for.
_LOOKED_AT = 20


def _plain(text: str) -> str:
    """Return a whole number without its decimal point, and any other text as it is."""
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else "0" if whole[1] == "-0" else whole[1]
