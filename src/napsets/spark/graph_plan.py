"""The graph on every worker: nodes go to the graph, not edges to the nodes.

The tables become arrays (`Arrays`), and the method is calibrated on them. Then the nodes to predict are cut into
shares, and every worker maps the arrays, which a machine holds once, and runs the kernels on its shares.

In a folder that all machines see, every step is marked when it is done, and every share's sets appear whole under their
name: the same call goes on after a lost executor, a lost driver or a full disk. Where there is no such folder, the
driver makes the arrays and Spark carries them to its executors.
"""

from __future__ import annotations

import os
import shutil
import uuid
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame

from napsets.predictions import SetsSummary
from napsets.spark import shares
from napsets.spark.arrays import Arrays, Numbered, is_local
from napsets.spark.plans import GRAPH_PLAN
from napsets.spark.session import literally, plain_errors
from napsets.spark.shares import CalibrationResult, CalibrationTask, PredictionTask
from napsets.spark.tables import Result, sets_columns, with_level

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

#: Nodes of a share: enough to outweigh what a search needs to start, little enough to lose.
_LARGEST_SHARE, _SMALLEST_SHARE = 1 << 18, 1 << 14
#: Shares per core: the last ones to end leave few cores idle, and progress can be shown.
_SHARES_PER_CORE = 4


@dataclass(frozen=True, eq=False)
class GraphJob:
    """One call; progress is counted in shares, of `batch_size` nodes where that is given."""

    arrays: Arrays
    method: Any
    alpha: float
    batch_size: int | None = None
    progress: Progress | None = None

    def run(self) -> Result:
        """Do all of it; when this returns the sets are written, or a plan where Spark carries the arrays."""
        with plain_errors():
            numbered = self.arrays.make()
            if self.arrays.route.carried:
                return self._carried(numbered)
            facts = self._predicted(numbered)
        store, spark = self.arrays.store, self.arrays.spark
        files = tuple(sorted(str(path) for path in Path(store.file(facts["folder"])).glob("part-*.parquet")))
        if self.arrays.route.temporary:  # only the sets are needed from here on
            _remove(store.path, "*.npy")
        schema = sets_columns(self.arrays.tables)
        # One by one, so that drafts of tasks that were killed are not read.
        paths = [literally(f"file://{file}") for file in files]
        sets = spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
        counts, infinite, unreached = facts["summary"]
        summary = SetsSummary(np.array(counts, dtype=np.int64), infinite, unreached)
        return _result(sets, numbered, facts, files, summary)

    # -- in a folder -----------------------------------------------------------------------------------------------

    def _predicted(self, numbered: Numbered) -> dict[str, Any]:
        """Calibrate and predict what is not there yet; return where the sets are, and what was found on the way."""
        store = self.arrays.store
        facts = store.done("sets")
        if facts is not None:
            if self.progress is not None:
                self.progress(facts["shares"], facts["shares"])
            return facts
        _remove(store.path, "state-*.npy")  # of a run that was lost
        kernels = self._kernels()
        calibrated = self._calibrated(numbered, kernels)
        # Written down: after a restart the cluster may be another, and shares must stay what they were.
        cut = store.step("shares", lambda own: {"size": self._share_size(calibrated.targets)})
        task = self._task(cut["folder"], int(cut["size"]), kernels)
        facts = calibrated.facts(task.size) | {"folder": cut["folder"]}
        summary = self._predict_all(task, calibrated.state, facts["shares"])
        facts |= {"summary": [summary.size_counts.tolist(), summary.infinite, summary.unreached]}
        store.step("sets", lambda own: facts)
        _remove(store.path, "state-*.npy")
        return facts

    def _predict_all(self, task: PredictionTask, state: bytes, count: int) -> SetsSummary:
        context, classes = self.arrays.spark.sparkContext, len(task.class_names)
        summary = SetsSummary(np.zeros(classes + 1, dtype=np.int64), 0, 0)
        left = []
        for share in range(count):
            if os.path.exists(path := shares.share_path(task, share)):
                summary += shares.summary_of(path, classes)
            else:
                left.append(share)
        done = count - len(left)
        if done and self.progress is not None:
            self.progress(done, count)
        here = self._here
        work = partial(shares.predict_share, task=task, state=state if here else context.broadcast(state))
        # One share first, where machines have kernels to compile: all others find them compiled.
        width = 1 if task.kernels is not None else _SHARES_PER_CORE * self.arrays.cores
        while left:
            some, left = left[:width], left[width:]
            summaries = map(work, some) if here else context.parallelize(some, len(some)).map(work).collect()
            summary = sum(summaries, summary)
            done += len(some)
            width = _SHARES_PER_CORE * self.arrays.cores
            if self.progress is not None:
                self.progress(done, count)
        shares.forget()
        return summary

    @property
    def _here(self) -> bool:
        """Whether this process predicts: it has the cores that workers would have, which need seconds to start."""
        return self.arrays.route.here and is_local(self.arrays.spark)

    # -- without one -----------------------------------------------------------------------------------------------

    def _carried(self, numbered: Numbered) -> Result:
        """Calibrate here, and let Spark carry arrays and kernels to its executors; the sets are a plan."""
        store, spark = self.arrays.store, self.arrays.spark
        calibrated = self._calibrated(numbered, None)
        store.clear("labels")
        store.clear("targets")
        self._kernels()
        name, archive = os.path.basename(store.path), f"{store.path}.zip"
        with zipfile.ZipFile(archive, "w") as stream:  # not compressed
            for path in Path(store.path).rglob("*"):
                stream.write(path, path.relative_to(store.path))
        shutil.rmtree(store.path)
        spark.sparkContext.addArchive(f"{archive}#{name}")
        task = self._task(name, self._share_size(calibrated.targets), None)
        facts = calibrated.facts(task.size)
        state = spark.sparkContext.broadcast(calibrated.state)
        numbers = spark.range(0, facts["shares"], 1, max(1, facts["shares"]))
        work = partial(shares.predict_carried, task=task, state=state)
        return _result(numbers.mapInArrow(work, sets_columns(self.arrays.tables)), numbered, facts)

    # -- both ------------------------------------------------------------------------------------------------------

    def _calibrated(self, numbered: Numbered, kernels: str | None) -> CalibrationResult:
        arrays, prefix = self.arrays, f"state-{uuid.uuid4().hex[:8]}"
        # Threads that the calibrating task may use: nothing else runs meanwhile where it does.
        cores = arrays.spark.sparkContext.getConf().get("spark.executor.cores")
        threads = None if arrays.route.here or is_local(arrays.spark) or not cores else int(cores)
        task = CalibrationTask(
            arrays.store, self.method, arrays.directed, *numbered, self.alpha, threads, kernels, prefix
        )
        (result,) = arrays.each(shares.calibrate, [task])
        return result

    def _task(self, folder: str, size: int, kernels: str | None) -> PredictionTask:
        arrays, tables = self.arrays, self.arrays.tables
        cpus = int(arrays.spark.sparkContext.getConf().get("spark.task.cpus", "1") or 1)
        threads = arrays.cores if self._here else cpus
        return PredictionTask(
            arrays.store, folder, size, self.alpha, tables.class_names, tables.integer_labels, threads, kernels
        )

    def _share_size(self, targets: int) -> int:
        if self.batch_size is not None:
            return self.batch_size
        wanted = -(-targets // (_SHARES_PER_CORE * self.arrays.cores))
        return max(_SMALLEST_SHARE, min(_LARGEST_SHARE, wanted))

    def _kernels(self) -> str | None:
        """Return where workers on other machines find compiled kernels, after those of this one were copied there."""
        if is_local(self.arrays.spark):
            return None  # they share this machine's
        from napsets.kernels._jit import keep_in

        folder = self.arrays.store.file("kernels")
        os.makedirs(folder, exist_ok=True)
        keep_in(folder, stay=True)
        return folder


def _result(
    sets: DataFrame,
    numbered: Numbered,
    facts: dict[str, Any],
    files: tuple[str, ...] = (),
    summary: SetsSummary | None = None,
) -> Result:
    level = facts["level"]
    sets = with_level(sets, level)
    return Result(sets, level, GRAPH_PLAN, facts["choice"], files, numbered.known, facts["labelled"], summary)


def _remove(folder: str, pattern: str) -> None:
    for path in Path(folder).glob(pattern):
        path.unlink()
