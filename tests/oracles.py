"""Slow, independent ways to compute what napsets computes: the other side of the comparisons.

Nothing here calls napsets. Distances come from SciPy, NetworkX or a search over sets; masses are exact rational
numbers, so that "reached exactly" needs no forgiveness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.stats import betabinom

#: Every way of searching that must give the same bits.
STRATEGIES = ("dense", "deep")
#: The same with those that users cannot ask for.
EVERY_STRATEGY = ("few", *STRATEGIES)


class Neighbours(list):
    """The neighbours of each node as a set, which remember the distances that were searched."""

    def __init__(self, sets):
        super().__init__(sets)
        self.distances = {}


def adjacency_sets(edges, num_nodes, directed=False):
    """Neighbours of each node as a set, without self-loops."""
    neighbours = Neighbours(set() for _ in range(num_nodes))
    for u, v in edges:
        if u != v:
            neighbours[u].add(v)
            if not directed:
                neighbours[v].add(u)
    return neighbours


def rows_of(neighbours):
    """The compressed sparse rows of adjacency sets, as two lists."""
    indptr, indices = [0], []
    for row in neighbours:
        indices += sorted(row)
        indptr.append(len(indices))
    return indptr, indices


def hops_from(neighbours, source):
    """Distance of every node that can be reached from `source`, by a search over sets."""
    if source in neighbours.distances:
        return neighbours.distances[source]
    distance = neighbours.distances[source] = {source: 0}
    frontier = {source}
    k = 0
    while frontier:
        k += 1
        frontier = {v for u in frontier for v in neighbours[u] if v not in distance}
        distance.update(dict.fromkeys(frontier, k))
    return distance


def scipy_distances(edges, num_nodes, directed=False):
    """All pairs of distances from SciPy; inf where there is no path."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    matrix = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(num_nodes, num_nodes))
    return shortest_path(matrix.tocsr(), method="D", directed=directed, unweighted=True)


def order_statistic(scores: Sequence[float], alpha: Fraction) -> float:
    """The ⌈(n+1)(1−α)⌉-th smallest score, in exact arithmetic; inf where there are fewer."""
    place = math.ceil((len(scores) + 1) * (1 - alpha))
    return sorted(scores)[place - 1] if place <= len(scores) else math.inf


def exact_quantile(scores: Sequence[float], weights: Sequence[Fraction], alpha: Fraction) -> float:
    """The smallest s with Σ_{s_i ≤ s} w_i ≥ (1−α)(1+Σ w_i), in exact arithmetic; inf where there is none."""
    needed = (1 - alpha) * (1 + sum(weights))
    for s in sorted(scores):
        if sum(w for t, w in zip(scores, weights, strict=True) if t <= s) >= needed:
            return s
    return math.inf


def exact_hop_threshold(distance, calibration, scores, node, weights: Sequence[Fraction], alpha: Fraction) -> float:
    """The threshold of one node from distances (a mapping or a row of them), in exact arithmetic."""
    around = [
        (scores[i], weights[int(hop) - 1])
        for i, hop in ((i, distance[v]) for i, v in enumerate(calibration) if v != node)
        if 1 <= hop <= len(weights)
    ]
    return exact_quantile([s for s, _ in around], [w for _, w in around], alpha)


def float_hop_threshold(distance, calibration, scores, node, weights: Sequence[float], alpha: float) -> float:
    """The specification word for word in Python floats: counts by hop, weighted in order of k, one part in 10⁹."""
    around = [
        (scores[i], int(distance[v])) for i, v in enumerate(calibration) if v != node and distance[v] <= len(weights)
    ]
    total = 0.0
    for k, w in enumerate(weights, 1):
        total += w * sum(hop == k for _, hop in around)
    needed = (1.0 - alpha) * (1.0 + total) * (1.0 - 1e-9)
    for s in sorted({score for score, _ in around}):
        mass = 0.0
        for k, w in enumerate(weights, 1):
            mass += w * sum(hop == k and score <= s for score, hop in around)
        if mass >= needed:
            return s
    return math.inf


def reaches(mass: float, total: float, level: float, rule: int) -> bool:
    """Whether a mass reaches a level: nominally (0), at least (1) or above it (2)."""
    if rule == 0:
        return mass >= level * (1.0 + total) * (1.0 - 1e-9)
    share = mass / (1.0 + total)
    return share >= level if rule == 1 else share > level


def pooled_masses(others, weights: Sequence[float], pool: float, alike: float) -> tuple[list, float]:
    """Distinct scores with the mass up to each, and the total, of (score, hop, same) triples; in Python floats."""

    def mass(inside) -> float:
        sum_ = 0.0
        for k, w in enumerate(weights, 1):
            sum_ += w * sum(hop == k for _, hop, _ in inside)
        if pool > 0 and others:
            sum_ += (pool / len(others)) * len(inside)
        same = sum(same for _, _, same in others)
        if alike > 0 and same:
            sum_ += (alike / same) * sum(same for _, _, same in inside)
        return sum_

    distinct = sorted({score for score, _, _ in others})
    return [(s, mass([other for other in others if other[0] <= s])) for s in distinct], mass(others)


def pooled_threshold(others, weights: Sequence[float], level: float, rule: int, pool: float, alike: float) -> float:
    """The smallest score whose mass reaches the level; −inf where none is needed, inf where there is none."""
    masses, total = pooled_masses(others, weights, pool, alike)
    if reaches(0.0, total, level, rule):
        return -math.inf
    return next((s for s, mass in masses if reaches(mass, total, level, rule)), math.inf)


def aps_row(p: Sequence[float], u: float) -> list[float]:
    """APS scores of one row, from the definition: classes sorted by (−p, index), running sums."""
    scores = [0.0] * len(p)
    total = 0.0
    for y in sorted(range(len(p)), key=lambda y: (-p[y], y)):
        total += p[y]
        scores[y] = total - u * p[y]
    return scores


def enumerated_worst_deviation(sizes: Sequence[int], p: float) -> float:
    """Mean of the worst |X/n − p| over groups, from every outcome and its probability."""
    chances = [[math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)] for n in sizes]
    return sum(
        math.prod(row[k] for row, k in zip(chances, outcome, strict=True))
        * max(abs(k / n - p) for k, n in zip(outcome, sizes, strict=True))
        for outcome in product(*(range(n + 1) for n in sizes))
    )


def miss_capitals(missed, alpha, labels=None):
    """The capital of the coverage alarm after each label, for many streams together: shape (streams, labels).

    Sets are made one by one, or all from the same number of labels.
    """
    stakes, capitals = 2.0 ** -np.arange(1, 9), np.empty(missed.shape)
    invested = np.zeros((missed.shape[0], stakes.size))
    for t in range(missed.shape[1]):
        rate = np.full((missed.shape[0], 1), alpha)
        if labels is not None:
            above = labels + 1 - math.ceil((labels + 1) * (1 - alpha) - 1e-9)
            rate = np.maximum(rate, (above + missed[:, :t].sum(axis=1, keepdims=True)) / (labels + 1 + t))
        invested += 1 / (stakes.size * (t + 1) * (t + 2))
        invested *= 1 + stakes * (missed[:, t : t + 1] / rate - 1)
        capitals[:, t] = invested.sum(axis=1) + 1 / (t + 2)
    return capitals


def same_bits(a, b) -> bool:
    """Whether two arrays of floats agree in every bit."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def shortest_edges(edges, lengths, directed=False):
    """The edges of a graph with the length of each: of several, the shortest; without self-loops."""
    lengths_of: dict[tuple[int, int], float] = {}
    for (u, v), length in zip(edges, lengths, strict=True):
        for pair in ((u, v),) if directed else ((u, v), (v, u)):
            if u != v:
                lengths_of[pair] = min(lengths_of.get(pair, math.inf), length)
    return lengths_of


def path_distances(edges, lengths, num_nodes, source, directed=False):
    """The smallest sum of lengths to each node over all paths, each summed from the source on: by relaxing all edges.

    Rounding is monotone, so that a longest chain of shortest beginnings has the smallest sum: as many rounds as there
    are nodes find it, in whatever order edges are taken.
    """
    distance = [math.inf] * num_nodes
    distance[source] = 0.0
    shortest = shortest_edges(edges, lengths, directed)
    for _ in range(num_nodes):
        before = list(distance)
        for (u, v), length in shortest.items():
            distance[v] = min(distance[v], distance[u] + length)
        if distance == before:
            break
    return distance


def summed_masses(others, pool: float, alike: float) -> tuple[list, float]:
    """Distinct scores with the mass up to each, and the total, of (score, weight, same) triples; in Python floats.

    Weights are added by ascending score, the heaviest of equal scores first.
    """
    ordered = sorted(others, key=lambda other: (other[0], -other[1]))
    same_size = sum(same for _, _, same in others)

    def mass(count: int) -> float:
        near = 0.0
        for _, weight, _ in ordered[:count]:
            near += weight
        if pool > 0 and others:
            near += (pool / len(others)) * count
        if alike > 0 and same_size:
            near += (alike / same_size) * sum(same for _, _, same in ordered[:count])
        return near

    distinct = sorted({score for score, _, _ in others})
    return [(s, mass(sum(score <= s for score, _, _ in others))) for s in distinct], mass(len(others))


def summed_threshold(others, level: float, rule: int, pool: float = 0.0, alike: float = 0.0) -> float:
    """The smallest score whose summed mass reaches the level; −inf where none is needed, inf where there is none."""
    masses, total = summed_masses(others, pool, alike)
    if reaches(0.0, total, level, rule):
        return -math.inf
    return next((s for s, mass in masses if reaches(mass, total, level, rule)), math.inf)


def weighed_threshold(scores, weights, own: float, level: float, rule: str = "nominal") -> float:
    """The smallest score whose mass is, of own + total, at least the level; +∞ where none is, −∞ where 0 is enough."""
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    whole = own + sum(weights)
    for count in range(len(order) + 1):
        share = sum(weights[i] for i in order[:count]) / whole
        slack = 1e-9 if rule == "nominal" else 1e-12
        if share >= level * (1 - slack) if rule != "above" else share > level + slack:
            return scores[order[count - 1]] if count else -float("inf")
    return float("inf")


def ball(distance, node: int, min_size: int, furthest: int = 6) -> set[int]:
    """The smallest ball with this many nodes, or all nodes; `distance` holds infinities between components."""
    for radius in range(furthest + 1):
        inside = {u for u in range(len(distance)) if distance[node][u] <= radius}
        if len(inside) >= min_size:
            return inside
    return set(range(len(distance)))


def anchored_weights(distance, reference, node: int, anchor: int, min_size: int) -> tuple[list[float], float]:
    """H(i, a) of each reference node but the node itself, and H(v, a)."""

    def share(i: int) -> float:
        inside = ball(distance, i, min_size)
        return (anchor in inside) / len(inside)

    return [share(i) if i != node else 0.0 for i in reference], share(node)


def pagerank(neighbours, source: int, restart: float):
    """Where a walk ends that stops at every step with probability `restart`, or where it cannot go on."""
    n = len(neighbours)
    step = np.zeros((n, n))
    for u, row in enumerate(neighbours):
        step[list(row) or [u], u] = 1.0 / max(len(row), 1)
    return np.linalg.solve(np.eye(n) - (1 - restart) * step, restart * np.eye(n)[source])


def place_in_law(covered, nodes, labels, alpha, spread):
    """Where in its law a number of covered nodes falls, whose level is set on some labels.

    Of m nodes, BetaBinomial(m, k, n + 1 − k) are covered, k = ⌈(n + 1)(1 − α)⌉; `spread`, uniform on [0, 1], is the
    place within the step of the discrete law.
    """
    place = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
    law = betabinom(nodes, place, labels + 1 - place)
    return law.cdf(covered - 1) + spread * law.pmf(covered)


def tails(hits, law):
    """Return how likely so few hits, and so many, are over all draws: the law of their sum, by Fourier transforms."""
    size = (law.size - 1) * hits.size + 1
    sums = np.fft.irfft(np.fft.rfft(np.diff(law, prepend=0.0), size) ** hits.size, size)
    return sums[: hits.sum() + 1].sum(), sums[hits.sum() :].sum()
