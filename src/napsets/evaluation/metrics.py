"""Metrics of predictions: coverage, size, and the evenness of coverage over groups of nodes.

Every function takes `PredictionSets`, some of them `PredictionIntervals` too, and checks its arguments. Where it needs
the truth, `labels` has one entry per node of the graph, indexed by node id; or, with ``per="set"``, one entry per set
in the order of the sets. What `judge` shares with these functions takes arrays that were checked: which rows are
covered, and which rows are in each group.

A grouping is an array with one entry per node of the graph, −1 for none. Groups by degree, confidence or neighbourhood
do not use labels; groups by class do. Any array of integers or names can be used as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_index,
    check_integers,
    check_probabilities,
)
from napsets.checks.values import check_count, check_hops, check_kind, check_list, check_seed, shown
from napsets.errors import InvalidInputError, warn
from napsets.graph import Graph, as_graph, check_graph
from napsets.groups import by_quantiles
from napsets.predictions import Per, Prediction, PredictionIntervals, PredictionSets

_MOST_BINS = 10**6
#: Into this many groups of about equal size nodes are cut by a number.
FIFTHS = 5
#: Sizes that differ by a smaller share only differ in how they are rounded.
_DIGITS = 1e-12


@dataclass(frozen=True, eq=False)
class GroupCoverage:
    """Coverage within groups of nodes."""

    group: list[object]  #: What each group is called: a class index, or an inclusive range of degrees.
    count: IntArray  #: Nodes in each group.
    #: Averages over the group; NaN where it is empty.
    coverage: FloatArray
    mean_size: FloatArray


def coverage(sets: Prediction, labels: ArrayLike, *, per: Per = "node") -> float:
    """Return the share of sets that contain their node's label, or of intervals that contain its number.

    Parameters
    ----------
    sets : PredictionSets or PredictionIntervals
        The sets, or the intervals.
    labels : array
        The truth: one label, or number, per node of the graph, indexed by node id.
    per : {"node", "set"}
        With "set", `labels` has one entry per set instead, in the order of the sets.
    """
    return mean(check_prediction("sets", sets).contains(labels, per=per))


def mean_width(intervals: PredictionIntervals) -> float:
    """Return the average width of intervals; infinite where one is. Look at `intervals.infinite` too."""
    return mean(
        check_kind("intervals", intervals, PredictionIntervals, hint="NAPS(score='cqr').predict gives one.").widths
    )


def mean_size(sets: PredictionSets) -> float:
    """Return the average number of labels in a set. Look at `empty_rate` too."""
    return mean(_check_sets(sets).sizes)


def size_given_coverage(sets: PredictionSets, labels: ArrayLike, *, per: Per = "node") -> float:
    """Return the average size of the sets that contain their node's label; NaN where none does."""
    return mean(_check_sets(sets).sizes[sets.contains(labels, per=per)])


def singleton_rate(sets: PredictionSets) -> float:
    """Return the share of sets with exactly one label."""
    return mean(_check_sets(sets).sizes == 1)


def empty_rate(sets: PredictionSets) -> float:
    """Return the share of sets without any label."""
    return mean(_check_sets(sets).sizes == 0)


def full_rate(sets: PredictionSets) -> float:
    """Return the share of sets with every label."""
    return mean(_check_sets(sets).sizes == sets.num_classes)


def sscv(sets: PredictionSets, labels: ArrayLike, strata: Sequence[tuple[int, int]], *, per: Per = "node") -> float:
    """Return the size-stratified coverage violation (`eq:sscv`): the worst |coverage − (1−α)| over strata of sizes.

    Parameters
    ----------
    sets, labels, per
        As in `coverage`.
    strata : sequence of (low, high)
        Inclusive ranges of set sizes, disjoint. A stratum without sets does not count.

    Returns
    -------
    float
        NaN where no set falls into any stratum.
    """
    sizes, ranges = _check_sets(sets).sizes, check_strata(strata)
    return size_violation(sizes, sets.contains(labels, per=per), ranges, sets.alpha)


def size_violation(sizes: IntArray, covered: BoolArray, strata: Sequence[tuple[int, int]], alpha: float) -> float:
    """Return SSCV from sizes and hits, over strata that were checked; warn of sets that are in none."""
    groups = [np.flatnonzero((sizes >= low) & (sizes <= high)) for low, high in strata]
    left_out = sizes.size - sum(group.size for group in groups)
    if left_out:
        warn(f"`strata` leaves out the sizes of {left_out} sets")
    return worst_violation(covered, groups, alpha)


def pccv(sets: Prediction, labels: ArrayLike, partition: Sequence[ArrayLike], *, per: Per = "node") -> float:
    """Return the partition-conditional coverage violation (`eq:NCCV`): the worst |coverage − (1−α)| over the parts.

    Parameters
    ----------
    sets, labels, per
        As in `coverage`.
    partition : sequence of arrays
        Disjoint arrays of nodes, each a node of `sets`; for instance from `neighbourhood_partition`.

    Returns
    -------
    float
        NaN where there is no part.
    """
    parts = rows_of_parts(check_prediction("sets", sets), partition)
    return worst_violation(sets.contains(labels, per=per), parts, sets.alpha)


def rows_of_parts(prediction: Prediction, partition: Sequence[ArrayLike]) -> list[IntArray]:
    """Return the rows of the prediction in each part of a partition of its nodes; other nodes are rejected."""
    size = int(max(prediction.nodes.max(initial=-1) + 1, prediction.num_nodes or 0))
    row = np.full(size, -1, dtype=np.int64)
    row[prediction.nodes] = np.arange(len(prediction))
    parts = [check_index("partition", part, size) for part in check_list("partition", partition, "arrays of nodes")]
    for part in parts:
        missing = row[part] < 0
        if missing.any():
            node = int(part[int(missing.argmax())])
            raise InvalidInputError(f"`partition` must hold nodes that have a {prediction.noun}; node {node} has none")
    return [row[part] for part in parts]


def neighbourhood_partition(
    graph: Graph, nodes: ArrayLike, radius: int = 2, min_size: int = 30, seed: int = 0
) -> list[IntArray]:
    """Cut some nodes into disjoint neighbourhoods, as in the paper's Section 7.

    Take a root at random, its ball of the given radius in the subgraph induced on `nodes`, remove the ball, and
    repeat with what is left until nothing is.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : array
        Node indices or a boolean mask: what to cut up.
    radius : int
        Radius of the balls, in hops.
    min_size : int
        Balls with fewer nodes are left out.
    seed : int
        Seed of the roots.

    Returns
    -------
    list of numpy.ndarray
        Disjoint arrays of nodes in ascending order, the largest ball first.
    """
    from napsets.kernels.walk import cut_balls

    chosen = check_index("nodes", nodes, check_graph(graph).num_nodes, unique=True)
    radius, min_size = check_hops("radius", radius), check_count("min_size", min_size)
    alive = np.zeros(graph.num_nodes, dtype=bool)
    alive[chosen] = True
    # Walking through a shuffled list and skipping what is gone draws each root uniformly from what is left.
    roots = np.random.default_rng(check_seed(seed)).permutation(np.sort(chosen))
    members = np.empty(chosen.size, dtype=np.int64)
    offsets = cut_balls(graph.indptr, graph.indices, roots, radius, alive, members)
    balls = [np.sort(ball) for ball in np.split(members, offsets[1:-1]) if ball.size >= max(min_size, 1)]
    return sorted(balls, key=lambda ball: -ball.size)


def groups_by_class(labels: ArrayLike) -> IntArray:
    """Return the class of each node; −1 where it is unknown."""
    return check_integers("labels", labels).astype(np.int64)


def groups_by_degree(graph: Graph, bins: int = 5, nodes: ArrayLike | None = None) -> IntArray:
    """Return groups of about equal size, by the number of neighbours: 0 has the fewest.

    Parameters
    ----------
    graph : Graph
        Where degrees are counted.
    bins : int
        Largest number of groups; nodes of equal degree are in the same group.
    nodes : array, optional
        Node indices or a boolean mask: the nodes that are grouped. All others are in no group.

    Examples
    --------
    >>> groups_by_degree(Graph.from_edge_index([[0, 0, 1], [1, 2, 2]], num_nodes=4), bins=2).tolist()
    [1, 1, 1, 0]
    """
    return _by_quantiles(check_graph(graph).degrees, bins, nodes)


def groups_by_confidence(probabilities: ArrayLike, bins: int = 5, nodes: ArrayLike | None = None) -> IntArray:
    """Return groups of about equal size, by the largest probability of a node: 0 is the least confident.

    Parameters
    ----------
    probabilities : array of shape (nodes, classes)
        A model's probabilities.
    bins, nodes
        As in `groups_by_degree`.

    Examples
    --------
    >>> groups_by_confidence([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]], bins=2).tolist()
    [1, 0, 0, 1]
    """
    return _by_quantiles(check_probabilities(probabilities).max(axis=1), bins, nodes)


def groups_by_neighbourhood(
    graph: Graph, nodes: ArrayLike, radius: int = 2, min_size: int = 30, seed: int = 0
) -> IntArray:
    """Return the neighbourhood of each node, from `neighbourhood_partition`: 0 is the largest, −1 is none."""
    return groups_of_partition(neighbourhood_partition(graph, nodes, radius, min_size, seed), graph.num_nodes)


def groups_of_partition(partition: Sequence[IntArray], num_nodes: int) -> IntArray:
    """Return the number of the part that each node is in; −1 for none."""
    groups = np.full(num_nodes, -1, dtype=np.int64)
    for number, part in enumerate(partition):
        groups[part] = number
    return groups


def _by_quantiles(values: npt.NDArray[np.generic], bins: int, nodes: ArrayLike | None) -> IntArray:
    count = check_count("bins", bins, minimum=1, maximum=_MOST_BINS)
    return by_quantiles(values, count, None if nodes is None else check_index("nodes", nodes, values.size))


def coverage_by_class(sets: PredictionSets, labels: ArrayLike, *, per: Per = "node") -> GroupCoverage:
    """Return coverage and mean size among the nodes of each true class; the parameters are those of `coverage`."""
    y = _check_sets(sets).own_labels(labels, per=per)
    return _grouped(sets, sets.contains(y, per="set"), y, list(range(sets.num_classes)))


def coverage_by_degree(
    sets: Prediction, labels: ArrayLike, graph: Graph, bins: int | Sequence[int] = 5, *, per: Per = "node"
) -> GroupCoverage:
    """Return coverage and mean size, or width, by the degree of the node.

    Parameters
    ----------
    sets, labels, per
        As in `coverage`.
    graph : Graph or another library's
        Where degrees are counted.
    bins : int or sequence of int
        So many groups of about equal size, or the smallest degree of each group, ascending.
    """
    nodes, degrees = check_prediction("sets", sets).nodes, as_graph(graph).degrees
    if nodes.max(initial=-1) >= degrees.size:
        raise InvalidInputError(f"`graph` must have the nodes of the {sets.noun}s; it has no node {nodes.max()}")
    degrees = degrees[nodes]
    if as_array("bins", bins).ndim == 0:
        count = check_count("bins", bins, minimum=1, maximum=_MOST_BINS)
        shares = np.linspace(0, 1, count, endpoint=False)
        lows = np.unique(np.quantile(degrees, shares, method="lower")) if degrees.size else np.array([0])
    else:
        lows = check_integers("bins", bins).astype(np.int64, copy=False)
        if lows.ndim != 1 or lows.size == 0 or (np.diff(lows) <= 0).any():
            raise InvalidInputError(f"`bins` must be a number of groups or ascending degrees; got {bins!r}")
    group = np.searchsorted(lows, degrees, side="right") - 1
    highs = np.append(lows[1:] - 1, max(int(degrees.max(initial=0)), int(lows[-1])))
    names: list[object] = [(int(low), int(high)) for low, high in zip(lows, highs, strict=True)]
    return _grouped(sets, sets.contains(labels, per=per), group, names)


def check_prediction(name: str, prediction: object) -> Prediction:
    """Check that this is a prediction: sets or intervals."""
    if isinstance(prediction, PredictionIntervals):
        return prediction
    return check_kind(name, prediction, PredictionSets, hint="NAPS.predict gives one.")


def _check_sets(sets: object) -> PredictionSets:
    return check_kind("sets", sets, PredictionSets, hint="NAPS.predict gives one.")


def check_strata(strata: object) -> list[tuple[int, int]]:
    """Check disjoint, inclusive ranges of set sizes."""
    pairs = check_list("strata", strata, "pairs (low, high)")
    ranges = [_stratum(stratum) for stratum in pairs]
    if any(a[1] >= b[0] for a, b in zip(sorted(ranges), sorted(ranges)[1:], strict=False)):
        raise InvalidInputError(f"`strata` must be disjoint ranges of sizes; got {pairs}")
    return ranges


def _grouped(sets: Prediction, covered: BoolArray, group: IntArray, names: list[object]) -> GroupCoverage:
    inside = group >= 0
    count = np.bincount(group[inside], minlength=len(names))
    sums = [np.bincount(group[inside], weights=x[inside], minlength=len(names)) for x in (covered, sets.sizes)]
    with np.errstate(invalid="ignore"):
        return GroupCoverage(names, count, sums[0] / count, sums[1] / count)


def worst_violation(covered: BoolArray, groups: Sequence[IntArray], alpha: float) -> float:
    """Return the largest |coverage − (1−α)| over groups of rows; NaN where all of them are empty."""
    violations = [abs(mean(covered[group]) - (1.0 - alpha)) for group in groups if group.size]
    return max(violations, default=math.nan)


def mean(values: AnyArray) -> float:
    """Return the mean; NaN where there is nothing."""
    return float(values.mean()) if values.size else math.nan


def finite_mean(values: AnyArray) -> float:
    """Return the mean of what is finite; NaN where nothing is."""
    return mean(values[np.isfinite(values)])


def mean_and_error(values: AnyArray) -> tuple[float, float]:
    """Return the mean and its standard error, as if values were independent; NaN where there are too few.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    centre = mean(values)
    if values.size < 2 or not math.isfinite(centre):
        return centre, math.nan
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return centre, error if error > _DIGITS * abs(centre) else 0.0


def _stratum(stratum: tuple[int, int]) -> tuple[int, int]:
    try:
        low, high = (check_count("strata", end) for end in stratum)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"`strata` must be pairs (low, high) of set sizes; got {shown(stratum)}") from error
    if low > high:
        raise InvalidInputError(f"`strata` must be pairs with low ≤ high; got {(low, high)}")
    return low, high
