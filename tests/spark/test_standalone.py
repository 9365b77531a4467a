"""Both plans on a standalone cluster, ``spark://``: a master and two workers, processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import napsets as ns

from .cases import assert_same_bits, random_case
from .conftest import PACKAGE_ROOT, need_spark
from .test_files import write

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning"),
]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def environment() -> dict[str, str]:
    need_spark()
    import pyspark

    return os.environ | {
        "PYTHONPATH": PACKAGE_ROOT,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.fixture
def master(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """Start a master and two workers of PySpark's own Spark; give the master's address."""
    start = str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class")
    address = f"spark://127.0.0.1:{free_port()}"
    worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path)]
    commands = [
        ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", address.rsplit(":", 1)[1]],
        *[[*worker, address]] * 2,
    ]
    processes = []
    with (tmp_path / "log").open("w") as log:
        for kind, *options in commands:
            command = [start, kind, "--webui-port", "0", *options]
            processes.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log))
    try:
        until = time.monotonic() + 180
        while (log := (tmp_path / "log").read_text()).count("Successfully registered with master") < 2:
            assert time.monotonic() < until, log
            time.sleep(0.1)
        yield address
    finally:
        for process in processes:
            process.terminate()
            process.wait()


PROGRAM = """
import sys
import napsets as ns

master, folder = sys.argv[1:]
spark = ns.spark.start_session(master)
spark.sparkContext.setCheckpointDir(f"{folder}/checkpoints")
names = ("edges", "probabilities", "labels", "nodes")
for plan in ("graph", "joins"):
    tables = (spark.read.parquet(f"{folder}/in/{name}.parquet") for name in names)
    sets = ns.spark.predict_sets(spark, *tables, ns.NAPS(pool=5, seed=3, exact=True), 0.4, plan=plan)
    sets.write.parquet(f"{folder}/{plan}")
"""


def test_a_cluster_gives_the_sets_of_one_machine(master: str, environment: dict[str, str], tmp_path: Path) -> None:
    case = random_case(22, nodes=80, edges=120, ids="string")
    write(case, tmp_path / "in")
    command = [sys.executable, "-c", PROGRAM, master, str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "Registered app napsets" in (tmp_path / "log").read_text()
    assert list((tmp_path / "checkpoints").rglob("part-*"))
    for plan in ("graph", "joins"):
        calibrated = case.calibrated(ns.NAPS(pool=5, seed=3, exact=True))
        assert_same_bits(pq.read_table(tmp_path / plan), case, calibrated, 0.4)
