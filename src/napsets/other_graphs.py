"""Graphs of other libraries, recognised by their attributes without importing these libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import matmul
from typing import TYPE_CHECKING

import numpy as np

from napsets.checks.arguments import IntArray, check_integers
from napsets.checks.values import check_list, choose, shown
from napsets.errors import InvalidInputError

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

#: An edge type of a graph with several types of nodes: those of its sources, its name, and those of its targets.
EdgeType = tuple[str, str, str]

#: Metapaths, each a sequence of edge types that starts and ends at the same type of node.
Metapaths = Sequence[Sequence[EdgeType]]
PATHS = "lists of edge types"


def is_hetero(graph: object) -> bool:
    """Whether this is a ``HeteroData`` of PyTorch Geometric."""
    return hasattr(graph, "node_types") and hasattr(graph, "edge_types")


def is_dgl(graph: object) -> bool:
    """Whether this is a DGL graph."""
    return hasattr(graph, "ntypes") and hasattr(graph, "canonical_etypes")


def is_igraph(graph: object) -> bool:
    """Whether this is an igraph graph."""
    return hasattr(graph, "get_edgelist") and hasattr(graph, "vcount")


def check_whole(name: str, graph: object) -> None:
    """Reject lists of graphs and loaders of batches: neighbourhoods need all edges at once."""
    kind = type(graph).__name__
    if isinstance(graph, list | tuple) and any(hasattr(part, "edge_index") for part in graph):
        raise InvalidInputError(
            f"`{name}` must be one graph; got a {kind} of {len(graph)}. Join those of PyTorch Geometric with "
            f"torch_geometric.data.Batch.from_data_list(...), and the rows of all nodes in the same order."
        )
    if hasattr(graph, "batch_size") and hasattr(graph, "__iter__"):
        raise InvalidInputError(
            f"`{name}` must hold all edges at once; a {kind} gives them in batches, and may need packages that are not "
            f"installed. Pass the graph that it was made from, and the model's outputs for all nodes."
        )


def typed_edges(data: HeteroData, node_type: str | None, metapaths: Metapaths) -> tuple[IntArray, IntArray, int | None]:
    """Return the edges of a ``HeteroData`` between nodes of one type and along metapaths, and the number of nodes."""
    kinds = list(data.node_types)
    if node_type is None:
        if len(kinds) != 1:
            raise InvalidInputError(
                f"`data` has nodes of {len(kinds)} types, {', '.join(kinds)}: choose the one to be predicted with "
                f"napsets.Graph.from_pyg(..., node_type={kinds[0]!r})"
            )
        node_type = kinds[0]
    node_type = choose("node_type", node_type, {kind: kind for kind in kinds})
    parts = [_ends(data, kind) for kind in data.edge_types if kind[0] == kind[2] == node_type]
    parts += [_joined_along(data, node_type, path) for path in check_list("metapaths", metapaths, PATHS)]
    if not parts:
        raise InvalidInputError(
            f"`data` has no edges between nodes of type {node_type!r}; pass metapaths=[[…]], each a list of edge types "
            f"that starts and ends there. There are {_listed(data)}."
        )
    source, target = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return source, target, data[node_type].num_nodes


def _ends(data: HeteroData, kind: EdgeType) -> tuple[IntArray, IntArray]:
    source, target = (check_integers(f"data[{kind!r}]", ends) for ends in data[kind].edge_index)
    return source, target


def _joined_along(data: HeteroData, node_type: str, path: Sequence[EdgeType]) -> tuple[IntArray, IntArray]:
    """Return the pairs of nodes that a path of edge types joins: a product of sparse matrices."""
    import scipy.sparse

    steps = [tuple(check_list("metapaths", step, "edge types")) for step in check_list("metapaths", path, PATHS)]
    unknown = [step for step in steps if step not in list(data.edge_types)]
    if unknown:
        raise InvalidInputError(f"`metapaths` must hold edge types: {_listed(data)}; got {shown(unknown[0])}")
    ends = [node_type, *(step[2] for step in steps)]
    if not steps or ends[-1] != node_type or any(step[0] != end for step, end in zip(steps, ends, strict=False)):
        raise InvalidInputError(
            f"`metapaths` must start and end at {node_type!r}, each step where the one before it ends; got "
            f"{shown(steps)}"
        )
    matrices = []
    for step in steps:
        source, target = _ends(data, step)
        shape = (data[step[0]].num_nodes, data[step[2]].num_nodes)
        matrices.append(scipy.sparse.csr_array((np.ones(source.size, dtype=bool), (source, target)), shape=shape))
    first, last = reduce(matmul, matrices).nonzero()
    return first.astype(np.int64), last.astype(np.int64)


def _listed(data: HeteroData) -> str:
    return ", ".join(map(repr, data.edge_types))


def constructor_hint(graph: object) -> str:
    """Return the call that makes a `Graph` from another object, for messages."""
    if hasattr(graph, "tocoo"):
        return "napsets.Graph.from_scipy(...)"
    if hasattr(graph, "edge_index") or is_hetero(graph):
        return "napsets.Graph.from_pyg(...)"
    if is_dgl(graph):
        return "napsets.Graph.from_edge_index(torch.stack(graph.edges()), graph.num_nodes())"
    if is_igraph(graph):
        return "napsets.Graph.from_igraph(...)"
    if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        return "napsets.Graph.from_networkx(...)"
    if hasattr(graph, "__dataframe__") or hasattr(graph, "__arrow_c_stream__") or isinstance(graph, Mapping):
        return "napsets.Graph.from_table(...)"
    return "napsets.Graph.from_edge_index(edge_index, num_nodes)"
