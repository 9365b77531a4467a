"""The page, the tables and the figure of the drift study, made from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from napsets.checks.text import percent
from napsets.errors import imported
from napsets.studies.study import Row
from napsets.studies.tables import Entry, Table, join_page

ORDERS = ("time", "random")
#: How thresholds follow the labels that have come.
STRATEGIES: dict[str, str] = {
    "static": "calibrated once, on the labels before the stream",
    "growing": "calibrated on all labels so far",
    "window": "calibrated on the last 500 labels",
    "aci": "all labels so far, the level steered with one rate, .01",
    "dtaci": "all labels so far, the level steered with eight rates",
}
#: What makes the committed rows and the page.
COMMAND = "napsets reproduce drift --page docs/drift.md"

#: Columns of the short tables.
_SHORT = ["graph", "strategy", "coverage", "worst", "size", "full", "coverage alarm", "exchangeability"]

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


def page_text(rows: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    if not rows:
        return f"# Drift: what to use when\n\nNothing is measured yet. Run\n\n```\n{COMMAND}\n```\n"
    introduction = _INTRODUCTION.format(
        graphs=len(_graphs(rows)),
        alpha=rows[0]["alpha"],
        command=COMMAND,
        strategies="\n".join(f"- `{name}`: {words}." for name, words in STRATEGIES.items()),
    )
    in_time, in_random, late, small = tables(rows)[:4]
    return join_page(
        [
            introduction,
            _ADVICE,
            "## What was measured",
            "\n".join(f"- {sentence}" for sentence in findings(rows)),
            "## In the order of time",
            "![Coverage over time](figures/drift-coverage.svg)",
            in_time.markdown(),
            "## In a random order",
            in_random.markdown(),
            "## Late labels",
            late.markdown(),
            "## Labels only where sets are small",
            small.markdown(),
        ]
    )


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


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the page: both orders, late labels, labels where sets are small; then short ones."""
    orders = [_order_table(rows, order) for order in ORDERS]
    return [*orders, _late_table(rows), _small_table(rows), *(_short_table(order) for order in orders)]


def _entries(row: Row, names: str) -> list[Entry]:
    """Return some columns of a row, shares of sets in per cent."""
    digits = {"full_rate": 1, "seen_share": 0}
    return [percent(row[name], digits[name]) if name in digits else row[name] for name in names.split()]


def _order_table(rows: Sequence[Row], order: str) -> Table:
    shown = "dataset strategy coverage worst_window mean_size full_rate coverage_alarm exchangeability_alarm"
    lines = [
        [
            *_entries(row, shown),
            f"{row['coverage_low']:.3f}–{row['coverage_high']:.3f}",
            f"{row['coverage_evidence']:.1f}, {row['exchangeability_evidence']:.1f}",
        ]
        for row in rows
        if row["order"] == order and _plain(row)
    ]
    heads = [*_SHORT, "interval of coverage", "evidence of both"]
    words = "in the order of time" if order == "time" else "in a random order"
    return Table(f"drift-{order}", f"Strategies {words}", heads, lines, {"size": 2}, for_screen=False)


def _short_table(table: Table) -> Table:
    """Return the same in the width of a terminal."""
    lines = [row[: len(_SHORT)] for row in table.rows]
    return Table(f"{table.name}-short", table.title, _SHORT, lines, table.digits)


def _late_table(rows: Sequence[Row]) -> Table:
    """Return coverage and size with labels that come at once, and late."""
    wanted = [row for row in rows if row["order"] == "time" and row["labelled"] == "all"]
    strategies = {row["strategy"] for row in wanted if row["delay"]}
    lines = [
        _entries(row, "dataset strategy delay coverage worst_window mean_size full_rate")
        for row in sorted(wanted, key=lambda row: (_graphs(rows).index(row["dataset"]), row["strategy"], row["delay"]))
        if row["strategy"] in strategies
    ]
    heads = ["graph", "strategy", "delay", "coverage", "worst window", "size", "full"]
    title = "Labels that come a number of sets late, in the order of time"
    return Table("drift-late", title, heads, lines, {"size": 2}, for_screen=False)


def _small_table(rows: Sequence[Row]) -> Table:
    """Return what is seen and what is true where only small sets get labels."""
    shown = "dataset strategy seen_share seen_coverage coverage mean_size coverage_alarm"
    lines = [_entries(row, shown) for row in rows if row["labelled"] == "small"]
    heads = ["graph", "strategy", "labelled", "coverage seen", "coverage of all", "size", "coverage alarm"]
    title = "Only sets of at most two labels get their label, in the order of time"
    return Table("drift-small", title, heads, lines, {"size": 2}, for_screen=False)


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return one panel per graph: coverage over time in the order of time, one line per strategy."""
    wanted = [row for row in rows if row["order"] == "time" and _plain(row)]
    if not wanted:
        return {}
    alt = imported("altair", "report")
    colour = alt.Color("strategy:N", sort=list(STRATEGIES), legend=alt.Legend(title=None, orient="bottom"))
    panels = []
    for graph in _graphs(rows):
        points = [
            {"strategy": row["strategy"], "share": (i + 0.5) / len(row["coverage_curve"]), "coverage": value}
            for row in wanted
            if row["dataset"] == graph
            for i, value in enumerate(row["coverage_curve"])
        ]
        level = alt.Chart(alt.Data(values=[{"level": 1.0 - wanted[0]["alpha"]}]))
        lines = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=1.5)
        panels.append(
            alt.layer(
                level.mark_rule(strokeDash=[4, 4], color="grey").encode(y="level:Q"),
                lines.encode(
                    x=alt.X("share:Q", title="share of the stream", axis=alt.Axis(format="%", tickCount=5)),
                    y=alt.Y("coverage:Q", title="coverage", scale=alt.Scale(domain=[0, 1])),
                    color=colour,
                ),
            ).properties(width=300, height=160, title=graph)
        )
    rows_of_two = [alt.hconcat(*panels[i : i + 2]) for i in range(0, len(panels), 2)]
    return {"drift-coverage": alt.vconcat(*rows_of_two)}


def _graphs(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in rows))


def _plain(row: Row) -> bool:
    """Say whether every label comes at once."""
    return (row["delay"], row["labelled"]) == (0, "all")


def _raised(alarm: int | None) -> str:
    return "is never raised" if alarm is None else f"is raised after {alarm:,} labels"
