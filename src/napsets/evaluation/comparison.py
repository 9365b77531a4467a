"""Methods side by side on the same nodes: what every table and the report are made from.

Methods of the same scores share one search of the neighbourhoods; the labels of `nodes` are used to judge sets, never
to make them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

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
from napsets.evaluation.groups import usual_groups
from napsets.evaluation.judgement import Judgement, check_groups, judge
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.evaluation.verdict import Verdict, judge_methods
from napsets.graph import Graph, check_graph
from napsets.localisers import LocalThresholds
from napsets.localisers.depth import useful_hops
from napsets.methods import Calibrated, Given, Settings, fill_sets, find_thresholds, make_method, title
from napsets.methods.table import known_settings
from napsets.scores import APS, Score, learns, make_score
from napsets.sets import PredictionSets

__all__ = ["COMPARED", "CURVE_ALPHAS", "Comparison", "MethodResult", "compare", "size_strata"]


#: What is compared where nothing else is asked for: names of the table `napsets.methods.METHODS`.
COMPARED: tuple[str, ...] = ("split", "naps", "naps-exact", "informed", "auto")

#: Where a calibration curve is drawn.
CURVE_ALPHAS: tuple[float, ...] = (0.01, 0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)


@dataclass(frozen=True, eq=False)
class MethodResult(Judgement):
    """One method's sets and what they are worth: a `Judgement`, with what was judged.

    Attributes
    ----------
    name : str
        Its name in the table of methods.
    title : str
        What tables and charts call it.
    calibrated : Calibrated
        The method, calibrated.
    sets : PredictionSets
        The sets of the nodes compared on.
    curve_coverage, curve_size : numpy.ndarray
        Coverage and mean size at each of the comparison's `alphas`.
    """

    name: str
    title: str
    calibrated: Calibrated
    sets: PredictionSets
    curve_coverage: FloatArray = field(default_factory=lambda: np.empty(0))
    curve_size: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The methods side by side.

    Attributes
    ----------
    results : tuple of MethodResult
        One for each method, in the order asked for.
    alpha, hops
        What was asked for; of more than 64 hops, those that the graph has.
    strata : list of (low, high)
        Set sizes that SSCV groups.
    partition : list of numpy.ndarray
        Neighbourhoods that PCCV compares.
    alphas : tuple of float
        Where the curves are.
    given : Given
        Graph, probabilities, labels and calibration nodes, checked. The labels judged, too.
    settings : Settings
        What all methods were told.
    ids : numpy.ndarray or None
        What the nodes are called; None for 0..n−1.
    """

    results: tuple[MethodResult, ...]
    alpha: float
    hops: int
    strata: list[tuple[int, int]]
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
    def labels(self) -> IntArray:
        """The labels that judged, one a node, −1 where unknown."""
        return self.given.labels

    @property
    def baseline(self) -> MethodResult:
        """What the others are compared with: the first method."""
        return self.results[0]

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.results)

    def __getitem__(self, name: str) -> MethodResult:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def verdict(self, class_names: Sequence[str] | None = None) -> Verdict:
        """Say which method to take, what it buys beside the baseline, how sure that is, and what to mind.

        See `napsets.evaluation.verdict`. With ``alphas=CURVE_ALPHAS``, intervals also hold what another draw of labels
        would change; without, only what other nodes would.
        """
        return judge_methods(self, class_names=class_names)

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary a method, for tables and JSON."""
        return [
            {"method": result.name, "title": result.title, "hops": self.hops, "alpha": self.alpha} | result.row()
            for result in self.results
        ]


def compare(
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    *,
    methods: Sequence[str] = COMPARED,
    alpha: float = 0.1,
    hops: int = 2,
    score: Score | str | None = None,
    seed: int = 0,
    ids: ArrayLike | None = None,
    alphas: Sequence[float] = (),
    strata: Sequence[tuple[int, int]] | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    progress: Any = None,
    **settings: Any,
) -> Comparison:
    """Make the sets of `nodes` with each of some methods, and judge them by the labels.

    Parameters
    ----------
    graph, probabilities, labels, calibration, ids
        As in `NAPS.calibrate`.
    nodes : array
        Node indices or a boolean mask, with known labels: what to predict and judge.
    methods : sequence of str
        Names of the table of methods (`napsets.methods.METHODS`), the baseline first.
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
    groups : mapping, optional
        The user's own groupings by name, each an array with one entry a node as in `coverage_gap`. Gaps over them stand
        beside those over "neighbourhood", "class", "degree" and "confidence", or take their place under the same name.
    progress : callable, optional
        Called as ``progress(done, total)`` in nodes.
    **settings
        Further settings of the methods: those of `napsets.methods.Settings`.
    """
    rates = (check_alpha(alpha), *(check_alpha(rate) for rate in check_list("alphas", alphas, "error rates")))
    check_graph(graph)
    known_settings(settings)
    told = Settings(
        score=make_score(APS() if score is None else score),
        hops=check_hops("hops", hops),
        seed=seed,
        alpha=rates[0],
        **settings,
    )
    names = check_list("methods", methods, "names of methods")
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(f"`methods` must be a list of names of methods; got {shown(name)} in it")
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"`methods` must name at least one method and none twice; got {shown(names)}")
    own = check_groups(groups)
    made = [_made(name, told) for name in names]
    given = Given.check(graph, probabilities, labels, calibration, ids)
    # A copy, which the caller cannot change.
    given = replace(given, labels=sealed(given.labels.astype(np.int64)), _scored={})
    chosen = _judged(nodes, given)
    known = given.labels[chosen]
    if (known < 0).any():
        node = int(chosen[(known < 0).argmax()])
        raise InvalidInputError(
            f"`nodes` must have known labels to be compared on; {(known < 0).sum()} do not, node {node} first"
        )
    calibrated = [method.fit(given) for method in made]
    found = find_thresholds(calibrated, chosen, rates, progress=progress)
    filled, covered, sizes = _filled(calibrated, found, chosen, known)
    ranges = (
        size_strata(given.outputs.shape[1]) if strata is None else check_list("strata", strata, "pairs (low, high)")
    )
    partition = neighbourhood_partition(graph, chosen, seed=seed)
    groupings = usual_groups(graph, given.outputs, given.labels, chosen, partition=partition) | own
    results = []
    for m, (name, each) in enumerate(zip(names, calibrated, strict=True)):
        sets = each.sets(chosen, sealed(filled[m]), found[m], 0, rates[0])
        worth = judge(sets, given.labels, strata=ranges, partition=partition, groups=groupings)
        results.append(
            MethodResult(
                **{one.name: getattr(worth, one.name) for one in fields(Judgement)},
                name=name,
                title=title(name, told.score),
                calibrated=each,
                sets=sets,
                curve_coverage=covered[m, 1:],
                curve_size=sizes[m, 1:],
            )
        )
    # What methods share while they are made would keep every candidate's arrays.
    given._scored.clear()
    return Comparison(
        results=tuple(results),
        alpha=rates[0],
        hops=useful_hops(graph, chosen, told.hops),
        strata=ranges,
        partition=partition,
        alphas=rates[1:],
        given=given,
        settings=told,
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


def _judged(nodes: ArrayLike, given: Given) -> IntArray:
    chosen = check_index("nodes", nodes, given.outputs.shape[0], unique=True)
    if chosen.size == 0:
        raise InvalidInputError("`nodes` must hold at least one node; it is empty")
    both = int(np.isin(chosen, given.calibration).sum())
    if both:
        warnings.warn(
            f"`nodes` holds {both} calibration nodes: labels that judge these sets also helped to make others",
            NapsetsWarning,
            stacklevel=3,
        )
    return chosen


def _filled(
    calibrated: Sequence[Calibrated], found: Sequence[LocalThresholds], nodes: IntArray, labels: IntArray
) -> tuple[list[BoolArray], FloatArray, FloatArray]:
    """Return each method's members at the first rate, and coverage and mean size of shape (methods, rates)."""
    rates = found[0].values.shape[0]
    filled = [np.empty((nodes.size, each.score.probabilities.shape[1]), dtype=bool) for each in calibrated]
    hits, sizes = np.zeros((2, len(calibrated), rates))
    for m, r, rows, member in fill_sets(calibrated, found, nodes):
        hits[m, r] += member[np.arange(member.shape[0]), labels[rows]].sum()
        sizes[m, r] += member.sum()
        if r == 0:
            filled[m][rows] = member
    return filled, hits / nodes.size, sizes / nodes.size
