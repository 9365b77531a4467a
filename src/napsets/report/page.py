"""From `ReportData` to one HTML file: template, style sheet, script and charts library in one text."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from napsets.checks.arguments import ArrayLike
from napsets.checks.text import visible
from napsets.errors import InvalidInputError, imported
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.files.places import check_output, replacing
from napsets.graph import Graph
from napsets.report.charts import charts
from napsets.report.data import ReportData, page_data
from napsets.report.encodings import LOOKS
from napsets.report.neighbourhoods import DRAWN_SIZE, JUDGED_SIZE
from napsets.report.record import as_json
from napsets.report.summary import cell, code, sentence, summarise, unbroken

ASSETS = Path(__file__).parent / "assets"
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
    text = render(page_data(comparison, **shown))
    target = Path(path)
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InvalidInputError(f"`path` must lie in a folder that exists; {folder} does not")
    check_output(path, suffixes=(".html", ".htm"), name="path")


def render(data: ReportData) -> str:
    """Return the page as one text."""
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
    environment.filters["cell"] = cell
    environment.filters["sentence"] = sentence
    environment.filters["code"] = code
    environment.filters["unbroken"] = unbroken
    noun = data.comparison.prediction.noun
    page: str = environment.get_template(f"{noun}s.html.j2").render(
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
        style=(ASSETS / "report.css").read_text(encoding="utf-8"),
        script=_script(f"{noun}s"),
        library=library(),
    )
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
