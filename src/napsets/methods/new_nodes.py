"""Nodes that were not there at calibration: what a calibration with them in the graph gives, with the same labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, IntArray, as_column, check_integers
from napsets.edges import compress
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.methods.data import CalibrationData, Scored
from napsets.randomness import node_uniforms
from napsets.scores.base import BoundRows
from napsets.scores.residuals import BoundIntervals

Array = npt.NDArray[Any]


def with_new_nodes(calibrated: Any, outputs: ArrayLike, edges: ArrayLike | None, ids: ArrayLike | None) -> Any:
    """Return the same method calibrated on the same labels, split alike, with new nodes and edges in the graph.

    What was chosen stays chosen; what is fitted is fitted on the graph as it is then. In `edges`, n, n+1, … are the new
    nodes where n were there; by default they are also called so.
    """
    scored: Scored = calibrated.scored
    before = model_outputs(calibrated)
    if before is None:
        raise InvalidInputError(
            f"`method` must keep what the model said, to score new nodes; {type(calibrated.score).__name__} does not. "
            f"Calibrate again, with the new nodes in the graph."
        )
    rows = calibrated.prediction.check_outputs(outputs)
    rows = rows.reshape(-1, 1) if rows.ndim < before.ndim else rows  # one number per node
    if rows.shape[1:] != before.shape[1:]:
        raise InvalidInputError(
            f"`{calibrated.prediction.outputs_name}` must have as many columns as at calibration, {before.shape[1:]}; "
            f"got {rows.shape[1:]}"
        )
    size = before.shape[0] + rows.shape[0]
    names = np.arange(before.shape[0], size) if ids is None else as_column("ids", ids)
    if names.shape != (rows.shape[0],):
        raise InvalidInputError(f"`ids` must have one entry per new node, {rows.shape[0]}; got shape {names.shape}")
    if scored.ids is not None and ids is None:
        raise InvalidInputError("`ids` must name the new nodes, as calibrate(...) was given names; got None")
    u = np.concatenate([scored.u, node_uniforms(names, scored.seed)])
    every = None if scored.ids is None else np.concatenate([scored.ids.astype(object), names.astype(object)])
    graph = _with_edges(scored.reference.graph, edges, before.shape[0], size)
    together = np.concatenate([before, rows.astype(before.dtype, copy=False)])
    bound = scored.bound
    if isinstance(bound, BoundRows) or type(bound) is BoundIntervals:
        # Scores of nodes that were there stay as they are: no label is needed, only the graph is another.
        if isinstance(bound, BoundRows):
            bound = BoundRows(bound.score, together, u)
        else:
            bound = BoundIntervals(bound.score, together)
        old = scored.reference
        reference = replace(old, num_nodes=size, graph=graph, probabilities=bound.probabilities, u=u)
        return calibrated.method.on(replace(scored, u=u, bound=bound, reference=reference, ids=every))
    return _scored_again(calibrated, together, graph, u, every)


def _scored_again(calibrated: Any, outputs: Array, graph: Graph | None, u: Array, ids: Array | None) -> Any:
    """Score all nodes again, with the labels that were kept."""
    scored: Scored = calibrated.scored
    if scored.labels.size != scored.reference.nodes.size:
        raise InvalidInputError(
            "`calibrated` must know its labels to score new nodes, and a file does not keep them; calibrate again"
        )
    known = scored.calibration
    truth = np.full(outputs.shape[0], -1, dtype=np.asarray(scored.labels).dtype)
    truth[scored.reference.nodes], truth[scored.level_nodes] = scored.labels, scored.level_labels
    data = CalibrationData(
        graph, outputs, truth, known, np.arange(outputs.shape[0]) if ids is None else ids, scored.class_names,
        calibrated.prediction,
    )  # fmt: skip
    method = calibrated.method
    parts = scored.reference.nodes, scored.level_nodes
    again = data.scored_in_parts(method.score, method.seed, *parts, level=method.level, u=u)
    return method.on(again)


def model_outputs(calibrated: Any) -> Array | None:
    """Return what the model said of the nodes, before evidence or a correction changed it; None if that is not kept."""
    bound = calibrated.score
    while bound is not None:
        for name in ("model", "outputs", "probabilities"):
            if isinstance(bound, BoundRows | BoundIntervals) or name != "probabilities":
                rows: Array | None = getattr(bound, name, None)
                if rows is not None:
                    return rows
        bound = getattr(bound, "inner", None)
    return None


def _with_edges(graph: Graph | None, edges: ArrayLike | None, before: int, size: int) -> Graph | None:
    """Return the graph with new nodes and edges, each of which has a new node at one end at least."""
    if graph is None:
        if edges is not None:
            raise InvalidInputError("`edges` must be None for a method that was calibrated without a graph")
        return None
    ends: IntArray = check_integers("edges", np.empty((2, 0), dtype=np.int64) if edges is None else edges, ndim=2)
    if ends.shape[0] != 2:
        raise InvalidInputError(f"`edges` must have shape (2, edges); got {ends.shape}")
    if ends.size and not (ends.min() >= 0 and ends.max() < size):
        raise InvalidInputError(
            f"`edges` must hold nodes from 0 to {size - 1}, of which {before} to {size - 1} are new; got "
            f"{int(ends.min() if ends.min() < 0 else ends.max())}"
        )
    if ends.size and (ends.max(axis=0) < before).any():
        pair = ends[:, int((ends.max(axis=0) < before).argmax())]
        raise InvalidInputError(
            f"`edges` must each have a new node at one end; {pair[0]} to {pair[1]} joins two that were there before"
        )
    if graph.lengths is not None:
        raise InvalidInputError("`edges` must have lengths in this graph; calibrate again, with the new nodes in it")
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    indptr, indices, _ = compress(
        np.concatenate([source, ends[0]]), np.concatenate([graph.indices, ends[1]]), size, graph.directed
    )
    return Graph._from_rows(indptr, indices, graph.directed)
