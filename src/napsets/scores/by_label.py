"""Scores that are ranked partly among nodes with the candidate label, for more even coverage between classes.

A label that is hard to predict has larger scores than others at the truth, and a common threshold leaves it out more
often. Here the score of label y becomes its rank among reference scores: partly among those of nodes with label y,
partly among all,

    S'(v, y) = l_y·F_y(S(v, y)) + (1 − l_y)·F(S(v, y)),   l_y = mix·n_y / (n_y + 20),

with F the distribution of reference scores, F_y that of the n_y reference nodes with label y. With mix 1 and many
labels this is class-conditional prediction; labels with few reference nodes lean on all of them. It learns from
reference labels, and so needs an exact level, under which its coverage holds whatever the mix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, IntArray, Sealed
from napsets.checks.values import check_share
from napsets.features import Features
from napsets.graph import Graph
from napsets.scores.base import SCORES, BoundAround, Labelled, bind, make_score, uses_features
from napsets.scores.rows import APS

#: So many reference nodes of a label count as much as all others do for it.
SHRINK = 20.0
#: Ranks are steps between two reference scores; this share of the score itself separates scores on the same step.
SLOPE = 1e-6


@SCORES.add("by-label")
@dataclass(frozen=True)
class ByLabel:
    """Another score, ranked partly among reference nodes with the candidate label. Needs an exact level.

    Attributes
    ----------
    base : Score or str
        The score that is ranked.
    mix : float
        From 0, where all reference nodes count alike, to 1, where those with the label count alone if they are many.
    """

    base: Any = field(default_factory=APS)
    mix: float = 0.5
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "mix", check_share("mix", self.mix))

    @property
    def uses_features(self) -> bool:
        """Whether the score that is ranked compares nodes by their features."""
        return uses_features(self.base)

    def bind(
        self,
        outputs: AnyArray,
        u: FloatArray,
        graph: Graph | None,
        reference: Labelled,
        *,
        learned: object = None,
        features: Features | None = None,
    ) -> BoundByLabel:
        """Return the ranked score, from the scores of the reference nodes at their labels."""
        inner = bind(self.base, outputs, u, graph, reference, learned, features)
        return BoundByLabel(inner, inner.at(reference.nodes, reference.labels), reference.labels, self.mix)


@dataclass(frozen=True, eq=False)
class BoundByLabel(Sealed, BoundAround):
    """A bound score, and the reference scores among which it is ranked."""

    inner: Any
    scores: FloatArray
    labels: IntArray
    mix: float

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels."""
        return self.ranked_scores(labels, self.inner.at(nodes, labels))

    def around(self, inner: Any) -> BoundByLabel:
        """Return the same ranks around another bound score, without sorting the reference scores again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, inner=inner)  # with what was computed once
        return other

    def ranked_scores(self, labels: IntArray, plain: FloatArray) -> FloatArray:
        """Return the ranks of inner scores at these labels."""
        ranked = _share_below(self._sorted, plain)
        for label in np.unique(labels):
            rows = labels == label
            ranked[rows] = self._mixed(ranked[rows], plain[rows], int(label))
        return ranked

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        plain: FloatArray = self.inner.matrix(nodes)
        ranked = _share_below(self._sorted, plain)
        for label in range(plain.shape[1]):
            ranked[:, label] = self._mixed(ranked[:, label], plain[:, label], label)
        return ranked

    @cached_property
    def _sorted(self) -> FloatArray:
        return np.sort(self.scores)

    @cached_property
    def _by_label(self) -> tuple[FloatArray, IntArray]:
        """The scores by label and then by size, and where those of each label start."""
        order = np.lexsort((self.scores, self.labels))
        starts = np.searchsorted(self.labels[order], np.arange(self.probabilities.shape[1] + 1))
        return self.scores[order], starts

    def _mixed(self, shares: FloatArray, values: FloatArray, label: int) -> FloatArray:
        """Mix the shares among all reference scores with those among the label's own."""
        scores, starts = self._by_label
        of_label = scores[starts[label] : starts[label + 1]]
        mix = self.mix * of_label.size / (of_label.size + SHRINK)
        ranked = (1.0 - mix) * shares
        if mix:
            ranked = ranked + mix * _share_below(of_label, values)
        return ranked + SLOPE * values


def _share_below(known: FloatArray, values: FloatArray) -> FloatArray:
    """For each value, the number of known (ascending) scores strictly below it, divided by their number plus 1."""
    return np.searchsorted(known, values, side="left") / (known.size + 1.0)
