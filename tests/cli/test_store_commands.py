"""A store is made, updated, watched and asked by commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from napsets import Graph, make_method
from napsets.cli._options import InputFiles, ReadingOptions
from napsets.cli.stores import live_from_files, serve
from napsets.files import read_sets
from napsets.live.live import Live


@pytest.fixture
def store(world: Any, tmp_path: Path) -> Path:
    """A store made from files, as `napsets serve` makes one."""
    notes: list[str] = []
    files = InputFiles(world.edges, world.probabilities_file, world.labels_file)
    live = live_from_files(files, ReadingOptions(), lambda text: None, notes, method="split", alpha=0.2, seed=1)
    live.save(tmp_path / "store")
    return tmp_path / "store"


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_update_enters_nodes_edges_and_labels_from_files(run: Any, store: Path, tmp_path: Path) -> None:
    with Live.open(store) as live:
        before, known, classes = live.status(), live.ids(), live.class_names
        free = str(next(iter(live.predict().row_names)))
    assert classes is not None
    p = ",".join(["1"] + ["0"] * (len(classes) - 1))
    new = "900000001"
    nodes = write(tmp_path / "n.csv", "node," + ",".join(classes), f"{new},{p}")
    edges = write(tmp_path / "e.csv", "source,target", f"{new},{known[0]}")
    labels = write(tmp_path / "l.csv", "node,label", f"{free},{classes[1]}", f"{new},{classes[0]}")
    result = run("update", store, "--nodes", nodes, "--edges", edges, "--labels", labels, "--key", "day-1", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["entered"] == {"nodes": 1, "edges": 1, "labels": 2}
    for name, more in (("nodes", 1), ("edges", 1), ("labels", 2), ("events", 4)):
        assert answer[name] == before[name] + more
    again = run("update", store, "--nodes", nodes, "--edges", edges, "--labels", labels, "--key", "day-1", "--json")
    assert json.loads(again.stdout)["repeated"] is True
    assert json.loads(again.stdout)["events"] == answer["events"]


def test_update_with_a_bad_file_enters_nothing(run: Any, store: Path, tmp_path: Path) -> None:
    with Live.open(store) as live:
        before, free = live.status(), str(live.predict().row_names[0])
    labels = write(tmp_path / "l.csv", "node,label", f"{free},no-such-class")
    result = run("update", store, "--labels", labels)
    assert result.exit_code == 1
    assert "no-such-class" in result.stderr
    assert run("update", store).exit_code == 2
    with Live.open(store) as live:
        assert live.status() == before


def test_what_helps_is_said_in_options(run: Any, store: Path, tmp_path: Path) -> None:
    with Live.open(store) as live:
        known, classes, labelled = live.ids(), live.class_names, live.status()["labels"]
        assert labelled
        assert classes is not None
        free = set(live.predict().row_names.tolist())
        label = write(tmp_path / "l.csv", "node,label", f"{next(i for i in known if i not in free)},{classes[0]}")
        result = run("update", store, "--labels", label)
        assert "Stop the process that has it. `napsets status` can read it meanwhile." in result.stderr
    one = write(
        tmp_path / "n.csv", "node," + ",".join(classes), f"{known[0]}," + ",".join("1" + "0" * len(classes[1:]))
    )
    assert "Pass them as --probabilities to replace" in run("update", store, "--nodes", one).stderr
    assert "Pass it as --correct to replace it" in run("update", store, "--labels", label).stderr


@pytest.mark.parametrize("ids", [["ann", "bob", "eve"], [5, 6, 7]])
def test_the_direction_of_edges_and_the_kind_of_ids_are_those_of_the_store(
    run: Any, tmp_path: Path, ids: list[Any]
) -> None:
    with Live("split", class_names=["ham", "spam"], directed=True) as live:
        live.add_nodes(ids, [[0.5, 0.5]] * 3)
        live.save(tmp_path / "store")
    edges = write(tmp_path / "e.csv", "source,target", f"{ids[2]},{ids[0]}")
    assert run("update", tmp_path / "store", "--edges", edges).exit_code == 0
    with Live.open(tmp_path / "store", read_only=True) as live:
        assert live.directed
        state = live._state
        assert [state.names.of(state.adjacency.neighbours(np.array([i]))).tolist() for i in range(3)] == [
            [],
            [],
            [ids[0]],
        ]
    number, text = ([write(tmp_path / f"{name}.csv", "node,ham,spam", f"{name},1,0")] for name in ("17", "zoe"))
    results = [run("update", tmp_path / "store", "--nodes", *file) for file in (number, text)]
    with Live.open(tmp_path / "store", read_only=True) as live:
        added = live.ids()[3:]
    if ids[0] == 5:
        assert [result.exit_code for result in results] == [0, 1]
        assert "ids of the kind of the store, integers such as 5" in " ".join(results[1].stderr.split())
        assert added == [17]
    else:
        assert [result.exit_code for result in results] == [0, 0]
        assert added == ["17", "zoe"]
    table = pyarrow.table({"node": [18], "ham": [1.0], "spam": [0.0]})
    pyarrow.parquet.write_table(table, tmp_path / "n.parquet")
    assert run("update", tmp_path / "store", "--nodes", tmp_path / "n.parquet").exit_code == 0
    with Live.open(tmp_path / "store", read_only=True) as live:
        assert {type(name) for name in live.ids()} == {type(ids[0])}


@pytest.mark.parametrize("option", ["--nodes", "--probabilities", "--edges", "--labels", "--correct"])
def test_integers_from_two_to_the_63_on_are_no_ids_of_a_store(run: Any, tmp_path: Path, option: str) -> None:
    """Cut to 64 bits with a sign, they would be the negative ids of other nodes."""
    with Live("split", class_names=["ham", "spam"]) as live:
        live.add_nodes([-1, -(2**63), 7], [[0.5, 0.5]] * 3)
        live.add_labels([7], [0])
        live.save(tmp_path / "store")
        before = live.status()
    ids = pyarrow.array([2**64 - 1, 2**63], pyarrow.uint64())
    columns = {
        "--edges": {"source": ids, "target": pyarrow.array([7, 7], pyarrow.uint64())},
        "--labels": {"node": ids, "label": ["ham", "spam"]},
        "--correct": {"node": ids, "label": ["ham", "spam"]},
    }.get(option, {"node": ids, "ham": [0.5, 0.5], "spam": [0.5, 0.5]})
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "new.parquet")
    result = run("update", tmp_path / "store", option, tmp_path / "new.parquet")
    assert result.exit_code == 1
    wrong = (
        "must hold integers below 2^63" if option in ("--nodes", "--probabilities") else "every id must be in `nodes`"
    )
    assert wrong in " ".join(result.stderr.split())
    with Live.open(tmp_path / "store", read_only=True) as live:
        assert live.status() == before


def test_status_says_how_the_sets_have_done(run: Any, store: Path, tmp_path: Path) -> None:
    figures = json.loads(run("status", store, "--json", "--prometheus", tmp_path / "napsets.prom").stdout)
    with Live.open(store) as live:
        assert figures == json.loads(json.dumps(live.status()))
    assert f"napsets_nodes {figures['nodes']}" in (tmp_path / "napsets.prom").read_text()
    shown = run("status", store).stdout
    assert "coverage so far" in shown
    assert "alarm: exchangeability" in shown


def test_status_fails_where_an_alarm_rings(run: Any, store: Path) -> None:
    assert run("status", store, "--fail-on", "alarm").exit_code == 0
    with Live.open(store) as live:
        sets = live.predict()
        names, missing = sets.row_names[:40], (~sets.member[:40])
        wrong = np.where(missing.any(axis=1), missing.argmax(axis=1), 0)
        kinds = type(live.ids()[0])
        live.add_labels([kinds(name) for name in names], wrong)
        assert live.status()["judged"]["alarms"]["coverage"]["rang"] is not None
    result = run("status", store, "--fail-on", "alarm")
    assert result.exit_code == 3
    assert "alarm: exchangeability, coverage" in result.stderr


def test_a_folder_that_is_no_store_is_refused(run: Any, tmp_path: Path) -> None:
    for command in ("status", "update"):
        result = run(command, tmp_path, *(("--labels", tmp_path / "l.csv") if command == "update" else ()))
        assert result.exit_code == 1
        assert "living graph" in result.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--host", "0.0.0.0"), "`token` must be set"),
        (("--edges", "e.csv"), "--probabilities, --labels"),
    ],
)
def test_serve_refuses_what_would_be_unsafe_or_half(
    run: Any, store: Path, tmp_path: Path, options: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAPSETS_TOKEN", raising=False)
    result = run("serve", tmp_path / "new" if "--edges" in options else store, *options)
    assert result.exit_code in (1, 2)
    assert sentence in " ".join(result.stderr.split())


def test_serve_makes_a_store_from_files_and_says_where_it_listens(
    run: Any, world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from napsets.service import server

    def served(opening: Any, *, ready: Any, **settings: Any) -> None:
        with opening() as live:
            ready("http://127.0.0.1:1", live)

    monkeypatch.setattr(server, "run_server", served)
    files = world.files
    result = run("serve", tmp_path / "store", *files, "--method", "split", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["url"] == "http://127.0.0.1:1"
    again = run("serve", tmp_path / "store", *files)
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    assert serve.__doc__


@pytest.mark.parametrize("method", ["split", "naps", "auto"])
def test_sets_of_a_saved_method_are_those_of_the_files(run: Any, world: Any, tmp_path: Path, method: str) -> None:
    once = run("calibrate", *world.files, "--method", method, "--seed", 4, "-o", tmp_path / "method.npz", "--json")
    assert once.exit_code == 0, once.output
    assert json.loads(once.stdout)["calibration"] == world.calibration.size
    saved, direct = tmp_path / "saved.csv", tmp_path / "direct.csv"
    files = (*world.files, "--method", method, "--seed", 4)
    for options in (("--method-file", tmp_path / "method.npz", "-o", saved), (*files, "-o", direct)):
        result = run("predict", *options, "--alpha", 0.2)
        assert result.exit_code == 0, result.output
    assert saved.read_text() == direct.read_text()


def test_labels_of_a_saved_method_are_integers_where_they_were(run: Any, tmp_path: Path) -> None:
    nodes = range(12)
    files = {
        "-e": write(tmp_path / "e.csv", "source,target", *(f"{node},{(node + 1) % 12}" for node in nodes)),
        "-p": write(tmp_path / "p.csv", "node,3,7", *(f"{node},{0.9 - node / 20},{0.1 + node / 20}" for node in nodes)),
        "-l": write(tmp_path / "l.csv", "node,label", *(f"{node},{3 + node % 2 * 4}" for node in nodes[:9])),
    }
    options = [*(part for pair in files.items() for part in pair), "--method", "split"]
    for arguments in (
        ("calibrate", *options, "-o", tmp_path / "method.npz"),
        ("predict", *options, "-o", tmp_path / "direct.csv"),
        ("predict", "--method-file", tmp_path / "method.npz", "-o", tmp_path / "saved.csv"),
    ):
        result = run(*arguments)
        assert result.exit_code == 0, result.output
    assert "[3, 7]" in (tmp_path / "direct.csv").read_text()
    assert (tmp_path / "saved.csv").read_text() == (tmp_path / "direct.csv").read_text()


def test_classes_of_a_saved_method_without_names_go_by_their_numbers(run: Any, tmp_path: Path) -> None:
    p = np.tile([0.3, 0.7], (12, 1))
    graph = Graph.from_edge_index(np.stack([np.arange(11), np.arange(1, 12)]))
    make_method("split").calibrate(graph, p, np.ones(12, dtype=int), calibration=np.arange(9)).save(tmp_path / "m.npz")
    result = run("predict", "--method-file", tmp_path / "m.npz", "-o", tmp_path / "sets.parquet")
    assert result.exit_code == 0, result.output
    written = pyarrow.parquet.read_table(tmp_path / "sets.parquet")
    assert written.column("prediction").to_pylist() == [1, 1, 1]
    assert read_sets(tmp_path / "sets.parquet").class_names == ["0", "1"]


def test_sets_of_a_saved_method_record_their_p_values(run: Any, world: Any, tmp_path: Path) -> None:
    assert run("calibrate", *world.files, "--method", "split", "-o", tmp_path / "method.npz").exit_code == 0
    files, target = ("--method-file", tmp_path / "method.npz"), tmp_path / "sets.parquet"
    for smoothing in ("plain", "smoothed"):
        assert run("predict", *files, "--p-values", smoothing, "-o", target).exit_code == 0
        assert read_sets(target).metadata["p_values"] == smoothing


def test_sets_of_a_store_are_those_of_the_living_graph(run: Any, store: Path, tmp_path: Path) -> None:
    assert run("predict", "--store", store, "-o", tmp_path / "sets.parquet").exit_code == 0
    with Live.open(store) as live:
        expected = live.predict()
    written = read_sets(tmp_path / "sets.parquet")
    assert np.array_equal(written.sets.member, expected.member)
    assert np.array_equal(written.sets.thresholds, expected.thresholds)


def test_predict_needs_files_or_something_that_was_calibrated(
    run: Any, store: Path, world: Any, tmp_path: Path
) -> None:
    missing = run("predict", "-o", tmp_path / "sets.csv")
    assert missing.exit_code == 2
    assert "--edges" in missing.stderr
    both = run("predict", *world.files, "--store", store, "-o", tmp_path / "sets.csv")
    assert both.exit_code == 2
    assert "--store" in both.stderr
