"""What a page shows, as plain rows: computed by pure functions, rendered elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike
from napsets.errors import InvalidInputError
from napsets.evaluation.comparison import CURVE_ALPHAS
from napsets.evaluation.results import Comparison
from napsets.evaluation.verdict_words import Verdict
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.report.chart_parts import Row, Table, band_rows, curve_rows, front_rows, method_rows
from napsets.report.explorer import Explorer, explore
from napsets.report.intervals_page import IntervalsPage
from napsets.report.kind import PageKind, ShownMethod, focus
from napsets.report.neighbourhoods import neighbourhood_map
from napsets.report.record import record_of
from napsets.report.sets_page import SetsPage
from napsets.report.summary import Vocabulary
from napsets.version import __version__

#: The page of each kind of prediction.
PAGES: Mapping[type[Prediction], type[PageKind]] = {PredictionSets: SetsPage, PredictionIntervals: IntervalsPage}


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
    kind : PageKind
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
        What only this kind of page shows (`PageKind.rows`), which can also be read as attributes: `class_names`,
        `by_size` and `by_class` of sets, `widths`, `skewed`, `by_width`, `by_prediction`, `shared` and `shared_by` of
        intervals.
    """

    title: str
    facts: list[tuple[str, str]]
    alpha: float
    hops: int
    comparison: Comparison
    kind: PageKind
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


def page_data(
    comparison: Comparison,
    *,
    class_names: Sequence[str] | None = None,
    ids: ArrayLike | None = None,
    title: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    words: str | None = None,
    tables: Sequence[Table] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ReportData:
    """Compute the page's contents.

    Parameters
    ----------
    comparison : Comparison
        Methods side by side, the baseline first, with ``alphas=CURVE_ALPHAS``; the page is about the one that the
        verdict takes or, if that is the baseline, about the second.
    class_names : sequence of str, optional
        One per class, of a comparison of sets.
    ids : array, optional
        What the nodes are called; by default as in the comparison, or in the graph that this graph was cut out of.
    title, dataset, model : str, optional
        What stands at the top of the page.
    words : str, optional
        What a node and its label are, separated by a comma: "package, build system".
    tables : sequence of (title, rows), optional
        Reproduction tables, each a title and a list of dictionaries.
    settings : mapping, optional
        More that ``napsets inspect --like`` should know: how the files were read.
    """
    if comparison.alphas != CURVE_ALPHAS:
        raise InvalidInputError(
            f"`comparison` must hold the error rates that the page draws, {len(CURVE_ALPHAS)} of them; it holds "
            f"{len(comparison.alphas)}. Make it with compare(..., alphas=CURVE_ALPHAS)."
        )
    page = PAGES[comparison.prediction](comparison, class_names)
    names = _node_names(comparison, ids)
    verdict = comparison.verdict(page.class_names)
    place, titles, covered = focus(comparison, verdict), page.titles, page.covered
    rows = method_rows(comparison, titles, covered)
    further = map(page.method_columns, comparison, covered, rows)
    front, front_over = front_rows(comparison, titles, verdict, page.curve_size.field, page.front_sizes())
    neighbourhoods = neighbourhood_map(comparison)
    details = page.rows(place, [group.name for group in verdict.weak if group.what == "class"])
    return ReportData(
        title=title or f"{page.heading} {f'for {dataset}' if dataset else 'on a graph'}",
        facts=_facts(comparison, dataset, model, page.graph_fact),
        alpha=comparison.alpha,
        hops=comparison.hops,
        comparison=comparison,
        kind=page,
        verdict=verdict,
        shown=page.methods,
        methods=[row | columns for row, columns in zip(rows, further, strict=True)],
        curve=curve_rows(comparison, titles, page.curves),
        band=band_rows(comparison.results[place], comparison.alphas),
        by_degree=details.pop("by_degree"),
        front=front,
        front_over=front_over,
        balls=neighbourhoods.rows(comparison, titles, covered, describe=page.ball_row, size=page.ball_size.field),
        links=neighbourhoods.links,
        left_out=neighbourhoods.left_out,
        explorer=explore(page, names=names, ball=neighbourhoods.ball, focus=place),
        record=record_of(comparison, {**page.recorded, **(settings or {})}, comparison.results[place].name),
        details=details,
        names=names,
        words=Vocabulary.parse(words),
        tables=list(tables or []),
    )


def _node_names(comparison: Comparison, ids: ArrayLike | None) -> npt.NDArray[Any]:
    """Return what the nodes are called on the page."""
    graph = comparison.graph
    names = comparison.ids if ids is None else np.asarray(ids)
    if names is None:
        names = np.arange(graph.num_nodes) if graph.original_ids is None else graph.original_ids
    if names.shape != (graph.num_nodes,):
        raise InvalidInputError(f"`ids` must have one entry per node, {graph.num_nodes}; got shape {names.shape}")
    return names


def _facts(comparison: Comparison, dataset: str | None, model: str | None, graph_fact: str) -> list[tuple[str, str]]:
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
