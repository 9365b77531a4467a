"""RLCP: conformal prediction with local weights around a node that is drawn at random.

Hore and Barber, *Conformal prediction with local weights: randomization enables local guarantees*, 2023, here on balls
of a graph. The ball of a node is the smallest one around it, itself included, with at least `min_size` nodes, labelled
or not; if there is none within `furthest` hops, it contains all nodes. H(i, ·) is uniform on i's ball. For a node v an
anchor a is drawn from H(v, ·) by a hash of seed and ids. The weight of reference node i is then H(i, a), and that of v
itself H(v, a): only nodes that could have drawn the same anchor count, and those with small balls more.

*Guarantee*: P(Y ∈ set) ≥ 1 − alpha in finite samples if labelled nodes and v are exchangeable, without holding labels
out; and about 1 − alpha given the anchor's region. The random draw is essential: weights from balls around v itself
have no guarantee. *Cost*: the balls of all nodes, and a sort of each node's weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from napsets import Graph, InvalidInputError, Weights
from napsets.localisers import LOCALISERS, Local, Reference
from napsets.localisers.base import graph_of
from napsets.methods import METHODS, Method, SplitConformal

_NODES_AT_ONCE = 1024


@LOCALISERS.add("balls")
@dataclass(frozen=True)
class Balls:
    """Reference nodes count if their ball contains a node drawn at random from the ball of the node to predict.

    `min_size` is the smallest number of nodes in a ball, `furthest` the largest radius of one in hops.
    """

    min_size: int = 100
    furthest: int = 6
    proven: ClassVar[bool] = True

    def fit(self, reference: Reference) -> Local:
        """Return the localiser of these reference nodes: weights of H(i, a) / H(v, a), so that v itself weighs 1."""
        graph = graph_of(reference)
        if graph.directed:
            raise InvalidInputError(
                "`graph` must be undirected for balls: who is in whose ball must be the same both ways; got a directed "
                "one. Make it with directed=False."
            )
        hashes = reference.uniforms.view(np.uint64)
        sizes, anchors = np.empty((2, graph.num_nodes), dtype=np.int64)
        for nodes, inside in self.balls(graph, np.arange(graph.num_nodes)):
            sizes[nodes] = np.diff(inside.indptr)
            anchors[nodes] = _drawn(nodes, inside, hashes)
        # One column per node: the reference nodes whose ball holds it.
        holds = sp.vstack([inside for _, inside in self.balls(graph, reference.nodes)], format="csc")
        shares = 1.0 / sizes[reference.nodes]

        def weights(node: int, _: Any) -> npt.NDArray[np.float64]:
            column = slice(*holds.indptr[anchors[node] : anchors[node] + 2])
            values = np.zeros(shares.size)
            values[holds.indices[column]] = shares[holds.indices[column]] * sizes[node]
            return values

        return Weights(weights).fit(reference)

    def balls(self, graph: Graph, nodes: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.int64], Any]]:
        """Yield some of the nodes at a time, with a boolean matrix of who is in the ball of each."""
        steps = (graph.to_scipy() + sp.eye_array(graph.num_nodes)).astype(bool).tocsr()
        for first in range(0, nodes.size, _NODES_AT_ONCE):
            part = nodes[first : first + _NODES_AT_ONCE]
            rows, reached = np.arange(part.size), sp.eye_array(graph.num_nodes, dtype=bool, format="csr")[part]
            order, finished = [], []
            for _ in range(self.furthest + 1):
                large = np.diff(reached.indptr) >= self.min_size
                order.append(rows[large])
                finished.append(reached[large])
                rows, reached = rows[~large], reached[~large] @ steps
            everyone = sp.csr_array(np.ones((rows.size, graph.num_nodes), dtype=bool))
            inside = sp.vstack([*finished, everyone], format="csr")
            yield part, inside[np.argsort(np.concatenate([*order, rows]))]


def _drawn(nodes: npt.NDArray[np.int64], inside: Any, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Draw an anchor from the ball of each node: the member whose hash, mixed with the node's own, is the smallest.

    What is drawn depends on the hashes of the node and of its ball alone, not on how nodes are numbered. From a ball of
    all nodes, a place in the order of their hashes is drawn.
    """
    own = _splitmix64(hashes[nodes])
    rows = np.repeat(np.arange(nodes.size), np.diff(inside.indptr))
    words = _splitmix64(own[rows] + hashes[inside.indices])
    smallest = np.flatnonzero(words == np.minimum.reduceat(words, inside.indptr[:-1])[rows])
    near = np.empty(nodes.size, dtype=np.int64)
    near[rows[smallest]] = inside.indices[smallest]
    places = (_splitmix64(own) >> np.uint64(11)).astype(np.float64) * 2.0**-53 * hashes.size
    anywhere = np.argsort(hashes, kind="stable")[np.minimum(places.astype(np.int64), hashes.size - 1)]
    return np.where(np.diff(inside.indptr) == hashes.size, anywhere, near)


def _splitmix64(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return SplitMix64's output for each state: a bijection that scatters neighbouring words."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


@METHODS.add("rlcp")
def randomised(*, score: Any = "aps") -> Method:
    """RLCP: local weights around a random nearby node. Meant for even coverage; guaranteed without held-out labels."""
    return replace(SplitConformal(score), localiser=Balls())
