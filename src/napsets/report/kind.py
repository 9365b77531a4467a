"""PageKind: what a page shows of one kind of prediction alone; and the methods of a page, as it shows them.

The two leaves of `PageKind` are `SetsPage` and `IntervalsPage`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, IntArray
from napsets.checks.text import percent
from napsets.evaluation.results import Comparison, MethodResult
from napsets.evaluation.verdict_words import Verdict, is_proven
from napsets.graph import Graph
from napsets.localisers import Everyone, HopsLocal
from napsets.methods import methods
from napsets.report.chart_parts import Columns, Ends, Looks, Measure, Row, Spec
from napsets.report.summary import Vocabulary

if TYPE_CHECKING:
    from napsets.report.data import ReportData
    from napsets.report.explorer import Explorer

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


#: Labelled nodes that are named as evidence, at most.
VOICES = 6
#: A table: one list per method, each cell with its note (an uncertainty, or nothing).
Cells = list[list[tuple[str, str]]]
Item = TypeVar("Item")


class VoiceColumn(NamedTuple):
    """A number that the explorer shows of each labelled node that is evidence."""

    attribute: str  #: The attribute of a `LabelledEvidence` that has it.
    shape: tuple[int, ...] = ()  #: Its shape; () for a single number.
    fill: float = 0.0  #: What is shown where there is none.


class PageKind(ABC):
    """A comparison, as the page about its kind of prediction shows it: its methods, and what each covers."""

    #: The beginning of the title, and what the truth about a node is called on the first screen.
    heading: ClassVar[str]
    label: ClassVar[str]
    #: What a prediction is called there, and what is said of its size.
    noun: ClassVar[str]
    short: ClassVar[str]
    shorter: ClassVar[str]
    longer: ClassVar[str]
    #: How size is drawn: of methods, over error rates and beside evenness, and in a neighbourhood.
    size: ClassVar[Measure]
    curve_size: ClassVar[Measure]
    ball_size: ClassVar[Measure]
    #: Sizes over error rates: the column of a row, and the name of the curve of a result.
    curves: ClassVar[Mapping[str, str]]
    #: The columns of tooltips that say more about a neighbourhood.
    ball_columns: ClassVar[Columns]
    #: What the marks below a node's scores are.
    score_mark: ClassVar[str]
    #: What an empty prediction and the largest ones are called among the reasons to explore a node.
    extremes: ClassVar[tuple[str, str]]
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

    @property
    def graph_fact(self) -> str:
        """What else is said of the graph."""
        return ""

    @abstractmethod
    def check_names(self, names: Sequence[str] | None) -> list[str] | None:
        """Return what classes are called on the page, or refuse the names."""

    # -- rows ----------------------------------------------------------------------------------------------------------

    @abstractmethod
    def method_columns(self, result: MethodResult, covered: BoolArray, row: Row) -> Row:
        """Return further columns of a method's row."""

    @abstractmethod
    def front_sizes(self) -> list[Ends]:
        """Return the size of each method over all judged nodes, in the unit of `curve_size`, with its interval."""

    @abstractmethod
    def rows(self, place: int, weak: Sequence[str]) -> dict[str, Any]:
        """Return the rows of groups, `by_degree` among them, and what else only this kind of page shows.

        Where groups have no order of their own, those that the verdict names as weak come first, then the worst of the
        method at that place.
        """

    @abstractmethod
    def ball_row(self, inside: BoolArray) -> Row:
        """Return what is said of the judged nodes in a neighbourhood."""

    @abstractmethod
    def ball_text(self, ball: Row) -> str:
        """Return the same in a few words."""

    # -- the first screen ----------------------------------------------------------------------------------------------

    @abstractmethod
    def in_words(self, prediction: Any, words: Vocabulary) -> tuple[str, str]:
        """Return what is true of a covered node, as a clause; and what was done for each node, as a sentence."""

    @abstractmethod
    def example(self, prediction: Any, names: npt.NDArray[Any], words: Vocabulary) -> str:
        """Return one node and what is predicted for it, as a sentence."""

    # -- the explorer --------------------------------------------------------------------------------------------------

    @abstractmethod
    def evidence(self, bounds: Sequence[Any]) -> tuple[IntArray, list[Any]]:
        """Return for each bound score which evidence it rests on (−1 for none), and the explainer of each."""

    @property
    @abstractmethod
    def voice_columns(self) -> Mapping[str, VoiceColumn]:
        """What the explorer shows of each labelled node that is evidence, by the name of the array."""

    @abstractmethod
    def node_bytes(self, scored: int, evidence: int) -> int:
        """Return how many bytes a node takes in the page in addition to what it takes on all pages."""

    @abstractmethod
    def explained(self, rows: IntArray, neighbours: IntArray, calibrates: BoolArray, bounds: Sequence[Any]) -> Row:
        """Return what explains the predictions of some rows, and what the neighbours that calibrate are."""

    @abstractmethod
    def score_range(self, explorer: Explorer) -> tuple[float, float]:
        """Return the range of the scores that a page shows."""

    # -- charts and tables ---------------------------------------------------------------------------------------------

    @abstractmethod
    def charts(self, data: ReportData, looks: Looks, target: float) -> dict[str, Spec]:
        """Return the charts that only this kind of page has, and that of degrees."""

    @abstractmethod
    def cards(self, data: ReportData) -> list[Row]:
        """Return the headline numbers: name, value of the method that the page is about, what to compare it with."""

    @abstractmethod
    def method_cells(self, row: Row) -> list[tuple[str, str]]:
        """Return what the comparison says of a method between its coverage and its worst neighbourhood."""

    @abstractmethod
    def size_cells(self, row: Row) -> list[tuple[str, str]]:
        """Return the sizes of a method, counted."""

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


def each_once(items: Sequence[Item | None], same: Callable[[Item, Item], bool]) -> tuple[IntArray, list[Item]]:
    """Return the place of each item in a list that holds each of them once, −1 for None; and that list.

    Examples
    --------
    >>> places, items = each_once([3, None, 4, 3], int.__eq__)
    >>> places.tolist(), items
    ([0, -1, 1, 0], [3, 4])
    """
    once: list[Item] = []
    places = np.full(len(items), -1)
    for i, item in enumerate(items):
        if item is None:
            continue
        known = [place for place, other in enumerate(once) if same(item, other)]
        places[i] = known[0] if known else len(once)
        once += [] if known else [item]
    return places, once
