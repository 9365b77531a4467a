"""The sets study: set sizes and evenness of coverage on a dozen graphs, compared with methods without a graph.

The models are those of the leaderboard with seed 0, except GraphSAGE on Amazon, whose predictions are included in the
package. All predictions are kept in the repository, so that the study needs no torch and gives the same results
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from napsets import InvalidInputError
from studies.draws import FEATURED, GRAPHS, KINDS, MODELS, WITH_FEATURES, DrawScope, draw_kind
from studies.standings import BASELINE, SMALL_BASELINE, make_standings, overall
from studies.tables import Chart, Columns, Entry, Row, Table, distinct, fill_page, grouped, percent, select

COMMAND = "python -m studies sets --page docs/sets.md"
METHODS = (BASELINE, "thr", "naps", "naps-exact", "daps", "informed", "auto", "auto-small", *FEATURED)
#: The methods that choose automatically, with features and without.
AUTOMATIC = ("auto", "auto-small", *FEATURED[1:])
FULL = DrawScope(models=MODELS[:2], seeds=(0,), repetitions=10, methods=METHODS)
#: 100 labels: with fewer, the methods that choose automatically use all of them for one threshold.
FEW = replace(FULL, shares=(100,), repetitions=40, methods=(BASELINE, "thr", *AUTOMATIC))
SCOPES = (FULL, FEW)
#: Three small graphs, two repetitions.
QUICK = DrawScope(("cora-ml", "citeseer-full", "squirrel-filtered"), MODELS[:2], (0,), repetitions=2, methods=METHODS)
KIND = draw_kind(
    "sets",
    lambda cell: ((cell["dataset"], f"{cell['share']:g}", cell["repetition"]), cell["repetition"]),
    shipped=True,
)
_LAW = """\
With m labels for the level and k = ⌈0.9(m+1)⌉, the number of covered nodes has a beta-binomial distribution, whatever
was chosen, and the repetitions are independent draws. Every mean coverage therefore has a two-sided tail probability.
"""


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return the tables that the command prints: the comparison for each share of labels, and that with few labels."""
    by_share = _standings_by_share(rows)
    tables = [table for share, standings in by_share.items() if share < 1 for table in _comparison(standings, share)]
    return [*tables, *(few_labels_table(standings, share) for share, standings in by_share.items() if share >= 1)]


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown: the comparison, tests of coverage, and the tables of single models and graphs."""
    by_share = {share: standings for share, standings in _standings_by_share(rows).items() if share < 1}
    if not by_share:
        return fill_page("sets", COMMAND, {})
    shared = [row for row in rows if row["share"] < 1]
    models = distinct(shared, "model")
    tested = [line for method in AUTOMATIC for line in _test_sentences(shared, method)]
    parts = {
        "graphs": len(distinct(shared, "dataset")),
        "models": len(models),
        "repetitions": len(distinct(shared, "repetition")),
        "everywhere": [aims_table(by_share), *summary(rows)],
        "tests": [_LAW, "\n".join(tested)] if tested else "",
        "by_graph": [_graph_table(by_share[share], shared, share, model) for share, model in product(by_share, models)],
    }
    return fill_page("sets", COMMAND, parts)


def _standings_by_share(rows: Sequence[Row]) -> dict[float, list[Row]]:
    """Return the standings on each graph and model by the share, or the number, of labels."""
    return dict(sorted(grouped(make_standings(rows, by_model=True), "share").items()))


def figures(rows: Sequence[Row]) -> dict[str, Chart]:
    """Return the figures of the page, which has none."""
    return {}


def compare_with_split(standings: Sequence[Row]) -> dict[str, Row]:
    """Compare each method with split APS on all graphs and models of one share of labels."""
    summaries = {row["method"]: row for row in overall(standings)}
    return {method: summaries[method] for method in METHODS if method in summaries}


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
    """Sizes relative to split APS and split THR, and gaps relative to split APS."""
    summaries = compare_with_split(standings).values()
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


def aims_table(by_share: Mapping[float, Sequence[Row]]) -> Table:
    """Compare `auto` and `auto-small` with the method without a graph that has the same aim."""
    lines: list[list[Entry]] = []
    for (share, standings), method in product(by_share.items(), _AIMS):
        rows, (base, ratio, worst) = compare_with_split(standings), _AIMS[method]
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


def few_labels_table(standings: Sequence[Row], labels: float) -> Table:
    """Compare `auto` and `auto-small` on each graph with the method without a graph that has the same aim."""
    lines: list[list[Entry]] = []
    for setting, places in grouped(standings, "setting").items():
        ratios = {row["method"]: row["small_ratio" if "small" in row["method"] else "ratio"] for row in places}
        lines.append([setting, *(ratios.get(method) for method in AUTOMATIC)])
    heads = ["graph and model", *AUTOMATIC]
    notes = [
        f"Means over {standings[0]['draws']} draws: `auto` relative to split APS, `auto-small` relative to split THR. "
        "With fewer than 15 labels per class both use all labels for one threshold, and the ratio is 1."
    ]
    return Table(f"{labels:g} labels: size of sets relative to the method without a graph", heads, lines, notes=notes)


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


def _graph_table(standings: Sequence[Row], rows: Sequence[Row], share: float, model: str) -> Table:
    """Return the mean set size of each method on each graph."""
    sizes = {(row["dataset"], row["method"]): row["size"] for row in select(standings, place=model)}
    about = {row["dataset"]: [row["labels"], row["accuracy"]] for row in select(rows, share=share, model=model)}
    methods = [method for method in METHODS if any(method == known for _, known in sizes)]
    lines: list[list[Entry]] = [
        [graph, *about[graph], *(sizes.get((graph, method)) for method in methods)]
        for graph in GRAPHS
        if graph in about
    ]
    title = f"{percent(share)} labelled, {model}: mean size"
    return Table(title, ["graph", "labels", "accuracy", *methods], lines, dict.fromkeys(methods, 2))
