"""The sets study: set sizes and evenness of coverage compared with split APS on a dozen graphs, many repetitions.

The models are those of the leaderboard with seed 0, except GraphSAGE on Amazon, whose predictions are included in the
package. All predictions are kept in the repository, so that the study needs no torch and gives the same results
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from napsets import InvalidInputError
from studies.draws import FEATURED, GRAPHS, KINDS, MODELS, WITH_FEATURES, DrawScope, draw_kind
from studies.standings import BASELINE, SMALL_BASELINE, make_standings, overall
from studies.tables import Chart, Columns, Entry, Row, Table, distinct, fill_page, grouped, percent, select

COMMAND = "python -m studies sets --page docs/sets.md"
METHODS = (BASELINE, "thr", "naps", "naps-exact", "daps", "informed", "auto", "auto-small", *FEATURED)
FULL = DrawScope(models=MODELS[:2], seeds=(0,), repetitions=3, methods=METHODS)
#: The methods that choose automatically, with features and without.
AUTOMATIC = ("auto", "auto-small", *FEATURED[1:])
#: Three small graphs, two repetitions.
QUICK = DrawScope(("cora-ml", "citeseer-full", "squirrel-filtered"), MODELS[:2], (0,), repetitions=2, methods=METHODS)
KIND = draw_kind(
    "sets",
    (
        *("labels", "level_labels", "exact", "nodes", "classes", "accuracy", "choice", "seconds"),
        *("coverage", "mean_size", "empty_rate", "full_rate"),
        *(f"{part}_{kind}" for kind in KINDS for part in ("gap", "share", "excess", "groups")),
    ),
    lambda cell: ((cell["dataset"], f"{cell['share']:g}", cell["repetition"]), cell["repetition"]),
    shipped=True,
)
_LAW = """\
With m labels for the level and k = ⌈0.9(m+1)⌉, the number of covered nodes has a beta-binomial distribution, whatever
was chosen, and the repetitions are independent draws. Every mean coverage therefore has a two-sided tail probability.
"""


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return the tables that the command prints: the comparison with split APS, for each share of labels."""
    standings = make_standings(rows, by_model=True)
    return [table for share in distinct(standings, "share") for table in _comparison(standings, share)]


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown: the comparison, tests of coverage, and the tables of single models and graphs."""
    standings = make_standings(rows, by_model=True)
    if not standings:
        return fill_page("sets", COMMAND, {})
    counts, shares, models = (distinct(standings, name) for name in ("draws", "share", "place"))
    tested = [line for method in AUTOMATIC for line in _test_sentences(rows, method)]
    parts = {
        "graphs": len(distinct(standings, "dataset")),
        "models": len(models),
        "repetitions": f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}",
        "everywhere": [aims_table(standings), *summary(rows)],
        "tests": [_LAW, "\n".join(tested)] if tested else "",
        "by_graph": [
            table for share, model in product(shares, models) for table in _graph_tables(standings, rows, share, model)
        ],
    }
    return fill_page("sets", COMMAND, parts)


def figures(rows: Sequence[Row]) -> dict[str, Chart]:
    """Return the figures of the page, which has none."""
    return {}


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return names in this order, and those that it lacks after them."""
    return sorted(set(names), key=lambda name: (order.index(name) if name in order else len(order), name))


def compare_with_split(standings: Iterable[Row], share: float) -> dict[str, Row]:
    """Compare each method with split APS on all graphs and models."""
    summaries = {row["method"]: row for row in overall(select(standings, share=share))}
    return {method: summaries[method] for method in _in_order(summaries, METHODS)}


_SIZES: Columns = {
    "method": "method",
    "of split APS": "arithmetic",
    "at worst": "worst",
    "on": "worst_on",
    "of split THR": "small_ratio",
    "at worst, THR": "small_worst",
    "coverage": "coverage",
    "empty": lambda row: percent(row["empty_rate"], 1),
    "full": lambda row: percent(row["full_rate"], 1),
}


def _comparison(standings: Sequence[Row], share: float) -> list[Table]:
    """Return sizes relative to split APS and split THR, and gaps relative to split APS."""
    summaries = compare_with_split(standings, share).values()
    where, heads = f"{percent(share)} labelled", ["method", "all", *KINDS]
    gaps: list[list[Entry]] = [[row["method"], *row["gap_ratio"].values()] for row in summaries]
    notes = ["Means over graphs and models: of the ratios of mean sizes, of coverage, and of empty and full sets."]
    return [
        Table.of(f"{where}: size of sets relative to the two methods without a graph", summaries, _SIZES, notes=notes),
        Table(
            f"{where}: excess gaps relative to split APS, and by kind of group", heads, gaps, dict.fromkeys(heads, 2)
        ),
    ]


#: What each method that chooses automatically has to beat: the method without a graph that has the same aim, and the
#: columns of a summary with the ratio to its size.
_AIMS = {"auto": ("split APS", "arithmetic", "worst"), "auto-small": ("split THR", "small_ratio", "small_worst")}


def aims_table(standings: Sequence[Row]) -> Table:
    """Compare `auto` and `auto-small` with the method without a graph that has the same aim."""
    lines: list[list[Entry]] = []
    for share, method in product(distinct(standings, "share"), _AIMS):
        rows, (base, ratio, worst) = compare_with_split(standings, share), _AIMS[method]
        both = [rows.get(name) for name in (f"{method}{WITH_FEATURES}", method)]
        numbers: list[Entry] = [None if row is None else row[name] for row in both for name in (ratio, worst)]
        compared = (*both, rows.get(SMALL_BASELINE))
        gaps: list[Entry] = [None if row is None else row["gap_ratio"]["all"] for row in compared]
        lines.append([percent(share), method, base, *numbers, *gaps])
    sizes, gaps_of = ("size with features", "at worst", "without", "at worst"), ("gaps with features", "without")
    heads = ["labelled", "method", "compared with", *sizes, *gaps_of, "gaps of split THR"]
    notes = [
        "Sizes relative to the method compared with, excess gaps relative to those of split APS; means over graphs."
    ]
    return Table("Smaller than what there is without a graph?", heads, lines, dict.fromkeys(heads, 2), notes)


class CoverageTest(NamedTuple):
    """Mean coverage over repetitions, and its distribution if nodes are labelled at random."""

    where: tuple[str, str, float]  #: graph, model, share of labels
    level_labels: int
    expected: float
    coverage: float
    p_value: float


def coverage_tests(rows: Iterable[Row], method: str) -> list[CoverageTest]:
    """Return the two-sided tail probability of each mean coverage of a method.

    With m labels for the level and k = ⌈(m+1)(1−α)⌉, the covered ones among N nodes are beta-binomial (N; k, m+1−k),
    whatever the score. Repetitions are drawn again from the same nodes, so that their counts are independent and their
    sum is the convolution of these laws.
    """
    from scipy.stats import betabinom

    tests = []
    for where, here in sorted(grouped(select(rows, method=method), "dataset", "model", "share").items()):
        settings = {(row["nodes"], row["level_labels"], row["alpha"]) for row in here}
        if len(settings) != 1:
            raise InvalidInputError(f"{where} was measured with different numbers of labels")
        nodes, labels, alpha = settings.pop()
        k = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
        covered = sum(round(row["coverage"] * row["nodes"]) for row in here)
        size = 1 << (nodes * len(here)).bit_length()
        single = betabinom.pmf(np.arange(nodes + 1), nodes, k, labels + 1 - k)
        together = np.maximum(np.fft.irfft(np.fft.rfft(single, size) ** len(here), size), 0.0)
        tail = float(min(together[: covered + 1].sum(), together[covered:].sum()))
        mean = covered / nodes / len(here)
        tests.append(CoverageTest(where, labels, k / (labels + 1), mean, min(1.0, 2.0 * tail)))
    return tests


def _test_sentences(rows: Sequence[Row], method: str) -> list[str]:
    tests = coverage_tests(rows, method)
    if not tests:
        return []
    worst = min(tests, key=lambda test: test.p_value)
    below = sum(test.p_value < 0.05 for test in tests)
    graph, model, share = worst.where
    where = f"{graph}, {model}, {percent(share)}"
    return [
        f"- `{method}`: the smallest of {len(tests)} p-values is {worst.p_value:.3g} ({where}: coverage "
        f"{worst.coverage:.4f}, expected {worst.expected:.4f}, m = {worst.level_labels}); after "
        f"Bonferroni correction {min(1.0, worst.p_value * len(tests)):.2g}. {below} of them are below 0.05; "
        f"{0.05 * len(tests):.1f} are expected."
    ]


def _graph_tables(standings: Sequence[Row], rows: Sequence[Row], share: float, model: str) -> list[Table]:
    """Return size and excess gaps of each method on each graph."""
    places = {(row["dataset"], row["method"]): row for row in select(standings, share=share, place=model)}
    methods, known = _in_order((method for _, method in places), METHODS), select(rows, share=share, model=model)
    about, tables = {row["dataset"]: [row["labels"], row["accuracy"]] for row in known}, []
    for name, heading, digits in (("size", "mean size", 2), ("total", "sum of excess gaps", 3)):
        lines: list[list[Entry]] = [
            [graph, *about[graph], *(places[graph, m][name] if (graph, m) in places else None for m in methods)]
            for graph in _in_order((dataset for dataset, _ in places), GRAPHS)
        ]
        title = f"{percent(share)} labelled, {model}: {heading}"
        tables.append(Table(title, ["graph", "labels", "accuracy", *methods], lines, dict.fromkeys(methods, digits)))
    return tables
