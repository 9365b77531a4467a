"""Reading what is known of nodes: labels, numbers, groups, and lists of nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import FileFormatError, arrow
from napsets.files.cells import numbers_or_nan
from napsets.files.classes import class_indices
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, NodeRows, looks_integer
from napsets.files.reading import PLAIN, Reading

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class NodeTruth:
    """What is true of nodes.

    Attributes
    ----------
    values : numpy.ndarray
        A class index for each node, −1 where it has no label; or a number, NaN where it is unknown.
    class_names : list of str or None
        The classes, where there are some.
    integers : bool
        Whether labels are integers in the file, so that they can come back as such: every class is called by an
        integer, and the file has numbers; or text that looks so, if it is CSV.
    """

    values: npt.NDArray[Any]
    class_names: list[str] | None = None
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

    Parameters
    ----------
    path : path
        Parquet, CSV, JSON Lines or npz. A node that is not there, or whose label is an empty cell, NaN in a column
        of numbers, or −1 (unless a class is called so), is unlabelled.
    nodes : NodeIds
        The nodes.
    class_names : sequence of str or None
        The classes. With None, the distinct labels are the classes.
    reading : Reading
        How it is read. ``2.0`` is read as ``2`` where no class is called ``2.0``.
    notes : list, optional
        Where it is said what was left out, and how the labels were read.
    strict : bool
        Refuse labels that are not classes, also where rows of unknown nodes are left out.
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
    """The rows of a file of labels.

    Attributes
    ----------
    table : TableFile
        The file.
    places : numpy.ndarray
        The place of each row's node, −1 where it is unknown and to be left out; no other is there twice.
    texts : pyarrow.Array
        Each row's label as text, null where there is none.
    named : bool
        Whether the file says that its labels are text.
    more : dict
        Further columns, each a list of Arrow arrays.
    """

    table: TableFile
    places: IntArray
    texts: Any
    named: bool
    more: dict[str, list[Any]]


def read_label_rows(
    path: PathLike,
    nodes: NodeIds,
    reading: Reading = PLAIN,
    *,
    notes: list[str] | None = None,
    more: Sequence[str] = (),
) -> LabelRows:
    """Read the rows of a file of labels, with those of the columns `more` that it has; the rest as in `read_labels`."""
    pa = arrow()
    table = open_table("labels", path, reading)
    table.require("node", "label")
    others: dict[str, list[Any]] = {column: [] for column in more if column in table.columns}
    rows, texts, named = NodeRows(table, nodes), [], False
    for batch in rows.batches("label", *others):
        kind = batch.column("label").type
        named |= table.typed and not (pa.types.is_integer(kind) or pa.types.is_floating(kind))
        texts.append(_label_texts(table, batch.column("label")))
        for column, parts in others.items():
            parts.append(batch.column(column))
    return LabelRows(table, rows.places(notes), _joined(texts), named, others)


def read_targets(
    path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> FloatArray:
    """Read a table with the columns ``node`` and ``target`` into one number for each of `nodes`, NaN where unknown."""
    table = open_table("labels", path, reading)
    table.require("node", "target")
    rows = NodeRows(table, nodes)
    columns = [numbers_or_nan(table, batch.column("target"), "target") for batch in rows.batches("target")]
    places = rows.places(notes)
    numbers = np.concatenate([np.empty(0), *columns])
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


def read_target_truth(
    path: PathLike, nodes: NodeIds, class_names: object, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> NodeTruth:
    """Read numbers as `read_labels` reads labels; there are no classes."""
    return NodeTruth(read_targets(path, nodes, reading, notes=notes))


def read_nodes(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None) -> IntArray:
    """Read a table with the column ``node`` into places among `nodes`, in the order of the file."""
    table = open_table("nodes", path, reading)
    table.require("node")
    rows = NodeRows(table, nodes)
    for _ in rows.batches():
        pass
    places = rows.places(notes)
    return places[places >= 0]


def read_groups(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN) -> npt.NDArray[Any]:
    """Read a table with the columns ``node`` and ``group`` into the name of the group of each of `nodes`.

    Parameters
    ----------
    path : path
        Any format that `napsets` reads. A node that is not there, or whose group is an empty cell, is in none.
    nodes : NodeIds
        The nodes.
    reading : Reading
        How it is read.

    Returns
    -------
    numpy.ndarray
        Text, empty where a node is in no group.
    """
    table = open_table("groups", path, reading)
    table.require("node", "group")
    rows = NodeRows(table, nodes)
    texts = [_label_texts(table, batch.column("group")) for batch in rows.batches("group")]
    places = rows.places()
    if not places.size:
        raise FileFormatError(f"`groups` must have at least one row; {table.path} has none")
    names = np.array(_joined(texts).fill_null("").to_pylist(), dtype=np.str_)
    groups = np.zeros(len(nodes), dtype=names.dtype if names.size else "<U1")
    groups[places[places >= 0]] = names[places >= 0]
    return groups


def _joined(texts: list[Any]) -> Any:
    """Return texts of several batches as one array."""
    pa = arrow()
    return pa.chunked_array(texts, type=pa.large_string()).combine_chunks()


def _label_texts(table: TableFile, column: Any) -> Any:
    """Return labels as text, null where there is none: an empty cell, or NaN in a column of numbers."""
    pa = arrow()
    pc = pa.compute
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        # What pandas makes of integers with gaps: a number is written as it would be in a column of integers.
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 2.0**53))
        integers = pc.if_else(whole, column, pa.scalar(0.0, column.type)).cast(pa.int64())
        column = pc.if_else(whole, integers.cast(pa.large_string()), column.cast(pa.large_string()))
    if pa.types.is_null(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise FileFormatError(
            f"`labels` must be class names or class numbers; the column label of {table.path} is {column.type}"
        )
    return column.cast(pa.large_string())
