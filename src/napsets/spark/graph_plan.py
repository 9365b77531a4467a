"""The graph on every worker: nodes go to the graph, not edges to the nodes.

The tables become arrays (`Arrays`), and the method is calibrated on them. Then the nodes to predict are cut into
shares, and every worker maps the arrays, which a machine holds once, and runs the kernels on its shares.

In a folder that all machines see, every step is marked when it is done, and every share's sets appear whole under their
name: the same call goes on after a lost executor, a lost driver or a full disk. Where there is no such folder, the
driver makes the arrays and Spark carries them to its executors.

What tasks do is the code of one machine: `calibrate` calls `Method.fit` on mapped arrays, `predict_share` calls
`Calibrated.predict`, and holds nothing but mapped arrays and what a search needs while it runs.
"""

from __future__ import annotations

import os
import shutil
import uuid
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkFiles
from pyspark.sql import DataFrame

from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.files.writers import CHUNK, ROW_GROUP
from napsets.graph import Graph
from napsets.kernels.threads import Progress
from napsets.localisers import HopsLocal
from napsets.methods import CalibrationData
from napsets.spark.arrays import Arrays, is_local
from napsets.spark.mapped import Folder, drafted, pack, unpack
from napsets.spark.numbering import node_ids, read_labels, read_targets
from napsets.spark.plans import GRAPH_PLAN
from napsets.spark.session import literally, plain_errors
from napsets.spark.tables import Result, sets_columns, sets_table, with_level

#: Nodes of a share: enough to outweigh what a search needs to start, little enough to lose.
_LARGEST_SHARE, _SMALLEST_SHARE = 1 << 18, 1 << 14
#: Shares per core: the last ones to end leave few cores idle, and progress can be shown.
_SHARES_PER_CORE = 4


@dataclass(frozen=True)
class PredictionTask:
    """What the predicting tasks need to know in addition to the calibrated method."""

    store: Folder
    folder: str  # where the sets go; where Spark carries the arrays, what it calls their folder
    size: int  # nodes of a share
    alpha: float
    class_names: tuple[str, ...]
    integer_labels: bool
    threads: int
    kernels: str | None


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Let everything below use this many threads; nothing set is an empty text."""
    before = os.environ.get("NAPSETS_THREADS", "")
    os.environ["NAPSETS_THREADS"] = before if count is None else str(count)
    try:
        yield
    finally:
        os.environ["NAPSETS_THREADS"] = before


def calibrate(
    store: Folder, known: int, directed: bool, alpha: float, threads: int | None, kernels: str | None, method: Any
) -> tuple[bytes, dict[str, Any]]:
    """Calibrate on some threads, None for all cores, and leave what comes of it in files that all workers can map.

    Return the calibrated method without its arrays, and what is written down of it.
    """
    _use_kernels(kernels)
    mapped = {name: store.array(name) for name in ("indptr", "indices", "probabilities", "keys")}
    graph = Graph._from_rows(mapped["indptr"], mapped["indices"], directed)
    labels, targets = read_labels(store, graph.num_nodes), read_targets(store)
    calibration = np.flatnonzero(labels >= 0)
    if calibration.size < 2 and getattr(getattr(method, "level", None), "keeps_apart", False):
        raise InvalidInputError("`labels` must hold at least two known labels for an exact level; it holds 1")
    if targets is None:
        targets = np.flatnonzero(labels[:known] < 0)
    store.save("targets", targets)
    with _threads(threads):
        calibrated = method.fit(CalibrationData(graph, mapped["probabilities"], labels, calibration, mapped["keys"]))
        if targets.size:  # so that what is worked out once, on first use, goes along
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NapsetsWarning)
                calibrated.predict(targets[:1], alpha)
        state = pack(calibrated, store, mapped, f"state-{uuid.uuid4().hex[:8]}", _laid_out)
    choice = getattr(calibrated, "choice", None)
    return state, {
        "targets": int(targets.size),
        "level": calibrated.level.level(alpha) if calibrated.is_exact and calibrated.grouped is None else None,
        "choice": None if choice is None else str(choice),
        "labelled": int(calibration.size),
    }


def _laid_out(part: Any) -> None:
    """Make what searches read, once for all workers: the graph by number, and its hubs as vectors."""
    if isinstance(part, HopsLocal) and part.localiser.hops:
        from napsets.checks.values import check_threads

        layout = part.reference.index
        layout.renumber(check_threads(None))
        if part.localiser.hops > 1:
            _ = layout.hub_rows


# -- shares --------------------------------------------------------------------------------------------------------


def share_path(task: PredictionTask, share: int) -> str:
    """Return where the sets of a share are written."""
    return f"{task.store.file(task.folder)}/part-{share:07d}.parquet"


def predict_share(share: int, task: PredictionTask, state: Any) -> None:
    """Predict the nodes of a share and write their sets, unless that was done before."""
    path = share_path(task, share)
    if not os.path.exists(path):
        _use_kernels(task.kernels)
        tables = _sets_of_share(share, task, state)
        first = next(tables)
        with drafted(path) as draft, pq.ParquetWriter(draft, first.schema, compression="zstd") as writer:
            for table in chain([first], tables):
                writer.write_table(table, row_group_size=ROW_GROUP)


def predict_carried(batches: Iterator[pa.RecordBatch], task: PredictionTask, state: Any) -> Iterator[pa.RecordBatch]:
    """Predict the nodes of some shares where Spark has brought the arrays to."""
    store = Folder(SparkFiles.get(task.folder))
    here = replace(task, store=store, kernels=store.file("kernels"))
    _use_kernels(here.kernels)
    for batch in batches:
        for share in batch.column(0).to_pylist():
            for table in _sets_of_share(share, here, state):
                yield from table.combine_chunks().to_batches()


def _sets_of_share(share: int, task: PredictionTask, state: Any) -> Iterator[pa.Table]:
    """Give the sets of a share, some at a time; those of a share without nodes are one empty table."""
    calibrated = _unpacked(getattr(state, "value", state), task.store)
    numbers = np.asarray(task.store.array("targets")[share * task.size : (share + 1) * task.size])
    for start in range(0, max(1, numbers.size), CHUNK):
        nodes = numbers[start : start + CHUNK]
        with warnings.catch_warnings():
            # That labelled nodes are predicted is said once, by the driver.
            warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
            sets = replace(calibrated.predict(nodes, task.alpha, threads=task.threads), class_names=task.class_names)
        probabilities, ids = calibrated.score.probabilities, node_ids(task.store, nodes)
        yield sets_table(sets, probabilities, nodes, ids, integer_labels=task.integer_labels)


#: A process holds what it has unpacked of one calibrated method, and with it the files that it maps.
_unpacked = lru_cache(maxsize=1)(unpack)


def _use_kernels(folder: str | None) -> None:
    if folder is not None:
        from napsets.kernels._jit import keep_in

        keep_in(folder)


# -- the driver ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GraphJob:
    """One call; progress is counted in shares, of `batch_size` nodes where that is given."""

    arrays: Arrays
    method: Any
    alpha: float
    batch_size: int | None
    progress: Progress

    def run(self) -> Result:
        """Do all of it; when this returns the sets are written, or a plan where Spark carries the arrays."""
        with plain_errors():
            known = self.arrays.make()
            if self.arrays.route.carried:
                return self._carried(known)
            facts = self._predicted(known)
        store, spark = self.arrays.store, self.arrays.spark
        files = tuple(sorted(str(path) for path in Path(store.file(facts["folder"])).glob("part-*.parquet")))
        if self.arrays.route.temporary:  # only the sets are needed from here on
            _remove(store.path, "*.npy")
        schema = sets_columns(self.arrays.tables)
        # One by one, so that drafts of tasks that were killed are not read.
        paths = [literally(f"file://{file}") for file in files]
        sets = spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
        return _result(sets, known, facts, files)

    # -- in a folder -----------------------------------------------------------------------------------------------

    def _predicted(self, known: int) -> dict[str, Any]:
        """Calibrate and predict what is not there yet; return where the sets are, and what was found on the way."""
        store = self.arrays.store
        facts = store.done("sets")
        if facts is not None:
            self.progress(facts["shares"], facts["shares"])
            return facts
        _remove(store.path, "state-*.npy")  # of a run that was lost
        kernels = self._kernels()
        state, facts = self._calibrated(known, kernels)
        # Written down: after a restart the cluster may be another, and shares must stay what they were.
        cut = store.step("shares", lambda own: {"size": self._share_size(facts["targets"])})
        task = self._task(cut["folder"], int(cut["size"]), kernels)
        facts |= {"shares": -(-facts["targets"] // task.size), "folder": cut["folder"]}
        self._predict_all(task, state, facts["shares"])
        store.step("sets", lambda own: facts)
        _remove(store.path, "state-*.npy")
        return facts

    def _predict_all(self, task: PredictionTask, state: bytes, count: int) -> None:
        left = [share for share in range(count) if not os.path.exists(share_path(task, share))]
        done = count - len(left)
        if done:
            self.progress(done, count)
        sent = state if self._here else self.arrays.spark.sparkContext.broadcast(state)
        work = partial(predict_share, task=task, state=sent)
        # One share first, where machines have kernels to compile: all others find them compiled.
        width = 1 if task.kernels is not None else _SHARES_PER_CORE * self.arrays.cores
        while left:
            some, left = left[:width], left[width:]
            self.arrays.each(work, some, here=self._here)
            done += len(some)
            width = _SHARES_PER_CORE * self.arrays.cores
            self.progress(done, count)
        _unpacked.cache_clear()

    @property
    def _here(self) -> bool:
        """Whether this process predicts: it has the cores that workers would have, which need seconds to start."""
        return self.arrays.route.here and is_local(self.arrays.spark)

    # -- without one -----------------------------------------------------------------------------------------------

    def _carried(self, known: int) -> Result:
        """Calibrate here, and let Spark carry arrays and kernels to its executors; the sets are a plan."""
        store, spark = self.arrays.store, self.arrays.spark
        state, facts = self._calibrated(known, None)
        store.clear("labels")
        store.clear("targets")
        self._kernels()
        name, archive = os.path.basename(store.path), f"{store.path}.zip"
        with zipfile.ZipFile(archive, "w") as stream:  # not compressed
            for path in Path(store.path).rglob("*"):
                stream.write(path, path.relative_to(store.path))
        shutil.rmtree(store.path)
        spark.sparkContext.addArchive(f"{archive}#{name}")
        task = self._task(name, self._share_size(facts["targets"]), None)
        shares = -(-facts["targets"] // task.size)
        work = partial(predict_carried, task=task, state=spark.sparkContext.broadcast(state))
        numbers = spark.range(0, shares, 1, max(1, shares))
        return _result(numbers.mapInArrow(work, sets_columns(self.arrays.tables)), known, facts)

    # -- both ------------------------------------------------------------------------------------------------------

    def _calibrated(self, known: int, kernels: str | None) -> tuple[bytes, dict[str, Any]]:
        arrays = self.arrays
        # Threads that the calibrating task may use: nothing else runs meanwhile where it does.
        cores = arrays.spark.sparkContext.getConf().get("spark.executor.cores")
        threads = None if arrays.route.here or is_local(arrays.spark) or not cores else int(cores)
        work = partial(calibrate, arrays.store, known, arrays.directed, self.alpha, threads, kernels)
        (result,) = arrays.each(work, [self.method], here=arrays.route.here)
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


def _result(sets: DataFrame, known: int, facts: dict[str, Any], files: tuple[str, ...] = ()) -> Result:
    level = facts["level"]
    return Result(with_level(sets, level), level, GRAPH_PLAN, facts["choice"], files, known, facts["labelled"])


def _remove(folder: str, pattern: str) -> None:
    for path in Path(folder).glob(pattern):
        path.unlink()
