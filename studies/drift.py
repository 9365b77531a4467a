"""The drift study: sets of nodes that arrive over time, with thresholds and levels that follow the labels or do not.

The first 30 % of the labelled nodes, in time or in a random order, train a softmax regression; the next 20 % calibrate;
the others are the stream. The features of a node are its words and the mean of those of its neighbours that were there
before it, so that nothing is seen before its time.

Everything is computed from probabilities that are kept in the project, so that the figures are the same everywhere.
The models are convex and fitted to convergence: training them again takes a minute, and gives the same figures but for
rare ties.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left, insort
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import napsets as ns
from napsets.datasets import NodeDataset, NodePredictions
from napsets.levels import rank_place
from napsets.live.alarms import first_alarm, jumper, miss_alarm, smoothed_p_values
from napsets.live.monitoring import worst_window
from napsets.live.steering import Mark, Steered
from studies.collections import file_name, read_collected, split_seed, time_split
from studies.rows import Folders, Kind, kept_predictions
from studies.tables import Bools, Floats, Ints, Row

#: How thresholds follow the labels that have come.
STRATEGIES: dict[str, str] = {
    "static": "calibrated once, on the labels before the stream",
    "growing": "calibrated on all labels so far",
    "window": "calibrated on the last 500 labels",
    "aci": "all labels so far, the level steered with one rate, .01",
    "dtaci": "all labels so far, the level steered with eight rates",
}

_STEERED = {"aci": Steered("aci", rate=0.01), "dtaci": Steered("dtaci")}
_WINDOW = 500
#: Sets of at most this many labels are small.
_SMALL = 2
#: The weight of the squares of the coefficients relative to the sum of the losses.
RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The nodes after training in the order of their arrival, with the model's scores."""

    scores: Floats  #: one less the probability (THR)
    labels: Ints  #: the truth
    calibration: int  #: how many nodes, the first, calibrate; the others are the stream

    @property
    def at_truth(self) -> Floats:
        """The score of each node at its label."""
        return np.asarray(self.scores[np.arange(self.labels.size), self.labels])


@dataclass(frozen=True, eq=False)
class Stream:
    """The sets of a stream: the level and the size of each, whether it missed, and whether its label came at all."""

    levels: Floats
    sizes: Ints
    missed: Bools
    labelled: Bools


def train_softmax(data: NodeDataset, order: str, seed: int) -> tuple[Ints, Ints, Floats]:
    """Train on the first nodes; return those that calibrate, the stream, and the probabilities of both.

    The model is a softmax regression with a ridge; its loss is convex.
    """
    times = data.times
    if order == "random" or times is None:
        times = np.random.default_rng(split_seed(f"{data.name}/order", seed)).permutation(data.num_nodes)
    train, calibration, stream = time_split(data.labels, times)
    arrived = np.empty(data.num_nodes, dtype=np.int64)
    arrived[np.argsort(times, kind="stable")] = np.arange(data.num_nodes)
    features = _features(data, arrived)
    regression = import_module("sklearn.linear_model").LogisticRegression(C=1.0 / RIDGE, tol=1e-7, max_iter=2000)
    regression.fit(features[train], data.labels[train])
    probabilities = np.zeros((calibration.size + stream.size, data.num_classes))  # a class may come only later
    probabilities[:, regression.classes_] = regression.predict_proba(features[np.concatenate([calibration, stream])])
    return calibration, stream, probabilities


def _features(data: NodeDataset, arrived: Ints) -> Any:
    """Return the words of each node in addition to the mean of those of its neighbours that arrived before it."""
    import scipy.sparse

    sp: Any = scipy.sparse  # whose types know no sums of such arrays
    own = sp.csr_array(data.features, dtype=np.float64)
    own.data = np.copysign(np.log1p(np.abs(own.data)), own.data)  # features need not be counts
    own = sp.diags_array(1.0 / np.maximum(np.sqrt((own**2).sum(axis=1)), 1e-12)) @ own
    source = np.repeat(np.arange(data.num_nodes), data.graph.degrees)
    before = arrived[data.graph.indices] < arrived[source]
    earlier = sp.csr_array(
        (np.ones(int(before.sum())), (source[before], data.graph.indices[before])), shape=(data.num_nodes,) * 2
    )
    means = sp.diags_array(1.0 / np.maximum(earlier.sum(axis=1), 1.0)) @ (earlier @ own)
    return sp.hstack([own, means]).tocsr()


def follow(arrivals: Arrivals, strategy: str, *, alpha: float, delay: int = 0, labelled: str = "all") -> Stream:
    """Predict the set of each node of the stream from the labels that had come before it.

    A label comes `delay` sets late; of `labelled` "small" only those of sets of at most two labels come at all.
    """
    scores, at_truth = arrivals.scores[arrivals.calibration :], arrivals.at_truth
    known = _Known(at_truth[: arrivals.calibration].tolist(), strategy)
    steering = _STEERED[strategy].start(alpha) if strategy in _STEERED else None
    size = scores.shape[0]
    levels, sizes, comes = np.full(size, alpha), np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.bool_)
    missed, marks, p_values = np.zeros(size, dtype=np.bool_), list[Mark](), np.empty(size)
    for t, score in enumerate(at_truth[arrivals.calibration :].tolist()):
        if steering is not None:
            marks.append(steering.mark())
            levels[t] = marks[t].level
        threshold, p_values[t] = known.threshold(levels[t]), known.p_value(score)
        sizes[t], missed[t] = (scores[t] <= threshold).sum(), score > threshold
        comes[t] = labelled == "all" or sizes[t] <= _SMALL
        late = t - delay
        if late >= 0 and comes[late]:
            known.add(float(at_truth[arrivals.calibration + late]))
            if steering is not None:
                steering.update(float(p_values[late]), marks[late])
    return Stream(levels, sizes, missed, comes)


class _Known:
    """The scores that calibrate, sorted."""

    def __init__(self, scores: list[float], strategy: str) -> None:
        self._latest = scores[-_WINDOW:] if strategy == "window" else list(scores)
        self._sorted, self._strategy = sorted(self._latest), strategy

    def add(self, score: float) -> None:
        if self._strategy == "static":
            return
        insort(self._sorted, score)
        self._latest.append(score)
        if self._strategy == "window" and len(self._latest) > _WINDOW:
            self._sorted.pop(bisect_left(self._sorted, self._latest.pop(0)))

    def threshold(self, level: float) -> float:
        """Return the conformal quantile: infinite at levels of 0 or below, and nothing fits at 1 or above."""
        if not 0.0 < level < 1.0:
            return np.inf if level <= 0.0 else -np.inf
        place = rank_place(len(self._sorted), level)
        return self._sorted[place - 1] if place <= len(self._sorted) else np.inf

    def p_value(self, score: float) -> float:
        """Return the level from which on a set misses this score."""
        return (1 + len(self._sorted) - bisect_left(self._sorted, score)) / (len(self._sorted) + 1)


#: Points of a curve over time.
_POINTS = 40


def read_timed(name: str, folders: Folders) -> NodeDataset:
    """Read a graph whose nodes have a time; its file need not be one of the project's."""
    with warnings.catch_warnings():  # classes that come only later are what drift is about
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        data = read_collected(folders.root / file_name(name), name=name)
    if data.times is None:
        raise ns.InvalidInputError(f"`dataset` must be a graph with time; {file_name(name)} has no node_time")
    return data


def trained(cell: Row, data: NodeDataset) -> NodePredictions:
    """Train the model of a stream; the calibration nodes are the split "validation", the stream is "test"."""
    calibration, stream, probabilities = train_softmax(data, cell["order"], cell["seed"])
    nodes = np.concatenate([calibration, stream])
    split = np.repeat(["validation", "test"], [calibration.size, stream.size])
    rows = probabilities.astype(np.float32)  # not rounded: where classes are new, truth has tiny probabilities
    return NodePredictions(nodes, rows, data.labels[nodes], split, data.name, cell["model"], {"ridge": RIDGE})


def stream_predictions(cell: Row, folders: Folders) -> NodePredictions:
    """Return the predictions of a stream, training the model where they are not kept."""
    name = "_".join(str(cell[setting]) for setting in ("dataset", "model", "order", "seed"))
    file = folders.predictions(f"{name}.parquet")
    return kept_predictions(file, lambda: trained(cell, read_timed(cell["dataset"], folders)))


def _drift_rows(cells: list[Row], folders: Folders) -> list[Row]:
    """Return the rows of the strategies on one stream."""
    predictions = stream_predictions(cells[0], folders)
    scores = 1.0 - predictions.probabilities.astype(np.float64)
    arrivals = Arrivals(scores, predictions.labels, int((predictions.split == "validation").sum()))
    before, stream = np.split(arrivals.at_truth, [arrivals.calibration])
    exchangeability = jumper(smoothed_p_values(stream, before), log=True)
    return [cell | _measure(cell, arrivals, exchangeability) for cell in cells]


#: One row for each strategy on each stream. `order` is that in which nodes arrive; `seed` draws the random order, and
#: plays no part in the order of time; a label comes `delay` sets late; `labelled` says whether the label of every set
#: comes ("all"), or only those of sets of at most two labels ("small").
DRIFT = Kind(
    "drift",
    ("dataset", "model", "seed", "order", "strategy", "delay", "labelled", "alpha"),
    ("dataset", "model", "order", "seed"),
    _drift_rows,
)


def _measure(cell: Row, arrivals: Arrivals, exchangeability: Floats) -> Row:
    """Measure one strategy; the alarms see the labels that come, coverage is that of all sets."""
    alpha, size = cell["alpha"], arrivals.scores.shape[1]
    stream = follow(arrivals, cell["strategy"], alpha=alpha, delay=cell["delay"], labelled=cell["labelled"])
    covered, seen = ~stream.missed, stream.missed[stream.labelled]
    coverage = miss_alarm(seen, alpha, log=True)
    labels = arrivals.labels[arrivals.calibration :]
    ring = math.log(100.0)
    return {
        "calibration": arrivals.calibration,
        "nodes": int(covered.size),
        "classes": size,
        "accuracy": float((arrivals.scores[arrivals.calibration :].argmin(axis=1) == labels).mean()),
        "coverage": float(covered.mean()),
        "worst_window": worst_window(stream.missed).coverage,
        "mean_size": float(stream.sizes.mean()),
        "full_rate": float((stream.sizes == size).mean()),
        "seen_share": float(stream.labelled.mean()),
        "seen_coverage": float(1.0 - seen.mean()) if seen.size else math.nan,
        "coverage_alarm": first_alarm(coverage, ring),
        "exchangeability_alarm": first_alarm(exchangeability, ring),
        "coverage_curve": [float(part.mean()) for part in np.array_split(covered, _POINTS)],
    }
