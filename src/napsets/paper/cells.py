"""An experiment is data: a cell says everything that a row of results depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar

from napsets.methods import PAPER, make_method
from napsets.paper.setups import setup_of

__all__ = [
    "BASELINE",
    "INFERENCES",
    "METHODS",
    "MODELS",
    "PROTOCOLS",
    "RESULTS_VERSION",
    "Cell",
    "CoverageCell",
    "DatasetCell",
    "Row",
    "digest",
]

#: What was measured, by column.
Row = dict[str, Any]
Self = TypeVar("Self", bound="Cell")

#: The version of the code as far as results are concerned. A change that can alter a number raises it, and every
#: cell counts as new; a change that cannot (a new command, a faster kernel that gives the same bits) leaves it. The
#: tests recompute committed rows, so that a change which should have raised it is noticed.
RESULTS_VERSION = 1

#: The paper's methods and the decay that each uses, None for the one that does without the graph.
METHODS: dict[str, str | None] = {
    printed: getattr(make_method(name).localiser, "decay", None) for printed, name in PAPER.items()
}
#: The one that does without the graph: what the paper compares with.
BASELINE = next(method for method, decay in METHODS.items() if decay is None)
#: The paper's models, and what its tables call them.
MODELS = {
    "graphsage-mean": "GS-Mean",
    "graphsage-max": "GS-Max",
    "shadow-sage": "SD-SAGE",
    "shadow-gcn": "SD-GCN",
}
PROTOCOLS = ("strict", "as-published")
INFERENCES = ("sampled", "exact")


def digest(settings: dict[str, Any]) -> str:
    """Return a short name for settings: the same for the same settings, on any machine."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Cell:
    """What every kind of cell has: a study that it belongs to, and a key."""

    study: ClassVar[str] = ""

    def settings(self) -> dict[str, Any]:
        """Return everything that the row depends on."""
        return asdict(self)

    @property
    def key(self) -> str:
        """The row's name: its settings and the version of the code, hashed."""
        return digest({"study": self.study, "version": RESULTS_VERSION, **self.settings()})

    @classmethod
    def from_row(cls: type[Self], row: Mapping[str, Any]) -> Self:
        """Return the cell that a row of results belongs to."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})

    def row(self, **measured: Any) -> Row:
        """Return the row of results: the key, the settings, then what was measured, None where that is NaN."""
        known = {name: None if value != value else value for name, value in measured.items()}
        return {"key": self.key, **asdict(self), **known, "version": RESULTS_VERSION}


@dataclass(frozen=True)
class DatasetCell(Cell):
    """One row of Table 1."""

    study: ClassVar[str] = "datasets"
    dataset: str
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """Return the cell's own settings and the dataset's."""
        return {**asdict(self), "setup": setup_of(self.dataset).settings()}


@dataclass(frozen=True)
class CoverageCell(Cell):
    """One method on one trained model: an entry of Tables 2 and 3 and of the ablation.

    Attributes
    ----------
    dataset, model : str
        Names from `SETUPS` and `MODELS`.
    seed : int
        Draws the split, trains the model, and draws u and the repetitions.
    protocol : {"strict", "as-published"}
        What may calibrate what.
    method : str
        One of `METHODS`.
    hops : int
        The paper's K; 0 for the baseline, which has none.
    alpha : float
        Error rate.
    repetitions, evaluated : int
        How often so many evaluation nodes are drawn.
    preset : str
        Training settings.
    inference : {"sampled", "exact"}
        Whether predictions draw neighbours as in training, as the paper's released code did, or count every one.
    """

    study: ClassVar[str] = "coverage"
    dataset: str
    model: str
    seed: int
    protocol: str
    method: str
    hops: int
    alpha: float = 0.1
    repetitions: int = 100
    evaluated: int = 1000
    preset: str = "released-code"
    inference: str = "sampled"

    def settings(self) -> dict[str, Any]:
        """Return the cell's own settings and the dataset's."""
        return {**asdict(self), "setup": setup_of(self.dataset).settings()}
