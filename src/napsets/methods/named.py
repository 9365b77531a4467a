"""The methods that have a name: functions of their settings, entered in the table `METHODS`.

`NAPS` and `SplitConformal` are the two that users call themselves. A function's parameters are the settings that the
command lets users choose for its method; `make_method` sets those that all methods have: `alpha`, `seed`,
`allow_empty`, `by` and `level`.
"""

from __future__ import annotations

from typing import Any, Literal

from napsets.checks.arguments import AnyArray
from napsets.checks.compressed import Direction
from napsets.checks.values import check_flag
from napsets.errors import InvalidInputError, warn
from napsets.groups import ByClass, ByCommunity, ByDegree, Clustered, Groups, make_groups
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops, PathLengths
from napsets.localisers.hops import Decay
from napsets.localisers.path_lengths import LengthDecay
from napsets.methods.auto import Auto
from napsets.methods.choice import Prefer
from napsets.methods.method import Method
from napsets.methods.table import METHODS
from napsets.scores import THR, Diffused, Informed, InformedIntervals, Score, Similarity, learns, make_score
from napsets.scores.residuals import IntervalScore

#: Groups within which coverage is to hold, as users give them.
By = Groups | str | AnyArray | list[Any] | None
Fallback = Literal["full", "global"]


def NAPS(  # noqa: N802
    hops: int = 2,
    decay: Decay = "uniform",
    score: Score | str = "aps",
    *,
    alpha: float = 0.1,
    pool: float = 0.0,
    alike: float = 0.0,
    exact: bool = False,
    fallback: Fallback = "full",
    by: By = None,
    direction: Direction = "out",
    seed: int = 0,
    allow_empty: bool = True,
) -> Method:
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
    alpha : float
        The error rate: a set misses the truth with probability at most about alpha. `predict` takes any other one, too.
    pool : float
        All calibration nodes together count as much as this many neighbours, in addition to those nearby: for nodes
        with few labelled neighbours, all labelled nodes matter.
    alike : float
        The same for the calibration nodes with the same predicted label.
    exact : bool
        Set the level on held-out labels, so that coverage holds in finite samples whatever the weights (see
        `napsets.levels`).
    fallback : {"full", "global"}
        What a node gets if its neighbourhood has too little weight: every label, or the threshold of all calibration
        nodes together (split conformal prediction). Not used with an exact level.
    by : str, array or Groups, optional
        Groups within which coverage should hold: "class", "clusters" (of classes, with an exact level), "degree",
        "community", or an array with the group of each node (see `napsets.groups`).
    direction : {"out", "in", "both"}
        How edges of a directed graph are followed from the node: forwards, backwards, or both ways.
    seed : int
        Seed of each node's uniform number, which is a function of seed and node id alone; from 0 to 2⁶⁴−1.
    allow_empty : bool
        With False, a set that would be empty gets the best label.

    Examples
    --------
    >>> import napsets as ns
    >>> star = ns.Graph.from_edge_index([[0, 0, 0], [1, 2, 3]], num_nodes=4)
    >>> naps = ns.NAPS(hops=1, score="thr").calibrate(star, [[0.8, 0.2]] * 4, [0, 0, 0, 1], calibration=[1, 2, 3])
    >>> naps.predict([0], alpha=0.5)[0]
    [0]
    """
    near, nominal = Hops(hops, decay, pool, alike, direction), Nominal(fallback)
    if check_flag("exact", exact) and fallback != "full":
        raise InvalidInputError("`fallback` must be 'full' with an exact level, under which nothing falls back")
    if not (near.hops or near.pool or near.alike or exact) and fallback == "full":
        warn(
            "`hops` is 0: no calibration node is in reach, so that every set is full. Use more hops, or "
            "fallback='global' for split conformal prediction"
        )
    return Method(score, near, Exact() if exact else nominal, seed, allow_empty, make_groups(by), alpha)


@METHODS.add("split")
def SplitConformal(  # noqa: N802
    score: Score | str = "aps",
    *,
    alpha: float = 0.1,
    by: By = None,
    seed: int = 0,
    allow_empty: bool = True,
) -> Method:
    """Split conformal prediction with APS: one threshold for all nodes, without the graph. Guaranteed; often uneven.

    Parameters
    ----------
    score, alpha, by, seed, allow_empty
        As in `NAPS`. A score or a grouping that learns from labels uses a part of them, and the others set the
        threshold.

    Examples
    --------
    >>> import numpy as np, napsets as ns
    >>> p = np.tile([0.7, 0.2, 0.1], (9, 1))
    >>> split = ns.SplitConformal("thr", alpha=0.4).calibrate(p, [0, 0, 0, 1, 0, 0, 0, 0, 2], np.arange(8))
    >>> split.predict([8])[0]
    [0]
    """
    scored, groups = make_score(score), make_groups(by)
    level = Exact() if learns(scored) or learns(groups) else Nominal()
    return Method(scored, Everyone(), level, seed, allow_empty, groups, alpha)


@METHODS.add("thr")
def threshold() -> Method:
    """Split conformal prediction with THR (also LAC), without the graph: small sets, uneven coverage. Guaranteed."""
    return Method(THR())


@METHODS.add("naps")
def naps(
    *,
    hops: int = 2,
    decay: Decay = "uniform",
    score: Score | str = "aps",
    pool: float = 0.0,
    alike: float = 0.0,
    fallback: Fallback = "full",
    direction: Direction = "out",
) -> Method:
    """NAPS as published: thresholds from labelled nodes within K hops. Even coverage; full sets if they are few."""
    return Method(score, Hops(hops, decay, pool, alike, direction), Nominal(fallback))


@METHODS.add("naps-h")
def hyperbolic(
    *,
    hops: int = 2,
    score: Score | str = "aps",
    pool: float = 0.0,
    alike: float = 0.0,
    fallback: Fallback = "full",
    direction: Direction = "out",
) -> Method:
    """NAPS-H in the paper, an alias of naps with decay hyperbolic: a node k hops away has the weight 1/k."""
    return Method(score, Hops(hops, "hyperbolic", pool, alike, direction), Nominal(fallback))


@METHODS.add("naps-g")
def geometric(
    *,
    hops: int = 2,
    score: Score | str = "aps",
    pool: float = 0.0,
    alike: float = 0.0,
    fallback: Fallback = "full",
    direction: Direction = "out",
) -> Method:
    """NAPS-G in the paper, an alias of naps with decay geometric: the weight of a node halves with each hop."""
    return Method(score, Hops(hops, "geometric", pool, alike, direction), Nominal(fallback))


@METHODS.add("naps-exact")
def exact(
    *,
    hops: int = 2,
    decay: Decay = "uniform",
    score: Score | str = "aps",
    pool: float = 10.0,
    alike: float = 0.0,
    direction: Direction = "out",
) -> Method:
    """NAPS pooled with all labelled nodes; held-out labels set the level. Meant for even coverage, guaranteed."""
    return Method(score, Hops(hops, decay, pool, alike, direction), Exact())


@METHODS.add("naps-lengths")
def lengths(
    *,
    radius: float | None = None,
    decay: LengthDecay = "uniform",
    score: Score | str = "aps",
    pool: float = 0.0,
    alike: float = 0.0,
    fallback: Fallback = "full",
    direction: Direction = "out",
) -> Method:
    """NAPS by path length: a threshold from the labelled nodes within a radius, for edges with lengths or strengths."""
    return Method(score, PathLengths(radius, decay, pool, alike, direction), Nominal(fallback))


def _wrapped(score: Score | str, kind: type[Diffused | Similarity | Informed | InformedIntervals]) -> Score:
    """Wrap a score in one of this kind, unless it contains one already."""
    inner: Any = make_score(score)
    outer: Score = inner
    while inner is not None:
        if isinstance(inner, kind):
            return outer
        inner = getattr(inner, "base", None)
    made: Score = kind(outer)
    return made


@METHODS.add("daps")
def diffused(*, score: Score | str = "aps") -> Method:
    """DAPS: scores averaged over neighbours, one threshold. Small sets where neighbours share labels. Guaranteed."""
    return SplitConformal(_wrapped(score, Diffused))


@METHODS.add("snaps")
def similar(*, score: Score | str = "aps") -> Method:
    """SNAPS: scores averaged over neighbours and over nodes with similar features. Small sets. Guaranteed."""
    return SplitConformal(_wrapped(score, Similarity))


@METHODS.add("by-class")
def by_class(*, score: Score | str = "aps") -> Method:
    """One threshold per class (Mondrian): coverage holds in every class, and sets are larger. Guaranteed."""
    return SplitConformal(score, by=ByClass())


@METHODS.add("clustered")
def clustered(*, score: Score | str = "aps", seed: int = 0) -> Method:
    """One threshold per cluster of classes: nearly per-class coverage where classes are many and rare. Guaranteed."""
    return SplitConformal(score, by=Clustered(seed=seed), seed=seed)


@METHODS.add("by-degree")
def by_degree(*, score: Score | str = "aps") -> Method:
    """One threshold per group of degrees: coverage holds for hubs and for isolated nodes. Guaranteed."""
    return SplitConformal(score, by=ByDegree())


@METHODS.add("by-community")
def by_community(*, score: Score | str = "aps", seed: int = 0) -> Method:
    """One threshold per community (Louvain): coverage holds in each that has enough labels. Guaranteed."""
    return SplitConformal(score, by=ByCommunity(seed=seed), seed=seed)


@METHODS.add("informed")
def informed(*, score: Score | str = "aps") -> Method:
    """Neighbours' labels as evidence for a node's label: smaller sets where they are informative. Guaranteed."""
    scored = make_score(score)
    kind = InformedIntervals if isinstance(scored, IntervalScore | InformedIntervals) else Informed
    return SplitConformal(_wrapped(scored, kind))


@METHODS.add("auto")
def auto(*, alpha: float = 0.1, score: Score | str = "aps", seed: int = 0, allow_empty: bool = True) -> Auto:
    """Choose settings by trying them on the labels; even coverage counts more than small sets. Guaranteed."""
    return _chosen(alpha, "even", score, seed, allow_empty)


@METHODS.add("auto-small")
def small(*, alpha: float = 0.1, score: Score | str = "aps", seed: int = 0, allow_empty: bool = True) -> Auto:
    """Choose the settings with the smallest sets by trying them on the labels, even or not. Guaranteed."""
    return _chosen(alpha, "small", score, seed, allow_empty)


def _chosen(alpha: float, prefer: Prefer, score: Score | str, seed: int, allow_empty: bool) -> Auto:
    """Return a method that chooses; a score of numbers stays, that of labels is chosen."""
    scored = make_score(score)
    return Auto(alpha, prefer, seed, allow_empty, score=scored if isinstance(scored, IntervalScore) else None)
