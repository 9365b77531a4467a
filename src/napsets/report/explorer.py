"""The explorer's data: for some nodes, all that explains their sets, in arrays of bounded size.

However large the graph and its neighbourhoods, a node costs the page the same few hundred bytes: counts by hop, a
histogram of scores by hop, and a drawing of at most `DRAWN_NODES` of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.advice.inspection import hop_rings
from napsets.checks.arguments import FloatArray, IntArray
from napsets.evaluation.comparison import METHODS, Comparison
from napsets.graph import Graph
from napsets.localisers.decay import hop_weights
from napsets.report.names import shown_name

__all__ = ["REASONS", "Explorer", "explorer"]

#: How many nodes can be explored, at most, and how many of them are shown for each reason.
EXPLORED_NODES, NODES_A_REASON = 600, 40
#: Bytes that the explorer's arrays may take; many classes or hops leave room for fewer nodes.
BUDGET = 1_000_000
#: Neighbours drawn around a node, over all hops.
DRAWN_NODES = 96
BINS = 40

#: Why a node can be explored, in the order of the columns of `Explorer.reason`.
REASONS: tuple[str, ...] = (
    "random",
    "NAPS covers, APS misses",
    "APS covers, NAPS misses",
    "too little support",
    "empty set",
    "largest sets",
)


@dataclass(frozen=True, eq=False)
class Explorer:
    """Nodes that can be looked at, and what explains their sets.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, m of them, ascending.
    reason : numpy.ndarray
        Boolean of shape (m, reasons): why each was taken.
    label, ball, degree : numpy.ndarray
        The true label, the neighbourhood on the map (−1 for none) and the degree of each.
    probabilities, scores : numpy.ndarray
        Shape (m, classes): the model's probabilities and the score of each label.
    thresholds, support, effective_size : numpy.ndarray
        Shape (methods, m).
    member : numpy.ndarray
        The sets, shape (methods, m, classes).
    weights : numpy.ndarray
        Shape (methods, hops): the weight of a calibration node at each hop; 0 for a method without a graph.
    hop_nodes, hop_counts : numpy.ndarray
        Shape (m, hops): all nodes, and calibration nodes, at each hop.
    hop_below : numpy.ndarray
        Shape (methods, m, hops): calibration nodes at each hop with a score of at most the method's threshold.
    all_below : numpy.ndarray
        Shape (m,): of all calibration nodes, how many have a score of at most APS's threshold.
    edges : numpy.ndarray
        Edges of the histograms' bins.
    histogram : numpy.ndarray
        Shape (m, hops, bins): scores of the calibration nodes at each hop.
    all_histogram : numpy.ndarray
        Shape (bins,): scores of all calibration nodes.
    drawn : numpy.ndarray
        Shape (m, drawn): rows of the arrays below, −1 where there is none.
    drawn_hop, drawn_parent : numpy.ndarray
        Their hop, and the column of a neighbour one hop nearer (−1 for the node itself, −2 for one not drawn).
    neighbour_names, neighbour_label, neighbour_score : list and numpy.ndarray
        Every neighbour drawn anywhere; label −1 and score NaN where it does not calibrate.
    names : list of str
        What the m nodes are called.
    """

    nodes: IntArray
    names: list[str]
    reason: npt.NDArray[np.bool_]
    label: IntArray
    ball: IntArray
    degree: IntArray
    probabilities: FloatArray
    scores: FloatArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    member: npt.NDArray[np.bool_]
    weights: FloatArray
    hop_nodes: IntArray
    hop_counts: IntArray
    hop_below: IntArray
    all_below: IntArray
    edges: FloatArray
    histogram: IntArray
    all_histogram: IntArray
    drawn: IntArray
    drawn_hop: IntArray
    drawn_parent: IntArray
    neighbour_names: list[str]
    neighbour_label: IntArray
    neighbour_score: FloatArray


def explorer(
    graph: Graph,
    found: Comparison,
    labels: IntArray,
    *,
    names: npt.NDArray[Any],
    ball: IntArray,
    seed: int = 0,
) -> Explorer:
    """Choose nodes, walk around each and keep what explains its sets."""
    sets = [result.sets for result in found]
    data, classes = found.data, found.data.probabilities.shape[1]
    rows, reason = _sample(found, labels, _affordable(classes, found.hops), seed)
    nodes = sets[0].nodes[rows]
    p = data.probabilities[nodes]
    thresholds = np.stack([s.thresholds[rows] for s in sets])
    at_label = np.full(graph.num_nodes, np.nan)
    at_label[data.calibration] = data.scores
    low, high = min(0.0, float(data.scores.min())), max(1.0, float(data.scores.max()))
    walks = _walk_all(graph, nodes, found.hops, at_label, thresholds, np.linspace(low, high, BINS + 1), seed)
    met, drawn = np.unique(walks["drawn"], return_inverse=True)
    offset = int(met.size > 0 and met[0] < 0)  # the first entry is the padding
    met = met[offset:]
    return Explorer(
        nodes=nodes,
        names=[shown_name(name) for name in names[nodes].tolist()],
        reason=reason,
        label=labels[nodes],
        ball=ball[nodes],
        degree=graph.degrees[nodes],
        probabilities=p.astype(np.float64),
        scores=found.score.matrix(p, data.u[nodes]),
        thresholds=thresholds,
        support=np.stack([s.support[rows] for s in sets]),
        effective_size=np.stack([s.effective_size[rows] for s in sets]),
        member=np.stack([s.member[rows] for s in sets]),
        weights=_weights(found.hops),
        hop_nodes=walks["hop_nodes"],
        hop_counts=walks["hop_counts"],
        hop_below=walks["hop_below"],
        all_below=np.searchsorted(found.index.sorted_scores, thresholds[0], side="right"),
        edges=np.linspace(low, high, BINS + 1),
        histogram=walks["histogram"],
        all_histogram=np.histogram(data.scores, bins=np.linspace(low, high, BINS + 1))[0],
        drawn=drawn.reshape(walks["drawn"].shape) - offset,
        drawn_hop=walks["drawn_hop"],
        drawn_parent=walks["drawn_parent"],
        neighbour_names=[shown_name(name) for name in names[met].tolist()],
        neighbour_label=np.where(np.isnan(at_label[met]), -1, labels[met]),
        neighbour_score=at_label[met],
    )


def _weights(hops: int) -> FloatArray:
    rows = [np.zeros(hops) if method.decay is None else hop_weights(method.decay, hops) for method in METHODS]
    return np.stack(rows)


def _affordable(classes: int, hops: int) -> int:
    per_node = classes * (16 + len(METHODS)) + hops * (2 * BINS + 8 + 4 * len(METHODS)) + DRAWN_NODES * 6 + 128
    return max(20, min(EXPLORED_NODES, BUDGET // per_node))


def _sample(found: Comparison, labels: IntArray, limit: int, seed: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Choose rows of the sets: some for each telling reason, and as many random ones as there is room for."""
    aps, naps = found["APS"].sets, found["NAPS"].sets
    hit, local_hit = aps.contains(labels), naps.contains(labels)
    short = np.isinf(naps.thresholds)
    # The largest sets among those that rest on a threshold: full ones for want of a threshold are their own kind.
    sizes = np.sort(naps.sizes[~short])
    large = ~short & (naps.sizes >= (sizes[-NODES_A_REASON:][0] if sizes.size else 0))
    kinds = [local_hit & ~hit, hit & ~local_hit, short, naps.sizes == 0, large]
    rng = np.random.default_rng(seed)
    reason = np.zeros((len(naps), len(REASONS)), dtype=bool)
    share = min(NODES_A_REASON, limit // (2 * len(REASONS)))
    for column, kind in enumerate(kinds, start=1):
        rows = np.flatnonzero(kind)
        reason[rng.permutation(rows)[:share], column] = True
    room = limit - int(reason.any(axis=1).sum())
    reason[rng.permutation(len(naps))[:room], 0] = True
    rows = np.flatnonzero(reason.any(axis=1))
    rows = rows[np.argsort(naps.nodes[rows], kind="stable")]
    return rows, reason[rows]


def _walk_all(
    graph: Graph, nodes: IntArray, hops: int, scores: FloatArray, thresholds: FloatArray, edges: FloatArray, seed: int
) -> dict[str, IntArray]:
    shape = (nodes.size, hops)
    out = {
        "hop_nodes": np.zeros(shape, dtype=np.int64),
        "hop_counts": np.zeros(shape, dtype=np.int64),
        "hop_below": np.zeros((thresholds.shape[0], *shape), dtype=np.int64),
        "histogram": np.zeros((*shape, BINS), dtype=np.int64),
        "drawn": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
        "drawn_hop": np.zeros((nodes.size, DRAWN_NODES), dtype=np.int64),
        "drawn_parent": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
    }
    column = np.empty(graph.num_nodes, dtype=np.int64)
    for i, node in enumerate(nodes):
        rings = hop_rings(graph, int(node), hops)
        for k, ring in enumerate(rings):
            known = scores[ring]
            known = known[~np.isnan(known)]
            out["hop_nodes"][i, k], out["hop_counts"][i, k] = ring.size, known.size
            out["hop_below"][:, i, k] = (known <= thresholds[:, i, None]).sum(axis=1)
            out["histogram"][i, k] = np.histogram(known, bins=edges)[0]
        rng = np.random.default_rng([seed, int(node)])
        chosen, hop, parent = _drawing(graph, int(node), rings, column, rng)
        for name, values in (("drawn", chosen), ("drawn_hop", hop), ("drawn_parent", parent)):
            out[name][i, : values.size] = values
    return out


def _drawing(
    graph: Graph, node: int, rings: list[IntArray], column: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Choose what to draw of each ring, at random, and join each to a drawn neighbour one hop nearer if it has one."""
    chosen, hop, parent = (np.empty(0, dtype=np.int64) for _ in range(3))
    room = max(1, DRAWN_NODES // max(1, len(rings)))
    inner, first = np.array([node]), -1
    for k, ring in enumerate(rings, start=1):
        taken = np.sort(rng.permutation(ring)[: min(room, DRAWN_NODES - chosen.size)])
        column[taken] = -2
        for position, near in enumerate(inner):
            reached = graph.indices[graph.indptr[near] : graph.indptr[near + 1]]
            mine = taken[np.isin(taken, reached, assume_unique=True) & (column[taken] == -2)]
            column[mine] = first + position
        parent = np.append(parent, column[taken])
        hop = np.append(hop, np.full(taken.size, k))
        inner, first = taken, chosen.size
        chosen = np.append(chosen, taken)
    return chosen, hop, parent
