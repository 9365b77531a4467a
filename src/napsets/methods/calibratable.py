"""Calibratable: `calibrate`, which every method has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, NoReturn, overload

from napsets.checks.arguments import ArrayLike
from napsets.checks.values import check_progress
from napsets.errors import InvalidInputError, NotCalibratedError, warn
from napsets.graph import check_graph
from napsets.kernels.threads import Progress
from napsets.methods.data import CalibrationData
from napsets.scores import Score
from napsets.scores.base import uses_features

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated

#: The arrays that every calibration needs.
_ARRAYS = ("probabilities", "labels", "calibration")
#: Methods of other libraries that users try, and what to write instead.
_ELSEWHERE = dict.fromkeys(("fit", "conformalize", "fit_conformalize"), "calibrate(graph, probabilities, labels, …)")
_ELSEWHERE |= dict.fromkeys(
    ("predict_set", "predict_sets", "predict_interval", "predict_proba", "predict_new"), "calibrate(…).predict(nodes)"
)


def _graph_may_be_left_out(calibrate: Callable[..., Calibrated]) -> Callable[..., Calibrated]:
    """Let three arrays be the probabilities, the labels and the calibration nodes of a method without a graph."""

    @wraps(calibrate)
    def either(self: Calibratable, *arrays: object, **named: object) -> Calibrated:
        given = len(arrays) + sum(name in named for name in _ARRAYS)
        if given == len(_ARRAYS) and ({"graph", "features"} & set(named) or not self.needs_graph):
            arrays = (named.pop("graph", None), *arrays)
        return calibrate(self, *arrays, **named)

    return either


class Calibratable(ABC):
    """A method: settings that never change. `calibrate` returns a `Calibrated`, which predicts."""

    score: Score | None
    alpha: float

    @property
    def needs_graph(self) -> bool:
        """Whether a graph is required."""
        return True

    @property
    def uses_evidence(self) -> bool:
        """Whether some labels teach and others set the level, so that `evidence` may be given."""
        return True

    @property
    def uses_features(self) -> bool:
        """Whether nodes are compared by their features: one that chooses its score may do so."""
        return self.score is None or uses_features(self.score)

    @abstractmethod
    def calibrate_data(self, data: CalibrationData) -> Calibrated:
        """Calibrate with arguments that were checked."""

    def calibrate_rows(
        self,
        graph: object,
        outputs: ArrayLike,
        truth: ArrayLike,
        calibration: ArrayLike,
        keys: ArrayLike | None = None,
        *,
        evidence: ArrayLike | None = None,
        features: ArrayLike | None = None,
    ) -> Calibrated:
        """Calibrate nodes that are known by their positions; keys only draw random numbers."""
        return self.calibrate_data(
            CalibrationData.check(
                graph, outputs, truth, calibration, evidence=evidence, features=features, ids=keys, score=self.score
            )
        )

    def predict(self, *arguments: object, **settings: object) -> NoReturn:
        """Raise an error: what `calibrate` returns predicts."""
        raise NotCalibratedError(
            "a method never changes, and what calibrate(...) returns predicts: write calibrated = "
            "method.calibrate(...) and calibrated.predict(...)"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name in _ELSEWHERE:
                raise AttributeError(f"a method has no {name}; write {_ELSEWHERE[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    if TYPE_CHECKING:

        @overload
        def calibrate(
            self, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, /, *, graph: object = ...,
            evidence: ArrayLike | None = ..., features: object = ..., ids: ArrayLike | None = ...,
            class_names: Sequence[str] | None = ..., logits: bool = ..., progress: bool | Progress | None = ...,
        ) -> Calibrated: ...  # fmt: skip

        @overload
        def calibrate(
            self, probabilities: ArrayLike, labels: ArrayLike, /, *, calibration: ArrayLike, graph: object = ...,
            evidence: ArrayLike | None = ..., features: object = ..., ids: ArrayLike | None = ...,
            class_names: Sequence[str] | None = ..., logits: bool = ..., progress: bool | Progress | None = ...,
        ) -> Calibrated: ...  # fmt: skip

        @overload
        def calibrate(
            self, graph: object, probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike, *,
            evidence: ArrayLike | None = ..., features: object = ..., ids: ArrayLike | None = ...,
            class_names: Sequence[str] | None = ..., logits: bool = ..., progress: bool | Progress | None = ...,
        ) -> Calibrated: ...  # fmt: skip

        def calibrate(self, *arrays: object, **named: object) -> Calibrated:
            """Score the calibration nodes, and set the level."""
            ...

    else:

        @_graph_may_be_left_out
        def calibrate(
            self,
            graph: object,
            probabilities: ArrayLike,
            labels: ArrayLike,
            calibration: ArrayLike,
            *,
            evidence: ArrayLike | None = None,
            features: object = None,
            ids: ArrayLike | None = None,
            class_names: Sequence[str] | None = None,
            logits: bool = False,
            progress: bool | Progress | None = None,
        ) -> Calibrated:
            """Score the calibration nodes, and set the level.

            Arguments that are pandas objects are aligned by their index, and refused where their indexes differ.

            Parameters
            ----------
            graph : Graph or another library's
                The graph whose neighbourhoods count; in the paper, the one induced on the test nodes. A `Graph`, a
                PyTorch Geometric ``Data``, a NetworkX graph, a SciPy sparse matrix, a table of edges or an
                ``edge_index``. A NetworkX graph and a table name nodes by their ids. Methods that use no graph take
                the three arrays alone.
            probabilities : array of shape (nodes, classes)
                Any model's probabilities; with a score of numbers, the model's outputs, one column for each that the
                score names. The column names of a frame become the class names, and an index that is not 0..n−1 the
                ids.
            labels : array of shape (nodes,)
                Integers, −1 where unknown, or the names of classes (`class_names`, or column names), None where
                unknown; with a score of numbers, the targets, NaN where unknown.
            calibration : array
                The nodes whose labels may be used: a boolean mask, or nodes as in `predict`. None of them should have
                trained the model, and they must be a random sample of the nodes like those to predict.
            evidence : array, optional
                Other nodes with a label, given as `calibration` is, for methods that learn from labels: they may have
                been labelled for any reason. They teach, and all of `calibration` sets the level; without them,
                `calibration` is split in halves for the two. A node in both counts as calibration.
            features : array of shape (nodes, columns) or SciPy sparse matrix, optional
                Numbers that describe each node, such as the embeddings of a model, for methods that learn from labels:
                the labels of nodes with similar features are evidence, too, and `graph` may then be None. By default
                ``x`` of a PyTorch Geometric ``Data``.
            ids : array of integers or strings, optional
                The names of the nodes elsewhere; by default 0..n−1. Nodes are named by their ids from here on, in
                `calibration`, in `predict`, in the sets and in tables, and each node's uniform number is drawn from
                its id. With ids that are integers, numbers are ids; positions are then passed as a boolean mask, or
                to `predict` as ``positions=``.
            class_names : sequence of str, optional
                The names of the classes, for the sets.
            logits : bool
                Whether `probabilities` are logits, which a softmax makes into probabilities.
            progress : bool or callable
                True for a line on the terminal, or a function that is called as ``progress(done, total)``.

            Returns
            -------
            Calibrated
                The calibrated method, which predicts.
            """
            if self.needs_graph and graph is None and (features is None or self.score is not None):
                if self.uses_features and self.score is None:
                    raise InvalidInputError(
                        "`graph` or `features` must be given: this method learns from neighbours, or from nodes with "
                        "similar features; got None for both"
                    )
                check_graph(graph)
            data = CalibrationData.of(
                graph, probabilities, labels, calibration, evidence=evidence, features=features, ids=ids,
                class_names=class_names, score=self.score, compares=self.uses_features, logits=logits,
            )  # fmt: skip
            direction = getattr(getattr(self, "localiser", None), "direction", "out")
            if direction != "out" and data.graph is not None and not data.graph.directed:
                warn(f"`direction` has no effect: the graph is undirected, so that {direction!r} is the same as 'out'")
            return self.calibrate_data(replace(data, progress=check_progress(progress)))
