"""From `ReportData` to one HTML file: template, style sheet, script and charts library in one text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike
from napsets.errors import InvalidInputError, MissingDependencyError
from napsets.evaluation.comparison import COMPARED, CURVE_ALPHAS, Comparison, compare
from napsets.evaluation.interval_comparison import IntervalComparison
from napsets.files.places import check_output, replacing
from napsets.graph import Graph
from napsets.report.around import FOCUS_COVERS, Around
from napsets.report.charts import FIRST_CLASSES, charts
from napsets.report.data import ReportData, page_data
from napsets.report.encodings import LOOKS
from napsets.report.interval_charts import interval_charts
from napsets.report.interval_data import IntervalReportData, interval_page_data
from napsets.report.interval_words import INTERVAL_WORDS, interval_cards, interval_table, width_table
from napsets.report.names import visible
from napsets.report.packing import packed
from napsets.report.rows import DRAWN_SIZE, JUDGED_SIZE
from napsets.report.words import WORDS, cards, cell, method_table, sentence, summary_table
from napsets.scores import Score

__all__ = ["render", "write_page", "write_report"]

_ASSETS = Path(__file__).parent / "assets"
#: Puts the charts library where the page's script finds it, and nothing else of it in the way.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


#: What is said about a page, and is no setting of a method.
_SHOWN = ("class_names", "title", "dataset", "model", "tables")


def write_report(
    path: str | os.PathLike[str],
    *,
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    methods: Sequence[str] = COMPARED,
    alpha: float = 0.1,
    hops: int = 2,
    score: Score | None = None,
    seed: int = 0,
    ids: ArrayLike | None = None,
    progress: Any = None,
    **options: Any,
) -> Path:
    """Compare methods on `nodes` and write a page about it: one file that needs no network.

    Parameters
    ----------
    path : path
        Where to write, a name that ends in .html or .htm; replaced whole or not at all.
    graph, probabilities, labels, calibration, nodes, methods, alpha, hops, score, seed, ids, progress
        As in `napsets.evaluation.comparison.compare`.
    **options
        ``class_names``, ``title``, ``dataset``, ``model`` and ``tables``, as in `page_data`; anything else is a setting
        of the methods, as in `compare`.

    Returns
    -------
    pathlib.Path
        The file.
    """
    _check_place(path)
    shown = {
        name: options.pop(name) for name in ("class_names", "title", "dataset", "model", "tables") if name in options
    }
    found = compare(
        graph,
        probabilities,
        labels,
        calibration,
        nodes,
        methods=methods,
        alpha=alpha,
        hops=hops,
        score=score,
        seed=seed,
        ids=ids,
        alphas=CURVE_ALPHAS,
        progress=progress,
        **options,
    )
    return write_page(path, found, **shown)


def write_page(path: str | os.PathLike[str], comparison: Comparison | IntervalComparison, **shown: Any) -> Path:
    """Write a page about a comparison; the same comparison gives the same bytes.

    Parameters
    ----------
    path : path
        Where to write; replaced whole or not at all.
    comparison : Comparison or IntervalComparison
        What `compare` or `compare_intervals` returned, with ``alphas=CURVE_ALPHAS``.
    **shown
        What else stands on the page, as in `page_data`: ``class_names``, ``title`` and others.

    Returns
    -------
    pathlib.Path
        The file.
    """
    _check_place(path)
    if isinstance(comparison, IntervalComparison):
        text = render(interval_page_data(comparison, **shown))
    else:
        text = render(page_data(comparison, **shown))
    target = Path(path)
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def _check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidInputError(f"`path` must lie in a folder that exists; {folder} does not")
    check_output(path, suffixes=(".html", ".htm"), name="path")


def render(data: ReportData | IntervalReportData) -> str:
    """Return the page as one text."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError("jinja2", "report") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["cell"] = cell
    environment.filters["sentence"] = sentence
    kind = "sets" if isinstance(data, ReportData) else "intervals"
    own = _of_sets(data) if isinstance(data, ReportData) else _of_intervals(data)
    return environment.get_template(f"{kind}.html.j2").render(
        data=data,
        methods=data.shown,
        focus=data.shown[data.explorer.focus],
        reasons=_counted_reasons(data.explorer),
        verdict=data.verdict,
        looks=LOOKS,
        drawn_size=DRAWN_SIZE,
        judged_size=JUDGED_SIZE,
        explorer=_json(_packed_explorer(data)),
        record=_json(data.record),
        style=(_ASSETS / "report.css").read_text(encoding="utf-8"),
        script=_script(kind),
        library=_library(),
        **own,
    )


def _of_sets(data: ReportData) -> dict[str, Any]:
    """Return what only a page about sets shows."""
    return {
        "words": WORDS,
        "cards": cards(data),
        "method_table": method_table(data),
        "summary_table": summary_table(data),
        "first_classes": FIRST_CLASSES,
        "class_count": len({row["order"] for row in data.by_class}),
        "specs": _json(charts(data)),
    }


def _of_intervals(data: IntervalReportData) -> dict[str, Any]:
    """Return what only a page about intervals shows."""
    return {
        "words": INTERVAL_WORDS,
        "cards": interval_cards(data),
        "method_table": interval_table(data),
        "width_table": width_table(data),
        "specs": _json(interval_charts(data)),
    }


def _script(kind: str) -> str:
    """Return the page's script: what all pages do, and what those of one kind do."""
    parts = ((_ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in ("page", kind))
    return "\n".join(['"use strict";', "(() => {", *parts, "  start();", "})();", ""])


@lru_cache(maxsize=1)
def _library() -> str:
    """Return the charts library (Vega, Vega-Lite and Vega-Embed) as one script."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError("vl-convert-python", "report") from error
    script: str = vl_convert.javascript_bundle(_SNIPPET)
    return script.replace("</script", r"<\/script")


def _counted_reasons(found: Around) -> list[tuple[int, str, int]]:
    counts = found.reason.sum(axis=0).tolist()
    return [(r, name, count) for r, (name, count) in enumerate(zip(found.reasons, counts, strict=True)) if count]


def _packed_explorer(data: ReportData | IntervalReportData) -> dict[str, Any]:
    values = {field.name: getattr(data.explorer, field.name) for field in fields(data.explorer)}
    arrays = {name: packed(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}
    own = {"classes": data.class_names} if isinstance(data, ReportData) else {}
    return (
        arrays
        | own
        | {
            "methods": [method.title for method in data.shown],
            "kinds": [method.kind for method in data.shown],
            "alpha": data.alpha,
            "hops": data.hops,
            "start": _start(data.explorer),
        }
    )


def _start(found: Around) -> int:
    """Return the node that the page opens with: one where the neighbourhood makes the difference, with fair support."""
    telling = found.reason[:, FOCUS_COVERS] & np.isfinite(found.thresholds[found.focus])
    candidates = np.flatnonzero(telling if telling.any() else np.ones(found.nodes.size, dtype=bool))
    around = found.hop_counts[found.scored[found.focus]].sum(axis=1)  # labelled nodes in reach
    return int(candidates[np.abs(around[candidates] - 100).argmin()])


def _json(value: object) -> str:
    """Return JSON that may stand in a script element: ASCII, no NaN, and no `<` that could close it."""
    return json.dumps(_plain(value), separators=(",", ":")).replace("<", "\\u003c")


def _shown(value: object) -> object:
    """Make text visible before the template writes it; markup, which the template itself made, is let alone."""
    return visible(value) if type(value) is str else value


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
