"""Uneven coverage: gaps between groups beyond chance, and the classes and groups below the target.

In small groups coverage misses 1 − alpha by chance, however good the sets: the mean miss of a dozen nodes is larger
than most defects, and the worst miss of many groups is larger still. So both are shown with what they would be if
every set covered with probability 1 − alpha exactly, which the binomial law says without any simulation.

A method that covers 90 % of all nodes may cover 0 % of a class. For each group the tail of the law of its hits says how
often chance would cover this few: beta-binomial where other labels set the level, binomial where the same labels did
(their overall coverage is fixed, so the binomial tail is on the safe side). The tails are multiplied by the number of
groups (Bonferroni), so that among many classes none is named because of chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray, Sealed
from napsets.checks.text import percent
from napsets.checks.values import choose
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import check_prediction, mean
from napsets.groups import group_names
from napsets.levels import falls_short
from napsets.predictions import Per, Prediction


@dataclass(frozen=True, eq=False)
class CoverageGap(Sealed):
    """Coverage within groups, and how far it is from 1 − alpha.

    Attributes
    ----------
    groups : numpy.ndarray
        What each group is called, ascending.
    sizes : numpy.ndarray
        Sets in each group.
    coverage : numpy.ndarray
        The share of them that contain the truth.
    alpha : float
        The error rate that the sets were made for.
    chance : float
        What `gap` would be on average if every set covered with probability 1 − alpha, on its own.
    share : float
        The share of sets that are in a group; NaN without sets.
    """

    groups: AnyArray
    sizes: IntArray
    coverage: FloatArray
    alpha: float
    chance: float
    share: float

    @property
    def gap(self) -> float:
        """Mean over groups of |coverage − (1 − alpha)|; NaN without groups."""
        return mean(np.abs(self._surplus))

    @property
    def excess(self) -> float:
        """The gap beyond chance: `gap` − `chance`. About 0, and by chance below it, where coverage is even."""
        return self.gap - self.chance

    @property
    def under(self) -> float:
        """Mean over groups of what coverage lacks to 1 − alpha; by chance alone half of `chance`.

        `under` and `over` add up to `gap`.
        """
        return mean(np.maximum(-self._surplus, 0.0))

    @property
    def over(self) -> float:
        """Mean over groups of what coverage has beyond 1 − alpha; by chance alone half of `chance`."""
        return mean(np.maximum(self._surplus, 0.0))

    @property
    def worst(self) -> float:
        """The largest |coverage − (1 − alpha)| among the groups, PCCV over neighbourhoods; NaN without groups."""
        return float(np.abs(self._surplus).max()) if self.groups.size else math.nan

    @cached_property
    def worst_chance(self) -> float:
        """The average of `worst` if every set covered independently with probability 1 − alpha."""
        return worst_deviation(self.sizes, 1.0 - self.alpha)

    def row(self) -> dict[str, float]:
        """Return the numbers by name, for tables and JSON."""
        names = ("gap", "chance", "excess", "under", "over", "worst", "worst_chance", "share")
        return {name: getattr(self, name) for name in names}

    @property
    def _surplus(self) -> FloatArray:
        return self.coverage - (1.0 - self.alpha)

    def __str__(self) -> str:
        return (
            f"gap {self.gap:.3f} over {self.groups.size} groups, {self.chance:.3f} of it by chance: {self.excess:+.3f} "
            f"({self.under:.3f} under, {self.over:.3f} over; {percent(self.share, 0)} of the sets)"
        )


def coverage_gap(sets: Prediction, labels: ArrayLike, groups: ArrayLike, *, per: Per = "node") -> CoverageGap:
    """Coverage within groups of nodes, its distance from 1 − alpha, and the distance that chance alone would give.

    Parameters
    ----------
    sets : PredictionSets or PredictionIntervals
        The sets, or the intervals.
    labels : array
        The truth: one label, or number, per node of the graph, indexed by node id.
    groups : array of integers or strings
        The group of each node, like `labels`: from `groups_by_degree` and similar functions, or any other. Nodes of
        group −1, or without a name, are in none.
    per : {"node", "set"}
        With "set", `labels` and `groups` have one entry per set instead, in the order of the sets.

    Examples
    --------
    >>> import napsets as ns
    >>> p, y = np.tile([0.7, 0.3], (200, 1)), np.arange(200) % 10 // 7
    >>> sets = ns.SplitConformal().calibrate(p, y, calibration=np.arange(100)).predict(np.arange(100, 200))
    >>> print(ns.coverage_gap(sets, y, ns.groups_by_class(y)))
    gap 0.100 over 2 groups, 0.035 of it by chance: +0.065 (0.050 under, 0.050 over; 100 % of the sets)
    """
    covered = check_prediction("sets", sets).contains(labels, per=per)
    return gap_within(covered, own_groups(sets, groups, per=per), sets.alpha)


def gap_within(covered: BoolArray, groups: AnyArray, alpha: float) -> CoverageGap:
    """Return the coverage gap of rows, given the group of each; nothing is checked."""
    inside = groups != "" if groups.dtype.kind == "U" else groups >= 0
    names, place = np.unique(groups[inside], return_inverse=True)
    sizes = np.bincount(place, minlength=names.size)
    shares = np.bincount(place, weights=covered[inside], minlength=names.size) / np.maximum(sizes, 1)
    chance = mean(np.array([binomial_deviation(int(size), 1.0 - alpha) / size for size in sizes]))
    return CoverageGap(names, sizes, shares, alpha, chance, mean(inside))


def binomial_deviation(trials: int, probability: float) -> float:
    """Return E|X − np| of a binomial X: 2·ν·C(n, ν)·p^ν·(1−p)^(n−ν+1) with ν = ⌊np⌋ + 1 (De Moivre, 1730).

    Examples
    --------
    >>> round(binomial_deviation(2, 0.5), 12)  # 0, 1 or 2 heads: a quarter, a half, a quarter
    0.5
    """
    if trials == 0 or not 0.0 < probability < 1.0:
        return 0.0
    nu = min(math.floor(trials * probability) + 1, trials)
    ways = math.lgamma(trials + 1) - math.lgamma(nu + 1) - math.lgamma(trials - nu + 1)
    chances = nu * math.log(probability) + (trials - nu + 1) * math.log1p(-probability)
    return 2.0 * nu * math.exp(ways + chances)


def worst_deviation(trials: IntArray, probability: float) -> float:
    """Return E max |X_g / n_g − p| over independent binomials X_g of n_g trials each; NaN where there is none.

    The probability that the worst is at most t is a product of step functions of t, one per group, whose steps are
    known: the mean is the area above it, summed from step to step.

    Examples
    --------
    >>> round(worst_deviation(np.array([2]), 0.5), 12)  # as far from one half as 0 and 2 heads are, half of the time
    0.25
    >>> round(worst_deviation(np.array([2, 2]), 0.5), 12)  # unless both have one head
    0.375
    """
    sizes, times = np.unique(trials[trials > 0], return_counts=True)
    if sizes.size == 0:
        return math.nan
    if not 0.0 < probability < 1.0:
        return 0.0
    steps = [_steps(int(size), int(often), probability) for size, often in zip(sizes, times, strict=True)]
    start = max(at[0] for at, _ in steps)  # below it the worst group cannot be
    at = np.concatenate([at for at, _ in steps])
    order = np.argsort(at, kind="stable")
    at, logs = at[order], np.cumsum(np.concatenate([growth for _, growth in steps])[order])
    within = np.where(at < start, 0.0, np.minimum(np.exp(logs), 1.0))
    return float(at[0] + (np.diff(at) * (1.0 - within[:-1])).sum())


def _steps(trials: int, times: int, probability: float) -> tuple[FloatArray, FloatArray]:
    """Return the points where P(|X/n − p| ≤ t)^times steps up, ascending, and the growth of its logarithm at each."""
    from scipy.special import gammaln

    k = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    chances = np.exp(ways + k * math.log(probability) + (trials - k) * math.log1p(-probability))
    away = np.abs(k / trials - probability)
    order = np.argsort(away, kind="stable")
    below = np.log(np.cumsum(chances[order]))
    return away[order], times * np.diff(below, prepend=0.0)


def own_groups(prediction: Prediction, groups: ArrayLike, *, per: Per = "node") -> AnyArray:
    """Return the group of each row's node, or raise for groups that do not fit; the parameters are `coverage_gap`'s."""
    column = group_names("groups", groups)
    by_node = choose("per", per, {"node": True, "set": False})
    needed = len(prediction) if not by_node else prediction.num_nodes
    if needed is None:  # the prediction does not know the graph, and the truth passed: as many as there are ids
        needed = max(int(prediction.nodes.max(initial=-1)) + 1, column.size)
    if column.size != needed:
        what = "node of the graph" if by_node else prediction.noun
        raise InvalidInputError(f"`groups` must have one entry per {what}, {needed}; got {column.size}")
    return column[prediction.nodes] if by_node else column


#: How often chance alone names any group of a grouping.
ALARM = 0.01
#: Report a group only if it is missed this many times as often as alpha.
_WORTH = 1.5


@dataclass(frozen=True)
class WeakGroup:
    """A group that is covered less than the target, by more than chance."""

    what: str  #: By what nodes are grouped: "class", "degree", "neighbourhood", or the user's own name.
    name: str  #: What the group is called.
    nodes: int  #: How many of its nodes were counted.
    coverage: float  #: The share of them that are covered.
    p_value: float  #: How often chance would cover this few of them, for all groups of the grouping together.
    key: int = -1  #: The number of the group; −1 where groups have names instead.


def weak_groups(gap: CoverageGap, what: str, names: Sequence[str], *, level_labels: int | None) -> list[WeakGroup]:
    """Return the groups that are covered less than the target by more than chance, the worst first."""
    from scipy.special import bdtr

    alpha, weak = gap.alpha, []
    suspects = np.flatnonzero(1.0 - gap.coverage >= _WORTH * alpha)
    for g in suspects.tolist():
        nodes = int(gap.sizes[g])
        hits = round(float(gap.coverage[g]) * nodes)
        tail = float(bdtr(hits, nodes, 1.0 - alpha))
        if level_labels is not None and tail * gap.groups.size < ALARM:
            tail = falls_short(hits, nodes, level_labels, alpha)
        p_value = min(tail * gap.groups.size, 1.0)
        if p_value < ALARM:
            key = int(gap.groups[g]) if gap.groups.dtype.kind in "iu" else -1
            weak.append(WeakGroup(what, names[g], nodes, hits / nodes, p_value, key))
    return sorted(weak, key=lambda group: (group.coverage, group.p_value, group.name))


def smallest_notable(gap: CoverageGap) -> int:
    """Return the fewest nodes with which a group can be noticed: with fewer, no coverage at all could be chance.

    Examples
    --------
    >>> smallest_notable(gap_within(np.zeros(40, dtype=bool), np.arange(40) // 5, 0.1))
    3
    """
    return math.floor(math.log(ALARM / max(gap.groups.size, 1)) / math.log(gap.alpha)) + 1


def names_of_groups(gap: CoverageGap, what: str, class_names: Sequence[str] | None) -> list[str]:
    """Return the names of the groups of a grouping."""
    if gap.groups.dtype.kind not in "iu":
        return [str(name) for name in gap.groups]
    if what == "degree":
        last = int(gap.groups.max(initial=-1))
        ends = {0: "nodes with the fewest neighbours", last: "nodes with the most neighbours"} if last > 0 else {}
        return [ends.get(k, f"group {k + 1} of {last + 1} by degree") for k in gap.groups.tolist()]
    if what != "class":
        return [f"{what} {group}" for group in gap.groups]
    return [f"class {y}" if class_names is None else str(class_names[y]) for y in gap.groups]
