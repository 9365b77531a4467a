"""One HTML file, with template, style sheet, script and charts library in one text: a report, or a page over time.

`page_data` computes what a report shows, as plain rows; `render` makes a text of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from napsets.checks.arguments import ArrayLike
from napsets.checks.text import visible
from napsets.errors import InvalidInputError, imported
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.files.paths import check_output, replacing
from napsets.graph import Graph
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.report.chart_parts import (
    LOOKS,
    Row,
    Spec,
    Table,
    band_rows,
    between,
    coverage,
    curve_rows,
    drawn,
    frame,
    front_rows,
    method_rows,
    number_axis,
    reach,
    target_rule,
    tips,
)
from napsets.report.charts import charts
from napsets.report.data import DRAWN_SIZE, JUDGED_SIZE, ReportData, facts_of, focus, neighbourhood_map, node_names
from napsets.report.explorer import explore
from napsets.report.intervals_page import IntervalsPage
from napsets.report.record import as_json, record_of
from napsets.report.sets_page import SetsPage
from napsets.report.summary import Vocabulary, cell, code, sentence, summarise, unbroken

ASSETS = Path(__file__).parent / "assets"
#: The page of each kind of prediction.
Page = SetsPage | IntervalsPage
PAGES: Mapping[type[Prediction], type[Page]] = {PredictionSets: SetsPage, PredictionIntervals: IntervalsPage}
#: Exposes only vegaEmbed to the page's script.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
#: Options of a report that are about its page, and no settings of a comparison.
_PAGE_OPTIONS = ("class_names", "title", "dataset", "model", "words", "tables")


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
    check_place(path)
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
    check_place(path)
    return _write(path, render(page_data(comparison, **shown)))


def _write(path: str | os.PathLike[str], text: str) -> Path:
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


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
    names = node_names(comparison, ids)
    verdict = comparison.verdict(page.class_names)
    place = focus(comparison, verdict)
    front, front_over = front_rows(page, verdict.method)
    neighbourhoods = neighbourhood_map(comparison)
    details = page.rows(place, [group.name for group in verdict.weak if group.what == "class"])
    return ReportData(
        title=title or f"{page.heading} {f'for {dataset}' if dataset else 'on a graph'}",
        facts=facts_of(comparison, dataset, model, page.graph_fact),
        alpha=comparison.alpha,
        hops=comparison.hops,
        comparison=comparison,
        kind=page,
        verdict=verdict,
        shown=page.methods,
        methods=method_rows(page),
        curve=curve_rows(page),
        band=band_rows(comparison.results[place], comparison.alphas),
        by_degree=details.pop("by_degree"),
        front=front,
        front_over=front_over,
        balls=neighbourhoods.rows(page),
        links=neighbourhoods.links,
        left_out=neighbourhoods.left_out,
        explorer=explore(page, names=names, ball=neighbourhoods.ball, focus=place),
        record=record_of(comparison, {**page.recorded, **(settings or {})}, comparison.results[place].name),
        details=details,
        names=names,
        words=Vocabulary.parse(words),
        tables=list(tables or []),
    )


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InvalidInputError(f"`path` must lie in a folder that exists; {folder} does not")
    check_output(path, suffixes=(".html", ".htm"), name="path")


def render(data: ReportData) -> str:
    """Return the page as one text."""
    noun = data.comparison.prediction.noun
    return _filled(
        f"{noun}s.html.j2",
        data=data,
        kind=data.kind,
        prediction=data.comparison.prediction,
        methods=data.shown,
        verdict=data.verdict,
        summary=summarise(data, data.words),
        reasons=_counted_reasons(data),
        looks=LOOKS,
        drawn_size=DRAWN_SIZE,
        judged_size=JUDGED_SIZE,
        specs=as_json(charts(data)),
        explorer=as_json(_explorer(data)),
        record=as_json(data.record),
        script=_script(f"{noun}s"),
    )


def _filled(template: str, **values: Any) -> str:
    """Return a template with its values, the style sheet and the charts library."""
    jinja2 = imported("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Text is made visible before the template writes it; markup, which the template itself made, is let alone.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {"cell": cell, "sentence": sentence, "code": code, "unbroken": unbroken}
    style = (ASSETS / "report.css").read_text(encoding="utf-8")
    page: str = environment.get_template(template).render(style=style, library=library(), **values)
    return page


def _script(leaf: str) -> str:
    """Return the page's script: what all pages do, and what those of one kind do."""
    parts = ((ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in ("page", "explorer", leaf))
    return "\n".join(['"use strict";', "(() => {", *parts, "  start();", "})();", ""])


@lru_cache(maxsize=1)
def library() -> str:
    """Return the charts library (Vega, Vega-Lite and Vega-Embed) as one script."""
    vl_convert = imported("vl_convert", "report", "vl-convert-python")
    script: str = vl_convert.javascript_bundle(_SNIPPET)
    return script.replace("</script", r"<\/script")


def _counted_reasons(data: ReportData) -> list[tuple[int, str, int]]:
    """Return the reasons that some nodes can be explored for: place, name and how many nodes."""
    counts = data.explorer.reason.sum(axis=0).tolist()
    return [(r, name, counts[r]) for r, name in enumerate(data.explorer.reasons) if counts[r]]


def _explorer(data: ReportData) -> dict[str, Any]:
    """Return what the page's script reads."""
    return vars(data.explorer) | {
        "methods": [method.title for method in data.shown],
        "kinds": [method.kind for method in data.shown],
        "alpha": data.alpha,
        "hops": data.hops,
        "start": data.explorer.start,
    }


# -- over time --------------------------------------------------------------------------------------------------------

#: The decimal logarithm of the capital at which an alarm rings.
_RINGS = 2.0
#: The dots on the first line of a picture.
_DOTS = {"filled": True, "size": 16, "color": "var(--method-0)"}
_TIPS = tips(
    ("labels", "Labels", ",d"), ("coverage", "Coverage", ".1%"), ("low", "95 % from", ".1%"), ("high", "to", ".1%"),
    ("recent_coverage", "Of the last labels", ".1%"), ("recent_size", "Mean size of these", ".3~f"),
)  # fmt: skip


def over_time_charts(result: dict[str, Any], alpha: float, noun: str = "set") -> dict[str, Spec]:
    """Return the charts of what ``evaluate --in-order`` found (figures and ``over_time``) by their names."""
    rows: list[Row] = [
        point | dict(zip(("low", "high"), point["coverage_interval"], strict=True)) for point in result["over_time"]
    ]
    window, size = result["window"], "Mean size" if noun == "set" else "Mean width"
    x = number_axis("labels", "Labels so far", form="~s")
    share = coverage("coverage", reach(rows, "coverage", "recent_coverage", include=1.0 - alpha), target=1.0 - alpha)
    pictures = {
        "coverage": [
            # The interval is wide at first: it is cut where the axis ends.
            drawn("area", between({"x": x, "y": share}, "y", "low", "high"), color="var(--band)", clip=True),
            target_rule(1.0 - alpha, "y"),
            drawn("line", {"x": x, "y": share | {"field": "recent_coverage"}}, color="var(--method-1)", opacity=0.7),
            drawn("line", {"x": x, "y": share, "tooltip": _TIPS}, color="var(--method-0)", strokeWidth=2, point=_DOTS),
        ],
        "size": _lines(x, rows, ("mean_size", "recent_size"), f"{size} so far, and of the last {window}"),
        "alarms": [
            target_rule(_RINGS, "y"),
            *_lines(x, rows, ("log10_coverage", "log10_exchangeability"), "Evidence, powers of ten", _RINGS),
        ],
    }
    if rows and rows[-1]["label_delay"] is not None:
        known = [row for row in rows if row["label_delay"] is not None]
        pictures["delay"] = _lines(x, known, ("label_delay",), f"Median delay of the last {window} labels", include=0.0)
    return {name: frame(260, layers, rows) for name, layers in pictures.items()}


def _lines(x: Spec, rows: list[Row], fields: tuple[str, ...], title: str, include: float | None = None) -> list[Spec]:
    """Return one line for each of some columns."""
    domain = reach(rows, *fields, include=rows[0][fields[0]] if include is None else include)
    return [
        drawn(
            "line",
            {
                "x": x,
                "y": number_axis(field, title, domain=domain),
                "tooltip": tips(("labels", "Labels", ",d"), (field, title, ".3~f")),
            },
            color=f"var(--method-{place})", strokeWidth=2, point=False if place else _DOTS,
        )
        for place, field in enumerate(fields)
    ]  # fmt: skip


def write_over_time(
    path: str | os.PathLike[str],
    result: dict[str, Any],
    alpha: float,
    noun: str,
    figures: Sequence[tuple[str, str]],
) -> Path:
    """Write a page about coverage over time, in the report's style; `figures` stand beside the pictures.

    The other parameters are those of `over_time_charts`.
    """
    check_place(path)
    shown = {"title": f"{noun.capitalize()}s over time", "noun": noun, "window": result["window"], "alpha": alpha}
    pictures = over_time_charts(result, alpha, noun)
    return _write(
        path, _filled("over_time.html.j2", pictures=pictures, figures=figures, specs=as_json(pictures), **shown)
    )
