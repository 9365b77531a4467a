"""The fold of a log: state, calibration, record and steered level depend on settings and events alone.

In the record, each label judges the set that stood before it came (prequential evaluation).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, IntArray
from napsets.live.calibration import Calibration
from napsets.live.events import Change, pack, unpack
from napsets.live.monitoring import History
from napsets.live.settings import LiveSettings
from napsets.live.state import GrowingTable, State, in_reference, uniforms
from napsets.live.steering import Mark, Steering
from napsets.predictions import PredictionSets

Array = npt.NDArray[Any]

#: The level used for 1 or above if sets may not be empty: the most probable labels remain.
_LARGEST = 1.0 - 2.0**-20


class JudgedLabel(NamedTuple):
    """The judgement of a set by the label that arrived after it."""

    event: int  #: The number of the event.
    covered: bool  #: Whether the label was in the set.
    size: int  #: How many labels the set had.
    p_value: float  #: The smoothed p-value of the label; NaN for a label of the reference, which enters no test.
    delay: int  #: How many labels arrived since the node did.
    level: float  #: The level of the set.


_KINDS = (np.int64, bool, np.int64, np.float64, np.int64, np.float64)


class Record(GrowingTable):
    """All judgements, in the order of the labels; one column for each attribute of `JudgedLabel`."""

    def __init__(self) -> None:
        columns = zip(JudgedLabel._fields, _KINDS, strict=True)
        super().__init__(**{name: np.empty(0, dtype=kind) for name, kind in columns})

    def add(self, judgement: JudgedLabel) -> None:
        """Enter one judgement."""
        self.extend(1)
        for buffer, value in zip(self.buffers.values(), judgement, strict=True):
            buffer[self.size - 1] = value

    def pass_on(self, history: History) -> History:
        """Pass the labels that a history has not seen yet to it, and return it."""
        columns = (self[name][history.monitor.labels :].tolist() for name in ("covered", "size", "p_value", "delay"))
        for covered, size, p_value, delay in zip(*columns, strict=True):
            history.step(not covered, size, None if math.isnan(p_value) else p_value, delay)
        return history

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns, for a snapshot."""
        return {f"record_{name}": self[name] for name in self.buffers}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take the columns of a snapshot."""
        self.hold({name: arrays[f"record_{name}"].copy() for name in self.buffers})


class Issued(NamedTuple):
    """A set in the log whose label has not arrived yet."""

    mark: Mark
    member: BoolArray


class Fold:
    """The result of all events so far."""

    def __init__(self, settings: LiveSettings) -> None:
        self.settings = settings
        self.state = State(settings.seed, settings.directed, settings.class_names)
        self.record = Record()
        self.calibration = Calibration(settings, self.state)
        self.steering = None if settings.steered is None else settings.steered.start(settings.alpha)
        self._issued: dict[int, Issued] = {}

    # -- events --------------------------------------------------------------------------------------------------------

    def apply(self, first: int, change: Change) -> None:
        """Apply events; the first of them has the given number."""
        state, columns, engine, find = self.state, change.columns, self.calibration.engine, self.state.names.find
        match change.kind:
            case "add nodes":
                state.add_nodes(columns["ids"], columns["probabilities"])
                engine.grow(columns["ids"].size)
            case "add edges" | "remove edges" as kind:
                ends = find(columns["source"]), find(columns["target"])
                if kind == "add edges":
                    state.adjacency.add_edges(*ends)
                else:
                    engine.see_edges(*ends)
                    state.adjacency.remove_edges(*ends)
                engine.see_edges(*ends)
            case "refit":
                self.calibration.refit()
            case "set probabilities":
                self._set_outputs(find(columns["ids"]), columns["probabilities"])
            case "add labels":
                self._add_labels(first, find(columns["ids"]), columns["labels"])
            case "predictions":
                sets = (find(columns["ids"]).tolist(), columns["level"].tolist(), columns["member"])
                for slot, level, member in zip(*sets, strict=True):
                    mark = Mark(level, (), 0) if self.steering is None else self.steering.mark()
                    if state.nodes["labels"][slot] == -1:
                        self._issued[slot] = Issued(mark, member)
            case kind:
                for slot in find(columns["ids"]).tolist():
                    self._remove(slot, node=kind == "remove nodes")
        state.events = first + len(change) - 1

    def _remove(self, slot: int, *, node: bool) -> None:
        """Remove the label of a slot, if it has one, and optionally the node with its edges."""
        state, calibration = self.state, self.calibration
        if state.nodes["labels"][slot] >= 0:
            calibration.engine.leave(slot)
            state.remove_label(slot)
        if node:
            self._issued.pop(slot, None)
            ends = state.adjacency.neighbours(slot).astype(np.int64), np.array([slot])
            calibration.engine.see_edges(*ends)
            state.adjacency.remove_node(slot)
            calibration.engine.see_edges(*ends)
            state.remove_node(slot)

    def _set_outputs(self, slots: IntArray, probabilities: Array) -> None:
        """Replace outputs; labels then count with their new scores."""
        state = self.state
        labelled = slots[state.nodes["labels"][slots] >= 0].tolist()
        for slot in labelled:
            self.calibration.engine.leave(slot)
        state.nodes["outputs"][slots] = probabilities
        self.calibration.engine.see_outputs(slots)
        for slot in labelled:
            self.calibration.enter(slot)

    def _add_labels(self, first: int, slots: IntArray, labels: IntArray) -> None:
        """Judge the set that stood before each label by it, and then count the label."""
        state, calibration, settings = self.state, self.calibration, self.settings
        numbers = state.arrived_labels + np.arange(slots.size)
        reference = in_reference(settings.seed, numbers, settings.share)
        tested = ~reference if settings.keeps_apart else np.ones(slots.size, dtype=bool)
        us = uniforms(settings.seed, first + np.arange(slots.size)).tolist()
        for place, (issued, score) in enumerate(self._judged(slots, labels)):
            slot, label, p_value = int(slots[place]), int(labels[place]), math.nan
            delay = state.arrived_labels - int(state.nodes["arrivals"][slot])
            enters_first = calibration.engine.enters_first
            if tested[place] and not enters_first:
                p_value = calibration.current.p_value(slot, score, us[place])
            state.add_label(slot, label, bool(reference[place]))
            calibration.enter(slot, score)
            if tested[place] and enters_first:
                p_value = calibration.current.p_value(slot, score, us[place])
            covered, size = bool(issued.member[label]), int(issued.member.sum())
            self.record.add(JudgedLabel(first + place, covered, size, p_value, delay, issued.mark.level))

    def _judged(self, slots: IntArray, labels: IntArray) -> Iterator[tuple[Issued, float | None]]:
        """Yield the set that each label judges, and the label's score.

        The set is the last one of the node in the log, or its present set if there is none. Each label must have
        entered before the next is requested.
        """
        alpha = self.settings.alpha
        if self.steering is None:
            mark, judged = Mark(alpha, (), 0), self.calibration.judge(slots, labels, alpha)
            for slot, (member, score) in zip(slots.tolist(), judged, strict=True):
                issued = self._issued.pop(slot, None)
                yield Issued(mark, member) if issued is None else issued, score
            return
        for place, (slot, label) in enumerate(zip(slots.tolist(), labels.tolist(), strict=True)):
            node = slots[place : place + 1]
            issued = self._issued.pop(slot, None)
            if issued is None:
                mark = self.steering.mark()
                issued = Issued(mark, self.sets(node, mark.level).member[0])
            # The p-value is computed on the present graph, and moved to the side of the level that the set was on.
            p_value = float(self.calibration.current.p_values(node)[0, label])
            level = issued.mark.level
            p_value = max(p_value, math.nextafter(level, math.inf)) if issued.member[label] else min(p_value, level)
            self.steering.update(p_value, issued.mark)
            yield issued, self.calibration.score_at(slot, label)

    # -- results -------------------------------------------------------------------------------------------------

    @property
    def level(self) -> float:
        """The present level of sets: alpha, unless it is steered."""
        return self.settings.alpha if self.steering is None else self.steering.level

    def sets(self, slots: IntArray, level: float) -> PredictionSets:
        """Return the sets of slots at a level: full at 0 or below, as small as allowed at 1 or above."""
        empty = level >= 1.0 and self.settings.method.allow_empty
        if level > 0.0 and not empty:
            sets: PredictionSets = self.calibration.current.predict(slots, min(level, _LARGEST))
            return sets
        return self.calibration.uncalibrated.equal_sets(slots, not empty, min(max(level, 0.0), 1.0), None)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return everything that the log led to, for a snapshot."""
        state = self.state
        parts = {
            "issued": [[slot, *mark, member.tolist()] for slot, (mark, member) in self._issued.items()],
            "steering": None if self.steering is None else self.steering.parts(),
        }
        arrays = self.record.arrays() | self.calibration.arrays()
        arrays |= {"outputs": np.empty((0, 0))} | {name: state.nodes[name] for name in state.nodes.buffers}
        arrays["offsets"], arrays["columns"] = state.adjacency.packed()
        arrays["ids"] = as_bytes(pack({"ids": state.names.of(np.arange(state.names.size))}))
        return arrays | {"parts": as_bytes(json.dumps(parts).encode())}

    def restore(self, events: int, arrays: dict[str, Array]) -> None:
        """Take what `arrays` gave after this many events, where there were none yet."""
        state, labels = self.state, arrays["labels"]
        state.names.restore(unpack(arrays["ids"].tobytes())["ids"])
        if labels.size:
            state.nodes.hold({name: arrays[name] for name in (*state.nodes.buffers, "outputs")})
        state.adjacency.hold(arrays["offsets"], arrays["columns"])
        self.record.restore(arrays)
        state.arrived_labels, state.events = self.record.size, events
        state.present = int((labels > -2).sum())
        reference = state.nodes["is_reference"][labels >= 0]
        state.sizes = [int(reference.sum()), int((~reference).sum())]
        self.calibration.restore(arrays)
        parts = json.loads(arrays["parts"].tobytes())
        for slot, level, experts, number, member in parts["issued"]:
            self._issued[slot] = Issued(Mark(level, tuple(experts), number), np.array(member))
        if self.settings.steered is not None:
            self.steering = Steering.from_parts(self.settings.steered.rates, self.settings.alpha, parts["steering"])


def as_bytes(text: bytes) -> Array:
    """Return bytes as an array, which a snapshot can hold."""
    return np.frombuffer(text, dtype=np.uint8)
