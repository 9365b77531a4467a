"""The command against a standalone cluster, ``spark://``: a master and a worker, processes of their own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cases import assert_same_bits, random_case
from .conftest import PACKAGE_ROOT, need_spark
from .lost_executor import Rows
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
    """Start a master and a worker of PySpark's own Spark; give the master's address."""
    start = str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class")
    address = f"spark://127.0.0.1:{free_port()}"
    commands = [
        ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", address.rsplit(":", 1)[1]],
        [
            "org.apache.spark.deploy.worker.Worker",
            "--cores",
            "2",
            "--memory",
            "1g",
            "--work-dir",
            str(tmp_path),
            address,
        ],
    ]
    processes = []
    with (tmp_path / "log").open("w") as log:
        for kind, *options in commands:
            command = [start, kind, "--webui-port", "0", *options]
            processes.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log))
    try:
        until = time.monotonic() + 60
        while "Successfully registered with master" not in (line := (tmp_path / "log").read_text()):
            assert time.monotonic() < until, line
            time.sleep(0.1)
        yield address
    finally:
        for process in processes:
            process.terminate()
            process.wait()


#: What a user writes who has DataFrames and names no folder; the plan is run twice.
PROGRAM = """
import sys, logging
import napsets as ns

logging.basicConfig(level=logging.INFO)
master, folder = sys.argv[1:]
spark = ns.spark.start_session(master)
names = ("edges", "probabilities", "labels", "nodes")
tables = (spark.read.parquet(f"{folder}/in/{name}.parquet") for name in names)
sets = ns.spark.predict_sets(spark, *tables, alpha=0.4, seed=3, pool=5)
sets.write.parquet(f"{folder}/sets.parquet")
print(sets.count())
"""


def test_without_a_folder_spark_carries_the_graph_to_its_executors(
    master: str, environment: dict[str, str], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    case = random_case(22, nodes=80, edges=120, ids="string")
    write(case, tmp_path / "in", ".parquet")
    command = [sys.executable, "-c", PROGRAM, master, str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.split()[-1] == str(case.nodes.size)
    assert "plan graph-on-every-worker" in ran.stderr
    assert list(tmp_path.glob("app-*/*/napsets-*/indptr.npy"))  # where the executor has it
    assert_same_bits(Rows(pq.read_table(tmp_path / "sets.parquet")), case, case.expected(2, "uniform", 0.4, 3, pool=5))


def test_the_command_gives_the_sets_of_one_machine_on_a_standalone_cluster(
    master: str, environment: dict[str, str], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    case = random_case(21, nodes=80, edges=120)
    files = write(case, tmp_path / "in", ".parquet")
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    output = tmp_path / "sets.parquet"
    options += [
        "--method",
        "naps",
        "--output",
        str(output),
        "--alpha",
        "0.4",
        "--seed",
        "3",
        "--engine",
        "spark",
        "--master",
        master,
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "napsets", "predict", *options, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert json.loads(ran.stdout)["nodes"] == case.nodes.size
    assert "Registered app napsets" in (tmp_path / "log").read_text()
    assert_same_bits(Rows(pq.read_table(output)), case, case.expected(2, "uniform", 0.4, 3))
