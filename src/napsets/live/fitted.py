"""The fit of a method that learns or chooses: on the reference labels alone, by a rule of the log."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.levels import Level
from napsets.live.evidence_counts import EvidenceCounts
from napsets.live.full_calibration import FullCalibration
from napsets.live.state import State
from napsets.localisers import Reference
from napsets.methods.auto import MOST_SIZE_NODES, AutoMethod
from napsets.methods.choice import Choice
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.method import Method
from napsets.randomness import node_uniforms
from napsets.scores import Labelled
from napsets.scores.base import BoundAround, BoundRows
from napsets.scores.evidence import evenly
from napsets.scores.exponents import Learned
from napsets.scores.informed import BoundInformed, evidence_of


@dataclass(frozen=True, eq=False)
class Fitted:
    """The last choice and fit, and the number of reference labels then."""

    method: Method  #: The chosen method, or the only one.
    learned: Learned | None = None  #: The parameters of an informed score.
    labels: int = 0  #: Reference labels then.
    choice: Choice | None = None  #: How the method was chosen; not known after a restart from a snapshot.

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the same as arrays, for a snapshot."""
        exponents, tables = (None, {}) if self.learned is None else self.learned.parts()
        text = json.dumps([self.method.describe(), exponents, self.labels])
        return tables | {"fitted": np.frombuffer(text.encode(), dtype=np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], rows: npt.NDArray[Any]) -> Fitted:
        """Return what `arrays` described; `rows` has the columns of the model's outputs."""
        described, exponents, labels = json.loads(arrays["fitted"].tobytes())
        none = Labelled(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        learned = None if exponents is None else Learned.from_parts(exponents, arrays, none, rows)
        return cls(Method.from_description(described), learned, labels)


def fit(method: Method | AutoMethod, state: State, counts: EvidenceCounts | None) -> Fitted:
    """Choose and fit on the present reference, with these counts of evidence, or without any on the whole graph."""
    reference = state.sizes[0]
    if isinstance(method, Method) and counts is not None:
        return Fitted(method, counts.fit(), reference)
    batch = state.batch()
    parts = batch.reference, batch.level_nodes
    if isinstance(method, AutoMethod):
        data = replace(batch.data, split=parts)
        if counts is not None:
            named = {field.name: getattr(data, field.name) for field in fields(data)}
            data = _SomeNodes(**named, counts=counts, slots=batch.slots)
        calibrated = method.fit(data, followed=True)
        chosen, score, choice = calibrated.method, calibrated.score, calibrated.choice
    else:
        scored = batch.data.scored_in_parts(method.score, method.seed, *parts, level=method.level)
        chosen, score, choice = method, scored.bound, None
    informed = evidence_of(score)
    return Fitted(chosen, None if informed is None else informed.learned, reference, choice)


@dataclass(frozen=True, eq=False)
class _SomeNodes(CalibrationData):
    """Data of which informed scores are computed only for the nodes that a choice looks at."""

    counts: Any = None  #: The counts of labels around nodes.
    slots: Any = None  #: The slot of each node.

    def scored(self, score: Any, level: Level, seed: int, *, on_request: bool = False) -> Scored:
        """Return the nodes scored; by an informed score, the reference and the nodes that sizes are measured on."""
        if not FullCalibration.suits(score):
            return super().scored(score, level, seed)
        nodes = self.parts(level.reference_size(self.calibration.size), seed)[0]
        labels, learned = self.truth[nodes], self.counts.fit()
        rest = np.ones(self.outputs.shape[0], dtype=bool)
        rest[nodes] = False
        others = np.flatnonzero(rest)
        rows = np.sort(np.concatenate([nodes, others[evenly(others.size, MOST_SIZE_NODES)]]))
        near, far, around = self.counts.of_reference(self.slots[rows])
        fixed = self.counts.fixed(self.slots[rows], around, learned)
        u, p = node_uniforms(self.ids, seed), self.counts.probabilities(learned, fixed, near, far)
        inner = _BoundSome(BoundRows(score.base, p, u[rows]), rows, rest.size)
        bound = BoundInformed(inner, self.outputs[:0], learned, Labelled(nodes, labels))
        reference = Reference(nodes, bound.at(nodes, labels), rest.size, self.graph, None, u, labels)
        none = nodes[:0]
        return Scored(score, seed, u, bound, reference, none, np.empty(0), labels, labels[:0], alone=bound)


@dataclass(frozen=True, eq=False)
class _BoundSome(BoundAround):
    """A score that is known for some nodes, in ascending order."""

    inner: Any
    nodes: IntArray
    size: int

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return self.size

    def at(self, nodes: IntArray, truth: IntArray) -> FloatArray:
        """Scores of the nodes at their labels."""
        scores: FloatArray = self.inner.at(np.searchsorted(self.nodes, nodes), truth)
        return scores

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        scores: FloatArray = self.inner.matrix(np.searchsorted(self.nodes, nodes))
        return scores
