"""The comparison: every method of the table on the same draws, evaluated by labels that no method saw."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import napsets as ns
from napsets.methods import METHODS, CalibrationData, Method, make_method
from studies.draws import FEATURED, KINDS, WITH_FEATURES, DrawScope, draw, measure, predicted_graph, scaled, train
from studies.leaderboard import KIND
from studies.tables import select

from .conftest import small_graph

SMALL = DrawScope(("small",), ("gcn", "mlp"), (0, 1), (0.2,), 2, ("split", "naps", "informed"))
GCN = {"dataset": "small", "model": "gcn", "seed": 0}


def run(folders, scope):
    KIND.run(scope.cells(), folders)
    return KIND.rows_of(scope.cells(), folders.results)


def test_slow_methods_are_run_with_the_first_model_and_draw_only():
    cells = replace(SMALL, slow=("informed",)).cells()
    spared = select(cells, method="informed")
    assert {(cell["model"], cell["repetition"]) for cell in spared} == {("gcn", 0)}
    assert {cell["seed"] for cell in spared} == {0, 1}
    assert len(select(cells, method="split")) == 8


def test_a_row_is_the_evaluation_of_the_same_sets_by_the_library(folders):
    rows = run(folders, SMALL)
    assert len(rows) == 2 * 2 * 2 * 3
    (row,) = select(rows, model="mlp", seed=1, repetition=1, method="naps")
    predicted = predicted_graph({"dataset": "small", "model": "mlp", "seed": 1}, folders)
    drawn = draw(predicted, 0.2, ("small", "0.2", 1, 1), 1001)
    labelled = drawn.inputs.calibration
    assert (row["labels"], row["nodes"]) == (labelled.size, drawn.rest.size)
    assert labelled.size == int(0.2 * predicted.labels.size)
    assert np.intersect1d(labelled, drawn.rest).size == 0
    naps = ns.NAPS(hops=2, seed=1001).calibrate(predicted.graph, predicted.probabilities, predicted.labels, labelled)
    sets = naps.predict(drawn.rest, alpha=0.1)
    assert row["coverage"] == ns.coverage(sets, predicted.labels)
    assert row["mean_size"] == ns.mean_size(sets)
    for kind in KINDS:
        gap = ns.coverage_gap(sets, predicted.labels, drawn.groups[kind])
        assert row[f"excess_{kind}"] == gap.excess


def test_a_method_with_features_compares_nodes_by_them(folders):
    predicted = predicted_graph(GCN, folders)
    predicted = replace(predicted, features=np.random.default_rng(0).normal(size=(predicted.labels.size, 5)))
    drawn = draw(predicted, 0.3, ("small",), 7)
    auto = ns.Auto(seed=7).calibrate(
        predicted.graph,
        predicted.probabilities,
        predicted.labels,
        drawn.inputs.calibration,
        features=predicted.features,
    )
    assert measure("auto with features", drawn)["mean_size"] == ns.mean_size(auto.predict(drawn.rest, alpha=0.1))
    assert measure("auto", drawn)["mean_size"] != measure("auto with features", drawn)["mean_size"]


@dataclass(frozen=True)
class Spy:
    """A method that looks at what it is given, and then does as split conformal prediction does."""

    seen: list
    seed: int

    def calibrate_data(self, given: CalibrationData):
        self.seen.append((given.calibration, given.truth.copy()))
        return Method(seed=self.seed).calibrate_data(given)


def test_all_methods_get_the_same_draw_and_see_no_label_that_evaluates(folders, monkeypatch):
    seen = []
    for name in ("spy", "other-spy"):
        monkeypatch.setitem(METHODS, name, lambda seed=0, alpha=0.1: Spy(seen, seed))
    run(folders, replace(SMALL, seeds=(0,), repetitions=1, methods=("spy", "other-spy")))
    assert len(seen) == 4  # two methods, two models
    for calibration, labels in seen:
        assert np.array_equal(calibration, seen[0][0])
        assert np.array_equal(np.flatnonzero(labels >= 0), calibration)


def test_a_method_that_cannot_run_is_left_out_with_its_reason_and_the_others_go_on(folders, monkeypatch):
    def lacking():
        raise ns.MissingDependencyError("nothing", "learn")

    monkeypatch.setitem(METHODS, "lacking", lacking)
    with pytest.warns(RuntimeWarning, match=r"lacking is left out: .*pip install 'napsets\[learn\]'"):
        rows = run(folders, replace(SMALL, methods=("lacking", "split")))
    assert [row["method"] for row in rows] == ["split"] * 8


def test_features_are_brought_to_one_scale():
    import scipy.sparse

    rng = np.random.default_rng(0)
    words = scipy.sparse.random_array((1600, 60), density=0.1, rng=rng, format="csr")
    data = replace(small_graph(0), features=words.astype(np.float32))
    rows = np.sqrt((scaled(data).features.toarray() ** 2).sum(axis=1))
    assert rows[rows > 0] == pytest.approx(1.0, rel=1e-5)
    few = scaled(replace(data, features=rng.normal(3.0, 5.0, size=(1600, 4)))).features
    assert np.allclose(few.mean(axis=0), 0.0, atol=1e-5)
    assert np.allclose(few.std(axis=0), 1.0, atol=1e-5)


@pytest.mark.gnn
def test_a_trained_model_is_kept_as_its_rounded_probabilities_of_the_test_nodes():
    data, rng = small_graph(0), np.random.default_rng(0)
    data = replace(data, features=np.eye(6)[data.labels] + rng.normal(size=(data.num_nodes, 6)))
    predictions = train(GCN | {"model": "mlp"}, data)
    assert np.array_equal(predictions.nodes, data.test)
    assert (predictions.probabilities.astype(float) * 2**15 % 1 == 0).all()
    assert predictions.accuracy > 0.4  # of six classes


@pytest.mark.gnn
def test_every_method_of_the_table_that_needs_no_extra_runs(folders):
    """One draw with all methods: none may be left out for another reason than an extra that is missing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        rows = run(folders, DrawScope(("small",), ("gcn",), (0,), (0.3,)))
    reasons = [str(one.message) for one in caught if "is left out" in str(one.message)]
    assert all("pip install" in reason for reason in reasons), reasons
    assert len(rows) + len(reasons) == len(METHODS) + len(FEATURED)
    for row in rows:
        assert make_method(row["method"].removesuffix(WITH_FEATURES)) is not None
        assert 0.8 < row["coverage"] <= 1.0, row["method"]
