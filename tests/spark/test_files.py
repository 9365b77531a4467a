"""Files in, a directory of Parquet out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns

from .cases import Case, assert_same_bits, random_case
from .conftest import PACKAGE_ROOT, SMALL, need_spark
from .lost_executor import Rows

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")]


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(20, nodes=80, edges=120)


def write(case: Case, folder: Path, suffix: str) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    classes = {f"class-{y}": case.probabilities[:, y] for y in range(4)}
    tables = {
        "edges": {"source": case.ids[case.edge_index[0]], "target": case.ids[case.edge_index[1]]},
        "probabilities": {"node": case.ids, **classes},
        "labels": {"node": case.ids[case.calibration], "label": [f"class-{y}" for y in case.labels[case.calibration]]},
        "nodes": {"node": case.ids[case.nodes]},
    }
    folder.mkdir(exist_ok=True)
    for name, columns in tables.items():
        path, table = folder / f"{name}{suffix}", pa.table(columns)
        if suffix == ".csv":
            pyarrow.csv.write_csv(table, path)
        else:
            path.mkdir()
            half = table.num_rows // 2
            pyarrow.parquet.write_table(table.slice(0, half), path / "part-0.parquet")
            pyarrow.parquet.write_table(table.slice(half), path / "part-1.parquet")
    return {name: str(folder / f"{name}{suffix}") for name in tables}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_directories_of_parquet_and_csv_give_the_sets_of_one_machine(
    spark: Any, case: Case, tmp_path: Path, suffix: str
) -> None:
    import pyarrow.parquet as pq

    paths = write(case, tmp_path / "in", suffix)
    output = tmp_path / "out" / "sets.parquet"
    output.mkdir(parents=True)
    summary = ns.spark.predict_files(**paths, output=str(output), hops=1, alpha=0.4, seed=3)
    expected = case.expected(1, "uniform", 0.4, 3)
    assert_same_bits(Rows(pq.read_table(output)), case, expected)
    assert summary.nodes == len(expected)
    assert summary.empty == (expected.sizes == 0).sum()
    assert summary.full == (expected.sizes == 4).sum()
    assert summary.infinite == np.isinf(expected.thresholds).sum()
    assert summary.unreached == (expected.support == 0).sum()
    assert summary.mean_size == pytest.approx(expected.sizes.mean())
    assert [path.name for path in output.parent.iterdir()] == ["sets.parquet"]


def test_bad_input_is_told_in_plain_words_and_leaves_nothing_behind(spark: Any, case: Case, tmp_path: Path) -> None:
    paths = write(case, tmp_path / "in", ".csv")
    labels = Path(paths["labels"])
    labels.write_text(labels.read_text() + f"{case.ids[case.calibration[0]]},class-1\n")
    with pytest.raises(ns.InvalidInputError, match=r"^`labels` must have one row per node; node -?\d+ has 2 rows$"):
        ns.spark.predict_files(**paths, output=str(tmp_path / "sets.parquet"), hops=1)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_ids_that_are_no_integers_where_others_are_get_refused(spark: Any, case: Case, tmp_path: Path) -> None:
    paths = write(case, tmp_path / "in", ".csv")
    Path(paths["nodes"]).write_text("node\n007\n")
    with pytest.raises(ns.InvalidInputError, match=r"`nodes` must have integer ids, as `probabilities` has; .* 007"):
        ns.spark.predict_files(**paths, output=str(tmp_path / "sets.parquet"), hops=1)


REGIONS = ["EU", "NA", "null", 'say "NaN"']


def regions(folder: Path, labels: list[str]) -> dict[str, str]:
    """Eight nodes in a ring, whose classes are called as others call nothing."""
    nodes = range(len(labels))
    tables = {
        "edges": ["source,target", *(f"{i},{(i + 1) % len(labels)}" for i in nodes)],
        "probabilities": ['node,EU,NA,null,"say ""NaN"""', *(f"{i},0.4,0.3,0.2,0.1" for i in nodes)],
        "labels": ["node,label", *(f"{i},{label}" for i, label in enumerate(labels))],
        "nodes": ["node", *map(str, nodes)],
    }
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return {name: str(folder / f"{name}.csv") for name in tables}


def test_only_an_empty_cell_of_csv_is_no_label(spark: Any, tmp_path: Path) -> None:
    from napsets.files import read_sets

    paths = regions(tmp_path, ["EU", "NA", "null", '"say ""NaN"""', "", '""', "-1", "NA"])
    ns.spark.predict_files(**paths, output=str(tmp_path / "sets.parquet"), hops=1, alpha=0.6)
    file = read_sets(tmp_path / "sets.parquet")
    assert file.class_names == REGIONS
    assert file.metadata["calibration"] == 5
    near = dict(zip(file.ids.take(np.arange(8)).to_pylist(), file.sets.support.tolist(), strict=True))
    assert [near[i] for i in range(8)] == [2, 2, 2, 1, 1, 0, 1, 1]


def test_a_damaged_file_is_named(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "e.parquet").write_text("no Parquet at all")
    message = r"`edges` must be a file or directory of Parquet or CSV; .*e\.parquet is not: .*not a Parquet file"
    with pytest.raises(ns.FileFormatError, match=message):
        ns.spark.predict_files(
            edges=str(tmp_path / "e.parquet"), probabilities="p", labels="l", output=str(tmp_path / "sets")
        )


def test_a_missing_file_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ns.FileFormatError, match=r"`edges` must be a file or directory of Parquet or CSV; .*absent"):
        ns.spark.predict_files(
            edges=str(tmp_path / "absent"), probabilities="p", labels="l", output=str(tmp_path / "sets")
        )
    assert list(tmp_path.iterdir()) == []


def test_other_formats_than_parquet_are_not_written(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(ns.InvalidInputError, match=r"`output` must be a directory of Parquet; got sets\.csv"):
        ns.spark.predict_files(edges="e", probabilities="p", labels="l", output="sets.csv")


#: A driver of its own, which can be killed.
DRIVER = "import json, sys; from napsets.spark import predict_files; predict_files(**json.loads(sys.argv[1]))"


def start_driver(arguments: dict[str, Any]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": PACKAGE_ROOT, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, json.dumps(arguments)]
    return subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="process groups are Unix's")
def test_after_the_driver_is_killed_the_same_call_goes_on(case: Case, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    need_spark()
    output = tmp_path / "out" / "sets.parquet"
    arguments = write(case, tmp_path / "in", ".parquet") | {"output": str(output), "seed": 3, "alpha": 0.4}
    arguments |= {"batch_size": 10, "config": SMALL, "plan": "joins"}
    driver = start_driver(arguments)
    while not (first := list(output.parent.glob(".sets.parquet.work/*/batch-00000/_SUCCESS"))):
        assert driver.poll() is None
        time.sleep(0.05)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert not output.exists()
    written = first[0].stat().st_mtime_ns
    again = start_driver(arguments)
    while again.poll() is None:
        with suppress(FileNotFoundError):  # at the end it is removed
            assert first[0].stat().st_mtime_ns == written
        time.sleep(0.05)
    assert again.returncode == 0
    assert [path.name for path in output.parent.iterdir()] == ["sets.parquet"]
    assert_same_bits(Rows(pq.read_table(output)), case, case.expected(2, "uniform", 0.4, 3))


class Stubborn:
    """A file system that refuses to put the new result in its place."""

    def __init__(self, system: Any) -> None:
        self.system = system
        self.renames = 0

    def rename(self, source: Any, target: Any) -> bool:
        self.renames += 1
        return self.renames != 2 and bool(self.system.rename(source, target))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.system, name)


def test_an_old_result_stays_where_the_new_one_cannot_be_put(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from napsets.spark import session

    located = session.located
    stubborn = Stubborn(located(spark, str(tmp_path))[0])
    monkeypatch.setattr(session, "located", lambda *arguments: (stubborn, located(*arguments)[1]))
    output = tmp_path / "sets.parquet"
    output.mkdir()
    (output / "old").touch()
    with pytest.raises(OSError, match="could not rename"), session.beside(spark, str(output)) as (_, written):
        Path(written.removeprefix("file:")).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["sets.parquet"]
    assert (output / "old").exists()


@pytest.mark.parametrize(
    ("suffix", "text", "plan"),
    [
        (".parquet", False, "joins"),
        (".parquet", False, "graph-on-every-worker"),
        (".parquet", True, "graph-on-every-worker"),
        (".csv", False, "graph-on-every-worker"),
    ],
)
def test_integer_labels_stay_integers_and_text_stays_text(
    spark: Any, case: Case, tmp_path: Path, suffix: str, text: bool, plan: Any
) -> None:
    """As one machine has it: numbers come back as numbers, text of a file with types as text."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    from napsets.files import read_inputs, write_predictions
    from napsets.methods.table import make_method

    paths = write(case, tmp_path / "in", suffix)
    labels = case.labels[case.calibration]
    table = pa.table({"node": case.ids[case.calibration], "label": labels.astype(str) if text else labels})
    p = pa.array(case.probabilities.tolist(), pa.list_(pa.float64()))
    paths |= {name: str(tmp_path / f"{name}.parquet") for name in ("probabilities", "labels")}
    pq.write_table(pa.table({"node": case.ids, "probabilities": p}), paths["probabilities"])
    if suffix == ".csv":
        paths["labels"] = str(tmp_path / "labels.csv")
        pyarrow.csv.write_csv(table, paths["labels"])
    else:
        pq.write_table(table, paths["labels"])
    output, here = tmp_path / "sets.parquet", tmp_path / "here.parquet"
    ns.spark.predict_files(**paths, output=str(output), alpha=0.2, plan=plan, batch_size=1000)
    inputs = read_inputs(*(paths[name] for name in ("edges", "probabilities", "labels", "nodes") if name in paths))
    write_predictions(inputs, here, inputs.calibrate(make_method("naps")), alpha=0.2, metadata={})
    written, expected = (pq.read_table(path).select(["node", "labels", "prediction"]) for path in (output, here))
    assert pa.types.is_integer(written.schema.field("prediction").type) is not text
    assert written.schema.field("labels").type.value_type == expected.schema.field("labels").type.value_type
    assert written.sort_by("node").to_pylist() == expected.sort_by("node").to_pylist()


@pytest.mark.filterwarnings("error:joins are:napsets.NapsetsWarning")
def test_an_output_at_an_address_takes_the_graph_on_every_worker_too(spark: Any, case: Case, tmp_path: Path) -> None:
    """A file system of Hadoop's that is no path of this machine, as ``hdfs://`` and ``s3a://`` are."""
    import pyarrow.parquet as pq

    paths = write(case, tmp_path / "in", ".parquet")
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.far.link./out", f"file://{tmp_path}/out")
    (tmp_path / "out").mkdir()
    ns.spark.predict_files(**paths, output="viewfs://far/out/sets.parquet", hops=1, alpha=0.4, seed=3)
    written = tmp_path / "out" / "sets.parquet"
    assert json.loads((written / "_napsets.json").read_text())["plan"] == "graph-on-every-worker"
    assert_same_bits(Rows(pq.read_table(written)), case, case.expected(1, "uniform", 0.4, 3))
    assert [path.name for path in (tmp_path / "out").iterdir() if path.suffix != ".crc"] == ["sets.parquet"]
