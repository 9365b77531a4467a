"""`napsets inspect` explains the set that `napsets predict` wrote, whatever the settings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from napsets.files import read_sets
from worlds import CLASSES, make_world, write


@pytest.fixture
def sparse(tmp_path):
    return make_world(tmp_path / "sparse", degree=2)


def test_a_node_that_fell_back_shows_both_supports(tmp_path, run, sparse):
    flags = ["--fallback", "global", "--hops", 1]
    assert run("predict", *sparse.files, *flags, "-o", tmp_path / "s.parquet").exit_code == 0
    sets = read_sets(tmp_path / "s.parquet").sets
    row = int((sets.support == 60).argmax())
    node = sparse.ids[sparse.rest[row]]
    answer = json.loads(run("inspect", "--node", node, *sparse.files, *flags, "--json").stdout)
    assert (answer["threshold"], answer["support"]) == (sets.thresholds[row], 60)
    assert answer["effective_size"] == 60
    assert answer["fell_back"]
    assert answer["neighbourhood_support"] == sum(hop["calibration"] for hop in answer["hops"]) < 10
    shown = run("inspect", "--node", node, *sparse.files, *flags).stdout
    assert "support of its neighbourhood" in shown
    assert "of all calibration nodes is used instead" in " ".join(shown.split())


def test_a_set_that_would_be_empty_gets_its_best_label_and_a_reason(tmp_path, run, sparse):
    flags = ["--no-empty", "--alpha", 0.7, "--hops", 3]
    run("predict", *sparse.files, "--alpha", 0.7, "--hops", 3, "-o", tmp_path / "empty.parquet")
    run("predict", *sparse.files, *flags, "-o", tmp_path / "s.parquet")
    empty, sets = (read_sets(tmp_path / name).sets for name in ("empty.parquet", "s.parquet"))
    row = int((empty.sizes == 0).argmax())
    node = sparse.ids[sparse.rest[row]]
    answer = json.loads(run("inspect", "--node", node, *sparse.files, *flags, "--json").stdout)
    assert answer["set"] == [CLASSES[y] for y in sets.labels()[row]]
    assert len(answer["set"]) == 1
    assert answer["reason"].endswith("the set contains the best label instead of being empty.")
    answer = json.loads(run("inspect", "--node", node, *sparse.files, *flags[1:], "--json").stdout)
    assert answer["set"] == []
    assert "is used instead" not in answer["reason"]


@pytest.fixture
def many_classes(tmp_path):
    """A star of nodes with 60 classes: SAPS gives scores far above 2."""
    rng = np.random.default_rng(0)
    n, classes = 41, 60
    p = rng.dirichlet(np.ones(classes), n)
    columns = {"node": np.arange(n)} | {f"c{y}": p[:, y] for y in range(classes)}
    labels = {"node": np.arange(1, n), "label": [f"c{y}" for y in rng.integers(0, classes, n - 1)]}
    edges = {"source": np.zeros(n - 1, dtype=int), "target": np.arange(1, n)}
    files = {"edges": edges, "probabilities": columns, "labels": labels}
    return [text for name, table in files.items() for text in (f"--{name}", write(tmp_path / f"{name}.csv", table))]


def test_scores_nearest_to_a_threshold_above_two_are_listed(run, many_classes):
    arguments = ["inspect", "--node", 0, *many_classes, "--score", "saps", "--json", "--neighbours"]
    everyone = json.loads(run(*arguments, 1000).stdout)
    threshold = everyone["threshold"]
    assert threshold > 3
    scores = np.array([row["score"] for row in everyone["neighbours"]])
    nearest = np.sort(scores[np.argsort(abs(scores - threshold))[:5]])
    answer = json.loads(run(*arguments, 5).stdout)
    assert [row["score"] for row in answer["neighbours"]] == nearest.tolist()
    assert threshold in nearest


def test_without_a_threshold_the_largest_scores_are_listed(run, many_classes):
    arguments = ["inspect", "--node", 0, *many_classes, "--score", "saps", "--alpha", 0.001, "--json", "--neighbours"]
    everyone = json.loads(run(*arguments, 1000).stdout)
    assert everyone["threshold"] == "Infinity"
    answer = json.loads(run(*arguments, 5).stdout)
    assert answer["neighbours"] == everyone["neighbours"][-5:]


@pytest.mark.parametrize("method", ["informed", "auto"])
def test_evidence_is_listed_by_kind_with_its_factors(tmp_path, run, method):
    world = make_world(tmp_path / "w", nodes=300)
    node = world.ids[world.rest[0]]
    arguments = ["inspect", "--node", node, *world.files, "--method", method]
    answer = json.loads(run(*arguments, "--json").stdout)
    evidence = answer["evidence"]
    assert [row["label"] for row in evidence["outputs"]] == list(CLASSES)
    assert [row["informed"] for row in evidence["outputs"]] == [row["probability"] for row in answer["labels"]]
    assert [row["model"] for row in evidence["outputs"]] == world.probabilities[world.rest[0]].tolist()
    for row in evidence["outputs"]:
        factors = [kind["factors"][row["label"]] for kind in evidence["kinds"]]
        np.testing.assert_allclose(np.prod(factors) * row["model"], row["informed"], rtol=1e-9)
    assert {"model", "around", "alike", "recalibration"} <= {kind["kind"] for kind in evidence["kinds"]}
    labels = dict(zip(world.ids.tolist(), np.array(CLASSES)[world.labels], strict=True))
    assert 0 < len(evidence["labelled"]) <= 10
    assert all(labels[row["node"]] == row["label"] for row in evidence["labelled"])
    assert (answer["choice"] is None) == (method == "informed")
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.stderr
    for words in ("factors of a column multiply", "labels of neighbours", "corrections of the model", "with evidence"):
        assert words in " ".join(shown.stdout.split())


def test_without_evidence_none_is_told(run, sparse):
    answer = json.loads(run("inspect", "--node", sparse.ids[sparse.rest[0]], *sparse.files, "--json").stdout)
    assert answer["evidence"] is None
    assert "speak" not in run("inspect", "--node", sparse.ids[sparse.rest[0]], *sparse.files).stdout


def test_what_auto_chose_for_an_alpha_is_what_is_explained(tmp_path, run):
    world = make_world(tmp_path / "w", nodes=300)
    flags = ["--method", "auto", "--alpha", 0.3]
    assert run("predict", *world.files, *flags, "-o", tmp_path / "s.parquet").exit_code == 0
    sets = read_sets(tmp_path / "s.parquet").sets
    for row in (0, 40, 120):
        node = world.ids[world.rest[row]]
        answer = json.loads(run("inspect", "--node", node, *world.files, *flags, "--json").stdout)
        assert answer["threshold"] == sets.thresholds[row]
