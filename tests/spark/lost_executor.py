"""A job on two executors, one of which is killed on the way. Runs in a process of its own: Spark has one context each.

The executors are those of Spark's local-cluster mode: processes of their own, which only the driver talks to.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__)


class Rows:
    """What a DataFrame gives where only `toArrow` is asked of it."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def toArrow(self) -> Any:
        return self.table


def run_and_lose_one(case: Any, folder: Path, plan: str) -> tuple[Rows, int, int]:
    """Run the case in another process; return the sets, after how many batches one was killed, and of how many."""
    import pyarrow.parquet as pq

    from .conftest import PACKAGE_ROOT

    (folder / "case.pickle").write_bytes(pickle.dumps(case.__dict__ | {"frames": {}}))
    (folder / "plan").write_text(plan)
    environment = os.environ | {"PYTHONPATH": PACKAGE_ROOT, "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"{HERE.parent.name}.{HERE.stem}", str(folder)],
        cwd=HERE.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    answer = json.loads((folder / "record.json").read_text())
    assert answer["killed"] in answer["executors_before"]
    assert answer["killed"] not in answer["executors_after"]
    return Rows(pq.read_table(folder / "sets.parquet")), answer["lost_after"], answer["batches"]


def executors() -> list[int]:
    """Process ids of the executors that this process's Spark has started."""
    import psutil

    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if "CoarseGrainedExecutorBackend" in command(child)]


def command(process: Any) -> str:
    import psutil

    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # gone in the meantime
        return ""


class Killer:
    """Kills an executor a moment after the first batch is done, while the next is under way."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.done = 0
        self.thread: threading.Thread | None = None

    def __call__(self, done: int, total: int) -> None:
        self.done = done
        self.record["batches"] = total
        if self.thread is None:
            self.thread = threading.Thread(target=self.kill)
            self.thread.start()

    def kill(self) -> None:
        time.sleep(0.05)
        self.record["executors_before"] = executors()
        self.record["killed"] = self.record["executors_before"][0]
        os.kill(self.record["killed"], 9)
        self.record["lost_after"] = self.done


def main(folder: Path) -> None:
    import pyarrow.parquet as pq
    import pyspark

    import napsets as ns

    from .cases import Case
    from .conftest import SMALL

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    case = Case(**pickle.loads((folder / "case.pickle").read_bytes()))
    spark = ns.spark.start_session("local-cluster[2,1,1024]", SMALL | {"spark.executor.memory": "600m"})
    killer, plan = Killer(), (folder / "plan").read_text()
    sets = ns.spark.predict_sets(
        spark,
        **case.tables(spark),
        decay="hyperbolic",
        alpha=0.2,
        seed=9,
        checkpoint_dir=str(folder / "checkpoints"),
        batch_size=-(-case.nodes.size // (2 if plan == "joins" else 12)),
        progress=killer,
        plan=plan,
    )
    pq.write_table(sets.toArrow(), folder / "sets.parquet")
    assert killer.thread is not None
    killer.thread.join()
    killer.record["executors_after"] = executors()
    (folder / "record.json").write_text(json.dumps(killer.record))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
