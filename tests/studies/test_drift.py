"""The drift study: strategies that do what their names say, alarms as measured, and graphs of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import napsets as ns
from studies import drift
from studies.drift import (
    KIND,
    Arrivals,
    follow,
    read_timed,
    stream_predictions,
    train_softmax,
    trained,
)  # fmt: skip
from studies.rows import Folders
from worlds import guess

ROOT = Path(__file__).parents[2]
FOLDERS = Folders(ROOT / "results", ROOT / "benchmarks" / "data")


@pytest.fixture(scope="module")
def rows():
    return KIND.rows_of(drift.drift_cells(), FOLDERS.results)


@pytest.fixture(scope="module")
def arrivals():
    """Two classes; the second half of the stream is harder."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=900)
    probabilities = guess(labels, np.where(np.arange(900) < 600, 2.0, 0.5), rng)
    return Arrivals(1.0 - probabilities, labels, 300)


def chosen(rows, graph, strategy, order="time"):
    return next(
        row for row in rows
        if (row["dataset"], row["strategy"], row["order"], row["delay"]) == (graph, strategy, order, 0)
    )  # fmt: skip


def test_static_sets_are_those_of_split_conformal_prediction(arrivals):
    split = ns.SplitConformal(score="thr").calibrate(1.0 - arrivals.scores, arrivals.labels, np.arange(300))
    sets = split.predict(np.arange(300, 900), 0.1)
    stream = follow(arrivals, "static", alpha=0.1)
    assert np.array_equal(sets.sizes, stream.sizes)
    assert np.array_equal(~sets.contains(arrivals.labels), stream.missed)


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize(("strategy", "width"), [("growing", 900), ("window", 500)])
def test_growing_and_window_calibrate_on_the_labels_that_have_come(arrivals, strategy, width, delay):
    stream = follow(arrivals, strategy, alpha=0.1, delay=delay)
    for t in (0, 1, 250, 599):
        past = arrivals.at_truth[: 300 + max(t - delay, 0)][-width:]
        place = int(np.ceil((past.size + 1) * 0.9 - 1e-9))
        assert stream.sizes[t] == (arrivals.scores[300 + t] <= np.sort(past)[place - 1]).sum()


@pytest.mark.parametrize("delay", [0, 7])
def test_steered_levels_are_those_of_the_p_values(arrivals, delay):
    stream = follow(arrivals, "dtaci", alpha=0.1, delay=delay)
    p_values = []
    for t in range(600):
        past = arrivals.at_truth[: 300 + max(t - delay, 0)]
        p_values.append((1 + (past >= arrivals.at_truth[300 + t]).sum()) / (past.size + 1))
    assert np.array_equal(stream.levels, ns.Steered("dtaci").levels(p_values, 0.1, delay=delay))
    assert np.array_equal(stream.missed, np.array(p_values) <= stream.levels)


def test_nothing_is_seen_before_its_time():
    """Words of later nodes change nothing about the probabilities of earlier ones."""
    data = read_timed("eips", FOLDERS)
    from dataclasses import replace

    calibration, stream, before = train_softmax(data, "time", 0)
    last = stream[-100:]
    features = data.features.copy().tolil()
    features[last] = 1.0
    after = train_softmax(replace(data, features=features.tocsr()), "time", 0)[2]
    untouched = calibration.size + stream.size - 100
    assert np.array_equal(before[:untouched], after[:untouched])
    assert not np.array_equal(before[untouched:], after[untouched:])


def test_models_that_are_trained_again_are_those_that_were_kept():
    """To the digits that any processor gives: the loss is convex, and the search goes to its end."""
    cell = drift.drift_cells(["metamath-nf"])[0]
    kept, again = stream_predictions(cell, FOLDERS), trained(cell, read_timed("metamath-nf", FOLDERS))
    assert np.array_equal(kept.nodes, again.nodes)
    assert np.abs(kept.probabilities - again.probabilities).max() < 1e-4


def test_alarms_ring_where_the_world_drifts_and_nowhere_else(rows):
    metamath, mathlib, spack = (chosen(rows, graph, "static") for graph in ("metamath-nf", "mathlib", "spack"))
    assert metamath["coverage"] < 0.6
    assert metamath["coverage_alarm"] <= 15
    assert mathlib["coverage_alarm"] <= 30
    # Exchangeability is gone, and coverage is not.
    assert spack["coverage_alarm"] is None
    assert spack["exchangeability_alarm"] <= 100
    assert spack["coverage"] > 0.88
    for row in rows:
        if row["order"] == "random":
            assert row["coverage_alarm"] is row["exchangeability_alarm"] is None


@pytest.mark.parametrize("graph", ["metamath-nf", "mathlib", "spack", "eips"])
def test_steering_brings_the_average_back_and_evens_it_out(rows, graph):
    static, growing, aci, dtaci = (chosen(rows, graph, name) for name in ("static", "growing", "aci", "dtaci"))
    for steered in (aci, dtaci):
        assert abs(steered["coverage"] - 0.9) <= 0.02
        assert steered["worst_window"] > max(static["worst_window"], growing["worst_window"])


def write_graph(folder, name="my_graph", **changes):
    rng = np.random.default_rng(4)
    nodes, labels = 400, rng.integers(3, size=400)
    words = rng.poisson(0.3 + 1.5 * (np.arange(9) % 3 == labels[:, None]), size=(nodes, 9))
    import scipy.sparse as sp

    x, pairs = sp.csr_array(words), rng.integers(nodes, size=(2, 900))
    links = sp.csr_array((np.ones(900), pairs), shape=(nodes, nodes))
    links = ((links + links.T) > 0).astype(float)
    links.setdiag(0)
    links.eliminate_zeros()
    parts = {
        "n": nodes, "adj_indptr": links.indptr, "adj_indices": links.indices, "labels": labels,
        "x_indptr": x.indptr, "x_indices": x.indices, "x_data": x.data, "x_shape": x.shape,
        "node_time": rng.integers(1000, size=nodes),
    } | changes  # fmt: skip
    np.savez(folder / f"{name}.npz", **{key: value for key, value in parts.items() if value is not None})
    return folder


def test_graphs_of_ones_own_are_followed_too(studies, tmp_path):
    write_graph(tmp_path)
    call = ("drift", "--root", tmp_path, "--results", tmp_path / "results", "--dataset", "my-graph")
    code, shown, _ = studies(*call)
    assert code == 0
    assert "Strategies in the order of time" in shown
    rows = KIND.read(tmp_path / "results")
    assert len(rows) == 2 * 5 + 3 * 2
    assert {row["dataset"] for row in rows} == {"my-graph"}
    studies(*call, "--rows-only", "--page", tmp_path / "drift.md")
    assert "my-graph: calibrated once" in (tmp_path / "drift.md").read_text(encoding="utf-8")


def test_graphs_without_time_and_without_file_are_told(studies, tmp_path):
    write_graph(tmp_path, node_time=None)
    call = ("drift", "--root", tmp_path, "--results", tmp_path / "results")
    assert "has no node_time" in studies(*call, "--dataset", "my-graph")[2]
