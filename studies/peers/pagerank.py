"""PageRank weights: a labelled node counts as often as random walks from the node to predict end there.

A walk ends at each step with probability `restart`, and otherwise moves to a neighbour; where there is none, it stays.
Most walks end where they began; that mass is removed, because thresholds would otherwise be infinite nearly everywhere.
The weights of the reference nodes are scaled to the sum `worth`; in addition each of all n of them gets pool/n. In a
directed graph walks follow edges from source to target.

Masses come from the forward push of Andersen, Chung and Lang, *Local graph partitioning using PageRank vectors*, FOCS
2006: all mass starts at the node, and a node that holds more than `tolerance` per neighbour keeps a share `restart` of
it and hands the rest on, first in, first out. In an undirected graph no mass is then short by more than tolerance ×
degree.

*Guarantee*: with a nominal level, the gap bound that any fixed weights have, and no more; with an exact level,
1 − alpha in finite samples. *Cost*: at most 1 / (restart × tolerance) edges per node, and a sort of its weights.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets import Weights
from napsets.levels import Exact, Nominal
from napsets.localisers import LOCALISERS, Local, Reference
from napsets.localisers.base import graph_of
from napsets.methods import METHODS, Method


@LOCALISERS.add("pagerank")
@dataclass(frozen=True)
class PageRank:
    """Weight reference nodes by personalised PageRank: the probability that a walk from the node ends there.

    `restart` is the probability that a walk ends at a step. The reference nodes that walks end at count as much as
    `worth` neighbours together, and all of them as `pool`. `tolerance` is the mass left unpushed per neighbour.
    """

    restart: float = 0.15
    worth: float = 20.0
    pool: float = 0.0
    tolerance: float = 1e-4

    def fit(self, reference: Reference) -> Local:
        """Return the localiser of these reference nodes."""
        graph = graph_of(reference)
        rows = [row.tolist() for row in np.split(graph.indices, graph.indptr[1:-1])]
        places = {node: place for place, node in enumerate(reference.nodes.tolist())}

        def weights(node: int, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            mass = self.masses(rows, node)
            near = {places[v]: m for v, m in mass.items() if v in places and v != node and m > 0.0}
            values = np.full(nodes.size, self.pool / nodes.size)
            if near:
                found = np.fromiter(near.values(), dtype=np.float64)
                values[list(near)] += self.worth * (found / found.sum())
            return values

        return Weights(weights).fit(reference)

    def masses(self, rows: list[list[int]], source: int) -> dict[int, float]:
        """Return the mass of walks from a node that end at each of the nodes they reach, by forward push."""
        ended: defaultdict[int, float] = defaultdict(float)
        held: defaultdict[int, float] = defaultdict(float, {source: 1.0})
        queue, queued = deque([source]), {source}
        while queue:
            node = queue.popleft()
            queued.remove(node)
            mass, neighbours = held.pop(node), rows[node]
            if not neighbours:  # there is no way on: the walk stays
                ended[node] += mass
                continue
            ended[node] += self.restart * mass
            share = (1.0 - self.restart) * mass / len(neighbours)
            for neighbour in neighbours:
                held[neighbour] += share
                if neighbour not in queued and held[neighbour] > self.tolerance * len(rows[neighbour]):
                    queued.add(neighbour)
                    queue.append(neighbour)
        return ended


@METHODS.add("pagerank")
def pagerank(*, score: Any = "aps", pool: float = 30.0, fallback: Any = "full") -> Method:
    """Labelled nodes weighted by personalised PageRank, pooled with all. Meant for even coverage; no guarantee."""
    return Method(score, PageRank(pool=pool), Nominal(fallback))


@METHODS.add("pagerank-exact")
def pagerank_exact(*, score: Any = "aps", pool: float = 30.0) -> Method:
    """PageRank weights; held-out labels set the level. Meant for even coverage, guaranteed."""
    return Method(score, PageRank(pool=pool), Exact())
