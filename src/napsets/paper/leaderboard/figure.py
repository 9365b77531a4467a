"""The picture that matters: size against the gap of coverage, one panel a graph, the front marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from napsets.methods import title
from napsets.paper.figures import load_altair
from napsets.paper.leaderboard.summary import BASELINE, Standing, front

__all__ = ["front_figure"]

#: Told apart by those who see colours differently, too (Okabe and Ito).
_COLOURS = {"on the front": "#0072B2", "not on it": "#999999", "does not cover": "#D55E00", "baseline": "#000000"}
_COLUMNS = 3


def front_figure(some: Sequence[Standing]) -> Any:
    """Return one panel a graph: methods by mean size and mean excess gap, those that no other one beats joined.

    Parameters
    ----------
    some : sequence of Standing
        Of one share of labels.
    """
    alt = load_altair()
    graphs = list(dict.fromkeys(one.dataset for one in some))
    panels = [_panel(alt, [one for one in some if one.dataset == graph], graph) for graph in graphs]
    rows = [alt.hconcat(*panels[i : i + _COLUMNS]) for i in range(0, len(panels), _COLUMNS)]
    return alt.vconcat(*rows).resolve_scale(color="shared")


def _panel(alt: Any, here: Sequence[Standing], graph: str) -> Any:
    best = front(here)
    on_front = {one.method for one in best}
    points = [
        {"method": title(one.method), "size": one.size, "gap": one.gap, "place": _place(one, on_front)} for one in here
    ]
    # Logarithmic, because NAPS as printed may need several times as many labels as the others.
    wide = alt.Scale(type="log", nice=False, padding=12)
    x = alt.X("size:Q", title="mean size", scale=wide, axis=alt.Axis(tickCount=5, format="~g"))
    y = alt.Y(
        "gap:Q",
        title="gap beyond chance",
        scale=alt.Scale(zero=False, padding=12),
        axis=alt.Axis(format=".3~f", tickCount=5),
    )
    colour = alt.Color(
        "place:N",
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    drawn = alt.Chart(alt.Data(values=points)).encode(x=x, y=y, color=colour)
    named = [point for point in points if point["place"] in ("on the front", "baseline")]
    words = alt.Chart(alt.Data(values=named)).mark_text(align="left", dx=6, dy=-4, fontSize=9)
    joined = alt.Chart(alt.Data(values=[{"size": one.size, "gap": one.gap} for one in best]))
    return alt.layer(
        joined.mark_line(color=_COLOURS["on the front"], opacity=0.5).encode(x=x, y=y),
        drawn.mark_point(filled=True, size=45, opacity=0.9),
        words.encode(x=x, y=y, text="method:N", color=colour),
    ).properties(width=250, height=210, title=graph)


def _place(one: Standing, on_front: set[str]) -> str:
    if not one.covers:
        return "does not cover"
    if one.method in on_front:
        return "on the front"
    return "baseline" if one.method == BASELINE else "not on it"
