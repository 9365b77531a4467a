"""EdgeEx: weights of 1/degree for a graph that grows edge by edge.

Zargarbashi and Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024. Nodes are discovered through their
edges: a node with twice the degree is labelled twice as soon, and the labelled nodes are not a random sample. Weights
of 1/degree correct for that. Degrees are those of the current graph, on which the model's outputs should be recomputed
too. The weight of a node without edges is 1.

*Guarantee*: 1 − alpha for a node drawn uniformly, if labelled nodes were drawn in proportion to their degrees (weighted
exchangeability with 1/degree as the ratio, which is `napsets.CovariateShift`). The released code divides weights by
their largest and gives the node to predict the weight 1 instead of its own 1/degree, which has no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from napsets import CovariateShift
from napsets.localisers import LOCALISERS, Local, Reference
from napsets.localisers.base import graph_of
from napsets.methods import METHODS, Method, SplitConformal


@LOCALISERS.add("inverse-degree")
@dataclass(frozen=True)
class InverseDegree:
    """The weight of every reference node, and of the node to predict, is one over its degree."""

    def fit(self, reference: Reference) -> Local:
        """Return the localiser of these reference nodes."""
        return CovariateShift(1.0 / np.maximum(graph_of(reference).degrees, 1)).fit(reference)


@METHODS.add("edge-ex")
def edge_exchangeable(*, score: Any = "aps") -> Method:
    """EdgeEx, for graphs that grow edge by edge: weights of 1/degree, because hubs are labelled sooner."""
    return replace(SplitConformal(score), localiser=InverseDegree())
