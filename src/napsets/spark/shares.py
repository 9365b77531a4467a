"""What runs in tasks once the graph lies in files: one calibrates, the others answer for their share of the nodes.

All of it is the code of one machine. `calibrate` calls `Method.fit` on mapped arrays; `predict_share` calls
`Calibrated.predict`, and holds nothing but mapped arrays and what a search needs while it runs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkFiles

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.files.prediction_columns import SETS, with_first_choices
from napsets.files.writers import CHUNK, ROW_GROUP
from napsets.graph import Graph
from napsets.localisers import HopsLocal
from napsets.methods import CalibrationData
from napsets.predictions import SetsSummary
from napsets.spark.mapped import Folder, drafted, pack, read_part, unpack
from napsets.spark.numbering import node_ids


@dataclass(frozen=True, eq=False)
class CalibrationTask:
    """What is to be calibrated, on which files."""

    store: Folder
    method: Any
    directed: bool
    known: int  # nodes with probabilities: they come first
    #: The folder and the parts of the labels, and of the nodes to predict; None stands for all without a label.
    labels: tuple[str, list[int]]
    targets: tuple[str, list[int]] | None
    alpha: float
    threads: int | None  # None for all cores
    kernels: str | None  # where compiled kernels are kept, where that is not each machine's own affair
    prefix: str  # what the files of the calibrated method start with


@dataclass(frozen=True)
class CalibrationResult:
    """What the calibrating task returns: counts, the level, and the calibrated method without its arrays."""

    state: bytes
    labelled: int
    targets: int
    level: float | None
    choice: str | None

    def facts(self, size: int) -> dict[str, Any]:
        """Return what is written down of it, with the number of shares of some size."""
        shares = -(-self.targets // size) if self.targets else 0
        return {"shares": shares, "level": self.level, "choice": self.choice, "labelled": self.labelled}


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
    """Let everything below use this many threads."""
    before = os.environ.get("NAPSETS_THREADS")
    if count is not None:
        os.environ["NAPSETS_THREADS"] = str(count)
    try:
        yield
    finally:
        if count is not None:
            os.environ.pop("NAPSETS_THREADS")
            if before is not None:
                os.environ["NAPSETS_THREADS"] = before


def calibrate(task: CalibrationTask) -> CalibrationResult:
    """Calibrate, and leave what comes of it in files that all workers can map."""
    _use_kernels(task.kernels)
    store = task.store
    mapped = {name: store.array(name) for name in ("indptr", "indices", "probabilities", "keys")}
    graph = Graph._from_rows(mapped["indptr"], mapped["indices"], task.directed)
    labels = _labels(task, graph.num_nodes)
    calibration = np.flatnonzero(labels >= 0)
    targets = _targets(task, labels)
    store.save("targets", targets)
    with _threads(task.threads):
        data = CalibrationData(graph, mapped["probabilities"], labels, calibration, mapped["keys"])
        calibrated = task.method.fit(data)
        if targets.size:  # so that what is worked out once, on first use, goes along
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NapsetsWarning)
                calibrated.predict(targets[:1], task.alpha)
        state = pack(calibrated, store, mapped, task.prefix, _laid_out)
    choice = getattr(calibrated, "choice", None)
    return CalibrationResult(
        state,
        int(calibration.size),
        int(targets.size),
        calibrated.level.level(task.alpha) if calibrated.is_exact and calibrated.grouped is None else None,
        None if choice is None else str(choice),
    )


def _laid_out(part: Any) -> None:
    """Make what searches read, once for all workers: the graph by number, and its hubs as vectors."""
    if isinstance(part, HopsLocal) and part.localiser.hops:
        from napsets.checks.values import check_threads

        layout = part.reference.index.layout
        layout.renumber(check_threads(None))
        if part.localiser.hops > 1:
            _ = layout.hub_rows


def _labels(task: CalibrationTask, nodes: int) -> IntArray:
    """Return the label of each node, −1 where there is none."""
    folder, parts = task.labels
    path = task.store.file(folder)
    labelled, labels = (
        np.concatenate([np.empty(0, dtype=np.int64), *(read_part(path, part, name, np.int64) for part in parts)])
        for name in ("nodes", "labels")
    )
    if not labelled.size:
        raise InvalidInputError("`labels` must hold at least one known label; it holds none")
    if labelled.size < 2 and getattr(getattr(task.method, "level", None), "keeps_apart", False):
        raise InvalidInputError("`labels` must hold at least two known labels for an exact level; it holds 1")
    counts = np.bincount(labelled, minlength=nodes)
    if counts.max() > 1:
        number = int(counts.argmax())
        node = node_ids(task.store, np.array([number]))[0].as_py()
        raise InvalidInputError(f"`labels` must have one row per node; node {node!s} has {counts[number]} rows")
    all_labels = np.full(nodes, -1, dtype=np.int64)
    all_labels[labelled] = labels
    return all_labels


def _targets(task: CalibrationTask, labels: IntArray) -> IntArray:
    """Return the nodes to predict, each once, in ascending order."""
    if task.targets is None:
        return np.flatnonzero(labels[: task.known] < 0)
    folder, parts = task.targets
    path = task.store.file(folder)
    read = (read_part(path, part, "nodes", np.int64) for part in parts)
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *read]))


# -- shares --------------------------------------------------------------------------------------------------------

#: What this process has unpacked, by the bytes that it came from: one at a time.
_unpacked: dict[bytes, Any] = {}


def share_path(task: PredictionTask, share: int) -> str:
    """Return where the sets of a share are written."""
    return f"{task.store.file(task.folder)}/part-{share:07d}.parquet"


def predict_share(share: int, task: PredictionTask, state: Any) -> SetsSummary:
    """Predict the nodes of a share and write their sets, unless that was done before; sum them up."""
    path = share_path(task, share)
    if not os.path.exists(path):
        _use_kernels(task.kernels)
        with drafted(path) as draft:
            _write_sets(draft, _sets_of_share(share, task, state))
    return summary_of(path, len(task.class_names))


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
    calibrated = _calibrated(getattr(state, "value", state), task.store)
    numbers = np.asarray(task.store.array("targets")[share * task.size : (share + 1) * task.size])
    for start in range(0, max(1, numbers.size), CHUNK):
        table = _sets(task, calibrated, numbers[start : start + CHUNK])
        kind = table.schema.field("node").type
        schema = SETS.schema(kind, {}, integer_labels=task.integer_labels).remove_metadata()
        yield table.cast(schema)


def summary_of(path: str, classes: int) -> SetsSummary:
    """Sum up the sets of a file."""
    table = pq.read_table(path, columns=["size", "threshold", "support"])
    size, threshold, support = (table[name].to_numpy() for name in table.column_names)
    counts = np.bincount(size, minlength=classes + 1)
    return SetsSummary(counts, int(np.isposinf(threshold).sum()), int((support == 0).sum()))


def forget() -> None:
    """Let go of what this process has unpacked, and of the files that it maps."""
    _unpacked.clear()


def _calibrated(data: bytes, store: Folder) -> Any:
    if data not in _unpacked:
        _unpacked.clear()
        _unpacked[data] = unpack(data, store)
    return _unpacked[data]


def _write_sets(draft: str, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(draft, first.schema, compression="zstd") as writer:
        for table in chain([first], tables):
            writer.write_table(table, row_group_size=ROW_GROUP)


def _sets(task: PredictionTask, calibrated: Any, nodes: IntArray) -> pa.Table:
    """Return the sets of some nodes as a table: what `napsets.files.write_prediction` writes."""
    with warnings.catch_warnings():
        # That labelled nodes are predicted is said once, by the driver.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        sets = replace(calibrated.predict(nodes, task.alpha, threads=task.threads), class_names=task.class_names)
    table = sets.to_arrow().set_column(0, "node", node_ids(task.store, nodes))
    return with_first_choices(table, calibrated.score.probabilities, nodes, task.class_names)


def _use_kernels(folder: str | None) -> None:
    if folder is not None:
        from napsets.kernels._jit import keep_in

        keep_in(folder)
