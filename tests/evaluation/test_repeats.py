"""A comparison over repeated random splits: the same as comparing on each split, and summing up."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.repeats import latex_table, markdown_table, random_splits
from worlds import draw_world

METHODS = ["split", "naps-exact"]


@pytest.fixture(scope="module")
def world():
    inputs = draw_world(0, 300, 3, 1500, other=1.0)
    del inputs["nodes"], inputs["calibration"]
    return inputs | {"calibration": np.arange(120), "nodes": np.arange(120, 300)}


def test_every_split_is_a_comparison_on_its_division(world):
    repeated = ns.compare(**world, methods=METHODS, splits=4, seed=5)
    divisions = random_splits(world["calibration"], world["nodes"], 4, seed=5)
    for split, (calibration, nodes) in enumerate(divisions):
        assert (calibration.size, nodes.size) == (120, 180)
        assert np.array_equal(np.union1d(calibration, nodes), np.arange(300))
        single = ns.compare(**world | {"calibration": calibration, "nodes": nodes}, methods=METHODS, seed=5 + split)
        for row, expected in zip(repeated.splits[split], single.rows(), strict=True):
            assert row["mean_size"] == expected["mean_size"]
            assert row["coverage"] == expected["coverage"]


def test_the_table_has_means_and_standard_deviations(world):
    repeated = ns.compare(**world, methods=METHODS, splits=5)
    sizes = repeated.values("naps-exact", "mean_size")
    row = repeated.to_pandas().loc["naps-exact"]
    assert (row["mean_size"], row["mean_size_sd"]) == pytest.approx((sizes.mean(), sizes.std(ddof=1)))
    assert row["splits"] == len(repeated) == 5
    text = f"{sizes.mean():.2f} ± {sizes.std(ddof=1):.2f}"
    assert text in str(repeated)
    assert text in repeated.to_markdown()
    assert text.replace("±", r"$\pm$") in repeated.to_latex()
    assert "5 random splits at alpha = 0.1: 120 labels calibrate, 180 evaluate" in str(repeated)
    assert "<table>" in repeated._repr_html_()


def test_a_single_split_has_no_deviation(world):
    repeated = ns.compare(**world, methods=METHODS, splits=1)
    assert "±" not in repeated.to_markdown()
    assert np.isnan(repeated.rows()[0]["mean_size_sd"])


def test_intervals_are_compared_by_width():
    rng = np.random.default_rng(0)
    ring = ns.Graph.from_edge_index(np.stack([np.arange(200), np.roll(np.arange(200), 1)]), num_nodes=200)
    x, half = rng.normal(size=200), np.arange(200) % 2 == 0
    outputs, targets = np.column_stack([x - 1, x + 1]), x + rng.normal(size=200)
    repeated = ns.compare(ring, outputs, targets, half, ~half, methods=["split"], score="cqr", splits=2)
    assert repeated.size == "finite_width"
    assert "finite width" in repeated.to_markdown()


def test_a_label_may_not_calibrate_and_evaluate(world):
    with pytest.raises(ns.InvalidInputError, match="no calibration nodes"), pytest.warns(ns.NapsetsWarning):
        ns.compare(**world | {"nodes": np.arange(100, 300)}, methods=METHODS, splits=2)
    with pytest.raises(ns.InvalidInputError, match="`splits` must be at least 1"):
        ns.compare(**world, methods=METHODS, splits=0)


def test_unknown_methods_and_measures_are_named(world):
    repeated = ns.compare(**world, methods=METHODS, splits=2)
    with pytest.raises(KeyError, match="split, naps-exact"):
        repeated.values("auto", "mean_size")
    with pytest.raises(KeyError, match="mean_size"):
        repeated.values("split", "size")


def test_progress_counts_the_splits(world):
    seen = []
    ns.compare(**world, methods=["split"], splits=3, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(180, 540), (360, 540), (540, 540)]


def test_a_plot_shows_every_split_and_the_means(world):
    pytest.importorskip("altair")
    drawn = ns.compare(**world, methods=METHODS, splits=3).plot().to_dict()
    assert len(drawn["layer"][1]["data"]["values"]) == 6


def test_names_cannot_break_a_table():
    table = [["method", "size"], ["50 % | a_b\\", "∞"]]
    assert markdown_table(table).splitlines()[2] == "| 50 % \\| a_b\\ | ∞ |"
    assert r"50 \% | a\_b\textbackslash{} & $\infty$ \\" in latex_table(table)
