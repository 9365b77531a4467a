"""The leaderboard: every method of the table × graphs × models × shares of labels, on the same draws."""

from __future__ import annotations

from collections.abc import Sequence

from napsets.methods import title
from studies.draws import MODELS, DrawScope, draw_kind
from studies.standings import BASELINE, front_figure, make_standings, overall
from studies.tables import Chart, Columns, Row, Table, distinct, fill_page, grouped, percent, select

COMMAND = "python -m studies leaderboard --jobs 2 --page docs/leaderboard.md"
FULL = DrawScope(slow=("cf-gnn",))
SCOPES = (FULL,)
#: One or two minutes: four graphs of different kinds, two models, one seed.
QUICK = DrawScope(("cora-ml", "citeseer-full", "squirrel-filtered", "tolokers"), (MODELS[0], MODELS[-1]), (0,), (0.3,))
KIND = draw_kind(
    "leaderboard",
    lambda cell: (
        (cell["dataset"], f"{cell['share']:g}", cell["seed"], cell["repetition"]),
        1000 * cell["seed"] + cell["repetition"],
    ),
)


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return the parts that the command prints: table and findings over all graphs, for each share of labels."""
    parts: list[str | Table] = []
    for share, standings in _by_share(rows).items():
        parts += [_overall_table(overall(standings), share), "\n".join(f"- {text}" for text in findings(standings))]
    return parts


def figures(rows: Sequence[Row]) -> dict[str, Chart]:
    """Return the picture, of the largest share of labels."""
    by_share = _by_share(rows)
    return {"leaderboard-front": front_figure(by_share[max(by_share)])} if by_share else {}


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown: the picture, findings, and one table for each share of labels."""
    by_share = _by_share(rows)
    if not by_share:
        return fill_page("leaderboard", COMMAND, {})
    parts = {
        "labelled": percent(max(by_share)),
        "findings": [
            f"With {percent(share)} of the nodes labelled:\n\n- " + "\n- ".join(findings(by_share[share]))
            for share in sorted(by_share, reverse=True)
        ],
        "settings": _settings(rows),
        "baseline": BASELINE,
        "baseline_title": title(BASELINE),
        "target": 1.0 - rows[0]["alpha"],
        "results": [_overall_table(overall(standings), share) for share, standings in by_share.items()],
    }
    return fill_page("leaderboard", COMMAND, parts)


def _by_share(rows: Sequence[Row]) -> dict[float, list[Row]]:
    return dict(sorted(grouped(make_standings(rows), "share").items()))


def findings(standings: Sequence[Row]) -> list[str]:
    """Name the methods with the smallest sets and the most even coverage, and those that do not cover."""
    summaries = overall(standings)
    graphs = len(distinct(standings, "dataset"))
    able = [row for row in summaries if not row["fails"] and row["graphs"] == graphs]
    sentences = []
    if able:
        small, even = (min(able, key=lambda row: row[name].mean) for name in ("ratio", "gap"))
        (base,) = select(summaries, method=BASELINE)
        sentences.append(
            f"Of the methods that cover on all {graphs} graphs, `{small['method']}` has the smallest sets, "
            f"{small['ratio'].text(2)} times the size of `{BASELINE}`. `{even['method']}` has the most even coverage: "
            f"its gap is {even['gap'].text()}, compared with {base['gap'].text()} for `{BASELINE}`."
        )
    failing = [f"`{row['method']}` ({', '.join(row['fails'])})" for row in summaries if row["fails"]]
    if failing:
        sentences.append(f"Methods whose coverage is clearly too low on a graph: {'; '.join(failing)}.")
    return sentences


def _settings(rows: Sequence[Row]) -> str:
    """Describe what was run."""
    datasets, models, seeds, methods = (distinct(rows, name) for name in ("dataset", "model", "seed", "method"))
    shares = " and ".join(percent(share) for share in distinct(rows, "share"))
    return (
        f"{len(methods)} methods on {len(datasets)} graphs × {len(models)} models ({', '.join(models)}) × {len(seeds)} "
        f"seeds × {shares} labelled, alpha {rows[0]['alpha']:g}: {len(rows):,} rows. Methods that were run on fewer "
        "draws than others are compared with the baseline on the draws that they have."
    )


#: The columns of the table over all graphs.
_OVERALL: Columns = {
    "method": "method",
    "draws": "draws",
    "of split APS (95 %)": lambda row: row["ratio"].text(),
    "worst": "worst",
    "on": "worst_on",
    "of split THR": "small_ratio",
    "gap (95 %)": lambda row: row["gap"].text(),
    "minus the baseline's (95 %)": lambda row: row["gap_difference"].text(),
    "coverage": "coverage",
    "empty": "empty_rate",
    "full": "full_rate",
    "on the front of": lambda row: f"{row['on_front']} of {row['graphs']}",
    "seconds": "seconds",
}


def _overall_table(summaries: Sequence[Row], share: float) -> Table:
    heading = f"{percent(share)} labelled, all models, smallest sets first"
    notes = [
        "Sizes: relative to split APS, the geometric mean over graphs; relative to split THR, the arithmetic mean. "
        "Seconds: time to calibrate and predict; scores that several methods share count for the first of them."
    ]
    return Table.of(heading, summaries, _OVERALL, digits={"worst": 2, "of split THR": 2}, notes=notes)
