"""The sets study: numbers that can be counted out by hand, and the command."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

import napsets as ns
from studies import sets
from studies.draws import KINDS
from studies.sets import compare_with_split, coverage_tests
from studies.standings import make_standings
from studies.tables import select


def row(method, size, gap, *, graph="dblp", model="gcn", share=0.3, repetition=0, coverage=0.9, level_labels=100):
    groups = {f"excess_{kind}": gap for kind in KINDS}
    if graph == "minesweeper":
        groups |= {"excess_neighbourhood": None}
    return {
        "dataset": graph, "model": model, "seed": 0, "share": share, "repetition": repetition, "method": method,
        "alpha": 0.1, "labels": 200, "level_labels": level_labels, "nodes": 1000, "accuracy": 0.8, "seconds": 0.1,
        "coverage": coverage, "mean_size": size, "empty_rate": 0.0, "full_rate": 0.5, **groups,
    }  # fmt: skip


@pytest.fixture
def rows():
    return [
        row(method, size * (1 + repetition), gap, graph=graph, share=share, model=model, repetition=repetition)
        for graph, scale in (("dblp", 1.0), ("minesweeper", 2.0))
        for method, size, gap in (
            ("split", 2.0, 0.04),
            ("thr", 1.6, 0.08),
            ("auto", scale, 0.02),
            ("auto with features", 0.8 * scale, 0.01),
            ("auto-small", scale / 2, 0.06),
        )
        for share in (0.05, 0.3)
        for model in ("gcn", "graphsage-mean")
        for repetition in (0, 1)
    ]


def test_averages_are_over_repetitions_and_ratios_over_graphs(rows):
    standings = make_standings(rows, by_model=True)
    auto = compare_with_split(select(standings, place="gcn", share=0.3))["auto"]
    by_place = {(place["dataset"], place["place"], place["share"], place["method"]): place for place in standings}
    assert by_place["dblp", "gcn", 0.3, "auto"]["size"] == pytest.approx(1.5)
    assert (auto["arithmetic"], auto["worst"], auto["worst_on"]) == (0.75, 1.0, "minesweeper, gcn")
    assert auto["ratio"].mean == pytest.approx(np.sqrt(0.5))
    assert auto["gap_ratio"]["all"] == pytest.approx(0.5)
    assert auto["gap_ratio"]["neighbourhood"] == pytest.approx(0.5)  # of the graph that has neighbourhoods
    assert by_place["minesweeper", "gcn", 0.3, "auto"]["total"] == pytest.approx(3 * 0.02)
    assert (auto["small_ratio"], auto["small_worst"]) == pytest.approx(((1 / 1.6 + 2 / 1.6) / 2, 2 / 1.6))


def test_each_automatic_method_is_compared_with_the_method_without_a_graph_that_has_its_aim(rows):
    even, small = sets.aims_table({0.3: select(make_standings(rows, by_model=True), share=0.3)}).rows
    assert even[1:3] == ["auto", "split APS"]
    assert even[3:] == pytest.approx([0.6, 0.8, 0.75, 1.0, 0.25, 0.5, 2.0])
    assert small[1:5] == ["auto-small", "split THR", None, None]
    assert small[5:] == pytest.approx([0.75 / 1.6, 1 / 1.6, None, 1.5, 2.0])


def test_with_few_labels_each_graph_and_model_is_compared_with_the_method_of_the_same_aim(rows):
    few = [one | {"share": 100} for one in rows if one["share"] == 0.3]
    *_, table = sets.summary(rows + few)
    assert table.title.startswith("100 labels")
    assert table.rows[0] == ["dblp, gcn", 0.5, pytest.approx(0.5 / 1.6), pytest.approx(0.4), None]
    assert "| dblp, gcn | 0.500 | 0.312 | 0.400 | – |" in sets.page(rows + few)
    assert sets.page(rows + few).count("of 8 p-values") == 3  # the tests are about shares of labels


def test_the_p_value_of_one_repetition_is_the_tail_of_the_beta_binomial_law():
    (test,) = coverage_tests([row("auto", 1.0, 0.0, coverage=0.85)], "auto")
    law = betabinom(1000, 91, 10)  # the 91st of 100 labels sets the level
    assert test.p_value == pytest.approx(2 * law.cdf(850), rel=1e-6)
    assert test.expected == 91 / 101
    with pytest.raises(ns.InvalidInputError, match="different numbers of labels"):
        coverage_tests([row("auto", 1.0, 0.0), row("auto", 1.0, 0.0, repetition=1, level_labels=99)], "auto")


def test_p_values_over_repetitions_are_uniform_where_the_law_holds():
    rng = np.random.default_rng(3)
    covered = betabinom.rvs(1000, 91, 10, size=(400, 3), random_state=rng) / 1000
    p_values = [
        coverage_tests([row("auto", 1.0, 0.0, repetition=i, coverage=c) for i, c in enumerate(some)], "auto")[0].p_value
        for some in covered
    ]
    # Kolmogorov's distance at 1e-6; p-values of counts are a little too large, never too small.
    excess = np.arange(1, 401) / 400 - np.sort(p_values)
    assert excess.max() < np.sqrt(-np.log(5e-7) / 800)


def test_the_page_and_the_tables_show_every_method_on_every_graph(rows):
    text = sets.page(rows)
    assert "on 2 graphs of different kinds, with 2 models per\ngraph" in text
    assert "| minesweeper | 200 | 0.800 | 3.00 | 2.40 | 3.00 | 1.50 | 2.40 |" in text
    assert "size of sets relative to" in str(sets.summary(rows)[0])
    assert "python -m studies sets" in sets.page([])
    assert sets.summary([]) == []
    assert "No results yet" in sets.page([row("auto", 1.0, 0.0)])  # nothing to compare with


def test_the_command_shows_the_rows_and_writes_their_page(studies, tmp_path, rows):
    sets.KIND.append(rows, tmp_path / "results")
    options = ("--repetitions", 2, "--dataset", "dblp", "--dataset", "minesweeper", "--rows-only")
    code, shown, _ = studies("sets", "--results", tmp_path / "results", *options, "--page", tmp_path / "sets.md")
    assert code == 0
    assert "30 % labelled: size of sets relative to" in shown
    assert (tmp_path / "sets.md").read_text(encoding="utf-8") == sets.page(rows)
