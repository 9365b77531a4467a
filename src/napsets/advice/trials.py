"""What each method would do here, tried out on the labels at hand.

The labelled nodes are cut into folds. The labels of one fold are hidden; the others calibrate each method, which then
predicts the nodes of that fold, and their labels judge. So every label judges once, and none judges a set that it
helped to make: sizes and coverage are what new nodes like these can expect, if a little pessimistic, because a fifth of
the labels was missing. A method that chooses chooses again in each fold, without the labels that judge.

The probabilities are taken as given: a model that has seen the labels would look better than it is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from napsets.advice.theory import fewest_labels
from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_labels
from napsets.checks.text import percent
from napsets.checks.values import check_alpha, check_seed
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.evaluation.gaps import gap_within
from napsets.evaluation.metrics import FIFTHS, groups_of_partition, neighbourhood_partition
from napsets.evaluation.verdict_words import named
from napsets.graph import Direction, Graph, check_direction
from napsets.groups import by_quantiles
from napsets.localisers.hops import Decay
from napsets.methods import AutoMethod, CalibrationData, Choice, Settings, make_method, title
from napsets.methods.auto import FEWEST
from napsets.methods.choice import Prefer
from napsets.scores.evidence import evenly

#: What is tried, by the names of the table of methods; the first is what the others are compared with.
TRIED: tuple[str, ...] = ("split", "thr", "naps", "naps-exact", "informed", "auto", "auto-small")
#: Into this many parts the labelled nodes are cut.
FOLDS = 5
#: Labels of a fold that judge, at most; all others of that fold are hidden too.
_JUDGED = 5000
#: Standard errors that a difference must have to count.
_ERRORS = 2.0
#: A smaller change of size, as a share, does not justify another method.
_WORTH = 0.01
#: Methods for small sets; the others also aim at even coverage.
_SMALL = ("thr", "auto-small")
_PREFERENCES: tuple[Prefer, ...] = ("even", "small")


@dataclass(frozen=True)
class Trial:
    """How one method did on labels that it had not seen."""

    #: Its name in the table of methods, and what tables call it.
    method: str
    title: str
    #: Mean number of labels in a set, and its standard error: over nodes or over folds, whichever is larger.
    size: float
    size_se: float
    #: The share of sets with the true label, likewise.
    coverage: float
    coverage_se: float
    full: float  #: The share of sets with every label, which say nothing.
    #: Its size less that of the first method on the same nodes, and the standard error of that (paired).
    difference: float
    difference_se: float
    target: float  #: The target coverage.
    #: How far coverage is from the target in a neighbourhood (or in fifths by degree) on average, and by chance alone.
    gap: float = math.nan
    chance: float = math.nan

    @property
    def falls_short(self) -> bool:
        """Whether it covers less than the target, by more than chance."""
        return self.coverage + _ERRORS * self.coverage_se < self.target

    @property
    def smaller(self) -> bool:
        """Whether its sets are smaller than those of the first method, by more than chance and by enough to matter."""
        plain = self.size - self.difference
        return self.difference + _ERRORS * self.difference_se < 0 and -self.difference > _WORTH * plain

    @property
    def larger(self) -> bool:
        """Whether its sets are larger than those of the first method, by more than chance."""
        return self.difference - _ERRORS * self.difference_se > 0


@dataclass(frozen=True, eq=False)
class Trials:
    """Methods tried on held-out labels, and what was chosen by evidence on all of them."""

    #: One per method, the one that looks at no neighbours first; none where labels are too few.
    trials: tuple[Trial, ...]
    choices: tuple[Choice, ...]  #: What `auto` chooses for even and for small sets, and why.
    alpha: float  #: Error rate.
    #: Labelled nodes, those of them that judged, and how many are needed at least.
    labels: int
    judged: int
    needed: int
    folds: int = FOLDS  #: Into how many parts they were cut.

    @property
    def enough(self) -> bool:
        """Whether there were labels enough to try methods on."""
        return bool(self.trials)

    def __getitem__(self, method: str) -> Trial:
        for trial in self.trials:
            if trial.method == method:
                return trial
        raise KeyError(method)

    @property
    def verdict(self) -> Literal["yes", "maybe", "no"]:
        """Whether a method that looks at the graph is worth taking.

        "yes" where one makes clearly smaller sets that cover, "no" where all of them make larger ones or do not cover,
        "maybe" otherwise and where labels are too few. Of `auto`, not all that makes sets smaller is the graph's doing:
        its choice says what is.
        """
        if not self.enough:
            return "maybe"
        if any(trial.smaller for trial in self._fit()):
            return "yes"
        return "no" if all(trial.larger for trial in self._fit()) else "maybe"

    @property
    def method(self) -> str:
        """The method to use: split, unless another makes clearly smaller sets; `auto` where it is nearly the best."""
        plain = TRIED[0]
        fit = {trial.method: trial for trial in self._fit() if not trial.larger}
        if not self.enough or not fit:
            return plain
        smallest = min(fit.values(), key=lambda trial: trial.size)
        auto = fit.get("auto")
        near = auto is not None and auto.size <= (1 + _WORTH) * smallest.size + smallest.size_se
        if auto is not None and near and auto.smaller:
            return "auto"
        return smallest.method if smallest.smaller else plain

    def _fit(self) -> list[Trial]:
        """Return those that use the graph, are meant to be even, and cover."""
        return [trial for trial in self.trials[1:] if trial.method not in _SMALL and not trial.falls_short]

    def reasons(self) -> list[str]:
        """Explain the verdict, a sentence or two per point."""
        if not self.enough:
            return [
                f"{self.labels:,} labels are too few to try methods on them: alpha = {self.alpha:g} needs "
                f"{self.needed:,}, because some evaluate and others set the level.",
                *map(self._on_choice, self.choices),
            ]
        return [self._on_sizes(), *self._on_small(), *self._on_coverage(), *map(self._on_choice, self.choices)]

    def _on_sizes(self) -> str:
        plain, others = self.trials[0], sorted(self._fit(), key=lambda trial: trial.size)
        seen = (
            f"On {self.judged:,} held-out labels, the average set size of {named(plain.title)} is {plain.size:.2f} ± "
            f"{plain.size_se:.2f}"
        )
        if not others:
            return f"{seen}; none of the methods that use neighbourhoods reaches the target coverage."
        best = others[0]
        how = "clearly smaller" if best.smaller else "clearly larger" if best.larger else "no clear difference"
        difference = f"{best.difference:+.2f} ± {best.difference_se:.2f}, {how}"
        return (
            f"{seen}. Of the methods that use neighbourhoods and aim at even coverage, {named(best.title)} makes the "
            f"smallest sets: {best.size:.2f} ± {best.size_se:.2f} ({difference})."
        )

    def _on_small(self) -> list[str]:
        """Say which method makes the smallest sets of all, and how even it is."""
        covering = [trial for trial in self.trials if not trial.falls_short]
        smallest = min(covering, key=lambda trial: trial.size, default=self[self.method])
        if smallest.method == self.method:
            return []
        return [
            f"If small sets matter most: {smallest.method} makes the smallest, {smallest.size:.2f} ± "
            f"{smallest.size_se:.2f}, with coverage {100 * smallest.gap:.1f} points off the target per group on "
            f"average; {self.method}: {self[self.method].size:.2f}, {100 * self[self.method].gap:.1f} points."
        ]

    def _on_coverage(self) -> list[str]:
        short = [trial for trial in self.trials if trial.falls_short]
        full = [trial for trial in self.trials if trial.full >= 0.1]
        below = ", ".join(f"{t.title} covers {percent(t.coverage)} ± {percent(t.coverage_se)}" for t in short)
        empty = ", ".join(f"{t.title} gives every label to {percent(t.full, 0)} of the nodes" for t in full)
        sentences = [f"Below the target of {percent(1 - self.alpha, 0)}: {below}."] if below else []
        return sentences + ([f"Full sets carry no information: {empty}."] if empty else [])

    @staticmethod
    def _on_choice(choice: Choice) -> str:
        name = "auto" if choice.prefer == "even" else "auto-small"
        return f"{name} would choose {choice}."

    def row(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "method": self.method,
            "enough": self.enough,
            "labels": self.labels,
            "judged": self.judged,
            "needed": self.needed,
            "folds": self.folds,
            "trials": [dict(vars(trial)) for trial in self.trials],
            "choices": [
                {
                    "prefer": choice.prefer,
                    "name": choice.name,
                    "reason": choice.reason,
                    "exponents": None if choice.exponents is None else dict(vars(choice.exponents)),
                    "candidates": choice.rows(),
                }
                for choice in self.choices
            ],
            "reasons": self.reasons(),
        }


def try_methods(
    graph: Graph,
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    alpha: float = 0.1,
    hops: int = 2,
    decay: Decay = "uniform",
    direction: Direction = "out",
    seed: int = 0,
    ids: ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trials:
    """Try methods on the labels at hand, by cross-fitting, and choose by evidence."""
    alpha, seed = check_alpha(alpha), check_seed(seed)
    y = check_labels(labels, size=graph.num_nodes, num_classes=np.iinfo(np.int64).max)
    known = np.flatnonzero(y >= 0)
    if known.size == 0:
        raise InvalidInputError("`labels` must have at least one known label; all are −1")
    data = CalibrationData.check(graph, probabilities, y, known, ids=ids)
    settings = Settings(hops=hops, decay=decay, seed=seed, alpha=alpha, direction=check_direction(direction))
    needed = fewest(alpha)
    choices = tuple(AutoMethod(alpha, prefer, seed).fit(data).choice for prefer in _PREFERENCES)
    if known.size < needed:
        return Trials((), choices, alpha, int(known.size), 0, needed)
    fold = np.random.default_rng(seed).permutation(known.size) % FOLDS
    folds = [known[fold == f] for f in range(FOLDS)]
    judged = [nodes[evenly(nodes.size, _JUDGED)] for nodes in folds]
    nodes, place = np.concatenate(judged), np.repeat(np.arange(FOLDS), [part.size for part in judged])
    sizes, hits = np.empty((2, len(TRIED), nodes.size))
    for f in range(FOLDS):
        rest = CalibrationData(graph, data.outputs, data.truth, known[fold != f], data.ids)
        for m, name in enumerate(TRIED):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NapsetsWarning)
                sets = make_method(name, settings).fit(rest).predict(judged[f], alpha)
            sizes[m, place == f], hits[m, place == f] = sets.sizes, sets.covers(y[judged[f]])
            if progress is not None:
                progress(f * len(TRIED) + m + 1, FOLDS * len(TRIED))
    groups = _groups(graph, nodes, seed)
    gaps = [gap_within(covered.astype(bool), groups, alpha) for covered in hits]
    trials = tuple(
        Trial(
            name,
            title(name),
            *_mean(sizes[m], place),
            *_mean(hits[m], place),
            float((sizes[m] == data.outputs.shape[1]).mean()),
            *_mean(sizes[m] - sizes[0], place),
            1.0 - alpha,
            gaps[m].gap,
            gaps[m].chance,
        )
        for m, name in enumerate(TRIED)
    )
    return Trials(trials, choices, alpha, int(known.size), int(place.size), needed)


def _groups(graph: Graph, nodes: IntArray, seed: int) -> IntArray:
    """Return the groups over which evenness is measured: neighbourhoods, or fifths by degree if there are not two."""
    partition = neighbourhood_partition(graph, nodes, seed=seed)
    if len(partition) > 1:
        return groups_of_partition(partition, graph.num_nodes)[nodes]
    return by_quantiles(graph.degrees, FIFTHS, nodes)[nodes]


def fewest(alpha: float) -> int:
    """Return how many labels it takes: a fifth is hidden, and two thirds of the others must set a level.

    Examples
    --------
    >>> fewest(0.1), fewest(0.01)
    (100, 186)
    """
    return max(FEWEST, math.ceil(fewest_labels(alpha) / (2 / 3 * (1 - 1 / FOLDS))))


def _mean(values: FloatArray, fold: IntArray) -> tuple[float, float]:
    """Return a mean and its standard error: over nodes, or over folds, which share a threshold, if that is larger."""
    over_nodes = float(values.std(ddof=1)) / math.sqrt(values.size)
    means = np.bincount(fold, weights=values) / np.bincount(fold)
    over_folds = float(means.std(ddof=1)) / math.sqrt(means.size)
    return float(values.mean()), max(over_nodes, over_folds)
