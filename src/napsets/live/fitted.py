"""What a method that learns or chooses has fitted, and how: on the reference labels alone, by a rule of the log."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.live.hearing import Hearing
from napsets.live.state import State
from napsets.methods.auto import AutoMethod
from napsets.methods.choice import Choice
from napsets.methods.method import Method
from napsets.scores import Labelled
from napsets.scores.exponents import Learned
from napsets.scores.informed import evidence_of

__all__ = ["Fitted", "fit"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was chosen and fitted last, and on how many reference labels.

    Attributes
    ----------
    method : Method
        What was chosen, or the only method there is.
    learned : Learned or None
        What an informed score learned.
    labels : int
        Reference labels then.
    choice : Choice or None
        How the method was chosen; not known any more after a restart from a snapshot.
    """

    method: Method
    learned: Learned | None = None
    labels: int = 0
    choice: Choice | None = None

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


def fit(method: Method | AutoMethod, state: State, ear: Hearing | None) -> Fitted:
    """Choose and fit on the reference as it is.

    Parameters
    ----------
    method : Method or AutoMethod
        What learns or chooses.
    state : State
        The graph and its labels.
    ear : Hearing or None
        What is counted around nodes already, where it is; otherwise the whole graph is looked at.
    """
    reference = state.sizes[0]
    if isinstance(method, Method) and ear is not None:
        return Fitted(method, ear.fit(), reference)
    batch = state.batch()
    parts = batch.reference, batch.level_nodes
    if isinstance(method, AutoMethod):
        calibrated = method.fit(replace(batch.data, split=parts), followed=True)
        chosen, score, choice = calibrated.method, calibrated.score, calibrated.choice
    else:
        scored = batch.data.scored_in_parts(method.score, method.seed, *parts, level=method.level)
        chosen, score, choice = method, scored.bound, None
    informed = evidence_of(score)
    return Fitted(chosen, None if informed is None else informed.learned, reference, choice)
