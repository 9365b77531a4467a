"""A report: `page_data` computes what it shows, as plain rows, and `render` makes one HTML text of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets import __version__
from napsets.checks.arguments import ArrayLike
from napsets.checks.text import percent
from napsets.checks.values import plain
from napsets.errors import InvalidInputError
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.more_labels import MoreLabels, more_labels
from napsets.evaluation.results import Comparison
from napsets.evaluation.verdict import Verdict
from napsets.files.paths import check_output
from napsets.graph import Graph
from napsets.methods import list_methods
from napsets.predictions import PredictionSets
from napsets.report.first_screen import Commands, FirstScreen, first_screen
from napsets.report.html import PAGE_SUFFIXES, as_json, filled, write_text
from napsets.report.rows import (
    DRAWN_SIZE,
    JUDGED_SIZE,
    Row,
    band_rows,
    curve_rows,
    front_rows,
    method_rows,
    neighbourhood_rows,
)
from napsets.report.words import Words

if TYPE_CHECKING:
    from napsets.report.explorer import Explorer
    from napsets.report.parts import Parts, Shown

#: Options of a report that are about its page, and no settings of a comparison.
_PAGE_OPTIONS = ("class_names", "title", "dataset", "model", "words", "tables", "commands")
#: Neighbourhoods that are listed, those covered least first.
_LISTED = 6

#: A user's own table: a title and rows.
UserTable = tuple[str, Sequence[Mapping[str, object]]]


@dataclass(frozen=True)
class ShownMethod:
    """A method as the page shows it."""

    name: str  #: Its name in the table of methods.
    title: str  #: What charts call it; no two are the same.
    text: str  #: What it is for, in one line.
    exact: bool  #: Whether it covers at the target rate if calibration and judged nodes are exchangeable.


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportData:
    """Everything that stands on a page.

    Attributes
    ----------
    title, facts
        The title, and what was done on what: names and values.
    shown, parts
        The comparison as the page shows it, and what belongs to its kind of prediction.
    verdict, screen
        The verdict, and the sentences of the first screen.
    listed : list of ShownMethod
        The methods, the baseline first.
    methods, curve, band
        One row per method; one per method and error rate; and at each error rate where chance puts the coverage of the
        method that the page is about.
    front, front_over
        One row per method: its size and its gap over groups compared with chance; and those groups in words.
    balls, left_out
        Neighbourhoods with every method's coverage, and how many judged nodes are in none.
    more, explorer, specs, tables, commands
        What more labels would bring to the method that the page is about, the explorer, the charts by name, the user's
        own tables, and what to run next.
    """

    title: str
    facts: list[tuple[str, str]]
    shown: Shown
    parts: Parts
    verdict: Verdict
    screen: FirstScreen
    listed: list[ShownMethod]
    methods: list[Row]
    curve: list[Row]
    band: list[Row]
    front: list[Row]
    front_over: str
    balls: list[Row]
    left_out: int
    more: MoreLabels | None
    explorer: Explorer
    specs: dict[str, Row]
    tables: Sequence[UserTable] = ()
    commands: Commands = field(default_factory=Commands)

    @property
    def comparison(self) -> Comparison:
        """The comparison that the page is about."""
        return self.shown.comparison

    @property
    def first_id(self) -> object:
        """The id of the node that the explorer opens with."""
        return plain(self.shown.names[self.explorer.nodes[self.explorer.start]])

    @property
    def cards(self) -> list[tuple[str, str, str]]:
        """The headline numbers: name, value of the recommended method, and what to compare it with."""
        focus, base = self.methods[self.shown.taken], self.methods[0]
        target = f"target {percent(1 - self.comparison.alpha, 0)}"
        beside = "" if focus is base else f"{base['method']} {percent(base['coverage'])}"
        size, *rest = self.parts.cards(focus, base)
        cards = [("Coverage", percent(focus["coverage"]), [target, beside]), size]
        if focus["neighbourhoods"]:
            count, held = focus["neighbourhoods"], percent(focus["in_neighbourhoods"], 0)
            other = "" if focus is base else f", {base['method']} {percent(base['lowest'])}"
            note = (
                f"of its {self.shown.words.nodes} covered{other}; {count} neighbourhood{'s' * (count != 1)} compared, "
            )
            note += f"with {held} of the evaluation {self.shown.words.nodes}"
            cards.append(("Worst neighbourhood", percent(focus["lowest"]), [note]))
        return [(name, value, ", ".join(note for note in notes if note)) for name, value, notes in [*cards, *rest]]

    @property
    def compared(self) -> list[str]:
        """The titles of the baseline and of the method that the page is about, each once."""
        return list(dict.fromkeys([self.shown.titles[0], self.shown.titles[self.shown.place]]))

    @property
    def worst(self) -> list[Row]:
        """The neighbourhoods with enough nodes that the method that the page is about covers least."""
        title = self.shown.titles[self.shown.place]
        return sorted((ball for ball in self.balls if ball["judged"]), key=lambda ball: ball[title])[:_LISTED]


def write_report(
    path: str | os.PathLike[str],
    *,
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    **options: Any,
) -> Path:
    """Compare methods on `nodes` and write a page about it: one file that needs no network.

    Parameters
    ----------
    path : path
        Where to write, a name that ends in .html or .htm; replaced whole or not at all.
    graph, probabilities, labels, calibration, nodes
        As in `napsets.evaluation.comparison.compare`.
    **options
        ``class_names``, ``title``, ``dataset``, ``model``, ``words`` and ``tables``, as in `page_data`; anything else
        as in `compare`: ``methods``, ``alpha``, ``hops``, ``score``, ``seed``, ``ids``, ``progress``, and settings of
        the methods.

    Returns
    -------
    pathlib.Path
        The file.
    """
    check_output(path, PAGE_SUFFIXES, name="path")
    shown = {name: options.pop(name) for name in _PAGE_OPTIONS if name in options}
    comparison = compare(graph, probabilities, labels, calibration, nodes, alphas=CURVE_ALPHAS, **options)
    return write_page(path, comparison, **shown)


def write_page(path: str | os.PathLike[str], comparison: Comparison, **shown: Any) -> Path:
    """Write a page about a comparison; the same comparison gives the same bytes.

    Parameters
    ----------
    path : path
        Where to write; replaced whole or not at all.
    comparison : Comparison
        What `compare` returned, with ``alphas=CURVE_ALPHAS``.
    **shown
        What else stands on the page, as in `page_data`: ``class_names``, ``title`` and others.

    Returns
    -------
    pathlib.Path
        The file.
    """
    check_output(path, PAGE_SUFFIXES, name="path")
    return write_text(path, render(page_data(comparison, **shown)))


def page_data(
    comparison: Comparison,
    *,
    class_names: Sequence[str] | None = None,
    ids: ArrayLike | None = None,
    title: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    words: str | None = None,
    tables: Sequence[UserTable] | None = None,
    commands: Commands | None = None,
    progress: Callable[[int, int], None] | None = None,
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
        Tables of your own, each a title and a list of dictionaries.
    commands : Commands, optional
        What to run next, where the page was made from files.
    progress : callable, optional
        Called as ``progress(done, total)`` with the nodes of the explorer.
    """
    from napsets.report.explorer import explore
    from napsets.report.intervals import interval_parts
    from napsets.report.parts import Shown
    from napsets.report.sets import class_names_of, set_parts

    if comparison.alphas != CURVE_ALPHAS:
        raise InvalidInputError(
            f"`comparison` must hold the error rates that the page draws, {len(CURVE_ALPHAS)} of them; it holds "
            f"{len(comparison.alphas)}. Make it with compare(..., alphas=CURVE_ALPHAS)."
        )
    of_sets = comparison.prediction is PredictionSets
    names = node_names(comparison, ids)
    classes = class_names_of(class_names, comparison.data.outputs.shape[1]) if of_sets else None
    commands = commands or Commands()
    verdict = comparison.verdict(classes, surface=commands.surface)
    listed = shown_methods(comparison)
    taken = [result.name for result in comparison].index(verdict.method)
    shown = Shown(
        comparison=comparison,
        titles=[method.title for method in listed],
        words=Words.parse(words, comparison.prediction.noun),
        place=taken or min(1, len(comparison) - 1),
        taken=taken,
        weak=[group.name for group in verdict.weak if group.what == "class"],
        names=names,
    )
    parts = interval_parts(shown, class_names) if classes is None else set_parts(shown, classes)
    covered = shown.covered()
    front, front_over = front_rows(comparison, shown.titles, verdict.method, parts.size.field, parts.ends)
    balls, left_out = neighbourhood_rows(comparison, shown.titles, covered, parts.ball_size.field)
    field_about, about = parts.about
    balls = [ball | {field_about[0]: about(ball.pop("rows"))} for ball in balls]
    rows = method_rows(comparison, shown.titles, covered)
    data = ReportData(
        title=title or f"Prediction {shown.words.noun}s {f'for {dataset}' if dataset else 'on a graph'}",
        facts=facts_of(comparison, dataset, model, len(parts.class_names)),
        shown=shown,
        parts=parts,
        verdict=verdict,
        screen=first_screen(shown, parts, verdict, commands),
        listed=listed,
        methods=[row | own for row, own in zip(rows, parts.columns, strict=True)],
        curve=curve_rows(comparison, shown.titles, parts.curves),
        band=band_rows(comparison.results[shown.place], comparison.alphas),
        front=front,
        front_over=front_over,
        balls=balls,
        left_out=left_out,
        more=more_labels(comparison, comparison.results[shown.place].name, title=shown.titles[shown.place]),
        explorer=explore(shown, parts, progress),
        specs={},
        tables=list(tables or []),
        commands=commands,
    )
    data.specs.update(_charts(data))
    return data


def _charts(data: ReportData) -> dict[str, Row]:
    """Return every chart of the page by its name."""
    from napsets.report import charts

    shown, parts = data.shown, data.parts
    looks, target = charts.Looks(shown.titles), 1.0 - data.comparison.alpha
    specs = {
        "front": charts.front(looks, data.front, parts.size),
        "tradeoff": charts.tradeoff(looks, data.curve, target, parts.size),
        "up-to": charts.up_to(looks, parts.up_to, parts.up_to_measure, skewed=parts.skewed),
        "gap": charts.gap(looks, data.curve, parts.size, data.band),
        "scores": charts.scores(shown.words.Label),
    }
    for group in parts.groupings:
        specs[group.name] = charts.by_group(looks, group.rows, group.field, target, *group.columns)
    if data.more is not None:
        specs["more-labels"] = charts.with_labels(looks, data.more.rows(), parts.size)
    if data.balls:
        specs["funnel"] = charts.funnel(looks, data.balls, data.comparison.alpha, parts.about[0])
    return {name: shown.words.put_titles(spec) for name, spec in specs.items()} if shown.words.given else specs


def shown_methods(comparison: Comparison) -> list[ShownMethod]:
    """Return the methods of a comparison, in its order."""
    texts, often = list_methods(), Counter(result.title for result in comparison)
    return [
        ShownMethod(
            result.name,
            result.title if often[result.title] == 1 else f"{result.title} ({result.name})",
            texts.get(result.name, ""),
            result.calibrated.is_proven,
        )
        for result in comparison
    ]


def node_names(comparison: Comparison, ids: ArrayLike | None) -> npt.NDArray[Any]:
    """Return the names of the nodes on the page."""
    graph = comparison.graph
    names = comparison.ids if ids is None else np.asarray(ids)
    if names is None:
        names = np.arange(graph.num_nodes) if graph.original_ids is None else graph.original_ids
    if names.shape != (graph.num_nodes,):
        raise InvalidInputError(f"`ids` must have one entry per node, {graph.num_nodes}; got shape {names.shape}")
    return names


def facts_of(comparison: Comparison, dataset: str | None, model: str | None, classes: int) -> list[tuple[str, str]]:
    """Return the data, model and settings behind the page."""
    graph, hops = comparison.graph, comparison.hops
    edges = graph.num_edges if graph.directed else graph.num_edges // 2
    facts = [
        ("Dataset", dataset or ""),
        ("Model", model or ""),
        ("Graph", f"{graph.num_nodes:,} nodes, {edges:,} edges{f', {classes} classes' if classes else ''}"),
        ("Calibration", f"{comparison.data.calibration.size:,} labelled nodes"),
        ("Evidence", comparison.evidence),
        ("Evaluation", f"{comparison.nodes.size:,} other labelled nodes"),
        ("Neighbourhood", f"{hops} hop{'s' * (hops != 1)}"),
        ("Error rate", f"alpha = {comparison.alpha:g}"),
        ("Score", type(comparison.settings["score"]).__name__),
        ("Seed", str(comparison.settings["seed"])),
        ("Made with", f"napsets {__version__}"),
    ]
    return [(name, value) for name, value in facts if value]


def render(data: ReportData) -> str:
    """Return the page as one text."""
    from napsets.report.charts import FIRST_GROUPS, LOOKS
    from napsets.report.explorer import pack

    explorer = data.explorer
    packed = {"nodes": explorer.shown, "methods": data.shown.titles}
    return filled(
        "page.html.j2",
        data=data,
        words=data.shown.words,
        parts=data.parts,
        verdict=data.verdict,
        screen=data.screen,
        methods=data.listed,
        explorer=explorer,
        looks=LOOKS,
        first_groups=FIRST_GROUPS,
        drawn_size=DRAWN_SIZE,
        judged_size=JUDGED_SIZE,
        specs=as_json(data.specs),
        finder=as_json({"names": explorer.names, "start": explorer.start, "reason": explorer.reason.tolist()}),
        packed=pack(as_json(packed)),
    )
