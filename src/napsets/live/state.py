"""The state of a living graph, which is the fold of its log.

Nodes have slots, which ascend with their arrival and are never reused. `State.batch` gives the present nodes to a batch
calibration, in the order of their slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import InvalidInputError
from napsets.live.nodes import Adjacency, Column, Names
from napsets.methods.data import CalibrationData
from napsets.predictions import PredictionSets
from napsets.randomness import node_uniforms, split_seed

Array = npt.NDArray[Any]

#: Separates the numbers that split labels from those of nodes with the same seed.
_ARRIVALS = 0x6C61_6265_6C73


@lru_cache(maxsize=16)
def _seed_for(seed: int, use: int) -> int:
    """Return the seed of the numbers that split labels (0), order them (1) or break ties (2)."""
    return split_seed(seed, _ARRIVALS + use)


def in_reference(seed: int, numbers: IntArray, share: float) -> npt.NDArray[np.bool_]:
    """Return which labels belong to the reference, by the order of their arrival: a hash of (seed, number)."""
    reference: npt.NDArray[np.bool_] = node_uniforms(numbers, _seed_for(seed, 0)) < share
    return reference  # all of them where the share is 1: the numbers are below 1


@dataclass(frozen=True, eq=False)
class Batch:
    """The present state as a batch calibration sees it."""

    data: CalibrationData  #: The nodes that are there, in the order of their arrival.
    slots: IntArray  #: The slot of each of them.
    #: The two parts of the labelled nodes, ascending.
    reference: IntArray
    level_nodes: IntArray


class State:
    """The present nodes, edges and labels.

    The seed is that of the nodes' uniform numbers and of the split of labels. A share of these is in the reference: all
    of them (1) for methods that hold none out.
    """

    def __init__(self, seed: int, share: float, directed: bool, class_names: tuple[str, ...] | None) -> None:
        self.seed, self.share, self.class_names = seed, share, class_names
        self.names = Names()
        self.adjacency = Adjacency(directed)
        self.outputs: Column | None = None
        self.u = Column(np.empty(0))
        #: −1 where unknown; in slots without a node, −2.
        self.labels = Column(np.empty(0, dtype=np.int64))
        #: The number of each label in the order of arrival, from 0.
        self.numbers = Column(np.empty(0, dtype=np.int64))
        self.is_reference = Column(np.empty(0, dtype=bool))
        #: How many labels had arrived when each node did.
        self.arrivals = Column(np.empty(0, dtype=np.int64))
        self.present = 0
        self.arrived_labels = 0
        self.events = 0
        #: Labelled nodes in the reference, and outside it.
        self.sizes = [0, 0]

    @property
    def classes(self) -> int | None:
        """How many classes there are; None before the first node."""
        if self.outputs is None:
            return None if self.class_names is None else len(self.class_names)
        return int(self.outputs.values.shape[1])

    # -- changes --------------------------------------------------------------------------------------------------

    def add_nodes(self, ids: Array, probabilities: Array) -> None:
        """Enter new nodes."""
        if self.outputs is None:
            self.outputs = Column(np.empty((0, probabilities.shape[1]), dtype=probabilities.dtype))
        self.names.add(ids)
        self.outputs.extend(probabilities)
        self.u.extend(node_uniforms(ids, self.seed))
        self.labels.extend(np.full(ids.size, -1))
        self.numbers.extend(np.full(ids.size, -1))
        self.is_reference.extend(np.zeros(ids.size, dtype=bool))
        self.arrivals.extend(np.full(ids.size, self.arrived_labels))
        self.adjacency.add_nodes(ids.size)
        self.present += ids.size

    def add_label(self, slot: int, label: int, reference: bool) -> None:
        """Enter the next label, and whether it belongs to the reference."""
        self.labels.values[slot] = label
        self.numbers.values[slot] = self.arrived_labels
        self.is_reference.values[slot] = reference
        self.arrived_labels += 1
        self.sizes[not reference] += 1

    def remove_label(self, slot: int) -> None:
        """Remove a label; its number is not used again."""
        self.sizes[not self.is_reference.values[slot]] -= 1
        self.labels.values[slot] = self.numbers.values[slot] = -1
        self.is_reference.values[slot] = False

    def remove_node(self, slot: int) -> None:
        """Remove a node whose label and edges were removed before."""
        self.names.remove(slot)
        self.labels.values[slot] = -2
        self.present -= 1

    # -- the present state ---------------------------------------------------------------------------------------------

    def labelled(self) -> IntArray:
        """Return the slots of labelled nodes."""
        return np.flatnonzero(self.labels.values >= 0)

    def batch(self) -> Batch:
        """Return the present state as a batch calibration sees it."""
        if self.outputs is None:
            raise InvalidInputError("`nodes` must be added first: there is no node yet")
        labels = self.labels.values
        slots = np.flatnonzero(labels > -2)
        whole = slots.size == labels.size
        present = labels[slots]
        reference = self.is_reference.values[slots]
        data = CalibrationData(
            self.adjacency.graph(None if whole else slots),
            self.outputs.values[slots],
            present,
            np.flatnonzero(present >= 0),
            self.names.of(slots),
            self.class_names,
            PredictionSets,
        )
        return Batch(
            data, slots, np.flatnonzero((present >= 0) & reference), np.flatnonzero((present >= 0) & ~reference)
        )


def draw_order(seed: int, ids: Array) -> IntArray:
    """Return the order, drawn from the seed, in which the labels of an existing graph count as arrived."""
    return np.argsort(node_uniforms(ids, _seed_for(seed, 1)), kind="stable")


def uniforms(seed: int, events: IntArray) -> FloatArray:
    """Return the uniform number of each event, which breaks ties among scores."""
    return node_uniforms(events, _seed_for(seed, 2))
