"""The map of neighbourhoods: balls of nodes, and the edges between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.evaluation.metrics import finite_mean, groups_of_partition, neighbourhood_partition
from napsets.evaluation.results import Comparison
from napsets.graph import Graph
from napsets.report.chart_parts import Row

#: Neighbourhoods with fewer nodes are not drawn; PCCV judges only those of `JUDGED_SIZE` or more, as in the paper.
DRAWN_SIZE, JUDGED_SIZE = 10, 30
#: The map holds this many neighbourhoods at most, the largest ones.
DRAWN_BALLS = 120
#: Strongest links of each ball that are drawn; all of them would hide the balls.
LINKS_PER_BALL = 3
#: Edges looked at at a time.
_CHUNK_EDGES = 1 << 24
#: Steps of a layout.
_STEPS = 400


@dataclass(frozen=True, eq=False)
class NeighbourhoodMap:
    """The neighbourhoods that a page draws."""

    ball: IntArray  #: The neighbourhood of each node, −1 for none.
    position: FloatArray  #: Where each is drawn.
    links: list[Row]  #: Which are joined.
    left_out: int  #: Judged nodes in none.

    def rows(
        self,
        comparison: Comparison,
        titles: Sequence[str],
        covered: Sequence[BoolArray],
        *,
        describe: Callable[[BoolArray], Row],
        size: str,
    ) -> list[Row]:
        """Return one row per neighbourhood: each method's coverage and, behind the word `size`, its mean size.

        `describe` says more about the judged nodes in it.
        """
        rows = []
        for b, (x, y) in enumerate(self.position.tolist()):
            inside = self.ball[comparison.nodes] == b
            row: Row = {"ball": b, "x": x, "y": y, "nodes": int(inside.sum())}
            row |= {"judged": bool(inside.sum() >= JUDGED_SIZE)} | describe(inside)
            for title, result, hits in zip(titles, comparison, covered, strict=True):
                row[title] = float(hits[inside].mean())
                row[f"{title} {size}"] = finite_mean(result.sizes[inside])
            rows.append(row)
        return rows


def neighbourhood_map(comparison: Comparison) -> NeighbourhoodMap:
    """Cut the judged nodes into neighbourhoods and lay them out."""
    graph, seed = comparison.graph, comparison.settings.seed
    parts = neighbourhood_partition(graph, comparison.nodes, min_size=DRAWN_SIZE, seed=seed)[:DRAWN_BALLS]
    ball = groups_of_partition(parts, graph.num_nodes)
    links, position = quotient(graph, parts, seed)
    return NeighbourhoodMap(ball, position, links, int((ball[comparison.nodes] < 0).sum()))


def quotient(graph: Graph, balls: list[IntArray], seed: int = 0) -> tuple[list[Row], FloatArray]:
    """Return the graph whose nodes are balls: the strongest links of each, and where it is drawn within [0, 1]²."""
    count = len(balls)
    joined = _edges_between(graph, groups_of_partition(balls, graph.num_nodes), count)
    source, target = np.nonzero(np.triu(joined, 1))
    edges = joined[source, target]
    # Large balls have many edges to all others; the layout should show which balls are closer than their sizes explain.
    sizes = np.array([members.size for members in balls], dtype=np.float64)
    strength = edges / np.sqrt(sizes[source] * sizes[target])
    kept = _strongest(source, target, strength, count)
    source, target, edges, strength = source[kept], target[kept], edges[kept], strength[kept]
    position = force_layout(count, source, target, strength, radius=np.sqrt(sizes), seed=seed)
    ends = zip(source.tolist(), target.tolist(), edges.tolist(), strict=True)
    return [{"source": a, "target": b, "edges": count} for a, b, count in ends], position


def force_layout(
    count: int, source: IntArray, target: IntArray, strength: FloatArray, *, radius: FloatArray, seed: int = 0
) -> FloatArray:
    """Lay a small graph out within [0, 1]²: links pull, nodes push, large nodes claim their room (`radius`).

    The same seed gives the same picture; the work is quadratic in the number of nodes.
    """
    if count == 0:
        return np.empty((0, 2))
    rng = np.random.default_rng(seed)
    angle = np.arange(count) * np.pi * (3 - np.sqrt(5))
    spiral = np.sqrt((np.arange(count) + 0.5) / count)[:, None]
    position = spiral * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(scale=1e-2, size=(count, 2))
    pull = np.zeros((count, count))
    pull[source, target] = strength / max(float(strength.max(initial=0.0)), 1e-12)
    pull += pull.T
    room = 0.5 * radius / np.sqrt(np.sum(radius**2))
    reach = room[:, None] + room[None, :]
    ideal = 1.2 / np.sqrt(count)
    for step in range(_STEPS):  # each moves less than the one before
        gap = position[:, None, :] - position[None, :, :]
        distance = np.sqrt(np.sum(gap**2, axis=2)) + 1e-9
        push = ideal**2 / distance**2 + 8.0 * np.maximum(0.0, reach - distance) / distance
        force = np.sum(gap * (push - pull * distance / ideal)[:, :, None], axis=1) - 0.6 * position
        length = np.sqrt(np.sum(force**2, axis=1, keepdims=True)) + 1e-9
        position += force / length * np.minimum(length, 0.12 * (1.0 - step / _STEPS))
    low, high = position.min(axis=0), position.max(axis=0)
    return np.asarray((position - low) / np.where(high > low, high - low, 1.0))


def _edges_between(graph: Graph, ball: IntArray, count: int) -> IntArray:
    """Count stored edges between every two balls, both directions together."""
    joined = np.zeros(count * count, dtype=np.int64)
    degrees = graph.degrees
    first = 0
    while first < graph.num_nodes:
        last = int(np.searchsorted(graph.indptr, graph.indptr[first] + _CHUNK_EDGES, side="right")) - 1
        last = min(max(last, first + 1), graph.num_nodes)
        ends: Any = graph.indices[graph.indptr[first] : graph.indptr[last]]
        a, b = np.repeat(ball[first:last], degrees[first:last]), ball[ends]
        inside = (a >= 0) & (b >= 0)
        joined += np.bincount(a[inside] * count + b[inside], minlength=count * count)
        first = last
    square = joined.reshape(count, count)
    # An undirected edge is stored twice, once from each side.
    return square + square.T if graph.directed else square


def _strongest(source: IntArray, target: IntArray, strength: FloatArray, count: int) -> IntArray:
    kept = np.zeros(source.size, dtype=bool)
    for b in range(count):
        links = np.flatnonzero((source == b) | (target == b))
        kept[links[np.argsort(-strength[links], kind="stable")[:LINKS_PER_BALL]]] = True
    return np.flatnonzero(kept)
