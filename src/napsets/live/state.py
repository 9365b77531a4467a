"""The state of a living graph, which is the fold of its log: ids, columns and neighbours of nodes, with room to grow.

Nodes have slots, which ascend with their arrival and are never reused. `State.batch` gives the present nodes to a batch
calibration, in the order of their slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import shown
from napsets.edges import compress
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.kernels import growing
from napsets.methods.data import CalibrationData
from napsets.randomness import node_uniforms, split_seed

Array = npt.NDArray[Any]
FeatureRows = npt.NDArray[np.float32]
#: An id: 1 and "1" are two nodes.
NodeId = int | str


class GrowingTable:
    """Columns that grow together at their end, in amortised constant time per row.

    It starts with an array without rows for each column. `buffers` holds each column with its spare rows at the end.
    """

    def __init__(self, **buffers: Array) -> None:
        self.buffers, self.size = buffers, 0

    def __getitem__(self, name: str) -> Array:
        return self.buffers[name][: self.size]

    def extend(self, count: int, **values: object) -> None:
        """Add rows with these values; in other columns their entries are not set."""
        before = self.size
        capacity, size = next(iter(self.buffers.values())).shape[0], self.size + count
        if size > capacity:
            # A first batch that is large is often the only one: spare rows are added from the second on.
            capacity = size if self.size == 0 else max(size, self.size + self.size // 2 + 8)
            for name, old in self.buffers.items():
                self.buffers[name] = np.empty((capacity, *old.shape[1:]), dtype=old.dtype)
                self.buffers[name][: self.size] = old[: self.size]
        self.size = size
        for name, value in values.items():
            self.buffers[name][before:size] = value

    def hold(self, columns: dict[str, Array]) -> None:
        """Hold other columns, of as many rows as they have."""
        self.buffers, self.size = columns, next(iter(columns.values())).shape[0]

    def drop(self, row: int) -> None:
        """Remove a row; the last one takes its place."""
        self.size -= 1
        for buffer in self.buffers.values():
            buffer[row] = buffer[self.size]


class Names:
    """The id of each slot, and the slot of each id. Slots are never used again: they ascend with arrival.

    While the ids are 0, 1, 2, … in the order of their slots, nothing is stored.
    """

    def __init__(self) -> None:
        self.size = 0
        self._ids: list[NodeId | None] | None = None
        self._slots: dict[NodeId | None, int] = {}

    def add(self, ids: Array) -> None:
        """Give the next slots to new ids."""
        if self._ids is None and not (
            ids.dtype == np.int64 and np.array_equal(ids, np.arange(self.size, self.size + ids.size))
        ):
            self._spell_out()
        if self._ids is not None:
            self._slots.update(zip(ids.tolist(), range(self.size, self.size + ids.size), strict=True))
            self._ids.extend(ids.tolist())
        self.size += ids.size

    def restore(self, ids: Array) -> None:
        """Take the ids of all slots, as `of` gave them: None where there is no node any more."""
        self.add(ids)
        self._slots.pop(None, None)

    def remove(self, slot: int) -> None:
        """Remove an id; its slot stays empty."""
        self._spell_out()
        assert self._ids is not None
        del self._slots[self._ids[slot]]
        self._ids[slot] = None

    def _spell_out(self) -> None:
        if self._ids is None:
            self._ids = list(range(self.size))
            self._slots = dict(zip(self._ids, range(self.size), strict=True))

    def find(self, ids: Array) -> IntArray:
        """Return the slot of each id, −1 where there is none."""
        if self._ids is None:
            if ids.dtype != np.int64:
                ids = np.array([item if isinstance(item, int) else -1 for item in ids], dtype=np.int64)
            return np.where((ids >= 0) & (ids < self.size), ids, -1)
        slots = self._slots
        return np.fromiter((slots.get(item, -1) for item in ids.tolist()), dtype=np.int64, count=ids.size)

    def known(self, name: str, ids: Array) -> IntArray:
        """Return the slot of each id, all of which must be there."""
        slots = self.find(ids)
        if (slots < 0).any():
            raise unknown(name, ids[slots < 0])
        return slots

    def of(self, slots: IntArray) -> Array:
        """Return the ids of slots: int64 where all are integers, otherwise Python objects."""
        if self._ids is None:
            return slots.astype(np.int64)
        items = as_objects([self._ids[slot] for slot in slots.tolist()])
        whole = all(isinstance(item, int) for item in items)
        return items.astype(np.int64) if whole else items


def as_objects(items: Sequence[object]) -> Array:
    """Return an array of Python objects, which NumPy would otherwise convert."""
    objects = np.empty(len(items), dtype=object)
    objects[:] = items
    return objects


def unknown(name: str, missing: Array) -> InvalidInputError:
    """Return the error for ids that no node has."""
    return InvalidInputError(
        f"`{name}` must hold ids of nodes that are there; {missing.size} are not, {shown(missing.tolist()[0])} first"
    )


class GrowingAdjacency:
    """Neighbours of each slot, ascending, with room to grow."""

    def __init__(self, directed: bool) -> None:
        self.directed = directed
        self.edges = 0  #: stored entries: an undirected edge counts twice
        #: Where each row starts, its size, and its room.
        self._table = GrowingTable(**dict.fromkeys(("starts", "sizes", "rooms"), np.empty(0, dtype=np.int64)))
        self.columns: Array = np.empty(0, dtype=np.int32)
        self._used = 0

    def add_nodes(self, count: int) -> None:
        """Enter nodes without neighbours."""
        self._table.extend(count, starts=0, sizes=0, rooms=0)

    def add_edges(self, source: IntArray, target: IntArray) -> None:
        """Enter edges; existing edges and loops change nothing."""
        if source.size > max(1 << 12, self.edges // 8):
            self._rebuild(source, target)
            return
        source, target = self._in_order(source, target)
        table, done = self._table, 0
        while True:
            handled, added, self._used = growing.insert_edges(
                source[done:], target[done:], *(table[name] for name in table.buffers), self.columns, self._used
            )
            self.edges += int(added)
            done += int(handled)
            if done == source.size:
                break
            row = source[done]
            wanted = np.searchsorted(source, row, "right") - done
            self._make_room(2 * int(table["sizes"][row]) + int(wanted) + 8)

    def remove_edges(self, source: IntArray, target: IntArray) -> None:
        """Remove edges."""
        self.edges -= int(growing.remove_edges(*self._in_order(source, target), *self.rows))

    def _in_order(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
        """Return edges ascending, each once and without loops; in both directions if they have none."""
        if not self.directed:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        different, size = source != target, self._table.size
        rows, columns = np.divmod(np.unique(source[different] * size + target[different]), size)
        return rows, columns

    def remove_nodes(self, slots: IntArray) -> None:
        """Remove all edges from and to some slots."""
        if self.directed:
            offsets, columns = self.packed()
            gone = np.zeros(self._table.size, dtype=bool)
            gone[slots] = True
            places = np.flatnonzero(gone[columns])
            ends = np.searchsorted(offsets, places, "right") - 1, columns[places].astype(np.int64)
            self.remove_edges(*ends)
        else:
            self.remove_edges(np.repeat(slots, self._table["sizes"][slots]), self.neighbours(slots))
        self.edges -= int(self._table["sizes"][slots].sum())
        self._table["sizes"][slots] = 0

    def has(self, source: IntArray, target: IntArray) -> npt.NDArray[np.bool_]:
        """Return for each edge whether it is there."""
        present: npt.NDArray[np.bool_] = growing.has_edges(source, target, *self.rows)
        return present

    def neighbours(self, slots: IntArray) -> IntArray:
        """Return the neighbours of slots, those of each ascending."""
        starts, sizes = self._table["starts"][slots], self._table["sizes"][slots]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        neighbours: IntArray = self.columns[np.repeat(starts, sizes) + within].astype(np.int64)
        return neighbours

    @property
    def rows(self) -> growing.GrowingRows:
        """The neighbours of all slots, as kernels see them."""
        return growing.GrowingRows(self._table["starts"], self._table["sizes"], self.columns)

    def packed(self) -> tuple[IntArray, Array]:
        """Return the rows one after another: offsets and columns."""
        offsets = np.concatenate([[0], np.cumsum(self._table["sizes"])])
        packed = np.empty(offsets[-1], dtype=self.columns.dtype)
        growing.pack_rows(*self.rows, offsets, packed)
        return offsets, packed

    def hold(self, offsets: IntArray, columns: Array) -> None:
        """Take rows that ascend, for all slots."""
        self._table.hold({"starts": offsets[:-1].copy(), "sizes": np.diff(offsets), "rooms": np.diff(offsets)})
        self.columns, self._used, self.edges = columns, columns.size, int(columns.size)

    def _rebuild(self, source: IntArray, target: IntArray) -> None:
        """Rebuild all rows, if that is less work than entering edge by edge."""
        if self.edges:
            offsets, columns = self.packed()
            rows = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
            source, target = np.concatenate([rows, source]), np.concatenate([columns.astype(np.int64), target])
        offsets, columns, _ = compress(source, target, self._table.size, self.directed)
        self.hold(offsets, columns.copy() if not columns.flags.writeable else columns)

    def _make_room(self, needed: int) -> None:
        """Make room at the end; pack the rows first if much room is unused."""
        if self._used > 2 * (self.edges + 64):
            self.hold(*self.packed())
        grown = np.empty(self._used + max(needed, self._used // 4 + 1024), dtype=self.columns.dtype)
        grown[: self._used] = self.columns[: self._used]
        self.columns = grown

    def graph(self, kept: IntArray | None = None) -> Graph:
        """Return the graph as it is now, of all slots or of those that are kept."""
        graph = Graph._from_rows(*self.packed(), self.directed)
        if kept is None:
            return graph
        induced = graph.subgraph(kept)
        return Graph._from_rows(induced.indptr, induced.indices, self.directed)


#: Separates the numbers that split labels from those of nodes with the same seed.
_ARRIVALS = 0x6C61_6265_6C73


@lru_cache(maxsize=16)
def _seed_for(seed: int, use: int) -> int:
    """Return the seed of the numbers that split labels (0), order them (1) or break ties (2)."""
    return split_seed(seed, _ARRIVALS + use)


def in_reference(seed: int, numbers: IntArray, share: float) -> npt.NDArray[np.bool_]:
    """Return a mask of the labels that belong to the reference, by a hash of (seed, number of arrival)."""
    reference: npt.NDArray[np.bool_] = node_uniforms(numbers, _seed_for(seed, 0)) < share
    return reference  # all of them where the share is 1: the numbers are below 1


class State:
    """The present nodes, edges and labels; the seed is that of the nodes' uniform numbers."""

    def __init__(self, seed: int, directed: bool, class_names: tuple[str, ...] | None) -> None:
        self.seed, self.class_names = seed, class_names
        self.names = Names()
        self.adjacency = GrowingAdjacency(directed)
        #: By slot. Labels are −1 where unknown, and −2 in slots without a node; numbers are theirs in the order of
        #: arrival, from 0; arrivals say how many labels had come when each node did. Outputs, and features where nodes
        #: have any, join with the first node.
        none, flag = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
        self.nodes = GrowingTable(labels=none, numbers=none, is_reference=flag, arrivals=none, u=np.empty(0))
        self.present = 0
        self.arrived_labels = 0
        self.events = 0
        #: Labelled nodes in the reference, and outside it.
        self.sizes = [0, 0]

    @property
    def classes(self) -> int | None:
        """How many classes there are; None before the first node."""
        if not self.nodes.size:
            return None if self.class_names is None else len(self.class_names)
        return int(self.nodes["outputs"].shape[1])

    # -- changes --------------------------------------------------------------------------------------------------

    @property
    def features(self) -> FeatureRows | None:
        """The features of all slots; None if nodes have none."""
        return self.nodes["features"] if "features" in self.nodes.buffers else None

    def add_nodes(self, ids: Array, probabilities: Array, features: FeatureRows | None = None) -> None:
        """Enter new nodes, all of which have features, or none."""
        rows: dict[str, Array] = {"outputs": probabilities} | ({} if features is None else {"features": features})
        if not self.nodes.size:
            for name, table in rows.items():
                self.nodes.buffers[name] = np.empty((0, table.shape[1]), dtype=table.dtype)
        self.names.add(ids)
        new: dict[str, object] = {"labels": -1, "numbers": -1, "is_reference": False, "arrivals": self.arrived_labels}
        self.nodes.extend(ids.size, **new, u=node_uniforms(ids, self.seed), **rows)
        self.adjacency.add_nodes(ids.size)
        self.present += ids.size

    def add_label(self, slot: int, label: int, reference: bool) -> None:
        """Enter the next label, and whether it belongs to the reference."""
        self.nodes["labels"][slot] = label
        self.nodes["numbers"][slot] = self.arrived_labels
        self.nodes["is_reference"][slot] = reference
        self.arrived_labels += 1
        self.sizes[not reference] += 1

    def remove_labels(self, slots: IntArray) -> None:
        """Remove labels; their numbers are not used again."""
        reference = int(self.nodes["is_reference"][slots].sum())
        self.sizes[0] -= reference
        self.sizes[1] -= slots.size - reference
        self.nodes["labels"][slots] = self.nodes["numbers"][slots] = -1
        self.nodes["is_reference"][slots] = False

    def remove_nodes(self, slots: IntArray) -> None:
        """Remove nodes whose labels were removed before, with their edges."""
        self.adjacency.remove_nodes(slots)
        for slot in slots.tolist():
            self.names.remove(slot)
        self.nodes["labels"][slots] = -2
        self.present -= slots.size

    # -- the present state ---------------------------------------------------------------------------------------------

    def labelled(self) -> IntArray:
        """Return the slots of labelled nodes."""
        return np.flatnonzero(self.nodes["labels"] >= 0)

    def batch(self) -> tuple[CalibrationData, IntArray]:
        """Return the nodes that are there as a batch calibration sees them, with their split, and their slots."""
        slots = np.flatnonzero(self.nodes["labels"] > -2)
        labels, reference = self.nodes["labels"][slots], self.nodes["is_reference"][slots]
        data = CalibrationData(
            self.adjacency.graph(None if slots.size == self.nodes.size else slots),
            self.nodes["outputs"][slots],
            labels,
            np.flatnonzero(labels >= 0),
            self.names.of(slots),
            self.class_names,
            split=(np.flatnonzero(reference), np.flatnonzero((labels >= 0) & ~reference)),
            features=None if self.features is None else self.features[slots],
        )
        return data, slots


def draw_order(seed: int, ids: Array) -> IntArray:
    """Return the order, drawn from the seed, in which the labels of an existing graph count as arrived."""
    return np.argsort(node_uniforms(ids, _seed_for(seed, 1)), kind="stable")


def uniforms(seed: int, events: IntArray) -> FloatArray:
    """Return the uniform number of each event, which breaks ties among scores."""
    return node_uniforms(events, _seed_for(seed, 2))
