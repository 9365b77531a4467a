"""Files in, a folder of Parquet out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.files import Reading, read_sets

from .cases import Case, assert_same_bits, random_case

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")]


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(20, nodes=80, edges=120, directed=True)


def write(case: Case, folder: Path, suffix: str = ".parquet") -> dict[str, str]:
    """Write the tables of a case: CSV files, or folders of two parts."""
    folder.mkdir()
    paths = {name: folder / f"{name}{suffix}" for name in case.columns()}
    for name, columns in case.columns().items():
        table = pa.table(columns)
        if suffix == ".csv":
            pyarrow.csv.write_csv(table, paths[name], pyarrow.csv.WriteOptions(delimiter=";"))
            continue
        paths[name].mkdir()
        half = table.num_rows // 2
        pq.write_table(table.slice(0, half), paths[name] / "part-0.parquet")
        pq.write_table(table.slice(half), paths[name] / "part-1.parquet")
    return {name: str(path) for name, path in paths.items()}


@pytest.mark.parametrize(
    ("suffix", "plan", "method"),
    [(".parquet", "graph", "informed"), (".csv", "graph", "naps"), (".parquet", "joins", "naps-exact")],
)
def test_files_give_the_sets_of_one_machine(
    spark: Any, case: Case, tmp_path: Path, suffix: str, plan: Any, method: str
) -> None:
    reading = Reading(directed=True, separator=";")
    output = tmp_path / "out [1]" / "sets.parquet"  # Spark takes brackets for a pattern
    paths = write(case, tmp_path / "in [1]", suffix)
    summary = ns.spark.predict_files(**paths, output=str(output), method=method, alpha=0.4, plan=plan, reading=reading)
    calibrated = case.calibrated(ns.make_method(method))
    expected = calibrated.predict(case.nodes, 0.4)
    assert_same_bits(pq.read_table(output), case, calibrated, 0.4)
    assert summary.row() == pytest.approx(expected.summary().row())
    about = read_sets(output).metadata
    level = calibrated.scored.level_nodes.size or case.calibration.size
    known = {"num_nodes": 80, "calibration": case.calibration.size, "level_labels": level, "plan": plan}
    assert about.items() >= {"method": method, "alpha": 0.4, "directed": True, **known}.items()
    assert about["class_names"] == [f"class-{y}" for y in range(4)]
    assert about["method_description"] == json.loads(json.dumps(calibrated.method.describe()))


def test_what_is_there_is_not_written_over_and_a_failure_leaves_no_result(
    spark: Any, case: Case, tmp_path: Path
) -> None:
    paths = write(case, tmp_path / "in")
    with pytest.raises(ns.InvalidInputError, match=r"`output` must be a new folder; .*in exists"):
        ns.spark.predict_files(**paths, output=str(tmp_path / "in"))
    with pytest.raises(ns.InvalidInputError, match=r"`output` would overwrite the input .*, or lie in it"):
        ns.spark.predict_files(**paths, output=f"{paths['labels']}/sets")
    address = (tmp_path / "in").as_uri()
    with pytest.raises(ns.InvalidInputError, match="`output` must be a new folder; file:"):
        ns.spark.predict_files(**paths, output=address)
    rows = pq.read_table(paths["probabilities"])
    chances = rows["class-0"].to_numpy() + np.where(rows["node"].to_numpy() == case.ids[case.nodes[-1]], 1.0, 0.0)
    pq.write_table(rows.set_column(1, "class-0", pa.array(chances)), tmp_path / "wrong.parquet")
    wrong = paths | {"probabilities": str(tmp_path / "wrong.parquet"), "output": str(tmp_path / "sets")}
    for plan in ("graph", "joins"):
        with pytest.raises(ns.InvalidInputError, match="`probabilities` must have rows of finite numbers"):
            ns.spark.predict_files(**wrong, plan=plan)
        assert not list(tmp_path.glob("sets/part-*"))
        assert not (tmp_path / "sets" / "_SUCCESS").exists()


def test_files_that_only_spark_sees_must_be_parquet(spark: Any, case: Case, tmp_path: Path) -> None:
    paths = write(case, tmp_path / "in")
    far = {name: Path(path).as_uri() for name, path in paths.items()}
    ns.spark.predict_files(**far, output=(tmp_path / "far").as_uri(), method="split", alpha=0.3)
    assert_same_bits(pq.read_table(tmp_path / "far"), case, case.calibrated(ns.make_method("split")), 0.3)
    with pytest.raises(ns.FileFormatError, match=r"`labels` must be a file or folder of Parquet where Spark reads it"):
        ns.spark.predict_files(**(far | {"labels": f"{far['labels']}x"}), output=str(tmp_path / "other"))
