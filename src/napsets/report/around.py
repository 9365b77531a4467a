"""What the explorer shows of some nodes whatever is predicted of them: thresholds, and the labelled nodes around them.

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
from napsets.evaluation.side_by_side import Compared, SideBySide
from napsets.graph import Graph
from napsets.localisers import HopsLocal
from napsets.methods import Scored
from napsets.report.names import shown_name
from napsets.report.shown import shown_methods, walked

__all__ = ["BINS", "DRAWN_NODES", "FOCUS_COVERS", "TOO_LITTLE", "VOICES", "Around", "Heard", "affordable"]
__all__ += ["look_around", "sample", "scored_nodes"]

#: How many nodes can be explored, at most, and how many of them are shown for each reason.
EXPLORED_NODES, NODES_A_REASON = 600, 40
#: Bytes that the explorer's arrays may take; many classes or hops leave room for fewer nodes.
BUDGET = 1_000_000
#: Neighbours drawn around a node, over all hops.
DRAWN_NODES = 96
BINS = 40
#: Labelled nodes that are named as evidence, at most.
VOICES = 6

#: Columns of `Around.reason` that the page asks for.
RANDOM, FOCUS_COVERS, FOCUS_MISSES, TOO_LITTLE, EMPTY, LARGEST = range(6)


@dataclass(frozen=True, eq=False, kw_only=True)
class Around:
    """Nodes that can be looked at, and what explains their thresholds.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, m of them, ascending.
    names : list of str
        What they are called.
    reasons : list of str
        Why a node can be explored, in words; `focus` is the method that they are about, the baseline the first one.
    reason : numpy.ndarray
        Boolean of shape (m, reasons): why each was taken.
    ball, degree : numpy.ndarray
        The neighbourhood on the map (−1 for none) and the degree of each.
    scored : numpy.ndarray
        For each method the place, below called s, of its scores: methods that score the same nodes alike share one.
    thresholds, support, effective_size : numpy.ndarray
        Shape (methods, m).
    levels : numpy.ndarray
        Shape (methods,): the share of the weight that a threshold must gather.
    weights : numpy.ndarray
        Shape (methods, hops): the weight of a calibration node at each hop; 0 for a method that weighs none.
    pools : numpy.ndarray
        Shape (methods, 2): what all calibration nodes weigh together, on top, and those with the same first choice.
    hop_nodes : numpy.ndarray
        Shape (m, hops): all nodes at each hop.
    hop_counts : numpy.ndarray
        Shape (s, m, hops): calibration nodes at each hop.
    hop_below : numpy.ndarray
        Shape (methods, m, hops): calibration nodes at each hop with a score of at most the method's threshold.
    all_counts, alike_counts : numpy.ndarray
        Shape (s,) and (s, m): all calibration nodes, and those with the node's own first choice.
    all_below, alike_below : numpy.ndarray
        Shape (methods, m): how many of those have a score of at most the method's threshold.
    edges : numpy.ndarray
        Edges of the histograms' bins, shape (s, bins + 1).
    histogram : numpy.ndarray
        Shape (s, m, hops, bins): scores of the calibration nodes at each hop.
    all_histogram : numpy.ndarray
        Shape (s, bins): scores of all calibration nodes.
    drawn : numpy.ndarray
        Shape (m, drawn): rows of the arrays of neighbours, −1 where there is none.
    drawn_hop, drawn_parent : numpy.ndarray
        Their hop, and the column of a neighbour one hop nearer (−1 for the node itself, −2 for one not drawn).
    neighbour_names, neighbour_score : list and numpy.ndarray
        Every neighbour drawn anywhere; a score for each s, NaN where it does not calibrate.
    informed : numpy.ndarray
        For each s the place, below called e, of the evidence that it rests on; −1 where there is none.
    sentences : list of str
        For each e, what a labelled neighbour does.
    voices, voice_hop : numpy.ndarray
        Shape (e, m, voices): the labelled nodes that speak loudest, as rows of the arrays of neighbours (−1 where there
        is none), and their hop.
    speaking : numpy.ndarray
        Shape (e, m): how many speak in all.
    """

    nodes: IntArray
    names: list[str]
    focus: int
    reasons: list[str]
    reason: npt.NDArray[np.bool_]
    ball: IntArray
    degree: IntArray
    scored: IntArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    levels: FloatArray
    weights: FloatArray
    pools: FloatArray
    hop_nodes: IntArray
    hop_counts: IntArray
    hop_below: IntArray
    all_counts: IntArray
    all_below: IntArray
    alike_counts: IntArray
    alike_below: IntArray
    edges: FloatArray
    histogram: IntArray
    all_histogram: IntArray
    drawn: IntArray
    drawn_hop: IntArray
    drawn_parent: IntArray
    neighbour_names: list[str]
    neighbour_score: FloatArray
    informed: IntArray
    sentences: list[str]
    voices: IntArray
    voice_hop: IntArray
    speaking: IntArray


class Heard:
    """Who speaks loudest of each node, as far as the page names them; filled in by number."""

    def __init__(self, informed: IntArray, evidence: int, nodes: int) -> None:
        self.informed = informed
        self.sentences: list[str] = []
        self.voices = np.full((evidence, nodes, VOICES), -1, dtype=np.int64)
        self.hops = np.zeros(self.voices.shape, dtype=np.int64)
        self.speaking = np.zeros((evidence, nodes), dtype=np.int64)

    def hear(self, e: int, i: int, voices: tuple[Any, ...]) -> None:
        """Note the voices on node i, the loudest first."""
        self.speaking[e, i] = len(voices)
        for c, voice in enumerate(voices[:VOICES]):
            self.voices[e, i, c], self.hops[e, i, c] = voice.node, voice.hop


def look_around(
    found: SideBySide[Any],
    rows: IntArray,
    reason: npt.NDArray[np.bool_],
    *,
    heard: Heard,
    names: npt.NDArray[Any],
    ball: IntArray,
    focus: int,
    words: tuple[str, str],
) -> tuple[dict[str, Any], IntArray]:
    """Walk around the nodes of some rows: return what an `Around` holds, and which nodes its neighbours are.

    Parameters
    ----------
    found : SideBySide
        The comparison.
    rows, reason
        Which of its nodes, and why, as `sample` gives them.
    heard : Heard
        Who speaks of these nodes.
    names, ball : arrays with one entry a node
        What nodes are called, and their neighbourhood on the map.
    focus : int
        The method that reasons are about.
    words : (str, str)
        What an empty set, and the largest ones, are called.
    """
    made = [result.made for result in found]
    scored, place = scored_nodes(found)
    nodes, seed = found.nodes[rows], found.settings.seed
    thresholds = np.stack([each.thresholds[rows] for each in made])
    around = [_Scores.of(each, nodes) for each in scored]
    walks = _walk_all(walked(found), nodes, found.hops, around, place, thresholds, seed)
    met, drawn = np.unique(np.concatenate([walks["drawn"].ravel(), heard.voices.ravel()]), return_inverse=True)
    offset = int(met.size > 0 and met[0] < 0)  # the first entry is the padding
    met = met[offset:]
    below = [_below(around[place[m]], thresholds[m]) for m in range(len(made))]
    parts: dict[str, Any] = {
        "nodes": nodes,
        "names": [shown_name(name) for name in names[nodes].tolist()],
        "focus": focus,
        "reasons": _reasons(found, focus, words),
        "reason": reason,
        "ball": ball[nodes],
        "degree": found.graph.degrees[nodes],
        "scored": place,
        "thresholds": thresholds,
        "support": np.stack([each.support[rows] for each in made]),
        "effective_size": np.stack([each.effective_size[rows] for each in made]),
        "levels": np.array([1.0 - found.alpha if each.level is None else each.level for each in made]),
        "weights": np.stack([_weights(result, nodes, found.hops) for result in found]),
        "pools": np.array([_pools(result, nodes) for result in found]),
        "hop_nodes": walks["hop_nodes"],
        "hop_counts": walks["hop_counts"],
        "hop_below": walks["hop_below"],
        "all_counts": np.array([each.sorted.size for each in around]),
        "all_below": np.stack([each[0] for each in below]),
        "alike_counts": np.stack([each.alike_counts for each in around]),
        "alike_below": np.stack([each[1] for each in below]),
        "edges": np.stack([each.edges for each in around]),
        "histogram": walks["histogram"],
        "all_histogram": np.stack([np.histogram(each.sorted, bins=each.edges)[0] for each in around]),
        "drawn": drawn[: walks["drawn"].size].reshape(walks["drawn"].shape) - offset,
        "drawn_hop": walks["drawn_hop"],
        "drawn_parent": walks["drawn_parent"],
        "neighbour_names": [shown_name(name) for name in names[met].tolist()],
        "neighbour_score": np.stack([each.at_label[met] for each in around]),
        "informed": heard.informed,
        "sentences": heard.sentences,
        "voices": drawn[walks["drawn"].size :].reshape(heard.voices.shape) - offset,
        "voice_hop": heard.hops,
        "speaking": heard.speaking,
    }
    return parts, met


def scored_nodes(found: SideBySide[Any]) -> tuple[list[Scored], IntArray]:
    """Return the scored nodes that the methods are made of, each once, and which of them each method has."""
    each = {id(result.calibrated.scored): result.calibrated.scored for result in found}
    order = list(each)
    return list(each.values()), np.array([order.index(id(result.calibrated.scored)) for result in found])


def affordable(own: int, hops: int, methods: int, scored: int) -> int:
    """Return how many nodes the page has room for, if each takes `own` bytes beside what all pages hold of it."""
    # A drawn neighbour is often drawn around several nodes, and its score held once: a quarter is what was seen.
    per_score = hops * (2 * BINS + 4) + 4 + 2 * DRAWN_NODES
    per_method = 4 * hops + 32
    each = scored * per_score + methods * per_method + DRAWN_NODES * 6 + own
    return max(20, min(EXPLORED_NODES, BUDGET // each))


def _reasons(found: SideBySide[Any], focus: int, words: tuple[str, str]) -> list[str]:
    """Say in words why nodes can be explored, in the order of the constants above."""
    shown = shown_methods(found)
    base, local = shown[0].title, shown[focus].title
    told = [f"{local} covers, {base} misses", f"{base} covers, {local} misses", "too little support"]
    return ["random", *told, *words]


def sample(found: SideBySide[Any], limit: int, focus: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Choose rows of the judged nodes: some for each telling reason, and as many random ones as there is room for."""
    local, truth = found.results[focus], found.given.labels
    hit, local_hit = found.baseline.made.contains(truth), local.made.contains(truth)
    short = np.isinf(local.made.thresholds)
    # The largest sets among those that rest on a threshold: full ones for want of a threshold are their own kind.
    sizes = np.sort(local.sizes[~short])
    large = ~short & (local.sizes >= (sizes[-NODES_A_REASON:][0] if sizes.size else 0))
    kinds = {
        FOCUS_COVERS: local_hit & ~hit,
        FOCUS_MISSES: hit & ~local_hit,
        TOO_LITTLE: short,
        EMPTY: local.sizes == 0,
        LARGEST: large,
    }
    rng = np.random.default_rng(found.settings.seed)
    reason = np.zeros((local.nodes, 1 + len(kinds)), dtype=bool)
    share = min(NODES_A_REASON, limit // (2 * reason.shape[1]))
    for column, kind in kinds.items():
        rows = np.flatnonzero(kind)
        reason[rng.permutation(rows)[:share], column] = True
    room = limit - int(reason.any(axis=1).sum())
    reason[rng.permutation(local.nodes)[:room], RANDOM] = True
    rows = np.flatnonzero(reason.any(axis=1))
    rows = rows[np.argsort(found.nodes[rows], kind="stable")]
    return rows, reason[rows]


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of calibration nodes: by node, in order, and in order among those of each first choice."""

    at_label: FloatArray  #: NaN for all other nodes
    sorted: FloatArray
    edges: FloatArray
    choice: IntArray  #: of the nodes explored
    by_choice: dict[int, FloatArray]

    @classmethod
    def of(cls, scored: Scored, nodes: IntArray) -> _Scores:
        reference, predicted = scored.reference, scored.reference.predicted
        at_label = np.full(reference.num_nodes, np.nan)
        at_label[reference.nodes] = reference.scores
        low, high = _range(reference.scores, unit=predicted is not None)
        choice = np.full(reference.num_nodes, -1) if predicted is None else predicted
        mine = choice[reference.nodes]
        by_choice = {int(y): np.sort(reference.scores[mine == y]) for y in np.unique(mine)}
        edges = np.linspace(low, high, BINS + 1)
        return cls(at_label, np.sort(reference.scores), edges, choice[nodes], by_choice)

    @property
    def alike_counts(self) -> IntArray:
        return np.array([self.by_choice.get(int(y), np.empty(0)).size for y in self.choice], dtype=np.int64)


def _range(scores: FloatArray, *, unit: bool) -> tuple[float, float]:
    """Return between what scores lie: those of labels from 0 to 1 at the least."""
    low, high = float(scores.min()), float(scores.max())
    if unit:
        return min(0.0, low), max(1.0, high)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _below(scores: _Scores, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """Count calibration scores of at most each node's threshold: of all, and of those with the same first choice."""
    alike = np.zeros(thresholds.size, dtype=np.int64)
    for y, mine in scores.by_choice.items():
        here = scores.choice == y
        alike[here] = np.searchsorted(mine, thresholds[here], side="right")
    return np.searchsorted(scores.sorted, thresholds, side="right"), alike


def _weights(result: Compared, nodes: IntArray, hops: int) -> FloatArray:
    local = result.calibrated.local
    weights = local.weighting(nodes).hops[:hops] if isinstance(local, HopsLocal) else np.empty(0)
    return np.pad(weights, (0, hops - weights.size))


def _pools(result: Compared, nodes: IntArray) -> tuple[float, float]:
    local = result.calibrated.local
    if not isinstance(local, HopsLocal):
        return 0.0, 0.0
    weighting = local.weighting(nodes)
    return weighting.pool, weighting.alike


def _walk_all(
    graph: Graph,
    nodes: IntArray,
    hops: int,
    around: list[_Scores],
    place: IntArray,
    thresholds: FloatArray,
    seed: int,
) -> dict[str, IntArray]:
    shape = (nodes.size, hops)
    out = {
        "hop_nodes": np.zeros(shape, dtype=np.int64),
        "hop_counts": np.zeros((len(around), *shape), dtype=np.int64),
        "hop_below": np.zeros((thresholds.shape[0], *shape), dtype=np.int64),
        "histogram": np.zeros((len(around), *shape, BINS), dtype=np.int64),
        "drawn": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
        "drawn_hop": np.zeros((nodes.size, DRAWN_NODES), dtype=np.int64),
        "drawn_parent": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
    }
    column = np.empty(graph.num_nodes, dtype=np.int64)
    for i, node in enumerate(nodes):
        rings = hop_rings(graph, int(node), hops)
        for k, ring in enumerate(rings):
            out["hop_nodes"][i, k] = ring.size
            for s, scores in enumerate(around):
                known = scores.at_label[ring]
                known = known[~np.isnan(known)]
                mine = np.flatnonzero(place == s)
                out["hop_counts"][s, i, k] = known.size
                out["hop_below"][mine, i, k] = (known <= thresholds[mine, i, None]).sum(axis=1)
                out["histogram"][s, i, k] = np.histogram(known, bins=scores.edges)[0]
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
