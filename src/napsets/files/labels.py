"""Reading what is known of nodes: labels, numbers, groups, and lists of nodes; labels become class indices.

A whole number may be written with a decimal point, as pandas writes integers that have gaps: ``2.0`` is ``2``, in every
format, unless a class is called ``2.0``.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import FileFormatError, arrow
from napsets.files.formats import open_table
from napsets.files.ids import NodeIds, NodeRows, listed, looks_integer, read_node_rows
from napsets.files.outputs import number_column
from napsets.files.reading import PLAIN, Reading

if TYPE_CHECKING:
    import pyarrow as pa

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class NodeTruth:
    """The truth about nodes."""

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
    codes, names = class_indices(rows, class_names, notes, skip_unknown=reading.skip_unknown and not strict)
    _note_missing(rows, codes < 0, "label: an empty cell, NaN or −1", notes)
    kind, types = rows.columns["label"].type, arrow().types
    numbers = types.is_integer(kind) or types.is_floating(kind) or not rows.table.typed
    integers = numbers and looks_integer(arrow().array(names, arrow().large_string()))
    return NodeTruth(rows.spread(codes, -1), names, integers)


def read_label_rows(
    path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> NodeRows:
    """Read the rows of a file of labels, as `read_labels` does."""
    return read_node_rows(open_table("labels", path, reading), nodes, "label", notes=notes, text=("node", "label"))


def read_targets(
    path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> FloatArray:
    """Read a table with the columns ``node`` and ``target`` into one number for each of `nodes`, NaN where unknown."""
    table = open_table("labels", path, reading)
    column = "target" if reading.header else "label"  # as the second column is called where columns have no names
    rows = read_node_rows(table, nodes, column, notes=notes)
    numbers = number_column(table, rows.columns[column], column, rows.ids, empty=True).astype(np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    _note_missing(rows, np.isnan(numbers), "target: an empty cell, NaN or infinite", notes)
    return rows.spread(numbers, np.nan)


def _note_missing(rows: NodeRows, missing: npt.NDArray[np.bool_], what: str, notes: list[str] | None) -> None:
    count = int(missing.sum())
    if count and notes is not None:
        notes.append(f"{count:,} of the {missing.size:,} rows of `labels` ({rows.table.path}) have no {what}")


def read_nodes(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None) -> IntArray:
    """Read a table with the column ``node`` into places among `nodes`, in the order of the file."""
    places = read_node_rows(open_table("nodes", path, reading), nodes, notes=notes).places
    return places[places >= 0].astype(np.int64)


def read_groups(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN) -> npt.NDArray[np.str_]:
    """Read a table with the columns ``node`` and ``group`` into the name of the group of each of `nodes`.

    A node that is not there, or whose group is an empty cell, is in none: its name is empty.
    """
    rows = read_node_rows(open_table("groups", path, reading), nodes, "group", text=("node", "group"))
    if not rows.places.size:
        raise FileFormatError(f"`groups` must have at least one row; {rows.table.path} has none")
    return rows.spread(np.array(column_texts(rows, "group").fill_null("").to_pylist(), dtype=np.str_), "")


def column_texts(rows: NodeRows, column: str) -> pa.ChunkedArray:
    """Return names or numbers as text, null where there is none: an empty cell, or NaN in a column of numbers."""
    pa = arrow()
    pc, types, values = pa.compute, pa.types, rows.columns[column]
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if types.is_floating(values.type):
        # What pandas makes of integers with gaps: a number is written as it would be in a column of integers.
        values = values.cast(pa.float64())
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53))
        integers = pc.if_else(whole, values, 0.0).cast(pa.int64())
        values = pc.if_else(whole, integers.cast(pa.large_string()), values.cast(pa.large_string()))
    if types.is_nested(values.type) or types.is_temporal(values.type) or types.is_binary(values.type):
        raise FileFormatError(
            f"`{rows.table.name}` must hold names or numbers in its column {column}; in {rows.table.path} it is "
            f"{values.type}"
        )
    return values.cast(pa.large_string())


# -- labels as classes -------------------------------------------------------------------------------------------------

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0*")

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")

#: Labels for which a similar name is looked for.
_LOOKED_AT = 20


class ClassNames:
    """The classes of a table, to be found by name or by number."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._places = {_plain(name): y for y, name in reversed(list(enumerate(self.names)))}
        self._places |= {name: y for y, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def named(self, text: str) -> int:
        """Return the class of that name, −1 where there is none."""
        return self._places.get(text, self._places.get(_plain(text), -1))

    def numbered(self, text: str) -> int:
        """Return the class of that number, −1 where there is none."""
        plain = _plain(text)
        inside = re.fullmatch("0|[1-9][0-9]{0,8}", plain) and int(plain) < len(self.names)
        return int(plain) if inside else -1

    def is_missing(self, text: str) -> bool:
        """Whether a text stands for no label: nothing, or −1 where no class is called so."""
        return text == "" or (_plain(text) == "-1" and self.named(text) < 0)


def class_indices(
    rows: NodeRows, class_names: Sequence[str] | None, notes: list[str] | None = None, *, skip_unknown: bool = False
) -> tuple[IntArray, list[str]]:
    """Turn the labels of rows into class indices, −1 where there is none; return the classes too.

    A null, an empty text and −1 stand for no label. Labels are names where some label is one, and otherwise numbers
    from 0. Without `class_names` the distinct labels are the classes. `notes` says that labels were read as numbers or,
    with `skip_unknown`, left out.
    """
    texts, path = column_texts(rows, "label"), rows.table.path
    encoded = texts.combine_chunks().dictionary_encode()
    distinct: list[str] = encoded.dictionary.to_pylist()
    classes = ClassNames(_distinct_classes(rows, distinct) if class_names is None else class_names)
    known = [text for text in distinct if not classes.is_missing(text)]
    named = not known or any(classes.named(text) >= 0 for text in known)
    find = classes.named if named else classes.numbered
    strange = [text for text in known if find(text) < 0]
    if strange and not skip_unknown:
        row = rows.at(arrow().compute.index(texts, strange[0]).as_py())
        raise FileFormatError(
            f"`labels` must be class names ({listed(classes.names)}) or class numbers from 0 to {len(classes) - 1}, "
            f"not both; {path} has {len(strange)} other label{'s' * (len(strange) != 1)}: "
            f"{listed(strange)}, first in {row}. {_remedy(known, strange, classes)}"
        )
    if strange and notes is not None:
        notes.append(f"left out: rows of {path} with labels that are not classes: {listed(strange)}")
    elif not named and notes is not None:
        first = ", ".join(f"{y} is {text!r}" for y, text in enumerate(classes.names[:3]))
        more = ", …" if len(classes) > 3 else ""
        notes.append(
            f"the labels of {path} are not names of classes and were read as class numbers from 0 ({first}{more})"
        )
    codes = np.array([-1 if classes.is_missing(text) else find(text) for text in distinct] + [-1], dtype=np.int64)
    place = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return codes[place], classes.names


def sorted_names(names: Sequence[str]) -> list[str]:
    """Sort class names, numbers by value."""
    digits = {name: name.lstrip("0") if name.isdecimal() else "" for name in names}
    return sorted(names, key=lambda name: (not name.isdecimal(), len(digits[name]), digits[name], name))


def _distinct_classes(rows: NodeRows, distinct: Sequence[str]) -> list[str]:
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


def _remedy(known: Sequence[str], strange: Sequence[str], classes: ClassNames) -> str:
    """Describe what labels that are no classes may mean."""
    count, numbers = len(classes), {_plain(text) for text in known}
    if numbers <= {str(y) for y in range(1, count + 1)} and str(count) in numbers:
        return "They seem to count the classes from 1: subtract 1, so that the first class is 0."
    spaced = next((text for text in strange if text != text.strip() and classes.named(text.strip()) >= 0), None)
    guess = next((pair for text in strange[:_LOOKED_AT] if (pair := _guess(text, classes))), None)
    remedy = "Name the columns of `probabilities` as the labels are named."
    if spaced is not None:
        remedy = f"Remove the spaces around them: {spaced!r} should be {spaced.strip()!r}."
    elif guess is not None:
        remedy = f"{guess[0]!r}: did you mean {guess[1]!r}?"
    return remedy + " If they stand for unknown labels, add --skip-unknown, which leaves these nodes out."


def _guess(text: str, classes: ClassNames) -> tuple[str, str] | None:
    """Return a label with the class that it resembles most, if any."""
    lower = {name.lower(): name for name in classes.names}
    near = [lower[text.lower()]] if text.lower() in lower else difflib.get_close_matches(text, classes.names, 1)
    return (text, near[0]) if near else None


def _plain(text: str) -> str:
    """Return a whole number without its decimal point, and any other text as it is."""
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else "0" if whole[1] == "-0" else whole[1]
