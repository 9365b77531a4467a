"""What a node's prediction is based on: the model, and the labelled nodes around it with the strength of each.

An informed score of labels multiplies powers of several factors (see `napsets.scores.informed`). On the scale of log
odds powers become products and products sums: each factor adds its exponent times its logarithm, and what they add up
to, exponentiated and normalised, is the informed probability of each label.

Informed intervals make each output of the model a linear function of all its outputs and of the mean residuals of
labelled nodes one and two hops away (see `napsets.scores.informed_intervals`): a sum of terms, each a coefficient, the
same for all nodes, times something of the node's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.graph import Graph
from napsets.methods import Calibrated
from napsets.scores.evidence import Evidence
from napsets.scores.exponents import PRIOR, Exponents
from napsets.scores.informed import BoundInformed, evidence_of
from napsets.scores.informed_intervals import RESIDUAL_PRIOR, BoundInformedIntervals, residual_sums

#: The hops at which labels are counted one by one; the exponents say which of them count.
_HOPS = 2


def labelled_around(
    graph: Graph,
    labelled: BoolArray,
    node: int,
    parts: FloatArray,
    held_out_shares: tuple[BoolArray, FloatArray] | None = None,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the labelled nodes within two hops of a node in ascending order, the hop of each, and how much it counts.

    It counts as a neighbour (0 or 1), and by what the neighbours pass on of it: each node passes on its entry of
    `parts` of the labels around it; of nodes of a bag, what `held_out_shares` says.
    """
    near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].astype(np.int64)
    rows = [graph.indices[graph.indptr[other] : graph.indptr[other + 1]] for other in near]
    met = np.concatenate([near, *rows]).astype(np.int64)
    # Each neighbour passes on its share of what its own neighbours say.
    lengths = [row.size for row in rows]
    shares = np.concatenate([np.zeros(near.size), np.repeat(parts[near], lengths)])
    if held_out_shares is not None:
        passed = np.concatenate([np.zeros(near.size), np.repeat(held_out_shares[1][near], lengths)])
        shares = np.where(held_out_shares[0][met], passed, shares)
    direct = np.arange(met.size) < near.size
    kept = labelled[met] & (met != node)
    nodes, place = np.unique(met[kept], return_inverse=True)
    counted, passed_on = (
        np.bincount(place, weights=column[kept], minlength=nodes.size).astype(np.float64) for column in (direct, shares)
    )
    return nodes, np.where(np.isin(nodes, near), 1, 2), counted, passed_on


def _strongest_first(nodes: IntArray, strength: FloatArray) -> IntArray:
    """Return the places of those nodes that are evidence, the strongest first, then by number."""
    order = np.lexsort((nodes, -strength))
    places: IntArray = order[strength[order] != 0.0]
    return places


@dataclass(frozen=True)
class LabelledEvidence:
    """A labelled node near another, and how it changes the odds of that one's labels."""

    node: int  #: The labelled node.
    hop: int  #: 1 for a neighbour, 2 for a neighbour's neighbour.
    label: int  #: Its label.
    #: How much the log odds of that label would fall without it, all else as it is. Below 0 it is evidence against the
    #: label.
    log_odds: float

    @property
    def odds(self) -> float:
        """What it multiplies the odds of its label by."""
        return float(np.exp(self.log_odds))


@dataclass(frozen=True, eq=False)
class NodeEvidence:
    """How a node's informed probabilities are composed."""

    #: Of each label: the model's own probability, and the one from which scores and sets are computed.
    model: FloatArray
    informed: FloatArray
    exponents: Exponents  #: How much each factor counts, for all nodes alike.
    factors: tuple[str, ...]  #: The factors, in the order of `Exponents`: model, around, near, far, alike.
    #: Shape (factors, classes): what each adds to the log odds of each label, against the average label; the model's
    #: part holds its recalibration. 0 means no change. `informed` is the normalised exponential of their sums over the
    #: factors.
    contributions: FloatArray
    voices: tuple[LabelledEvidence, ...]  #: The labelled nodes within two hops that are evidence, the strongest first.
    sentence: str  #: What a labelled neighbour does to the odds of its label.


class EvidenceExplainer:
    """Explains the evidence for any node; made once for many nodes, in O(edges × classes)."""

    def __init__(self, informed: BoundInformed, graph: Graph) -> None:
        self.informed, self.graph = informed, graph
        # What the exponents leave out has no weight, so hops that the score does not use may be included.
        wide = bool(informed.exponents.wide)
        evidence = Evidence(informed.outputs, graph, informed.reference, _HOPS, wide=wide, learned=informed.learned)
        self.evidence = evidence if informed.bag is None else evidence.with_bag(informed.bag.labelled)
        self.labels = np.full(informed.outputs.shape[0], -1, dtype=np.int64)
        for labelled in (informed.reference, *(() if informed.bag is None else (informed.bag.labelled,))):
            self.labels[labelled.nodes] = labelled.labels
        self.taught = np.zeros(self.labels.size, dtype=bool)
        self.taught[informed.reference.nodes] = True

    @property
    def sentence(self) -> str:
        """What a labelled neighbour does to the odds of its label, where labels are as frequent as here."""
        return self.informed.exponents.explain(self.evidence.shares)

    def of(self, node: int) -> NodeEvidence:
        """Return how one node's probabilities are composed."""
        names, exponents = self.evidence.names, self.informed.exponents
        theta = np.array([getattr(exponents, name) for name in names])
        rows = np.array([node])
        parts = (self.evidence.features(rows)[0] * theta).T
        parts[0] += self.evidence.recalibration(self.informed.learned, rows)[0]
        return NodeEvidence(
            model=self.informed.outputs[node].astype(np.float64),
            informed=self.informed.probabilities[node].astype(np.float64),
            exponents=exponents,
            factors=names,
            contributions=parts - parts.mean(axis=1, keepdims=True),
            voices=self.voices(node),
            sentence=self.sentence,
        )

    def voices(self, node: int) -> tuple[LabelledEvidence, ...]:
        """Return the labelled nodes within two hops that are evidence, the strongest first, then by number."""
        held_out_shares = None if self.informed.bag is None else (~self.taught, self.evidence.held_out_shares)
        nodes, hops, near, far = labelled_around(
            self.graph, self.labels >= 0, node, self.evidence.passed_shares, held_out_shares
        )
        labels = self.labels[nodes]
        log_odds = np.zeros(nodes.size)
        for name, mine in (("near", near), ("far", far)):
            prior = PRIOR[name] * self.evidence.shares[labels]
            total = self.evidence.counts[name][node, labels]
            without = np.maximum(total - mine, 0.0)
            log_odds += getattr(self.informed.exponents, name) * np.log((total + prior) / (without + prior))
        return tuple(
            LabelledEvidence(int(nodes[i]), int(hops[i]), int(labels[i]), float(log_odds[i]))
            for i in _strongest_first(nodes, np.abs(log_odds))
        )


@dataclass(frozen=True, eq=False)
class TargetEvidence:
    """A labelled node near another, and how far it moves that one's outputs.

    Attributes
    ----------
    node : int
        The labelled node.
    hop : int
        1 for a neighbour, 2 for a neighbour's neighbour.
    target, residual : float
        Its target, and that less the model's best guess for it.
    shifts : numpy.ndarray
        How much smaller each output would be without it, all else as it is.
    """

    node: int
    hop: int
    target: float
    residual: float
    shifts: FloatArray


@dataclass(frozen=True, eq=False)
class IntervalEvidence:
    """How a node's shifted outputs are composed.

    Attributes
    ----------
    outputs : tuple of str
        What the outputs are: lower and upper, or prediction and maybe spread.
    model, informed : numpy.ndarray
        Of each output: the model's value, and the one from which the interval is computed.
    terms : tuple of str
        What is added up: constant, the model's outputs, near and, with two hops, far.
    coefficients : numpy.ndarray
        Shape (outputs, terms): how much each counts, for all nodes alike.
    values : numpy.ndarray
        Of each term, what it is for this node: 1, the model's outputs, the mean residuals near and far.
    counts : numpy.ndarray
        How many labelled nodes the residuals near and far are of; far, each neighbour counts its share of its own.
    voices : tuple of TargetEvidence
        The labelled nodes within reach that are evidence, the strongest first.
    sentence : str
        What one labelled neighbour does to the outputs, and what those two hops away do together.
    """

    outputs: tuple[str, ...]
    model: FloatArray
    informed: FloatArray
    terms: tuple[str, ...]
    coefficients: FloatArray
    values: FloatArray
    counts: FloatArray
    voices: tuple[TargetEvidence, ...]
    sentence: str

    @property
    def contributions(self) -> FloatArray:
        """Shape (outputs, terms): what each term adds. Their sums are `informed`."""
        return self.coefficients * self.values

    @property
    def shifts(self) -> FloatArray:
        """How far each output was moved."""
        return self.informed - self.model


class IntervalEvidenceExplainer:
    """Explains the evidence for any node's interval; made once for many nodes, in O(edges)."""

    def __init__(self, informed: BoundInformedIntervals, graph: Graph) -> None:
        self.informed, self.graph = informed, graph
        reference, model = informed.reference, informed.model
        centre, bag = informed.score.centre(model), informed.bag
        self.sums = residual_sums(graph, centre, reference, informed.hops)
        self.targets = np.full(model.shape[0], np.nan)
        self.targets[reference.nodes] = reference.labels
        self.passed_shares = 1.0 / np.maximum(graph.degrees, 1)
        self.held_out_shares: tuple[BoolArray, FloatArray] | None = None
        if bag is not None:
            more = residual_sums(graph, centre, bag.labelled, informed.hops, bag.crowded)
            self.sums = [here + there for here, there in zip(self.sums, more, strict=True)]
            held_out_shares = self.passed_shares.copy()
            held_out_shares[bag.crowded] = 0.0
            self.held_out_shares = np.isnan(self.targets), held_out_shares
            self.targets[bag.labelled.nodes] = bag.labelled.labels
        self.residuals = self.targets - centre

    @property
    def sentence(self) -> str:
        """What one labelled neighbour does to the outputs, and what those two hops away do together."""
        weights = self._weights
        if not weights.any():
            return "the targets of labelled neighbours change nothing"
        near = self._moves(weights[:, 0] / (1.0 + RESIDUAL_PRIOR))
        sentence = f"one labelled neighbour whose target is 1 above the model's best guess moves {near}"
        if weights.shape[1] == 1:
            return sentence
        return f"{sentence}; a mean residual of 1 two hops away moves {self._moves(weights[:, 1])}"

    def _moves(self, shifts: FloatArray) -> str:
        """Say how far outputs are moved, except for those that nothing moves."""
        named = zip(self.informed.score.columns, shifts, np.abs(self._weights).max(axis=1) > 0, strict=True)
        return " and ".join(f"{name} by {shift:+.3g}" for name, shift, moved in named if moved)

    @property
    def _weights(self) -> FloatArray:
        """The coefficients of residuals, shape (outputs, hops)."""
        return self.informed.coefficients[:, 1 + self.informed.model.shape[1] :]

    def of(self, node: int) -> IntervalEvidence:
        """Return how one node's outputs are composed."""
        informed = self.informed
        means = [sums[node, 0] / (sums[node, 1] + RESIDUAL_PRIOR) for sums in self.sums]
        return IntervalEvidence(
            outputs=informed.score.columns,
            model=informed.model[node],
            informed=informed.outputs[node],
            terms=("constant", *informed.score.columns, *("near", "far")[: informed.hops]),
            coefficients=informed.coefficients,
            values=np.concatenate([[1.0], informed.model[node], means]),
            counts=np.array([sums[node, 1] for sums in self.sums]),
            voices=self.voices(node),
            sentence=self.sentence,
        )

    def voices(self, node: int) -> tuple[TargetEvidence, ...]:
        """Return the labelled nodes within reach that are evidence, those that move an output furthest first."""
        nodes, hops, *counts = labelled_around(
            self.graph, ~np.isnan(self.targets), node, self.passed_shares, self.held_out_shares
        )
        targets, residuals = self.targets[nodes], self.residuals[nodes]
        shifts = np.zeros((nodes.size, self.informed.model.shape[1]))
        for hop, (sums, mine) in enumerate(zip(self.sums, counts, strict=False)):
            total, count = sums[node]
            without = np.maximum(count - mine, 0.0)
            moved = total / (count + RESIDUAL_PRIOR) - (total - mine * residuals) / (without + RESIDUAL_PRIOR)
            shifts += moved[:, None] * self._weights[:, hop]
        return tuple(
            TargetEvidence(int(nodes[i]), int(hops[i]), float(targets[i]), float(residuals[i]), shifts[i])
            for i in _strongest_first(nodes, np.abs(shifts).max(axis=1))
        )


def explainer_of(calibrated: Calibrated) -> EvidenceExplainer | IntervalEvidenceExplainer | None:
    """Return what explains the evidence for any node; None if the prediction is based on the model only."""
    graph, bound = calibrated.graph, calibrated.score
    if graph is None:
        return None
    if isinstance(bound, BoundInformedIntervals):
        return IntervalEvidenceExplainer(bound, graph)
    informed = evidence_of(bound)
    return None if informed is None else EvidenceExplainer(informed, graph)
