"""The graphs that are measured, all made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napsets.graph import Graph


@dataclass(frozen=True)
class GraphSpec:
    """What a graph is called, what stands in the tables beside it, and how it is made."""

    name: str
    title: str
    make: Callable[[], Graph]


def _blocks(name: str, title: str, nodes: int, mean_degree: float, exponent: float) -> GraphSpec:
    def make() -> Graph:
        from napsets.datasets.synthetic import dcsbm_graph

        return dcsbm_graph(nodes, mean_degree, 41, exponent=exponent, seed=0)[0]

    return GraphSpec(name, title, make)


def _amazon() -> Graph:
    from napsets import datasets

    data = datasets.load("amazon-computers", seed=0)
    return data.graph.subgraph(data.test)


def _lattice(side: int = 500) -> Graph:
    """Return a square lattice: neighbourhoods stay tiny, however many hops are walked."""
    ids = np.arange(side * side).reshape(side, side)
    right, down = (ids[:, :-1], ids[:, 1:]), (ids[:-1], ids[1:])
    source = np.concatenate([right[0].ravel(), down[0].ravel()])
    target = np.concatenate([right[1].ravel(), down[1].ravel()])
    return Graph.from_table({"source": source, "target": target}, num_nodes=side * side)


def _one_way(graph: Graph) -> Graph:
    """Return the graph with each edge in one direction, drawn at random."""
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    kept = source < graph.indices
    ends = np.stack([source[kept], graph.indices[kept]])
    turned = np.random.default_rng(3).random(ends.shape[1]) < 0.5
    ends[:, turned] = ends[::-1, turned]
    return Graph.from_edge_index(ends, graph.num_nodes, directed=True)


def _with_lengths(graph: Graph) -> Graph:
    """Return the graph with lengths drawn from an exponential law, none of them tiny."""
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    lengths = np.random.default_rng(4).exponential(size=graph.num_edges) + 0.01
    return Graph.from_edge_index([source, graph.indices], graph.num_nodes, lengths=lengths)


def node_series(quick: bool) -> list[str]:
    """Return the names of graphs that grow in nodes while degrees stay alike."""
    return [f"series-{size}" for size in ((10_000, 40_000) if quick else (10_000, 20_000, 40_000, 80_000, 160_000))]


_SPECS = [
    # Degrees are tuned so that edges and the largest degree come out like those of Reddit2's test nodes.
    _blocks("reddit2-test", "block model the size of Reddit2's test subgraph", 55_334, 31, 2.2),
    _blocks("reddit2-full", "block model the size of Reddit2", 233_000, 111, 2.5),
    _blocks("products", "block model the size of ogbn-products", 2_400_000, 51.5, 2.5),
    _blocks("million", "block model of a million nodes", 1_000_000, 10, 2.5),
    *(_blocks(f"grown-{size}", f"block model, {size:,} nodes", size, 10, 2.5) for size in (10_000, 100_000)),
    *(_blocks(f"dense-{d}", f"block model, mean degree {d}", 100_000, d, 2.5) for d in (5, 20, 40)),
    _blocks("thin", "block model with mean degree 6", 200_000, 6, 2.5),
    GraphSpec("amazon-test", "Amazon Computers, test subgraph", _amazon),
    GraphSpec("lattice", "square lattice, 500 by 500", _lattice),
    *(
        _blocks(f"series-{size}", f"block model, {size:,} nodes", size, 26, 2.5)
        for size in (10_000, 20_000, 40_000, 80_000, 160_000)
    ),
]


def _changed(spec: GraphSpec, name: str, title: str, change: Callable[[Graph], Graph]) -> GraphSpec:
    return GraphSpec(name, title, lambda: change(spec.make()))


GRAPHS = {spec.name: spec for spec in _SPECS}
_ROADS = [
    # Twice the degree, so that about as many edges go out of a node as it has neighbours in reddit2-test.
    _changed(
        _blocks("", "", 55_334, 66, 2.2),
        "reddit2-test-directed",
        "block model the size of Reddit2's test subgraph, each edge one way",
        _one_way,
    ),
    *(
        _changed(GRAPHS[name], f"{name}-lengths", f"{GRAPHS[name].title}, edges with lengths", _with_lengths)
        for name in ("lattice", "amazon-test")
    ),
]
GRAPHS |= {spec.name: spec for spec in _ROADS}


def build(name: str, folder: Path) -> dict[str, int | str]:
    """Make a graph and write it to `folder`; return its title and sizes."""
    graph = GRAPHS[name].make()
    lengths = {} if graph.lengths is None else {"lengths": graph.lengths}
    rows = {"indptr": graph.indptr, "indices": graph.indices, "directed": graph.directed}
    np.savez(folder / f"{name}.npz", **rows, **lengths)
    degrees = graph.degrees.astype(np.int64)
    return {
        "graph": name,
        "title": GRAPHS[name].title,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "largest_degree": int(degrees.max()),
    }


def load(name: str, folder: Path) -> Graph:
    """Read a graph that `build` wrote."""
    with np.load(folder / f"{name}.npz") as arrays:
        lengths = arrays["lengths"] if "lengths" in arrays.files else None
        return Graph(arrays["indptr"], arrays["indices"], directed=bool(arrays["directed"]), lengths=lengths)
