"""What runs on Arrow batches inside the tasks: scores, thresholds and sets, by the very functions of the core.

Each function here takes an iterator of record batches and yields record batches; none knows of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from napsets.checks.arguments import FloatArray, IntArray, check_probabilities, check_scores
from napsets.errors import InvalidInputError
from napsets.localisers.neighbourhoods import HopThresholds
from napsets.quantile import hop_quantile
from napsets.randomness import node_uniforms
from napsets.scores import RowScore
from napsets.sets import PredictionSets, members

__all__ = ["Settings", "calibration_scores", "prediction_sets", "thresholds"]

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, eq=False)
class Settings:
    """What the tasks need to know; plain values, small enough to send along with each."""

    weights: FloatArray
    score: RowScore
    alpha: float
    seed: int
    allow_empty: bool
    class_names: tuple[str, ...]
    labels_are: str = "auto"


def calibration_scores(batches: Batches, settings: Settings) -> Batches:
    """Turn (node, label, names, others, strange, probabilities) into (node, score at the label)."""
    for batch in batches:
        if batch.num_rows:
            ids = _ids(batch.column("node"))
            p = _probabilities(batch, ids, settings, "labels")
            y = _label_indices(batch, ids, settings)
            scores = check_scores("scores", settings.score.at(p, y, node_uniforms(ids, settings.seed)))
            yield pa.RecordBatch.from_arrays([batch.column("node"), pa.array(scores)], ["node", "score"])


def thresholds(batches: Batches, settings: Settings) -> Batches:
    """Turn (target, hop, score), where a target's rows stand together, into one row a target.

    A target's rows may run over any number of batches; they are held until the next target begins.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        ends = pc.run_end_encode(batch.column("target")).run_ends.to_numpy()
        if held and held[-1].column("target")[-1] == batch.column("target")[0]:
            held.append(batch.slice(0, ends[0]))
            rest, ends = batch.slice(ends[0]), ends[1:] - ends[0]
        else:
            rest = batch
        if ends.size == 0:
            continue
        if held:
            yield _select([_joined(held)], settings)
        if ends.size > 1:
            yield _select(_runs(rest.slice(0, ends[-2]), ends[:-1]), settings)
            rest = rest.slice(ends[-2])
        held = [rest]
    if held:
        yield _select([_joined(held)], settings)


Run = tuple[Any, FloatArray, IntArray]


def _joined(parts: list[pa.RecordBatch]) -> Run:
    scores = np.concatenate([part.column("score").to_numpy() for part in parts])
    return parts[0].column("target")[0], scores, np.concatenate([part.column("hop").to_numpy() for part in parts])


def _runs(batch: pa.RecordBatch, ends: npt.NDArray[Any]) -> list[Run]:
    scores, hops, targets = (batch.column(name) for name in ("score", "hop", "target"))
    at, hop = scores.to_numpy(), hops.to_numpy()
    starts = np.concatenate([[0], ends[:-1]])
    return [
        (targets[start], at[start:end], hop[start:end])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _select(runs: list[Run], settings: Settings) -> pa.RecordBatch:
    weights = settings.weights
    hops = weights.size
    values = np.array([hop_quantile(scores, hop, weights, settings.alpha) for _, scores, hop in runs])
    counts = np.array([np.bincount(hop, minlength=hops + 1)[1:] for _, _, hop in runs])
    found = HopThresholds(values[None, None], counts.reshape(len(runs), hops), weights[None])
    columns = [
        pa.array([target.as_py() for target, _, _ in runs], runs[0][0].type),
        pa.array(values),
        pa.array(found.support[0], pa.int64()),
        pa.array(found.effective_size[0]),
    ]
    return pa.RecordBatch.from_arrays(columns, ["node", "threshold", "support", "effective_size"])


def prediction_sets(batches: Batches, settings: Settings) -> Batches:
    """Turn (node, probabilities, threshold, support, effective_size) into rows of the sets table.

    A node without a threshold has no calibration node in reach: its threshold is +∞ and its set is full.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        ids = _ids(batch.column("node"))
        p = _probabilities(batch, ids, settings, "nodes")
        tau = batch.column("threshold").fill_null(np.inf).to_numpy()
        top = None if settings.allow_empty else p.argmax(axis=1)
        sets = PredictionSets(
            ids,
            members(settings.score.matrix(p, node_uniforms(ids, settings.seed)), tau, top_labels=top),
            tau,
            batch.column("support").fill_null(0).to_numpy(),
            batch.column("effective_size").fill_null(0.0).to_numpy(),
            settings.alpha,
            class_names=settings.class_names,
        )
        table = sets.to_arrow()
        for extra in batch.schema.names:
            if extra not in (*table.column_names, "probabilities"):
                table = table.append_column(extra, batch.column(extra))
        yield from table.combine_chunks().to_batches()


def _ids(column: pa.Array) -> npt.NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    # An array of str is what both the stable hash and Arrow read; NumPy's own text would drop trailing zeros.
    return values.astype(object) if pa.types.is_string(column.type) else values


def _probabilities(batch: pa.RecordBatch, ids: npt.NDArray[Any], settings: Settings, asker: str) -> npt.NDArray[Any]:
    """Return the probabilities of a batch as a checked matrix; errors name the node."""
    column = batch.column("probabilities")
    if column.null_count:
        node = ids[int(column.is_null().to_numpy(zero_copy_only=False).argmax())]
        raise InvalidInputError(f"`probabilities` must have a row for each node of `{asker}`; node {node!s} has none")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    classes = len(settings.class_names)
    if (lengths != classes).any():
        i = int((lengths != classes).argmax())
        raise InvalidInputError(
            f"`probabilities` must have {classes} entries in every row; node {ids[i]!s} has {lengths[i]}"
        )
    matrix = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, classes)
    try:
        return check_probabilities(matrix)
    except InvalidInputError as error:
        # A row's number within a batch says nothing to anyone: name its node.
        told = re.sub(r"\brow (\d+)", lambda row: f"node {ids[int(row[1])]!s}", str(error))
        raise InvalidInputError(told) from None


def _label_indices(batch: pa.RecordBatch, ids: npt.NDArray[Any], settings: Settings) -> npt.NDArray[Any]:
    """Return class indices: by name where every label of the table is one, by number where none is."""
    names, column = settings.class_names, batch.column("label")
    some_names, others, strange = (bool(batch.column(name)[0].as_py()) for name in ("names", "others", "strange"))
    by_number = settings.labels_are == "indices" or (settings.labels_are == "auto" and others and not some_names)
    known = [str(y) for y in range(len(names))] if by_number else names
    index = pc.index_in(column, value_set=pa.array(known, pa.string()))
    if index.null_count:
        i = int(index.is_null().to_numpy(zero_copy_only=False).argmax())
        told = f"node {ids[i]!s} has {column[i].as_py()!r}"
        if settings.labels_are == "auto" and some_names and not strange:
            raise InvalidInputError(
                f"`labels` must be class names or class numbers, not both; some are names of classes, but {told}, "
                f"which can only be a number. Say which with --labels-are names or --labels-are indices (in Python: "
                f"labels_are=…), or write them alike."
            )
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        kinds = {"names": f"class names ({shown})", "indices": f"class numbers from 0 to {len(names) - 1}"}
        wanted = kinds.get(settings.labels_are, " or ".join(kinds.values()))
        raise InvalidInputError(f"`labels` must be {wanted}; {told}")
    return index.to_numpy().astype(np.int64)
