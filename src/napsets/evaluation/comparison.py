"""APS beside the NAPS variants on the same nodes: what every table and the report are made from.

The variants share one search of the neighbourhoods; the labels of `nodes` are used to judge sets, never to make them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_alpha,
    check_hops,
    check_index,
    check_list,
)
from napsets.checks.frozen import sealed
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.evaluation.judgement import Judgement, judge
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.graph import Graph, check_graph
from napsets.localisers.decay import hop_weights
from napsets.localisers.depth import useful_hops
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds
from napsets.methods import NAPS, CalibrationData, split_thresholds_of
from napsets.scores import APS, Score, make_score
from napsets.sets import PredictionSets, members

__all__ = ["CURVE_ALPHAS", "METHODS", "Comparison", "Method", "MethodResult", "compare", "size_strata"]

#: Entries of the score matrix held at a time.
_CHUNK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class Method:
    """A way to calibrate: a decay over hops, or None for all calibration nodes alike, the graph unused."""

    name: str
    decay: str | None


#: The paper's four methods, the baseline first.
METHODS: tuple[Method, ...] = (
    Method("APS", None),
    Method("NAPS", "uniform"),
    Method("NAPS-H", "hyperbolic"),
    Method("NAPS-G", "geometric"),
)

#: Where a calibration curve is drawn.
CURVE_ALPHAS: tuple[float, ...] = (0.01, 0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)


@dataclass(frozen=True, eq=False)
class MethodResult(Judgement):
    """One method's sets and what they are worth: a `Judgement`, with what was judged.

    Attributes
    ----------
    method : Method
        Which one.
    sets : PredictionSets
        The sets of the nodes compared on.
    curve_coverage, curve_size : numpy.ndarray
        Coverage and mean size at each of the comparison's `alphas`.
    """

    method: Method
    sets: PredictionSets
    curve_coverage: FloatArray = field(default_factory=lambda: np.empty(0))
    curve_size: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name


@dataclass(frozen=True, eq=False)
class Comparison:
    """The methods side by side.

    Attributes
    ----------
    results : tuple of MethodResult
        One for each of `METHODS`, in that order.
    alpha, hops
        What was asked for; of more than 64 hops, those that the graph has.
    strata : list of (low, high)
        Set sizes that SSCV groups.
    partition : list of numpy.ndarray
        Neighbourhoods that PCCV compares.
    alphas : tuple of float
        Where the curves are.
    data : CalibrationData
        Checked arrays and the calibration nodes' scores.
    index : CalibrationIndex
        The graph with its calibration nodes in order of score.
    labels : numpy.ndarray
        The labels that judged, one a node, −1 where unknown.
    score : Score
        How badly a label fits.
    seed : int
        Seed of the nodes' uniform numbers and of the partition's roots.
    ids : numpy.ndarray or None
        What the uniform numbers were drawn from; None for 0..n−1.
    """

    results: tuple[MethodResult, ...]
    alpha: float
    hops: int
    strata: list[tuple[int, int]]
    partition: list[IntArray]
    alphas: tuple[float, ...]
    data: CalibrationData
    index: CalibrationIndex
    labels: IntArray
    score: Score
    seed: int
    ids: npt.NDArray[Any] | None

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.results)

    def __getitem__(self, name: str) -> MethodResult:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary a method, for tables and JSON."""
        return [
            {"method": result.name, "hops": self.hops, "alpha": self.alpha} | result.row() for result in self.results
        ]


def compare(
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    *,
    alpha: float = 0.1,
    hops: int = 2,
    score: Score | str | None = None,
    seed: int = 0,
    ids: ArrayLike | None = None,
    alphas: Sequence[float] = (),
    strata: Sequence[tuple[int, int]] | None = None,
    progress: Any = None,
) -> Comparison:
    """Make the sets of `nodes` with each of `METHODS`, and judge them by the labels.

    Parameters
    ----------
    graph, probabilities, labels, calibration, ids
        As in `NAPS.calibrate`.
    nodes : array
        Node indices or a boolean mask, with known labels: what to predict and judge.
    alpha : float
        Error rate.
    hops : int
        Depth of the neighbourhoods.
    score : Score or str, optional
        `APS()` by default.
    seed : int
        Seed of the nodes' uniform numbers and of the partition's roots.
    alphas : sequence of float
        More error rates, for the calibration curve (see `CURVE_ALPHAS`).
    strata : sequence of (low, high), optional
        Set sizes that SSCV groups; by default `size_strata` of the number of classes.
    progress : callable, optional
        Called as ``progress(done, total)`` in nodes.
    """
    rates = (check_alpha(alpha), *(check_alpha(rate) for rate in check_list("alphas", alphas, "error rates")))
    check_graph(graph)
    hops = check_hops("hops", hops)
    naps = NAPS(hops=hops, score=APS() if score is None else score, seed=seed)
    naps.calibrate(graph, probabilities, labels, calibration, ids=ids)
    data, index = naps.data_, naps.index_
    assert data is not None
    assert index is not None
    chosen = _judged(nodes, data)
    truth = as_array("labels", labels).astype(np.int64)  # a copy, which the caller cannot change
    known = truth[chosen]
    if (known < 0).any():
        node = int(chosen[(known < 0).argmax()])
        raise InvalidInputError(
            f"`nodes` must have known labels to be compared on; {(known < 0).sum()} do not, node {node} first"
        )
    hops = useful_hops(graph, chosen, hops)
    calibrated, thresholds = _calibrated(index, chosen, hops, rates, progress)
    filled, covered, sizes = _filled(thresholds, data, chosen, known, make_score(naps.score))
    drawn = [
        PredictionSets(chosen, member, tau, support, size, rates[0], num_nodes=graph.num_nodes)
        for member, tau, (support, size) in zip(filled, thresholds[:, 0], calibrated, strict=True)
    ]
    groups = (
        size_strata(data.probabilities.shape[1])
        if strata is None
        else check_list("strata", strata, "pairs (low, high)")
    )
    partition = neighbourhood_partition(graph, chosen, seed=seed)
    results = tuple(
        MethodResult(
            **judge(sets, truth, strata=groups, partition=partition).row(),
            method=method,
            sets=sets,
            curve_coverage=hit[1:],
            curve_size=size[1:],
        )
        for method, sets, hit, size in zip(METHODS, drawn, covered, sizes, strict=True)
    )
    return Comparison(
        results=results,
        alpha=rates[0],
        hops=hops,
        strata=groups,
        partition=partition,
        alphas=rates[1:],
        data=data,
        index=index,
        labels=truth,
        score=make_score(naps.score),
        seed=seed,
        ids=None if ids is None else np.array(ids),
    )


def size_strata(num_classes: int) -> list[tuple[int, int]]:
    """Return the default strata of set sizes: 0–1, 2–3 and 4 or more, as the paper has them for ten classes.

    Examples
    --------
    >>> size_strata(10), size_strata(3)
    ([(0, 1), (2, 3), (4, 10)], [(0, 1), (2, 3)])
    """
    ends = [(0, min(1, num_classes)), (2, min(3, num_classes)), (4, num_classes)]
    return [(low, high) for low, high in ends if low <= high]


def _judged(nodes: ArrayLike, data: CalibrationData) -> IntArray:
    chosen = check_index("nodes", nodes, data.probabilities.shape[0], unique=True)
    if chosen.size == 0:
        raise InvalidInputError("`nodes` must hold at least one node; it is empty")
    both = int(np.isin(chosen, data.calibration).sum())
    if both:
        warnings.warn(
            f"`nodes` holds {both} calibration nodes: labels that judge these sets also helped to make others",
            NapsetsWarning,
            stacklevel=3,
        )
    return chosen


def _calibrated(
    index: CalibrationIndex, nodes: IntArray, hops: int, rates: tuple[float, ...], progress: Any
) -> tuple[list[tuple[IntArray, FloatArray]], npt.NDArray[np.float64]]:
    """Return each method's support and effective sizes, and thresholds of shape (methods, rates, nodes)."""
    decays = [method.decay for method in METHODS if method.decay is not None]
    rows = np.stack([hop_weights(decay, hops) for decay in decays])
    found = neighbourhood_thresholds(index, nodes, rows, rates, progress=progress)
    split = [split_thresholds_of(index, nodes, rate) for rate in rates]
    thresholds = np.empty((len(METHODS), len(rates), nodes.size))
    calibrated = []
    for m, method in enumerate(METHODS):
        if method.decay is None:
            thresholds[m] = [values for values, _ in split]
            support = split[0][1]
            size = support.astype(np.float64)
        else:
            d = decays.index(method.decay)
            thresholds[m], support, size = found.values[d], found.support[d], found.effective_size[d]
        calibrated.append((support, size))
    return calibrated, thresholds


def _filled(
    thresholds: FloatArray, data: CalibrationData, nodes: IntArray, labels: IntArray, score: Score
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return the sets' members, made in pieces, and coverage and mean size of shape (methods, rates)."""
    filled = np.empty((thresholds.shape[0], nodes.size, data.probabilities.shape[1]), dtype=bool)
    hits = np.zeros(thresholds.shape[:2])
    sizes = np.zeros(thresholds.shape[:2])
    step = max(1, _CHUNK_ENTRIES // data.probabilities.shape[1])
    for start in range(0, nodes.size, step):
        rows = slice(start, start + step)
        matrix = score.matrix(data.probabilities[nodes[rows]], data.u[nodes[rows]])
        at_label = np.arange(matrix.shape[0]), labels[rows]
        for m in range(thresholds.shape[0]):
            for r in range(thresholds.shape[1]):
                member: BoolArray = members(matrix, thresholds[m, r, rows])
                hits[m, r] += member[at_label].sum()
                sizes[m, r] += member.sum()
                if r == 0:
                    filled[m, rows] = member
    return sealed(filled), hits / nodes.size, sizes / nodes.size
