"""Labels around a node as evidence: the model's probabilities, corrected by what labelled neighbours say.

NAPS takes the scores of labelled neighbours and throws their labels away, which are the best evidence there is. Here
they are evidence:

    P'(y|v) ∝ P(y|v)^a · P̄(y|v)^c · Π_k E_k(y|v)^{b_k},   E_k(y|v) = (n_k(y) + κ_k π_y) / ((Σ_y n_k(y) + κ_k) π_y)

P̄ is the mean of what the model says of the neighbours and of their neighbours (P where there are none). The n_k count
labelled nodes with label y, never v itself (`napsets.scores.evidence` says which), π are the shares of labels in the
reference, drawn a little towards the mean predictions, and E_k is 1 where there is no evidence.

The exponents are fitted on the reference nodes by maximum likelihood (conditional logit, which is convex; a node's own
label is not among its evidence, so this is leave-one-out), with a ridge towards "no evidence, no change". A negative
exponent is what heterophily looks like. Reference labels may be used for anything once the level is exact, so the
guarantee holds whatever was fitted.

A last factor *recalibrates* the model: the exponential of a linear function of log P, log P̄ and the logarithm of the
degree, with coefficients of its own for every label (Dirichlet calibration), fitted likewise with a ridge towards 0. It
learns which labels the model confuses, those it predicts too often, and what nodes with many neighbours tend to be.

Under a full level (`napsets.levels.Full`) the held-out labels are evidence too. Then they and a candidate for the
node to predict are one *bag*: the evidence of each node of the bag are the labels of the reference and of all others
in the bag. What was learned from the reference stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    Sealed,
    check_index,
    check_labels,
    check_probabilities,
    sealed,
)
from napsets.checks.values import check_count, check_flag
from napsets.errors import InvalidInputError
from napsets.graph import Graph, check_graph
from napsets.scores.base import (
    BOUND,
    SCORES,
    BoundAround,
    Labelled,
    RowScore,
    bind,
    known_labels,
    make_score,
    require_graph,
)
from napsets.scores.evidence import Evidence, label_weights, normalised
from napsets.scores.exponents import Exponents, Learned, check_table_of
from napsets.scores.rows import APS


class InformedScore:
    """A score that uses labels, or numbers, of the nodes around a node as evidence. Needs an exact level."""

    learns: ClassVar[bool] = True
    #: Takes what `bind` takes, a bag of other labels, and what was learned before; by default the reference teaches.
    #: Returns the score with the evidence of the reference alone, and with that of the bag too, from whose labels
    #: nothing is learned. Without a bag, both scores are the same.
    bind_with_bag: Any

    def bind(self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled) -> Any:
        """Learn from the reference labels, and return the score with their evidence."""
        return self.bind_with_bag(outputs, u, graph, reference)[0]


@SCORES.add("informed")
@dataclass(frozen=True)
class Informed(InformedScore):
    """A score of probabilities that the labels around a node have corrected. Needs an exact level.

    Attributes
    ----------
    base : Score or str
        The score of the corrected probabilities.
    hops : int
        1 looks at the labels of neighbours alone, 2 at those of their neighbours too; 0 at no labels of neighbours.
    wide : bool
        Whether the reference labels that a random walk of up to twelve steps meets are evidence too: for few labels.
    """

    base: Any = field(default_factory=APS)
    hops: int = 2
    wide: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "hops", check_count("hops", self.hops, maximum=2))
        object.__setattr__(self, "wide", check_flag("wide", self.wide))

    @property
    def uses_held_out_labels(self) -> bool:
        """Whether held-out labels may be evidence: the score of a node must look at its own row alone."""
        return isinstance(self.base, RowScore)

    def bind_with_bag(  # noqa: D102
        self,
        outputs: npt.NDArray[Any],
        u: FloatArray,
        graph: Graph | None,
        reference: Labelled,
        bag: Labelled | None = None,
        learned: Learned | None = None,
    ) -> tuple[BoundInformed, BoundInformed]:
        graph = require_graph(graph)
        evidence = Evidence(outputs, graph, reference, self.hops, wide=self.wide, learned=learned)
        if learned is None:
            learned = evidence.fit()
        inner = bind(self.base, sealed(evidence.probabilities(learned)), u, graph, reference)
        alone = BoundInformed(inner, outputs, learned, reference)
        if bag is None:
            return alone, alone
        evidence = evidence.with_bag(bag)
        inner = bind(self.base, sealed(evidence.probabilities(learned)), u, graph, reference)
        rows = bag.nodes
        parts = evidence.fixed(learned, rows), evidence.count("near", rows), evidence.count("far", rows)
        silenced = evidence.held_out_shares != evidence.passed_shares if self.hops == 2 else np.empty(0)
        crowded = np.flatnonzero(silenced)
        return alone, BoundInformed(inner, outputs, learned, reference, Bag(bag, *parts, crowded))


def informed_probabilities(
    probabilities: ArrayLike, graph: Graph, nodes: ArrayLike, labels: ArrayLike, *, hops: int = 2
) -> tuple[npt.NDArray[Any], Exponents]:
    """Return the model's probabilities corrected by the labels of some nodes, and the exponents that were fitted.

    Parameters
    ----------
    probabilities : array of shape (nodes, classes)
        What the model says.
    graph : Graph
        The graph.
    nodes, labels : arrays
        The labelled nodes (indices or a boolean mask), and the label of each.
    hops : int
        As in `Informed`.
    """
    p = check_probabilities(probabilities, num_nodes=check_graph(graph).num_nodes)
    chosen = check_index("nodes", nodes, p.shape[0], unique=True)
    y = known_labels(labels, p[chosen])
    evidence = Evidence(p, graph, Labelled(chosen, y), check_count("hops", hops, maximum=2))
    learned = evidence.fit()
    return evidence.probabilities(learned), learned.exponents


class AddedCounts(NamedTuple):
    """What one node's label adds to the counts of nodes of a bag, one entry for each of them and each candidate."""

    places: IntArray  #: which nodes of the bag
    #: What it adds to the counts near and far of each.
    near: FloatArray
    far: FloatArray
    #: The label that the node has in the bag already, and that the candidate stands in for; −1 where it has none.
    before: IntArray
    candidates: IntArray  #: the label that it would have

    def part(self, which: slice) -> AddedCounts:
        """Return some of the entries."""
        return AddedCounts._make(column[which] for column in self)


@dataclass(frozen=True, eq=False)
class Bag(Sealed):
    """Labelled nodes outside the reference whose labels are evidence, and what their own evidence is made of."""

    labelled: Labelled  #: the nodes and their labels
    #: For each of them and each label: what no other label changes, and the labels counted near and far.
    fixed: FloatArray
    near: FloatArray
    far: FloatArray
    crowded: IntArray  #: the nodes of the graph that pass on no labels but those of the reference


@BOUND.add("informed")
@dataclass(frozen=True, eq=False)
class BoundInformed(Sealed, BoundAround):
    """A score of corrected probabilities, and how they were corrected."""

    inner: Any  #: the score of the corrected probabilities
    outputs: npt.NDArray[Any]  #: what the model itself said
    learned: Learned  #: what was learned from the reference
    reference: Labelled  #: the labels that are evidence, and from which the exponents were learned
    bag: Bag | None = None  #: the further labels that are evidence

    @property
    def exponents(self) -> Exponents:
        """How much each source counts."""
        return self.learned.exponents

    def ranked(self, labels: IntArray, scores: FloatArray) -> FloatArray:
        """Return scores of nodes with these labels as they are: nothing stands around this score."""
        return scores

    def unranked(self, label: int, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores between which those of a label are ranked so: these themselves."""
        return values, values

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each label for each node of the bag, with all others in the bag as evidence."""
        bag = self.required_bag
        return sealed(label_weights(self.learned, bag.fixed, bag.near, bag.far))

    @property
    def required_bag(self) -> Bag:
        """The bag, where there is one."""
        if self.bag is None:
            raise InvalidInputError("`level` must be full for held-out labels to be evidence")
        return self.bag

    def scores_with(self, change: AddedCounts) -> FloatArray:
        """Return the scores of nodes of the bag at their labels if another node had some label."""
        bag, rows = self.required_bag, change.places
        weights = self.weights[rows]
        # Whatever label the node has now is taken out; where it is the candidate, nothing changes.
        other = change.before != change.candidates
        for which, label, sign in (
            (other & (change.before >= 0), change.before, -1.0),
            (other, change.candidates, 1.0),
        ):
            entries = np.flatnonzero(which)
            at = rows[entries], label[entries]
            near, far = bag.near[at] + sign * change.near[entries], bag.far[at] + sign * change.far[entries]
            weights[entries, at[1]] = label_weights(self.learned, bag.fixed[at], near, far, at[1])
        probabilities = normalised(weights).astype(self.probabilities.dtype)
        own, u = bag.labelled.labels[rows], self.inner.u[bag.labelled.nodes[rows]]
        scores: FloatArray = self.inner.at_rows(probabilities, own, u)
        return scores

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file keeps of it: a description, and arrays."""
        described, arrays = self.inner.parts()
        exponents, learned = self.learned.parts()
        arrays |= learned | {
            "outputs": self.outputs,
            "evidence_nodes": self.reference.nodes,
            "evidence_labels": self.reference.labels,
        }
        if self.bag is not None:
            arrays |= {f"bag_{name}": getattr(self.bag.labelled, name) for name in ("nodes", "labels")}
            arrays |= {f"bag_{name}": getattr(self.bag, name) for name in ("fixed", "near", "far", "crowded")}
        return {"name": "informed", "inner": described, "exponents": exponents}, arrays

    @classmethod
    def from_parts(cls, described: dict[str, Any], arrays: dict[str, Any]) -> BoundInformed:
        """Put together what `parts` gave."""
        inner = BOUND[described["inner"]["name"]].from_parts(described["inner"], arrays)
        size, classes = inner.probabilities.shape
        outputs = check_probabilities(arrays["outputs"], num_nodes=size)
        reference = _labelled("evidence", arrays, size, classes)
        learned = Learned.from_parts(described["exponents"], arrays, reference, outputs)
        if "bag_nodes" not in arrays:
            return cls(inner, outputs, learned, reference)
        labelled = _labelled("bag", arrays, size, classes)
        shape = labelled.nodes.size, classes
        names = ("bag_fixed", "bag_near", "bag_far")
        fixed, near, far = (check_table_of(name, arrays[name], shape) for name in names)
        crowded = check_index("bag_crowded", arrays["bag_crowded"], size, unique=True)
        return cls(inner, outputs, learned, reference, Bag(labelled, fixed, near, far, crowded))


def _labelled(name: str, arrays: dict[str, Any], size: int, classes: int) -> Labelled:
    """Return labelled nodes of a file."""
    nodes = check_index(f"{name}_nodes", arrays[f"{name}_nodes"], size, unique=True)
    return Labelled(nodes, check_labels(arrays[f"{name}_labels"], size=nodes.size, num_classes=classes))


def evidence_of(bound: Any) -> BoundInformed | None:
    """Return the informed score in a chain of bound scores, wherever it stands; None where there is none."""
    while bound is not None and not isinstance(bound, BoundInformed):
        bound = getattr(bound, "inner", None)
    return bound
