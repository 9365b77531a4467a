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
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.files.prediction import CHUNK, first_choices
from napsets.files.sets_file import PREDICTION, ROW_GROUP, sets_schema
from napsets.graph import Graph
from napsets.localisers import HopsLocal
from napsets.methods.given import Given
from napsets.spark.mapped import Folder, read_part
from napsets.spark.numbering import node_ids, write_once
from napsets.spark.state import pack, unpack

__all__ = ["Asked", "Calibration", "Told", "calibrate", "graph_of", "predict_share", "share_path"]


@dataclass(frozen=True, eq=False)
class Calibration:
    """What is to be calibrated, on which files.

    Attributes
    ----------
    store : Folder
        The arrays.
    method : Method or Choosing
        Anything with a method `fit` that takes what is `Given`.
    directed : bool
        Whether edges go one way.
    known : int
        Nodes with probabilities: they come first.
    labels, targets : tuple of (str, list of int) or None
        The folder and the parts of the labels, and of the nodes to predict; None stands for all without a label.
    alpha : float
        The error rate.
    threads : int or None
        Threads to use; None for all cores.
    kernels : str or None
        Where compiled kernels are kept, where that is not each machine's own affair.
    prefix : str
        What the files of the calibrated method start with.
    """

    store: Folder
    method: Any
    directed: bool
    known: int
    labels: tuple[str, list[int]]
    targets: tuple[str, list[int]] | None
    alpha: float
    threads: int | None
    kernels: str | None
    prefix: str


@dataclass(frozen=True)
class Told:
    """What the calibrating task tells: counts, the level, and the calibrated method without its arrays."""

    state: bytes
    labelled: int
    targets: int
    level: float | None
    choice: str | None


@dataclass(frozen=True)
class Asked:
    """What the predicting tasks need to know beside the calibrated method.

    Attributes
    ----------
    store : Folder
        The arrays.
    folder : str
        Where the sets go.
    size : int
        Nodes of a share.
    alpha : float
        The error rate.
    class_names : tuple of str
        The classes.
    integer_labels : bool
        Whether labels are integers in the sets.
    threads : int
        Threads of a task.
    kernels : str or None
        As in `Calibration`.
    """

    store: Folder
    folder: str
    size: int
    alpha: float
    class_names: tuple[str, ...]
    integer_labels: bool
    threads: int
    kernels: str | None


def graph_of(store: Folder, directed: bool) -> Graph:
    """Return the graph, mapped: its rows were made by us, and are not looked through again."""
    return Graph._made(store.array("indptr"), store.array("indices"), directed)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Let everything below use so many threads."""
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


def calibrate(asked: Calibration) -> Told:
    """Calibrate, and leave what comes of it in files that all workers can map."""
    _use_kernels(asked.kernels)
    store = asked.store
    mapped = {name: store.array(name) for name in ("indptr", "indices", "probabilities", "keys")}
    graph = Graph._made(mapped["indptr"], mapped["indices"], asked.directed)
    labels = _labels(asked, graph.num_nodes)
    calibration = np.flatnonzero(labels >= 0)
    targets = _targets(asked, labels)
    store.save("targets", targets)
    with _threads(asked.threads):
        given = Given(graph, mapped["probabilities"], labels, calibration, mapped["keys"])
        calibrated = asked.method.fit(given)
        if targets.size:  # so that what is worked out once, on first use, goes along
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NapsetsWarning)
                calibrated.predict(targets[:1], asked.alpha)
        state = pack(calibrated, store, mapped, asked.prefix, _laid_out)
    choice = getattr(calibrated, "choice", None)
    return Told(
        state,
        int(calibration.size),
        int(targets.size),
        calibrated.level.level(asked.alpha) if calibrated.is_exact and calibrated.grouped is None else None,
        None if choice is None else str(choice),
    )


def _laid_out(part: Any) -> None:
    """Make what searches read, once for all workers: the graph by number, and its hubs as vectors."""
    if isinstance(part, HopsLocal) and part.localiser.hops:
        from napsets.localisers.neighbourhoods import check_threads

        layout = part.reference.index.layout
        layout.renumber(check_threads(None))
        if part.localiser.hops > 1:
            _ = layout.hub_rows


def _labels(asked: Calibration, nodes: int) -> IntArray:
    """Return the label of each node, −1 where there is none."""
    folder, parts = asked.labels
    path = asked.store.file(folder)
    found, labels = (
        np.concatenate([np.empty(0, dtype=np.int64), *(read_part(path, part, name, np.int64) for part in parts)])
        for name in ("nodes", "labels")
    )
    if not found.size:
        raise InvalidInputError("`labels` must hold at least one known label; it holds none")
    counts = np.bincount(found, minlength=nodes)
    if counts.max() > 1:
        number = int(counts.argmax())
        node = node_ids(asked.store, np.array([number]))[0].as_py()
        raise InvalidInputError(f"`labels` must have one row a node; node {node!s} has {counts[number]} rows")
    all_labels = np.full(nodes, -1, dtype=np.int64)
    all_labels[found] = labels
    return all_labels


def _targets(asked: Calibration, labels: IntArray) -> IntArray:
    """Return the nodes to predict, each once, in ascending order."""
    if asked.targets is None:
        return np.flatnonzero(labels[: asked.known] < 0)
    folder, parts = asked.targets
    path = asked.store.file(folder)
    read = (read_part(path, part, "nodes", np.int64) for part in parts)
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *read]))


# -- shares --------------------------------------------------------------------------------------------------------

#: What this process has unpacked, by the bytes that it came from: one at a time.
_unpacked: dict[bytes, Any] = {}


def share_path(asked: Asked, share: int) -> str:
    """Return where the sets of a share are written."""
    return f"{asked.store.file(asked.folder)}/part-{share:07d}.parquet"


def predict_share(share: int, asked: Asked, state: Any) -> int:
    """Predict the nodes of a share and write their sets, unless that was done before; return how many there are."""
    _use_kernels(asked.kernels)
    calibrated = _calibrated(state.value, asked.store)
    numbers = np.asarray(asked.store.array("targets")[share * asked.size : (share + 1) * asked.size])
    write_once(share_path(asked, share), lambda draft: _write_sets(draft, asked, calibrated, numbers))
    return int(numbers.size)


def _calibrated(data: bytes, store: Folder) -> Any:
    if data not in _unpacked:
        _unpacked.clear()
        _unpacked[data] = unpack(data, store)
    return _unpacked[data]


def _write_sets(draft: str, asked: Asked, calibrated: Any, numbers: IntArray) -> None:
    schema = None
    writer: Any = None
    try:
        for start in range(0, max(1, numbers.size), CHUNK):
            table = _sets(asked, calibrated, numbers[start : start + CHUNK])
            if writer is None:
                kind = table.schema.field("node").type
                schema = sets_schema(kind, {}, predicting=True, integer_labels=asked.integer_labels).remove_metadata()
                writer = pq.ParquetWriter(draft, schema, compression="zstd")
            writer.write_table(table.cast(schema), row_group_size=ROW_GROUP)
    finally:
        if writer is not None:
            writer.close()


def _sets(asked: Asked, calibrated: Any, nodes: IntArray) -> pa.Table:
    """Return the sets of some nodes as a table: what `napsets.files.write_predictions` writes."""
    with warnings.catch_warnings():
        # That labelled nodes are predicted is said once, by the driver.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        sets = replace(calibrated.predict(nodes, asked.alpha, threads=asked.threads), class_names=asked.class_names)
    table = sets.to_arrow().set_column(0, "node", node_ids(asked.store, nodes))
    said = first_choices(calibrated.score.probabilities, nodes, list(asked.class_names))
    for name, column in zip(PREDICTION, said, strict=True):
        table = table.append_column(name, column)
    return table


def _use_kernels(folder: str | None) -> None:
    if folder is not None:
        from napsets.kernels._jit import keep_in

        keep_in(folder)
