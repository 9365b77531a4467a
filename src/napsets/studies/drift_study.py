"""The drift study: which strategies are compared on which streams, and its page, tables and figure from their rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napsets.checks.text import percent
from napsets.datasets.registry import TIMED, file_name
from napsets.errors import imported
from napsets.studies.drift import STRATEGIES, DriftCell
from napsets.studies.study import Row, Study, narrowed
from napsets.studies.tables import Table, panels, select

if TYPE_CHECKING:
    from napsets.studies.laboratory import RowStore

ORDERS = {"time": "in the order of time", "random": "in a random order"}
#: Every label comes at once.
_PLAIN = {"delay": 0, "labelled": "all"}


@dataclass(frozen=True)
class DriftScope:
    """How much to run."""

    datasets: tuple[str, ...] = tuple(TIMED)  #: graphs with time
    models: tuple[str, ...] = ("softmax",)  #: the only one
    seeds: tuple[int, ...] = (0,)  #: of the random orders
    delays: tuple[int, ...] = (100, 500)  #: of the labels, in the order of time
    alpha: float = 0.1  #: error rate


class DriftStudy(Study):
    """Sets of nodes that arrive over time."""

    kinds = (DriftCell,)
    options = ()
    activity = "following nodes over time"
    page = "drift"
    command = "napsets reproduce drift --page docs/drift.md"

    def scope(self, quick: bool, options: Mapping[str, Any]) -> DriftScope:
        """Return what to run; any graph whose file is in the folder can be asked for."""
        scope = DriftScope(datasets=("metamath-nf", "eips")) if quick else DriftScope()
        return narrowed(scope, options, {"model": scope.models})

    def cells(self, scope: DriftScope) -> list[DriftCell]:  # noqa: D102
        cells = []
        for dataset, order in product(scope.datasets, ORDERS):
            for seed in scope.seeds if order == "random" else (0,):
                first = DriftCell(dataset, "softmax", seed, order, "static", alpha=scope.alpha)
                cells += [replace(first, strategy=strategy) for strategy in STRATEGIES]
                if order == "time":
                    late = product(("growing", "aci", "dtaci"), scope.delays)
                    cells += [replace(first, strategy=strategy, delay=delay) for strategy, delay in late]
                    cells += [replace(first, strategy=strategy, labelled="small") for strategy in ("growing", "dtaci")]
        return cells

    def rows(self, store: RowStore, scope: DriftScope) -> list[Row]:
        """Return the rows of the scope, in its order."""
        there = {row["key"]: row for row in store.rows(DriftCell.study)}
        return [there[cell.key] for cell in self.cells(scope) if cell.key in there]

    def left_out(self, scope: DriftScope, root: str | os.PathLike[str]) -> list[str]:  # noqa: D102
        return [name for name in scope.datasets if not (Path(root) / file_name(name)).exists()]

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return the tables of the page: both orders, late labels, labels where sets are small; then short ones."""
        wide, short = (
            [
                _table(name.format(order), f"Strategies {words}", select(rows, order=order, **_PLAIN), columns)
                for order, words in ORDERS.items()
            ]
            for name, columns in (("drift-{}", _LONG), ("drift-{}-short", _SHORT))
        )
        late = "Labels that come a number of sets late, in the order of time"
        small = "Only sets of at most two labels get their label, in the order of time"
        return [
            *wide,
            _table("drift-late", late, _late_rows(rows), _LATE),
            _table("drift-small", small, select(rows, labelled="small"), _SMALL),
            *short,
        ]

    def parts(self, rows: Sequence[Row]) -> dict[str, Any]:  # noqa: D102
        if not rows:
            return {}
        return {
            "graphs": len(_graphs(rows)),
            "alpha": rows[0]["alpha"],
            "strategies": "\n".join(f"- `{name}`: {words}." for name, words in STRATEGIES.items()),
            "findings": "\n".join(f"- {sentence}" for sentence in findings(rows)),
            **{table.name.removeprefix("drift-"): table for table in self.tables(rows)},
        }

    def figures(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return one panel per graph: coverage over time in the order of time, one line per strategy."""
        wanted = select(rows, order="time", **_PLAIN)
        charts = [_panel(select(wanted, dataset=graph), graph) for graph in _graphs(wanted)]
        return {"drift-coverage": panels(charts, 2)} if charts else {}


def findings(rows: Sequence[Row]) -> list[str]:
    """Say what the rows show."""
    sentences = []
    for graph in _graphs(rows):
        here = {row["strategy"]: row for row in select(rows, dataset=graph, order="time", **_PLAIN)}
        if set(STRATEGIES) <= set(here):
            static, steered = here["static"], here["dtaci"]
            sentences.append(
                f"{graph}: calibrated once, sets cover {static['coverage']:.3f} with {static['mean_size']:.2f} labels "
                f"on average, and {static['worst_window']:.3f} in the worst window; the exchangeability alarm "
                f"{_raised(static['exchangeability_alarm'])}, the coverage alarm {_raised(static['coverage_alarm'])}. "
                f"`dtaci` covers {steered['coverage']:.3f} with {steered['mean_size']:.2f} labels, "
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


#: Columns of the tables of strategies: in the width of a terminal, and all of them.
_SHORT: dict[str, Any] = {
    "graph": "dataset",
    "strategy": "strategy",
    "coverage": "coverage",
    "worst": "worst_window",
    "size": "mean_size",
    "full": lambda row: percent(row["full_rate"]),
    "coverage alarm": "coverage_alarm",
    "exchangeability": "exchangeability_alarm",
}
_LONG: dict[str, Any] = {
    **_SHORT,
    "interval of coverage": lambda row: f"{row['coverage_low']:.3f}–{row['coverage_high']:.3f}",
    "evidence of both": lambda row: f"{row['coverage_evidence']:.1f}, {row['exchangeability_evidence']:.1f}",
}
#: Those of coverage and size with labels that come at once, and late.
_LATE: dict[str, Any] = {
    "graph": "dataset",
    "strategy": "strategy",
    "delay": "delay",
    "coverage": "coverage",
    "worst window": "worst_window",
    "size": "mean_size",
    "full": _SHORT["full"],
}
#: Those of what is seen and what is true where only small sets get labels.
_SMALL: dict[str, Any] = {
    "graph": "dataset",
    "strategy": "strategy",
    "labelled": lambda row: percent(row["seen_share"], 0),
    "coverage seen": "seen_coverage",
    "coverage of all": "coverage",
    "size": "mean_size",
    "coverage alarm": "coverage_alarm",
}


def _table(name: str, title: str, rows: Sequence[Row], columns: dict[str, Any]) -> Table:
    return Table.of(name, title, rows, columns, digits={"size": 2}, for_screen=columns is _SHORT)


def _late_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of strategies that were measured with late labels."""
    wanted, graphs = select(rows, order="time", labelled="all"), _graphs(rows)
    strategies = {row["strategy"] for row in wanted if row["delay"]}
    late = [row for row in wanted if row["strategy"] in strategies]
    return sorted(late, key=lambda row: (graphs.index(row["dataset"]), row["strategy"], row["delay"]))


def _panel(rows: Sequence[Row], graph: str) -> Any:
    alt = imported("altair", "report")
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
