"""What Spark writes replaces nothing but another result of ours, and says what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.files import read_sets
from napsets.files.prediction_columns import SETS
from worlds import World, make_world, write

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), nodes=40, degree=4)


def predict(world: World, output: Path | str, **settings: Any) -> Any:
    files = {"edges": world.edges, "probabilities": world.probabilities_file, "labels": world.labels_file}
    paths = {name: str(path) for name, path in files.items()}
    return ns.spark.predict_files(**(paths | {"output": str(output), "hops": 1, "alpha": 0.4} | settings))


@pytest.fixture(scope="module")
def written(spark: Any, world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "sets.parquet"
    predict(world, folder)
    return folder


def test_the_settings_are_those_of_the_local_engine(written: Path, world: World, tmp_path: Path, must_run: Any) -> None:
    here = tmp_path / "here.parquet"
    must_run("predict", *world.files, "-k", "1", "-a", "0.4", "-o", here)
    one, many = read_sets(here), read_sets(written)
    # Spark says how it went about it, and knows no logits.
    assert many.metadata.pop("plan") == "graph-on-every-worker"
    assert one.metadata.pop("logits") is False
    assert many.metadata == one.metadata
    assert (many.class_names, many.complete) == (one.class_names, True)
    order = [ids.take(np.arange(len(ids))).to_pylist() for ids in (one.ids, many.ids)]
    again = [order[1].index(node) for node in order[0]]
    np.testing.assert_array_equal(many.sets.member[again], one.sets.member)


def test_others_read_the_folder_as_before(spark: Any, written: Path) -> None:
    rows = pq.read_table(written).num_rows
    assert len(pd.read_parquet(written)) == rows
    assert duckdb.sql(f"select count(*) from '{written}/*.parquet'").fetchall() == [(rows,)]
    assert spark.read.parquet(str(written)).count() == rows
    assert "_napsets.json" in os.listdir(written)


def test_spark_reads_what_one_machine_wrote(spark: Any, world: World, tmp_path: Path, must_run: Any) -> None:
    names = ["cat", "a,b", "ü\"'"]
    columns = {"node": world.ids} | {name: world.probabilities[:, y] for y, name in enumerate(names)}
    labels = {"node": world.ids[world.calibration], "label": np.array(names)[world.labels[world.calibration]]}
    files = [write(tmp_path / "p.parquet", columns), write(tmp_path / "y.parquet", labels)]
    here = tmp_path / "here.parquet"
    must_run("predict", "-e", world.edges, "-p", files[0], "-l", files[1], "-k", "1", "-a", "0.4", "-o", here)
    rows = [row.asDict() for row in spark.read.parquet(str(here)).collect()]
    assert rows == pq.read_table(here).to_pylist()
    assert {label for row in rows for label in row["labels"]} == set(names)
    assert {np.isinf(row["threshold"]) for row in rows} == {True, False}


def test_an_earlier_result_and_an_empty_folder_are_replaced(spark: Any, world: World, tmp_path: Path) -> None:
    output = tmp_path / "sets"
    output.mkdir()
    predict(world, output)
    assert read_sets_alpha(output) == 0.4
    predict(world, output, alpha=0.3)
    assert read_sets_alpha(output) == 0.3
    assert os.listdir(tmp_path) == ["sets"]


def read_sets_alpha(folder: Path) -> float:
    return float(json.loads((folder / "_napsets.json").read_text())["alpha"])


def foreign_note(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")


def foreign_folder(folder: Path) -> None:
    (folder / "deep").mkdir()


def foreign_table(folder: Path) -> None:
    (folder / "_SUCCESS").touch()
    write(folder / "part-0.parquet", {"x": [1]})


def unmarked_parts(folder: Path) -> None:
    (folder / "_SUCCESS").touch()
    pq.write_table(pa.table({name: [1] for name in SETS.required}), folder / "part-0.parquet")


def ours_with_a_note(folder: Path) -> None:
    (folder / "_napsets.json").write_text('{"napsets": "0.1.0"}')
    foreign_note(folder)


@pytest.mark.parametrize("fill", [foreign_note, foreign_folder, foreign_table, unmarked_parts, ours_with_a_note])
def test_a_folder_that_napsets_did_not_write_is_refused(spark: Any, world: World, tmp_path: Path, fill: Any) -> None:
    output = tmp_path / "sets.parquet"
    output.mkdir()
    fill(output)
    before = {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}
    with pytest.raises(ns.InvalidInputError, match=r"`output` must be a new directory, or one that napsets wrote"):
        predict(world, output)
    assert {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()} == before
    assert os.listdir(tmp_path) == ["sets.parquet"]


@pytest.mark.parametrize("name", ["in", "link", "in/deep/..", "file:in"])
def test_a_folder_that_holds_an_input_is_refused(
    spark: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("in")
    edges = tmp_path / "in" / "deep" / "edges.parquet"
    edges.write_bytes(world.edges.read_bytes())
    output = f"file:{tmp_path}/in" if name == "file:in" else name
    with pytest.raises(ns.InvalidInputError, match="`output` must not hold an input, which would be lost"):
        predict(world, output, edges="link/deep/edges.parquet")
    with pytest.raises(ns.InvalidInputError, match="`output` must not hold an input, which would be lost"):
        predict(world, output, edges=f"{tmp_path}/in/*/edges.parquet")
    assert edges.read_bytes() == world.edges.read_bytes()


def test_an_output_that_is_an_input_or_lies_in_one_is_refused(spark: Any, world: World, tmp_path: Path) -> None:
    folder = tmp_path / "edges.parquet"
    folder.mkdir()
    (folder / "part-0.parquet").write_bytes(world.edges.read_bytes())
    with pytest.raises(ns.InvalidInputError, match="`output` would overwrite the input"):
        predict(world, folder, edges=str(folder))
    with pytest.raises(ns.InvalidInputError, match="`output` must lie outside the inputs"):
        predict(world, folder / "sets", edges=str(folder))
    with pytest.raises(ns.InvalidInputError, match="`output` would overwrite the input"):
        predict(world, world.edges)
    assert os.listdir(folder) == ["part-0.parquet"]


def test_a_file_that_does_not_look_like_parquet_is_not_replaced(spark: Any, world: World, tmp_path: Path) -> None:
    (tmp_path / "README").write_text("mine")
    with pytest.raises(ns.InvalidInputError, match=r"`output` must be a directory of Parquet; .*README is a file"):
        predict(world, tmp_path / "README")
    assert (tmp_path / "README").read_text() == "mine"


def test_a_bare_name_lies_where_the_process_is(
    spark: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # which Java, started before, does not follow
    write(tmp_path / "n.parquet", {"node": world.ids[world.rest[:3]]})
    seen: list[list[str]] = []
    at_root = {name for name in os.listdir("/") if "sets.parquet" in name}
    predict(world, "sets.parquet", nodes="n.parquet", progress=lambda *_: seen.append(os.listdir(tmp_path)))
    assert sorted(os.listdir(tmp_path)) == ["n.parquet", "sets.parquet"]
    assert all(".sets.parquet.work" in names for names in seen)
    assert {name for name in os.listdir("/") if "sets.parquet" in name} == at_root
    assert len(read_sets(tmp_path / "sets.parquet").sets) == 3


def test_addresses_stay_what_they_are_and_local_ones_become_paths(spark: Any, tmp_path: Path) -> None:
    from napsets.spark.session import absolute, local_path

    assert absolute(spark, f"file://{tmp_path}/x/") == absolute(spark, f"file:{tmp_path}/x") == f"{tmp_path}/x"
    assert absolute(spark, f"{tmp_path}/a b:c/") == f"{tmp_path}/a b:c"
    assert local_path("s3a://bucket/x") is None
    assert local_path("/x") == "/x"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("hdfs://h/out", "would overwrite the input"),
        ("hdfs://h/out/in", "must not hold an input"),
        ("hdfs://h", "must lie outside the inputs"),
    ],
)
def test_addresses_are_kept_apart_too(path: str, message: str) -> None:
    from napsets.spark.session import _check_addresses

    with pytest.raises(ns.InvalidInputError, match=message):
        _check_addresses("hdfs://h/out", [path])
    _check_addresses("hdfs://h/out", ["hdfs://h/output", "hdfs://g/out", "/out"])


# -- what killed runs leave ----------------------------------------------------------------------------------------


def dead_mark() -> str:
    """The mark of a process that is gone."""
    code = "from napsets.files.paths import draft_mark; print(draft_mark())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_what_killed_runs_left_is_removed_and_what_living_ones_write_is_not(
    spark: Any, world: World, tmp_path: Path
) -> None:
    from napsets.files.paths import draft_mark

    output, dead, alive = tmp_path / "sets.parquet", dead_mark(), draft_mark()
    left = [f".sets.parquet.{dead}", f".sets.parquet.work/.claim.{dead}", f".sets.parquet.work/napsets-{'0' * 16}"]
    kept = [f".sets.parquet.{alive}", f".other.parquet.{dead}", ".sets.parquet.mine"]
    for name in (*left, *kept):
        (tmp_path / name).mkdir(parents=True)
    predict(world, output)
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "sets.parquet"])


def test_where_another_job_is_writing_this_one_ends_and_leaves_its_work_alone(
    spark: Any, world: World, tmp_path: Path
) -> None:
    from napsets.files.paths import draft_mark

    work = tmp_path / ".sets.parquet.work"
    (work / f".claim.{draft_mark()}").mkdir(parents=True)
    (work / f"napsets-{'0' * 16}").mkdir()
    (work / "mine.txt").write_text("mine")
    before = sorted(os.listdir(work))
    with pytest.raises(ns.InvalidInputError, match="`output` must be written by one job at a time; another is writing"):
        predict(world, tmp_path / "sets.parquet")
    assert sorted(os.listdir(work)) == before
    assert os.listdir(tmp_path) == [".sets.parquet.work"]


def test_of_two_jobs_with_one_output_one_is_refused_and_the_other_is_unharmed(
    spark: Any, world: World, tmp_path: Path
) -> None:
    output, refused = tmp_path / "sets.parquet", []

    def start_another(done: int, total: int) -> None:
        with pytest.raises(ns.InvalidInputError, match="another is writing") as error:
            predict(world, output, alpha=0.3)
        refused.append(error)

    predict(world, output, progress=start_another)
    assert refused
    assert read_sets_alpha(output) == 0.4
    assert os.listdir(tmp_path) == ["sets.parquet"]


def test_of_two_jobs_that_do_the_same_in_one_folder_one_is_refused(spark: Any, tmp_path: Path) -> None:
    from napsets.spark.session import claimed

    folder = str(tmp_path / "work")
    with (
        claimed(spark, folder, "taken"),
        pytest.raises(ns.InvalidInputError, match=r"^taken\. Wait until it ends"),
        claimed(spark, folder, "taken"),
    ):
        pytest.fail("claimed twice")
    with claimed(spark, folder, "taken"):
        assert [path.name[:7] for path in (tmp_path / "work").iterdir() if path.suffix != ".crc"] == [".claim."]
    assert os.listdir(tmp_path / "work") == []


def test_groups_are_those_of_one_machine_and_are_written_down(spark: Any, world: World, tmp_path: Path) -> None:
    from napsets.files import read_inputs
    from napsets.methods.table import make_method

    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    for by in ("class", "degree"):
        predict(world, tmp_path / f"{by}.parquet", by=by)
        one = inputs.calibrate(make_method("naps", hops=1, by=by)).predict(world.rest, 0.4)
        assert sorted(read_sets(tmp_path / f"{by}.parquet").sets.sizes) == sorted(one.sizes)
        assert json.loads((tmp_path / f"{by}.parquet" / "_napsets.json").read_text())["by"] == by


def test_a_result_that_a_killed_run_had_put_aside_comes_back(spark: Any, tmp_path: Path) -> None:
    from napsets.spark import session

    old = tmp_path / f".sets.parquet.{dead_mark()}.old"
    old.mkdir()
    (old / "part-0.parquet").write_text("the former result")
    with pytest.raises(KeyError), session.beside(spark, str(tmp_path / "sets.parquet")):
        raise KeyError
    assert os.listdir(tmp_path) == ["sets.parquet"]
    assert (tmp_path / "sets.parquet" / "part-0.parquet").read_text() == "the former result"
