"""The drift study: which strategies are compared on which streams, and its page, tables and figure from their rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from studies.collections import TIMED
from studies.drift import STRATEGIES
from studies.tables import Chart, Columns, Row, Table, altair, fill_page, panels, percent, select

COMMAND = "python -m studies drift --page docs/drift.md"
ORDERS = {"time": "in the order of time", "random": "in a random order"}
#: Strategies with late labels, in the order of time, and how many sets late these come.
_LATE, _DELAYS = ("aci", "dtaci", "growing"), (100, 500)


#: The columns of the tables.
_COLUMNS: Columns = {
    "graph": "dataset",
    "strategy": "strategy",
    "delay": "delay",
    "coverage": "coverage",
    "worst": "worst_window",
    "size": "mean_size",
    "full": lambda row: percent(row["full_rate"], 1),
    "coverage alarm": "coverage_alarm",
    "exchangeability": "exchangeability_alarm",
}


def drift_cells(datasets: Sequence[str] = tuple(TIMED), seeds: int = 1, alpha: float = 0.1) -> list[Row]:
    """Return the cells of all strategies on these graphs; the seeds are those of the random orders."""
    cells = []
    for dataset, order in product(datasets, ORDERS):
        for seed in range(seeds if order == "random" else 1):
            stream = {"dataset": dataset, "model": "softmax", "seed": seed, "order": order, "alpha": alpha}
            late = product(_LATE, _DELAYS) if order == "time" else ()
            pairs = [*((strategy, 0) for strategy in STRATEGIES), *late]
            cells += [stream | {"strategy": strategy, "delay": delay} for strategy, delay in pairs]
    return cells


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Return the tables of the page: both orders, and late labels."""

    def table(title: str, lines: Sequence[Row], *heads: str) -> Table:
        columns = {head: _COLUMNS[head] for head in ("graph", "strategy", *heads)}
        return Table.of(title, lines, columns, digits={"size": 2})

    plain = ["coverage", "worst", "size", "full", "coverage alarm", "exchangeability"]
    late = [row for row in select(rows, order="time") if row["strategy"] in _LATE]
    late.sort(key=lambda row: (_graphs(rows).index(row["dataset"]), row["strategy"], row["delay"]))
    return {
        **{
            order: table(f"Strategies {words}", select(rows, order=order, delay=0), *plain)
            for order, words in ORDERS.items()
        },
        "late": table(
            "Labels that come a number of sets late, in the order of time",
            late,
            *("delay", "coverage", "worst", "size", "full"),
        ),
    }


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return the parts that the command prints: the strategies in both orders, and the findings."""
    shown = tables(rows)
    return [*(shown[order] for order in ORDERS), *(f"- {sentence}" for sentence in findings(rows))] if rows else []


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    parts: dict[str, object] = (
        {
            "graphs": len(_graphs(rows)),
            "alpha": rows[0]["alpha"],
            "strategies": "\n".join(f"- `{name}`: {words}." for name, words in STRATEGIES.items()),
            "findings": "\n".join(f"- {sentence}" for sentence in findings(rows)),
            **tables(rows),
        }
        if rows
        else {}
    )
    return fill_page("drift", COMMAND, parts)


def figures(rows: Sequence[Row]) -> dict[str, Chart]:
    """Return one panel per graph: coverage over time in the order of time, one line per strategy."""
    plain = select(rows, order="time", delay=0)
    charts = [_panel(select(plain, dataset=graph), graph) for graph in _graphs(plain)]
    return {"drift-coverage": panels(charts, 2)} if charts else {}


def findings(rows: Sequence[Row]) -> list[str]:
    """Return the findings in sentences."""
    sentences = []
    for graph in _graphs(rows):
        here = {row["strategy"]: row for row in select(rows, dataset=graph, order="time", delay=0)}
        if set(STRATEGIES) <= set(here):
            static, steered = here["static"], here["dtaci"]
            sentences.append(
                f"{graph}: calibrated once, sets cover {static['coverage']:.3f}, and {static['worst_window']:.3f} in "
                f"the worst window; the exchangeability alarm {_raised(static['exchangeability_alarm'])}, the coverage "
                f"alarm {_raised(static['coverage_alarm'])}. `dtaci` covers {steered['coverage']:.3f}, and "
                f"{steered['worst_window']:.3f} in the worst window."
            )
    random = select(rows, order="random")
    if random:
        rang = sum(row["coverage_alarm"] is not None or row["exchangeability_alarm"] is not None for row in random)
        low, high = (end(row["coverage"] for row in random) for end in (min, max))
        sentences.append(
            f"In a random order all {len(random)} streams cover between {low:.3f} and {high:.3f}, and an alarm is "
            f"raised in {rang} of them."
        )
    return sentences


def _panel(rows: Sequence[Row], graph: str) -> Chart:
    alt = altair()
    points = [
        {"strategy": row["strategy"], "share": (i + 0.5) / len(row["coverage_curve"]), "coverage": value}
        for row in rows
        for i, value in enumerate(row["coverage_curve"])
    ]
    level = alt.Chart(alt.Data(values=[{"level": 1.0 - rows[0]["alpha"]}]))
    lines = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=1.5)
    return alt.layer(
        level.mark_rule(strokeDash=[4, 4], color="grey").encode(y="level:Q"),
        lines.encode(
            x=alt.X("share:Q", title="share of the stream", axis=alt.Axis(format="%", tickCount=5)),
            y=alt.Y("coverage:Q", title="coverage", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("strategy:N", sort=list(STRATEGIES), legend=alt.Legend(title=None, orient="bottom")),
        ),
    ).properties(width=300, height=160, title=graph)


def _graphs(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in rows))


def _raised(alarm: int | None) -> str:
    return "is never raised" if alarm is None else f"is raised after {alarm:,} labels"
