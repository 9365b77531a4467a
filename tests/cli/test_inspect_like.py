"""`napsets inspect --like FILE` explains the sets that are in the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.cli.inspect import read_written_record
from napsets.evaluation.comparison import compare
from napsets.files import read_sets
from napsets.methods import Method
from napsets.report.record import calibrating_nodes, record_of, unpacked
from worlds import CLASSES, make_world

FLAGS: dict[str, list[object]] = {
    "defaults": [],
    "global": ["--fallback", "global", "--hops", 1, "--seed", 4],
    "never empty": ["--no-empty", "--alpha", 0.4, "--score", "thr"],
    "saps": ["--score", "saps", "--decay", "1,0.3", "--alpha", 0.25],
    "split": ["--method", "split", "--score", "raps"],
    "another method": ["--method", "naps-h", "--hops", 3],
    "directed": ["--directed", "--hops", 3, "--decay", "geometric", "--ids", "string"],
}


@pytest.fixture
def small(tmp_path):
    return make_world(tmp_path / "small", nodes=90, degree=3)


def inspected(run, world, *flags: object) -> dict[str, Any]:
    shown = run("inspect", *world.files, *flags, "--json")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def plain(shown) -> str:
    assert "Traceback" not in shown.output
    assert shown.exception is None or isinstance(shown.exception, SystemExit)
    return " ".join(shown.stderr.replace("│", " ").split())


def number(value: object) -> float:
    return float("inf") if value == "Infinity" else float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_sets_files_own_rows_are_explained(tmp_path, run, small, flags, suffix):
    target = tmp_path / f"sets{suffix}"
    assert run("predict", *small.files, *flags, "-o", target).exit_code == 0
    file = read_sets(target)
    ids = file.ids.values.to_pylist()
    for row in [*range(0, len(ids), 12), int(file.sets.thresholds.argmax()), int(file.sets.support.argmax())]:
        answer = inspected(run, small, "--node", ids[row], "--like", target)
        assert number(answer["threshold"]) == file.sets.thresholds[row]
        assert answer["support"] == file.sets.support[row]
        assert answer["effective_size"] == file.sets.effective_size[row]
        assert answer["set"] == [CLASSES[y] for y in np.flatnonzero(file.sets.member[row])]
        assert (answer["calibration"], answer["labelled"]) == (45, 45)


def explorer_of(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data-explorer">(.*?)</script>', text)[1])
    return {key: unpacked(value) if isinstance(value, dict) else value for key, value in data.items()}


METHOD_FLAGS: dict[str, list[str]] = {
    "Split RAPS": ["--method", "split"],
    "NAPS": ["--method", "naps"],
    "NAPS-H": ["--method", "naps-h"],
    "NAPS-G": ["--decay", "geometric"],
}


@pytest.mark.parametrize("truth", [False, True], ids=["half of the labels", "a file of truth"])
def test_a_reports_own_nodes_are_explained(tmp_path, run, small, truth):
    target = tmp_path / "report.html"
    judging = ["--truth", small.truth] if truth else []
    settings = ["--score", "raps", "--seed", 2, "--alpha", 0.2]
    methods = ["--methods", "split,naps,naps-h,naps-g"]
    assert run("report", *small.files, *judging, *settings, *methods, "-o", target).exit_code == 0
    page = explorer_of(target)
    local = page["methods"].index("NAPS")
    short = np.flatnonzero(np.isinf(page["thresholds"][local]))
    for i in [*range(0, len(page["names"]), 9), short[0]]:
        like = ["--node", page["names"][i], "--like", target]
        for method, flags in METHOD_FLAGS.items():
            m = page["methods"].index(method)
            answer = inspected(run, small, *like, *flags)
            assert number(answer["threshold"]) == page["thresholds"][m, i]
            assert answer["support"] == page["support"][m, i]
            assert answer["set"] == [CLASSES[y] for y in np.flatnonzero(page["member"][m, i])]
            assert answer["calibration"] == (45 if truth else 22)
    # What stands in for a missing threshold is that of the baseline.
    answer = inspected(run, small, "--node", page["names"][short[0]], "--like", target, "--fallback", "global")
    aps = page["methods"].index("Split RAPS")
    assert number(answer["threshold"]) == page["thresholds"][aps, short[0]]
    assert answer["support"] == page["support"][aps, short[0]]
    assert answer["set"] == [CLASSES[y] for y in np.flatnonzero(page["member"][aps, short[0]])]


def test_a_report_of_an_earlier_version_is_explained_too(tmp_path, run, small):
    """Its record has no description of the method."""
    target, old = tmp_path / "report.html", tmp_path / "old.html"
    assert run("report", *small.files, "--methods", "split,naps", "-o", target).exit_code == 0
    text = target.read_text(encoding="utf-8")
    record = json.loads(re.search(r'id="data-record">(.*?)</script>', text)[1])
    assert record.pop("method_description")["localiser"]["name"] == "hops"
    old.write_text(
        re.sub(r'(id="data-record">).*?(</script>)', rf"\g<1>{json.dumps(record)}\2", text), encoding="utf-8"
    )
    node = explorer_of(target)["names"][0]
    explained = [inspected(run, small, "--node", node, "--like", path) for path in (target, old)]
    assert explained[0]["threshold"] == explained[1]["threshold"]
    assert explained[0]["calibration"] == explained[1]["calibration"] == 22


def test_it_says_on_how_many_labels_it_calibrated(tmp_path, run, small):
    assert run("report", *small.files, "-o", tmp_path / "r.html").exit_code == 0
    node = ["--node", small.ids[small.rest[0]]]
    assert "Calibrated on all 45 labelled nodes." in run("inspect", *node, *small.files).stdout
    shown = run("inspect", *node, *small.files, "--like", tmp_path / "r.html")
    assert "Calibrated on 22 of 45 labelled nodes, as r.html was." in shown.stdout


def test_a_row_that_the_files_do_not_give_is_noted_and_no_other(tmp_path, run, small):
    target, node = tmp_path / "sets.parquet", small.ids[small.rest[0]]
    run("predict", *small.files, "--method", "split", "-o", target)
    flags = ["inspect", "--node", node, *small.files, "--like", target]
    assert "the files or settings differ" not in run(*flags).stderr
    file = read_sets(target)
    row = file.ids.values.to_pylist().index(node)
    threshold = file.sets.thresholds[row]
    has = ", ".join(CLASSES[y] for y in np.flatnonzero(file.sets.member[row]))
    note = f"note: {target} has {{{has}}} at the threshold {threshold:.6g} for this node: the files or settings differ"
    few = pq.read_table(small.labels_file)[20:]
    pq.write_table(few, small.labels_file)
    shown = run(*flags)
    assert note in shown.stderr
    assert f"Calibrated on all {len(few)} labelled nodes.\n" in shown.stdout
    # A node without a row has nothing that could differ.
    labelled = few["node"][0].as_py()
    assert "are others" not in run("inspect", "--node", labelled, *small.files, "--like", target).stderr


def test_sets_are_not_explained_as_intervals(tmp_path, run, small):
    sets, report = tmp_path / "s.parquet", tmp_path / "r.html"
    run("predict", *small.files, "-o", sets)
    run("report", *small.files, "--methods", "split", "-o", report)
    flags = ["inspect", "--node", small.ids[0], *small.files, "--task", "regression", "--like"]
    for path, holds in ((sets, "holds"), (report, "is about")):
        shown = run(*flags, path)
        assert shown.exit_code == 2
        assert f"--task: must be classification, or left out: {path} {holds} sets" in plain(shown)
    settings = tmp_path / "napsets.toml"
    settings.write_text('task = "regression"\n', encoding="utf-8")
    answer = inspected(run, small, "--node", small.ids[0], "--like", sets, "--config", settings)
    assert answer["task"] == "classification"


def test_flags_win_over_the_record_and_the_record_over_a_settings_file(tmp_path, run, small):
    target = tmp_path / "sets.parquet"
    run("predict", *small.files, "--alpha", 0.3, "--hops", 3, "-o", target)
    settings = tmp_path / "napsets.toml"
    settings.write_text(f'alpha = 0.05\nhops = 1\n[inspect]\nlike = "{target}"\n', encoding="utf-8")
    node = ["--node", small.ids[small.rest[0]]]
    for order in (["--like", target, "--config", settings], ["--config", settings, "--like", target]):
        answer = inspected(run, small, *node, *order)
        assert (answer["alpha"], len(answer["hops"])) == (0.3, 3)
    assert inspected(run, small, *node, "--config", settings)["alpha"] == 0.3
    shown = run("inspect", *node, *small.files, "--like", target, "--alpha", 0.2)
    assert "Node" in shown.stdout
    assert "alpha = 0.2" in shown.stdout
    assert f"note: alpha is 0.2 here, though {target} was made with 0.3" in shown.stderr
    assert "note" not in run("inspect", *node, *small.files, "--like", target, "--alpha", 0.3).stderr


def test_the_order_of_rows_does_not_change_who_calibrates(tmp_path, run, small):
    target = tmp_path / "r.html"
    assert run("report", *small.files, "-o", target).exit_code == 0
    node = explorer_of(target)["names"][0]
    before = inspected(run, small, "--node", node, "--like", target, "--neighbours", 100)
    table = pq.read_table(small.probabilities_file)
    pq.write_table(table.take(np.random.default_rng(1).permutation(len(table))), small.probabilities_file)
    assert inspected(run, small, "--node", node, "--like", target, "--neighbours", 100) == before


def test_other_files_than_those_of_the_record_are_noticed(tmp_path, run, small):
    other = make_world(tmp_path / "other", nodes=120)
    run("predict", *small.files, "-o", tmp_path / "s.parquet")
    run("report", *small.files, "-o", tmp_path / "r.html")
    node = ["--node", other.ids[0]]
    shown = run("inspect", *node, *other.files, "--like", tmp_path / "s.parquet")
    assert "s.parquet was made from 90 nodes and these files have 120" in shown.stderr
    assert "s.parquet was made from 45 labels and these files have 60" in shown.stderr
    shown = run("inspect", *node, *other.files, "--like", tmp_path / "r.html")
    assert shown.exit_code == 1
    assert "the report is about 90 nodes; these files have 120" in shown.stderr
    swapped = [*small.files[:4], "--labels", small.truth]
    shown = run("inspect", "--node", small.ids[0], *swapped, "--like", tmp_path / "r.html")
    assert shown.exit_code == 1
    assert "22 of the 22 nodes that calibrated in it have no label here" in " ".join(shown.stderr.split())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.html", None, "there is none"),
        ("page.html", "<html></html>", "records how it was made; it does not"),
        ("page.html", '<script type="application/json" id="data-record">{"alpha"', "truncated or of another kind"),
        ("page.html", '<script type="application/json" id="data-record">[1]</script>', "as a JSON object"),
        (
            "page.html",
            '<script type="application/json" id="data-record">{"alpha": 2}</script>',
            "between 0 and 1. Write the",
        ),
        ("page.html", '<script type="application/json" id="data-record">{"score": "X(1)"}</script>', "has no name"),
        ("page.html", '<script type="application/json" id="data-record">{}</script>', "which nodes calibrated"),
        ("sets.csv", "node,labels\n1,[]\n", "CSV cannot store them"),
        ("sets.txt", "", "ends in .parquet"),
    ],
)
def test_a_file_without_a_fitting_record_is_refused(tmp_path, run, small, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    shown = run("inspect", "--node", small.ids[0], *small.files, "--like", tmp_path / name)
    assert shown.exit_code in (1, 2)
    assert message in " ".join(shown.stderr.replace("│", " ").split())
    assert "Traceback" not in shown.output


NESTED = b'{"a":' * 100_000


@pytest.mark.parametrize("text", [b"[1]", b"{", b"null", NESTED, b"[" * 100_000, b'{"class_names": "cat"}'])
def test_settings_of_a_sets_file_that_are_none_are_refused(tmp_path, run, small, text):
    target = tmp_path / "s.parquet"
    run("predict", *small.files, "-o", target)
    pq.write_table(pq.read_table(target).replace_schema_metadata({b"napsets": text}), target)
    shown = run("inspect", "--node", small.ids[0], *small.files, "--like", target)
    assert shown.exit_code == 2
    assert "`like` must be described as napsets describes it; the metadata of" in plain(shown)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("alpha", 2, "have the alpha 2, which must be a number strictly between 0 and 1"),
        ("alpha", "low", "have the alpha 'low'"),
        ("seed", 2**64, "which must be an integer from 0 to 18446744073709551615"),
        ("seed", [1], "have the seed [1]"),
        ("num_nodes", "many", "have the num_nodes 'many', which must be an integer"),
        ("calibration", {"a": 1}, "have the calibration {'a': 1}"),
        ("hops", True, "have the hops True"),
        ("fallback", "none", "have the fallback 'none', which must be one of full, global"),
        ("decay", [1.0], "do not fit each other: `decay`"),
        ("decay", {"k": 1}, "have the decay {'k': 1}, which must be a name or a list of numbers"),
        ("directed", "no", "have the directed 'no', which must be true or false"),
    ],
)
@pytest.mark.parametrize("name", ["s.parquet", "r.html"])
def test_a_setting_that_cannot_be_is_refused_by_the_name_of_the_file(tmp_path, run, small, name, key, value, message):
    target = tmp_path / name
    written = {"alpha": 0.1, "hops": 2, "decay": "uniform", key: value}
    if name == "s.parquet":
        run("predict", *small.files, "-o", target)
        text = json.dumps(written).encode()
        pq.write_table(pq.read_table(target).replace_schema_metadata({b"napsets": text}), target)
    else:
        target.write_text(f'<script type="application/json" id="data-record">{json.dumps(written)}</script>')
    shown = run("inspect", "--node", small.ids[0], *small.files, "--like", target)
    assert shown.exit_code == 2
    assert name in plain(shown)
    assert f"`like` must record settings that napsets can have; those of {target} {message}"[:60] in plain(shown)
    assert message in plain(shown)


def test_a_sets_file_with_other_classes_is_refused(tmp_path, run, small):
    target = tmp_path / "s.parquet"
    run("predict", *small.files, "-o", target)
    text = json.dumps({"class_names": ["cat", "dog", "cow"]}).encode()
    pq.write_table(pq.read_table(target).replace_schema_metadata({b"napsets": text}), target)
    shown = run("inspect", "--node", small.ids[0], *small.files, "--like", target)
    assert shown.exit_code == 1
    assert "its classes are ['cat', 'dog', 'cow'], and those of these files are ['cat', 'dog', 'owl']" in plain(shown)


@pytest.mark.parametrize("marks", ["x", [], {}, {"bits": "x"}, {"gaps": {"data": "!"}}, {"gaps": {"data": [1]}}, None])
@pytest.mark.parametrize("count", [{}, {"num_nodes": 90}, {"num_nodes": 2**62}])
def test_a_report_that_does_not_tell_who_calibrated_is_refused(marks, count):
    with pytest.raises(ns.errors.FileFormatError, match=r"which nodes calibrated|the report is about"):
        calibrating_nodes({"calibrating": marks} | count, np.arange(90, dtype=np.uint64))


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_record_brings_back_the_calibration_nodes(share):
    rng = np.random.default_rng(3)
    n = 2000
    ids = np.array([f"né-{i}" for i in rng.permutation(n)])
    chosen = np.sort(rng.choice(n, int(share * n), replace=False))
    edges = rng.integers(0, n, (2, 3000))
    y = rng.integers(0, 2, n)
    p = rng.dirichlet([1, 1], n)
    comparison = compare(ns.Graph.from_edge_index(edges, n), p, y, chosen, [5, 9], ids=ids, hops=1)
    record = json.loads(json.dumps(record_of(comparison, {}, comparison.best.name)))
    assert np.array_equal(calibrating_nodes(record, ns.randomness.hash_ids(ids)), chosen)
    assert Method.from_description(record.pop("method_description")) == comparison[record["method"]].calibrated.method
    assert len(json.dumps(record)) < 700  # bits where many calibrate, gaps where few do


def test_a_score_with_settings_of_its_own_has_no_name(tmp_path, small):
    world = {
        "graph": small.graph,
        "probabilities": small.probabilities,
        "labels": small.labels,
        "calibration": small.calibration,
        "nodes": small.rest,
    }
    path = ns.report.write_report(tmp_path / "r.html", **world, score=ns.RAPS(penalty=0.3))
    assert read_written_record(path).settings["score"].startswith("RAPS(penalty=0.3")
    assert read_written_record(ns.report.write_report(path, **world, score=ns.SAPS())).settings["score"] == "saps"
