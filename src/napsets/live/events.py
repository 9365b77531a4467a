"""The events of a living graph: what they hold, how they are checked, and how batches of them are written as bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray, as_array, as_column, check_known, check_probabilities, refuse_masked
from napsets.checks.frames import label_numbers
from napsets.checks.values import check_list, choose, shown
from napsets.errors import InvalidInputError, Surface
from napsets.features import check_features
from napsets.live.monitoring import ALARMS
from napsets.live.state import Array, FeatureRows, NodeId, State, as_objects, unknown
from napsets.live.steering import Steered
from napsets.randomness import encoded_id

#: The columns of each kind of event.
KINDS: dict[str, tuple[str, ...]] = {
    "add nodes": ("ids", "probabilities"),  # and "features", if nodes have any
    "add edges": ("source", "target"),
    "add labels": ("ids", "labels", "times"),
    "set probabilities": ("ids", "probabilities"),
    "remove labels": ("ids",),
    "remove nodes": ("ids",),
    "remove edges": ("source", "target"),
    "refit": (),
    "reset alarms": ("names",),
    "steer": ("kinds", "rates"),
    "predictions": ("ids", "alpha", "level", "member"),
}

Helps = Mapping[Surface, str] | None
#: How to replace outputs and labels that are there.
_REPLACE: Helps = {
    "python": "Pass them to set_probabilities to replace their outputs.",
    "terminal": "Pass them as --probabilities to replace their outputs.",
    "http": "To replace their outputs, send them to POST /probabilities.",
}
_CORRECT: Helps = {
    "python": "Remove it first (remove_labels) to replace it.",
    "terminal": "Pass it as --correct to replace it.",
    "http": "To replace it, send it to PUT /labels.",
}


@dataclass(frozen=True, eq=False)
class Change:
    """Events of one kind, in order."""

    kind: str  #: One of `KINDS`.
    columns: Mapping[str, Array]  #: One entry per event in each column that the kind has.

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 1

    def __getitem__(self, rows: slice) -> Change:
        """Return some of the events."""
        return Change(self.kind, {name: column[rows] for name, column in self.columns.items()})


def as_ids(name: str, value: object) -> Array:
    """Return node ids as an array: int64 where all are integers, otherwise Python objects, integers and texts.

    Examples
    --------
    >>> as_ids("ids", ["a", 1, "1"])
    array(['a', 1, '1'], dtype=object)
    >>> as_ids("ids", 7)
    array([7])
    """
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        value = [value]
    # NumPy would turn 1 into "1" beside a text, and cut zeros off the end of one: lists of Python objects stay such.
    if isinstance(value, list | tuple) and any(isinstance(item, str) for item in value):
        refuse_masked(name, value)
        items = as_objects(value)
    else:
        items = as_column(name, value)
    if items.ndim != 1:
        raise InvalidInputError(f"`{name}` must have one dimension, one id per entry; got shape {items.shape}")
    if items.dtype.kind in "iu" and (items.dtype != np.uint64 or not items.size or items.max() < 2**63):
        return items.astype(np.int64, copy=False)
    if items.size == 0:
        return np.empty(0, dtype=np.int64)
    if items.dtype.kind in "UO":
        return _checked_objects(name, items.astype(object))
    raise InvalidInputError(f"`{name}` must hold integers below 2^63 or texts; got dtype {items.dtype}")


def _checked_objects(name: str, items: Array) -> Array:
    whole = True
    for place, item in enumerate(items):
        if isinstance(item, str):
            whole = False
            encoded_id(name, item)
            items[place] = str(item)
        elif isinstance(item, int | np.integer) and not isinstance(item, bool) and -(2**63) <= item < 2**63:
            items[place] = int(item)
        else:
            raise InvalidInputError(f"`{name}` must hold integers below 2^63 or texts; entry {place} is {shown(item)}")
    return items.astype(np.int64) if whole else items


def pack(columns: Mapping[str, Array]) -> bytes:
    """Write columns as bytes: a line of JSON that describes the arrays, then the arrays one after another."""
    head: dict[str, list[object]] = {}
    parts: list[bytes] = []
    for name, column in columns.items():
        if column.dtype == object:
            parts.append(json.dumps(column.tolist(), ensure_ascii=False).encode())
            head[name] = ["ids", len(parts[-1])]
        else:
            plain = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            parts.append(plain.tobytes())
            head[name] = [plain.dtype.str, len(parts[-1]), list(plain.shape)]
    return b"".join([json.dumps(head).encode(), b"\n", *parts])


def unpack(payload: bytes) -> dict[str, Array]:
    """Read what `pack` wrote."""
    end = payload.index(b"\n")
    columns, start = {}, end + 1
    for name, (dtype, size, *shape) in json.loads(payload[:end]).items():
        part = payload[start : start + size]
        if dtype == "ids":
            columns[name] = as_objects(json.loads(part))
        else:
            columns[name] = np.frombuffer(part, dtype=dtype).reshape(shape[0])
        start += size
    return columns


# -- checks of a whole batch before anything changes ------------------------------------------------------------------


class Draft:
    """Changes that were checked one after another, each against the state after those before it.

    Those of a batch that is in the log already (`repeated`) are read, but not compared with the present state.
    """

    def __init__(self, state: State, *, compares: bool = False, repeated: bool = False) -> None:
        #: Whether the method compares nodes by their features.
        self.compares = compares
        self.state, self.repeated = state, repeated
        self.changes: list[Change] = []
        self._classes = state.classes
        self._dtype = state.nodes["outputs"].dtype if state.nodes.size else None
        #: How many columns the features of nodes have; 0 if nodes have none, None before the first node.
        self._columns = None if self._dtype is None else 0 if state.features is None else state.features.shape[1]
        #: Where the batch has changed it: the label of a node, coded as in `State`, and whether there is an edge.
        self._labels: dict[NodeId, int] = {}
        self._edges: dict[tuple[NodeId, NodeId], bool] = {}
        #: Nodes that the batch has removed: no edge of theirs is left, although the ids may be used again.
        self._gone: set[NodeId] = set()
        #: Nodes and their new labels, or edges that come; written out only if a later change of the batch needs them.
        self._later: list[tuple[tuple[Array, ...], int]] = []

    def add_nodes(self, ids: object, probabilities: object, features: object = None) -> None:
        """Enter new nodes."""
        names = as_ids("ids", ids)
        rows = self._rows(names, probabilities)
        self._refuse(names, self._labels_of(names) > -2, "new", "are there already", _REPLACE)
        _refuse_repeats("ids", names)
        table = self._features(names, features)
        self._later.append(((names,), -1))
        self._enter("add nodes", ids=names, probabilities=rows, **({} if table is None else {"features": table}))

    def set_probabilities(self, ids: object, probabilities: object) -> None:
        """Replace the outputs of nodes."""
        rows = self._rows(as_ids("ids", ids), probabilities)
        self._enter("set probabilities", ids=self._existing(ids), probabilities=rows)

    def add_edges(self, source: object, target: object) -> None:
        """Enter edges; one that exists already changes nothing."""
        ends = self._ends(source, target)
        self._later.append((ends, True))
        self._enter("add edges", source=ends[0], target=ends[1])

    def remove_edges(self, source: object, target: object) -> None:
        """Remove edges, all of which must exist, each once."""
        ends = self._ends(source, target)
        slots = [self.state.names.find(names) for names in ends]
        old = (slots[0] >= 0) & (slots[1] >= 0)
        there = np.zeros(old.size, dtype=bool)
        there[old] = self.state.adjacency.has(slots[0][old], slots[1][old])
        self._write_out()
        for i, pair in enumerate(zip(*(names.tolist() for names in ends), strict=True)):
            before = bool(there[i]) and self._gone.isdisjoint(pair)
            if not (self._edges.get(self._pair(*pair), before) or self.repeated):
                raise InvalidInputError(
                    f"`source` and `target` must be edges that are there; {shown(pair[0])} to {shown(pair[1])} is not"
                )
            self._edges[self._pair(*pair)] = False
        self._enter("remove edges", source=ends[0], target=ends[1])

    def add_labels(self, ids: object, labels: object) -> None:
        """Enter labels of nodes that have none."""
        names = self._existing(ids)
        self._refuse(names, self._labels_of(names) >= 0, "of nodes without a label", "have one", _CORRECT)
        numbers = label_numbers(np.atleast_1d(as_column("labels", labels)), self.state.class_names)
        column = check_known(numbers, size=names.size, num_classes=int(self._classes or 0))
        self._later.append(((names,), 0))
        self._enter("add labels", ids=names, labels=column, times=np.full(names.size, time.time()))

    def remove_labels(self, ids: object) -> None:
        """Remove labels that turned out to be wrong, or may not be kept."""
        names = self._existing(ids)
        self._refuse(names, self._labels_of(names) < 0, "of nodes with a label", "have none")
        self._later.append(((names,), -1))
        self._enter("remove labels", ids=names)

    def remove_nodes(self, ids: object) -> None:
        """Remove nodes, with their edges and labels."""
        names = self._existing(ids)
        self._later.append(((names,), -2))
        self._write_out()
        gone = set(names.tolist())
        self._gone |= gone
        self._edges |= {pair: False for pair in self._edges if not gone.isdisjoint(pair)}
        self._enter("remove nodes", ids=names)

    def refit(self) -> None:
        """Choose and fit again."""
        self._enter("refit")

    def reset_alarms(self, names: object = ALARMS) -> None:
        """Start alarms again, as if no label had come."""
        chosen = check_list("names", [names] if isinstance(names, str) else names, "names of alarms")
        for name in chosen:
            choose("names", name, dict.fromkeys(ALARMS))
        self._enter("reset alarms", names=as_objects(chosen))

    def steer(self, kind: object, rate: object = None) -> None:
        """Let the level follow drift from now on, or stay at alpha if `kind` is None."""
        steered = None if kind is None else Steered(kind, rate)  # type: ignore[arg-type]
        if steered is None and rate is not None:
            raise InvalidInputError(f"`rate` must be None if the level is not steered; got {shown(rate)}")
        rates = np.array([np.nan if steered is None or steered.rate is None else steered.rate])
        self._enter("steer", kinds=as_objects(["" if steered is None else steered.kind]), rates=rates)

    def _enter(self, kind: str, **columns: Array) -> None:
        change = Change(kind, columns)
        if len(change):
            self.changes.append(change)

    # -- checks --------------------------------------------------------------------------------------------------------

    def _rows(self, names: Array, probabilities: object) -> Array:
        array = as_array("probabilities", probabilities)
        if array.size == names.size == 0:
            return array
        rows = check_probabilities(np.atleast_2d(array))
        if rows.shape[0] != names.size:
            raise InvalidInputError(f"`probabilities` must have one row per id, {names.size}; got {rows.shape[0]}")
        if self._classes is not None and rows.shape[1] != self._classes:
            raise InvalidInputError(
                f"`probabilities` must have one column per class, {self._classes}; got {rows.shape[1]} columns"
            )
        if self._dtype is not None:  # JSON and CSV have no type of their own: all rows have that of the first nodes
            rows = rows.astype(self._dtype, copy=False)
        self._classes, self._dtype = rows.shape[1], rows.dtype
        return rows

    def _features(self, names: Array, features: object) -> FeatureRows | None:
        """Check the features of new nodes: the first nodes decide whether there are any, and how many columns."""
        if features is None:
            if self._columns and names.size:
                raise InvalidInputError(
                    f"`features` must be given for every node, because those of the first nodes were: the method "
                    f"compares nodes by their {self._columns} features; got None"
                )
            self._columns = 0 if names.size else self._columns
            return None
        if not self.compares:
            raise InvalidInputError("`features` must be None: this method does not compare nodes by their features")
        if self._columns == 0:
            raise InvalidInputError("`features` must be None: the nodes that came first have none")
        if hasattr(features, "tocsr"):
            raise InvalidInputError(
                "`features` must be a dense table in a living graph; got a sparse matrix. Pass fewer columns, for "
                "example those of scikit-learn's TruncatedSVD."
            )
        table = np.atleast_2d(as_array("features", features))
        if table.size == names.size == 0:
            return None
        rows = check_features("features", table, names.size, names)
        assert isinstance(rows, np.ndarray)
        if self._columns is not None and rows.shape[1] != self._columns:
            raise InvalidInputError(
                f"`features` must have {self._columns} columns, as those of the first nodes; got {rows.shape[1]}"
            )
        if not rows.shape[1]:
            raise InvalidInputError("`features` must have at least one column; got none")
        self._columns = rows.shape[1]
        return rows

    def _ends(self, source: object, target: object) -> tuple[Array, Array]:
        ends = as_ids("source", source), as_ids("target", target)
        if ends[0].size != ends[1].size:
            raise InvalidInputError(f"`target` must have one entry per source, {ends[0].size}; got {ends[1].size}")
        for name, names in zip(("source", "target"), ends, strict=True):
            self._refuse_unknown(name, names)
        return ends

    def _existing(self, ids: object) -> Array:
        """Return ids of nodes that are there, each once."""
        names = as_ids("ids", ids)
        self._refuse_unknown("ids", names)
        _refuse_repeats("ids", names)
        return names

    def _refuse_unknown(self, name: str, names: Array) -> None:
        missing = self._labels_of(names) == -2
        if missing.any() and not self.repeated:
            raise unknown(name, names[missing])

    def _refuse(self, names: Array, wrong: npt.NDArray[np.bool_], must_be: str, are: str, helps: Helps = None) -> None:
        if wrong.any() and not self.repeated:
            first = shown(names[wrong].tolist()[0])
            raise InvalidInputError(f"`ids` must be {must_be}; {int(wrong.sum())} {are}, {first} first.", helps)

    def _labels_of(self, names: Array) -> IntArray:
        """Return the labels of nodes after the batch so far, coded as in `State`."""
        self._write_out()
        slots, labels = self.state.names.find(names), np.full(names.size, -2)
        labels[slots >= 0] = self.state.nodes["labels"][slots[slots >= 0]]
        if not self._labels:
            return labels
        pairs = zip(names.tolist(), labels.tolist(), strict=True)
        return np.fromiter((self._labels.get(item, old) for item, old in pairs), dtype=np.int64, count=names.size)

    def _write_out(self) -> None:
        """Enter what was noted, in its order."""
        for columns, value in self._later:
            if len(columns) == 2:
                pairs = zip(*(ends.tolist() for ends in columns), strict=True)
                self._edges.update((self._pair(*pair), True) for pair in pairs if pair[0] != pair[1])
            else:
                self._labels.update(dict.fromkeys(columns[0].tolist(), value))
        self._later.clear()

    def _pair(self, source: NodeId, target: NodeId) -> tuple[NodeId, NodeId]:
        if self.state.adjacency.directed or (isinstance(source, str), source) <= (isinstance(target, str), target):
            return source, target
        return target, source


def _refuse_repeats(name: str, ids: Array) -> None:
    if ids.dtype == np.int64:
        ordered = np.sort(ids)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        repeated = int(again[0]) if again.size else None
    else:
        seen: set[NodeId] = set()
        repeated = next((item for item in ids if item in seen or seen.add(item)), None)  # type: ignore[func-returns-value]
    if repeated is not None:
        raise InvalidInputError(f"`{name}` must not repeat a node; {shown(repeated)} is there twice")
