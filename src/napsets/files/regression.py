"""Files of node regression: what a model says of numbers, the numbers that are known, and intervals.

What a model says: ``node`` and ``lower``, ``upper`` (two quantiles), or ``prediction`` [, ``spread``]. What is known:
``node`` and ``target``. Intervals: ``node``, ``lower``, ``upper``, ``width``, ``threshold``, ``support``,
``effective_size``, ``alpha``, ``prediction``.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.lengths import WeightsAre
from napsets.errors import FileFormatError, InvalidInputError, NapsetsWarning
from napsets.files._arrow import arrow
from napsets.files.edges import read_edges
from napsets.files.formats import METADATA_KEY, open_table
from napsets.files.ids import IdKind, NodeIds, UnknownIds, id_column, known_places
from napsets.files.labels import read_nodes, refuse_repeated
from napsets.files.numbers import joined_ids, number_rows, numbers_or_nan
from napsets.files.sets_file import ROW_GROUP, writing_rows
from napsets.graph import Graph
from napsets.scores import CQR, AbsoluteResidual, NormalisedResidual

__all__ = ["INTERVAL_COLUMNS", "RegressionInputs", "read_outputs", "read_regression", "read_targets", "write_intervals"]

PathLike = str | os.PathLike[str]

#: The columns of a file of intervals.
INTERVAL_COLUMNS = (
    "node", "lower", "upper", "width", "threshold", "support", "effective_size", "alpha", "prediction",
)  # fmt: skip

#: The scores whose columns a file of outputs may have, the more telling first.
_SCORES = (CQR(), NormalisedResidual(), AbsoluteResidual())


@dataclass(frozen=True, eq=False)
class RegressionInputs:
    """The files of a regression, on the places of one list of nodes.

    Attributes
    ----------
    ids : NodeIds
        What the nodes are called.
    graph : Graph
        On the places 0..n−1.
    outputs : numpy.ndarray
        What the model says, a row a node.
    score : IntervalScore
        The score whose columns the file has.
    targets : numpy.ndarray
        NaN where unknown.
    nodes : numpy.ndarray
        What to predict.
    notes : list of str
        What a user should know.
    """

    ids: NodeIds
    graph: Graph
    outputs: FloatArray
    score: Any
    targets: FloatArray
    nodes: IntArray
    notes: list[str] = field(default_factory=list)

    @property
    def calibration(self) -> IntArray:
        """The nodes whose target is known."""
        return np.flatnonzero(np.isfinite(self.targets))

    def calibrate(self, method: Any, calibration: IntArray | None = None) -> Any:
        """Calibrate a method on all that has a target, or on some of it; what comes back gives intervals."""
        chosen = self.calibration if calibration is None else calibration
        return method.calibrate(self.graph, self.outputs, self.targets, chosen, ids=self.ids.keys)


def read_regression(
    edges: PathLike,
    outputs: PathLike,
    targets: PathLike,
    nodes: PathLike | None = None,
    *,
    directed: bool = False,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    weights_are: WeightsAre | None = None,
    predicting: bool = True,
    stage: Callable[[str], None] = lambda text: None,
) -> RegressionInputs:
    """Read the files of a regression; the parameters are those of `read_inputs`."""
    notes: list[str] = []
    stage("reading outputs")
    known, values, score = read_outputs(outputs, ids=ids)
    stage("reading edges")
    notes += _crossed(outputs, values, score)
    graph = read_edges(
        edges, known, directed=directed, ids=ids, skip_unknown=skip_unknown, weights_are=weights_are, notes=notes
    )
    stage("reading targets")
    y = read_targets(targets, known, ids=ids, skip_unknown=skip_unknown, notes=notes)
    if not np.isfinite(y).any():
        raise FileFormatError(f"`labels` must have at least one target; {os.fspath(targets)} has none")
    if nodes is None:
        chosen = np.flatnonzero(np.isnan(y))
    else:
        chosen = read_nodes(nodes, known, ids=ids, skip_unknown=skip_unknown, notes=notes)
    if predicting and chosen.size == 0:
        raise InvalidInputError("there is no node to predict: every node has a target. Pass --nodes.")
    both = int(np.isfinite(y[chosen]).sum())
    if both:
        notes.append(
            f"{both:,} of the nodes to predict have a target; it is left out of the threshold of its own node, not "
            f"out of what all targets decide together: a level, evidence"
        )
    return RegressionInputs(known, graph, values, score, y, chosen, notes)


def read_outputs(path: PathLike, *, ids: IdKind = "auto") -> tuple[NodeIds, FloatArray, Any]:
    """Read what a model says of each node: its ids, the numbers, and the score whose columns they are."""
    table = open_table("probabilities", path)
    table.require("node")
    score = next((each for each in _SCORES if set(each.columns) <= set(table.columns)), None)
    if score is None:
        raise FileFormatError(
            f"`probabilities` must have the columns lower and upper, or prediction and maybe spread, with --task "
            f"regression; {table.path} has {', '.join(table.columns)}. Where they are called otherwise, say so: "
            f"--columns prediction=…"
        )
    parts, blocks, filled = [], [], 0
    for batch in table.batches(["node", *score.columns]):
        parts.append(id_column(table, batch, "node", "string" if ids == "string" else "auto"))
        blocks.append(number_rows(table, batch, score.columns, filled, list_column=""))
        filled += batch.num_rows
    if not parts:
        raise FileFormatError(f"`probabilities` must have at least one row; {table.path} has none")
    try:
        values = score.check(np.concatenate(blocks))
    except InvalidInputError as error:
        raise FileFormatError(f"`probabilities` cannot be used: {table.path}: {error}") from error
    return NodeIds(joined_ids(table, parts, ids), "probabilities", table.path), values, score


def _crossed(path: PathLike, values: FloatArray, score: Any) -> list[str]:
    """Say that two quantiles look swapped; that a few cross is what models do, and what CQR expects."""
    crossed = int((values[:, 0] > values[:, 1]).sum()) if isinstance(score, CQR) else 0
    if 2 * crossed <= len(values):
        return []
    return [
        f"lower is above upper in {crossed:,} of the {len(values):,} rows of `probabilities` ({os.fspath(path)}): are "
        f"the two columns swapped? Each pair is taken the right way round"
    ]


def read_targets(
    path: PathLike,
    nodes: NodeIds,
    *,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    notes: list[str] | None = None,
) -> FloatArray:
    """Read a table with the columns ``node`` and ``target`` into one number for each of `nodes`, NaN where unknown."""
    table = open_table("labels", path)
    table.require("node", "target")
    strangers = UnknownIds(table, nodes.name)
    found = np.full(len(nodes), np.nan)
    seen, unknown = [np.empty(0, dtype=np.int64)], 0
    for batch in table.batches(["node", "target"]):
        place = known_places(table, batch, "node", nodes, ids, strangers)
        numbers = numbers_or_nan(table, batch.column("target"), "target")
        found[place[place >= 0]] = numbers[place >= 0]
        seen.append(place)
        unknown += int((~np.isfinite(numbers)).sum())
    strangers.settle(skip=skip_unknown, notes=notes)
    place = np.concatenate(seen)
    refuse_repeated(table, nodes, place[place >= 0])
    if unknown and notes is not None:
        notes.append(
            f"{unknown:,} of the {place.size:,} rows of `labels` ({table.path}) have no target: an empty cell, NaN or "
            f"infinite"
        )
    found[~np.isfinite(found)] = np.nan
    return found


def write_intervals(
    inputs: RegressionInputs,
    path: PathLike,
    calibrated: Any,
    *,
    alpha: float,
    metadata: Mapping[str, Any],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, float]:
    """Predict and write some nodes at a time; return what was written, in numbers."""
    pa = arrow()
    kinds = {name: pa.int64() if name == "support" else pa.float64() for name in INTERVAL_COLUMNS}
    kinds["node"] = inputs.ids.output_type
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    schema = pa.schema(fields, metadata={METADATA_KEY: json.dumps(dict(metadata)).encode()})
    widths, infinite, done = 0.0, 0, 0
    with writing_rows(path, schema, metadata) as writer, warnings.catch_warnings():
        # `read_regression` has noted nodes with a target once; other warnings are to be seen.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        for start in range(0, inputs.nodes.size, ROW_GROUP):
            part = inputs.nodes[start : start + ROW_GROUP]
            found = calibrated.predict(part, alpha)
            table = found.to_arrow()
            writer.write(table.set_column(0, "node", inputs.ids.take(part)).select(schema.names))
            finite = np.isfinite(found.widths)
            widths, infinite = widths + float(found.widths[finite].sum()), infinite + int((~finite).sum())
            done += part.size
            progress(done, inputs.nodes.size)
    return {
        "nodes": done,
        "mean_width": widths / max(done - infinite, 1) if done > infinite else float("inf"),
        "infinite": infinite,
    }
