"""What shifted a node's interval: the model's word, and which targets around it spoke, which way and how far.

Informed intervals make each output of the model a linear function of all its outputs and of the mean residuals of
labelled nodes one and two hops away (see `napsets.scores.informed_intervals`): a sum of terms, each a coefficient, the
same for all nodes, times something of the node's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napsets.advice.evidence import labelled_around
from napsets.checks.arguments import FloatArray
from napsets.graph import Graph
from napsets.scores.informed_intervals import RESIDUAL_PRIOR, BoundInformedIntervals, residual_sums

__all__ = ["IntervalEvidence", "ResidualVoice", "ResidualWitnesses"]

#: What the terms of residuals are called, by hop.
_HOPS = ("near", "far")


@dataclass(frozen=True, eq=False)
class ResidualVoice:
    """A labelled node near another, and where it moves that one's outputs.

    Attributes
    ----------
    node : int
        Who speaks.
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
    """What a node's shifted outputs are made of.

    Attributes
    ----------
    outputs : tuple of str
        What the outputs are: lower and upper, or prediction and maybe spread.
    model, informed : numpy.ndarray
        Of each output: what the model said, and what the interval is made of.
    terms : tuple of str
        What is added up: constant, the model's outputs, near and, with two hops, far.
    coefficients : numpy.ndarray
        Shape (outputs, terms): how much each counts, for all nodes alike.
    values : numpy.ndarray
        Of each term, what it is for this node: 1, the model's outputs, the mean residuals near and far.
    counts : numpy.ndarray
        How many labelled nodes the residuals near and far are of; far, each neighbour counts its share of its own.
    voices : tuple of ResidualVoice
        The labelled nodes within reach that speak, the strongest first.
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
    voices: tuple[ResidualVoice, ...]
    sentence: str

    @property
    def contributions(self) -> FloatArray:
        """Shape (outputs, terms): what each term adds. Their sums are `informed`."""
        return self.coefficients * self.values

    @property
    def shifts(self) -> FloatArray:
        """How far each output was moved."""
        return self.informed - self.model


class ResidualWitnesses:
    """All that can be said of the evidence on any node's interval; made once for many of them, in O(edges).

    Parameters
    ----------
    informed : BoundInformedIntervals
        The score.
    graph : Graph
        The graph that it looked at.
    """

    def __init__(self, informed: BoundInformedIntervals, graph: Graph) -> None:
        self.informed, self.graph = informed, graph
        reference, model = informed.reference, informed.model
        centre = informed.score.centre(model)
        self.sums = residual_sums(graph, centre, reference, informed.hops)
        self.labelled = np.zeros(model.shape[0], dtype=bool)
        self.labelled[reference.nodes] = True
        self.targets = np.full(model.shape[0], np.nan)
        self.targets[reference.nodes] = reference.labels
        self.residuals = self.targets - centre

    @property
    def terms(self) -> tuple[str, ...]:
        """What is added up."""
        return ("constant", *self.informed.score.columns, *_HOPS[: self.informed.hops])

    @property
    def sentence(self) -> str:
        """What one labelled neighbour does to the outputs, and what those two hops away do together."""
        weights = self._weights
        if not weights.any():
            return "the targets of labelled neighbours move nothing"
        one = self._moves(weights[:, 0] / (1.0 + RESIDUAL_PRIOR))
        told = f"one labelled neighbour whose target is 1 above the model's best guess moves {one}"
        if weights.shape[1] == 1:
            return told
        return f"{told}; a mean residual of 1 two hops away moves {self._moves(weights[:, 1])}"

    def _moves(self, shifts: FloatArray) -> str:
        """Say how far outputs are moved, but for those that nothing moves."""
        named = zip(self.informed.score.columns, shifts, np.abs(self._weights).max(axis=1) > 0, strict=True)
        return " and ".join(f"{name} by {shift:+.3g}" for name, shift, moved in named if moved)

    @property
    def _weights(self) -> FloatArray:
        """The coefficients of residuals, shape (outputs, hops)."""
        return self.informed.coefficients[:, 1 + self.informed.model.shape[1] :]

    def of(self, node: int) -> IntervalEvidence:
        """Return what one node's outputs are made of."""
        informed = self.informed
        means = [sums[node, 0] / (sums[node, 1] + RESIDUAL_PRIOR) for sums in self.sums]
        return IntervalEvidence(
            outputs=informed.score.columns,
            model=informed.model[node],
            informed=informed.outputs[node],
            terms=self.terms,
            coefficients=informed.coefficients,
            values=np.concatenate([[1.0], informed.model[node], means]),
            counts=np.array([sums[node, 1] for sums in self.sums]),
            voices=self.voices(node),
            sentence=self.sentence,
        )

    def voices(self, node: int) -> tuple[ResidualVoice, ...]:
        """Return the labelled nodes within reach that speak, those that move an output furthest first."""
        around = labelled_around(self.graph, self.labelled, node)
        residuals = self.residuals[around.nodes]
        shifts = np.zeros((around.nodes.size, self.informed.model.shape[1]))
        for hop, (sums, mine) in enumerate(zip(self.sums, (around.near, around.far), strict=False)):
            total, count = sums[node]
            without = np.maximum(count - mine, 0.0)
            moved = total / (count + RESIDUAL_PRIOR) - (total - mine * residuals) / (without + RESIDUAL_PRIOR)
            shifts += moved[:, None] * self._weights[:, hop]
        order = np.lexsort((around.nodes, -np.abs(shifts).max(axis=1)))
        return tuple(
            ResidualVoice(
                int(around.nodes[i]),
                int(around.hops[i]),
                float(self.targets[around.nodes[i]]),
                float(residuals[i]),
                shifts[i],
            )
            for i in order
            if shifts[i].any()
        )
