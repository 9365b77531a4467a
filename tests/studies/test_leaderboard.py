"""The comparison: whatever the table holds, on the same draws, judged by labels that no method saw."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import napsets as ns
from napsets.datasets.registry import read_collected
from napsets.errors import MissingDependencyError
from napsets.evaluation.verdict_words import level_labels
from napsets.methods import METHODS, CalibrationData, Method, make_method
from napsets.studies import Laboratory
from napsets.studies.draws import KINDS, DrawScope, draw, has_graph, scaled
from napsets.studies.laboratory import PredictionCache
from napsets.studies.leaderboard import LeaderboardCell, LeaderboardStudy

from .conftest import guess, small_graph

STUDY = LeaderboardStudy()
SMALL = DrawScope(("small",), ("gcn", "mlp"), (0, 1), (0.2,), 2, ("split", "naps", "informed"))


def run(laboratory, board, **options):
    laboratory.run(STUDY.cells(board), **options)
    return laboratory.store.rows("leaderboard")


def measured(rows):
    """Everything but the time it took."""
    return {row["key"]: {name: row[name] for name in row if name != "seconds"} for row in rows}


def test_without_names_it_takes_whatever_the_table_holds(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", lambda settings: None)
    names = [cell.method for cell in STUDY.cells(replace(SMALL, methods=None))]
    assert set(names) == set(METHODS)
    assert "toy" in names


def test_the_quick_one_is_part_of_the_full_one():
    assert {cell.key for cell in STUDY.cells(STUDY.quick)} < {cell.key for cell in STUDY.cells(STUDY.full)}
    assert len(STUDY.full.seeds) == 5
    assert len(STUDY.full.datasets) == 12
    assert {"graphsage-mean", "gcn", "mlp"} == set(STUDY.full.models)


def test_what_takes_long_is_run_on_the_first_model_and_draw_alone():
    cells = STUDY.cells(replace(SMALL, sparing=("informed",)))
    spared = [cell for cell in cells if cell.method == "informed"]
    assert {(cell.model, cell.repetition) for cell in spared} == {("gcn", 0)}
    assert {cell.seed for cell in spared} == {0, 1}
    assert len([cell for cell in cells if cell.method == "split"]) == 8


def test_a_row_says_what_the_library_says_of_the_same_sets(laboratory):
    rows = run(laboratory, SMALL)
    assert len(rows) == 2 * 2 * 2 * 3
    cell = LeaderboardCell("small", "mlp", 1, 0.2, 1, "naps")
    (row,) = [row for row in rows if row["key"] == cell.key]
    data = small_graph(1)
    predicted = cell.prepare(data, guess(cell, data).take(data.test))
    drawn = draw(predicted, 0.2, ("small", "0.2", 1, 1), 1001)
    labelled = drawn.inputs.calibration
    assert (row["labels"], row["nodes"]) == (labelled.size, drawn.rest.size)
    assert labelled.size == int(0.2 * data.test.size)
    assert np.intersect1d(labelled, drawn.rest).size == 0
    naps = ns.NAPS(hops=2, seed=1001)
    naps.calibrate(predicted.graph, predicted.probabilities, predicted.labels, labelled)
    sets = naps.predict(drawn.rest, alpha=0.1)
    assert row["coverage"] == ns.coverage(sets, predicted.labels)
    assert row["mean_size"] == ns.mean_size(sets)
    assert row["full_rate"] == ns.full_rate(sets)
    for kind in KINDS:
        gap = ns.coverage_gap(sets, predicted.labels, drawn.groups[kind])
        assert row[f"gap_{kind}"] == gap.gap
        assert row[f"chance_{kind}"] == gap.chance
        assert row[f"under_{kind}"] + row[f"over_{kind}"] == pytest.approx(row[f"gap_{kind}"])
        assert row[f"share_{kind}"] == gap.share


@dataclass(frozen=True)
class Spy:
    """A method that looks at what it is given, and then does as split conformal prediction does."""

    seen: list
    seed: int

    def fit(self, given: CalibrationData):
        self.seen.append((given.calibration, given.truth.copy()))
        return Method(seed=self.seed).fit(given)


def test_all_methods_get_the_same_draw_and_see_no_label_that_judges(laboratory, monkeypatch):
    seen = []
    for name in ("spy", "other-spy"):
        monkeypatch.setitem(METHODS, name, lambda settings: Spy(seen, settings.seed))
    run(laboratory, replace(SMALL, seeds=(0,), repetitions=1, methods=("spy", "other-spy")))
    assert len(seen) == 4  # two methods, two models
    for calibration, labels in seen:
        assert np.array_equal(calibration, seen[0][0])
        assert np.array_equal(np.flatnonzero(labels >= 0), calibration)


def test_other_draws_and_seeds_label_other_nodes(laboratory):
    data = small_graph(0)
    cell = LeaderboardCell("small", "gcn", 0, 0.2, 0, "split")
    predicted = cell.prepare(data, guess(cell, data).take(data.test))
    drawn = [draw(predicted, 0.2, ("small", "0.2", *numbers), 0) for numbers in ((0, 0), (0, 1), (1, 0))]
    sets = [set(one.inputs.calibration.tolist()) for one in drawn]
    assert sets[0] != sets[1] != sets[2] != sets[0]
    again = draw(predicted, 0.2, ("small", "0.2", 0, 0), 0)
    assert set(again.inputs.calibration.tolist()) == sets[0]
    with pytest.raises(ns.InvalidInputError, match="`share` must label some of 1120 nodes and not all; got 1e-05"):
        draw(predicted, 1e-5, ("small",), 0)


def test_a_method_that_cannot_run_is_left_out_with_its_reason_and_the_others_go_on(laboratory, monkeypatch):
    def lacking(settings):
        raise MissingDependencyError("nothing", "learn")

    monkeypatch.setitem(METHODS, "lacking", lacking)
    rows = run(laboratory, replace(SMALL, methods=("lacking", "split")))
    assert {row["method"] for row in rows} == {"split"}
    assert len(rows) == 8
    assert "pip install 'napsets[learn]'" in laboratory.skipped["lacking"]


def test_a_method_that_joins_the_table_later_is_all_that_is_run(laboratory, monkeypatch, small, tmp_path):
    first = run(laboratory, SMALL)
    seen = []
    monkeypatch.setitem(METHODS, "spy", lambda settings: Spy(seen, settings.seed))
    later = Laboratory(tmp_path / "results", predictor=guess)
    assert later.run(STUDY.cells(replace(SMALL, methods=(*SMALL.methods, "spy")))) == 8
    rows = {row["key"]: row for row in later.store.rows("leaderboard")}
    assert all(rows[row["key"]] == row for row in first)
    plain = {tuple(row[k] for k in ("model", "seed", "repetition")): row for row in first if row["method"] == "split"}
    for row in rows.values():
        if row["method"] == "spy":  # which does as split does, on the same draws
            assert row["mean_size"] == plain[row["model"], row["seed"], row["repetition"]]["mean_size"]


def test_a_run_that_is_stopped_keeps_whole_draws_and_goes_on_from_there(laboratory, monkeypatch, small, tmp_path):
    calls = []

    def stopping(settings):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return Method(seed=settings.seed)

    board = replace(SMALL, methods=("split", "stopping"))
    monkeypatch.setitem(METHODS, "stopping", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(laboratory, board)
    kept = laboratory.store.rows("leaderboard")
    assert len(kept) == 2 * 2  # two draws with both methods, nothing of the third
    rows = run(Laboratory(tmp_path / "results", predictor=guess), board)
    assert len(rows) == 2 * 8
    assert measured(kept).items() <= measured(rows).items()


@pytest.fixture
def collected(tmp_path):
    """A small graph under the name of one of the collection, and the predictions of its models, so that none is
    trained."""
    import scipy.sparse

    data = small_graph(0)
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array((data.num_nodes, 60), density=0.1, rng=rng, format="csr")
    root, results = tmp_path / "graphs", tmp_path / "results"
    root.mkdir()
    np.savez(
        root / "cora_ml.npz", n=data.num_nodes, adj_indptr=data.graph.indptr, adj_indices=data.graph.indices,
        x_indptr=x.indptr, x_indices=x.indices, x_data=x.data.astype(np.float32), x_shape=np.array(x.shape),
        directed=False, labels=data.labels,
    )  # fmt: skip
    there = LeaderboardCell("cora-ml", "gcn", 0, 0.2, 0, "split").load(root)
    keep = PredictionCache(results / "predictions")
    for model in STUDY.full.models:
        cell = LeaderboardCell("cora-ml", model, 0, 0.2, 0, "split")
        predictions = guess(cell, there).take(there.test)
        replace(predictions, probabilities=predictions.probabilities.astype(np.float32)).save(keep.path(cell))
    return root, results


ONE = DrawScope(("cora-ml",), ("gcn", "mlp"), (0,), (0.2,), 1, ("split", "naps"))


def test_processes_side_by_side_find_what_one_finds(collected, tmp_path):
    root, results = collected
    alone = run(Laboratory(results, root), ONE)
    (results / "predictions").rename(tmp_path / "kept")
    both = tmp_path / "both"
    both.mkdir()
    (tmp_path / "kept").rename(both / "predictions")
    steps = []
    side_by_side = run(Laboratory(both, root), ONE, jobs=2, progress=lambda *now: steps.append(now))
    assert measured(side_by_side) == measured(alone)
    assert steps[-1] == (4, 4)
    assert len(list((both / "leaderboard").iterdir())) == 1  # one file, as one run leaves


def test_the_command_runs_compares_and_writes_the_page(collected, tmp_path, run):
    pytest.importorskip("vl_convert")
    root, results = collected
    options = ("--results", results, "--root", root, "--seeds", 1, "--share", 0.2)

    def call(*more):
        return run("reproduce", "leaderboard", *options, *more)

    page = tmp_path / "docs" / "leaderboard.md"
    done = call("--dataset", "cora-ml", "--dataset", "dblp", "--method", "split", "--method", "auto", "--page", page)
    assert done.exit_code == 0, done.output
    assert "20 % labelled, all models: relative to split" in done.stdout
    assert "left out, because --root does not hold their files: dblp" in done.stderr
    text = page.read_text(encoding="utf-8")
    assert "2 methods on 1 graphs × 3 models" in text
    assert (tmp_path / "docs" / "figures" / "leaderboard-front-20.svg").read_text().startswith("<svg")
    again = call("--dataset", "cora-ml", "--method", "split", "--rows-only", "--json")
    answer = json.loads(again.stdout)
    assert answer["rows"] == 6
    wrong = call("--method", "atuo")
    assert wrong.exit_code != 0
    assert "did you mean 'auto'?" in wrong.stderr
    assert "is not an option of leaderboard" in call("--preset", "paper").stderr
    assert "must be above 0 and below 1; got 1.5" in call("--share", "1.5").stderr
    assert "is not an option of sbm" in run("reproduce", "sbm", "--method", "auto").stderr
    nowhere = run("reproduce", "leaderboard", "--results", results, "--root", tmp_path / "none", "--quick")
    assert nowhere.exit_code != 0
    assert "must be the folder that holds cora_ml.npz; there is no folder" in " ".join(nowhere.stderr.split())


def test_the_folder_of_the_graphs_is_an_argument_and_found_nowhere_else(collected, tmp_path, monkeypatch):
    root, results = collected
    (tmp_path / "benchmarks").mkdir()
    root.rename(tmp_path / "benchmarks" / "data")
    monkeypatch.chdir(tmp_path)  # where the project itself would keep them
    with pytest.raises(ns.InvalidInputError, match=r"`root` must be the folder that holds cora_ml.npz; .* folder data"):
        Laboratory(results).run(STUDY.cells(ONE))
    assert len(run(Laboratory(results, "benchmarks/data"), ONE)) == 4
    (tmp_path / "empty").mkdir()
    assert Laboratory(tmp_path / "other", "empty").run(STUDY.cells(ONE)) == 0
    with pytest.raises(ns.NapsetsError, match=r"cora_ml\.npz"):
        STUDY.cells(ONE)[0].load("empty")


def test_the_labels_that_set_the_level_are_counted_by_the_one_rule(laboratory, monkeypatch):
    """Of a method that holds labels out but whose level is not exact, all labels count, as in a verdict."""

    class Nominal:
        def __init__(self, calibrated):
            self.calibrated, self.is_exact = calibrated, False

        def __getattr__(self, name):
            return getattr(self.calibrated, name)

    class Learns:
        def fit(self, inputs):
            return Nominal(make_method("naps-exact").fit(inputs))

    monkeypatch.setitem(METHODS, "learns", lambda settings: Learns())
    board = replace(SMALL, seeds=(0,), repetitions=1, models=("gcn",), methods=("split", "naps-exact", "learns"))
    rows = {row["method"]: row for row in run(laboratory, board)}
    assert {name: row["level_labels"] for name, row in rows.items()} == {"split": 224, "naps-exact": 112, "learns": 224}
    (cell,) = STUDY.cells(replace(board, methods=("naps-exact",)))
    drawn = draw(laboratory.test_graph(cell), cell.share, cell.draw_name, cell.draw_seed)
    assert level_labels(make_method("naps-exact").fit(drawn.inputs)) == 112


def test_graphs_are_there_where_their_files_are(collected):
    root, _ = collected
    assert has_graph("amazon-computers", root)
    assert has_graph("cora-ml", root)
    assert not has_graph("dblp", root)


def test_features_are_brought_to_one_scale(collected):
    root, _ = collected
    data = read_collected(root / "cora_ml.npz")
    rows = np.sqrt((scaled(data).features.toarray() ** 2).sum(axis=1))
    assert rows[rows > 0] == pytest.approx(1.0, rel=1e-5)
    dense = scaled(replace(data, features=data.features.toarray())).features
    assert np.allclose(dense, scaled(data).features.toarray(), atol=1e-6)
    few = scaled(replace(data, features=np.random.default_rng(0).normal(3.0, 5.0, size=(data.num_nodes, 4)))).features
    assert np.allclose(few.mean(axis=0), 0.0, atol=1e-5)
    assert np.allclose(few.std(axis=0), 1.0, atol=1e-5)


@pytest.mark.gnn
def test_predictions_are_trained_once_and_then_read(tmp_path, monkeypatch):
    import napsets.gnn

    data = small_graph(0)
    rng = np.random.default_rng(0)
    data = replace(data, features=np.eye(6)[data.labels] + rng.normal(size=(data.num_nodes, 6)))
    cell = LeaderboardCell("small", "mlp", 0, 0.2, 0, "split")
    keep = PredictionCache(tmp_path)
    first = keep(cell, data)
    assert first.settings["train_seconds"] >= 0
    assert np.array_equal(first.nodes, data.test)
    assert (first.probabilities.astype(float) * 2**15 % 1 == 0).all()
    assert first.accuracy > 0.4  # of six classes

    def never(*_, **__):
        raise AssertionError("a model was trained twice")

    monkeypatch.setattr(napsets.gnn, "train", never)
    assert np.array_equal(keep(cell, data).probabilities, first.probabilities)


@pytest.mark.gnn
def test_every_method_of_the_table_that_needs_no_extra_runs(laboratory):
    """One draw with all methods: none may be skipped for another reason than an extra that is missing."""
    rows = run(laboratory, DrawScope(("small",), ("gcn",), (0,), (0.3,), 1))
    assert {row["method"] for row in rows} | set(laboratory.skipped) == set(METHODS)
    assert all("pip install" in reason for reason in laboratory.skipped.values()), laboratory.skipped
    for row in rows:
        assert make_method(row["method"]) is not None
        assert 0.8 < row["coverage"] <= 1.0, row["method"]
