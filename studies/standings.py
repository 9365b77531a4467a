"""Standings: each method on each graph and over all of them, always compared with the baseline on the same draws.

A method may have been run on fewer draws than others. So nothing is compared across draws: sizes are ratios to the
baseline's on the draws that both have, gaps are differences to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from studies.draws import KINDS
from studies.tables import Chart, MeanInterval, Row, altair, colours, grouped, interval, panels

#: The method that all others are compared with: split conformal prediction with the paper's score. The other method
#: without a graph is the one with small sets: split conformal prediction with THR (LAC).
BASELINE, SMALL_BASELINE = "split", "thr"
#: A mean coverage this many standard errors below 1 − alpha is not due to chance.
_CLEARLY = 3.0
#: A palette that colour-blind readers can distinguish (Okabe and Ito).
_COLOURS = {"on the front": "#0072B2", "not on it": "#999999", "does not cover": "#D55E00", "baseline": "#000000"}

#: One row per dataset, place, share and method. `place` is the model, or empty where models are taken together.
_STANDINGS = """
with drawn as (
    select *, {place} as place, row_number() over () as position,
        list_avg([{excess}]) as excess
    from rows
), paired as (
    select drawn.*, base.mean_size as base_size, base.excess as base_excess, small.mean_size as small_size
    from drawn join drawn base using (dataset, model, share, seed, repetition)
        left join (from drawn where method = '{smallest}') small using (dataset, model, share, seed, repetition)
    where base.method = '{baseline}'
    order by dataset, place, share, method, model, seed, repetition
), baseline as (
    select dataset, place, share, avg(mean_size order by position) as size, avg(excess order by position) as gap
    from drawn where method = '{baseline}' group by all
), by_draw as (  -- models share the labels and the evaluated nodes of a draw
    select dataset, place, share, method, seed, repetition,
        avg(alpha * (1 - alpha) * (1 / level_labels + 1 / nodes)) as variance
    from paired group by all
), chance as (
    select dataset, place, share, method, sqrt(sum(variance)) / count(*) as coverage_error from by_draw group by all
), measured as (
    select dataset, place, share, method, count(*) as draws, min(position) as position, any_value(alpha) as alpha,
        avg(mean_size order by {order}) / avg(base_size order by {order}) as ratio,
        avg(mean_size order by {order}) filter (small_size is not null)
            / avg(small_size order by {order}) as small_ratio,
        avg(excess - base_excess order by {order}) as difference,
        {excess_means},
        avg(coverage) as coverage, avg(empty_rate) as empty_rate, avg(full_rate) as full_rate,
        median(seconds) as seconds
    from paired group by all
), standing as (
    select measured.* exclude difference, baseline.size * ratio as size, difference + baseline.gap as gap,
        coverage_error, list_sum([{excess}]) as total,
        coverage >= 1 - alpha - {clearly} * coverage_error as covers,
        case when place = '' then dataset else dataset || ', ' || place end as setting
    from measured join baseline using (dataset, place, share) join chance using (dataset, place, share, method)
)
select * exclude position, covers and better is null as on_front
from (
    select *, (
        select arg_min(other.method, other.size) from standing other
        where other.share = standing.share and other.setting = standing.setting and other.covers
            and other.size <= standing.size and other.gap <= standing.gap
                and (other.size < standing.size or other.gap < standing.gap)
    ) as better
    from standing
)
order by dataset, place, share, position
"""


def make_standings(rows: Iterable[Row], *, by_model: bool = False) -> list[Row]:
    """Return the standing of each method on each graph with each share, over all models or for each of them.

    Draws without a row of the baseline are left out. The columns, besides `dataset`, `place` (the model, or empty),
    `setting` (both, in words), `share`, `method` and `alpha`:

    - `draws`: the number of rows; `ratio`: the mean size over the baseline's on the same draws; `small_ratio`: over
      that of split THR (None without rows of it); `size`: the baseline's mean size over all draws times `ratio`;
    - `excess_KIND`: mean excess of the gap of coverage over what chance gives, by kind of group (None without groups),
      and `total`, their sum; `gap`: the mean over kinds, as the baseline's over all draws plus the paired difference;
    - `coverage`, `empty_rate`, `full_rate` (means) and `seconds` (the median);
    - `covers`: whether the mean coverage is not clearly below 1 − alpha, given its law's standard error,
      `coverage_error`;
    - `better`: a method that covers, with sets no larger, coverage no less even, and one of the two better (the one
      with the smallest sets); `on_front`: whether the method covers and none is better, which is the Pareto front.
    """
    table = pa.Table.from_pylist(list(rows))
    if not len(table):
        return []
    query = _STANDINGS.format(
        place="model" if by_model else "''",
        excess=", ".join(f"excess_{kind}" for kind in KINDS),
        baseline=BASELINE,
        smallest=SMALL_BASELINE,
        order="model, seed, repetition",
        excess_means=", ".join(f"avg(excess_{kind}) as excess_{kind}" for kind in KINDS),
        clearly=_CLEARLY,
    )
    with duckdb.connect() as connection:
        connection.register("rows", table)
        standings = connection.sql(query)
        return [dict(zip(standings.columns, values, strict=True)) for values in standings.fetchall()]


_MEANS = ("coverage", "empty_rate", "full_rate", "seconds")


def overall(standings: Sequence[Row]) -> list[Row]:
    """Compare methods over the graphs of one share, the smallest sets first.

    The columns: `method`; `graphs` and `draws`; `ratio`, the geometric mean of its size over the baseline's with its
    interval, `arithmetic`, their arithmetic mean, `worst`, the largest of them, and `worst_on`, the graph;
    `small_ratio` and `small_worst`, the arithmetic mean and the largest of the ratios to split THR; `gap` and
    `gap_difference` (to the baseline) with their intervals; `gap_ratio`, by kind of group and for "all": the mean
    excess gap over the baseline's; `on_front`, the number of graphs on whose Pareto front it is; `fails`, the graphs
    where it does not cover; and means of `coverage`, rates and seconds.
    """
    by_method = grouped(standings, "method")
    base = {row["setting"]: row for row in by_method.get(BASELINE, [])}
    summaries = []
    for method, places in by_method.items():
        worst, base_places = max(places, key=lambda row: row["ratio"]), [base[row["setting"]] for row in places]
        excess, base_excess = _excess(places), _excess(base_places)
        summaries.append(
            {
                "method": method,
                "graphs": len(places),
                "draws": sum(row["draws"] for row in places),
                "ratio": MeanInterval(*map(math.exp, interval(np.log([row["ratio"] for row in places])))),
                "arithmetic": _mean(row["ratio"] for row in places),
                "worst": worst["ratio"],
                "worst_on": worst["setting"],
                "small_ratio": _mean(row["small_ratio"] for row in places),
                "small_worst": max((row["small_ratio"] for row in places if row["small_ratio"]), default=math.nan),
                "gap": interval(np.array([row["gap"] for row in places])),
                "gap_difference": interval(
                    np.array([row["gap"] - b["gap"] for row, b in zip(places, base_places, strict=True)])
                ),
                "gap_ratio": {kind: excess[kind] / base_excess[kind] for kind in excess},
                "on_front": sum(row["on_front"] for row in places),
                "fails": [row["dataset"] for row in places if not row["covers"]],
                **{name: _mean(row[name] for row in places) for name in _MEANS},
            }
        )
    return sorted(summaries, key=lambda summary: summary["ratio"].mean)


def _excess(standings: Sequence[Row]) -> dict[str, float]:
    names = {"all": "total"} | {kind: f"excess_{kind}" for kind in KINDS}
    return {kind: _mean(row[name] for row in standings) for kind, name in names.items()}


def _mean(values: Iterable[float | None]) -> float:
    """Return the mean of the known values; NaN where there is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else math.nan


def front_figure(standings: Sequence[Row]) -> Chart:
    """Return one panel per graph of one share: methods by mean size and excess gap, and the Pareto front."""
    charts = [_panel(methods, graph) for graph, methods in grouped(standings, "dataset").items()]
    return panels(charts, 3).resolve_scale(color="shared")


def _panel(methods: Sequence[Row], graph: str) -> Chart:
    alt, best = altair(), sorted((row["size"], row["gap"]) for row in methods if row["on_front"])
    points = [{"method": row["method"], "size": row["size"], "gap": row["gap"], "place": _word(row)} for row in methods]
    # Logarithmic, because the sets of NAPS as published may be several times as large as the others.
    wide, high = alt.Scale(type="log", nice=False, padding=12), alt.Scale(zero=False, padding=12)
    x = alt.X("size:Q", title="mean size", scale=wide, axis=alt.Axis(tickCount=5, format="~g"))
    y = alt.Y("gap:Q", title="excess gap", scale=high, axis=alt.Axis(format=".3~f", tickCount=5))
    colour = colours("place", _COLOURS)
    drawn = alt.Chart(alt.Data(values=points)).encode(x=x, y=y, color=colour)
    named = [point for point in points if point["place"] in ("on the front", "baseline")]
    words = alt.Chart(alt.Data(values=named)).mark_text(align="left", dx=6, dy=-4, fontSize=9)
    joined = alt.Chart(alt.Data(values=[{"size": size, "gap": gap} for size, gap in best]))
    return alt.layer(
        joined.mark_line(color=_COLOURS["on the front"], opacity=0.5).encode(x=x, y=y),
        drawn.mark_point(filled=True, size=45, opacity=0.9),
        words.encode(x=x, y=y, text="method:N", color=colour),
    ).properties(width=250, height=210, title=graph)


def _word(row: Row) -> str:
    if not row["covers"]:
        return "does not cover"
    return "on the front" if row["on_front"] else "baseline" if row["method"] == BASELINE else "not on it"
