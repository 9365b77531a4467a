"""What a page shows: its methods, everything that stands on it as plain rows (`ReportData`), and its map.

`PageKind` is what pages about sets and about intervals have in common; its two leaves are `SetsPage` and
`IntervalsPage`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from napsets import __version__
from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray
from napsets.checks.text import percent
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import finite_mean, groups_of_partition, neighbourhood_partition
from napsets.evaluation.results import Comparison, MethodResult
from napsets.evaluation.verdict_words import Verdict, is_proven
from napsets.graph import Graph
from napsets.localisers import Everyone, HopsLocal
from napsets.localisers.base import graph_of
from napsets.methods import methods
from napsets.report.chart_parts import Row, Table
from napsets.report.summary import Headline, Vocabulary

if TYPE_CHECKING:
    from napsets.report.explorer import Explorer
    from napsets.report.page import Page


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportData:
    """Everything that stands on the page; what only its kind has (`details`) can be read as attributes, too."""

    title: str
    facts: list[tuple[str, str]]  #: What was done, on what: names and values.
    alpha: float
    hops: int
    comparison: Comparison
    kind: Page
    verdict: Verdict
    shown: list[ShownMethod]  #: The methods, the baseline first.
    #: One row per method; and one per method and alpha, or range of degrees.
    methods: list[Row]
    curve: list[Row]
    by_degree: list[Row]
    #: At each alpha, where chance puts the coverage of the method that the page is about, if it keeps its promise.
    band: list[Row]
    #: One row per method: its size and its gap over groups, with intervals, compared with chance; and those groups.
    front: list[Row]
    front_over: str
    #: Neighbourhoods with every method's coverage, which of them are joined, and how many nodes are in none.
    balls: list[Row]
    links: list[Row]
    left_out: int
    explorer: Explorer
    record: Row  #: How the comparison was made, for programs (see `napsets.report.record`).
    details: Mapping[str, Any]  #: What `rows` of the kind returns.
    names: npt.NDArray[Any]  #: What the nodes are called.
    words: Vocabulary = field(default_factory=Vocabulary)
    tables: list[Table] = field(default_factory=list)  #: Reproduction tables.

    def __getattr__(self, name: str) -> Any:
        details = self.__dict__.get("details", {})
        if name not in details:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return details[name]


ThresholdSource = Literal["hops", "everyone", "other"]


@dataclass(frozen=True)
class ShownMethod:
    """A method as the page shows it."""

    #: Its name in the table of methods, what charts call it (no two the same), and one line on what it is for.
    name: str
    title: str
    text: str
    #: Whether its thresholds are quantiles of scores around the node, of all scores, or come about in another way.
    kind: ThresholdSource
    exact: bool  #: Whether it covers at the target rate where calibration and judged nodes are exchangeable.


def shown_methods(comparison: Comparison) -> list[ShownMethod]:
    """Return the methods of a comparison, in its order."""
    texts, often, graph = methods(), Counter(result.title for result in comparison), walked_graph(comparison)
    return [
        ShownMethod(
            result.name,
            result.title if often[result.title] == 1 else f"{result.title} ({result.name})",
            texts.get(result.name, ""),
            _kind(result, graph),
            is_proven(result.calibrated),
        )
        for result in comparison
    ]


def focus(comparison: Comparison, verdict: Verdict) -> int:
    """Return the place of the method that the page is about: the one to take, or the first to be compared with it."""
    place = [result.name for result in comparison].index(verdict.method)
    return place or min(1, len(comparison.results) - 1)


def walked_graph(comparison: Comparison) -> Graph:
    """Return the graph whose hops the page shows: along the direction of the first method that counts them."""
    locals_ = (result.calibrated.local for result in comparison)
    return next((graph_of(local.reference) for local in locals_ if isinstance(local, HopsLocal)), comparison.graph)


def _kind(result: MethodResult, walked: Graph) -> ThresholdSource:
    if result.calibrated.grouped is not None:
        return "other"
    local = result.calibrated.local
    # Hops that another direction leads to are not those that the page shows.
    if isinstance(local, HopsLocal):
        return "hops" if local.reference.graph is walked else "other"
    return "everyone" if isinstance(result.calibrated.method.localiser, Everyone) else "other"


def node_names(comparison: Comparison, ids: ArrayLike | None) -> npt.NDArray[Any]:
    """Return what the nodes are called on the page."""
    graph = comparison.graph
    names = comparison.ids if ids is None else np.asarray(ids)
    if names is None:
        names = np.arange(graph.num_nodes) if graph.original_ids is None else graph.original_ids
    if names.shape != (graph.num_nodes,):
        raise InvalidInputError(f"`ids` must have one entry per node, {graph.num_nodes}; got shape {names.shape}")
    return names


def facts_of(comparison: Comparison, dataset: str | None, model: str | None, graph_fact: str) -> list[tuple[str, str]]:
    """Return what was done, on what."""
    graph, hops = comparison.graph, comparison.hops
    edges = graph.num_edges if graph.directed else graph.num_edges // 2
    facts = [
        ("Dataset", dataset or ""),
        ("Model", model or ""),
        ("Graph", f"{graph.num_nodes:,} nodes, {edges:,} edges{graph_fact}"),
        ("Calibration", f"{comparison.data.calibration.size:,} labelled nodes"),
        ("Evaluation", f"{comparison.nodes.size:,} other labelled nodes"),
        ("Neighbourhood", f"{hops} hop{'s' * (hops != 1)}"),
        ("Error rate", f"alpha = {comparison.alpha:g}"),
        ("Score", type(comparison.settings.score).__name__),
        ("Seed", str(comparison.settings.seed)),
        ("Made with", f"napsets {__version__}"),
    ]
    return [(name, value) for name, value in facts if value]


#: A table: one list per method, each cell with its note (an uncertainty, or nothing).
Cells = list[list[tuple[str, str]]]


class PageKind(ABC):
    """A comparison, as the page about its kind of prediction shows it: its methods, and what each covers.

    What else differs between pages has the same names in both leaves, and is described in `SetsPage`.
    """

    #: What the record says of the kind.
    recorded: ClassVar[Mapping[str, str]] = {}

    def __init__(self, comparison: Comparison, class_names: Sequence[str] | None = None) -> None:
        self.comparison = comparison
        self.class_names = self.check_names(class_names)
        self.methods = shown_methods(comparison)
        self.covered: list[BoolArray] = [
            result.prediction.covers(comparison.truth[comparison.nodes]) for result in comparison
        ]

    @property
    def titles(self) -> list[str]:
        """What charts call the methods."""
        return [method.title for method in self.methods]

    @abstractmethod
    def check_names(self, names: Sequence[str] | None) -> list[str] | None:
        """Return what classes are called on the page, or refuse the names."""

    @abstractmethod
    def size_cards(self, headline: Headline) -> tuple[list[Row], list[Row]]:
        """Return the headline numbers of sizes: those before the worst neighbourhood, and those behind it."""

    @abstractmethod
    def method_cells(self, row: Row) -> list[tuple[str, str]]:
        """Return what the comparison says of a method between its coverage and its worst neighbourhood."""

    @abstractmethod
    def size_cells(self, row: Row) -> list[tuple[str, str]]:
        """Return the sizes of a method, counted."""

    def cards(self, data: ReportData) -> list[Row]:
        """Return the headline numbers: name, value of the method that the page is about, what to compare it with."""
        headline = Headline.of(data)
        first, last = self.size_cards(headline)
        return [headline.coverage(data.alpha), *first, *headline.worst(), *last]

    def method_table(self, data: ReportData) -> Cells:
        """Return the comparison of the methods."""
        return [
            [
                (row["method"], ""),
                (percent(row["coverage"]), f"± {100 * row['coverage_se']:.1f}"),
                *self.method_cells(row),
                (percent(row["lowest"]), ""),
            ]
            for row in data.methods
        ]

    def size_table(self, data: ReportData) -> Cells:
        """Return sizes, counted."""
        return [[(row["method"], ""), *self.size_cells(row)] for row in data.methods]


# -- the map of neighbourhoods: balls of nodes, and the edges between them ---------------------------------------------

#: Neighbourhoods with fewer nodes are not drawn; PCCV judges only those of `JUDGED_SIZE` or more, as in the paper.
DRAWN_SIZE, JUDGED_SIZE = 10, 30
#: The map holds this many neighbourhoods at most, the largest ones.
DRAWN_BALLS = 120
#: Strongest links of each ball that are drawn; all of them would hide the balls.
LINKS_PER_BALL = 3
#: Edges looked at at a time.
_CHUNK_EDGES = 1 << 24
#: Steps of a layout.
_STEPS = 400


@dataclass(frozen=True, eq=False)
class NeighbourhoodMap:
    """The neighbourhoods that a page draws."""

    ball: IntArray  #: The neighbourhood of each node, −1 for none.
    position: FloatArray  #: Where each is drawn.
    links: list[Row]  #: Which are joined.
    left_out: int  #: Judged nodes in none.

    def rows(self, page: Page) -> list[Row]:
        """Return one row per neighbourhood: what it holds, each method's coverage, and its mean size behind a word."""
        comparison, rows = page.comparison, []
        for b, (x, y) in enumerate(self.position.tolist()):
            inside = self.ball[comparison.nodes] == b
            row: Row = {"ball": b, "x": x, "y": y, "nodes": int(inside.sum())}
            row |= {"judged": bool(inside.sum() >= JUDGED_SIZE)} | page.ball_row(inside)
            for title, result, hits in zip(page.titles, comparison, page.covered, strict=True):
                row[title] = float(hits[inside].mean())
                row[f"{title} {page.ball_size.field}"] = finite_mean(result.sizes[inside])
            rows.append(row)
        return rows


def neighbourhood_map(comparison: Comparison) -> NeighbourhoodMap:
    """Cut the judged nodes into neighbourhoods and lay them out."""
    graph, seed = comparison.graph, comparison.settings.seed
    parts = neighbourhood_partition(graph, comparison.nodes, min_size=DRAWN_SIZE, seed=seed)[:DRAWN_BALLS]
    ball = groups_of_partition(parts, graph.num_nodes)
    links, position = quotient(graph, parts, seed)
    return NeighbourhoodMap(ball, position, links, int((ball[comparison.nodes] < 0).sum()))


def quotient(graph: Graph, balls: list[IntArray], seed: int = 0) -> tuple[list[Row], FloatArray]:
    """Return the graph whose nodes are balls: the strongest links of each, and where it is drawn within [0, 1]²."""
    count = len(balls)
    joined = _edges_between(graph, groups_of_partition(balls, graph.num_nodes), count)
    source, target = np.nonzero(np.triu(joined, 1))
    edges = joined[source, target]
    # Large balls have many edges to all others; the layout should show which balls are closer than their sizes explain.
    sizes = np.array([members.size for members in balls], dtype=np.float64)
    strength = edges / np.sqrt(sizes[source] * sizes[target])
    kept = _strongest(source, target, strength, count)
    source, target, edges, strength = source[kept], target[kept], edges[kept], strength[kept]
    position = force_layout(count, source, target, strength, radius=np.sqrt(sizes), seed=seed)
    ends = zip(source.tolist(), target.tolist(), edges.tolist(), strict=True)
    return [{"source": a, "target": b, "edges": count} for a, b, count in ends], position


def force_layout(
    count: int, source: IntArray, target: IntArray, strength: FloatArray, *, radius: FloatArray, seed: int = 0
) -> FloatArray:
    """Lay a small graph out within [0, 1]²: links pull, nodes push, large nodes claim their room (`radius`).

    The same seed gives the same picture; the work is quadratic in the number of nodes.
    """
    if count == 0:
        return np.empty((0, 2))
    rng = np.random.default_rng(seed)
    angle = np.arange(count) * np.pi * (3 - np.sqrt(5))
    spiral = np.sqrt((np.arange(count) + 0.5) / count)[:, None]
    position = spiral * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(scale=1e-2, size=(count, 2))
    pull = np.zeros((count, count))
    pull[source, target] = strength / max(float(strength.max(initial=0.0)), 1e-12)
    pull += pull.T
    room = 0.5 * radius / np.sqrt(np.sum(radius**2))
    reach = room[:, None] + room[None, :]
    ideal = 1.2 / np.sqrt(count)
    for step in range(_STEPS):  # each moves less than the one before
        gap = position[:, None, :] - position[None, :, :]
        distance = np.sqrt(np.sum(gap**2, axis=2)) + 1e-9
        push = ideal**2 / distance**2 + 8.0 * np.maximum(0.0, reach - distance) / distance
        force = np.sum(gap * (push - pull * distance / ideal)[:, :, None], axis=1) - 0.6 * position
        length = np.sqrt(np.sum(force**2, axis=1, keepdims=True)) + 1e-9
        position += force / length * np.minimum(length, 0.12 * (1.0 - step / _STEPS))
    low, high = position.min(axis=0), position.max(axis=0)
    return np.asarray((position - low) / np.where(high > low, high - low, 1.0))


def _edges_between(graph: Graph, ball: IntArray, count: int) -> IntArray:
    """Count stored edges between every two balls, both directions together."""
    joined = np.zeros(count * count, dtype=np.int64)
    degrees = graph.degrees
    first = 0
    while first < graph.num_nodes:
        last = int(np.searchsorted(graph.indptr, graph.indptr[first] + _CHUNK_EDGES, side="right")) - 1
        last = min(max(last, first + 1), graph.num_nodes)
        ends: Any = graph.indices[graph.indptr[first] : graph.indptr[last]]
        a, b = np.repeat(ball[first:last], degrees[first:last]), ball[ends]
        inside = (a >= 0) & (b >= 0)
        joined += np.bincount(a[inside] * count + b[inside], minlength=count * count)
        first = last
    square = joined.reshape(count, count)
    # An undirected edge is stored twice, once from each side.
    return square + square.T if graph.directed else square


def _strongest(source: IntArray, target: IntArray, strength: FloatArray, count: int) -> IntArray:
    kept = np.zeros(source.size, dtype=bool)
    for b in range(count):
        links = np.flatnonzero((source == b) | (target == b))
        kept[links[np.argsort(-strength[links], kind="stable")[:LINKS_PER_BALL]]] = True
    return np.flatnonzero(kept)
