"""The present sets of a living graph: the map, which is fixed between refits, and the sets under it.

The map is everything that was learned and chosen, together with the reference labels as of the last refit. New
reference labels wait for the next refit, labels that are held out count at once. A refit happens when the reference has
grown by a quarter, or on request. Methods that hold out no labels use all of them at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.levels import Exact, Level
from napsets.live.engine import MOST_MARKED, Engine, Judgement
from napsets.live.settings import LiveSettings
from napsets.live.state import Array, State
from napsets.live.surroundings import Surroundings, Walks
from napsets.localisers import Everyone, Reference
from napsets.methods.auto import MOST_SIZE_NODES, Auto
from napsets.methods.choice import Choice
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.method import Method
from napsets.scores import APS, ByLabel, Informed, Labelled
from napsets.scores.base import BoundRows
from napsets.scores.evidence import evenly
from napsets.scores.exponents import Learned
from napsets.scores.informed import BoundInformed, evidence_of

#: How much larger the reference must be for a refit.
_GROWTH = 1.25


@dataclass(frozen=True, eq=False)
class Map:
    """What was chosen and learned at the last refit, and which reference labels there were: none before the first."""

    method: Method  #: The chosen method, or the only one.
    learned: Learned | None = None  #: The parameters of an informed score.
    labels: int = 0  #: Reference labels then.
    arrived: int = 0  #: Labels that had arrived: of those after them, none is in the reference.
    choice: Choice | None = None  #: How the method was chosen; not known after a restart from a snapshot.

    def parts(self, state: State) -> tuple[IntArray, IntArray]:
        """Return the slots of the reference labels that are still there, and of the labels held out now."""
        slots = state.labelled()
        if not self.method.level.holds_out_labels:
            return slots, slots[:0]
        reference = state.nodes["is_reference"][slots]
        return slots[reference & (state.nodes["numbers"][slots] < self.arrived)], slots[~reference]


class Calibration:
    """The map, and an engine that gives the sets under it."""

    def __init__(self, settings: LiveSettings, state: State) -> None:
        self.settings, self.state = settings, state
        self._around = Surroundings(state)
        method = settings.method
        if isinstance(method, Auto):  # until there are labels to choose by
            method = Method(APS(), Everyone(), Exact(), allow_empty=method.allow_empty)
        self._continue_with(Map(method))

    @property
    def chosen(self) -> Method | None:
        """The method of present sets; None while nothing was chosen or fitted."""
        return self.map.method if self.map.labels or not self.settings.holds_out_labels else None

    # -- changes -------------------------------------------------------------------------------------------------------

    def grow(self) -> None:
        """Make room for new nodes."""
        self._around.grow()
        self.engine.grow()

    def enter(self, slot: int, judged: Judgement) -> None:
        """Count a label; if the reference has grown by a quarter, or has all gone, choose and fit again."""
        self.engine.enter(slot, judged)
        if not self.settings.holds_out_labels or not self.state.nodes["is_reference"][slot]:
            return
        if not self._left or self.state.sizes[0] >= _GROWTH * self.map.labels:
            self.refit()

    def leave(self, slots: IntArray) -> None:
        """Stop counting the labels of nodes, which still have them."""
        nodes = self.state.nodes
        self._left -= int((nodes["is_reference"][slots] & (nodes["numbers"][slots] < self.map.arrived)).sum())
        self.engine.leave(slots)

    def see_edges(self, *ends: IntArray) -> None:
        """Note that edges at some slots were added or removed, or are about to be removed."""
        slots = np.concatenate(ends)
        if slots.size <= MOST_MARKED:  # to search around each once; around more, nothing is searched
            slots = np.unique(slots)
        self._around.see_edges(slots)
        self.engine.see_edges(slots)

    def see_outputs(self, slots: IntArray) -> None:
        """Note that some nodes have new outputs."""
        self._around.see_outputs(slots)
        self.engine.see_outputs(slots)

    def refit(self, *, asked: bool = False) -> None:
        """Take the present reference labels, and choose and fit on them again; if it was asked for, walk again too."""
        if asked:
            self._around.walks = Walks()
        if self.settings.holds_out_labels and self.state.sizes[0]:
            self._continue_with(self._fit())

    def _fit(self) -> Map:
        """Choose and fit on the present reference."""
        method, state = self.settings.method, self.state
        size, arrived = state.sizes[0], state.arrived_labels
        if isinstance(method, Method):
            score = method.score.base if isinstance(method.score, ByLabel) else method.score
            slots = np.flatnonzero(state.nodes["is_reference"])
            learned = self._around.fit(slots) if isinstance(score, Informed) else None
            return Map(method, learned, size, arrived)
        data, slots = state.batch()
        named = {field.name: getattr(data, field.name) for field in fields(data)}
        calibrated = method.calibrate_data(_SomeNodes(**named, around=self._around, slots=slots), followed=True)
        informed = evidence_of(calibrated.score)
        learned = None if informed is None else informed.learned
        return Map(calibrated.method, learned, size, arrived, calibrated.choice)

    def _continue_with(self, map_: Map) -> None:
        """Continue with another map; the engine takes over all present labels."""
        self.map, parts = map_, map_.parts(self.state)
        #: Reference labels of the map that are still there.
        self._left = int(self.state.nodes["is_reference"][parts[0]].sum())
        self.engine = Engine(map_.method, map_.learned, parts, self._around)

    # -- results -------------------------------------------------------------------------------------------------------

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[Judgement]:
        """Yield the set that stood before each label, and where the label's score stands.

        Each label must have entered before the next is requested.
        """
        place = 0
        while place < slots.size:
            engine = self.engine
            for judged in engine.judge(slots[place:], labels[place:], alpha):
                yield judged
                place += 1
                if self.engine is not engine:  # another map
                    break

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return the map, for a snapshot; its reference labels follow from their numbers."""
        map_ = self.map
        if not map_.labels:
            return {}
        learned, tables = (None, {}) if map_.learned is None else map_.learned.parts()
        walks = self._around.walks
        tables = tables if walks.met is None else tables | {"walked": walks.met}
        text = json.dumps([map_.method.describe(), learned, map_.labels, map_.arrived, walks.labels])
        return tables | {"map": np.frombuffer(text.encode(), dtype=np.uint8)}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the map from a snapshot, for a state that was restored."""
        self.grow()
        map_, nodes = self.map, self.state.nodes
        if "map" in arrays and nodes.size:
            described, parts, labels, arrived, walked = json.loads(arrays["map"].tobytes())
            self._around.walks = Walks(walked, arrays.get("walked"))
            learned = None if parts is None else Learned.from_parts(parts, arrays, nodes["outputs"].shape[1])
            map_ = Map(Method.from_description(described), learned, labels, arrived)
        self._continue_with(map_)


@dataclass(frozen=True, eq=False, kw_only=True)
class _SomeNodes(CalibrationData):
    """Data of which informed scores are computed only for the nodes that a choice looks at."""

    around: Surroundings
    slots: IntArray  #: The slot of each node.

    @cached_property
    def _corrected(self) -> tuple[Labelled, Learned, Array]:
        """The reference, what is learned from it, and the corrected probabilities: 0 for nodes that do not count."""
        nodes = self.parts(0, 0)[0]
        learned = self.around.fit(self.slots[nodes])
        others = np.delete(np.arange(self.truth.size), nodes)
        rows = np.sort(np.concatenate([nodes, others[evenly(others.size, MOST_SIZE_NODES)]]))
        probabilities = np.zeros(self.outputs.shape, self.outputs.dtype)  # of which only some rows are touched
        probabilities[rows] = self.around.evidence(self.slots[rows], learned).probabilities(learned)
        return Labelled(nodes, self.truth[nodes]), learned, probabilities

    def scored(self, score: Any, level: Level, seed: int) -> Scored:
        """Return the nodes scored; by an informed score, the reference and the nodes that sizes are measured on."""
        if not isinstance(score, Informed):
            return super().scored(score, level, seed)
        (known, learned, p), u = self._corrected, self.around.state.nodes["u"][self.slots]
        bound = BoundInformed(BoundRows(score.base, p, u), self.outputs[:0], learned, known)
        nodes, labels = known.nodes, known.labels
        reference = Reference(nodes, bound.at(nodes, labels), u.size, self.graph, None, u, labels)
        return Scored(self, score, seed, u, bound, reference, nodes[:0], np.empty(0), labels, labels[:0])
