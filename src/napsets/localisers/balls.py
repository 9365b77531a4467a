"""Randomly localised prediction on balls: RLCP (Hore and Barber, 2023) for graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_count, check_threads
from napsets.errors import InvalidInputError
from napsets.kernels.layout import read_only
from napsets.kernels.threads import stages
from napsets.localisers.base import LOCALISERS, Reference, graph_of
from napsets.localisers.weighed import WeighedLocal, in_pieces, lists_for, running

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, WeighedQuery

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

    def unprepared(self) -> int:
        """Return how many nodes have no ball yet: all of them, or none."""
        return 0 if "radii" in vars(self) else self.graph.num_nodes

    def prepare(self, threads: int, progress: Any) -> None:
        """Find the balls of all nodes, once."""
        if self.unprepared():
            vars(self)["radii"] = self._find_radii(threads, progress)

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


def _nodes_per_piece(count: int) -> int:
    """Return how many nodes a thread takes at a time: each time it needs an array of one entry per node."""
    return max(512, count // 64)
