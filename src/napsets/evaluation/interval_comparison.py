"""Methods side by side by their intervals, where targets are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray
from napsets.checks.frozen import sealed
from napsets.errors import InvalidInputError, NapsetsError
from napsets.evaluation.groups import groups_by_degree, groups_of_partition
from napsets.evaluation.interval_judgement import IntervalJudgement, judge_intervals, mean_and_error
from napsets.evaluation.side_by_side import COMPARED, Compared, SideBySide, ask, find, finite_together
from napsets.evaluation.verdict import Verdict, judge_methods
from napsets.graph import Graph
from napsets.groups import by_quantiles
from napsets.intervals import PredictionIntervals
from napsets.methods import METHODS, Given, make_method, title
from napsets.scores import CQR, is_regression

__all__ = ["IntervalComparison", "IntervalResult", "compare_intervals", "interval_methods"]


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalResult(IntervalJudgement, Compared):
    """One method's intervals and what they are worth: an `IntervalJudgement`, with what was judged.

    Attributes
    ----------
    intervals : PredictionIntervals
        The intervals of the nodes compared on.
    curve_size : numpy.ndarray
        The mean width of the finite intervals at each of the comparison's `alphas`; NaN where there is none.
    curve_median, curve_infinite : numpy.ndarray
        The median width of all, and the share that are the whole line.
    """

    intervals: PredictionIntervals
    curve_median: FloatArray = field(default_factory=lambda: np.empty(0))
    curve_infinite: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def made(self) -> PredictionIntervals:
        """The intervals."""
        return self.intervals

    @property
    def sizes(self) -> FloatArray:
        """How wide each interval is."""
        return self.intervals.widths

    @property
    def size(self) -> float:
        """The width of a finite interval, on average."""
        return self.finite_width

    def same_as(self, other: Any) -> bool:
        """Return whether another method made the very same intervals."""
        mine, theirs = self.intervals, other.intervals
        return np.array_equal(mine.lower, theirs.lower) and np.array_equal(mine.upper, theirs.upper)


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalComparison(SideBySide[IntervalResult]):
    """The methods side by side, by their intervals."""

    @property
    def targets(self) -> FloatArray:
        """The targets that judged, one a node, NaN where unknown."""
        return np.asarray(self.given.labels, dtype=np.float64)

    @property
    def predicted(self) -> FloatArray:
        """The model's own best guess for each node."""
        return _centre(self.settings.score, self.given.outputs)

    @property
    def finite(self) -> BoolArray:
        """On which of the judged nodes the intervals of all methods are finite: where their widths can be compared.

        Methods that give every node the whole line are passed over: there is nothing to compare.
        """
        return finite_together([result.sizes for result in self])

    def shared_widths(self) -> list[tuple[float, float]]:
        """Return each method's mean width at the nodes that are `finite`, with its standard error.

        It is infinite for a method that gives every node the whole line.
        """
        return [mean_and_error(result.sizes[self.finite]) for result in self]

    def verdict(self) -> Verdict:
        """Say which method to take, what it buys beside the baseline, how sure that is, and what to mind.

        See `napsets.evaluation.verdict`; as `Comparison.verdict` says of sets.
        """
        return judge_methods(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary a method, for tables and JSON: with `shared_width` where all are finite."""
        share = float(self.finite.mean())
        return [
            row | {"shared_width": width, "shared_width_se": error, "shared": share}
            for row, (width, error) in zip(super().rows(), self.shared_widths(), strict=True)
        ]


def compare_intervals(
    graph: Graph,
    outputs: ArrayLike,
    targets: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    *,
    methods: Sequence[str] = COMPARED,
    alpha: float = 0.1,
    hops: int = 2,
    score: Any = None,
    seed: int = 0,
    ids: ArrayLike | None = None,
    alphas: Sequence[float] = (),
    groups: Mapping[str, ArrayLike] | None = None,
    progress: Any = None,
    **settings: Any,
) -> IntervalComparison:
    """Make the intervals of `nodes` with each of some methods, and judge them by the targets.

    Parameters
    ----------
    graph, calibration, ids
        As in `NAPS.calibrate`.
    outputs : array
        What the model says, a row a node, with the columns of the score.
    targets : array
        The number of each node, NaN where unknown.
    nodes : array
        Node indices or a boolean mask, with known targets: what to predict and judge.
    methods : sequence of str
        Names of the table of methods, the baseline first; those of `interval_methods`.
    score : IntervalScore or str, optional
        `CQR()` by default.
    groups : mapping, optional
        The user's own groupings by name. Gaps over them stand beside those over "neighbourhood", "degree",
        "prediction" (fifths by the model's best guess) and "width" (fifths by the method's own width), or take their
        place under the same name.
    alpha, hops, seed, alphas, progress, **settings
        As in `compare`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ring = Graph.from_edge_index(np.stack([np.arange(400), np.roll(np.arange(400), 1)]), num_nodes=400)
    >>> x, half = rng.normal(size=400), np.arange(400) % 2 == 0
    >>> said = np.column_stack([x - 1, x + 1])
    >>> found = compare_intervals(ring, said, x + rng.normal(size=400), half, ~half, methods=["split", "naps-exact"])
    >>> [round(result.coverage, 2) for result in found]
    [0.89, 0.9]
    """
    _refuse_labels(methods)
    asked = ask(
        graph,
        methods=methods,
        alpha=alpha,
        hops=hops,
        score=CQR() if score is None else score,
        seed=seed,
        alphas=alphas,
        groups=groups,
        settings=settings,
    )
    told = asked.settings
    if not is_regression(told.score):
        raise InvalidInputError(
            f"`score` must be one of numbers: 'cqr', 'absolute' or 'normalised'; {type(told.score).__name__} is one of "
            f"labels. Take compare."
        )
    found = find(asked, Given.of_targets(graph, outputs, targets, calibration, ids), nodes, progress)
    given = found.given
    groupings = {
        "neighbourhood": groups_of_partition(found.partition, graph.num_nodes),
        "degree": groups_by_degree(graph, nodes=found.nodes),
        "prediction": by_quantiles(_centre(told.score, given.outputs), 5, found.nodes),
    } | asked.groups
    results = []
    for name, each, thresholds in zip(asked.methods, found.calibrated, found.thresholds, strict=True):
        made = [each.intervals(found.nodes, thresholds, r, rate) for r, rate in enumerate(asked.rates)]
        worth = judge_intervals(made[0], given.labels, partition=found.partition, groups=groupings)
        widths = [one.widths for one in made[1:]]
        results.append(
            IntervalResult(
                **{one.name: getattr(worth, one.name) for one in fields(IntervalJudgement)},
                name=name,
                title=title(name, told.score),
                calibrated=each,
                intervals=made[0],
                curve_coverage=_each(one.contains(found.labels, per="set").mean() for one in made[1:]),
                curve_size=_each(mean_and_error(some[np.isfinite(some)])[0] for some in widths),
                curve_median=_each(np.median(some) for some in widths),
                curve_infinite=_each(np.isinf(some).mean() for some in widths),
            )
        )
    return IntervalComparison(results=tuple(results), **found.held(asked, ids))


def interval_methods() -> list[str]:
    """Return the names of the methods that make intervals; the others look at labels.

    Examples
    --------
    >>> [name for name in interval_methods() if name.startswith("naps")]
    ['naps', 'naps-h', 'naps-g', 'naps-exact', 'naps-lengths']
    """
    return [name for name in METHODS if _of_numbers(name)]


def _of_numbers(name: str) -> bool:
    try:
        return is_regression(make_method(name, score=CQR()).score)
    except NapsetsError:
        return False


def _refuse_labels(methods: Any) -> None:
    """Refuse methods of the table that make sets of labels alone; whatever else is wrong, `ask` says."""
    for name in methods if isinstance(methods, list | tuple) else ():
        if isinstance(name, str) and name in METHODS and not _of_numbers(name):
            raise InvalidInputError(
                f"`methods` must make intervals with a score of numbers; {name!r} looks at labels. Those that do: "
                f"{', '.join(interval_methods())}."
            )


def _centre(score: Any, outputs: Any) -> FloatArray:
    """Return the model's own best guess: that of the score that evidence has not touched."""
    base = getattr(score, "base", score)
    found: FloatArray = base.centre(base.check(outputs))
    return found


def _each(values: Iterable[Any]) -> FloatArray:
    return sealed(np.array(list(values), dtype=np.float64))
