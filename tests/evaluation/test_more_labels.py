"""Sizes with parts of the labels: those of methods that are calibrated on these parts."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS
from napsets.evaluation.more_labels import MoreLabels, SizeWithLabels, more_labels


@pytest.fixture(scope="module")
def inputs():
    data = ns.datasets.dcsbm(3000, mean_degree=20, num_classes=4, num_features=8, seed=0)
    noise = np.random.default_rng(0).dirichlet(np.ones(4), 3000)
    p = 0.3 * np.eye(4)[data.labels] + 0.7 * noise
    return data.graph, p, data.labels, np.arange(800), np.arange(800, 3000)


@pytest.fixture(scope="module")
def comparison(inputs):
    return ns.compare(*inputs, methods=["split", "naps", "naps-exact", "auto"])


@pytest.mark.parametrize("name", ["split", "naps", "naps-exact", "auto"])
def test_all_labels_give_the_size_of_the_comparison(comparison, name):
    more = more_labels(comparison, name)
    last = more.points[-1]
    assert (last.labels, last.size) == (800, pytest.approx(comparison[name].mean_size, abs=1e-12))
    assert [point.labels for point in more.points] == [100, 200, 400, 800]
    assert all(point.low <= point.size <= point.high for point in more.points)
    assert more.low < more.change < more.high


def test_a_part_gives_the_size_of_a_method_calibrated_on_it(comparison, inputs):
    _, p, labels, calibration, nodes = inputs
    order = np.random.default_rng(7).permutation(calibration)
    more = more_labels(comparison, "split", seed=7)
    sets = ns.SplitConformal().calibrate(p, labels, order[:200]).predict(nodes, alpha=0.1)
    assert more.points[1].size == pytest.approx(ns.mean_size(sets), abs=1e-12)


def test_local_thresholds_gain_from_labels_and_have_no_promise(comparison):
    more = more_labels(comparison, "naps")
    assert more.points[0].size > more.points[-1].size
    assert more.coverage is None
    assert len(more.sentences()) == 1


def test_coverage_is_that_of_the_labels_that_set_the_level(comparison):
    more = more_labels(comparison, "naps-exact")
    assert more.points[-1].level_labels == 400
    assert "400 labels set the level, so it is between 86.9 and 92.8 %" in more.sentences()[1]


def test_intervals_hold_the_sizes_of_other_draws(inputs):
    """The size with an eighth of the labels varies with the draw about as much as its interval says."""
    graph, p, labels, _, _ = inputs
    points = []
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(3000)
        compared = ns.compare(graph, p, labels, order[:800], order[800:], methods=["split"])
        points.append(more_labels(compared, "split").points[0])
    mean = np.mean([point.size for point in points])
    held = sum(point.low <= mean <= point.high for point in points)
    assert held >= 33  # with probability 0.95 each, fewer than 33 of 40 have a probability of 0.1 %


def test_too_few_labels_are_not_measured(inputs):
    graph, p, labels, calibration, nodes = inputs
    assert more_labels(ns.compare(graph, p, labels, calibration[:60], nodes, methods=["split"]), "split") is None


@pytest.mark.parametrize(
    ("change", "low", "high", "text"),
    [
        (-0.08, -0.13, -0.03, "would make the sets about 8 % smaller"),
        (0.002, -0.05, 0.05, "would hardly change the size of the sets"),
        (-0.1, -0.4, 0.2, "may or may not make the sets smaller"),
    ],
)
def test_the_sentence_says_how_sure_it_is(change, low, high, text):
    points = [SizeWithLabels(n, n, 2.0, 1.9, 2.1) for n in (400, 800)]
    (sentence,) = MoreLabels("Split APS", points, change, low, high, 0.1, None).sentences()
    assert text in sentence
    assert "from 400 to 800 labels" in sentence
    assert "+0 %" not in sentence


def test_the_report_shows_it(inputs, tmp_path):
    pytest.importorskip("altair")
    compared = ns.compare(*inputs, methods=["split", "auto"], alphas=CURVE_ALPHAS)
    page = ns.report.write_page(tmp_path / "report.html", compared).read_text(encoding="utf-8").replace("\xa0", " ")
    assert "What more labels would bring" in page
    data = ns.report.page_data(compared)
    assert data.specs["more-labels"]["datasets"]["rows"] == data.more.rows()
    assert data.more.sentences()[0] in page
