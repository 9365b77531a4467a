"""What changed a node's probabilities: the model's word, and which labels around it spoke, for what and how loudly.

An informed score multiplies powers of several factors (see `napsets.scores.informed`). On the scale of log odds powers
become products and products sums: each factor adds its exponent times its logarithm, and what they add up to, brought
back to sum 1, is the informed probability of each label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.graph import Graph
from napsets.scores.informed import PRIOR, BoundInformed, Evidence, Exponents

__all__ = ["LabelledAround", "NodeEvidence", "Voice", "Witnesses", "labelled_around"]

#: The hops at which labels are counted one by one; the exponents say which of them count.
_HOPS = 2


@dataclass(frozen=True)
class Voice:
    """A labelled node near another, and what it says of that one's label.

    Attributes
    ----------
    node : int
        Who speaks.
    hop : int
        1 for a neighbour, 2 for a neighbour's neighbour.
    label : int
        Its label.
    log_odds : float
        How much the log odds of that label would fall without it, all else as it is. Below 0 it speaks against.
    """

    node: int
    hop: int
    label: int
    log_odds: float

    @property
    def odds(self) -> float:
        """What it multiplies the odds of its label by."""
        return float(np.exp(self.log_odds))


@dataclass(frozen=True, eq=False)
class NodeEvidence:
    """What a node's informed probabilities are made of.

    Attributes
    ----------
    model, informed : numpy.ndarray
        Of each label: the model's own probability, and the one that scores and sets are made of.
    exponents : Exponents
        How much each factor counts, for all nodes alike.
    factors : tuple of str
        The factors, in the order of `Exponents`: model, around, near, far, alike.
    contributions : numpy.ndarray
        Shape (factors, classes): what each adds to the log odds of each label, against the average label. 0 says
        nothing. Their sums over the factors, raised and brought back to sum 1, are `informed`.
    voices : tuple of Voice
        The labelled nodes within two hops that speak, the strongest first.
    sentence : str
        What a labelled neighbour does to the odds of its label.
    """

    model: FloatArray
    informed: FloatArray
    exponents: Exponents
    factors: tuple[str, ...]
    contributions: FloatArray
    voices: tuple[Voice, ...]
    sentence: str


class Witnesses:
    """All that can be said of the evidence on any node; made once for many of them, in O(edges × classes).

    Parameters
    ----------
    informed : BoundInformed
        The score, as `evidence_of` finds it.
    graph : Graph
        The graph that it looked at.
    """

    def __init__(self, informed: BoundInformed, graph: Graph) -> None:
        self.informed, self.graph = informed, graph
        # What the exponents leave out weighs nothing, so that hops may be looked at which the score did not ask for.
        self.evidence = Evidence(informed.outputs, graph, informed.reference, _HOPS)
        self.labels = np.full(informed.outputs.shape[0], -1, dtype=np.int64)
        self.labels[informed.reference.nodes] = informed.reference.labels

    @property
    def sentence(self) -> str:
        """What a labelled neighbour does to the odds of its label, where labels are as frequent as here."""
        return self.informed.exponents.explain(self.evidence.shares)

    def of(self, node: int) -> NodeEvidence:
        """Return what one node's probabilities are made of."""
        names, exponents = self.evidence.names, self.informed.exponents
        theta = np.array([getattr(exponents, name) for name in names])
        parts = (self.evidence.features(np.array([node]))[0] * theta).T
        return NodeEvidence(
            model=self.informed.outputs[node].astype(np.float64),
            informed=self.informed.probabilities[node].astype(np.float64),
            exponents=exponents,
            factors=names,
            contributions=parts - parts.mean(axis=1, keepdims=True),
            voices=self.voices(node),
            sentence=self.sentence,
        )

    def voices(self, node: int) -> tuple[Voice, ...]:
        """Return the labelled nodes within two hops that speak, the strongest first, then by number."""
        around = labelled_around(self.graph, self.labels >= 0, node)
        labels = self.labels[around.nodes]
        said = np.zeros(around.nodes.size)
        for name, mine in (("near", around.near), ("far", around.far)):
            prior = PRIOR[name] * self.evidence.shares[labels]
            total = self.evidence.counts[name][node, labels]
            without = np.maximum(total - mine, 0.0)
            said += getattr(self.informed.exponents, name) * np.log((total + prior) / (without + prior))
        order = np.lexsort((around.nodes, -np.abs(said)))
        return tuple(
            Voice(int(around.nodes[i]), int(around.hops[i]), int(labels[i]), float(said[i]))
            for i in order
            if said[i] != 0.0
        )


@dataclass(frozen=True, eq=False)
class LabelledAround:
    """The labelled nodes within two hops of one that is not among them, and how much each is counted.

    Attributes
    ----------
    nodes, hops : numpy.ndarray
        The nodes in ascending order, and the hop of each: 1 or 2.
    near, far : numpy.ndarray
        How often each is a neighbour (0 or 1), and what the neighbours pass on of it: each its share.
    """

    nodes: IntArray
    hops: IntArray
    near: FloatArray
    far: FloatArray


def labelled_around(graph: Graph, labelled: BoolArray, node: int) -> LabelledAround:
    """Return who is labelled within two hops of a node, and how much each is counted there."""
    near = graph.neighbours(node).astype(np.int64)
    rows = [graph.neighbours(int(other)) for other in near]
    each = np.concatenate([near, *rows]).astype(np.int64)
    # Each neighbour passes on its share of what its own neighbours say.
    passed = np.repeat([1.0 / max(row.size, 1) for row in rows], [row.size for row in rows])
    shares = np.concatenate([np.zeros(near.size), passed])
    direct = np.arange(each.size) < near.size
    kept = labelled[each] & (each != node)
    nodes, place = np.unique(each[kept], return_inverse=True)
    counts: list[FloatArray] = [
        np.bincount(place, weights=column, minlength=nodes.size).astype(np.float64)
        for column in (direct[kept].astype(np.float64), shares[kept])
    ]
    return LabelledAround(nodes, np.where(np.isin(nodes, near), 1, 2), *counts)
