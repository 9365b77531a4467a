"""What the comparison's rows say, in numbers that can be counted out by hand, and in words."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from studies import leaderboard
from studies.draws import KINDS
from studies.leaderboard import findings
from studies.standings import make_standings, overall
from studies.tables import MeanInterval, svg


def row(method, size, gap, *, graph="dblp", model="gcn", seed=0, repetition=0, share=0.3, coverage=0.9):
    cell_row = {
        "dataset": graph, "model": model, "seed": seed, "share": share, "repetition": repetition, "method": method,
        "alpha": 0.1, "labels": 1000, "level_labels": 1000, "nodes": 2000, "accuracy": 0.8,
        "seconds": 0.5, "coverage": coverage, "mean_size": size, "empty_rate": 0.0, "full_rate": 0.1,
    }  # fmt: skip
    for kind in KINDS:
        lacks = kind == "neighbourhood" and graph == "minesweeper"
        cell_row |= {f"excess_{kind}": None if lacks else gap}
    return cell_row


def of(some, method, graph="dblp"):
    return next(one for one in some if (one["method"], one["dataset"]) == (method, graph))


def test_sizes_and_gaps_are_means_over_models_seeds_and_draws():
    rows = [
        row(method, base + step + 2 * seed, gap + seed / 100, model=model, seed=seed)
        for method, base, gap in (("split", 2.0, 0.03), ("auto", 1.0, 0.01))
        for step, model in enumerate(("gcn", "mlp"))
        for seed in (0, 1)
    ]
    auto, split = (of(make_standings(rows), name) for name in ("auto", "split"))
    assert auto["draws"] == 4
    assert auto["size"] == pytest.approx(np.mean([1, 2, 3, 4]))
    assert auto["ratio"] == pytest.approx(2.5 / 3.5)
    assert auto["gap"] == pytest.approx(0.015)
    assert split["gap"] == pytest.approx(0.035)
    # Two independent draws of labels, whose nodes two models share.
    assert auto["coverage_error"] == pytest.approx(math.sqrt(0.09 * (1 / 1000 + 1 / 2000) / 2))


def test_a_method_with_fewer_draws_is_compared_on_those_that_it_has():
    rows = [row("split", size, gap, model=model) for model, size, gap in (("gcn", 2.0, 0.01), ("mlp", 6.0, 0.05))]
    rows.append(row("auto", 1.0, 0.02, model="gcn"))
    auto = of(make_standings(rows), "auto")
    assert (auto["draws"], auto["ratio"]) == (1, 0.5)
    assert auto["size"] == pytest.approx(0.5 * 4.0)
    assert auto["gap"] == pytest.approx(0.03 + 0.01)


def test_sizes_relative_to_split_thr_are_those_of_the_draws_that_it_has():
    rows = [
        row(method, size, 0.0, seed=seed)
        for seed, sizes in enumerate(({"split": 4.0, "thr": 2.0, "auto": 1.0}, {"split": 4.0, "auto": 3.0}))
        for method, size in sizes.items()
    ]
    auto = of(make_standings(rows), "auto")
    assert (auto["ratio"], auto["small_ratio"]) == (0.5, 0.5)
    assert of(make_standings(rows[2:]), "auto")["small_ratio"] is None


def test_without_the_baseline_on_the_same_draw_nothing_is_said():
    assert make_standings([row("auto", 1.0, 0.0)]) == []
    assert make_standings([row("split", 1.0, 0.0, seed=1), row("auto", 1.0, 0.0, seed=0)])[0]["method"] == "split"


def test_the_front_holds_those_that_cover_and_that_none_beats():
    rows = [
        row("split", 2.0, 0.03),
        row("auto", 1.5, 0.02),
        row("auto-small", 1.0, 0.05),
        row("naps", 3.0, 0.01),
        row("naps-h", 3.0, 0.02),
        row("daps", 0.5, 0.0, coverage=0.8),
    ]
    summaries = make_standings(rows)
    assert {one["method"] for one in summaries if one["on_front"]} == {"auto-small", "auto", "naps"}
    assert not of(summaries, "daps")["covers"]
    # Three standard errors below 0.9 and no more is not due to chance that could be called clear.
    error = of(summaries, "split")["coverage_error"]
    assert make_standings([row("split", 2.0, 0.0, coverage=0.9 - 2.9 * error)])[0]["covers"]
    assert not make_standings([row("split", 2.0, 0.0, coverage=0.9 - 3.1 * error)])[0]["covers"]


def test_over_graphs_ratios_are_geometric_means_with_students_interval():
    rows = [
        row(method, size, gap, graph=graph)
        for graph, sizes in (("dblp", (2.0, 1.0)), ("actor", (4.0, 4.0)), ("cora-ml", (1.0, 2.0)))
        for method, size, gap in zip(("split", "auto"), sizes, (0.04, 0.01), strict=True)
    ]
    auto = next(one for one in overall(make_standings(rows)) if one["method"] == "auto")
    assert auto["ratio"].mean == pytest.approx(1.0)
    reach = 4.302652729911275 * math.log(2) / math.sqrt(3)  # t with two degrees of freedom; logs −ln 2, 0, ln 2
    assert auto["ratio"].high == pytest.approx(math.exp(reach))
    assert auto["ratio"].low == pytest.approx(math.exp(-reach))
    assert (auto["worst"], auto["worst_on"]) == (2.0, "cora-ml")
    assert auto["gap"].mean == pytest.approx(0.01)
    assert auto["gap_difference"].mean == pytest.approx(-0.03)
    assert auto["on_front"] == 3


def test_intervals_are_written_for_people():
    assert MeanInterval(0.5, 0.25, 0.75).text(2) == "0.50 (0.25 to 0.75)"
    assert MeanInterval(-0.001, -0.5, 0.5).text() == "−0.001 (−0.500 to 0.500)"
    assert MeanInterval(1.0, math.nan, math.nan).text() == "1.000"
    assert MeanInterval(1.0, 1.0, 1.0).text() == "1.000"
    assert MeanInterval(math.nan, math.nan, math.nan).text() == "–"


@pytest.fixture(scope="module")
def rows():
    """Two graphs, two shares: auto wins on dblp, and on actor loses to informed in both respects."""
    sizes = {
        "dblp": {"split": 2.0, "auto": 1.0, "informed": 1.2, "naps": 3.5},
        "actor": {"split": 4.0, "auto": 3.9, "informed": 3.0, "naps": 4.9},
    }
    gaps = {"split": 0.03, "auto": 0.02, "informed": 0.015, "naps": 0.04}
    return [
        row(method, size + seed / 10, gaps[method], graph=graph, share=share, seed=seed, coverage=coverage)
        for graph, some in sizes.items()
        for method, size in some.items()
        for share in (0.05, 0.3)
        for seed in (0, 1)
        for coverage in [0.97 if method == "naps" else 0.85 if (method, graph) == ("split", "actor") else 0.9]
    ]


def test_findings_name_the_best_methods_and_those_that_do_not_cover(rows):
    sentences = findings([one for one in make_standings(rows) if one["share"] == 0.3])
    text = " ".join(sentences)
    assert "`auto` has the smallest sets" not in text
    assert "Of the methods that cover on all 2 graphs, `informed` has the smallest sets" in text
    assert "Methods whose coverage is clearly too low on a graph: `split` (actor)." in text


def test_the_page_has_every_method_on_every_graph(rows):
    text = leaderboard.page(rows)
    assert "4 methods on 2 graphs × 1 models (gcn) × 2 seeds × 5 % and 30 % labelled" in text
    assert "| auto | 4 | 0.707 (" in text  # √(1.05 / 2.05 · 3.95 / 4.05)
    assert "| 1 of 2 |" in text
    assert "30 % of the nodes labelled](figures/leaderboard-front.svg)" in text
    fewer = [one for one in rows if (one["method"], one["seed"]) != ("naps", 1)]
    assert "| naps | 2 | " in leaderboard.page(fewer)


def test_the_page_names_its_pictures(rows):
    pytest.importorskip("vl_convert")
    pictures = {f"figures/{name}.svg": svg(chart) for name, chart in leaderboard.figures(rows).items()}
    assert set(re.findall(r"!\[.*\]\((.*)\)", leaderboard.page(rows))) == set(pictures)
    for picture in pictures.values():
        assert all(word in picture for word in (">dblp<", ">actor<", ">informed<", ">split<", "on the front"))


def test_without_rows_the_page_says_how_to_get_them():
    assert "python -m studies leaderboard" in leaderboard.page([])
    assert leaderboard.summary([]) == []
    assert leaderboard.figures([]) == {}
    assert "No results yet" in leaderboard.page([row("auto", 1.0, 0.0)])  # nothing to compare with
