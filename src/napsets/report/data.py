"""What a page shows: its methods, and everything that stands on it as plain rows (`ReportData`).

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

from napsets.checks.arguments import ArrayLike, BoolArray
from napsets.checks.text import percent
from napsets.errors import InvalidInputError
from napsets.evaluation.results import Comparison, MethodResult
from napsets.evaluation.verdict_words import Verdict, is_proven
from napsets.graph import Graph
from napsets.localisers import Everyone, HopsLocal
from napsets.methods import methods
from napsets.report.chart_parts import Row, Table
from napsets.report.summary import Headline, Vocabulary
from napsets.version import __version__

if TYPE_CHECKING:
    from napsets.report.explorer import Explorer
    from napsets.report.page import Page


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportData:
    """Everything that stands on the page.

    Attributes
    ----------
    title : str
        Heading.
    facts : list of (name, value)
        What was done, on what.
    alpha, hops, comparison
        The comparison, its error rate and the depth of its neighbourhoods.
    kind : SetsPage or IntervalsPage
        What differs between pages about sets and about intervals.
    verdict : Verdict
        Which method to use, and how certain that is.
    shown : list of ShownMethod
        The methods, the baseline first.
    methods, curve, by_degree : list of dict
        Rows: one per method, and one per method and alpha or range of degrees.
    band : list of dict
        At each alpha, where chance puts the coverage of the method that the page is about, if it keeps its promise.
    front : list of dict
        One row per method: its size and its gap over groups, with intervals, compared with chance.
    front_over : str
        What those groups are, in words.
    balls, links : list of dict
        Neighbourhoods with every method's coverage, and which of them are joined.
    left_out : int
        Nodes in no neighbourhood that is drawn.
    explorer : Explorer
        Some nodes with all that explains their predictions.
    names : numpy.ndarray
        What the nodes are called.
    words : Vocabulary
        What a node and its label are called.
    record : dict
        How the comparison was made, for programs (see `napsets.report.record`).
    tables : list of (title, rows)
        Reproduction tables.
    details : mapping
        What only this kind of page shows (`rows` of its kind), which can also be read as attributes: `class_names`,
        `by_size` and `by_class` of sets, `widths`, `skewed`, `by_width`, `by_prediction`, `shared` and `shared_by` of
        intervals.
    """

    title: str
    facts: list[tuple[str, str]]
    alpha: float
    hops: int
    comparison: Comparison
    kind: Page
    verdict: Verdict
    shown: list[ShownMethod]
    methods: list[Row]
    curve: list[Row]
    band: list[Row]
    by_degree: list[Row]
    front: list[Row]
    front_over: str
    balls: list[Row]
    links: list[Row]
    left_out: int
    explorer: Explorer
    record: Row
    details: Mapping[str, Any]
    names: npt.NDArray[Any]
    words: Vocabulary = field(default_factory=Vocabulary)
    tables: list[Table] = field(default_factory=list)

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
    return next((local.reference.index.graph for local in locals_ if isinstance(local, HopsLocal)), comparison.graph)


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
