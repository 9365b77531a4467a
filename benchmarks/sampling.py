"""How fast neighbourhoods are drawn: our compiled samplers beside plain PyTorch ones.

Run with ``python -m benchmarks.sampling``; writes ``benchmarks/results/sampling.json``. The graphs are synthetic, of
the size of the training graphs of Flickr and Reddit2. Both sides draw the same kind of sample: up to 25, then 10
neighbours of 512 seeds without replacement; ego-nets of up to 20 neighbours, 2 deep, around 128 roots.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from napsets.datasets import dcsbm_graph
from napsets.files.paths import replacing
from napsets.graph import Graph
from napsets.kernels.sampling import neighbours, shadow

RESULTS = Path(__file__).parent / "results" / "sampling.json"
SIZES = {"flickr-sized": (44_625, 5.0), "reddit2-sized": (153_932, 70.0)}
FANOUTS = (25, 10)


def torch_hop(indptr: torch.Tensor, indices: torch.Tensor, frontier: torch.Tensor, fanout: int) -> torch.Tensor:
    """Draw up to `fanout` neighbours of each frontier node: the rows' smallest random keys."""
    degree = indptr[frontier + 1] - indptr[frontier]
    row = torch.repeat_interleave(degree)
    start = torch.cumsum(degree, 0) - degree
    within = torch.arange(row.numel()) - start[row]
    neighbour = indices[indptr[frontier][row] + within]
    order = torch.argsort(row + torch.rand(row.numel(), dtype=torch.float64))
    kept = order[within < fanout]  # rows stay where they were, so the first of each are its smallest keys
    return torch.stack([row[kept], neighbour[kept]])


def torch_neighbours(
    indptr: torch.Tensor, indices: torch.Tensor, seeds: torch.Tensor
) -> tuple[torch.Tensor, list[Any]]:
    """Draw a neighbour sample with tensor operations only, with local ids."""
    nodes, frontier, hops = seeds, seeds, []
    for fanout in FANOUTS:
        row, neighbour = torch_hop(indptr, indices, frontier, fanout)
        fresh = torch.unique(neighbour[~torch.isin(neighbour, nodes)])
        nodes = torch.cat([nodes, fresh])
        by_id, place = torch.sort(nodes)
        hops.append(torch.stack([row, place[torch.searchsorted(by_id, neighbour)]]))
        frontier = fresh
    return nodes, hops


def torch_shadow(indptr: torch.Tensor, indices: torch.Tensor, roots: torch.Tensor) -> list[Any]:
    """Draw ego-nets root by root, each with its induced edges."""
    egos = []
    for root in roots:
        nodes = frontier = root.reshape(1)
        for _ in range(2):
            _, neighbour = torch_hop(indptr, indices, frontier, 20)
            frontier = torch.unique(neighbour[~torch.isin(neighbour, nodes)])
            nodes = torch.cat([nodes, frontier])
        degree = indptr[nodes + 1] - indptr[nodes]
        row = torch.repeat_interleave(degree)
        start = torch.cumsum(degree, 0) - degree
        column = indices[indptr[nodes][row] + torch.arange(row.numel()) - start[row]]
        by_id, place = torch.sort(nodes)
        at = torch.searchsorted(by_id, column).clamp(max=nodes.numel() - 1)
        inside = by_id[at] == column
        egos.append((nodes, torch.stack([row[inside], place[at[inside]]])))
    return egos


def best_time(action: Callable[[], object], repeats: int) -> float:
    """Return the least of several wall times, after one call to warm up."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(graph: Graph, repeats: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(0)
    indptr, indices = torch.from_numpy(graph.indptr.copy()), torch.from_numpy(graph.indices.astype(np.int64))
    scratch = np.full(graph.num_nodes, -1, dtype=np.int64)
    seeds, roots = rng.choice(graph.num_nodes, 512, replace=False), rng.choice(graph.num_nodes, 128, replace=False)
    fanouts, key = np.array(FANOUTS), np.uint64(1)
    pairs = {
        "neighbours (512 seeds, 25 then 10)": (
            lambda: neighbours(graph.indptr, graph.indices, seeds, fanouts, key, scratch),
            lambda: torch_neighbours(indptr, indices, torch.from_numpy(seeds)),
        ),
        "ego-nets (128 roots, 20 a node, depth 2, whole)": (
            lambda: shadow(graph.indptr, graph.indices, roots, 2, 20, key, 3, scratch),
            lambda: torch_shadow(indptr, indices, torch.from_numpy(roots)),
        ),
    }
    results = {}
    for name, (compiled, plain) in pairs.items():
        ours, theirs = best_time(compiled, repeats), best_time(plain, repeats)
        results[name] = {"napsets_ms": ours * 1e3, "torch_ms": theirs * 1e3, "ratio": theirs / ours}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    results: dict[str, Any] = {"threads": torch.get_num_threads(), "torch": torch.__version__, "graphs": {}}
    for name, (nodes, degree) in SIZES.items():
        graph, _ = dcsbm_graph(nodes, degree, 20, seed=0)
        rows = measure(graph, repeats)
        results["graphs"][name] = {"nodes": graph.num_nodes, "stored_edges": graph.num_edges, "samplers": rows}
        print(f"{name}: {graph}")
        for sampler, row in rows.items():
            print(
                f"  {sampler}: {row['napsets_ms']:.2f} ms, PyTorch {row['torch_ms']:.1f} ms, {row['ratio']:.1f} times"
            )
    with replacing(RESULTS) as draft:
        draft.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
