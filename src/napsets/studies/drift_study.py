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
from napsets.studies.tables import Table, join_page, panels

if TYPE_CHECKING:
    from napsets.studies.laboratory import RowStore

ORDERS = {"time": "in the order of time", "random": "in a random order"}
#: What makes the committed rows and the page.
COMMAND = "napsets reproduce drift --page docs/drift.md"

_INTRODUCTION = """\
# Drift: what to use when

<!-- Made from the rows in results/drift; to change it, run the command below. -->

This study measures what happens to prediction sets if nodes arrive one after the other and their distribution
changes, which alarm notices it, and what helps. It uses {graphs} graphs whose nodes have a time, at alpha =
{alpha:g}. All numbers are computed from committed rows. This command runs only what is missing:

```
{command}
```

**Procedure.** The first 30 % of the nodes in time train a softmax regression on the word features of each node and on
their average over the neighbours that arrived before it; the next 20 % calibrate; the others arrive one by one. Each
gets a set (score THR) from the labels that have arrived before, and then its own label arrives. The same is done in a
random order, in which nodes are exchangeable and the guarantees of conformal prediction hold.

{strategies}

*Worst* is the lowest coverage in a window of 200 successive nodes. The columns *coverage alarm* and *exchangeability*
say after how many labels that [alarm](monitoring.md) is raised; a dash means that it never is. The exchangeability
alarm looks at the p-values of the labels, so it is the same for all strategies. The interval of coverage holds at all
times together with 95 % confidence. *Evidence* is the decimal logarithm of the largest capital of each alarm, which
is raised at 2.

The time of an alarm depends on few labels. Mathlib has a cluster of misses right at the start; with a slightly
different model, whose neighbour means leave out nodes without a label, that cluster is too small for an alarm, and
the alarm for the static sets is raised after 3,500 labels instead.
"""

_ADVICE = """\
## What to use when

- **Labels come in a random order, or nothing drifts:** use the method that you would use anyway, and let its
  calibration grow. A steered level brings no gain there, and it guarantees less: only the long-run average.
- **You do not know whether the distribution drifts:** keep the exact method, and watch both alarms. Each is false
  with a probability of at most 1 %, however long you look.
- **The exchangeability alarm is raised, the coverage alarm is not:** coverage still holds, but no theorem says that
  it will. Let the calibration grow, and look at the worst window.
- **The coverage alarm is raised:** steer (`ns.Steered("dtaci")`). If sets become large, the model no longer fits the
  data: train it again. Steering keeps the average coverage right, but it cannot make a bad model good.
- **Labels come late:** steering slows down by itself, and nothing is guaranteed within the delay. See the table of
  late labels: coverage may be far off for as long as the delay lasts.
- **Labels come only for some nodes:** have a random sample of the nodes labelled. If labels come only where sets are
  small, every figure that is computed from labels is about those nodes alone, and no alarm sees the others.
"""


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
            [_order_table(rows, order, name, columns) for order in ORDERS]
            for name, columns in (("drift-{}", _LONG), ("drift-{}-short", _SHORT))
        )
        return [*wide, _late_table(rows), _small_table(rows), *short]

    def text(self, rows: Sequence[Row]) -> str:
        """Return the page in Markdown."""
        if not rows:
            return f"# Drift: what to use when\n\nNothing is measured yet. Run\n\n```\n{COMMAND}\n```\n"
        introduction = _INTRODUCTION.format(
            graphs=len(_graphs(rows)),
            alpha=rows[0]["alpha"],
            command=COMMAND,
            strategies="\n".join(f"- `{name}`: {words}." for name, words in STRATEGIES.items()),
        )
        in_time, in_random, late, small = (table.markdown() for table in self.tables(rows)[:4])
        return join_page(
            [
                introduction,
                _ADVICE,
                "## What was measured",
                "\n".join(f"- {sentence}" for sentence in findings(rows)),
                "## In the order of time",
                "![Coverage over time](figures/drift-coverage.svg)",
                in_time,
                "## In a random order",
                in_random,
                "## Late labels",
                late,
                "## Labels only where sets are small",
                small,
            ]
        )

    def figures(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return one panel per graph: coverage over time in the order of time, one line per strategy."""
        wanted = [row for row in rows if row["order"] == "time" and _plain(row)]
        if not wanted:
            return {}
        charts = [_panel([row for row in wanted if row["dataset"] == graph], graph) for graph in _graphs(wanted)]
        return {"drift-coverage": panels(charts, 2)}


def findings(rows: Sequence[Row]) -> list[str]:
    """Say what the rows show."""
    base = [row for row in rows if _plain(row) and row["order"] == "time"]
    sentences = []
    for graph in _graphs(rows):
        here = {row["strategy"]: row for row in base if row["dataset"] == graph}
        if set(STRATEGIES) <= set(here):
            static, steered = here["static"], here["dtaci"]
            sentences.append(
                f"{graph}: calibrated once, sets cover {static['coverage']:.3f} with {static['mean_size']:.2f} labels "
                f"on average, and {static['worst_window']:.3f} in the worst window; the exchangeability alarm "
                f"{_raised(static['exchangeability_alarm'])}, the coverage alarm {_raised(static['coverage_alarm'])}. "
                f"`dtaci` covers {steered['coverage']:.3f} with {steered['mean_size']:.2f} labels, "
                f"{steered['worst_window']:.3f} in the worst window."
            )
    random = [row for row in rows if row["order"] == "random"]
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


def _order_table(rows: Sequence[Row], order: str, name: str, columns: dict[str, Any]) -> Table:
    wanted, short = [row for row in rows if row["order"] == order and _plain(row)], columns is _SHORT
    title = f"Strategies {ORDERS[order]}"
    return Table.of(name.format(order), title, wanted, columns, digits={"size": 2}, for_screen=short)


def _late_table(rows: Sequence[Row]) -> Table:
    """Return coverage and size with labels that come at once, and late."""
    wanted = [row for row in rows if row["order"] == "time" and row["labelled"] == "all"]
    strategies, graphs = {row["strategy"] for row in wanted if row["delay"]}, _graphs(rows)
    ordered = sorted(
        (row for row in wanted if row["strategy"] in strategies),
        key=lambda row: (graphs.index(row["dataset"]), row["strategy"], row["delay"]),
    )
    columns = {"graph": "dataset", "strategy": "strategy", "delay": "delay", "coverage": "coverage"}
    columns |= {"worst window": "worst_window", "size": "mean_size", "full": _SHORT["full"]}
    title = "Labels that come a number of sets late, in the order of time"
    return Table.of("drift-late", title, ordered, columns, digits={"size": 2}, for_screen=False)


def _small_table(rows: Sequence[Row]) -> Table:
    """Return what is seen and what is true where only small sets get labels."""
    columns: dict[str, Any] = {
        "graph": "dataset",
        "strategy": "strategy",
        "labelled": lambda row: percent(row["seen_share"], 0),
        "coverage seen": "seen_coverage",
        "coverage of all": "coverage",
        "size": "mean_size",
        "coverage alarm": "coverage_alarm",
    }
    title = "Only sets of at most two labels get their label, in the order of time"
    wanted = [row for row in rows if row["labelled"] == "small"]
    return Table.of("drift-small", title, wanted, columns, digits={"size": 2}, for_screen=False)


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


def _plain(row: Row) -> bool:
    """Say whether every label comes at once."""
    return (row["delay"], row["labelled"]) == (0, "all")


def _raised(alarm: int | None) -> str:
    return "is never raised" if alarm is None else f"is raised after {alarm:,} labels"
