"""The table of methods: the one place that knows their names.

The command, the comparison, the report, the results, the docs and the files read it. To add a method, add an entry:

>>> from napsets.methods.method import Method
>>> from napsets.localisers import Hops
>>> @METHODS.add("near")
... def near(settings):
...     "Only the direct neighbours count."
...     return Method(settings.score, Hops(1), seed=settings.seed)
>>> make_method("near").localiser.hops
1
>>> _ = METHODS.pop("near")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

from napsets.checks.values import Registry, check_kind, choose
from napsets.groups import ByClass, ByCommunity, ByDegree, Clustered, make_groups
from napsets.levels import LEVELS, Exact, Full, Nominal
from napsets.localisers import Balls, Everyone, Hops, InverseDegree, PageRank, PathLengths
from napsets.localisers.hops import Decay
from napsets.methods.auto import AutoMethod
from napsets.methods.method import Method, Settings
from napsets.scores import (
    APS,
    CFGNN,
    SCORES,
    THR,
    Diffused,
    Informed,
    InformedIntervals,
    Similarity,
    TunedDiffused,
    learns,
    make_score,
)
from napsets.scores.residuals import IntervalScore

AnyMethod = TypeVar("AnyMethod", Method, AutoMethod)


#: How each method is made, from `Settings`; what it is for stands in the first line of the function's docstring.
METHODS: Registry[Callable[[Settings], Any]] = Registry("METHODS")

#: What the paper calls its four methods.
PAPER = {"APS": "split", "NAPS": "naps", "NAPS-H": "naps-h", "NAPS-G": "naps-g"}

#: What the methods of other papers are called there, where a rule would not find it.
_TITLES = {
    "cf-gnn": "CF-GNN",
    "rlcp": "RLCP",
    "thr": "Split THR",
    "daps-thr": "DAPS THR",
    "node-ex": "NodeEx",
    "edge-ex": "EdgeEx",
    "pagerank": "PageRank",
    "pagerank-exact": "PageRank exact",
}

_LETTERS = ("aps", "raps", "saps", "thr", "cqr", "cf-gnn")  # scores whose names are abbreviations


def make_method(name: str, settings: Settings | None = None, **changes: Any) -> Any:
    """Return a method by its name, with these settings.

    Examples
    --------
    >>> make_method("naps", hops=3).localiser
    Hops(hops=3, decay='uniform', pool=0.0, alike=0.0)
    """
    known_settings(changes)
    start = Settings() if settings is None else settings
    settings = replace(check_kind("settings", start, Settings, way="Pass settings by name instead."), **changes)
    method = _with_level(choose("method", name, METHODS)(settings), settings)
    return method if settings.by is None else with_groups(method, make_groups(settings.by))


def _with_level(method: Any, settings: Settings) -> Any:
    """Return a method at the level of the settings; one that chooses sets its own."""
    level = settings.level
    if level is None or isinstance(method, AutoMethod):
        return method
    if not isinstance(level, str):
        return replace(method, level=level)
    kind = choose("level", level, LEVELS)
    return replace(method, level=Nominal(settings.fallback) if kind is Nominal else kind())


def with_groups(method: AnyMethod, groups: Any) -> AnyMethod:
    """Return a method with groups; those that learn from labels need some held out."""
    if isinstance(method, AutoMethod):
        return replace(method, by=groups)
    level = method.level if method.level.keeps_apart or not learns(groups) else Exact()
    return replace(method, groups=groups, level=level)


def known_settings(names: Iterable[str]) -> None:
    """Refuse what is the name of no setting."""
    for name in names:
        choose("settings", name, {attribute.name: attribute for attribute in fields(Settings)})


class _Observed(Settings):
    """Settings that keep the names of those that were read."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            self.__dict__.setdefault("_read", set()).add(name)
        return super().__getattribute__(name)


def _no_score(name: str) -> str | None:
    """Say what to write if the name of a method is passed as a score."""
    score = make_method(name).score if name in METHODS else None
    alone = "" if isinstance(score, APS | None) else f", or {type(score).__name__}() for its score alone"
    return f"{name!r} is a method: write make_method({name!r}){alone}" if name in METHODS else None


SCORES.elsewhere = _no_score


def settings_of(name: str) -> set[str]:
    """Return the settings that make a difference to a method: those that its entry reads, and a level to be set.

    Examples
    --------
    >>> "hops" in settings_of("naps"), "hops" in settings_of("split"), "level" in settings_of("auto")
    (True, False, False)
    """
    settings = _Observed()
    settings.__dict__["_read"] = set()
    method = choose("method", name, METHODS)(settings)
    read: set[str] = settings.__dict__["_read"]
    return read if isinstance(method, AutoMethod) else read | {"level"}


def methods() -> dict[str, str]:
    """Return the names of all methods, and what each is for."""
    return {name: describe(name) for name in METHODS}


def describe(name: str) -> str:
    """Return one line on what a method is for."""
    return (choose("method", name, METHODS).__doc__ or "").strip().partition("\n")[0]


def title(name: str, score: Any = None) -> str:
    """Return what tables and charts call a method; a split goes by its score.

    Examples
    --------
    >>> title("naps-h"), title("naps-exact"), title("split", "thr"), title("split"), title("cf-gnn")
    ('NAPS-H', 'NAPS exact', 'Split THR', 'Split APS', 'CF-GNN')
    """
    if name in _TITLES:
        return _TITLES[name]
    if name == "split":
        scored = type(make_score(APS() if score is None else score))
        score_name = SCORES.name_of(scored) or scored.__name__
        return f"Split {score_name.upper() if score_name in _LETTERS else score_name}"
    first, *more = name.split("-")
    start = first.upper() if first.endswith("aps") else first.capitalize()
    return start + "".join(f"-{part.upper()}" if len(part) == 1 else f" {part}" for part in more)


@METHODS.add("split")
def _split(settings: Settings) -> Method:
    """Split conformal prediction with APS: one threshold for all nodes, without the graph. Guaranteed; often uneven."""
    return _one_split(settings, Everyone())


@METHODS.add("thr")
def _threshold(settings: Settings) -> Method:
    """Split conformal prediction with THR (also LAC), without the graph: small sets, uneven coverage. Guaranteed."""
    return Method(THR(), Everyone(), Nominal(), settings.seed, settings.allow_empty)


def _one_split(settings: Settings, localiser: Any, score: Any = None) -> Method:
    """Return a method that needs no held-out labels, unless its score learns from them."""
    score = make_score(settings.score) if score is None else score
    return Method(score, localiser, Exact() if learns(score) else Nominal(), settings.seed, settings.allow_empty)


def _naps(settings: Settings, decay: Decay, pool: float = 0.0, level: Any = None) -> Method:
    """Return NAPS with a pool, where the settings have none, and at a level other than the nominal one."""
    pool = pool if settings.pool is None else settings.pool
    near = Hops(settings.hops, decay, pool, settings.alike or 0.0, settings.direction)
    level = Nominal(settings.fallback) if level is None else level
    return Method(settings.score, near, level, settings.seed, settings.allow_empty)


def _decay(settings: Settings) -> Any:
    return "uniform" if settings.decay is None else settings.decay


@METHODS.add("naps")
def _uniform(settings: Settings) -> Method:
    """NAPS as published: thresholds from labelled nodes within K hops. Even coverage; full sets if they are few."""
    return _naps(settings, _decay(settings))


@METHODS.add("naps-h")
def _hyperbolic(settings: Settings) -> Method:
    """NAPS in which a labelled node k hops away has the weight 1/k."""
    return _naps(settings, "hyperbolic")


@METHODS.add("naps-g")
def _geometric(settings: Settings) -> Method:
    """NAPS in which the weight of a labelled node halves with each hop."""
    return _naps(settings, "geometric")


@METHODS.add("naps-exact")
def _exact(settings: Settings) -> Method:
    """NAPS pooled with all labelled nodes; held-out labels set the level. Meant for even coverage, guaranteed."""
    return _naps(settings, _decay(settings), 10.0, Exact())


@METHODS.add("naps-lengths")
def _lengths(settings: Settings) -> Method:
    """NAPS by path length: a threshold from the labelled nodes within a radius, for edges with lengths or strengths."""
    pool, alike = settings.pool or 0.0, settings.alike or 0.0
    near = PathLengths(settings.radius, _decay(settings), pool, alike, settings.direction)
    return Method(settings.score, near, Nominal(settings.fallback), settings.seed, settings.allow_empty)


def _wrapped(score: Any, kind: Any, **settings: Any) -> Any:
    """Return a score of that kind made of another, or the other itself where there is one of that kind in it."""
    inner = outer = make_score(score)
    while inner is not None:
        if isinstance(inner, kind):
            return outer
        inner = getattr(inner, "base", None)
    return kind(outer, **settings)


@METHODS.add("daps")
def _diffused(settings: Settings) -> Method:
    """DAPS: scores averaged over neighbours, one threshold. Small sets where neighbours share labels. Guaranteed."""
    return _one_split(settings, Everyone(), _wrapped(settings.score, Diffused))


@METHODS.add("daps-thr")
def _diffused_threshold(settings: Settings) -> Method:
    """DAPS with THR: probabilities averaged over neighbours. Very small sets, very uneven coverage. Guaranteed."""
    return Method(Diffused(THR()), Everyone(), Nominal(), settings.seed, settings.allow_empty)


@METHODS.add("daps-tuned")
def _diffused_tuned(settings: Settings) -> Method:
    """DAPS whose strength is tuned on some of the labels, so it can turn itself off. Guaranteed."""
    score = TunedDiffused(make_score(settings.score), settings.alpha)
    return Method(score, Everyone(), Exact(), settings.seed, settings.allow_empty)


@METHODS.add("snaps")
def _similar(settings: Settings) -> Method:
    """SNAPS: scores averaged over neighbours and over nodes with similar features. Small sets. Guaranteed."""
    score = make_score(settings.score)
    score = score if isinstance(score, Similarity) else Similarity(score, settings.features)
    return _one_split(settings, Everyone(), score)


@METHODS.add("rlcp")
def _randomised(settings: Settings) -> Method:
    """RLCP: local weights around a random nearby node. Meant for even coverage; guaranteed without held-out labels."""
    return _one_split(settings, Balls())


@METHODS.add("pagerank")
def _pagerank(settings: Settings) -> Method:
    """Labelled nodes weighted by personalised PageRank, pooled with all. Meant for even coverage; no guarantee."""
    return _walks(settings, Nominal(settings.fallback))


@METHODS.add("pagerank-exact")
def _pagerank_exact(settings: Settings) -> Method:
    """PageRank weights; held-out labels set the level. Meant for even coverage, guaranteed."""
    return _walks(settings, Exact())


def _walks(settings: Settings, level: Any) -> Method:
    near = PageRank(pool=30.0 if settings.pool is None else settings.pool)
    return Method(settings.score, near, level, settings.seed, settings.allow_empty)


@METHODS.add("node-ex")
def _node_exchangeable(settings: Settings) -> Method:
    """NodeEx, for graphs that grow node by node: `split` with outputs computed on the current graph. Guaranteed.

    An alias of `split`, as Zargarbashi and Bojchevski (ICLR 2024) show to be enough: labelled nodes and new ones are
    exchangeable once the model has scored all of them on the graph with all of them in it. What must not be used are
    scores that were computed before nodes arrived. Cost: one more run of the model, and a sort.
    """
    return _split(settings)


@METHODS.add("edge-ex")
def _edge_exchangeable(settings: Settings) -> Method:
    """EdgeEx, for graphs that grow edge by edge: weights of 1/degree, because hubs are labelled sooner."""
    return _one_split(settings, InverseDegree())


@METHODS.add("by-class")
def _by_class(settings: Settings) -> Method:
    """One threshold per class (Mondrian): coverage holds in every class, and sets are larger. Guaranteed."""
    return with_groups(_split(settings), ByClass())


@METHODS.add("clustered")
def _clustered(settings: Settings) -> Method:
    """One threshold per cluster of classes: nearly per-class coverage where classes are many and rare. Guaranteed."""
    return with_groups(_split(settings), Clustered(seed=settings.seed))


@METHODS.add("by-degree")
def _by_degree(settings: Settings) -> Method:
    """One threshold per group of degrees: coverage holds for hubs and for isolated nodes. Guaranteed."""
    return with_groups(_split(settings), ByDegree())


@METHODS.add("by-community")
def _by_community(settings: Settings) -> Method:
    """One threshold per community (Louvain): coverage holds in each that has enough labels. Guaranteed."""
    return with_groups(_split(settings), ByCommunity(seed=settings.seed))


@METHODS.add("informed")
def _informed(settings: Settings) -> Method:
    """Neighbours' labels as evidence for a node's label: smaller sets where they are informative. Guaranteed."""
    score = make_score(settings.score)
    kind = InformedIntervals if isinstance(score, IntervalScore | InformedIntervals) else Informed
    informed = _wrapped(score, kind)
    level = Full() if getattr(informed, "uses_held_out_labels", False) else Exact()
    return Method(informed, Everyone(), level, settings.seed, settings.allow_empty)


@METHODS.add("cf-gnn")
def _corrected(settings: Settings) -> Method:
    """CF-GNN: a second network, trained for small sets, corrects the probabilities. Guaranteed. Needs torch."""
    score = _wrapped(settings.score, CFGNN, alpha=settings.alpha, seed=settings.seed)
    return Method(score, Everyone(), Exact(), settings.seed, settings.allow_empty)


@METHODS.add("auto")
def _auto(settings: Settings) -> AutoMethod:
    """Choose settings by trying them on the labels; even coverage counts more than small sets. Guaranteed."""
    return _chosen(settings, "even")


@METHODS.add("auto-small")
def _small(settings: Settings) -> AutoMethod:
    """Choose the settings with the smallest sets by trying them on the labels, even or not. Guaranteed."""
    return _chosen(settings, "small")


def _chosen(settings: Settings, prefer: Any) -> AutoMethod:
    """Return a method that chooses; a score of numbers stays, that of labels is chosen."""
    score = make_score(settings.score)
    numbers = score if isinstance(score, IntervalScore) else None
    return AutoMethod(settings.alpha, prefer, settings.seed, settings.allow_empty, score=numbers)
