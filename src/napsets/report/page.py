"""From `ReportData` to one HTML file: template, style sheet, script and charts library in one text."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets._check import ArrayLike
from napsets._files import check_output, replacing
from napsets.comparison import METHODS
from napsets.errors import InvalidInputError, MissingDependencyError
from napsets.graph import Graph
from napsets.report.charts import charts
from napsets.report.data import DRAWN_SIZE, JUDGED_SIZE, ReportData, Table, report_data
from napsets.report.explorer import REASONS, Explorer
from napsets.report.words import cards, cell, headline, method_table, summary_table
from napsets.scores import Score

__all__ = ["render", "write_report"]

_ASSETS = Path(__file__).parent / "assets"
#: Puts the charts library where the page's script finds it, and nothing else of it in the way.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def write_report(
    path: str | os.PathLike[str],
    *,
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    nodes: ArrayLike,
    alpha: float = 0.1,
    hops: int = 2,
    score: Score | None = None,
    seed: int = 0,
    class_names: Sequence[str] | None = None,
    ids: ArrayLike | None = None,
    title: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    tables: Sequence[Table] | None = None,
    progress: Any = None,
) -> Path:
    """Compare APS with the NAPS variants on `nodes` and write a page about it: one file that needs no network.

    Parameters
    ----------
    path : path
        Where to write, a name that ends in .html or .htm; replaced whole or not at all.
    graph, probabilities, labels, calibration, nodes, alpha, hops, score, seed, ids, progress
        As in `napsets.comparison.compare`.
    class_names : sequence of str, optional
        What the classes are called.
    title, dataset, model : str, optional
        What stands at the top of the page.
    tables : sequence of (title, rows), optional
        Reproduction tables, each a title and a list of dictionaries.

    Returns
    -------
    pathlib.Path
        The file.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInputError(f"`path` must lie in a folder that exists; {target.parent} does not")
    check_output(target, suffixes=(".html", ".htm"), name="path")
    data = report_data(
        graph=graph,
        probabilities=probabilities,
        labels=labels,
        calibration=calibration,
        nodes=nodes,
        alpha=alpha,
        hops=hops,
        score=score,
        seed=seed,
        class_names=class_names,
        ids=ids,
        title=title,
        dataset=dataset,
        model=model,
        tables=tables,
        progress=progress,
    )
    text = render(data)
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def render(data: ReportData) -> str:
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
    )
    environment.filters["cell"] = cell
    return environment.get_template("report.html.j2").render(
        data=data,
        methods=METHODS,
        reasons=_counted_reasons(data.explorer),
        headline=headline(data),
        cards=cards(data),
        method_table=method_table(data),
        summary_table=summary_table(data),
        drawn_size=DRAWN_SIZE,
        judged_size=JUDGED_SIZE,
        specs=_json(charts(data)),
        explorer=_json(_packed_explorer(data)),
        style=(_ASSETS / "report.css").read_text(encoding="utf-8"),
        script=(_ASSETS / "report.js").read_text(encoding="utf-8"),
        library=_library(),
    )


@lru_cache(maxsize=1)
def _library() -> str:
    """Return the charts library (Vega, Vega-Lite and Vega-Embed) as one script."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError("vl-convert-python", "report") from error
    script: str = vl_convert.javascript_bundle(_SNIPPET)
    return script.replace("</script", r"<\/script")


def _counted_reasons(found: Explorer) -> list[tuple[int, str, int]]:
    counts = found.reason.sum(axis=0).tolist()
    return [(r, name, count) for r, (name, count) in enumerate(zip(REASONS, counts, strict=True)) if count]


def _packed_explorer(data: ReportData) -> dict[str, Any]:
    values = {field.name: getattr(data.explorer, field.name) for field in fields(Explorer)}
    packed = {name: _packed(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}
    comparison = data.comparison
    return packed | {
        "methods": [method.name for method in METHODS],
        "classes": data.class_names,
        "alpha": data.alpha,
        "hops": data.hops,
        "start": _start(data.explorer),
        "calibration": int(comparison.data.calibration.size),
    }


def _start(found: Explorer) -> int:
    """Return the node that the page opens with: one where the neighbourhood makes the difference, with fair support."""
    telling = found.reason[:, REASONS.index("NAPS covers, APS misses")] & np.isfinite(found.thresholds[1])
    candidates = np.flatnonzero(telling if telling.any() else np.ones(found.nodes.size, dtype=bool))
    return int(candidates[np.abs(found.support[1, candidates] - 100).argmin()])


def _packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """Return an array as base64, little-endian, integers at the smallest width that holds them."""
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    elif array.dtype.kind in "iu":
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        widths = (np.uint8, np.uint16, np.int16, np.uint32, np.int32)
        fitting = [width for width in widths if np.iinfo(width).min <= low and high <= np.iinfo(width).max]
        array = array.astype(fitting[0])
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": base64.b64encode(little.tobytes()).decode()}


def _json(value: object) -> str:
    """Return JSON that may stand in a script element: no NaN, and no `<` that could close it."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
