"""Mondrian groups, within which coverage is to hold: groups of labels, or of nodes by anything except their label.

*Groups of labels* (`ByClass`, `Clustered`): y is in a set if its score is at most the threshold of y's group, which is
calibrated on nodes whose label is in that group. If labelled and other nodes are exchangeable,
P(Y ∈ set | Y in the group) ≥ 1−α.

*Groups of nodes* (`ByGroup`, `ByDegree`, `ByCommunity`): a node is calibrated on labelled nodes of its own group, and
P(Y ∈ set | group) ≥ 1−α (Vovk's Mondrian conformal prediction).

Groups with too few labelled nodes for a threshold are combined into one group, together with everything in no group.
Coverage holds for the combined group only approximately, because the labelled nodes determine which groups are small.
If even the combined group has too few labels, all labelled nodes calibrate it, nothing is guaranteed for it, and the
predictors warn. To add a grouping, write a class with `fit` and enter it in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    Sealed,
    as_column,
    check_integers,
    frozen,
)
from napsets.checks.values import Record, Registry, Values, check_count, check_number, check_seed, choose, shown
from napsets.errors import InvalidInputError, imported
from napsets.graph import Graph
from napsets.localisers.base import Reference

#: Groupings by the name that settings, files and the command line call them by.
GROUPS: Registry[Callable[..., Groups]] = Registry("GROUPS")

_MOST_GROUPS = 10**6


@dataclass(frozen=True, eq=False)
class Grouping(Sealed):
    """The group of each label or of each node.

    Attributes
    ----------
    of : {"label", "node"}
        What is grouped.
    groups : numpy.ndarray
        The index of the group, from 0; −1 for those in no group.
    names : tuple of str, optional
        Names of the groups.
    """

    of: Literal["label", "node"]
    groups: IntArray
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        numbers = check_integers("groups", self.groups)
        if numbers.ndim != 1 or numbers.min(initial=0) < -1:
            raise InvalidInputError("`groups` must be numbers from 0, or −1 for none, one per label or node")
        object.__setattr__(self, "groups", frozen(numbers.astype(np.int64, copy=False)))

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.groups.max(initial=-1)) + 1

    def of_labelled(self, nodes: IntArray, labels: IntArray) -> IntArray:
        """Return the groups of nodes whose labels are known."""
        groups: IntArray = self.groups[labels if self.of == "label" else nodes]
        return groups


@runtime_checkable
class Groups(Protocol):
    """The interface of a grouping. One that learns from reference labels also has ``learns = True``."""

    def fit(self, reference: Reference, labels: IntArray, num_classes: int) -> Grouping:
        """Return the groups, for reference nodes with these labels."""
        ...


@GROUPS.add("class")
@dataclass(frozen=True)
class ByClass:
    """Calibrate each label on nodes with that label: coverage per class (Vovk, Gammerman and Shafer, 2005)."""

    of: ClassVar[str] = "label"

    def fit(self, reference: Reference, labels: IntArray, num_classes: int) -> Grouping:
        """Return a group for each label."""
        return Grouping("label", np.arange(num_classes))


@GROUPS.add("clusters")
@dataclass(frozen=True)
class Clustered:
    """Calibrate classes with similar scores together: approximate coverage per class, from fewer labels per class.

    Clusters of classes by the quantiles of their scores (Ding, Angelopoulos, Bates, Jordan and Tibshirani, NeurIPS
    2023), found on the reference labels, which do not set the level, so that an exact level is needed. The guarantee is
    exact for each cluster and approximate for each class. Classes with too few reference nodes for a quantile are in no
    cluster.

    Attributes
    ----------
    clusters : int or None
        The number of clusters. None takes half the number of reference nodes of the rarest clustered class, but at most
        one cluster per two classes.
    seed : int
        Seed of k-means.
    """

    clusters: int | None = None
    seed: int = 0
    learns: ClassVar[bool] = True
    of: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        if self.clusters is not None:
            wanted = check_count("clusters", self.clusters, minimum=1, maximum=_MOST_GROUPS)
            object.__setattr__(self, "clusters", wanted)
        object.__setattr__(self, "seed", check_seed(self.seed))

    def fit(self, reference: Reference, labels: IntArray, num_classes: int) -> Grouping:
        """Return the cluster of each label; −1 for those that are too rare."""
        counts = np.bincount(labels, minlength=num_classes)
        often = np.flatnonzero(counts >= _FEWEST_OF_A_CLASS)
        groups = np.full(num_classes, -1, dtype=np.int64)
        if often.size:
            wanted = self.clusters or max(1, min(int(counts[often].min()) // 2, often.size // 2))
            # As shares of the scores at or below each: classes are compared on one scale, whatever the score.
            ranks = np.searchsorted(np.sort(reference.scores), reference.scores, side="right") / reference.scores.size
            shapes = np.stack([np.quantile(ranks[labels == y], _SHAPE, method="inverted_cdf") for y in often])
            groups[often] = _weighted_kmeans(shapes, np.sqrt(counts[often]), min(wanted, often.size), self.seed)
        return Grouping("label", groups)


@GROUPS.add("group")
@dataclass(frozen=True, eq=False)
class ByGroup:
    """Calibrate nodes on nodes of their own group; the groups must not depend on labels.

    Attributes
    ----------
    groups : array of integers or strings
        The group of each node; nodes of group −1, or without a name, are in no group.
    """

    groups: AnyArray = field(metadata={"array": True})

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", frozen(group_names("groups", self.groups)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByGroup) and np.array_equal(self.groups, other.groups)

    def __hash__(self) -> int:
        return hash((self.groups.size, *self.groups[:8].tolist()))

    def __repr__(self) -> str:
        return f"ByGroup({np.unique(self.groups).size} groups of {self.groups.size} nodes)"

    def fit(self, reference: Reference, labels: IntArray, num_classes: int) -> Grouping:
        """Return the group of each node, numbered in ascending order of what they are called."""
        if self.groups.size != reference.num_nodes:
            raise InvalidInputError(
                f"`groups` must have one entry per node, {reference.num_nodes}; got {self.groups.size}"
            )
        inside = self.groups != "" if self.groups.dtype.kind == "U" else self.groups >= 0
        groups = np.full(self.groups.size, -1, dtype=np.int64)
        names, groups[inside] = np.unique(self.groups[inside], return_inverse=True)
        return Grouping("node", groups, tuple(str(name) for name in names))


@GROUPS.add("degree")
@dataclass(frozen=True)
class ByDegree:
    """Calibrate nodes on nodes with a similar number of neighbours.

    Attributes
    ----------
    bins : int
        The largest number of groups, of about equal size; nodes of equal degree are in the same group.
    """

    bins: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", check_count("bins", self.bins, minimum=1, maximum=_MOST_GROUPS))

    def fit(self, reference: Reference, labels: IntArray, num_classes: int) -> Grouping:
        """Return the group of each node: 0 has the fewest neighbours."""
        return Grouping("node", by_quantiles(_graph_of(reference, "degrees").degrees, self.bins))


@GROUPS.add("community")
@dataclass(frozen=True)
class ByCommunity:
    """Calibrate nodes on nodes of their own community: Louvain's, by scikit-network (extra `communities`).

    Attributes
    ----------
    resolution : float
        Larger values give more and smaller communities.
    seed : int
        Seed of the order in which nodes are visited.
    """

    resolution: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "resolution", check_number("resolution", self.resolution, largest=1e6))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def fit(self, reference: Reference, labels: IntArray, num_classes: int) -> Grouping:
        """Return the community of each node: 0 is the largest."""
        graph = _graph_of(reference, "communities")
        import scipy.sparse

        clustering = imported("sknetwork.clustering", "communities", "scikit-network")
        louvain = clustering.Louvain(resolution=self.resolution, shuffle_nodes=True, random_state=self.seed % 2**32)
        adjacency = scipy.sparse.csr_matrix(graph.to_scipy())  # it knows no sparse arrays
        if not adjacency.nnz:  # Louvain needs an edge
            return Grouping("node", np.arange(graph.num_nodes))
        return Grouping("node", np.asarray(louvain.fit_predict(adjacency), dtype=np.int64))


def describe_groups(groups: Groups | None) -> Record | None:
    """Describe a grouping as plain JSON; of a grouping by an array, only the kind."""
    return None if groups is None else GROUPS.describe("by", groups)


def rebuild_groups(description: Values | None, groups: AnyArray | None = None) -> Groups | None:
    """Rebuild a grouping from `describe_groups`; a grouping by an array needs that array again."""
    return None if description is None else GROUPS.rebuild("by", description, {"groups": groups})


def make_groups(by: object) -> Groups | None:
    """Make a grouping from a grouping, a name, or an array with the group of each node; None stays None.

    Examples
    --------
    >>> make_groups("class"), make_groups([0, 0, 1])
    (ByClass(), ByGroup(2 groups of 3 nodes))
    """
    if by is None or (isinstance(by, Groups) and not isinstance(by, type)):
        return by
    if isinstance(by, str):
        if by == "group":
            raise InvalidInputError("`by` must be an array with the group of each node, or ByGroup(array); got 'group'")
        return choose("by", by, GROUPS)()
    if isinstance(by, type):
        raise InvalidInputError(f"`by` must be a grouping; got the class {by.__name__} (write {by.__name__}())")
    if isinstance(by, list | tuple) and by and all(isinstance(name, str) and name in GROUPS for name in by):
        raise InvalidInputError(f"`by` must be one grouping, or an array with the group of each node; got {shown(by)}")
    return ByGroup(by)  # type: ignore[arg-type]


def group_names(argument: str, values: ArrayLike) -> AnyArray:
    """Return the group of each node as integers or strings; raise for other types."""
    column = as_column(argument, values)
    if column.dtype.kind == "b":
        column = column.astype(np.int64)
    if column.dtype.kind in "OT" and any(isinstance(name, str) for name in column.flat):
        # A missing name, however a table writes it, is not a name.
        column = np.array(
            [name if isinstance(name, str) else _named(argument, name) for name in column.flat], dtype=str
        )
    if column.dtype.kind != "U":
        column = check_integers(argument, column)
        if column.min(initial=0) < -1:
            raise InvalidInputError(f"`{argument}` must be numbers from 0, or −1 for none; got {column.min()}")
    if column.ndim != 1:
        raise InvalidInputError(f"`{argument}` must have 1 dimension; got shape {column.shape}")
    return column


def _named(argument: str, name: object) -> str:
    """Return the empty name for a missing entry of a column of names; raise for anything else."""
    if name is None or name != name or type(name).__name__ == "NAType":  # NaN is not itself
        return ""
    raise InvalidInputError(f"`{argument}` must be integers or names, one per node; got {name!r} among names")


def by_quantiles(values: npt.NDArray[np.generic], bins: int, chosen: IntArray | None = None) -> IntArray:
    """Cut nodes into groups of about equal size by a value per node; nodes outside `chosen` have no group (−1)."""
    inside = np.arange(values.size) if chosen is None else chosen
    groups = np.full(values.size, -1, dtype=np.int64)
    if inside.size:
        ordered = np.sort(values[inside])
        # The smallest value of each group, from the sorted values themselves: no interpolation, no rounding.
        lows = np.unique(ordered[np.arange(bins) * inside.size // bins])
        groups[inside] = np.searchsorted(lows, values[inside], side="right") - 1
    return groups


def _graph_of(reference: Reference, what: str) -> Graph:
    if reference.graph is None:
        raise InvalidInputError(f"`graph` must be given to group nodes by their {what}; got None")
    return reference.graph


#: A class is clustered by its scores from this many reference nodes on.
_FEWEST_OF_A_CLASS = 10
#: The quantiles that describe the scores of a class.
_SHAPE = (0.5, 0.6, 0.7, 0.8, 0.9)
_ROUNDS = 100


def _weighted_kmeans(points: FloatArray, weights: FloatArray, clusters: int, seed: int) -> IntArray:
    """Return the cluster of each point, numbered by first appearance: Lloyd's iteration from k-means++ starts."""
    rng = np.random.default_rng(seed)
    centres = points[[rng.choice(len(points), p=weights / weights.sum())]]
    while len(centres) < clusters:
        chances = weights * _squares(points, centres).min(axis=1)
        if not chances.sum():
            break  # fewer different points than clusters
        centres = np.concatenate([centres, points[[rng.choice(len(points), p=chances / chances.sum())]]])
    nearest = _squares(points, centres).argmin(axis=1)
    for _ in range(_ROUNDS):
        held = np.unique(nearest)
        centres = np.stack([np.average(points[nearest == c], axis=0, weights=weights[nearest == c]) for c in held])
        moved = _squares(points, centres).argmin(axis=1)
        if np.array_equal(held[moved], nearest):
            break
        nearest = moved
    _, first, numbered = np.unique(nearest, return_index=True, return_inverse=True)
    numbers: IntArray = np.argsort(np.argsort(first))[numbered]
    return numbers


def _squares(points: FloatArray, centres: FloatArray) -> FloatArray:
    distances: FloatArray = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return distances
