"""Reference nodes that weigh one by one, as walks from the node or a random draw from its ball have it.

The threshold is the smallest reference score s with mass(s) ≥ (1 − α)(own + total): `own` is the weight of the node to
predict, which need not be 1. Weights are the same up to a factor, so that `NodeWeights` shows them with own = 1.

`PageRank` weighs by a random walk without the node's own mass. `Balls` is randomly localised prediction (RLCP; Hore and
Barber, 2023) for graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_count, check_number, check_threads
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.kernels.layout import read_only
from napsets.kernels.threads import run, stages
from napsets.localisers.base import LOCALISERS, RULES, Cut, LocalThresholds, Reference, graph_of
from napsets.quantile import LARGEST_WEIGHT, ROUNDING

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, WeighedQuery


@dataclass(frozen=True, eq=False)
class NodeWeights:
    """Who weighs how much for one node, which itself weighs 1."""

    nodes: IntArray  #: The reference nodes with weight, by score.
    #: The weight and the score of each.
    weights: FloatArray
    scores: FloatArray


class WeighedLocal(ABC):
    """Thresholds and ranks of weights that a kernel gathers for each node."""

    def __init__(self, localiser: Any, reference: Reference) -> None:
        self.localiser = localiser
        self.reference = reference

    @property
    def graph(self) -> Graph:
        """The graph around the reference nodes."""
        return graph_of(self.reference)

    @cached_property
    def numbers(self) -> IntArray:
        """Each node's place among the reference scores; of other nodes, at least how many there are."""
        return np.ascontiguousarray(self.reference.by_score[1], dtype=np.int64)

    @abstractmethod
    def background(self) -> tuple[FloatArray, float]:
        """Return running sums, by number, of what reference nodes weigh for everyone, and a factor."""

    @abstractmethod
    def answer(self, nodes: IntArray, question: WeighedQuery, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""

    @abstractmethod
    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return numbers and weights beyond the background, and what the node itself weighs."""

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut, from one search."""
        answers = self._answers(nodes, cuts, np.empty(0, dtype=np.int64), threads, progress)
        size = np.divide(answers.mass**2, answers.square, out=np.zeros(nodes.size), where=answers.square > 0)
        return LocalThresholds(np.ascontiguousarray(answers.values.T), answers.support, size)

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        positions = np.searchsorted(self.reference.by_score[0], scores, side="left").astype(np.int64)
        return self._answers(nodes, [], positions, threads, progress).ranks

    def weights(self, node: int) -> NodeWeights:
        """Return the weight of each reference node for one node, from which its threshold is computed."""
        numbers, listed, own = self.listed(node)
        background_sums, background_weight = self.background()
        weights = background_weight * np.diff(background_sums)
        weights[numbers] += listed
        mine = self.numbers[node]
        if mine < weights.size:
            weights[mine] = 0.0
        chosen = np.flatnonzero(weights > 0)
        nodes, scores = self.reference.nodes_by_score[chosen], self.reference.by_score[0][chosen]
        return NodeWeights(nodes, weights[chosen] / (own or 1.0), scores)

    def _answers(
        self, nodes: IntArray, cuts: Sequence[Cut], positions: IntArray, threads: int | None, progress: Any
    ) -> Answer:
        from napsets.kernels.weighed import WeighedQuery, empty_answer

        workers = check_threads(threads)
        background_sums, background_weight = self.background()
        question = WeighedQuery(
            read_only(self.reference.by_score[0]),
            read_only(background_sums),
            background_weight,
            read_only(np.array([cut.level for cut in cuts], dtype=np.float64)),
            read_only(np.array([RULES[cut.rule] for cut in cuts], dtype=np.int64)),
            ROUNDING,
            read_only(positions),
        )
        answers = empty_answer(nodes.size, len(cuts))
        if nodes.size:
            self.answer(nodes, question, answers, workers, progress)
        return answers


def in_pieces(work: Callable[[int, int], None], count: int, threads: int, progress: Any = None, *, piece: int) -> None:
    """Let threads call ``work(first, last)`` on pieces of this many items, each by one of them."""
    bounds = [(first, min(first + piece, count)) for first in range(0, count, piece)]
    pieces = ((last - first, lambda _, first=first, last=last: work(first, last)) for first, last in bounds)
    run(pieces, threads=max(1, min(threads, len(bounds))), total=count, progress=progress)


def lists_for(known: int) -> tuple[npt.NDArray[Any], ...]:
    """Return the memory of one thread for a list of reference nodes: their numbers, the bits to sort them, sums."""
    return np.empty(known, dtype=np.int64), np.zeros(known // 64 + 1, dtype=np.uint64), np.zeros(known + 1)


def running(values: npt.NDArray[Any]) -> FloatArray:
    """Return running sums from 0, one more than there are values."""
    return np.append(0.0, np.cumsum(values, dtype=np.float64))


def _nodes_per_piece(count: int) -> int:
    """Return how many nodes a thread takes at a time: each time it needs an array of one entry per node."""
    return max(512, count // 64)


@LOCALISERS.add("pagerank")
@dataclass(frozen=True)
class PageRank:
    """Weight reference nodes by personalised PageRank: the probability that a walk from the node ends there.

    A walk from the node to predict ends at each step with probability `restart`, and otherwise moves to a neighbour.
    Most walks end where they began; that mass is removed, because thresholds would otherwise be infinite nearly
    everywhere. The weights of the reference nodes are scaled to the sum `worth`; in addition each of all n of them gets
    pool/n. The weight falls smoothly with distance, and hubs do not make all nodes neighbours of each other. A walk
    that cannot move stays where it is; in a directed graph it follows edges from source to target.

    *Guarantee*: with a nominal level, the gap bound that any fixed weights have, and no more; with an exact level,
    1 − alpha in finite samples. *Cost*: by forward push (Andersen, Chung and Lang, 2006), 1 / (restart × tolerance)
    edges per node at most, whatever the size of the graph.

    Attributes
    ----------
    restart : float
        Probability that a walk ends at a step, above 0 and at most 1. Large values are local.
    worth : float
        The reference nodes that walks end at together count as much as this many neighbours.
    pool : float
        All reference nodes together, near or far, count as much as this many neighbours.
    tolerance : float
        Mass that may be left unpushed per neighbour of a node; small values reach further and cost more.
    """

    restart: float = 0.15
    worth: float = 20.0
    pool: float = 0.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("restart", "tolerance", "worth", "pool"):
            largest = 1.0 if name in _LEAST else LARGEST_WEIGHT
            object.__setattr__(self, name, float(check_number(name, getattr(self, name), largest=largest)))
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise InvalidInputError(f"`{name}` must be at least {least:g}; got {getattr(self, name):g}")

    def fit(self, reference: Reference) -> PageRankLocal:
        """Return the localiser of these reference nodes."""
        graph_of(reference)
        return PageRankLocal(self, reference)


#: With less, a walk from one node could go over all edges of a large graph many times.
_LEAST = {"restart": 1e-3, "tolerance": 1e-12}


class PageRankLocal(WeighedLocal):
    """PageRank weights of known reference nodes."""

    @cached_property
    def _behind(self) -> FloatArray:
        return np.arange(self.reference.nodes.size + 1, dtype=np.float64)

    def background(self) -> tuple[FloatArray, float]:
        """Return the running counts of reference nodes, and what each gets of the pool."""
        return self._behind, self.localiser.pool / self.reference.nodes.size

    def _room(self) -> tuple[Any, ...]:
        """Return the memory of one thread: clear masses and flags, a queue, and a list of touched nodes."""
        size, kind = self.graph.num_nodes, self.graph.indices.dtype
        queue, touched = np.empty((2, size), dtype=kind)
        return np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int8), queue, touched

    def _walk(self) -> tuple[Any, ...]:
        setting = self.localiser
        return read_only(self.graph.indptr), read_only(self.graph.indices), setting.restart, setting.tolerance

    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return the reference nodes that walks from the node end at."""
        from napsets.kernels.weighed import push

        room = self._room()
        push(node, *self._walk(), *room)
        room[0][node] = 0.0
        mass = room[0][self.reference.nodes_by_score]
        numbers = np.flatnonzero(mass > 0)
        total = float(mass[numbers].sum())
        return numbers, self.localiser.worth * (mass[numbers] / total) if total else mass[numbers], 1.0

    def answer(self, nodes: IntArray, question: WeighedQuery, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""
        from napsets.kernels.weighed import pagerank_answers

        known = question.scores.size
        by_number = read_only(self.reference.index.nodes)
        fixed = (read_only(nodes), self._walk(), self.localiser.worth, self.numbers, by_number, question, answers)

        def work(first: int, last: int) -> None:
            pagerank_answers(first, last, *fixed, (*self._room(), *lists_for(known)))

        in_pieces(work, nodes.size, threads, progress, piece=_nodes_per_piece(self.graph.num_nodes))


#: A ball with a larger radius almost always covers the whole graph.
_FURTHEST = 100


@LOCALISERS.add("balls")
@dataclass(frozen=True)
class Balls:
    """Reference nodes count if their ball contains a node drawn at random from the ball of the node to predict.

    The ball of a node is the smallest one around it, itself included, with at least `min_size` nodes, labelled or not;
    if there is none within `furthest` hops, it contains all nodes. H(i, ·) is uniform on i's ball. For a node v an
    anchor a is drawn from H(v, ·) by a hash of seed and ids; the weight of reference node i is then H(i, a), and that
    of v itself H(v, a). So only nodes that could have drawn the same anchor count, and those with small balls more.

    *Guarantee* (Hore and Barber, *Conformal prediction with local weights: randomization enables local guarantees*,
    2023): P(Y ∈ set) ≥ 1 − alpha in finite samples if labelled nodes and v are exchangeable, without holding labels
    out; and about 1 − alpha given the anchor's region. The random draw is essential: weights from balls around
    v itself have no guarantee. *Cost*: two searches per node, up to its ball and to the balls that contain its anchor.

    Attributes
    ----------
    min_size : int
        Smallest number of nodes in a ball. Small values are local; more than all nodes is split conformal prediction.
    furthest : int
        Largest radius of a ball, in hops.
    """

    min_size: int = 100
    proven: ClassVar[bool] = True
    furthest: int = 6

    def __post_init__(self) -> None:
        object.__setattr__(self, "min_size", check_count("min_size", self.min_size, minimum=1))
        object.__setattr__(self, "furthest", check_count("furthest", self.furthest, maximum=_FURTHEST))

    def fit(self, reference: Reference) -> BallsLocal:
        """Return the localiser of these reference nodes."""
        if graph_of(reference).directed:
            raise InvalidInputError(
                "`graph` must be undirected for balls: who is in whose ball must be the same both ways; got a directed "
                "one. Make it with directed=False."
            )
        return BallsLocal(self, reference)


class BallsLocal(WeighedLocal):
    """Balls around known reference nodes."""

    @cached_property
    def _rows(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        return read_only(self.graph.indptr), read_only(self.graph.indices)

    @property
    def _balls(self) -> tuple[Any, ...]:
        return (*self._rows, self.radii, self.localiser.furthest)

    def _room(self) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return marks and a queue for one thread to search with."""
        size = self.graph.num_nodes
        return np.full(size, -1, dtype=np.int64), np.empty(size, dtype=self.graph.indices.dtype)

    def _run(self, kernel: Any, count: int, fixed: Any, results: Any, threads: int, progress: Any = None) -> None:
        """Let threads call a kernel on pieces of some nodes, each with room of its own to search with."""

        def work(first: int, last: int) -> None:
            kernel(first, last, *fixed, *self._room(), *results)

        in_pieces(work, count, threads, progress, piece=_nodes_per_piece(count))

    @cached_property
    def radii(self) -> IntArray:
        """The radius of every node's ball; one more than the furthest where it is all nodes."""
        return self._find_radii(check_threads(None))

    def _find_radii(self, threads: int, progress: Any = None) -> IntArray:
        from napsets.kernels.weighed import ball_radii

        setting, radii = self.localiser, np.empty(self.graph.num_nodes, dtype=np.int64)
        fixed = *self._rows, min(setting.min_size, self.graph.num_nodes + 1), setting.furthest
        self._run(ball_radii, radii.size, fixed, (radii,), threads, progress)
        radii.flags.writeable = False
        return radii

    def _answers(
        self, nodes: IntArray, cuts: Sequence[Cut], positions: IntArray, threads: int | None, progress: Any
    ) -> Answer:
        if "radii" not in vars(self):  # the balls of all nodes are found once
            finding, progress = stages(progress, (self.graph.num_nodes, nodes.size), nodes.size)
            vars(self)["radii"] = self._find_radii(check_threads(threads), finding)
        return super()._answers(nodes, cuts, positions, threads, progress)

    @cached_property
    def _ball_weights(self) -> FloatArray:
        """One over the size of the ball of each reference node, by number."""
        from napsets.kernels.weighed import ball_sizes

        nodes = self.reference.nodes_by_score
        sizes = np.empty(nodes.size, dtype=np.int64)
        self._run(ball_sizes, nodes.size, (nodes, self._balls), (sizes,), check_threads(None))
        return 1.0 / sizes

    @cached_property
    def _hashes(self) -> tuple[npt.NDArray[np.uint64], IntArray]:
        """A random hash for every node, and the nodes in the order of their hashes."""
        hashes = self.reference.uniforms.view(np.uint64)
        return hashes, np.argsort(hashes, kind="stable")

    def draw(self, nodes: IntArray, threads: int, progress: Any = None) -> tuple[IntArray, IntArray]:
        """Return the anchor of each node, and the size of the ball that it is drawn from."""
        from napsets.kernels.weighed import draw_anchors

        hashes, by_hash = (read_only(array) for array in self._hashes)
        sizes, anchors = np.empty((2, nodes.size), dtype=np.int64)
        fixed = (read_only(nodes), self._balls, hashes, by_hash)
        self._run(draw_anchors, nodes.size, fixed, (sizes, anchors), threads, progress)
        return anchors, sizes

    @cached_property
    def _behind(self) -> FloatArray:
        """Running counts, by number, of the reference nodes whose ball is all nodes."""
        return running(self.radii[self.reference.nodes_by_score] > self.localiser.furthest)

    def background(self) -> tuple[FloatArray, float]:
        """Return how many reference nodes have all nodes in their ball, and the weight of each."""
        return self._behind, 1.0 / self.graph.num_nodes

    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return the reference nodes whose ball holds the node's anchor."""
        from napsets.kernels.weighed import whose_ball_holds

        anchors, sizes = self.draw(np.array([node]), 1)
        known = self.reference.nodes.size
        listed = np.empty(known, dtype=np.int64)
        size = whose_ball_holds(int(anchors[0]), self._balls, self.numbers, known, *self._room(), listed)
        numbers = np.sort(listed[:size])
        return numbers, self._ball_weights[numbers], 1.0 / float(sizes[0])

    def answer(self, nodes: IntArray, question: WeighedQuery, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""
        from napsets.kernels.weighed import anchor_answers

        drawing, answering = stages(progress, (1, 1), nodes.size)
        anchors, sizes = self.draw(nodes, threads, drawing)
        order = np.argsort(anchors, kind="stable")
        known = question.scores.size
        drawn, balls, weights = (order, read_only(nodes), anchors, sizes), self._balls, self._ball_weights

        def work(first: int, last: int) -> None:
            scratch = (*self._room(), *lists_for(known))
            anchor_answers(first, last, drawn, balls, self.numbers, weights, question, answers, scratch)

        in_pieces(work, nodes.size, threads, answering, piece=_nodes_per_piece(self.graph.num_nodes))
