"""The explorer's data: for some nodes, all that explains their predictions, in arrays of bounded size.

However large the graph and its neighbourhoods, a node costs the page the same few hundred bytes: counts by hop, a
histogram of scores by hop, and a drawing of at most `DRAWN_NODES` of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.advice.threshold import rings_around
from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.checks.text import shown_name
from napsets.evaluation.results import Comparison, MethodResult
from napsets.graph import Graph
from napsets.localisers import HopsLocal
from napsets.methods import Scored
from napsets.report.data import walked_graph

if TYPE_CHECKING:
    from napsets.report.page import Page

Item = TypeVar("Item")

#: How many nodes can be explored, at most, and how many of them are shown for each reason.
EXPLORED_NODES, NODES_PER_REASON = 600, 40
#: Bytes that the explorer's arrays may take; many classes or hops leave room for fewer nodes.
BUDGET = 1_000_000

#: Neighbours drawn around a node, over all hops.
DRAWN_NODES = 96
#: Bins of a histogram of scores.
BINS = 40

#: Labelled nodes that are named as evidence, at most.
VOICES = 6

#: Columns of `Explorer.reason`.
RANDOM, FOCUS_COVERS, FOCUS_MISSES, TOO_LITTLE, EMPTY, LARGEST = range(6)


class VoiceColumn(NamedTuple):
    """A number that the explorer shows of each labelled node that is evidence."""

    attribute: str  #: The attribute of a `LabelledEvidence` that has it.
    shape: tuple[int, ...] = ()  #: Its shape; () for a single number.
    fill: float = 0.0  #: What is shown where there is none.


class Explorer(SimpleNamespace):
    """Nodes that can be looked at, and what explains their predictions: all that the page's script reads, by name.

    There are m nodes. Methods that score the same nodes alike share the scores at a place s, and scores that rest on
    the same evidence share that at a place e. What only one kind of page has is described in `explained` and
    `voice_columns` of `SetsPage` and `IntervalsPage`.

    nodes, names, ball, degree
        The nodes, ascending, what they are called, their neighbourhoods on the map (−1 for none), and their degrees.
    focus, reasons, reason
        The method that the page is about; why a node can be explored, in words, and why each was, (m, reasons).
    scored, levels, weights, pools
        For each method s, the share of the weight that a threshold must gather, the weight of a calibration node at
        each hop (0 for a method that weighs none), and what all calibration nodes weigh together, on top, and those
        with the same first choice.
    thresholds, support, effective_size
        Shape (methods, m).
    hop_nodes, hop_counts, hop_below
        Shape (m, hops), (s, m, hops) and (methods, m, hops): at each hop all nodes, the calibration nodes, and those of
        them with a score of at most the method's threshold.
    all_counts, alike_counts, all_below, alike_below
        Shape (s,) and (s, m): all calibration nodes, and those with the node's own first choice; of shape (methods, m)
        how many of them have a score of at most the method's threshold.
    edges, histogram, all_histogram
        Edges of the histograms' bins, shape (s, bins + 1); scores of the calibration nodes at each hop, shape
        (s, m, hops, bins), and of all of them, shape (s, bins).
    drawn, drawn_hop, drawn_parent
        Shape (m, drawn): rows of the arrays of neighbours, −1 where there is none; their hop, and the column of a
        neighbour one hop nearer (−1 for the node itself, −2 for one not drawn).
    neighbour_names, neighbour_score
        Every neighbour drawn anywhere; a score for each s, NaN where it does not calibrate.
    informed, sentences
        For each s the place e of the evidence that it rests on, −1 for none; for each e what a labelled neighbour does.
    voices, voice_hop, speaking
        Shape (e, m, voices): the labelled nodes with the strongest evidence, as rows of the arrays of neighbours (−1
        where there is none), and their hop; shape (e, m): how many there are in total.
    """

    @property
    def start(self) -> int:
        """The node that the page opens with: one where the neighbourhood makes the difference, with fair support."""
        telling = self.reason[:, FOCUS_COVERS] & np.isfinite(self.thresholds[self.focus])
        candidates = np.flatnonzero(telling if telling.any() else np.ones(self.nodes.size, dtype=bool))
        labelled = self.hop_counts[self.scored[self.focus]].sum(axis=1)
        return int(candidates[np.abs(labelled[candidates] - 100).argmin()])


def explore(page: Page, *, names: npt.NDArray[Any], ball: IntArray, focus: int = 1) -> Explorer:
    """Choose nodes, walk around each and keep what explains its predictions; `focus` is what reasons are about.

    `names` and `ball` have one entry per node: what it is called, and its neighbourhood on the map.
    """
    comparison, focus = page.comparison, min(focus, len(page.methods) - 1)
    of_method, scored = each_once([result.calibrated.scored for result in comparison], id)
    bounds = [part.bound for part in scored]
    informed, explainers = page.evidence(bounds)
    per_node = page.node_bytes(len(scored), len(explainers))
    room = affordable(per_node, comparison.hops, len(page.methods), len(scored))
    rows, reason = _sample(comparison, page.covered, room, focus)
    nodes, predictions = comparison.nodes[rows], [result.prediction for result in comparison]
    thresholds = np.stack([prediction.thresholds[rows] for prediction in predictions])
    scores = [CalibrationScores.of(part, nodes) for part in scored]
    seed = comparison.settings.seed
    walks = walk_around(walked_graph(comparison), nodes, comparison.hops, scores, of_method, thresholds, seed)
    voices = _voices(explainers, nodes, page.voice_columns)
    neighbours, walks["drawn"], voices["voices"] = _numbered(walks["drawn"], voices["voices"])
    neighbour_score = np.stack([own.by_node[neighbours] for own in scores])
    # A label held out for the level has no score among the neighbours, but may be evidence for them.
    calibrates = np.asarray((~np.isnan(neighbour_score)).any(axis=0)) | np.isin(neighbours, comparison.data.calibration)
    weightings = [_weighting(result, nodes, comparison.hops) for result in comparison]
    baseline, other = page.titles[0], page.titles[focus]
    differs = [f"{other} covers, {baseline} misses", f"{baseline} covers, {other} misses"]
    return Explorer(
        nodes=nodes,
        names=[shown_name(name) for name in names[nodes].tolist()],
        focus=focus,
        reasons=["random", *differs, "too little support", *page.extremes],
        reason=reason,
        ball=ball[nodes],
        degree=comparison.graph.degrees[nodes],
        scored=of_method,
        thresholds=thresholds,
        support=np.stack([prediction.support[rows] for prediction in predictions]),
        effective_size=np.stack([prediction.effective_size[rows] for prediction in predictions]),
        levels=np.array([1.0 - comparison.alpha if p.level is None else p.level for p in predictions]),
        weights=np.stack([weights for weights, _ in weightings]),
        pools=np.array([pools for _, pools in weightings]),
        all_counts=np.array([own.ordered.size for own in scores]),
        all_below=np.stack([scores[s].below(thresholds[m]) for m, s in enumerate(of_method)]),
        alike_counts=np.stack([own.alike_counts for own in scores]),
        alike_below=np.stack([scores[s].alike_below(thresholds[m]) for m, s in enumerate(of_method)]),
        edges=np.stack([own.edges for own in scores]),
        all_histogram=np.stack([np.histogram(own.ordered, bins=own.edges)[0] for own in scores]),
        neighbour_names=[shown_name(name) for name in names[neighbours].tolist()],
        neighbour_score=neighbour_score,
        informed=informed,
        sentences=[explainer.sentence for explainer in explainers],
        **walks,
        **voices,
        **page.explained(rows, neighbours, calibrates, bounds),
    )


def affordable(own: int, hops: int, methods: int, scored: int) -> int:
    """Return how many nodes the page has room for, if each takes `own` bytes more than on all pages."""
    # A drawn neighbour is often drawn around several nodes, and its score held once: a quarter is what was seen.
    per_score = hops * (2 * BINS + 4) + 4 + 2 * DRAWN_NODES
    per_method = 4 * hops + 32
    per_node = scored * per_score + methods * per_method + DRAWN_NODES * 6 + own
    return max(20, min(EXPLORED_NODES, BUDGET // per_node))


def _sample(
    comparison: Comparison, covered: Sequence[BoolArray], limit: int, focus: int
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Choose rows of the judged nodes: some for each telling reason, and as many random ones as there is room for."""
    result = comparison.results[focus]
    short = np.isinf(result.prediction.thresholds)
    # The largest among those with a finite threshold: those without one are a reason of their own.
    sizes = np.sort(result.sizes[~short])
    large = ~short & (result.sizes >= (sizes[-NODES_PER_REASON:][0] if sizes.size else 0))
    marks = {
        FOCUS_COVERS: covered[focus] & ~covered[0],
        FOCUS_MISSES: covered[0] & ~covered[focus],
        TOO_LITTLE: short,
        EMPTY: result.sizes == 0,
        LARGEST: large,
    }
    rng = np.random.default_rng(comparison.settings.seed)
    reason = np.zeros((result.nodes, 1 + len(marks)), dtype=bool)
    share = min(NODES_PER_REASON, limit // (2 * reason.shape[1]))
    for column, mark in marks.items():
        rows = np.flatnonzero(mark)
        reason[rng.permutation(rows)[:share], column] = True
    room = limit - int(reason.any(axis=1).sum())
    reason[rng.permutation(result.nodes)[:room], RANDOM] = True
    rows = np.flatnonzero(reason.any(axis=1))
    rows = rows[np.argsort(comparison.nodes[rows], kind="stable")]
    return rows, reason[rows]


def _voices(
    explainers: Sequence[Any], nodes: IntArray, columns: Mapping[str, VoiceColumn]
) -> dict[str, npt.NDArray[Any]]:
    """Return the strongest evidence of each node, how much there is, and the numbers of each that this page shows."""
    shape = (len(explainers), nodes.size, VOICES)
    arrays: dict[str, npt.NDArray[Any]] = {
        "voices": np.full(shape, -1, dtype=np.int64),
        "voice_hop": np.zeros(shape, dtype=np.int64),
        "speaking": np.zeros(shape[:2], dtype=np.int64),
    }
    arrays |= {
        name: np.full((*shape, *column.shape), column.fill, dtype=np.float32) for name, column in columns.items()
    }
    for e, explainer in enumerate(explainers):
        for i, node in enumerate(nodes):
            voices = explainer.voices(int(node))
            arrays["speaking"][e, i] = len(voices)
            for c, voice in enumerate(voices[:VOICES]):
                arrays["voices"][e, i, c], arrays["voice_hop"][e, i, c] = voice.node, voice.hop
                for name, column in columns.items():
                    arrays[name][e, i, c] = getattr(voice, column.attribute)
    return arrays


def _numbered(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the nodes that two arrays hold (−1 for none), each once, and both arrays with places among them."""
    nodes, places = np.unique(np.concatenate([first.ravel(), second.ravel()]), return_inverse=True)
    offset = int(nodes.size > 0 and nodes[0] < 0)  # the first entry is the padding
    places = places - offset
    return nodes[offset:], places[: first.size].reshape(first.shape), places[first.size :].reshape(second.shape)


def _weighting(result: MethodResult, nodes: IntArray, hops: int) -> tuple[FloatArray, tuple[float, float]]:
    """Return the weight at each hop, and of the two pools; 0 for a method that counts no hops."""
    local = result.calibrated.local
    if not isinstance(local, HopsLocal):
        return np.zeros(hops), (0.0, 0.0)
    weighting = local.weighting(nodes)
    weights = weighting.hops[:hops]
    return np.pad(weights, (0, hops - weights.size)), (weighting.pool, weighting.alike)


@dataclass(frozen=True, eq=False)
class CalibrationScores:
    """The scores of calibration nodes: by node, in order, and in order among those of each first choice."""

    by_node: FloatArray  #: The score at the truth of each node, NaN where it does not calibrate.
    ordered: FloatArray  #: The scores of all calibration nodes.
    edges: FloatArray  #: Edges of the bins of histograms.
    choice: IntArray  #: The first choice for each of the nodes looked at, −1 where there is none.
    by_choice: dict[int, FloatArray]  #: The scores of the calibration nodes with each first choice.

    @classmethod
    def of(cls, scored: Scored, nodes: IntArray) -> CalibrationScores:
        """Return those of scored nodes, as some nodes see them."""
        reference, predicted = scored.reference, scored.reference.predicted
        by_node = np.full(reference.num_nodes, np.nan)
        by_node[reference.nodes] = reference.scores
        low, high = float(reference.scores.min()), float(reference.scores.max())
        if predicted is not None:  # scores of labels lie between 0 and 1, at the least
            low, high = min(0.0, low), max(1.0, high)
        elif low == high:
            low, high = low - 0.5, high + 0.5
        choice = np.full(reference.num_nodes, -1) if predicted is None else predicted
        own = choice[reference.nodes]
        by_choice = {int(y): np.sort(reference.scores[own == y]) for y in np.unique(own)}
        return cls(by_node, np.sort(reference.scores), np.linspace(low, high, BINS + 1), choice[nodes], by_choice)

    @property
    def alike_counts(self) -> IntArray:
        """How many calibration nodes have the first choice of each node."""
        return np.array([self.by_choice.get(int(y), np.empty(0)).size for y in self.choice], dtype=np.int64)

    def below(self, thresholds: FloatArray) -> IntArray:
        """Count the scores of at most each node's threshold."""
        return np.searchsorted(self.ordered, thresholds, side="right")

    def alike_below(self, thresholds: FloatArray) -> IntArray:
        """Count the scores of at most each node's threshold, among calibration nodes with the same first choice."""
        counts = np.zeros(thresholds.size, dtype=np.int64)
        for y, scores in self.by_choice.items():
            here = self.choice == y
            counts[here] = np.searchsorted(scores, thresholds[here], side="right")
        return counts


def walk_around(
    graph: Graph,
    nodes: IntArray,
    hops: int,
    scores: Sequence[CalibrationScores],
    scored: IntArray,
    thresholds: FloatArray,
    seed: int,
) -> dict[str, IntArray]:
    """Walk around each node: return the arrays `hop_nodes` to `drawn_parent` of an `Explorer`.

    `scored` says which of the `scores` each method has; `thresholds` are the methods' own, shape (methods, nodes).
    """
    shape = (nodes.size, hops)
    arrays = {
        "hop_nodes": np.zeros(shape, dtype=np.int64),
        "hop_counts": np.zeros((len(scores), *shape), dtype=np.int64),
        "hop_below": np.zeros((thresholds.shape[0], *shape), dtype=np.int64),
        "histogram": np.zeros((len(scores), *shape, BINS), dtype=np.int64),
        "drawn": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
        "drawn_hop": np.zeros((nodes.size, DRAWN_NODES), dtype=np.int64),
        "drawn_parent": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
    }
    column = np.empty(graph.num_nodes, dtype=np.int64)
    for i, node in enumerate(nodes):
        rings = rings_around(graph, int(node), hops)
        for k, ring in enumerate(rings):
            arrays["hop_nodes"][i, k] = ring.size
            for s, own in enumerate(scores):
                known = own.by_node[ring]
                known = known[~np.isnan(known)]
                methods = np.flatnonzero(scored == s)
                arrays["hop_counts"][s, i, k] = known.size
                arrays["hop_below"][methods, i, k] = (known <= thresholds[methods, i, None]).sum(axis=1)
                arrays["histogram"][s, i, k] = np.histogram(known, bins=own.edges)[0]
        rng = np.random.default_rng([seed, int(node)])
        for name, values in _drawing(graph, int(node), rings, column, rng).items():
            arrays[name][i, : values.size] = values
    return arrays


def _drawing(
    graph: Graph, node: int, rings: list[IntArray], column: IntArray, rng: np.random.Generator
) -> dict[str, IntArray]:
    """Choose what to draw of each ring, at random, and join each to a drawn neighbour one hop nearer if it has one."""
    drawn, hop, parent = (np.empty(0, dtype=np.int64) for _ in range(3))
    room = max(1, DRAWN_NODES // max(1, len(rings)))
    inner, first = np.array([node]), -1
    for k, ring in enumerate(rings, start=1):
        taken = np.sort(rng.permutation(ring)[: min(room, DRAWN_NODES - drawn.size)])
        column[taken] = -2
        for position, near in enumerate(inner):
            reached = graph.indices[graph.indptr[near] : graph.indptr[near + 1]]
            joined = taken[np.isin(taken, reached, assume_unique=True) & (column[taken] == -2)]
            column[joined] = first + position
        parent = np.append(parent, column[taken])
        hop = np.append(hop, np.full(taken.size, k))
        inner, first = taken, drawn.size
        drawn = np.append(drawn, taken)
    return {"drawn": drawn, "drawn_hop": hop, "drawn_parent": parent}


def each_once(items: Sequence[Item | None], key: Callable[[Item], Any]) -> tuple[IntArray, list[Item]]:
    """Return the place of each item among those with other keys, −1 for None; and a list with one item of each key."""
    once: dict[Any, Item] = {}
    for item in items:
        if item is not None:
            once.setdefault(key(item), item)
    keys = list(once)
    return np.array([-1 if item is None else keys.index(key(item)) for item in items]), list(once.values())
