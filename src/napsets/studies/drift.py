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
import os
import warnings
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.datasets import NodeDataset
from napsets.datasets.registry import file_name, read_collected, split_seed, time_split
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.files.predictions import NodePredictions
from napsets.levels import rank_place
from napsets.live.alarms import first_alarm, jumper, miss_alarm, smoothed_p_values
from napsets.live.monitoring import coverage_interval, worst_window
from napsets.live.steering import Mark, Steered
from napsets.studies.study import POSITIVE, SHARE, ModelCell, Row, columns

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
    """What the model says of the nodes after training, in the order of their arrival."""

    scores: FloatArray  #: one less the probability (THR)
    labels: IntArray  #: the truth
    calibration: int  #: how many nodes, the first, calibrate; the others are the stream

    @property
    def at_truth(self) -> FloatArray:
        """The score of each node at its label."""
        return np.asarray(self.scores[np.arange(self.labels.size), self.labels])


@dataclass(frozen=True, eq=False)
class Stream:
    """The sets of a stream: the level and the size of each, whether it missed, and whether its label came at all."""

    levels: FloatArray
    sizes: IntArray
    missed: BoolArray
    labelled: BoolArray


def train_softmax(data: NodeDataset, order: str, seed: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Train on the first nodes; return those that calibrate, the stream, and the probabilities of both."""
    from scipy.special import softmax

    times = data.times
    if order == "random" or times is None:
        times = np.random.default_rng(split_seed(f"{data.name}/order", seed)).permutation(data.num_nodes)
    train, calibration, stream = time_split(data.labels, times)
    arrived = np.empty(data.num_nodes, dtype=np.int64)
    arrived[np.argsort(times, kind="stable")] = np.arange(data.num_nodes)
    features = _features(data, arrived)
    weights, constant = _fit(features[train], data.labels[train], data.num_classes)
    later = np.concatenate([calibration, stream])
    return calibration, stream, np.asarray(softmax(features[later] @ weights + constant, axis=1))


def _features(data: NodeDataset, arrived: IntArray) -> Any:
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


def _fit(features: Any, labels: IntArray, classes: int) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients and constants of a softmax regression with a ridge; the loss is convex."""
    from scipy.optimize import minimize
    from scipy.special import softmax

    rows, columns = features.shape
    transposed, truth = features.T.tocsr(), np.eye(classes)[labels]

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        table = flat.reshape(columns + 1, classes)
        probabilities = softmax(features @ table[:-1] + table[-1], axis=1)
        value = -np.log(np.maximum(probabilities[np.arange(rows), labels], 1e-300)).sum()
        difference = probabilities - truth
        slope = np.vstack([transposed @ difference + RIDGE * table[:-1], difference.sum(axis=0)])
        return (value + 0.5 * RIDGE * (table[:-1] ** 2).sum()) / rows, (slope / rows).ravel()

    start = np.zeros((columns + 1) * classes)
    options = {"maxiter": 2000, "gtol": 1e-7, "ftol": 1e-14}
    search: Any = minimize  # whose types know no functions that return their slope too
    table = search(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(columns + 1, classes)
    return table[:-1], table[-1]


def follow(arrivals: Arrivals, strategy: str, *, alpha: float, delay: int = 0, labelled: str = "all") -> Stream:
    """Make the set of each node of the stream from the labels that had come before it.

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


@dataclass(frozen=True)
class DriftCell(ModelCell):
    """One strategy on one stream; `seed` draws the random order, and plays no part in the order of time."""

    study: ClassVar[str] = "drift"
    suffix: ClassVar[str] = ".npz"
    model_settings: ClassVar = ("dataset", "model", "order", "seed")
    common: ClassVar = ("alpha",)
    measured: ClassVar = {
        **columns("calibration nodes classes mean_size worst_end coverage_alarm exchangeability_alarm", POSITIVE),
        **columns("coverage_evidence exchangeability_evidence", POSITIVE),
        **columns("accuracy coverage coverage_low coverage_high worst_window full_rate empty_rate", SHARE),
        **columns("seen_coverage seen_share", SHARE),
    }
    may_lack: ClassVar = ("coverage_alarm", "exchangeability_alarm", "seen_coverage")
    order: str  #: in which order nodes arrive
    strategy: str  #: a name from `STRATEGIES`
    delay: int = 0  #: how many more sets are made before the label of a set comes
    labelled: str = "all"  #: whether the label of every set comes, or only of those of at most two labels
    alpha: float = 0.1  #: error rate

    @property
    def title(self) -> str:  # noqa: D102
        return f"{self.dataset} in {'a random order' if self.order == 'random' else 'the order of time'}"

    def training(self) -> dict[str, Any]:  # noqa: D102
        return {"ridge": RIDGE}

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
        before, stream = np.split(arrivals.at_truth, [arrivals.calibration])
        exchangeability = jumper(smoothed_p_values(stream, before), restarted=True, log=True)
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
