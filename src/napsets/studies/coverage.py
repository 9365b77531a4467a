"""The study of Tables 1, 2 and 3 and of the ablation: its cells, and how they are measured."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from napsets.advice.theory import expected_homophily, node_homophily
from napsets.checks.arguments import FloatArray, IntArray
from napsets.datasets import NodeDataset
from napsets.errors import InvalidInputError
from napsets.evaluation import judgement
from napsets.evaluation.metrics import pccv
from napsets.files.predictions import NodePredictions
from napsets.predictions import PredictionSets, members
from napsets.randomness import node_uniforms
from napsets.scores import APS
from napsets.studies.protocols import (
    BASELINE,
    Repetitions,
    ScoredGraph,
    Thresholds,
    eligible_nodes,
    is_available,
    load_dataset,
    loading,
    protocol_of,
    setup_of,
)
from napsets.studies.study import POSITIVE, SHARE, Cell, ModelCell, Row, columns

#: The paper's models, and what its tables call them.
MODELS = {
    "graphsage-mean": "GS-Mean",
    "graphsage-max": "GS-Max",
    "shadow-sage": "SD-SAGE",
    "shadow-gcn": "SD-GCN",
}
PROTOCOLS = ("strict", "as-published")
INFERENCES = ("sampled", "exact")
#: The metrics of a row, each the median over repetitions of its value in one.
METRICS = tuple(
    name
    for name in judgement.METRICS
    if name not in ("nodes", "infinite") and not name.endswith(("_se", "_chance"))  # counts, and what is not measured
)


class _PaperCell(Cell):
    """A cell about one of the paper's datasets."""

    dataset: str

    def settings(self) -> dict[str, Any]:
        """Return the cell's own settings and the dataset's."""
        return {**asdict(self), "setup": setup_of(self.dataset).settings()}

    def can_run(self, root: str | os.PathLike[str]) -> bool:
        return is_available(self.dataset, root)


@dataclass(frozen=True)
class DatasetCell(_PaperCell):
    """One row of Table 1."""

    study: ClassVar[str] = "datasets"
    measured: ClassVar = {
        **columns("nodes edges features classes test_nodes test_edges eligible", POSITIVE),
        **columns("node_homophily test_homophily expected_homophily", SHARE),
    }
    common: ClassVar = ("dataset", "seed")
    dataset: str
    seed: int = 0

    @property
    def title(self) -> str:  # noqa: D102
        return f"{self.dataset} seed {self.seed}"

    @classmethod
    def compute(cls, cells: Sequence[DatasetCell], laboratory: Any) -> list[Row]:  # noqa: D102
        return [dataset_row(cell, load_dataset(cell.dataset, cell.seed, laboratory.root)) for cell in cells]


@dataclass(frozen=True)
class CoverageCell(_PaperCell, ModelCell):
    """One method on one trained model: an entry of Tables 2 and 3 and of the ablation."""

    study: ClassVar[str] = "coverage"
    suffix: ClassVar[str] = ".parquet"
    model_settings: ClassVar = ("dataset", "model", "preset", "inference", "seed")
    common: ClassVar = ("protocol", "hops", "repetitions", "evaluated")
    measured: ClassVar = {
        **columns("accuracy coverage sscv pccv empty_rate singleton_rate full_rate infinite_rate", SHARE),
        **columns("mean_size size_given_coverage coverage_sd support eligible test_nodes", POSITIVE),
        **columns("seconds train_seconds", POSITIVE),
    }
    #: No neighbourhood was large enough, nothing was covered, nothing was trained.
    may_lack: ClassVar = ("pccv", "sscv", "size_given_coverage", "coverage_sd", "train_seconds")
    protocol: str  #: what may calibrate what
    method: str  #: one of `METHODS`
    hops: int  #: the paper's K; 0 for the baseline, which has none
    alpha: float = 0.1  #: error rate
    #: How often this many evaluation nodes are drawn.
    repetitions: int = 100
    evaluated: int = 1000
    preset: str = "released-code"  #: training settings
    #: Whether predictions draw neighbours as in training, as the paper's released code did, or count every one.
    inference: str = "sampled"

    @property
    def title(self) -> str:  # noqa: D102
        model = f"{self.dataset} {self.model} seed {self.seed} {self.inference}"
        return f"{model}: {self.protocol}, hops {self.hops}"

    def training(self) -> dict[str, Any]:  # noqa: D102
        return loading(self.dataset)

    def load(self, root: str | os.PathLike[str]) -> NodeDataset:  # noqa: D102
        return load_dataset(self.dataset, self.seed, root)

    def train(self, data: NodeDataset) -> Iterator[tuple[CoverageCell, NodePredictions]]:
        """Train the model once, and yield the predictions of both inferences."""
        from napsets.gnn import fit, predict

        start = time.perf_counter()
        trained = fit(data, self.model, self.preset, self.seed)
        fitted = time.perf_counter() - start
        for inference in INFERENCES:
            start = time.perf_counter()
            predictions = predict(trained, data, inference=inference)
            assert isinstance(predictions, NodePredictions)
            seconds = round(fitted + time.perf_counter() - start, 2)
            settings = {**predictions.settings, "preset": self.preset, "train_seconds": seconds}
            yield replace(self, inference=inference), replace(predictions.take(data.test), settings=settings)

    def prepare(self, data: NodeDataset, predictions: NodePredictions) -> ScoredGraph:  # noqa: D102
        setup, graph, labels = setup_of(self.dataset), data.graph.subgraph(data.test), data.labels[data.test]
        # u belongs to the node's id in the whole graph, wherever it stands in the subgraph.
        matrix = APS().matrix(predictions.take(data.test).probabilities, node_uniforms(data.test, self.seed))
        seconds = float(predictions.settings.get("train_seconds", "nan"))
        eligible = eligible_nodes(graph, setup)
        return ScoredGraph(setup, graph, labels, matrix, eligible, predictions.accuracy, self.seed, seconds)

    @classmethod
    def compute(cls, cells: Sequence[CoverageCell], laboratory: Any) -> list[Row]:  # noqa: D102
        return measure(cells, laboratory.test_graph(cells[0]))


def dataset_row(cell: DatasetCell, data: NodeDataset) -> Row:
    """Return a row of Table 1."""
    graph = data.graph.subgraph(data.test)
    return cell.row(
        nodes=data.num_nodes,
        edges=data.graph.num_edges,
        features=data.num_features,
        classes=data.num_classes,
        test_nodes=int(data.test.size),
        test_edges=graph.num_edges,
        eligible=int(eligible_nodes(graph, setup_of(cell.dataset)).size),
        node_homophily=node_homophily(data.graph, data.labels),
        test_homophily=node_homophily(graph, data.labels[data.test]),
        expected_homophily=expected_homophily(data.labels),
    )


def measure(cells: Sequence[CoverageCell], scored: ScoredGraph) -> list[Row]:
    """Return the rows of cells that differ in method and alpha only: one search serves them all."""
    first = cells[0]
    methods = list(dict.fromkeys(cell.method for cell in cells))
    alphas = list(dict.fromkeys(cell.alpha for cell in cells))
    if any(cell.task != first.task for cell in cells) or (BASELINE in methods) != (first.hops == 0):
        raise InvalidInputError(f"`cells` must differ in method and alpha only, and {BASELINE} must have 0 hops, alone")
    start = time.perf_counter()
    values = _repeated(scored, first, methods, alphas)
    seconds = (time.perf_counter() - start) / len(cells)
    rows = []
    for cell in cells:
        at = (methods.index(cell.method), alphas.index(cell.alpha))
        measured = {name: float(np.median(table[at])) for name, table in values.items()}
        measured["pccv"] = _median(values["pccv"][at])
        rows.append(
            cell.row(
                accuracy=scored.accuracy,
                **{name: measured[name] for name in METRICS},
                coverage_sd=float(values["coverage"][at].std(ddof=1)),
                infinite_rate=measured["infinite_rate"],
                support=measured["support"],
                eligible=int(scored.eligible.size),
                test_nodes=scored.graph.num_nodes,
                seconds=seconds,
                train_seconds=scored.train_seconds,
            )
        )
    return rows


def _repeated(
    scored: ScoredGraph, cell: CoverageCell, methods: list[str], alphas: list[float]
) -> dict[str, FloatArray]:
    """Return each metric in each repetition: arrays (methods, alphas, repetitions).

    PCCV has draws of its own: half of the eligible nodes calibrate, the other half is cut into balls.
    """
    protocol, eligible, count = protocol_of(cell.protocol), scored.mask(scored.eligible), cell.repetitions
    draws, halves = scored.draws(count, cell.evaluated), scored.halves(count)
    calibration = [~scored.mask(part) for part in draws] + [eligible & ~scored.mask(half) for half in halves]
    drawn = Repetitions([*draws, *halves], np.stack(calibration), alphas)
    thresholds = protocol.thresholds(scored, drawn, methods, cell.hops)
    names = [name for name in METRICS if name != "pccv"]
    shape = (len(methods), len(alphas), count)
    values = {name: np.full(shape, np.nan) for name in (*METRICS, "infinite_rate", "support")}
    for i in range(count):
        for at, sets in _sets(scored, draws[i], thresholds[i], alphas):
            judged = judgement.judge(sets, scored.labels, strata=scored.setup.strata)
            for name in names:
                values[name][(*at, i)] = getattr(judged, name)
            values["infinite_rate"][(*at, i)] = judged.infinite / judged.nodes
            values["support"][(*at, i)] = np.median(sets.support)
        balls = protocol.parts(scored, halves[i], i)
        for at, sets in _sets(scored, halves[i], thresholds[count + i], alphas):
            values["pccv"][(*at, i)] = pccv(sets, scored.labels, balls)
    return values


def _sets(
    scored: ScoredGraph, nodes: IntArray, thresholds: Thresholds, alphas: list[float]
) -> Iterator[tuple[tuple[int, int], PredictionSets]]:
    """Yield the sets of each method and alpha."""
    matrix = scored.score_matrix[nodes]
    for m, a in np.ndindex(thresholds.values.shape[:2]):
        tau, rest = thresholds.values[m, a], (thresholds.support[m], thresholds.effective_size[m], alphas[a])
        yield (m, a), PredictionSets(nodes, members(matrix, tau), tau, *rest, num_nodes=scored.graph.num_nodes)


def _median(values: FloatArray) -> float:
    """Return the median of what is known; NaN where no repetition had a neighbourhood large enough."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")
