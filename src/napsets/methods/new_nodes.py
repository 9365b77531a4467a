"""Nodes that were not there at calibration: the same method and labels, on the graph with them in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, IntArray, as_column, check_integers
from napsets.edges import compress
from napsets.errors import InvalidInputError
from napsets.features import Features, check_features
from napsets.graph import Graph
from napsets.randomness import node_uniforms

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated


def check_new_rows(calibrated: Calibrated, outputs: ArrayLike | None, nodes: ArrayLike | None) -> ArrayLike:
    """Return the outputs of new nodes that can be predicted without edges, or raise."""
    if outputs is None:
        raise InvalidInputError("`ids` must be left out without `probabilities` of new rows; pass `nodes`")
    if nodes is not None:
        raise InvalidInputError("`nodes` must be given, or else `probabilities` of rows that are new; not both")
    if calibrated.method.needs_graph:
        raise InvalidInputError(
            "`probabilities` must come with edges where thresholds depend on neighbours: write "
            "predict_new(probabilities, edges)"
        )
    return outputs


def with_new_nodes(
    calibrated: Calibrated,
    outputs: ArrayLike,
    edges: ArrayLike | None,
    ids: ArrayLike | None,
    features: object = None,
) -> Calibrated:
    """Return the same method calibrated on the same labels, split alike, with new nodes and edges in the graph.

    What was chosen stays chosen; what is fitted is fitted on the graph as it is then. In `edges`, n, n+1, … are the new
    nodes where n were there; by default they are also called so.
    """
    scored = calibrated.scored
    data, before = scored.data, scored.data.outputs
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
    truth = np.full(size, calibrated.prediction.unknown, dtype=data.truth.dtype)
    truth[scored.reference.nodes], truth[scored.level_nodes] = scored.labels, scored.level_labels
    grown = replace(
        data,
        graph=_with_edges(data.graph, edges, before.shape[0], size),
        outputs=np.concatenate([before, rows.astype(before.dtype, copy=False)]),
        truth=truth,
        ids=_joined(data.ids, names),
        features=_with_features(data.features, features, rows.shape[0], names),
        _scored={},
    )
    method, parts = calibrated.method, (scored.reference.nodes, scored.level_nodes)
    return method.on(grown.scored_in_parts(method.score, method.seed, *parts, u=u))


def _joined(ids: AnyArray, more: AnyArray) -> AnyArray:
    """Return the names of all nodes; integers and texts together are an array of Python objects."""
    if ids.dtype.kind == more.dtype.kind and ids.dtype.kind in "iU":
        return np.concatenate([ids, more])
    return np.concatenate([ids.astype(object), more.astype(object)])


def _with_features(known: Features | None, features: object, size: int, names: AnyArray) -> Features | None:
    """Return the features of all nodes, in the form in which those of the known nodes are."""
    if known is None:
        if features is not None:
            raise InvalidInputError("`features` must be None for a method that was calibrated without features")
        return None
    if features is None:
        raise InvalidInputError(
            "`features` must be given for the new nodes, as calibrate(...) had features; got None. Write "
            "predict_new(probabilities, edges, features=...)"
        )
    more = check_features("features", features, size, names)
    if more.shape[1] != known.shape[1]:
        raise InvalidInputError(
            f"`features` must have as many columns as at calibration, {known.shape[1]}; got {more.shape[1]}"
        )
    if isinstance(known, np.ndarray):
        return np.concatenate([known, more if isinstance(more, np.ndarray) else more.toarray()])
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([known, csr_array(more)]))


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
