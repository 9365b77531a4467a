"""Comparing methods on drawn labels: what the leaderboard and the sets study have in common.

Some test nodes of a graph are labelled at random; every method predicts sets for all others and is evaluated on them.
Models are trained inductively: training sees the graph of the training nodes alone. Only the probabilities of test
nodes are kept, rounded to multiples of 2⁻¹⁵.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.checks.text import percent
from napsets.checks.values import choose
from napsets.datasets import DATASETS, NodeDataset, load
from napsets.datasets.amazon import round_rows
from napsets.datasets.registry import COLLECTION, file_name
from napsets.errors import InvalidInputError, NapsetsError, NapsetsWarning
from napsets.evaluation.judgement import judge
from napsets.evaluation.metrics import groups_by_confidence, groups_by_degree, groups_by_neighbourhood
from napsets.evaluation.verdict_words import level_labels
from napsets.files.predictions import NodePredictions
from napsets.graph import Graph
from napsets.methods import METHODS, CalibrationData, Settings, make_method
from napsets.studies.study import ModelCell, Row, Study, narrowed

if TYPE_CHECKING:
    from napsets.studies.laboratory import RowStore

#: The groupings over which coverage is to be even.
KINDS = ("neighbourhood", "class", "degree", "confidence")
#: The graphs that methods are compared on by default. Those that keep the direction of another one's edges are the same
#: graph a second time, and would count double in every mean.
GRAPHS = ("amazon-computers", *(name for name in COLLECTION if not name.endswith("-directed")))
#: Two that look at neighbours, and one that does without the graph.
MODELS = ("graphsage-mean", "gcn", "mlp")
#: How models are trained: the preset, and what differs from it. With a few hundred training nodes, 30 epochs are too
#: few, and dropout of 0.2 too little.
PRESET = "released-code"
CHANGES: dict[str, Any] = {"sampler": "full", "epochs": 100, "dropout": 0.5, "weight_decay": 5e-4}
TRAINING: dict[str, Any] = {"preset": PRESET, **CHANGES}
#: Below this many, features are quantities of different kinds; from there on they are words.
_FEW_FEATURES = 50


@dataclass(frozen=True, eq=False)
class PredictedGraph:
    """A graph induced on test nodes, with a model's predictions for them."""

    graph: Graph  #: on the test nodes, numbered 0..n−1
    probabilities: npt.NDArray[Any]
    labels: IntArray
    features: Any  #: theirs, as they come with the graph: for methods that compare nodes by them


@dataclass(frozen=True)
class DrawCell(ModelCell):
    """One method on one draw of labelled nodes."""

    suffix: ClassVar[str] = ".npz"
    common: ClassVar = ("share", "repetition", "alpha")
    share: float  #: the share of test nodes that are labelled
    repetition: int  #: which draw of them
    method: str  #: a name from the table of methods
    alpha: float = 0.1  #: error rate

    @property
    def draw_name(self) -> tuple[object, ...]:
        """What the draw of labelled nodes depends on, and nothing else."""
        return (self.dataset, f"{self.share:g}", self.seed, self.repetition)

    @property
    def draw_seed(self) -> int:
        """Seed of the methods' own choices, and of the neighbourhoods that evaluate them."""
        return 1000 * self.seed + self.repetition

    @property
    def title(self) -> str:  # noqa: D102
        return (
            f"{self.dataset} {self.model} seed {self.seed}: {percent(self.share, 0)} labelled, draw {self.repetition}"
        )

    def training(self) -> dict[str, Any]:  # noqa: D102
        return {"training": TRAINING}

    def can_run(self, root: str | os.PathLike[str]) -> bool:
        """Say whether the graph can be had; a folder that is not there is an error, as no graph file could be found."""
        if self.dataset in COLLECTION and not Path(root).is_dir():
            raise InvalidInputError(
                f"`root` must be the folder that holds {file_name(self.dataset)}; there is no folder {os.fspath(root)}"
            )
        return has_graph(self.dataset, root)

    def load(self, root: str | os.PathLike[str]) -> NodeDataset:  # noqa: D102
        takes_root = "root" in choose("dataset", self.dataset, DATASETS).options
        return load(self.dataset, seed=self.seed, **({"root": root} if takes_root else {}))

    def train(self, data: NodeDataset) -> Iterator[tuple[DrawCell, NodePredictions]]:
        """Train the model; the time it took stands in the settings of the predictions."""
        from napsets import gnn

        start = time.perf_counter()
        # One thread, so that runs side by side do not fight for cores, and so that last digits do not depend on it.
        everyone = gnn.train(scaled(data), self.model, PRESET, self.seed, threads=1, **CHANGES)
        settings = {**everyone.settings, "train_seconds": round(time.perf_counter() - start, 2)}
        rows, labels = round_rows(everyone.probabilities[data.test]), data.labels[data.test]
        yield self, NodePredictions(data.test, rows, labels, dataset=data.name, model=self.model, settings=settings)

    def prepare(self, data: NodeDataset, predictions: NodePredictions) -> PredictedGraph:  # noqa: D102
        nodes, probabilities = data.test, predictions.take(data.test).probabilities
        return PredictedGraph(data.graph.subgraph(nodes), probabilities, data.labels[nodes], data.features[nodes])

    @classmethod
    def compute(cls, cells: Sequence[DrawCell], laboratory: Any) -> list[Row]:  # noqa: D102
        return measure_draw(cells, laboratory.test_graph(cells[0]), laboratory.skipped)


def has_graph(name: str, root: str | os.PathLike[str]) -> bool:
    """Say whether a graph can be had here: drawn or embedded, or its file is in `root`."""
    return name not in COLLECTION or (Path(root) / file_name(name)).exists()


@dataclass(frozen=True)
class DrawScope:
    """How much to compare."""

    #: Every combination is taken.
    datasets: tuple[str, ...] = GRAPHS
    models: tuple[str, ...] = MODELS
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    shares: tuple[float, ...] = (0.05, 0.3)
    repetitions: int = 2  #: draws of labelled nodes for each of them
    methods: tuple[str, ...] | None = None  #: names from the table of methods; None for all of the table
    #: Methods that are run on the first model and the first repetition alone, because they take long.
    sparing: tuple[str, ...] = ()
    alpha: float = 0.1  #: error rate


class DrawStudy(Study):
    """A study that compares methods on drawn labels; a subclass says on what, and what is made of the rows."""

    cell: ClassVar[type[DrawCell]]  #: the kind of its cells
    #: What is compared by default and with ``--quick``. The cells of the quick version are among the full one's.
    full: ClassVar[DrawScope]
    quick: ClassVar[DrawScope]

    def scope(self, quick: bool, options: Mapping[str, Any]) -> DrawScope:
        """Return what to compare, as narrowed or changed by options; names must be known."""
        known = {"dataset": ("amazon-computers", *COLLECTION), "model": MODELS, "method": METHODS, "sparing": METHODS}
        return narrowed(self.quick if quick else self.full, options, known)

    def cells(self, scope: DrawScope) -> list[DrawCell]:
        """Return the cells, seed by seed: whenever a run is stopped, all graphs have about as many."""
        methods, draws = scope.methods or METHODS, range(scope.repetitions)
        return [
            self.cell(dataset, model, seed, share, repetition, method, scope.alpha)
            for seed, dataset, model, share, repetition, method in product(
                scope.seeds, scope.datasets, scope.models, scope.shares, draws, methods
            )
            if method not in scope.sparing or (model == scope.models[0] and repetition == 0)
        ]

    def rows(self, store: RowStore, scope: DrawScope) -> list[Row]:
        """Return the rows to show; sparing says what to run, not what to show: another run may have gone further."""
        wanted = {cell.key for cell in self.cells(replace(scope, sparing=()))}
        return [row for row in store.rows(self.cell.study) if row["key"] in wanted]

    def facts(self, rows: list[Row], skipped: Mapping[str, str]) -> dict[str, Any]:
        """Return the number of rows, and which methods could not run."""
        return {"rows": len(rows), "skipped": skipped}

    def left_out(self, scope: DrawScope, root: str | os.PathLike[str]) -> list[str]:  # noqa: D102
        return [name for name in scope.datasets if not has_graph(name, root)]


@dataclass(frozen=True, eq=False)
class Draw:
    """A draw of labelled nodes: the data that methods may use, and the labels that evaluate them."""

    inputs: CalibrationData  #: with the labels of the labelled nodes alone, so that no method can see another one
    rest: IntArray  #: the other nodes
    truth: IntArray  #: the labels of all nodes
    groups: Mapping[str, IntArray]  #: what coverage is to be even over
    settings: Settings  #: those of all methods


def draw(predicted: PredictedGraph, share: float, name: Sequence[object], seed: int, alpha: float = 0.1) -> Draw:
    """Label a share of the nodes at random: the same for every model and method.

    The draw depends on `name` alone; `seed` is that of the methods' own choices, and of the neighbourhoods that
    evaluate them.
    """
    text = "/".join(map(str, name)).encode()
    rng = np.random.default_rng(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
    order, count = rng.permutation(predicted.labels.size), int(share * predicted.labels.size)
    if not 0 < count < predicted.labels.size:
        raise InvalidInputError(f"`share` must label some of {predicted.labels.size} nodes and not all; got {share:g}")
    labelled, rest = np.sort(order[:count]), np.sort(order[count:])
    seen = np.full(predicted.labels.size, -1, dtype=np.int64)
    seen[labelled] = predicted.labels[labelled]
    inputs = CalibrationData.check(predicted.graph, predicted.probabilities, seen, labelled)
    groups = {
        "neighbourhood": groups_by_neighbourhood(predicted.graph, rest, seed=seed),
        "class": predicted.labels,
        "degree": groups_by_degree(predicted.graph, nodes=rest),
        "confidence": groups_by_confidence(predicted.probabilities, nodes=rest),
    }
    settings = Settings(seed=seed, alpha=alpha, features=predicted.features)
    return Draw(inputs, rest, predicted.labels, groups, settings)


def measure_draw(cells: Sequence[DrawCell], predicted: PredictedGraph, skipped: dict[str, str]) -> list[Row]:
    """Return the rows of cells that differ in the method only; why a method has none is put into `skipped`.

    Methods share the scores that they have in common, whose time is counted for the first method that needs them.
    """
    first = cells[0]
    drawn = draw(predicted, first.share, first.draw_name, first.draw_seed, first.alpha)
    accuracy = float((predicted.probabilities.argmax(axis=1) == predicted.labels).mean())
    rows = []
    for cell in cells:
        try:
            columns = _measure_method(cell.method, drawn, accuracy)
        except NapsetsError as error:
            skipped[cell.method] = str(error)
            continue
        rows.append(cell.row(**{name: columns[name] for name in columns if name in (*cell.measured, "choice")}))
    return rows


def _measure_method(name: str, drawn: Draw, accuracy: float) -> Row:
    """Let a method make the sets of all nodes that are not labelled; return what is measured of them."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Caveats of a method on one draw (groups with few labels, say) show in what is measured over many.
        warnings.simplefilter("ignore", NapsetsWarning)
        calibrated = make_method(name, drawn.settings).fit(drawn.inputs)
        sets = calibrated.predict(drawn.rest, drawn.settings.alpha, threads=1)
    seconds = time.perf_counter() - start
    judgement = judge(sets, drawn.truth, strata=[(0, sets.num_classes)], groups=drawn.groups)
    choice = getattr(calibrated, "choice", None)
    columns: Row = {
        "labels": int(drawn.inputs.calibration.size),
        "level_labels": level_labels(calibrated),
        "exact": calibrated.is_exact,
        "nodes": judgement.nodes,
        "classes": sets.num_classes,
        "accuracy": accuracy,
        "choice": "" if choice is None else choice.name,
        "seconds": round(seconds, 4),
    }
    for metric in ("coverage", "mean_size", "singleton_rate", "empty_rate", "full_rate"):
        columns[metric] = getattr(judgement, metric)
    for kind in KINDS:
        gap = judgement.gaps[kind]
        for part in ("gap", "excess", "chance", "under", "over", "share"):
            columns[f"{part}_{kind}"] = getattr(gap, part)
        columns[f"groups_{kind}"] = int(gap.groups.size)
    return columns


def scaled(data: NodeDataset) -> NodeDataset:
    """Bring features to one scale: many of them by the length of the row, a few by mean and deviation."""
    if data.num_features < _FEW_FEATURES:
        dense = data.feature_rows(slice(None)).astype(np.float64)
        return replace(data, features=(dense - dense.mean(axis=0)) / np.maximum(dense.std(axis=0), 1e-9))
    if isinstance(data.features, np.ndarray):
        lengths = np.sqrt((data.features.astype(np.float64) ** 2).sum(axis=1))
        return replace(data, features=data.features / np.maximum(lengths, 1e-9)[:, None])
    squares = data.features.astype(np.float64)
    squares.data **= 2
    lengths = np.sqrt(squares.sum(axis=1))
    rows = np.repeat(lengths, np.diff(data.features.indptr))
    kept = data.features.copy()
    kept.data = (kept.data / np.maximum(rows, 1e-9)).astype(np.float32)
    return replace(data, features=kept)
