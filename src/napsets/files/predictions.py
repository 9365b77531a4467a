"""NodePredictions: what a classifier said of which nodes, in one file that everything downstream reads.

The file is Parquet with the columns ``node``, ``label``, ``split`` and ``probabilities`` (one list per row) and, in its
metadata, the names of dataset, model and classes and the settings. A model trained elsewhere joins in by writing
``node`` and ``probabilities``; the rest is optional.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    IntArray,
    Sealed,
    as_column,
    check_integers,
    check_labels,
    check_probabilities,
    frozen,
    sealed,
)
from napsets.checks.frames import find_rows
from napsets.checks.values import check_names, check_path, check_settings, choose, shown
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import METADATA_KEY, TableFile, open_table
from napsets.files.outputs import list_rows, plain_array, refuse_empty
from napsets.files.paths import reading, replacing
from napsets.files.reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("node", "label", "split", "probabilities")
SPLITS = ("train", "validation", "test", "")


@dataclass(frozen=True, eq=False, repr=False)
class NodePredictions(Sealed):
    """Class probabilities of nodes, with what is known of those nodes.

    Writable arrays are copied.

    Parameters
    ----------
    nodes : array of shape (n,)
        Node ids, each once; all nodes of a graph or some of them.
    probabilities : array of shape (n, classes)
        One row per node, on the simplex.
    labels : array of shape (n,)
        True labels; −1 where unknown.
    split : array of str, optional
        The part each node lay in when the model was trained: train, validation, test, or an empty string.
    dataset, model : str
        Their names.
    settings : mapping
        How the model was trained; anything that JSON can hold.
    class_names : sequence of str, optional
        One name per class.

    Examples
    --------
    >>> NodePredictions([7, 9], [[0.9, 0.1], [0.2, 0.8]], [0, 0]).accuracy
    0.5
    """

    nodes: IntArray
    probabilities: npt.NDArray[np.floating]
    labels: IntArray
    split: npt.NDArray[np.str_] = None  # type: ignore[assignment]  # becomes empty strings
    dataset: str = ""
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        nodes = check_integers("nodes", self.nodes).astype(np.int64, copy=False)
        if nodes.size and (nodes.min() < 0 or np.unique(nodes).size != nodes.size):
            raise InvalidInputError("`nodes` must hold ids of at least 0, each once; some repeat or are negative")
        probabilities = check_probabilities(self.probabilities)
        size, classes = probabilities.shape
        if size != nodes.size:
            raise InvalidInputError(f"`probabilities` must have one row per node, {nodes.size}; got {size}")
        labels = check_labels(self.labels, size=size, num_classes=classes)
        split = np.full(size, "") if self.split is None else as_column("split", self.split)
        if split.dtype.kind not in "UO" or not all(isinstance(part, str) for part in split.flat):
            raise InvalidInputError(f"`split` must hold train, validation, test or nothing; got {shown(self.split)}")
        split = split.astype(str)
        strange = sorted(set(np.unique(split).tolist()) - set(SPLITS))
        if split.shape != (size,) or strange:
            got = repr(strange[0]) if strange else f"shape {split.shape}"
            raise InvalidInputError(f"`split` must hold train, validation, test or nothing for each node; got {got}")
        names = check_names("class_names", self.class_names)
        if names is not None and len(names) != classes:
            raise InvalidInputError(f"`class_names` must have one name per class, {classes}; got {len(names)}")
        for name in ("dataset", "model"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInputError(f"`{name}` must be a name; got {shown(getattr(self, name))}")
        checked = {"nodes": nodes, "probabilities": probabilities, "labels": labels, "split": split}
        for name, array in checked.items():
            object.__setattr__(self, name, frozen(array))
        object.__setattr__(self, "class_names", names)
        object.__setattr__(self, "settings", check_settings(self.settings))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.probabilities.shape[1])

    @property
    def predicted(self) -> IntArray:
        """The most probable class of each node."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def accuracy(self) -> float:
        """Accuracy on the labelled test nodes; on all labelled nodes where no split is known."""
        return self.accuracy_on("test" if "test" in self.split else None)

    def accuracy_on(self, part: str | None) -> float:
        """Accuracy on the labelled nodes of one part of the split, or on all; NaN where there are none."""
        chosen = self.labels >= 0
        if part is not None:
            chosen &= self.split == _part("part", part)
        if not chosen.any():
            return float("nan")
        return float((self.predicted[chosen] == self.labels[chosen]).mean())

    def part(self, name: str) -> IntArray:
        """Return the ids of the nodes in one part of the split."""
        return np.asarray(self.nodes[self.split == _part("name", name)])

    def take(self, nodes: ArrayLike) -> NodePredictions:
        """Return the predictions of some nodes, by their ids and in that order.

        Handy together with ``graph.subgraph(nodes)``, whose node i is then row i.
        """
        wanted = check_integers("nodes", nodes).astype(np.int64, copy=False)
        rows = find_rows(self.nodes, wanted)
        missing = np.flatnonzero(rows < 0)
        if missing.size:
            raise InvalidInputError(f"`nodes` must have predictions; node {wanted[missing[0]]} has none")
        return replace(
            self,
            nodes=wanted,
            probabilities=sealed(self.probabilities[rows]),
            labels=sealed(self.labels[rows]),
            split=sealed(self.split[rows]),
        )

    def __len__(self) -> int:
        return self.nodes.size

    def __repr__(self) -> str:
        return (
            f"NodePredictions({len(self):,} nodes, {self.num_classes} classes, dataset {self.dataset!r}, "
            f"model {self.model!r}, accuracy {self.accuracy:.3f})"
        )

    # -- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the predictions to a ``.parquet`` file, whole or not at all; return its path."""
        target = check_path("path", path)
        if target.suffix != ".parquet":
            raise InvalidInputError(f"`path` must end in .parquet; got {target.name!r}")
        names = {"dataset": self.dataset, "model": self.model, "class_names": self.class_names}
        try:
            text = json.dumps(names | {"settings": dict(self.settings)})
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"`settings` must be something that JSON can hold: {error}") from error
        with replacing(target) as draft:
            self._write(draft, text)
        return target

    def _write(self, path: Path, text: str) -> None:
        pa, rows = arrow(), self.probabilities
        small = rows.size < 2**31
        offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32 if small else np.int64)
        lists = (pa.ListArray if small else pa.LargeListArray).from_arrays(offsets, pa.array(rows.ravel()))
        columns = {"node": self.nodes, "label": self.labels, "split": self.split, "probabilities": lists}
        pa.parquet.write_table(pa.table(columns).replace_schema_metadata({METADATA_KEY: text.encode()}), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NodePredictions:
        """Read a file that `save`, or anyone else, wrote."""
        source = check_path("path", path)
        table = open_table("path", source, Reading(format="parquet"))
        table.require("node", "probabilities")
        about = table.about()
        rows = table.read([name for name in COLUMNS if name in table.columns]).combine_chunks()
        if not len(rows):
            raise FileFormatError(f"`path` must have at least one row; {source} has none")
        columns = {name: _plain_column(table, rows.column(name).combine_chunks(), name) for name in rows.column_names}
        with reading(source, "path", folder=True):
            return cls(
                columns["node"],
                columns["probabilities"],
                columns.get("label", np.full(columns["node"].shape, -1)),
                columns.get("split"),  # type: ignore[arg-type]  # None becomes empty strings
                about.get("dataset", ""),
                about.get("model", ""),
                about.get("settings", {}),
                about.get("class_names"),
            )


def _part(argument: str, name: str) -> str:
    return choose(argument, name, {part: part for part in SPLITS})


def _plain_column(table: TableFile, values: pa.Array, column: str) -> npt.NDArray[Any]:
    """Return a column as a sealed array: text as text, numbers as they are, lists of one length as rows."""
    if column == "probabilities":
        return sealed(list_rows(table, values, column, 0))
    if arrow().types.is_dictionary(values.type):
        values = values.dictionary_decode()
    refuse_empty(table, column, values)
    array = plain_array(values)
    return sealed(array.astype(str) if array.dtype == object else array)
