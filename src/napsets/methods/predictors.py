"""The names people use: objects that keep settings and a calibration together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, overload

from napsets.checks.arguments import ArrayLike, check_flag, shown
from napsets.checks.names import choose
from napsets.errors import FileFormatError, InvalidInputError, NapsetsWarning, NotCalibratedError
from napsets.graph import Direction, check_graph
from napsets.groups import GROUPS, make_groups
from napsets.levels import Exact, Nominal
from napsets.localisers import Balls, Everyone, Hops
from napsets.localisers.decay import Decay
from napsets.methods.auto import Choice, Choosing
from napsets.methods.method import Calibrated, Method
from napsets.methods.saving import load_asked, save
from napsets.scores import APS, SCORES, learns, make_score
from napsets.sets import PredictionSets

__all__ = ["NAPS", "Auto", "RandomisedNAPS", "SplitConformal"]

Self = TypeVar("Self", bound="_Predictor")


class _Predictor:
    """Settings and a calibration kept together."""

    score: Any
    seed: int
    allow_empty: bool
    by: Any
    calibrated_: Calibrated | None

    def __post_init__(self) -> None:
        self._settle()

    def _method(self) -> Method:
        raise NotImplementedError

    def _settle(self) -> Method:
        """Check the settings, which may have been assigned since the last time, and bring them to one form."""
        method = self._method()
        self.score, self.seed, self.allow_empty = method.score, method.seed, method.allow_empty
        self.by = method.groups
        return method

    def calibrated(self, asked: str = "predict") -> Calibrated:
        """Return the calibration with the settings as they are now, or say that there is none."""
        method = self._settle()
        if self.calibrated_ is None:
            raise NotCalibratedError(f"{type(self).__name__}.{asked}() needs calibrate(...) to be called first")
        if method != self.calibrated_.method:
            scored = self.calibrated_.scored
            size = method.level.reference_size(scored.calibration.size)
            changed = [name for name in ("score", "seed") if getattr(method, name) != getattr(scored, name)]
            if size != scored.reference.nodes.size:
                if hasattr(self, "exact"):
                    changed.append("exact")
                elif not changed:  # groups that learn want labels kept apart
                    changed.append("by")
            if changed:
                raise self._changed(asked, changed)
            self.calibrated_ = method.on(scored)
        return self.calibrated_

    def _changed(self, asked: str, names: list[str]) -> NotCalibratedError:
        return NotCalibratedError(
            f"{type(self).__name__}.{asked}() needs calibrate(...) to be called again: "
            f"{' and '.join(f'`{name}`' for name in names)} {'was' if len(names) == 1 else 'were'} changed after it"
        )

    @overload
    def predict(
        self, nodes: ArrayLike, alpha: float | None = ..., *, allow_empty: bool | None = ...,
        threads: int | None = ..., progress: Any = ...,
    ) -> PredictionSets: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike, alpha: Sequence[float], *, allow_empty: bool | None = ..., threads: int | None = ...,
        progress: Any = ...,
    ) -> list[PredictionSets]: ...  # fmt: skip

    def predict(
        self,
        nodes: ArrayLike,
        alpha: float | Sequence[float] | None = None,
        *,
        allow_empty: bool | None = None,
        threads: int | None = None,
        progress: Any = None,
    ) -> PredictionSets | list[PredictionSets]:
        """Return the prediction sets of `nodes`; with a score of numbers, their `PredictionIntervals`.

        Parameters
        ----------
        nodes : array
            Node indices or a boolean mask.
        alpha : float or sequence of floats
            Error rate: a set misses the truth with probability at most about alpha. For several, a list of sets comes
            back, from one search. By default 0.1, or what an `Auto` was made for.
        allow_empty : bool, optional
            Overrides the setting of the same name.
        threads, progress
            As in `hop_thresholds`.
        """
        calibrated = self.calibrated()
        rates = getattr(self, "alpha", 0.1) if alpha is None else alpha
        sets: PredictionSets | list[PredictionSets]
        sets = calibrated._predict(nodes, rates, allow_empty, threads, progress, stacklevel=3)
        caveat = self._caveat()
        if caveat is not None:
            warnings.warn(caveat, NapsetsWarning, stacklevel=2)
        return sets

    def _caveat(self) -> str | None:
        """Return what should be known of all sets that these settings make."""
        return None

    # -- as scikit-learn's tools expect it -----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; there are no estimators inside that `deep` would look into."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}  # type: ignore[arg-type]

    def set_params(self: Self, **params: Any) -> Self:
        """Change settings by name, all of them or, where one cannot be, none; return this object."""
        choices = self.get_params()
        for name in params:
            choose("params", name, choices)
        type(self)(**(choices | params))  # refuses what cannot be
        for name, value in params.items():
            setattr(self, name, value)
        self._settle()
        return self

    def __sklearn_clone__(self: Self) -> Self:
        """Return the same settings without the calibration, for ``sklearn.base.clone``."""
        return type(self)(**self.get_params())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one file (NumPy arrays and JSON, no pickle), whole or not at all."""
        save(self.calibrated("save"), path, kind=type(self).__name__)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a predictor that `save` wrote."""
        kind, calibrated, asked = load_asked(path)
        if kind != cls.__name__:
            raise InvalidInputError(f"`path` must hold a {cls.__name__}; {os.fspath(path)} holds a {kind}")
        predictor = cls._of(calibrated.method, asked)
        if not predictor._fits(calibrated.method):
            raise FileFormatError(
                f"`path` must hold settings that a {cls.__name__} can have; {os.fspath(path)} holds "
                f"{shown(calibrated.method)}"
            )
        predictor.calibrated_ = calibrated
        return predictor

    def _fits(self, method: Method) -> bool:
        """Return whether these settings are those of a method that a file holds."""
        return self._method() == method

    @classmethod
    def _of(cls: type[Self], method: Method, asked: Choosing | None) -> Self:
        raise NotImplementedError


def _need(graph: object) -> None:
    if graph is None:
        check_graph(graph)


class _Around(_Predictor):
    """A predictor that looks at the graph around a node."""

    def calibrate(
        self: Self,
        graph: Any,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Self:
        """Score the calibration nodes.

        Parameters
        ----------
        graph : Graph or another library's
            The graph whose neighbourhoods count; in the paper, the one induced on the test nodes. A `Graph`, a PyTorch
            Geometric ``Data``, a NetworkX graph, a SciPy sparse matrix or an ``edge_index``.
        probabilities : array of shape (nodes, classes)
            Any model's probabilities.
        labels : array of shape (nodes,)
            Integers, −1 where unknown.
        calibration : array
            Node indices or a boolean mask: whose labels may be used.
        ids : array of integers or strings, optional
            What the nodes are called elsewhere; each node's uniform number is drawn from it. By default 0..n−1. Where
            they are text, `predict` takes them as nodes too, and the sets know them.
        class_names : sequence of str, optional
            What the classes are called, for the sets.

        Returns
        -------
        NAPS or RandomisedNAPS
            This object.
        """
        _need(graph)
        method = self._settle()
        self.calibrated_ = method.calibrate(graph, probabilities, labels, calibration, ids=ids, class_names=class_names)
        return self


@dataclass(eq=False)
class NAPS(_Around):
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
        nodes together (split conformal prediction). With an exact level, nothing falls back.
    pool : float
        How many neighbours all calibration nodes together count for, on top of those near: nodes with a thin
        neighbourhood lean on everyone.
    alike : float
        The same for the calibration nodes for which the model's first choice is the node's own.
    exact : bool
        Set the level on labels kept apart, so that coverage holds in finite samples whatever the weights (see
        `napsets.levels`).
    by : str, array or Groups, optional
        Within what coverage is to hold: "class", "clusters" (of classes, with an exact level), "degree", "community",
        or an array with the group of each node (see `napsets.groups`).
    direction : {"out", "in", "both"}
        Which way edges are followed in a directed graph, from the node on: as they are, against them, or either way.

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
    score: Any = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    fallback: Literal["full", "global"] = "full"
    pool: float = 0.0
    alike: float = 0.0
    exact: bool = False
    by: Any = None
    direction: Direction = "out"
    calibrated_: Calibrated | None = field(default=None, init=False, repr=False)

    def _method(self) -> Method:
        localiser = Hops(self.hops, self.decay, self.pool, self.alike, self.direction)
        nominal = Nominal(self.fallback)
        exact = check_flag("exact", self.exact)
        if exact and self.fallback != "full":
            raise InvalidInputError("`fallback` must be 'full' with an exact level, under which nothing falls back")
        self.hops, self.decay, self.pool, self.alike = localiser.hops, localiser.decay, localiser.pool, localiser.alike
        return Method(self.score, localiser, Exact() if exact else nominal, self.seed, self.allow_empty, self.by)

    @classmethod
    def _of(cls, method: Method, asked: Choosing | None) -> NAPS:
        localiser: Any = method.localiser
        fallback = method.level.fallback if isinstance(method.level, Nominal) else "full"
        return cls(
            localiser.hops, localiser.decay, method.score, method.seed, method.allow_empty, fallback, localiser.pool,
            localiser.alike, isinstance(method.level, Exact), method.groups, localiser.direction,
        )  # fmt: skip

    def _caveat(self) -> str | None:
        if self.hops or self.pool or self.alike or self.exact or self.fallback != "full":
            return None
        return (
            "`hops` is 0: no calibration node is in reach, so that every set is full. Use more hops, or "
            "fallback='global' for split conformal prediction"
        )


@dataclass(eq=False)
class SplitConformal(_Predictor):
    """Split conformal prediction: one threshold from all calibration nodes, the graph unused (the paper's APS).

    Parameters
    ----------
    score, seed, allow_empty, by
        As in `NAPS`. A score or a grouping that learns from labels gets a part of them, and the rest sets the
        threshold.
    """

    score: Any = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    by: Any = None
    calibrated_: Calibrated | None = field(default=None, init=False, repr=False)

    def _method(self) -> Method:
        score, groups = make_score(self.score), make_groups(self.by)
        level = Exact() if learns(score) or learns(groups) else Nominal()
        return Method(score, Everyone(), level, self.seed, self.allow_empty, groups)

    @classmethod
    def _of(cls, method: Method, asked: Choosing | None) -> SplitConformal:
        return cls(method.score, method.seed, method.allow_empty, method.groups)

    def calibrate(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        graph: Any = None,
        class_names: Sequence[str] | None = None,
    ) -> SplitConformal:
        """Score the calibration nodes; arguments as in `NAPS.calibrate`, the graph only for scores that look at it."""
        self.calibrated_ = self._settle().calibrate(
            graph, probabilities, labels, calibration, ids=ids, class_names=class_names
        )
        return self


@dataclass(eq=False)
class Auto(_Predictor):
    """Prediction sets by the method that suits the graph, chosen on labels that then calibrate no level.

    Parameters
    ----------
    alpha : float
        The error rate that the choice is made for, and that `predict` takes where it is not told another.
    prefer : {"even", "small"}
        Sets that are small and evenly reliable, or as small as they can be.
    seed, allow_empty, by
        As in `NAPS`. Groups set their own levels; the choice is made for all nodes together.
    max_hops : int
        How far localisers may look, from 0 to 4.
    score : IntervalScore or str, optional
        For numbers instead of labels: "cqr", "absolute" or "normalised". For labels the score is chosen.

    Attributes
    ----------
    choice : Choice
        What was chosen, against what, by how much, with which uncertainty.
    """

    alpha: float = 0.1
    prefer: Literal["even", "small"] = "even"
    seed: int = 0
    allow_empty: bool = True
    max_hops: int = 3
    by: Any = None
    score: Any = None
    calibrated_: Calibrated | None = field(default=None, init=False, repr=False)
    _asked: Choosing | None = field(default=None, init=False, repr=False)

    def _choosing(self) -> Choosing:
        return Choosing(self.alpha, self.prefer, self.seed, self.allow_empty, self.max_hops, self.by, self.score)

    def _settle(self) -> Any:
        choosing = self._choosing()
        self.by, self.score = choosing.by, choosing.score
        return choosing

    def calibrated(self, asked: str = "predict") -> Calibrated:
        """Return the calibration, or say that there is none for the settings as they are now."""
        choosing = self._choosing()
        if self.calibrated_ is None:
            raise NotCalibratedError(f"Auto.{asked}() needs calibrate(...) to be called first")
        if self._asked is not None and choosing != self._asked:
            raise self._changed(
                asked,
                [one.name for one in fields(choosing) if getattr(choosing, one.name) != getattr(self._asked, one.name)],
            )
        return self.calibrated_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was chosen, and the settings that it was chosen by; as in `NAPS.save`."""
        calibrated = self.calibrated("save")
        asked = None
        if self._asked is not None:
            asked = {
                one.name: getattr(self._asked, one.name)
                for one in fields(self._asked)
                if one.name not in ("by", "score")
            }
            if self._asked.score is not None:
                asked["score"] = SCORES.name_of(type(self._asked.score))
            if self._asked.by is not None and calibrated.method.groups is None:  # otherwise they are the method's
                asked["by"] = GROUPS.describe("by", self._asked.by)
        save(calibrated, path, kind="Auto", asked=asked)

    def _fits(self, method: Method) -> bool:
        return True  # any method may have been chosen

    @classmethod
    def _of(cls, method: Method, asked: Choosing | None) -> Auto:
        if asked is None:  # an older file
            return cls(seed=method.seed, allow_empty=method.allow_empty)
        predictor = cls(**{one.name: getattr(asked, one.name) for one in fields(asked)})
        predictor._asked = asked
        return predictor

    @property
    def choice(self) -> Choice:
        """What was chosen, and why; a file keeps what was chosen, not why."""
        choice: Choice | None = self.calibrated("choice").choice
        if choice is None:
            raise NotCalibratedError("Auto.choice needs calibrate(...): a file does not keep why a method was chosen")
        return choice

    def calibrate(
        self,
        graph: Any,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Auto:
        """Choose a method and calibrate it; arguments as in `NAPS.calibrate`."""
        _need(graph)
        choosing = self._choosing()
        self.calibrated_ = choosing.calibrate(
            graph, probabilities, labels, calibration, ids=ids, class_names=class_names
        )
        self._asked = choosing
        return self


@dataclass(eq=False)
class RandomisedNAPS(_Around):
    """Local prediction sets with a guarantee that costs no labels: RLCP (Hore and Barber, 2023) on balls of the graph.

    A node is drawn from the ball around the node to predict; calibration nodes whose own ball holds it count, each
    with one over the size of its ball. Because of the draw, P(Y ∈ set) ≥ 1 − alpha in finite samples if calibration
    nodes and the node to predict are exchangeable, with all labels used for thresholds. Another seed draws another
    node, and gives another set. The graph must be undirected.

    Parameters
    ----------
    min_size : int
        A ball is the smallest around a node, itself included, that holds so many nodes, labelled or not; where none
        does within 6 hops, it is all nodes. With more than there are nodes this is split conformal prediction.
    score, seed, allow_empty
        As in `NAPS`. A score that learns from labels gets a part of them, and the rest sets the level.

    Examples
    --------
    >>> import numpy as np, napsets as ns
    >>> ring = ns.Graph.from_edge_index([np.arange(100), np.roll(np.arange(100), 1)], num_nodes=100)
    >>> p, y = np.tile([0.7, 0.3], (100, 1)), np.arange(100) % 2
    >>> randomised = ns.RandomisedNAPS(min_size=11).calibrate(ring, p, y, calibration=np.arange(1, 100))
    >>> int(randomised.predict([0], alpha=0.2).support[0])
    10
    """

    min_size: int = 100
    score: Any = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    calibrated_: Calibrated | None = field(default=None, init=False, repr=False)

    def _method(self) -> Method:
        localiser, score = Balls(self.min_size), make_score(self.score)
        self.min_size = localiser.min_size
        return Method(score, localiser, Exact() if learns(score) else Nominal(), self.seed, self.allow_empty)

    @classmethod
    def _of(cls, method: Method, asked: Choosing | None) -> RandomisedNAPS:
        localiser: Any = method.localiser
        return cls(localiser.min_size, method.score, method.seed, method.allow_empty)
