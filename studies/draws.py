"""Comparing methods on drawn labels: what the leaderboard and the sets study have in common.

Some test nodes of a graph are labelled at random; every method predicts sets for all others and is evaluated on them.
Models are trained inductively: training sees the graph of the training nodes alone. Only the probabilities of test
nodes are kept, rounded to multiples of 2⁻¹⁵.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import napsets as ns
from napsets.datasets import NodeDataset, NodePredictions, amazon_predictions
from napsets.datasets.amazon import round_rows
from napsets.features import COLUMNS, Directions, Features, check_features
from napsets.methods import METHODS, CalibrationData, make_method
from napsets.methods.table import suitable
from studies.collections import COLLECTION, load
from studies.rows import Folders, Kind, kept_predictions
from studies.tables import Ints, Row, grouped

#: The groupings over which coverage is to be even.
KINDS = ("neighbourhood", "class", "degree", "confidence")
#: The graphs that methods are compared on by default.
GRAPHS = ("amazon-computers", *COLLECTION)
#: Two models that use the graph, and one that does not.
MODELS = ("graphsage-mean", "gcn", "mlp")
#: How models are trained: the preset, and what differs from it. With a few hundred training nodes, 30 epochs are too
#: few.
PRESET = "graph_cp-6fc8783"
CHANGES: dict[str, Any] = {"sampler": "full", "epochs": 100, "weight_decay": 5e-4}
#: The suffix of methods that also use the features of nodes, and the names of these methods.
WITH_FEATURES = " with features"
FEATURED = tuple(f"{name}{WITH_FEATURES}" for name in ("informed", "auto", "auto-small"))
#: Fewer features than this are standardised column by column; more are taken for words and scaled row by row.
_FEW_FEATURES = 50


@dataclass(frozen=True)
class DrawScope:
    """The combinations on which methods are compared."""

    datasets: tuple[str, ...] = GRAPHS
    models: tuple[str, ...] = MODELS
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)  #: of the split and the training
    shares: tuple[float, ...] = (0.05, 0.3)  #: of the test nodes that are labelled; from 1 on, their number
    repetitions: int = 1  #: draws of labelled nodes
    #: Names from the table of methods, or these followed by `WITH_FEATURES`; None for all of them.
    methods: tuple[str, ...] | None = None
    slow: tuple[str, ...] = ()  #: methods that are run with the first model and draw only
    alpha: float = 0.1

    def cells(self) -> list[Row]:
        """Return the cells, seed by seed: whenever a run is stopped, all graphs have about as many rows."""
        methods = self.methods or (*METHODS, *FEATURED)
        return [
            {"dataset": dataset, "model": model, "seed": seed, "share": share, "repetition": repetition}
            | {"method": method, "alpha": self.alpha}
            for seed, dataset, model, share, repetition, method in product(
                self.seeds, self.datasets, self.models, self.shares, range(self.repetitions), methods
            )
            if method not in self.slow or (model == self.models[0] and repetition == 0)
        ]


@dataclass(frozen=True, eq=False)
class PredictedGraph:
    """A graph induced on test nodes, which are 0..n−1 here, with a model's predictions for them."""

    graph: ns.Graph
    probabilities: npt.NDArray[np.floating]
    labels: Ints
    features: Any  #: as they come with the graph, for methods that compare nodes by them

    @cached_property
    def accuracy(self) -> float:
        """Accuracy of the model on all nodes."""
        return float((self.probabilities.argmax(axis=1) == self.labels).mean())

    @cached_property
    def directions(self) -> Features:
        """The features, reduced once for all draws where `calibrate` would reduce them."""
        features = check_features("features", self.features, self.labels.size)
        if features.shape[1] <= COLUMNS:
            return features
        return check_features("features", Directions.of(features).rows(features))


@dataclass(frozen=True, eq=False)
class Draw:
    """A draw of labelled nodes: the data that methods may use, and the labels that evaluate them."""

    inputs: CalibrationData  #: with the labels of the labelled nodes alone, so that no method can see another one
    rest: Ints  #: the other nodes
    truth: Ints  #: the labels of all nodes
    groups: Mapping[str, Ints]  #: the groupings over which coverage is to be even
    settings: Mapping[str, Any]  #: those that methods use, as far as they have them
    predicted: PredictedGraph

    @cached_property
    def with_features(self) -> CalibrationData:
        """The inputs of methods that also compare nodes by their features."""
        return replace(self.inputs, features=self.predicted.directions, _scored={})


def draw(predicted: PredictedGraph, share: float, name: Sequence[object], seed: int, alpha: float = 0.1) -> Draw:
    """Label a share of the nodes, or a number of them, at random: the same for every model and method.

    The draw depends on `name` alone; `seed` is that of the methods' own choices, and of the neighbourhoods that
    evaluate them.
    """
    text = "/".join(map(str, name)).encode()
    rng = np.random.default_rng(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
    nodes = predicted.labels.size
    order, count = rng.permutation(nodes), int(share if share >= 1 else share * nodes)
    if not 0 < count < nodes:
        raise ns.InvalidInputError(f"`share` must label some of {nodes} nodes and not all; got {share:g}")
    labelled, rest = np.sort(order[:count]), np.sort(order[count:])
    seen = np.full(predicted.labels.size, -1, dtype=np.int64)
    seen[labelled] = predicted.labels[labelled]
    inputs = CalibrationData.check(predicted.graph, predicted.probabilities, seen, labelled)
    groups = {
        "neighbourhood": ns.groups_by_neighbourhood(predicted.graph, rest, seed=seed),
        "class": predicted.labels,
        "degree": ns.groups_by_degree(predicted.graph, nodes=rest),
        "confidence": ns.groups_by_confidence(predicted.probabilities, nodes=rest),
    }
    settings = {"seed": seed, "alpha": alpha}
    return Draw(inputs, rest, predicted.labels, groups, settings, predicted)


def draw_kind(
    folder: str, name_and_seed: Callable[[Row], tuple[tuple[object, ...], int]], *, shipped: bool = False
) -> Kind:
    """Return the kind of rows of a study that compares methods on drawn labels.

    `name_and_seed` gives the name and the seed of a cell's draw; with `shipped`, predictions for Amazon are those that
    come with napsets.
    """

    def compute(cells: list[Row], folders: Folders) -> list[Row]:
        """Return the rows of one model's cells; methods that cannot run have none, and a warning says why."""
        predicted, rows = predicted_graph(cells[0], folders, shipped=shipped), []
        for same_draw in grouped(cells, "share", "repetition", "alpha").values():
            first = same_draw[0]
            drawn = draw(predicted, first["share"], *name_and_seed(first), first["alpha"])
            for cell in same_draw:
                try:
                    measured = measure(cell["method"], drawn)
                except ns.NapsetsError as error:
                    warnings.warn(f"{cell['method']} is left out: {error}", RuntimeWarning, stacklevel=1)
                    continue
                rows.append(cell | measured)
        return rows

    settings = ("dataset", "model", "seed", "share", "repetition", "method", "alpha")
    return Kind(folder, settings, ("dataset", "model", "seed"), compute)


def measure(name: str, drawn: Draw) -> Row:
    """Let a method predict sets for all nodes that are not labelled, and evaluate them.

    An excess is the coverage gap over groups of a kind, less what chance alone gives; seconds are processor time.
    """
    start, method = time.process_time(), name.removesuffix(WITH_FEATURES)
    inputs = drawn.inputs if method == name else drawn.with_features
    if method == "snaps":  # whose features are compared as they are, not along directions
        features = check_features("features", drawn.predicted.features, drawn.truth.size)
        inputs = replace(inputs, features=features, _scored={})
    with warnings.catch_warnings():
        # Warnings about a single draw (groups with few labels, say) show in the averages over many.
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        calibrated = make_method(method, **suitable(method, drawn.settings)).calibrate_data(inputs)
        sets = calibrated.predict(drawn.rest, drawn.settings["alpha"], threads=1)
    seconds = time.process_time() - start
    return {
        "labels": int(drawn.inputs.calibration.size),
        "level_labels": calibrated.level_size,
        "nodes": len(sets),
        "accuracy": drawn.predicted.accuracy,
        "seconds": round(seconds, 4),
        "coverage": ns.coverage(sets, drawn.truth),
        "mean_size": ns.mean_size(sets),
        "empty_rate": ns.empty_rate(sets),
        "full_rate": ns.full_rate(sets),
        **{f"excess_{kind}": ns.coverage_gap(sets, drawn.truth, drawn.groups[kind]).excess for kind in KINDS},
    }


def predicted_graph(cell: Row, folders: Folders, *, shipped: bool = False) -> PredictedGraph:
    """Return the graph and the predictions of a cell's model, which is trained where no file has them."""
    data = load(cell["dataset"], root=folders.root, seed=cell["seed"])
    if shipped and (cell["dataset"], cell["model"]) == ("amazon-computers", "graphsage-mean"):
        predictions = amazon_predictions()
    else:
        file = folders.predictions(f"{cell['dataset']}_{cell['model']}_{cell['seed']}.parquet")
        predictions = kept_predictions(file, lambda: train(cell, data))
    nodes, probabilities = data.test, predictions.take(data.test).probabilities
    return PredictedGraph(data.graph.subgraph(nodes), probabilities, data.labels[nodes], data.features[nodes])


def train(cell: Row, data: NodeDataset) -> NodePredictions:
    """Train a model, and return its rounded predictions on the test nodes."""
    from studies import training

    # One thread, so that runs side by side do not fight for cores, and so that last digits do not depend on it.
    predictions = training.train(scaled(data), cell["model"], PRESET, cell["seed"], threads=1, **CHANGES)
    tested = predictions.take(data.test)
    return replace(tested, probabilities=round_rows(tested.probabilities))


def scaled(data: NodeDataset) -> NodeDataset:
    """Bring features to one scale: many of them by the length of the row, a few by mean and deviation."""
    if data.num_features < _FEW_FEATURES:
        dense = data.feature_rows(slice(None)).astype(np.float64)
        return replace(data, features=(dense - dense.mean(axis=0)) / np.maximum(dense.std(axis=0), 1e-9))
    features: Any = data.features  # SciPy's stubs have no type for dense or sparse
    rows = sp.csr_array(features).astype(np.float64)
    lengths = np.sqrt((rows**2).sum(axis=1))
    return replace(data, features=(sp.diags_array(1.0 / np.maximum(lengths, 1e-9)) @ rows).astype(np.float32).tocsr())
