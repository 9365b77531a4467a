"""What each command gives, on a small world of files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.files import read_sets
from napsets.scores import SCORES
from worlds import CLASSES, make_world, write


def naps_of(world, **settings) -> ns.NAPS:
    naps = ns.NAPS(**settings)
    return naps.calibrate_rows(world.graph, world.probabilities, world.labels, world.calibration, world.ids)


# -- predict -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("ids", ["integer", "string"])
def test_predict_gives_what_the_library_gives_from_any_format_with_any_ids(tmp_path, run_json, suffix, ids):
    world = make_world(tmp_path, suffix=suffix, ids=ids)
    target = tmp_path / f"sets{suffix}"
    answer = run_json("predict", *world.files, "-a", 0.2, "-k", 2, "--decay", "hyperbolic", "--seed", 3, "-o", target)
    expected = naps_of(world, hops=2, decay="hyperbolic", seed=3).predict(world.rest, alpha=0.2)
    file = read_sets(target)
    assert file.ids.take(np.arange(len(expected))).to_pylist() == world.ids[world.rest].tolist()
    np.testing.assert_array_equal(file.sets.thresholds, expected.thresholds)
    np.testing.assert_array_equal(file.sets.sizes, expected.sizes)
    assert answer["nodes"] == len(expected)
    assert answer["mean_size"] == pytest.approx(expected.sizes.mean())
    assert answer["infinite"] == np.isinf(expected.thresholds).sum()


def test_predict_writes_settings_into_the_file(tmp_path, run, world):
    run("predict", *world.files, "-a", 0.3, "--decay", "1,0.25", "--score", "thr", "-o", tmp_path / "s.parquet")
    about = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[b"napsets"])
    assert about["napsets"] == ns.__version__
    assert about["class_names"] == list(CLASSES)
    assert (about["alpha"], about["hops"], about["decay"], about["score"]) == (0.3, 2, [1.0, 0.25], "thr")
    assert (about["num_nodes"], about["calibration"]) == (120, 60)


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (["--decay", "1,0.25"], {"decay": [1.0, 0.25]}),
        (["--score", "thr"], {"score": ns.THR()}),
        (["--score", "raps", "--no-empty"], {"score": ns.RAPS(), "allow_empty": False}),
        (["--score", "saps", "--hops", "1"], {"score": ns.SAPS(), "hops": 1}),
        (["--fallback", "global", "--hops", "1"], {"fallback": "global", "hops": 1}),
    ],
)
def test_every_setting_reaches_the_predictor(tmp_path, run, world, flags, settings):
    shown = run("predict", *world.files, *flags, "-o", tmp_path / "s.parquet")
    assert shown.exit_code == 0, shown.stderr
    expected = naps_of(world, **settings).predict(world.rest, alpha=0.1)
    np.testing.assert_array_equal(read_sets(tmp_path / "s.parquet").sets.member, expected.member)


def test_predict_notes_nodes_that_have_a_label(tmp_path, run, world):
    nodes_file = write(tmp_path / "n.parquet", {"node": world.ids[world.calibration[:3]]})
    shown = run("predict", *world.files, "-m", "naps", "--nodes", nodes_file, "-o", tmp_path / "s.parquet")
    assert "note: 3 of the nodes to predict have a label" in shown.stderr
    expected = naps_of(world)
    with pytest.warns(ns.NapsetsWarning):
        sets = expected.predict(world.calibration[:3])
    np.testing.assert_array_equal(read_sets(tmp_path / "s.parquet").sets.member, sets.member)


def test_without_a_method_the_evidence_chooses_and_one_line_says_what(tmp_path, run):
    world = make_world(tmp_path / "world", nodes=600)
    shown = run("predict", *world.files, "-o", tmp_path / "s.parquet", "--json")
    answer = json.loads(shown.stdout)
    auto = ns.Auto().calibrate_rows(world.graph, world.probabilities, world.labels, world.calibration, world.ids)
    assert answer["method"] == "auto"
    assert answer["choice"] == str(auto.choice)
    assert [line for line in shown.stderr.splitlines() if "auto chose" in line] == [f"note: auto chose {auto.choice}"]
    sets_file = read_sets(tmp_path / "s.parquet")
    np.testing.assert_array_equal(sets_file.sets.member, auto.predict(world.rest).member)
    assert sets_file.metadata["method"] == "auto"


@pytest.mark.parametrize("option", [("--hops", 2), ("--decay", "uniform"), ("--score", "aps"), ("--pool", 3)])
def test_whoever_asks_for_a_neighbourhood_or_a_score_means_naps(tmp_path, run, world, option):
    answer = json.loads(run("predict", *world.files, *option, "-o", tmp_path / "s.parquet", "--json").stdout)
    assert answer["method"] == "naps"


def test_tables_go_to_standard_output_and_progress_to_standard_error(tmp_path, run, world):
    shown = run("predict", *world.files, "-o", tmp_path / "s.parquet")
    assert "nodes predicted" in shown.stdout
    assert "reading edges" in shown.stderr
    assert "reading edges" not in shown.stdout


def test_quiet_prints_nothing_but_json(tmp_path, run, world):
    shown = run("predict", *world.files, "-o", tmp_path / "s.parquet", "--quiet")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout == ""
    shown = run("predict", *world.files, "-o", tmp_path / "s.parquet", "--quiet", "--json")
    assert json.loads(shown.stdout)["method"] == "auto"
    assert (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--decay", "quadratic"], "must be one of uniform, hyperbolic, geometric"),
        (["--decay", "1"], "must have a weight for each of the 2 hops; got 1"),
        (["--decay", "1,-1"], "hop 2 weighs -1"),
    ],
)
def test_settings_that_cannot_be_are_wrong_use(tmp_path, run, world, flags, message):
    shown = run("predict", *world.files, *flags, "-o", tmp_path / "s.parquet")
    assert shown.exit_code == 2
    assert message in " ".join(shown.output.replace("│", " ").split())
    assert not (tmp_path / "s.parquet").exists()


def test_a_score_that_needs_settings_is_refused_in_words(tmp_path, run, world, monkeypatch):
    monkeypatch.setitem(SCORES, "needy", lambda features: None)
    shown = run("predict", *world.files, "--score", "needy", "-o", tmp_path / "s.parquet")
    assert shown.exit_code == 2
    assert "needy needs settings, which can be given only in Python" in " ".join(shown.output.replace("│", " ").split())


def test_the_smallest_error_rate_gives_every_label(run, world, tmp_path):
    shown = run("predict", *world.files, "--method", "naps", "--alpha", 5e-324, "-o", tmp_path / "s.parquet", "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["full_rate"] == 1.0


# -- evaluate ------------------------------------------------------------------------------------------------------


def test_evaluate_tells_coverage_and_size(tmp_path, run, run_json, world):
    run("predict", *world.files, "-m", "naps", "-a", 0.2, "-o", tmp_path / "s.parquet")
    answer = run_json("evaluate", tmp_path / "s.parquet", "--labels", world.truth, "--edges", world.edges)
    sets = naps_of(world).predict(world.rest, alpha=0.2)
    assert answer["coverage"] == ns.coverage(sets, world.labels)
    assert answer["mean_size"] == ns.mean_size(sets)
    assert answer["settings"]["alpha"] == 0.2
    assert {"pccv", "coverage_by_degree", "coverage_by_class", "sscv"} <= set(answer)
    table = run("evaluate", tmp_path / "s.parquet", "--labels", world.truth)
    assert f"{100 * answer['coverage']:.2f} %" in table.stdout
    assert "Coverage by class" in table.stdout
    for name in CLASSES:
        assert name in table.stdout


# -- inspect -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["integer", "string"])
def test_inspect_shows_what_the_library_sees(tmp_path, run_json, ids):
    world = make_world(tmp_path, ids=ids)
    place = int(world.rest[5])
    settings = ("--method", "naps", "--alpha", 0.2, "--neighbours", 1000)
    answer = run_json("inspect", "--node", world.ids[place], *world.files, *settings)
    seen = inspect_node(naps_of(world), place, alpha=0.2)
    assert answer["node"] == world.ids[place]
    assert answer["threshold"] == seen.threshold
    assert answer["set"] == [name for name, inside in zip(CLASSES, seen.member, strict=True) if inside]
    assert [row["node"] for row in answer["neighbours"]] == world.ids[seen.neighbours].tolist()
    assert [row["calibration"] for row in answer["hops"]] == [row.calibration for row in seen.hops]
    assert [row["score"] for row in answer["labels"]] == seen.scores.tolist()


def test_inspect_says_why_in_tables(run, world):
    shown = run("inspect", "--node", world.ids[0], *world.files, "--hops", 2)
    for text in ("Neighbourhood by hop", "weight w(k)", "threshold τ", "support", "nearest to τ"):
        assert text in shown.stdout


def test_infinity_is_legal_json(tmp_path, run):
    world = make_world(tmp_path, degree=2)
    sets = naps_of(world, hops=1).predict(world.rest, alpha=0.1)
    lonely = world.ids[world.rest[np.isinf(sets.thresholds).argmax()]]
    shown = run("inspect", "--node", lonely, *world.files, "--hops", 1, "--json")
    assert json.loads(shown.stdout, parse_constant=pytest.fail)["threshold"] == "Infinity"
    assert "∞" in run("inspect", "--node", lonely, *world.files, "--hops", 1).stdout


# -- homophily -----------------------------------------------------------------------------------------------------


def test_homophily_is_that_of_the_library(tmp_path, run, world):
    everyone = write(tmp_path / "all.parquet", {"node": world.ids, "label": np.array(CLASSES)[world.labels]})
    answer = json.loads(run("homophily", "-e", world.edges, "-l", everyone, "--json").stdout)
    assert answer["homophily"] == pytest.approx(ns.node_homophily(world.graph, world.labels))
    assert answer["expected_homophily"] == pytest.approx(ns.expected_homophily(world.labels))
    assert answer["edges"] == world.graph.num_edges
    sizes = {row["class"]: row["nodes"] for row in answer["classes"]}
    assert sizes == dict(zip(CLASSES, np.bincount(world.labels).tolist(), strict=True))
    shares = [row["homophily"] * row["nodes"] for row in answer["classes"]]
    assert sum(shares) / 120 == pytest.approx(answer["homophily_where_seen"])
    assert "H_rand" in run("homophily", "-e", world.edges, "-l", everyone).stdout


def test_homophily_counts_labelled_nodes_without_labelled_neighbours(tmp_path, run):
    edges = write(tmp_path / "e.parquet", {"source": [1, 2], "target": [2, 3]})
    labels = write(tmp_path / "y.parquet", {"node": [1, 2, 9], "label": ["a", "a", "b"]})
    answer = json.loads(run("homophily", "-e", edges, "-l", labels, "--json").stdout)
    assert answer["without_labelled_neighbour"] == 1
    assert answer["homophily_where_seen"] == 1.0
    assert answer["homophily"] == pytest.approx(2 / 3)


# -- report --------------------------------------------------------------------------------------------------------


def test_report_is_written_from_files(tmp_path, run):
    world = make_world(tmp_path, nodes=300, ids="string")
    target = tmp_path / "r.html"
    shown = run("report", *world.files, "--truth", world.truth, "-o", target, "--title", "A small world", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert "A small world" in target.read_text(encoding="utf-8")
    answer = json.loads(shown.stdout)
    assert [row["method"] for row in answer["results"]] == ["split", "naps", "naps-exact", "informed", "auto", "thr"]
    naps = naps_of(world).predict(world.rest)
    assert answer["results"][1]["coverage"] == ns.coverage(naps, world.labels)


def test_report_splits_the_labels_where_there_is_no_truth(tmp_path, run_json):
    world = make_world(tmp_path, nodes=300)
    answer = run_json("report", *world.files, "--methods", "split", "-o", tmp_path / "r.html")
    assert answer["calibration"] == 75
    assert answer["results"][0]["nodes"] == 75


def test_ids_of_parquet_keep_their_width(tmp_path, run, world):
    table = pq.read_table(world.probabilities_file)
    narrow = table.set_column(0, "node", table["node"].cast(pa.int16()))
    pq.write_table(narrow, world.probabilities_file)
    run("predict", *world.files, "-o", tmp_path / "s.parquet")
    assert pq.read_schema(tmp_path / "s.parquet").field("node").type == pa.int16()
