"""The fold of a log: state, calibration, record and steered level depend on settings and events alone.

In the record, each label judges the set that stood before it came (prequential evaluation).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Literal, NamedTuple

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.live.calibration import Calibration
from napsets.live.engine import Judgement
from napsets.live.events import Change, pack, unpack
from napsets.live.monitoring import History
from napsets.live.settings import LiveSettings
from napsets.live.state import Array, GrowingTable, State, in_reference, uniforms
from napsets.live.steering import Mark, Steered, Steering
from napsets.predictions import PredictionSets

#: The level used for 1 or above if sets may not be empty: the most probable labels remain.
_LARGEST = 1.0 - 2.0**-20


class JudgedLabel(NamedTuple):
    """The judgement of a set by the label that arrived after it."""

    covered: bool  #: Whether the label was in the set.
    size: int  #: How many labels the set had.
    p_value: float  #: The smoothed p-value of the label; NaN for a label of the reference, which enters no test.
    delay: int  #: How many labels arrived since the node did.
    level: float  #: The level of the set.
    calibrated: int  #: How many labels set the level of the set.
    time: float  #: When the label arrived, in seconds since 1970 (UTC).


_KINDS = (bool, np.int64, np.float64, np.int64, np.float64, np.int64, np.float64)


class Record(GrowingTable):
    """All judgements, in the order of the labels; one column for each attribute of `JudgedLabel`."""

    def __init__(self) -> None:
        columns = zip(JudgedLabel._fields, _KINDS, strict=True)
        #: After how many labels which alarms were started again.
        self.resets: list[tuple[int, list[str]]] = []
        super().__init__(**{name: np.empty(0, dtype=kind) for name, kind in columns})

    def add(self, judgement: JudgedLabel) -> None:
        """Enter one judgement."""
        self.extend(1)
        for buffer, value in zip(self.buffers.values(), judgement, strict=True):
            buffer[self.size - 1] = value

    def pass_on(self, history: History) -> History:
        """Pass the labels that are new to a history on to it, and return it."""
        columns = (self[name][history.monitor.labels :].tolist() for name in JudgedLabel._fields)
        for row in zip(*columns, strict=True):
            self._pass_resets(history)
            judged = JudgedLabel(*row)
            tested = not math.isnan(judged.p_value)
            history.step(
                not judged.covered, judged.size, judged.p_value if tested else None, judged.delay,
                labels=None if judged.calibrated < 0 else judged.calibrated,
                tested=tested, time=_timestamp(judged.time),
            )  # fmt: skip
        self._pass_resets(history)
        return history

    def _pass_resets(self, history: History) -> None:
        for labels, names in self.resets[history.resets :]:
            if labels > history.monitor.labels:
                break
            history.monitor.reset(*names)
            history.resets += 1

    def arrays(self) -> dict[str, Array]:
        """Return the columns, for a snapshot."""
        return {f"record_{name}": self[name] for name in self.buffers}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the columns of a snapshot."""
        self.hold({name: arrays[f"record_{name}"].copy() for name in self.buffers})


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds")


class Issued(NamedTuple):
    """A set in the log whose label has not arrived yet."""

    mark: Mark
    member: BoolArray
    calibrated: int  #: How many labels set its level.


class Fold:
    """The result of all events so far."""

    def __init__(self, settings: LiveSettings) -> None:
        self.settings = settings
        self.state = State(settings.seed, settings.directed, settings.class_names)
        self.record = Record()
        self.calibration = Calibration(settings, self.state)
        self.steered, self.steering = settings.steered, _started(settings.steered, settings.alpha)
        self._issued: dict[int, Issued] = {}

    # -- events --------------------------------------------------------------------------------------------------------

    def apply(self, first: int, change: Change) -> None:
        """Apply events; the first of them has the given number."""
        state, columns, calibration, find = self.state, change.columns, self.calibration, self.state.names.find
        match change.kind:
            case "add nodes":
                state.add_nodes(columns["ids"], columns["probabilities"], columns.get("features"))
                calibration.grow()
            case "add edges" | "remove edges" as kind:
                ends = find(columns["source"]), find(columns["target"])
                if kind == "add edges":
                    state.adjacency.add_edges(*ends)
                else:
                    calibration.see_edges(*ends)
                    state.adjacency.remove_edges(*ends)
                calibration.see_edges(*ends)
            case "refit":
                calibration.refit(asked=True)
            case "reset alarms":
                self.record.resets.append((self.record.size, columns["names"].tolist()))
            case "steer":
                self._steer(columns["kinds"].tolist()[0], float(columns["rates"][0]))
            case "set probabilities":
                state.nodes["outputs"][find(columns["ids"])] = columns["probabilities"]
                calibration.see_outputs(find(columns["ids"]))
            case "add labels":
                self._add_labels(first, find(columns["ids"]), columns["labels"], columns["times"])
            case "predictions":
                sets = (find(columns["ids"]).tolist(), columns["level"].tolist(), columns["member"])
                for slot, level, member in zip(*sets, strict=True):
                    mark = Mark(level, (), 0) if self.steering is None else self.steering.mark()
                    if state.nodes["labels"][slot] == -1:
                        self._issued[slot] = Issued(mark, member, self._calibrated)
            case "remove labels":
                self._remove_labels(find(columns["ids"]))
            case "remove nodes":
                slots = find(columns["ids"])
                self._remove_labels(slots)
                for slot in slots.tolist():
                    self._issued.pop(slot, None)
                ends = slots, state.adjacency.neighbours(slots)
                calibration.see_edges(*ends)
                state.remove_nodes(slots)
                calibration.see_edges(*ends)
        state.events = first + len(change) - 1

    def _steer(self, kind: Literal["aci", "dtaci", ""], rate: float) -> None:
        """Start to steer the level, or stop it. Sets in the log keep the level that they were made with."""
        self.steered = Steered(kind, None if math.isnan(rate) else rate) if kind else None
        self.steering = steering = _started(self.steered, self.settings.alpha)
        for slot, issued in self._issued.items():
            mark = Mark(issued.mark.level, (), 0)
            if steering is not None:
                begun = steering.mark()
                mark = begun._replace(level=mark.level, experts=(mark.level,) * len(begun.experts))
            self._issued[slot] = issued._replace(mark=mark)

    def _remove_labels(self, slots: IntArray) -> None:
        """Remove the labels of those slots that have one."""
        slots = slots[self.state.nodes["labels"][slots] >= 0]
        self.calibration.leave(slots)
        self.state.remove_labels(slots)

    def _add_labels(self, first: int, slots: IntArray, labels: IntArray, times: FloatArray) -> None:
        """Judge the set that stood before each label by it, and then count the label."""
        state, calibration, settings = self.state, self.calibration, self.settings
        numbers = state.arrived_labels + np.arange(slots.size)
        reference = in_reference(settings.seed, numbers, settings.share)
        tested = ~reference if settings.holds_out_labels else np.ones(slots.size, dtype=bool)
        us = uniforms(settings.seed, first + np.arange(slots.size)).tolist()
        for place, (issued, judged) in enumerate(self._judged(slots, labels)):
            slot, label = int(slots[place]), int(labels[place])
            delay = state.arrived_labels - int(state.nodes["arrivals"][slot])
            p_value = calibration.engine.p_value(judged, us[place]) if tested[place] else math.nan
            state.add_label(slot, label, bool(reference[place]))
            calibration.enter(slot, judged)
            covered, size = bool(issued.member[label]), int(issued.member.sum())
            level, calibrated = issued.mark.level, issued.calibrated
            time = float(times[place])
            self.record.add(JudgedLabel(covered, size, p_value, delay, level, calibrated, time))

    def _judged(self, slots: IntArray, labels: IntArray) -> Iterator[tuple[Issued, Judgement]]:
        """Yield the set that each label judges, and where the label's score stands.

        The set is the last one of the node in the log, or its present set if there is none. Each label must have
        entered before the next is requested.
        """
        alpha = self.settings.alpha
        if self.steering is None:
            mark = Mark(alpha, (), 0)
            for slot, judged in zip(slots.tolist(), self.calibration.judge(slots, labels, alpha), strict=True):
                issued = self._issued.pop(slot, None)
                yield Issued(mark, judged.member, self._calibrated) if issued is None else issued, judged
            return
        for place, (slot, label) in enumerate(zip(slots.tolist(), labels.tolist(), strict=True)):
            node = slots[place : place + 1]
            issued = self._issued.pop(slot, None)
            if issued is None:
                mark = self.steering.mark()
                issued = Issued(mark, self.sets(node, mark.level).member[0], self._calibrated)
            # The p-value is computed on the present graph, and moved to the side of the level that the set was on.
            p_value = float(self.calibration.engine.p_values(node)[0, label])
            level = issued.mark.level
            p_value = max(p_value, math.nextafter(level, math.inf)) if issued.member[label] else min(p_value, level)
            self.steering.update(p_value, issued.mark)
            yield issued, next(self.calibration.judge(node, labels[place : place + 1], alpha))

    # -- results -------------------------------------------------------------------------------------------------

    @property
    def _calibrated(self) -> int:
        """How many labels set the level of present sets; −1 if it is steered, which keeps misses at alpha by itself."""
        if self.steering is not None:
            return -1
        reference, held_out = self.state.sizes
        return held_out if self.settings.holds_out_labels else reference + held_out

    @property
    def level(self) -> float:
        """The present level of sets: alpha, unless it is steered."""
        return self.settings.alpha if self.steering is None else self.steering.level

    def sets(self, slots: IntArray, level: float) -> PredictionSets:
        """Return the sets of slots at a level: full at 0 or below, as small as allowed at 1 or above."""
        empty = level >= 1.0 and self.settings.method.allow_empty
        if level > 0.0 and not empty:
            sets: PredictionSets = self.calibration.engine.predict(slots, min(level, _LARGEST))
            return sets
        return PredictionSets.unchecked(
            nodes=slots,
            member=np.full((slots.size, int(self.state.classes or 0)), not empty),
            thresholds=np.full(slots.size, -np.inf if empty else np.inf),
            support=np.zeros(slots.size, dtype=np.int64),
            effective_size=np.zeros(slots.size),
            alpha=min(max(level, 0.0), 1.0),
        )

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return the whole state as arrays, for a snapshot."""
        state = self.state
        parts = {
            "issued": [
                [slot, *mark, member.tolist(), calibrated] for slot, (mark, member, calibrated) in self._issued.items()
            ],
            "steered": None if self.steered is None else [self.steered.kind, self.steered.rate],
            "steering": None if self.steering is None else self.steering.parts(),
            "resets": self.record.resets,
        }
        arrays = self.record.arrays() | self.calibration.arrays()
        arrays |= {"outputs": np.empty((0, 0))} | {name: state.nodes[name] for name in state.nodes.buffers}
        arrays["offsets"], arrays["columns"] = state.adjacency.packed()
        arrays["ids"] = as_bytes(pack({"ids": state.names.of(np.arange(state.names.size))}))
        return arrays | {"parts": as_bytes(json.dumps(parts).encode())}

    def restore(self, events: int, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned after this many events; nothing was applied before."""
        state, labels = self.state, arrays["labels"]
        state.names.restore(unpack(arrays["ids"].tobytes())["ids"])
        if labels.size:
            state.nodes.hold(
                {name: arrays[name] for name in (*state.nodes.buffers, "outputs", "features") if name in arrays}
            )
        state.adjacency.hold(arrays["offsets"], arrays["columns"])
        self.record.restore(arrays)
        state.arrived_labels, state.events = self.record.size, events
        state.present = int((labels > -2).sum())
        reference = state.nodes["is_reference"][labels >= 0]
        state.sizes = [int(reference.sum()), int((~reference).sum())]
        self.calibration.restore(arrays)
        parts = json.loads(arrays["parts"].tobytes())
        for slot, level, experts, number, member, calibrated in parts["issued"]:
            self._issued[slot] = Issued(Mark(level, tuple(experts), number), np.array(member), calibrated)
        self.record.resets = [(labels, names) for labels, names in parts["resets"]]
        self.steered = self.steering = None
        if parts["steered"] is not None:
            self.steered = Steered(*parts["steered"])
            self.steering = Steering.from_parts(self.steered.rates, self.settings.alpha, parts["steering"])


def _started(steered: Steered | None, alpha: float) -> Steering | None:
    return None if steered is None else steered.start(alpha)


def as_bytes(text: bytes) -> Array:
    """Return bytes as an array, which a snapshot can hold."""
    return np.frombuffer(text, dtype=np.uint8)
