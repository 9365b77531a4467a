"""Predictors with their settings by name: split conformal prediction, the automatic choice and RLCP, beside NAPS."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, ClassVar, overload

from napsets.checks.arguments import ArrayLike
from napsets.errors import InvalidInputError, NotCalibratedError
from napsets.groups import make_groups
from napsets.levels import Exact, Nominal
from napsets.localisers import Balls, Everyone
from napsets.methods.auto import AutoMethod
from napsets.methods.choice import Choice, Prefer
from napsets.methods.method import NAPS, Method
from napsets.methods.predictor import Predictor
from napsets.methods.saving import Saved, read_saved
from napsets.scores import APS, learns, make_score


def _graph_first_too(calibrate: Callable[..., SplitConformal]) -> Callable[..., SplitConformal]:
    """Take a graph as first of four arguments, as other methods do."""

    @wraps(calibrate)
    def either(self: SplitConformal, *arrays: Any, **named: Any) -> SplitConformal:
        if arrays and len(arrays) + len(named.keys() & {"probabilities", "labels", "calibration"}) == 4:
            return calibrate(self, *arrays[1:], **{"graph": arrays[0], **named})
        return calibrate(self, *arrays, **named)

    return either


@dataclass(eq=False)
class SplitConformal(Predictor["SplitConformal"]):
    """Split conformal prediction: one threshold from all calibration nodes, without the graph (the paper's APS).

    Parameters
    ----------
    score, seed, allow_empty, by
        As in `NAPS`. A score or a grouping that learns from labels uses a part of them, and the others set the
        threshold.
    """

    score: Any = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    by: Any = None
    _name: ClassVar[str] = "split"

    def _method(self) -> Method:
        score, groups = make_score(self.score), make_groups(self.by)
        level = Exact() if learns(score) or learns(groups) else Nominal()
        return Method(score, Everyone(), level, self.seed, self.allow_empty, groups)

    @overload
    def calibrate(
        self, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, *, graph: Any = ...,
        ids: ArrayLike | None = ..., class_names: Sequence[str] | None = ..., logits: bool = ..., progress: Any = ...,
    ) -> SplitConformal: ...  # fmt: skip

    @overload
    def calibrate(
        self, graph: Any, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, *,
        ids: ArrayLike | None = ..., class_names: Sequence[str] | None = ..., logits: bool = ..., progress: Any = ...,
    ) -> SplitConformal: ...  # fmt: skip

    @_graph_first_too
    def calibrate(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        graph: Any = None,
        **named: Any,
    ) -> SplitConformal:
        """Score the calibration nodes; arguments as in `NAPS.calibrate`.

        The graph is needed only by scores and groups that use it: it may be left out, passed by name, or passed first
        as for every other method.
        """
        return super().calibrate(graph, probabilities, labels, calibration, **named)

    def predict(
        self,
        nodes: Any = None,
        alpha: float | Sequence[float] | None = None,
        *,
        probabilities: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        """Return the prediction sets of `nodes`, or of rows of new nodes.

        Parameters
        ----------
        nodes, alpha, options
            As in `NAPS.predict`.
        probabilities : array of shape (new nodes, classes), optional
            Rows of new nodes, instead of `nodes`. For scores that use the graph, use `predict_new`, which takes their
            edges.
        ids : array of integers or strings, optional
            The ids of these rows; by default numbers that continue those of the known nodes.
        """
        if nodes is not None and probabilities is not None:
            raise InvalidInputError("`nodes` must be given, or else `probabilities` of rows that are new; not both")
        if probabilities is None:
            return super().predict(nodes, alpha, **options)
        return self.predict_new(probabilities, None, alpha, ids=ids, **options)


@dataclass(eq=False)
class Auto(Predictor["Auto"]):
    """Prediction sets by a method that is chosen by trying several on part of the labels; the others set the level.

    Parameters
    ----------
    alpha : float
        The error rate for which the method is chosen, and the default of `predict`.
    prefer : {"even", "small"}
        Small sets with even coverage, or sets as small as possible.
    seed, allow_empty, by
        As in `NAPS`. Groups set their own levels; the choice is made for all nodes together.
    max_hops : int
        How far localisers may look, from 0 to 4.
    score : IntervalScore or str, optional
        For numbers instead of labels: "cqr", "absolute" or "normalised". For labels the score is chosen.

    Attributes
    ----------
    choice : Choice
        What was chosen, what it was compared with, the difference, and its uncertainty.
    """

    alpha: float = 0.1
    prefer: Prefer = "even"
    seed: int = 0
    allow_empty: bool = True
    max_hops: int = 3
    by: Any = None
    score: Any = None
    needs_graph: ClassVar[bool] = True
    _name: ClassVar[str] = "auto"

    def _method(self) -> AutoMethod:
        return AutoMethod(self.alpha, self.prefer, self.seed, self.allow_empty, self.max_hops, self.by, self.score)

    def _scored_otherwise(self, method: AutoMethod) -> list[str]:
        before = self._calibrated_with
        names = [attribute.name for attribute in fields(method)]
        return [name for name in names if getattr(method, name) != getattr(before, name)]

    @classmethod
    def _from_saved(cls, saved: Saved, path: str | os.PathLike[str]) -> Auto:
        method = saved.calibrated.method
        older = {"seed": method.seed, "allow_empty": method.allow_empty}  # a file that does not say more
        predictor = cls(**(older if saved.auto is None else vars(saved.auto)))
        predictor.calibrated_, predictor._calibrated_with = saved.calibrated, saved.auto
        return predictor

    @property
    def choice(self) -> Choice:
        """What was chosen, and why."""
        choice: Choice | None = self.calibrated("choice").choice
        if choice is None:
            raise NotCalibratedError("Auto.choice needs calibrate(...): an older file does not say why it was chosen")
        return choice


@dataclass(eq=False)
class RandomisedNAPS(Predictor["RandomisedNAPS"]):
    """Local prediction sets with a guarantee that costs no labels: RLCP (Hore and Barber, 2023) on balls of the graph.

    A node is drawn from the ball around the node to predict; calibration nodes whose own ball contains it count, with
    weight one over the size of their ball. Because of the draw, P(Y ∈ set) ≥ 1 − alpha in finite samples if calibration
    nodes and the node to predict are exchangeable, with all labels used for thresholds. Another seed draws another
    node, and gives another set. The graph must be undirected.

    Parameters
    ----------
    min_size : int
        The ball of a node is the smallest one around it, itself included, with this many nodes, labelled or not; if
        there is none within 6 hops, it contains all nodes. A value beyond the number of nodes means
        split conformal prediction.
    score, seed, allow_empty
        As in `NAPS`. A score that learns from labels uses a part of them, and the others set the level.

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
    needs_graph: ClassVar[bool] = True
    _name: ClassVar[str] = "rlcp"

    def _method(self) -> Method:
        localiser, score = Balls(self.min_size), make_score(self.score)
        self.min_size = localiser.min_size
        return Method(score, localiser, Exact() if learns(score) else Nominal(), self.seed, self.allow_empty)


#: The predictors that a file can hold.
_KINDS: dict[str, type[Predictor[Any]]] = {kind.__name__: kind for kind in (NAPS, SplitConformal, Auto, RandomisedNAPS)}


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote: a `NAPS`, `SplitConformal`, `RandomisedNAPS` or `Auto`, otherwise a `Calibrated`.

    Parameters
    ----------
    path : str or path
        A file that `save` of a predictor, of a `Calibrated` or of the best method of a comparison wrote.
    """
    saved = read_saved(path)
    kind = _KINDS.get(saved.kind)
    return saved.calibrated if kind is None else kind._from_saved(saved, path)
