"""The graph on every worker when drivers and workers are lost or disks are full, and what a worker holds of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.methods.table import make_method

from .cases import Case, assert_same_bits, random_case
from .lost_executor import command
from .test_batches import LostError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`nodes` holds:napsets.NapsetsWarning")]

PLAN = "graph-on-every-worker"


# -- faults --------------------------------------------------------------------------------------------------------


def written(folder: Path) -> dict[str, int]:
    """When each share and each mark was written."""
    paths = [*folder.glob("*/*.done"), *folder.glob("*/shares-*/part-*.parquet")]
    return {path.name: path.stat().st_mtime_ns for path in paths}


@pytest.mark.usefixtures("in_tasks")
def test_after_a_lost_driver_finished_steps_and_shares_are_kept(spark: Any, case: Case, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def lose_the_driver(done: int, total: int) -> None:
        raise LostError

    def run(progress: Any) -> Any:
        return ns.spark.predict_sets(
            spark,
            **case.tables(spark),
            alpha=0.2,
            checkpoint_dir=str(tmp_path),
            batch_size=20,
            progress=progress,
            plan=PLAN,
        )

    with pytest.raises(LostError):
        run(lose_the_driver)
    before = written(tmp_path)
    (folder,) = tmp_path.iterdir()
    shares = sorted(folder.glob("shares-*/part-*.parquet"))
    assert len(shares) == 8  # four for each of two cores
    shares[3].unlink()  # as if it had been lost before this one was whole
    (shares[3].parent / ".part-0000003.parquet.12345678").write_bytes(b"half of it")
    sets = run(lambda done, total: seen.append((done, total)))
    after = written(tmp_path)
    assert all(after[name] == at for name, at in before.items() if name != shares[3].name)
    assert after[shares[3].name] != before[shares[3].name]
    assert seen == [(7, 15), (15, 15)]
    assert not list(folder.glob("state-*"))
    assert_same_bits(sets, case, case.expected(2, "uniform", 0.2, 0))
    seen.clear()
    assert_same_bits(run(lambda done, total: seen.append((done, total))), case, case.expected(2, "uniform", 0.2, 0))
    assert (seen, written(tmp_path)) == ([(15, 15)], after)


def kill_workers(done: int, total: int) -> None:
    """Kill the processes that run Python for Spark's tasks; the one that starts them stays."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "pyspark.daemon" in command(process) and "pyspark.daemon" in command(process.parent()):
                process.kill()


@pytest.mark.usefixtures("in_tasks")
def test_killed_workers_cost_what_they_were_at_and_no_more(spark: Any, case: Case, tmp_path: Path) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    def run(progress: Any) -> Any:
        how = {"alpha": 0.2, "hops": 1, "checkpoint_dir": str(tmp_path), "batch_size": 20, "plan": PLAN}
        return ns.spark.predict_sets(spark, **case.tables(spark), **how, progress=progress)

    with suppress(PySparkException, Py4JError):  # on one machine Spark runs a task once; on others it runs it again
        run(kill_workers)
    before = {name: at for name, at in written(tmp_path).items() if name.endswith(".parquet")}
    assert len(before) >= 8
    sets = run(None)
    after = written(tmp_path)
    assert all(after[name] == at for name, at in before.items())
    assert_same_bits(sets, case, case.expected(1, "uniform", 0.2, 0))


def test_a_full_disk_leaves_no_half_of_anything_and_the_same_call_goes_on(
    spark: Any, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays are written by system calls, which fail where there is no room: here in the process of the driver."""
    from napsets.spark import mapped

    def no_room(*arguments: Any) -> int:
        raise OSError(28, "No space left on device")

    folder = mapped.Folder(str(tmp_path))
    folder.make("rows", np.float64, (10, 2))
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_room)
        with pytest.raises(OSError, match="No space left"):
            folder.fill("rows", 0, np.ones((10, 2)))
        with pytest.raises(OSError, match="No space left"):
            folder.step("filling", lambda own: folder.fill("rows", 0, np.ones((10, 2))) or {})
    assert folder.done("filling") is None
    assert folder.step("filling", lambda own: folder.fill("rows", 3, np.ones((2, 2))) or {"rows": 2})["rows"] == 2
    assert folder.array("rows")[:, 0].tolist() == [0.0] * 3 + [1.0] * 2 + [0.0] * 5


# -- what a worker holds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["naps", "informed", "daps"])
def test_a_worker_maps_every_large_array_and_copies_none(tmp_path: Path, name: str) -> None:
    from napsets.spark.mapped import Folder, pack, unpack

    case = random_case(44, nodes=6000, edges=30_000)
    calibrated = make_method(name, hops=2, seed=1).calibrate_rows(
        case.graph, case.probabilities, case.labels, case.calibration, case.ids
    )
    expected = calibrated.predict(case.nodes, 0.2)
    folder = Folder(str(tmp_path))
    data = pack(calibrated, folder, {}, "state")
    assert len(data) < 20_000
    again = unpack(data, folder)
    prediction = again.predict(case.nodes, 0.2, threads=1)
    for column in ("member", "thresholds", "support", "effective_size"):
        assert getattr(prediction, column).tobytes() == getattr(expected, column).tobytes()
    graph = again.graph
    held = [graph.indptr, graph.indices, again.score.probabilities, again.scored.u, again.scored.reference.nodes]
    held += [part for part in vars(again.scored.reference.index).values() if isinstance(part, np.ndarray)]
    for array in held:
        assert isinstance(_owner(array), np.memmap) or array.nbytes < 4096
        assert not array.flags.writeable


def _owner(array: Any) -> Any:
    while isinstance(array.base, np.ndarray | memoryview):
        array = array.base.obj if isinstance(array.base, memoryview) else array.base
    return array


def test_an_array_that_was_mapped_is_not_written_again(tmp_path: Path) -> None:
    from napsets.spark.mapped import Folder, pack, unpack

    folder = Folder(str(tmp_path))
    folder.save("p", np.arange(5000.0))
    mapped = folder.array("p")
    data = pack([mapped, mapped[10:], np.arange(3)], folder, {"p": mapped}, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new-1.npy", "p.npy"]
    whole, part, few = unpack(data, folder)
    assert (whole.tolist(), part.tolist()) == (mapped.tolist(), mapped[10:].tolist())
    assert few.tolist() == [0, 1, 2]
