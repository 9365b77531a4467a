"""From labels as people write them to class indices: by a class's name, or by its number from 0.

A whole number may be written with a decimal point, as pandas writes integers that have gaps: ``2.0`` is ``2``, in every
format, unless a class is called ``2.0``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile
from napsets.files.ids import listed
from napsets.files.reading import LabelsAre

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0*")

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")


class ClassNames:
    """The classes of a table, to be found by name or by number.

    Parameters
    ----------
    names : sequence of str
        One name per class.
    """

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
    """Turn labels as text into class indices, −1 where there is none.

    Parameters
    ----------
    table : TableFile
        Where they are from, for messages.
    texts : pyarrow.Array
        The labels, large strings; a null, an empty text and −1 stand for none.
    class_names : sequence of str or None
        The classes; with None, the distinct labels are the classes.
    labels_are : {"auto", "names", "indices"}
        What a label is. With "auto": names where every label is one, numbers from 0 where none is; a mixture is
        refused.
    notes : list, optional
        A list to which notes on labels read as numbers, and on labels left out, are added.
    skip_unknown : bool
        Leave out labels that are not classes, instead of refusing them.

    Returns
    -------
    indices : numpy.ndarray
        One class per label.
    class_names : list of str
        The classes.
    """
    encoded = texts.dictionary_encode()
    distinct: list[str] = encoded.dictionary.to_pylist()
    classes = ClassNames(_distinct_classes(table, distinct) if class_names is None else class_names)
    known = [text for text in distinct if not classes.is_missing(text)]
    if skip_unknown:
        known = _without_strangers(table, known, classes, labels_are, notes)
    find, kept = _rule(table, known, classes, labels_are, notes), set(known)
    codes = np.array([find(text) if text in kept else -1 for text in distinct] + [-1], dtype=np.int64)
    place = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return codes[place], classes.names


def _without_strangers(
    table: TableFile, known: Sequence[str], classes: ClassNames, labels_are: LabelsAre, notes: list[str] | None
) -> list[str]:
    """Return the labels that are classes, by name or by number as far as that may be; say which others there are."""
    finders = {"names": (classes.named,), "indices": (classes.numbered,)}
    find = finders.get(labels_are, (classes.named, classes.numbered))
    strangers = [text for text in known if all(by(text) < 0 for by in find)]
    if strangers and notes is not None:
        notes.append(f"left out: rows of {table.path} with labels that are not classes: {listed(strangers)}")
    if labels_are == "auto" and any(classes.named(text) >= 0 for text in known):
        strangers = [text for text in known if classes.named(text) < 0]  # numbers among names are not a class here
    return [text for text in known if text not in set(strangers)]


def sorted_names(names: Sequence[str]) -> list[str]:
    """Sort class names, numbers by value."""
    return sorted(names, key=lambda name: (not name.isdecimal(), *_by_value(name)))


def _by_value(name: str) -> tuple[int, str, str]:
    digits = name.lstrip("0") if name.isdecimal() else ""
    return len(digits), digits, name


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
) -> Any:
    """Return the function that finds a label's class, or refuse labels that are ambiguous or not a class."""
    nameless = [text for text in known if classes.named(text) < 0]
    numberless = [text for text in known if classes.numbered(text) < 0]
    if labels_are != "indices" and not nameless:
        return classes.named
    if labels_are == "names":
        other = "" if numberless else "indices"
        raise FileFormatError(_strange(table, nameless, classes, ["names"], other))
    if labels_are == "indices":
        if numberless:
            other = "" if nameless else "names"
            raise FileFormatError(_strange(table, numberless, classes, ["numbers"], other))
        return classes.numbered
    strange = [text for text in nameless if text in set(numberless)]
    if strange:
        raise FileFormatError(_strange(table, strange, classes, ["names", "numbers"], ""))
    if len(nameless) < len(known):
        raise FileFormatError(_mixed(table, known, nameless, numberless))
    if notes is not None:
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


def _strange(table: TableFile, strange: Sequence[str], classes: ClassNames, wanted: Sequence[str], other: str) -> str:
    """Say which labels are not what they should be; `other` is what `labels_are` could be instead, if anything."""
    kinds = {
        "names": f"class names ({listed(classes.names)})",
        "numbers": f"class numbers from 0 to {len(classes) - 1}",
    }
    finders = {"names": classes.named, "numbers": classes.numbered}
    spaced = [
        text for text in strange if text != text.strip() and any(finders[kind](text.strip()) >= 0 for kind in wanted)
    ]
    if other:
        what = "names of classes" if other == "names" else "numbers of classes"
        way = f'All labels are {what}: say so with --labels-are {other} (in Python: labels_are="{other}").'
    elif spaced:
        way = f"Remove the spaces around them: {spaced[0]!r} should be {spaced[0].strip()!r}."
    elif "names" in wanted:
        way = "Name the columns of `probabilities` as the labels are named."
    else:
        way = "Count the classes from 0, in the order of the columns of `probabilities`."
    if not other and table.name == "labels":
        way += " If they stand for unknown labels, add --skip-unknown, which leaves these nodes out."
    allowed = " or ".join(kinds[kind] for kind in wanted)
    others = f"{len(strange)} other{'s' * (len(strange) != 1)}"
    return f"`{table.name}` must be {allowed}; {table.path} has {others}: {listed(strange)}. {way}"


def _are(texts: Sequence[str]) -> str:
    return "is" if len(texts) == 1 else "are"


def _plain(text: str) -> str:
    """Return a whole number without its decimal point, and any other text as it is."""
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else "0" if whole[1] == "-0" else whole[1]
