"""The paper's ablation figure and the block model's map, made from rows; SVG and PNG through Vega."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from napsets.errors import MissingDependencyError
from napsets.files.places import replacing
from napsets.paper.blockmodel import lemma_boundary
from napsets.paper.cells import BASELINE, METHODS, Row
from napsets.paper.grids import Scope
from napsets.paper.setups import SETUPS
from napsets.paper.tables import select, spread

__all__ = ["ablation_figure", "block_figure", "load_altair", "save_figure"]

#: Told apart by those who see colours differently, too (Okabe and Ito).
_COLOURS = dict(zip(METHODS, ("#555555", "#0072B2", "#E69F00", "#009E73"), strict=True))
_METRICS = {"coverage": "Coverage", "mean_size": "Set size"}


def load_altair() -> Any:
    """Return the module that draws, or say which extra brings it."""
    try:
        import altair
    except ImportError as error:
        raise MissingDependencyError("altair", "report") from error
    return altair


def ablation_figure(rows: Sequence[Row], scope: Scope, protocol: str = "strict") -> Any:
    """Return coverage and size by depth of the neighbourhood, one row of panels a dataset (the paper's figure)."""
    alt = load_altair()
    panels = []
    for dataset in scope.ablation_datasets:
        ours = select(rows, dataset=dataset, model=scope.ablation_model, protocol=protocol)
        if ours:
            panels.append(
                alt.hconcat(*(_ablation_panel(alt, ours, scope, metric) for metric in _METRICS)).properties(
                    title=f"{SETUPS[dataset].title}, {protocol}"
                )
            )
    return alt.vconcat(*panels).resolve_scale(color="shared")


def _ablation_panel(alt: Any, rows: Sequence[Row], scope: Scope, metric: str) -> Any:
    values = []
    for hops in scope.ablation_hops:
        for method in METHODS:
            found = spread(select(rows, method=method, hops=0 if method == BASELINE else hops), metric)
            if found is not None:
                sd = 0.0 if found.sd != found.sd else found.sd
                low, high = found.mean - sd, found.mean + sd
                values.append({"K": hops, "method": method, "value": found.mean, "low": low, "high": high})
    colour = alt.Color(
        "method:N",
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    scale = alt.Scale(zero=False)
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("K:O", title="K (hops)", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=list(METHODS)),
        color=colour,
    )
    y = alt.Y("value:Q", title=_METRICS[metric], scale=scale)
    layers = [base.mark_point(filled=True, size=60).encode(y=y)]
    layers.append(base.mark_rule().encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"))
    if metric == "coverage":
        goal = alt.Chart(alt.Data(values=[{"value": 1.0 - scope.alpha}]))
        layers.append(goal.mark_rule(strokeDash=[4, 4], color="black").encode(y=alt.Y("value:Q", scale=scale)))
    return alt.layer(*layers).properties(width=320, height=220)


def block_figure(rows: Sequence[Row], tv: float) -> Any:
    """Return where NAPS wins in the harder block, one panel for each n, with Lemma 1's boundary drawn in."""
    alt = load_altair()
    chosen = [row for row in rows if row["tv"] == tv]
    reach = max((abs(row["advantage"]) for row in chosen), default=1.0)
    panels = [_block_panel(alt, [r for r in chosen if r["n"] == n], n, reach) for n in sorted({r["n"] for r in chosen})]
    title = f"Gap of APS less gap of NAPS in the harder block, d = {tv:g}"
    return alt.hconcat(*panels).properties(title=title)


def _block_panel(alt: Any, rows: Sequence[Row], n: int, reach: float) -> Any:
    points = [{name: row[name] for name in ("p_in", "p_out", "advantage")} for row in rows]
    ends = sorted({row["p_in"] for row in rows})
    span = [ends[0] * (ends[-1] / ends[0]) ** (i / 60) for i in range(61)]
    top = max(row["p_out"] for row in rows)
    lines = [
        {"p_in": p, "p_out": lemma_boundary(n, p, exact=exact), "boundary": name}
        for exact, name in ((True, "Lemma 1, exact"), (False, "mean field"))
        for p in span
    ]
    lines = [line for line in lines if line["p_out"] <= top]
    x = alt.X("p_in:Q", title="p_in", **_log_axis(alt, ends))
    y = alt.Y("p_out:Q", title="p_out", **_log_axis(alt, sorted({row["p_out"] for row in rows})))
    shade = alt.Color(
        "advantage:Q",
        scale=alt.Scale(domain=[-reach, 0, reach], range=["#D55E00", "#F5F5F5", "#0072B2"]),
        legend=alt.Legend(title="NAPS better if > 0", orient="bottom"),
    )
    squares = alt.Chart(alt.Data(values=points)).mark_square(size=700, opacity=1, stroke="#888888").encode(x, y, shade)
    dash = alt.StrokeDash("boundary:N", legend=alt.Legend(title=None, orient="bottom"))
    drawn = alt.Chart(alt.Data(values=lines)).mark_line(color="black").encode(x, y, strokeDash=dash)
    return alt.layer(squares, drawn).properties(width=300, height=300, title=f"n = {n:,} nodes a block")


def _log_axis(alt: Any, values: list[float]) -> dict[str, Any]:
    """Return a logarithmic axis that shows these values and leaves room for a square around the outermost."""
    scale = alt.Scale(type="log", domain=[values[0] / 1.5, values[-1] * 1.5], nice=False)
    return {"scale": scale, "axis": alt.Axis(values=values, grid=False, format="~g")}


def save_figure(
    chart: Any, folder: str | os.PathLike[str], name: str, suffixes: Sequence[str] = (".svg", ".png")
) -> list[Path]:
    """Write a figure as SVG, PNG or both; return the files."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError("vl-convert-python", "report") from error
    spec = chart.to_json()
    made = []
    for suffix in suffixes:
        svg = suffix == ".svg"
        content = vl_convert.vegalite_to_svg(spec).encode() if svg else vl_convert.vegalite_to_png(spec, scale=2)
        target = Path(folder) / f"{name}{suffix}"
        with replacing(target) as draft:
            draft.write_bytes(content)
        made.append(target)
    return made
