"""NAPS and SplitConformal: calibrate once, predict as often as you like.

The estimators keep arrays together; the work is done by pure functions in `scores`, `thresholds` and `sets`.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_array,
    as_column,
    check_alpha,
    check_flag,
    check_hops,
    check_index,
    check_labels,
    check_probabilities,
    check_seed,
    shown,
)
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.errors import InvalidInputError, NapsetsWarning, NotCalibratedError
from napsets.graph import Graph, check_graph
from napsets.localisers.decay import Decay, check_decay, hop_weights
from napsets.localisers.depth import useful_hops
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds
from napsets.quantile import required_mass
from napsets.randomness import node_uniforms
from napsets.scores import APS, Score, make_score
from napsets.sets import PredictionSets, members

__all__ = ["NAPS", "CalibrationData", "SplitConformal", "hop_weights_of", "split_thresholds_of"]

Self = TypeVar("Self", bound="_Predictor")

#: Rows whose scores are held at a time while sets are made.
_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class CalibrationData(Sealed):
    """What calibration leaves behind: checked arrays, and the calibration nodes' scores at their labels.

    Arrays that somebody could still write to are copied.
    """

    probabilities: npt.NDArray[Any]
    calibration: IntArray
    scores: FloatArray
    u: FloatArray
    score: Score  #: what they were scored with
    seed: int

    def __post_init__(self) -> None:
        for name in ("probabilities", "calibration", "scores", "u"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


class _Predictor:
    """What both predictors share: the score, the seed, and how thresholds become sets."""

    score: Score | str  #: a Score, once the settings were checked
    seed: int
    allow_empty: bool
    data_: CalibrationData | None

    def __post_init__(self) -> None:
        self._check_settings()

    def _check_settings(self) -> None:
        """Check the settings, which may have been assigned since the last time, and bring them to one form."""
        self.score = make_score(self.score)
        self.seed = check_seed(self.seed)
        self.allow_empty = check_flag("allow_empty", self.allow_empty)

    def _prepare(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        ids: ArrayLike | None,
        size: int | None,
    ) -> CalibrationData:
        p = check_probabilities(probabilities, num_nodes=size)
        y = check_labels(labels, size=p.shape[0], num_classes=p.shape[1])
        chosen = check_index("calibration", calibration, p.shape[0], unique=True)
        if chosen.size == 0:
            raise InvalidInputError("`calibration` must hold at least one node; it is empty")
        unknown = y[chosen] < 0
        if unknown.any():
            node = int(chosen[unknown.argmax()])
            raise InvalidInputError(
                f"`calibration` must hold nodes whose label is known; {unknown.sum()} are not, node {node} first"
            )
        names = np.arange(p.shape[0]) if ids is None else as_column("ids", ids)
        if names.shape != (p.shape[0],):
            raise InvalidInputError(f"`ids` must have one entry a node, {p.shape[0]}; got shape {names.shape}")
        u = sealed(node_uniforms(names, self.seed))
        score = make_score(self.score)
        return CalibrationData(p, chosen, score.at(p[chosen], y[chosen], u[chosen]), u, score, self.seed)

    def _calibrated(self, asked: str = "predict") -> CalibrationData:
        """Check the settings, which may have been assigned since, and return what was calibrated with them."""
        self._check_settings()
        if self.data_ is None:
            raise NotCalibratedError(f"{type(self).__name__}.{asked}() needs calibrate(...) to be called first")
        if (self.score, self.seed) != (self.data_.score, self.data_.seed):
            raise NotCalibratedError(
                f"{type(self).__name__}.{asked}() needs calibrate(...) to be called again: `score` or `seed` was "
                f"changed after it"
            )
        return self.data_

    def _chosen(self, nodes: ArrayLike, data: CalibrationData) -> IntArray:
        chosen = check_index("nodes", nodes, data.probabilities.shape[0])
        calibrates = np.zeros(data.probabilities.shape[0], dtype=bool)
        calibrates[data.calibration] = True
        both = int(calibrates[chosen].sum())
        if both:
            warnings.warn(
                f"`nodes` holds {both} calibration nodes; a node's own label is left out of its own set",
                NapsetsWarning,
                stacklevel=3,
            )
        return chosen

    def _member(
        self, data: CalibrationData, nodes: IntArray, thresholds: FloatArray, allow_empty: bool | None
    ) -> npt.NDArray[np.bool_]:
        allowed = self.allow_empty if allow_empty is None else check_flag("allow_empty", allow_empty)
        score = make_score(self.score)
        member = np.empty((nodes.size, data.probabilities.shape[1]), dtype=bool)
        for start in range(0, nodes.size, _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            p = data.probabilities[nodes[rows]]
            matrix = score.matrix(p, data.u[nodes[rows]])
            member[rows] = members(matrix, thresholds[rows], top_labels=None if allowed else p.argmax(axis=1))
        return sealed(member)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one file (NumPy arrays and JSON, no pickle), whole or not at all."""
        from napsets.files.persistence import save

        save(self, path)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a predictor that `save` wrote."""
        from napsets.files.persistence import load

        predictor = load(path)
        if not isinstance(predictor, cls):
            raise InvalidInputError(
                f"`path` must hold a {cls.__name__}; {os.fspath(path)} holds a {type(predictor).__name__}"
            )
        return predictor


@dataclass(eq=False)
class NAPS(_Predictor):
    """Neighbourhood adaptive prediction sets (Clarkson, ICML 2023).

    Parameters
    ----------
    hops : int
        Depth of the neighbourhood, the paper's K.
    decay : str, callable or array
        Weight of a calibration node k hops away: "uniform" (NAPS), "hyperbolic" (NAPS-H), "geometric" (NAPS-G), a
        function of k, or an array indexed by k−1 with as many weights as hops.
    score : Score or str
        How badly a label fits: `APS` by default, another score, or the name of one: "aps", "raps", "saps", "thr".
    seed : int
        Seed of each node's uniform number, which is a function of seed and node id alone; from 0 to 2⁶⁴−1.
    allow_empty : bool
        With False, a set that would be empty gets the best label.
    fallback : {"full", "global"}
        What a node gets whose neighbourhood has too little mass: every label, or the threshold of all calibration
        nodes together (split conformal prediction).

    Examples
    --------
    >>> import numpy as np, napsets as ns
    >>> ring = ns.Graph.from_edge_index([np.arange(100), np.roll(np.arange(100), 1)], num_nodes=100)
    >>> p = np.tile([0.7, 0.3], (100, 1))
    >>> y = np.arange(100) % 2
    >>> sets = ns.NAPS(hops=10).calibrate(ring, p, y, calibration=np.arange(90)).predict([95], alpha=0.2)
    >>> int(sets.support[0])
    11
    """

    hops: int = 2
    decay: Decay = "uniform"
    score: Score | str = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    fallback: Literal["full", "global"] = "full"
    index_: CalibrationIndex | None = field(default=None, init=False, repr=False)
    data_: CalibrationData | None = field(default=None, init=False, repr=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        self.hops = check_hops("hops", self.hops)
        check_decay(self.decay, self.hops)
        if not (isinstance(self.decay, str) or callable(self.decay)):
            self.decay = tuple(as_array("decay", self.decay).tolist())
        if not isinstance(self.fallback, str) or self.fallback not in ("full", "global"):
            raise InvalidInputError(f"`fallback` must be 'full' or 'global'; got {shown(self.fallback)}")

    def calibrate(
        self,
        graph: Graph,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
    ) -> NAPS:
        """Score the calibration nodes.

        Parameters
        ----------
        graph : Graph
            The graph whose neighbourhoods count; in the paper, the one induced on the test nodes.
        probabilities : array of shape (nodes, classes)
            Any model's probabilities.
        labels : array of shape (nodes,)
            Integers, −1 where unknown.
        calibration : array
            Node indices or a boolean mask: whose labels may be used.
        ids : array of integers or strings, optional
            What the nodes are called elsewhere; each node's uniform number is drawn from it. By default 0..n−1.

        Returns
        -------
        NAPS
            This object.
        """
        check_graph(graph)
        self._check_settings()
        data = self._prepare(probabilities, labels, calibration, ids, graph.num_nodes)
        self.index_ = CalibrationIndex(graph, data.scores, data.calibration)
        self.data_ = data
        return self

    def predict(
        self,
        nodes: ArrayLike,
        alpha: float = 0.1,
        *,
        allow_empty: bool | None = None,
        threads: int | None = None,
        progress: Any = None,
    ) -> PredictionSets:
        """Return the prediction sets of `nodes`, each calibrated on its own neighbourhood.

        Parameters
        ----------
        nodes : array
            Node indices or a boolean mask.
        alpha : float
            Error rate: a set misses the truth with probability at most about alpha.
        allow_empty : bool, optional
            Overrides the setting of the same name.
        threads, progress
            As in `hop_thresholds`.
        """
        data = self._calibrated()
        assert self.index_ is not None
        alpha = check_alpha(alpha)
        chosen = self._chosen(nodes, data)
        weights = hop_weights_of(self, self.index_.graph, chosen)
        if not self.hops and self.fallback == "full":
            warnings.warn(
                "`hops` is 0: no calibration node is in reach, so that every set is full. Use more hops, or "
                "fallback='global' for split conformal prediction",
                NapsetsWarning,
                stacklevel=2,
            )
        found = neighbourhood_thresholds(self.index_, chosen, weights, alpha, threads=threads, progress=progress)
        thresholds, support, size = found.values[0, 0], found.support[0], found.effective_size[0]
        if self.fallback == "global":
            short = np.isinf(thresholds)
            thresholds = thresholds.copy()
            thresholds[short], support[short] = split_thresholds_of(self.index_, chosen[short], alpha)
            size = np.where(short, support, size)
        member = self._member(data, chosen, thresholds, allow_empty)
        return PredictionSets(chosen, member, thresholds, support, size, alpha, num_nodes=data.probabilities.shape[0])


@dataclass(eq=False)
class SplitConformal(_Predictor):
    """Split conformal prediction: one threshold from all calibration nodes, the graph unused (the paper's APS).

    Parameters
    ----------
    score, seed, allow_empty
        As in `NAPS`.
    """

    score: Score | str = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    data_: CalibrationData | None = field(default=None, init=False, repr=False)

    def calibrate(
        self, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, *, ids: ArrayLike | None = None
    ) -> SplitConformal:
        """Score the calibration nodes; arguments as in `NAPS.calibrate`, without a graph."""
        self._check_settings()
        self.data_ = self._prepare(probabilities, labels, calibration, ids, None)
        return self

    def predict(self, nodes: ArrayLike, alpha: float = 0.1, *, allow_empty: bool | None = None) -> PredictionSets:
        """Return the prediction sets of `nodes`; arguments as in `NAPS.predict`."""
        data = self._calibrated()
        alpha = check_alpha(alpha)
        chosen = self._chosen(nodes, data)
        empty = Graph(np.zeros(data.probabilities.shape[0] + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        index = CalibrationIndex(empty, data.scores, data.calibration)
        thresholds, support = split_thresholds_of(index, chosen, alpha)
        member = self._member(data, chosen, thresholds, allow_empty)
        return PredictionSets(
            chosen,
            member,
            thresholds,
            support,
            support.astype(np.float64),
            alpha,
            num_nodes=data.probabilities.shape[0],
        )


def hop_weights_of(predictor: NAPS, graph: Graph, nodes: IntArray) -> FloatArray:
    """Return a predictor's weights of the hops at which `nodes` of a graph may have neighbours."""
    return hop_weights(predictor.decay, predictor.hops, depth=useful_hops(graph, nodes, predictor.hops))


def split_thresholds_of(index: CalibrationIndex, nodes: IntArray, alpha: float) -> tuple[FloatArray, IntArray]:
    """Return the split-conformal threshold of each node from all calibration nodes but itself, and their number."""
    scores = index.sorted_scores
    own = index.numbers[nodes].astype(np.int64)
    support = scores.size - (own < scores.size).astype(np.int64)
    # The ⌈(n+1)(1−α)⌉-th smallest of the others: one further on, where the node's own score stands before it.
    place = np.ceil(np.array([required_mass(float(n), alpha) for n in (scores.size - 1, scores.size)])).astype(np.int64)
    wanted = place[support - scores.size + 1] - 1
    reached = wanted < support
    wanted = np.where(own <= wanted, wanted + 1, wanted)
    thresholds = np.full(nodes.size, np.inf)
    thresholds[reached] = scores[wanted[reached]]
    return thresholds, support
