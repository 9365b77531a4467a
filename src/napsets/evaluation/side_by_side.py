"""What every comparison of methods has in common, of sets or of intervals: how it is asked for, made and held.

Methods of the same scores share one search of the neighbourhoods; the labels of `nodes` are used to judge, never to
make what is judged.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    check_alpha,
    check_hops,
    check_index,
    check_list,
    shown,
)
from napsets.checks.frozen import sealed
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.evaluation.judgement import Judged, check_groups
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.graph import Graph, check_graph
from napsets.localisers import LocalThresholds
from napsets.localisers.depth import useful_hops
from napsets.methods import Calibrated, Given, Settings, find_thresholds, make_method
from napsets.methods.table import known_settings
from napsets.scores import APS, is_regression, learns, make_score

if TYPE_CHECKING:
    from napsets.evaluation.verdict import Verdict

__all__ = ["COMPARED", "CURVE_ALPHAS", "Asked", "Compared", "Found", "SideBySide", "ask", "find"]
__all__ += ["finite_together", "known_labels"]

#: What is compared where nothing else is asked for: names of the table `napsets.methods.METHODS`.
COMPARED: tuple[str, ...] = ("split", "naps", "naps-exact", "informed", "auto")

#: Where a calibration curve is drawn.
CURVE_ALPHAS: tuple[float, ...] = (0.01, 0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared(Judged, ABC):
    """One method among others: what it is called, what it made, and how that goes over error rates.

    Attributes
    ----------
    name : str
        Its name in the table of methods.
    title : str
        What tables and charts call it.
    calibrated : Calibrated
        The method, calibrated.
    curve_coverage, curve_size : numpy.ndarray
        Coverage and mean size at each of the comparison's `alphas`.
    """

    name: str
    title: str
    calibrated: Calibrated
    curve_coverage: FloatArray = field(default_factory=lambda: np.empty(0))
    curve_size: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    @abstractmethod
    def made(self) -> Any:
        """The sets, or intervals, of the nodes compared on."""

    @property
    @abstractmethod
    def sizes(self) -> npt.NDArray[Any]:
        """How large each set, or how wide each interval is."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Labels in a set, or the width of a finite interval, on average."""

    @abstractmethod
    def same_as(self, other: Any) -> bool:
        """Return whether another method made the very same sets or intervals."""

    @property
    def hits(self) -> int:
        """How many of the judged nodes are covered."""
        return round(self.coverage * self.nodes)


One = TypeVar("One", bound=Compared)


@dataclass(frozen=True, eq=False)
class SideBySide(ABC, Generic[One]):
    """Methods side by side.

    Attributes
    ----------
    results : tuple
        One for each method, in the order asked for.
    alpha, hops
        What was asked for; of more than 64 hops, those that the graph has.
    partition : list of numpy.ndarray
        Neighbourhoods that PCCV compares.
    alphas : tuple of float
        Where the curves are.
    given : Given
        Graph, outputs, labels and calibration nodes, checked. The labels judged, too.
    settings : Settings
        What all methods were told.
    ids : numpy.ndarray or None
        What the nodes are called; None for 0..n−1.
    """

    results: tuple[One, ...]
    alpha: float
    hops: int
    partition: list[IntArray]
    alphas: tuple[float, ...]
    given: Given
    settings: Settings
    ids: npt.NDArray[Any] | None

    @property
    def graph(self) -> Graph:
        """The graph."""
        assert self.given.graph is not None
        return self.given.graph

    @property
    def baseline(self) -> One:
        """What the others are compared with: the first method."""
        return self.results[0]

    @property
    def nodes(self) -> IntArray:
        """The nodes that judged, in the order asked for."""
        found: IntArray = self.baseline.made.nodes
        return found

    @property
    def known(self) -> BoolArray:
        """Whether the label of each node is known."""
        return known_labels(self.given.labels)

    @property
    @abstractmethod
    def predicted(self) -> npt.NDArray[Any]:
        """What the model predicts of each node: a class, or a number."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """Say which method to take, what it buys beside the baseline, how sure that is, and what to mind."""

    def __iter__(self) -> Iterator[One]:
        return iter(self.results)

    def __getitem__(self, name: str) -> One:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary a method, for tables and JSON."""
        return [
            {"method": result.name, "title": result.title, "hops": self.hops, "alpha": self.alpha} | result.row()
            for result in self.results
        ]


@dataclass(frozen=True, eq=False)
class Asked:
    """What a comparison was asked for, checked.

    Attributes
    ----------
    rates : tuple of float
        The error rate, and those of the curves.
    settings : Settings
        What all methods are told.
    methods : dict
        The methods by name, in the order asked for.
    groups : dict
        The user's own groupings by name.
    """

    rates: tuple[float, ...]
    settings: Settings
    methods: dict[str, Any]
    groups: dict[str, Any]


def ask(
    graph: Graph,
    *,
    methods: Sequence[str],
    alpha: float,
    hops: int,
    score: Any,
    seed: int,
    alphas: Sequence[float],
    groups: Mapping[str, ArrayLike] | None,
    settings: Mapping[str, Any],
) -> Asked:
    """Check what can be checked before any node is looked at; the parameters are those of `compare`."""
    rates = (check_alpha(alpha), *(check_alpha(rate) for rate in check_list("alphas", alphas, "error rates")))
    check_graph(graph)
    known_settings(settings)
    told = Settings(score=make_score(score), hops=check_hops("hops", hops), seed=seed, alpha=rates[0], **settings)
    names = check_list("methods", methods, "names of methods")
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(f"`methods` must be a list of names of methods; got {shown(name)} in it")
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"`methods` must name at least one method and none twice; got {shown(names)}")
    own = check_groups(groups)
    return Asked(rates, told, {name: _made(name, told) for name in names}, own)


def _made(name: str, told: Settings) -> Any:
    """Return a method, or say which methods take a score that learns."""
    try:
        return make_method(name, told)
    except InvalidInputError as error:
        if not learns(told.score):
            raise
        make_method(name, replace(told, score=APS()))  # it is wrong with any score, and says so
        raise InvalidInputError(
            f"`score` must not learn from labels where {name!r} is compared, which keeps none apart; "
            f"{type(told.score).__name__} does. Leave it out, or compare 'split' and 'naps-exact'."
        ) from error


@dataclass(frozen=True, eq=False)
class Found:
    """Methods calibrated, and their thresholds on the nodes that judge.

    Attributes
    ----------
    given : Given
        What they were calibrated on, its labels a copy that the caller cannot change.
    nodes : numpy.ndarray
        The nodes that judge.
    labels : numpy.ndarray
        Their labels, or targets.
    calibrated : list of Calibrated
        The methods, in the order asked for.
    thresholds : list of LocalThresholds
        Those of each method, a row a rate.
    partition : list of numpy.ndarray
        Neighbourhoods of the nodes that judge.
    """

    given: Given
    nodes: IntArray
    labels: npt.NDArray[Any]
    calibrated: list[Calibrated]
    thresholds: list[LocalThresholds]
    partition: list[IntArray]

    def held(self, asked: Asked, ids: ArrayLike | None) -> dict[str, Any]:
        """Return what every comparison holds beside its results, and let go of what methods shared while made."""
        self.given._scored.clear()  # it would keep every candidate's arrays
        graph = self.given.graph
        assert graph is not None
        return {
            "alpha": asked.rates[0],
            "hops": useful_hops(graph, self.nodes, asked.settings.hops),
            "partition": self.partition,
            "alphas": asked.rates[1:],
            "given": self.given,
            "settings": asked.settings,
            "ids": None if ids is None else np.array(ids),
        }


def find(asked: Asked, given: Given, nodes: ArrayLike, progress: Any) -> Found:
    """Calibrate the methods and find their thresholds; labels are known where they are neither −1 nor NaN."""
    kind = np.float64 if is_regression(asked.settings.score) else np.int64
    given = replace(given, labels=sealed(given.labels.astype(kind)), _scored={})
    chosen = _judged(nodes, given)
    labels = given.labels[chosen]
    unknown = ~known_labels(labels)
    if unknown.any():
        node = int(chosen[unknown.argmax()])
        raise InvalidInputError(
            f"`nodes` must have known labels to be compared on; {unknown.sum()} do not, node {node} first"
        )
    calibrated = [method.fit(given) for method in asked.methods.values()]
    thresholds = find_thresholds(calibrated, chosen, asked.rates, progress=progress)
    assert given.graph is not None
    partition = neighbourhood_partition(given.graph, chosen, seed=asked.settings.seed)
    return Found(given, chosen, labels, calibrated, thresholds, partition)


def finite_together(values: Sequence[FloatArray]) -> BoolArray:
    """Return where the values of all methods are finite, but for methods that have no finite one anywhere.

    Examples
    --------
    >>> finite_together([np.array([1.0, 2.0]), np.array([np.inf, 3.0]), np.array([np.inf, np.inf])])
    array([False,  True])
    """
    finite = [np.isfinite(one) for one in values]
    found: BoolArray = np.all([one for one in finite if one.any()] or finite, axis=0)
    return found


def known_labels(labels: npt.NDArray[Any]) -> BoolArray:
    """Return which labels are known: classes from 0 on, or finite numbers."""
    known: BoolArray = np.isfinite(labels) if labels.dtype.kind == "f" else labels >= 0
    return known


def _judged(nodes: ArrayLike, given: Given) -> IntArray:
    chosen = check_index("nodes", nodes, given.outputs.shape[0], unique=True)
    if chosen.size == 0:
        raise InvalidInputError("`nodes` must hold at least one node; it is empty")
    both = int(np.isin(chosen, given.calibration).sum())
    if both:
        warnings.warn(
            f"`nodes` holds {both} calibration nodes: labels that judge these sets also helped to make others",
            NapsetsWarning,
            stacklevel=4,
        )
    return chosen
