"""What the comparison's rows say, in numbers that can be counted out by hand, and in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from napsets.errors import FileFormatError
from napsets.studies import STUDIES, RowStore
from napsets.studies.draws import KINDS
from napsets.studies.leaderboard import LeaderboardCell, findings
from napsets.studies.standings import front, make_standings, overall
from napsets.studies.tables import MeanInterval, interval, write_page

STUDY = STUDIES["leaderboard"]


def row(method, size, gap, *, graph="dblp", model="gcn", seed=0, repetition=0, share=0.3, coverage=0.9):
    """A row whose gaps lie `gap` beyond a chance of 0.02, a quarter of the whole below the target."""
    cell_row = LeaderboardCell(graph, model, seed, share, repetition, method).row(
        labels=1000, level_labels=1000, nodes=2000, classes=5, accuracy=0.8, choice="", seconds=0.5,
        coverage=coverage, mean_size=size, singleton_rate=0.5, empty_rate=0.0, full_rate=0.1,
    )  # fmt: skip
    for kind in KINDS:
        lacks = kind == "neighbourhood" and graph == "minesweeper"
        values = {
            "gap": gap + 0.02,
            "chance": 0.02,
            "under": (gap + 0.02) / 4,
            "over": 3 * (gap + 0.02) / 4,
            "share": 1.0,
        }
        cell_row |= {f"{name}_{kind}": None if lacks and name != "share" else value for name, value in values.items()}
    return cell_row


def of(some, method, graph="dblp"):
    return next(one for one in some if (one.method, one.dataset) == (method, graph))


def test_sizes_and_gaps_are_means_over_models_seeds_and_draws():
    rows = [
        row(method, base + step + 2 * seed, gap + seed / 100, model=model, seed=seed)
        for method, base, gap in (("split", 2.0, 0.03), ("auto", 1.0, 0.01))
        for step, model in enumerate(("gcn", "mlp"))
        for seed in (0, 1)
    ]
    auto, split = (of(make_standings(rows), name) for name in ("auto", "split"))
    assert auto.draws == 4
    assert auto.size == pytest.approx(np.mean([1, 2, 3, 4]))
    assert auto.ratio == pytest.approx(2.5 / 3.5)
    assert auto.size_error == pytest.approx(np.std([1.5, 3.5], ddof=1) / math.sqrt(2))
    assert auto.gap == pytest.approx(0.015)
    assert split.gap == pytest.approx(0.035)
    assert auto.under == pytest.approx(0.035 / 4 - 0.02 / 2)
    # Two independent draws of labels, whose nodes two models share.
    assert auto.coverage_error == pytest.approx(math.sqrt(0.09 * (1 / 1000 + 1 / 2000) / 2))


def test_a_method_with_fewer_draws_is_compared_on_those_that_it_has():
    rows = [row("split", size, gap, model=model) for model, size, gap in (("gcn", 2.0, 0.01), ("mlp", 6.0, 0.05))]
    rows.append(row("auto", 1.0, 0.02, model="gcn"))
    auto = of(make_standings(rows), "auto")
    assert (auto.draws, auto.ratio) == (1, 0.5)
    assert auto.size == pytest.approx(0.5 * 4.0)
    assert auto.gap == pytest.approx(0.03 + 0.01)


def test_kinds_of_groups_that_there_are_not_do_not_count():
    (only,) = make_standings([row("split", 1.5, 0.04, graph="minesweeper")])
    assert math.isnan(only.excess["neighbourhood"])
    assert only.gap == pytest.approx(0.04)


def test_without_the_baseline_on_the_same_draw_nothing_is_said():
    assert make_standings([row("auto", 1.0, 0.0)]) == []
    assert make_standings([row("split", 1.0, 0.0, seed=1), row("auto", 1.0, 0.0, seed=0)])[0].method == "split"


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
    assert [one.method for one in front(summaries)] == ["auto-small", "auto", "naps"]
    assert not of(summaries, "daps").covers
    # Three standard errors below 0.9 and no more is not due to chance that could be called clear.
    error = of(summaries, "split").coverage_error
    assert make_standings([row("split", 2.0, 0.0, coverage=0.9 - 2.9 * error)])[0].covers
    assert not make_standings([row("split", 2.0, 0.0, coverage=0.9 - 3.1 * error)])[0].covers


def test_equal_methods_are_both_on_the_front():
    summaries = make_standings([row("split", 2.0, 0.03), row("auto", 2.0, 0.03)])
    assert len(front(summaries)) == 2


def test_over_graphs_ratios_are_geometric_means_with_students_interval():
    rows = [
        row(method, size, gap, graph=graph)
        for graph, sizes in (("dblp", (2.0, 1.0)), ("actor", (4.0, 4.0)), ("cora-ml", (1.0, 2.0)))
        for method, size, gap in zip(("split", "auto"), sizes, (0.04, 0.01), strict=True)
    ]
    auto = next(one for one in overall(make_standings(rows)) if one.method == "auto")
    assert auto.ratio.mean == pytest.approx(1.0)
    reach = 4.302652729911275 * math.log(2) / math.sqrt(3)  # t with two degrees of freedom; logs −ln 2, 0, ln 2
    assert auto.ratio.high == pytest.approx(math.exp(reach))
    assert auto.ratio.low == pytest.approx(math.exp(-reach))
    assert (auto.worst, auto.worst_on) == (2.0, "cora-ml")
    assert auto.gap.mean == pytest.approx(0.01)
    assert auto.gap_difference.mean == pytest.approx(-0.03)
    assert auto.rank == pytest.approx((1 + 1.5 + 2) / 3)
    assert auto.on_front == 3


def test_intervals_cover_the_mean_as_often_as_they_say():
    from scipy.stats import binomtest

    rng = np.random.default_rng(5)
    intervals = [interval(rng.normal(1.0, 2.0, size=8)) for _ in range(2000)]
    inside = sum(one.low <= 1.0 <= one.high for one in intervals)
    assert binomtest(inside, 2000, 0.95).pvalue > 1e-4


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


def test_what_it_shows_is_said_also_where_the_method_that_chooses_loses(rows):
    sentences = findings([one for one in make_standings(rows) if one.share == 0.3])
    text = " ".join(sentences)
    assert "`auto` has the smallest sets" not in text
    assert "Of the methods that cover on all 2 graphs, `informed` has the smallest sets" in text
    assert "Methods whose coverage is clearly too low on a graph: `split` (actor)." in text
    assert "Methods whose average coverage is far too high, with larger sets than necessary: `naps` (0.970)." in text
    assert "Another method has sets no larger and coverage no less even on actor (`informed`)." in text
    assert "`auto`, which chooses automatically" in text


def test_the_page_has_every_method_on_every_graph(rows):
    text = STUDY.text(rows)
    assert "4 methods on 2 graphs × 1 models (gcn) × 2 seeds × 5 % and 30 % labelled × 1 draw of labels" in text
    assert "| informed | **3.05 ± 0.05** | **1.25 ± 0.05** |" in text
    assert "| auto | 3.95 ± 0.05 | **1.05 ± 0.05** |" in text
    assert "| split | 0.850 | 0.900 |" in text
    assert "4 classes | 1,000 | 1,000 | 0.800 |" in text  # dblp: labels of both shares, accuracy of the model
    assert "| informed | 0.015 | 0.015 | 0.015 | 0.015 |" in text
    for share in ("05", "30"):
        assert f"figures/leaderboard-front-{share}.svg" in text
    assert "Some methods were run on fewer" not in text
    fewer = [one for one in rows if (one["method"], one["seed"]) != ("naps", 1)]
    assert "compared with the others on the common draws: `naps` (4)." in STUDY.text(fewer)


def test_the_page_starts_with_the_picture_and_the_findings_and_folds_the_tables(rows):
    lines = STUDY.text(rows).splitlines()
    first_table = next(number for number, line in enumerate(lines) if line.startswith("|"))
    picture = next(number for number, line in enumerate(lines) if line.startswith("!["))
    assert "leaderboard-front-30.svg" in lines[picture]
    assert picture < next(number for number, line in enumerate(lines) if line.startswith("- ")) < first_table
    opened = 0
    for line in lines:
        opened += line.startswith("<details") - line.startswith("</details")
        assert opened == 1 or not line.startswith("|"), line
    assert opened == 0


def test_rows_of_methods_that_the_table_has_no_more_are_shown(rows):
    old = [one | {"method": "long-gone"} for one in rows if one["method"] == "informed"]
    text = STUDY.text([*rows, *old])
    assert "| long-gone |" in text
    assert len(STUDY.tables(rows)) == 2 * 7


def test_the_page_is_written_with_its_pictures(rows, tmp_path):
    pytest.importorskip("vl_convert")
    page = write_page(tmp_path / "leaderboard.md", STUDY.text(rows), STUDY.page_figures(rows))
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("!["):
            picture = (tmp_path / line.split("(")[1].rstrip(")")).read_text(encoding="utf-8")
            assert all(word in picture for word in (">dblp<", ">actor<", ">Informed<", ">Split APS<", "on the front"))


def test_a_panel_marks_the_front_and_what_does_not_cover(rows):
    pytest.importorskip("altair")
    chart = STUDY.figures(rows)["leaderboard-front-30"].to_dict()
    titles = [panel["title"] for line in chart["vconcat"] for panel in line["hconcat"]]
    assert titles == ["actor", "dblp"]
    first = chart["vconcat"][0]["hconcat"][0]
    points = {one["method"]: one["place"] for one in first["layer"][1]["data"]["values"]}
    assert points == {
        "Split APS": "does not cover",
        "Auto": "not on it",
        "Informed": "on the front",
        "NAPS": "not on it",
    }


def test_without_rows_the_page_says_how_to_get_them():
    assert "napsets reproduce leaderboard" in STUDY.text([])
    assert STUDY.tables([]) == []
    assert STUDY.figures([]) == {}
    assert "No results yet" in STUDY.text([row("auto", 1.0, 0.0)])  # nothing to compare with


def test_rows_that_were_changed_by_hand_are_refused(tmp_path):
    store = RowStore(tmp_path)
    store.append("leaderboard", [row("split", 2.0, 0.03)])
    assert RowStore(tmp_path).rows("leaderboard")
    store.append("leaderboard", [row("auto", 2.0, 0.03) | {"coverage": 1.5}])
    with pytest.raises(FileFormatError, match="a coverage that is between 0 and 1"):
        RowStore(tmp_path).rows("leaderboard")
    other = RowStore(tmp_path / "other")
    other.append("leaderboard", [row("auto", 2.0, 0.03) | {"share": 0.5}])
    with pytest.raises(FileFormatError, match="the key of its settings"):
        RowStore(tmp_path / "other").rows("leaderboard")
