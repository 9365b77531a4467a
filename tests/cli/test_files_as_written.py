"""Files as people have them: separators, names of columns, standard input and output, logits, Parquet."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from napsets.files import read_sets

#: Short and without a choice, so that runs are quick.
NAPS = ("--method", "naps")


def semicolons(folder, world, names):
    """Write the world's files with semicolons and other names of columns; return options and the truth."""
    written = {}
    for key, path in {
        "e": world.edges,
        "p": world.probabilities_file,
        "l": world.labels_file,
        "t": world.truth,
    }.items():
        table = pq.read_table(path)
        table = table.rename_columns([names.get(name, name) for name in table.column_names])
        written[key] = folder / f"{path.stem}.csv"
        pa.csv.write_csv(table, written[key], pa.csv.WriteOptions(delimiter=";"))
    return [word for key in "epl" for word in (f"-{key}", written[key])], written["t"]


@pytest.fixture
def expected(tmp_path, run, world):
    done = run("predict", *world.files, *NAPS, "-o", tmp_path / "expected.parquet")
    assert done.exit_code == 0, done.output
    return read_sets(tmp_path / "expected.parquet")


def test_every_command_reads_files_as_people_have_them(tmp_path, run, world, expected):
    names = {"node": "id", "source": "src", "target": "dst", "label": "class"}
    files, truth = semicolons(tmp_path, world, names)
    written = ("--separator", ";", *(f"--rename={theirs}={ours}" for ours, theirs in names.items()))
    sets = tmp_path / "sets.csv"
    done = run("predict", *files, *NAPS, *written, "-o", sets)
    assert done.exit_code == 0, done.output
    assert sets.read_text(encoding="utf-8").startswith('"node";"labels";"size"')
    done = run("evaluate", sets, "--labels", truth, "--edges", files[1], *written, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["mean_size"] == pytest.approx(expected.sets.sizes.mean())
    for command in (
        ("inspect", *files, "--node", world.ids[world.rest[0]], *NAPS),
        ("homophily", *files[:2], *files[4:]),
        ("report", *files, "--truth", truth, "--methods", "split,naps", "-o", tmp_path / "r.html"),
    ):
        done = run(*command, *written, "--json")
        assert done.exit_code == 0, done.output


def test_sets_go_to_standard_output_and_nothing_else_does(tmp_path, run, world, expected):
    done = run("predict", *world.files, *NAPS, "-o", "-")
    assert done.exit_code == 0, done.output
    assert "average set size" in done.stderr
    path = tmp_path / "out.csv"
    path.write_bytes(done.stdout_bytes)
    sets_file = read_sets(path)
    assert np.array_equal(sets_file.sets.member, expected.sets.member)
    np.testing.assert_allclose(sets_file.sets.thresholds, expected.sets.thresholds, rtol=1e-12)


def test_labels_and_sets_come_from_standard_input(tmp_path, run, world, expected):
    table = pq.read_table(world.labels_file)
    stream = pa.BufferOutputStream()
    pa.csv.write_csv(table, stream, pa.csv.WriteOptions(delimiter="\t"))
    lines = stream.getvalue().to_pybytes()
    files = world.files[:4]
    done = run("predict", *files, *NAPS, "-l", "-", "--separator", "tab", "-o", tmp_path / "s.parquet", stdin=lines)
    assert done.exit_code == 0, done.output
    assert np.array_equal(read_sets(tmp_path / "s.parquet").sets.member, expected.sets.member)
    done = run("predict", *files, *NAPS, "-l", "-", "-o", tmp_path / "s.csv", stdin=world.labels_file.read_bytes())
    assert done.exit_code == 0, done.output  # the first bytes of Parquet say so
    done = run("evaluate", "-", "--labels", world.truth, "--json", stdin=(tmp_path / "s.csv").read_bytes())
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["mean_size"] == pytest.approx(expected.sets.sizes.mean())


def test_what_is_wrong_with_standard_input_is_told_of_it(run, world):
    done = run("predict", *world.files[:4], *NAPS, "-l", "-", "-o", "-", stdin=b"a,b\n1,2\n")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "standard-input.csv lacks node, label" in " ".join(done.stderr.split())


def test_one_file_alone_can_be_standard_input(run):
    done = run("predict", "-e", "-", "-p", "-", "-l", "y.csv", "-o", "s.csv")
    assert done.exit_code == 2
    assert "only one file can be standard input" in " ".join(done.output.replace("│", " ").split())


def test_logits_give_the_sets_of_their_probabilities(tmp_path, run, world, expected):
    table = pq.read_table(world.probabilities_file)
    logits = [pa.array(np.log(table.column(name).to_numpy()) + 30.0) for name in table.column_names[1:]]
    path = tmp_path / "logits.parquet"
    pq.write_table(pa.table([table.column("node"), *logits], names=table.column_names), path)
    files = ["-e", world.edges, "-p", path, "-l", world.labels_file]
    done = run("predict", *files, *NAPS, "--logits", "-o", tmp_path / "s.parquet")
    assert done.exit_code == 0, done.output
    sets_file = read_sets(tmp_path / "s.parquet")
    np.testing.assert_allclose(sets_file.sets.thresholds, expected.sets.thresholds, rtol=1e-9)
    assert sets_file.metadata["logits"] is True
    node = world.ids[world.rest[0]]
    answer = json.loads(run("inspect", *files, "--node", node, *NAPS, "--logits", "--json").stdout)
    assert float(answer["threshold"]) == sets_file.sets.thresholds[0]
