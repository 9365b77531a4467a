"""The drift study: sets of nodes that arrive over time, with thresholds and levels that follow the labels or do not.

Everything is computed from probabilities that are kept in the project, so that the figures are the same everywhere.
The models are convex and fitted to convergence: training them again takes a minute, and gives the same figures but for
rare ties.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from napsets.datasets import NodeDataset
from napsets.datasets.registry import TIMED, file_name, read_collected
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.files.predictions import NodePredictions
from napsets.live.alarms import first_alarm, jumper, miss_alarm
from napsets.live.monitoring import coverage_interval, worst_window
from napsets.studies.arrivals import ORDERS, RIDGE, STRATEGIES, Arrivals, follow, train_softmax
from napsets.studies.drift_page import figures, page_text, tables
from napsets.studies.study import POSITIVE, SHARE, Findings, ModelCell, Page, Row, Study, columns, narrowed

if TYPE_CHECKING:
    from napsets.studies.laboratory import Laboratory, RowStore

#: Points of a curve over time.
_POINTS = 40


@dataclass(frozen=True)
class DriftCell(ModelCell):
    """One strategy on one stream; `seed` draws the random order, and plays no part in the order of time."""

    study: ClassVar[str] = "drift"
    suffix: ClassVar[str] = ".npz"
    measured: ClassVar = {
        **columns("calibration nodes classes mean_size worst_end coverage_alarm exchangeability_alarm", POSITIVE),
        **columns("coverage_evidence exchangeability_evidence", POSITIVE),
        **columns("accuracy coverage coverage_low coverage_high worst_window full_rate empty_rate", SHARE),
        **columns("seen_coverage seen_share", SHARE),
    }
    may_lack: ClassVar = ("coverage_alarm", "exchangeability_alarm", "seen_coverage")
    order: str  #: in which order nodes arrive
    strategy: str  #: a name from `arrivals.STRATEGIES`
    delay: int = 0  #: how many more sets are made before the label of a set comes
    labelled: str = "all"  #: whether the label of every set comes, or only of those of at most two labels
    alpha: float = 0.1  #: error rate

    @property
    def model_names(self) -> tuple[str, ...]:  # noqa: D102
        return (self.dataset, self.model, self.order, str(self.seed))

    @property
    def title(self) -> str:  # noqa: D102
        return f"{self.dataset} in {'a random order' if self.order == 'random' else 'the order of time'}"

    @property
    def task(self) -> tuple[object, ...]:  # noqa: D102
        return (self.alpha,)

    def training(self) -> dict[str, Any]:  # noqa: D102
        return {"ridge": RIDGE}

    def settings(self) -> dict[str, Any]:  # noqa: D102
        return {**asdict(self), **self.training()}

    def can_run(self, root: str | os.PathLike[str]) -> bool:  # noqa: D102
        return (Path(root) / file_name(self.dataset)).exists()

    def load(self, root: str | os.PathLike[str]) -> NodeDataset:
        """Read the graph, whose file need not be one of the project's."""
        with warnings.catch_warnings():  # classes that come only later are what drift is about
            warnings.simplefilter("ignore", NapsetsWarning)
            data = read_collected(Path(root) / file_name(self.dataset), name=self.dataset)
        if data.times is None:
            raise InvalidInputError(f"`dataset` must be a graph with time; {file_name(self.dataset)} has no node_time")
        return data

    def train(self, data: NodeDataset) -> Iterator[tuple[DriftCell, NodePredictions]]:  # noqa: D102
        calibration, stream, probabilities = train_softmax(data, self.order, self.seed)
        nodes = np.concatenate([calibration, stream])
        split = np.repeat(["validation", "test"], [calibration.size, stream.size])
        rows = probabilities.astype(np.float32)  # not rounded: where classes are new, truth has tiny probabilities
        yield self, NodePredictions(nodes, rows, data.labels[nodes], split, data.name, self.model, self.training())

    def prepare(self, data: NodeDataset, predictions: NodePredictions) -> Arrivals:  # noqa: D102
        scores = 1.0 - predictions.probabilities.astype(np.float64)
        return Arrivals(scores, predictions.labels, int((predictions.split == "validation").sum()))

    @classmethod
    def compute(cls, cells: Sequence[DriftCell], laboratory: Any) -> list[Row]:  # noqa: D102
        arrivals = laboratory.test_graph(cells[0])
        exchangeability = jumper(arrivals.p_values(), restarted=True, log=True)
        return [cell.row(**_measure(cell, arrivals, exchangeability)) for cell in cells]


def _measure(cell: DriftCell, arrivals: Arrivals, exchangeability: Any) -> Row:
    """Return what is measured of one strategy; the alarms see the labels that come, coverage is that of all sets."""
    stream = follow(arrivals, cell.strategy, alpha=cell.alpha, delay=cell.delay, labelled=cell.labelled)
    covered, seen = ~stream.missed, stream.missed[stream.labelled]
    coverage = miss_alarm(seen, cell.alpha, restarted=True, log=True)
    lower, upper = coverage_interval(stream.missed)
    worst = worst_window(stream.missed)
    labels = arrivals.labels[arrivals.calibration :]
    ring = math.log(100.0)
    return {
        "calibration": arrivals.calibration,
        "nodes": int(covered.size),
        "classes": int(arrivals.scores.shape[1]),
        "accuracy": float((arrivals.scores[arrivals.calibration :].argmin(axis=1) == labels).mean()),
        "coverage": float(covered.mean()),
        "coverage_low": float(lower[-1]),
        "coverage_high": float(upper[-1]),
        "worst_window": worst.coverage,
        "worst_end": worst.end,
        "mean_size": float(stream.sizes.mean()),
        "full_rate": float((stream.sizes == arrivals.scores.shape[1]).mean()),
        "empty_rate": float((stream.sizes == 0).mean()),
        "seen_share": float(stream.labelled.mean()),
        "seen_coverage": float(1.0 - seen.mean()) if seen.size else math.nan,
        "coverage_alarm": first_alarm(coverage, ring),
        "coverage_evidence": _evidence(coverage),
        "exchangeability_alarm": first_alarm(exchangeability, ring),
        "exchangeability_evidence": _evidence(exchangeability),
        "coverage_curve": [float(part.mean()) for part in np.array_split(covered, _POINTS)],
        "size_curve": [float(part.mean()) for part in np.array_split(stream.sizes, _POINTS)],
    }


def _evidence(logs: Any) -> float:
    """Return the decimal logarithm of the largest capital."""
    return max(0.0, float(logs.max(initial=0.0)) / math.log(10.0))


@dataclass(frozen=True)
class DriftScope:
    """How much to run."""

    datasets: tuple[str, ...] = tuple(TIMED)  #: graphs with time
    models: tuple[str, ...] = ("softmax",)  #: the only one
    seeds: tuple[int, ...] = (0,)  #: of the random orders
    delays: tuple[int, ...] = (100, 500)  #: of the labels, in the order of time
    alpha: float = 0.1  #: error rate


class DriftStudy(Study):
    """Sets of nodes that arrive over time."""

    kinds = (DriftCell,)
    options = ()
    activity = "following nodes over time"

    def scope(self, quick: bool, options: Mapping[str, Any]) -> DriftScope:
        """Return what to run; any graph whose file is in the folder can be asked for."""
        scope = DriftScope(datasets=("metamath-nf", "eips")) if quick else DriftScope()
        return narrowed(scope, options, {"model": scope.models})

    def cells(self, scope: DriftScope) -> list[DriftCell]:  # noqa: D102
        cells = []
        for dataset, order in product(scope.datasets, ORDERS):
            for seed in scope.seeds if order == "random" else (0,):
                one = DriftCell(dataset, "softmax", seed, order, "static", alpha=scope.alpha)
                cells += [replace(one, strategy=strategy) for strategy in STRATEGIES]
                if order == "time":
                    late = product(("growing", "aci", "dtaci"), scope.delays)
                    cells += [replace(one, strategy=strategy, delay=delay) for strategy, delay in late]
                    cells += [replace(one, strategy=strategy, labelled="small") for strategy in ("growing", "dtaci")]
        return cells

    def rows(self, store: RowStore, scope: DriftScope) -> list[Row]:
        """Return the rows of the scope, in its order."""
        there = {row["key"]: row for row in store.rows(DriftCell.study)}
        return [there[cell.key] for cell in self.cells(scope) if cell.key in there]

    def findings(self, laboratory: Laboratory, scope: DriftScope) -> Findings:  # noqa: D102
        rows = self.rows(laboratory.store, scope)
        return Findings(tables(rows), lambda: figures(rows), facts={"rows": len(rows)})

    def page(self, store: RowStore, scope: DriftScope) -> Page:  # noqa: D102
        rows = self.rows(store, scope)
        return Page(page_text(rows), figures(rows))

    def left_out(self, scope: DriftScope, root: str | os.PathLike[str]) -> list[str]:  # noqa: D102
        return [name for name in scope.datasets if not (Path(root) / file_name(name)).exists()]
