"""What new users try first: labels that are not a random sample, options without an effect, quiet results."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from worlds import amazon_by_heart, make_world


@pytest.fixture
def larger(tmp_path):
    return make_world(tmp_path / "larger", nodes=600, degree=12)


@pytest.fixture(scope="module")
def amazon(tmp_path_factory):
    """Files of Amazon Computers with a model that knows its training labels by heart."""
    folder, world = tmp_path_factory.mktemp("amazon"), amazon_by_heart()
    graph, outputs = world["graph"], world["outputs"]
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    edges = {"source": source, "target": graph.indices}
    probabilities = {"node": np.arange(len(outputs))} | {f"c{k}": column for k, column in enumerate(outputs.T)}
    for name, columns in (("edges", edges), ("probabilities", probabilities)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    for name in ("train", "confident", "random"):
        labels = [f"c{k}" for k in world["labels"][world[name]]]
        pq.write_table(pa.table({"node": world[name], "label": labels}), folder / f"{name}.parquet")
    return folder, world


def predict_amazon(run_json, folder, labels, target, *more, code=0):
    files = ["-e", folder / "edges.parquet", "-p", folder / "probabilities.parquet", "-l", folder / f"{labels}.parquet"]
    return run_json("predict", *files, "-o", target, *more, code=code)


@pytest.mark.parametrize(("labels", "method"), [("train", "auto"), ("confident", "split")])
def test_labels_of_training_and_of_the_confident_half_withdraw_the_promise(run_json, amazon, tmp_path, labels, method):
    folder, world = amazon
    target = tmp_path / "sets.parquet"
    more = ["--method", method, "--fail-on", "warning"]
    verdict = predict_amazon(run_json, folder, labels, target, *more, code=3)["verdict"]
    first = verdict["lines"][0]
    assert first.startswith("No promise of coverage can be made: the model finds the labelled nodes easier than the ")
    assert ("It was probably trained on them" in first) == (labels == "train")
    assert "guaranteed" not in " ".join(verdict["lines"])
    sets = pq.read_table(target).to_pydict()
    unseen = ~np.isin(sets["node"], world["train"])
    hits = [f"c{world['labels'][v]}" in own for v, own in zip(sets["node"], sets["labels"], strict=True)]
    assert np.mean(np.array(hits)[unseen]) < verdict["band"][0]


def test_random_labels_keep_the_promise_and_training_nodes_are_left_out(run_json, amazon, tmp_path):
    folder, world = amazon
    nodes = tmp_path / "train.csv"
    nodes.write_text("node\n" + "\n".join(map(str, world["train"])) + "\n")
    answer = predict_amazon(
        run_json, folder, "random", tmp_path / "sets.parquet", "--training", nodes, "--fail-on", "warning"
    )
    assert answer["verdict"]["withdrawn"] == ""
    assert answer["nodes"] == world["rest"].size - world["random"].size
    assert not np.isin(pq.read_table(tmp_path / "sets.parquet")["node"].to_numpy(), world["train"]).any()


def test_an_error_rate_above_a_half_is_warned_of(run_json, larger, tmp_path):
    verdict = run_json("predict", *larger.files, "--alpha", 0.9, "-o", tmp_path / "sets.parquet")["verdict"]
    warning = (
        "alpha = 0.9 is the error rate: sets may miss the truth 90 % of the time. For 90 % coverage, pass `--alpha 0.1`"
    )
    assert warning in verdict["warnings"]


def test_sets_by_class_are_not_compared_with_what_one_threshold_would_give(run_json, larger, tmp_path):
    verdict = run_json("predict", *larger.files, "--by", "class", "-o", tmp_path / "sets.parquet")["verdict"]
    assert "sets are usually larger than without groups" in verdict["lines"][0]
    assert "expected" not in verdict["lines"][0]
    assert verdict["lines"][1].startswith(
        "Coverage: guaranteed in each group with enough labels if the nodes were labelled at random: "
    )


def test_odds_say_from_how_many_labels_they_are_estimated(run_json, larger, tmp_path):
    """`report` keeps half of the labels to evaluate, so its odds rest on half as many as those of `predict`."""
    counts = []
    for command, target in (("predict", "sets.parquet"), ("report", "report.html")):
        verdict = run_json(command, *larger.files, "-o", tmp_path / target)["verdict"]
        choice = verdict["choice"] or ""
        counts.append([int(text.replace(",", "")) for text in re.findall(r"\(([\d,]+) labels", choice)])
    assert counts[0] == [151]
    assert counts[1] in ([71], [])


def test_a_method_without_a_graph_needs_no_edges(run, must_run, larger, tmp_path):
    must_run("predict", *larger.files, "--method", "split", "-o", tmp_path / "with.parquet")
    must_run("predict", *larger.files[2:], "--method", "split", "-o", tmp_path / "without.parquet")
    assert pq.read_table(tmp_path / "with.parquet").equals(pq.read_table(tmp_path / "without.parquet"))
    refused = run("predict", *larger.files[2:], "--method", "naps", "-o", tmp_path / "naps.parquet")
    assert refused.exit_code == 2
    assert "--features" in refused.stderr
