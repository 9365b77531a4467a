"""The graphs that are measured, all made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napsets.graph import Graph

__all__ = ["GRAPHS", "GraphSpec", "build", "load", "node_series"]


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
GRAPHS = {spec.name: spec for spec in _SPECS}


def build(name: str, folder: Path) -> dict[str, int | str]:
    """Make a graph and write it to `folder`; return what is told about it."""
    graph = GRAPHS[name].make()
    np.savez(folder / f"{name}.npz", indptr=graph.indptr, indices=graph.indices)
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
        return Graph(arrays["indptr"], arrays["indices"])
