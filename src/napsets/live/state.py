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
from napsets.live.nodes import Adjacency, Names, Table
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
        #: By slot. Labels are −1 where unknown, and −2 in slots without a node; numbers are theirs in the order of
        #: arrival, from 0; arrivals say how many labels had come when each node did. Outputs join with the first node.
        none, flag = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
        self.nodes = Table(labels=none, numbers=none, is_reference=flag, arrivals=none, u=np.empty(0))
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

    def add_nodes(self, ids: Array, probabilities: Array) -> None:
        """Enter new nodes."""
        if not self.nodes.size:
            self.nodes.rooms["outputs"] = np.empty((0, probabilities.shape[1]), dtype=probabilities.dtype)
        before = self.nodes.size
        self.names.add(ids)
        self.nodes.extend(ids.size)
        new: dict[str, Any] = {"labels": -1, "numbers": -1, "is_reference": False, "arrivals": self.arrived_labels}
        new |= {"u": node_uniforms(ids, self.seed), "outputs": probabilities}
        for name, values in new.items():
            self.nodes[name][before:] = values
        self.adjacency.add_nodes(ids.size)
        self.present += ids.size

    def add_label(self, slot: int, label: int, reference: bool) -> None:
        """Enter the next label, and whether it belongs to the reference."""
        self.nodes["labels"][slot] = label
        self.nodes["numbers"][slot] = self.arrived_labels
        self.nodes["is_reference"][slot] = reference
        self.arrived_labels += 1
        self.sizes[not reference] += 1

    def remove_label(self, slot: int) -> None:
        """Remove a label; its number is not used again."""
        self.sizes[not self.nodes["is_reference"][slot]] -= 1
        self.nodes["labels"][slot] = self.nodes["numbers"][slot] = -1
        self.nodes["is_reference"][slot] = False

    def remove_node(self, slot: int) -> None:
        """Remove a node whose label and edges were removed before."""
        self.names.remove(slot)
        self.nodes["labels"][slot] = -2
        self.present -= 1

    # -- the present state ---------------------------------------------------------------------------------------------

    def labelled(self) -> IntArray:
        """Return the slots of labelled nodes."""
        return np.flatnonzero(self.nodes["labels"] >= 0)

    def batch(self) -> Batch:
        """Return the present state as a batch calibration sees it."""
        if not self.nodes.size:
            raise InvalidInputError("`nodes` must be added first: there is no node yet")
        labels = self.nodes["labels"]
        slots = np.flatnonzero(labels > -2)
        whole = slots.size == labels.size
        present = labels[slots]
        reference = self.nodes["is_reference"][slots]
        data = CalibrationData(
            self.adjacency.graph(None if whole else slots),
            self.nodes["outputs"][slots],
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
