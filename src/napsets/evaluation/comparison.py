"""Methods side by side on the same nodes: what every table and the report are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray, check_list
from napsets.checks.frozen import sealed
from napsets.errors import InvalidInputError
from napsets.evaluation.groups import usual_groups
from napsets.evaluation.judgement import Judgement, judge
from napsets.evaluation.side_by_side import COMPARED, CURVE_ALPHAS, Compared, SideBySide, ask, find
from napsets.evaluation.verdict import Verdict, judge_methods, predicted_classes
from napsets.graph import Graph
from napsets.localisers import LocalThresholds
from napsets.methods import Calibrated, Given, fill_sets, title
from napsets.scores import APS, Score, is_regression
from napsets.sets import PredictionSets

__all__ = ["COMPARED", "CURVE_ALPHAS", "Comparison", "MethodResult", "compare", "size_strata"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodResult(Judgement, Compared):
    """One method's sets and what they are worth: a `Judgement`, with what was judged.

    Attributes
    ----------
    sets : PredictionSets
        The sets of the nodes compared on.
    """

    sets: PredictionSets

    @property
    def made(self) -> PredictionSets:
        """The sets."""
        return self.sets

    @property
    def sizes(self) -> npt.NDArray[Any]:
        """How many labels each set has."""
        return self.sets.sizes

    @property
    def size(self) -> float:
        """Labels in a set, on average."""
        return self.mean_size

    def same_as(self, other: Any) -> bool:
        """Return whether another method made the very same sets."""
        return np.array_equal(self.sets.member, other.sets.member)


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(SideBySide[MethodResult]):
    """The methods side by side, by their sets.

    Attributes
    ----------
    strata : list of (low, high)
        Set sizes that SSCV groups.
    """

    strata: list[tuple[int, int]]

    @property
    def labels(self) -> IntArray:
        """The labels that judged, one a node, −1 where unknown."""
        return self.given.labels

    @property
    def predicted(self) -> IntArray:
        """The most probable class of each node."""
        return predicted_classes(self.given.outputs)

    def verdict(self, class_names: Sequence[str] | None = None) -> Verdict:
        """Say which method to take, what it buys beside the baseline, how sure that is, and what to mind.

        See `napsets.evaluation.verdict`. With ``alphas=CURVE_ALPHAS``, intervals also hold what another draw of labels
        would change; without, only what other nodes would.
        """
        return judge_methods(self, class_names=class_names)


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
        `APS()` by default. For one of numbers see `compare_intervals`.
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
    asked = ask(
        graph,
        methods=methods,
        alpha=alpha,
        hops=hops,
        score=APS() if score is None else score,
        seed=seed,
        alphas=alphas,
        groups=groups,
        settings=settings,
    )
    told = asked.settings
    if is_regression(told.score):
        raise InvalidInputError(
            f"`score` must be one of labels; {type(told.score).__name__} is one of numbers. Take compare_intervals."
        )
    found = find(asked, Given.check(graph, probabilities, labels, calibration, ids), nodes, progress)
    given = found.given
    filled, covered, sizes = _filled(found.calibrated, found.thresholds, found.nodes, found.labels)
    ranges = (
        size_strata(given.outputs.shape[1]) if strata is None else check_list("strata", strata, "pairs (low, high)")
    )
    groupings = usual_groups(graph, given.outputs, given.labels, found.nodes, partition=found.partition)
    results = []
    for m, (name, each) in enumerate(zip(asked.methods, found.calibrated, strict=True)):
        sets = each.sets(found.nodes, sealed(filled[m]), found.thresholds[m], 0, asked.rates[0])
        worth = judge(sets, given.labels, strata=ranges, partition=found.partition, groups=groupings | asked.groups)
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
    return Comparison(results=tuple(results), strata=ranges, **found.held(asked, ids))


def size_strata(num_classes: int) -> list[tuple[int, int]]:
    """Return the default strata of set sizes: 0–1, 2–3 and 4 or more, as the paper has them for ten classes.

    Examples
    --------
    >>> size_strata(10), size_strata(3)
    ([(0, 1), (2, 3), (4, 10)], [(0, 1), (2, 3)])
    """
    ends = [(0, min(1, num_classes)), (2, min(3, num_classes)), (4, num_classes)]
    return [(low, high) for low, high in ends if low <= high]


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
