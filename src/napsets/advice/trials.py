"""What each method would do here, tried out on the labels at hand.

The labelled nodes are cut into folds. The labels of one fold are hidden; the others calibrate each method, which then
predicts the nodes of that fold, and their labels judge. So every label judges once, and none judges a set that it
helped to make: sizes and coverage are what new nodes like these can expect, if a little pessimistic, because a fifth of
the labels was missing. A method that chooses chooses anew in each fold, without the labels that judge.

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
from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_alpha, check_labels, check_seed
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.graph import Direction, Graph, check_direction
from napsets.localisers.decay import Decay
from napsets.methods import Given, Settings, make_method, title
from napsets.methods.auto import FEWEST, Choice, Choosing, Prefer

__all__ = ["FOLDS", "TRIED", "Trial", "Trials", "try_methods"]

#: What is tried, by the names of the table of methods; the first is what the others are compared with.
TRIED: tuple[str, ...] = ("split", "naps", "naps-exact", "informed", "auto", "auto-small")
#: Into so many parts the labelled nodes are cut.
FOLDS = 5
#: Labels of a fold that judge, at the most; all others of that fold are hidden too.
_JUDGED = 5000
#: Standard errors that a difference must have to count.
_ERRORS = 2.0
#: A smaller change of size, as a share, is not worth another method.
_WORTH = 0.01
#: What those who want small sets above all may choose; the others are also meant to be even.
_SMALL = "auto-small"
_PREFERENCES: tuple[Prefer, ...] = ("even", "small")


@dataclass(frozen=True)
class Trial:
    """How one method did on labels that it had not seen.

    Attributes
    ----------
    method, title : str
        Its name in the table of methods, and what tables call it.
    size, size_se : float
        Mean number of labels in a set, and its standard error: over nodes or over folds, whichever is larger.
    coverage, coverage_se : float
        The share of sets with the true label, likewise.
    full : float
        The share of sets with every label, which say nothing.
    difference, difference_se : float
        Its size less that of the first method on the same nodes, and the standard error of that (paired).
    target : float
        The coverage asked for.
    """

    method: str
    title: str
    size: float
    size_se: float
    coverage: float
    coverage_se: float
    full: float
    difference: float
    difference_se: float
    target: float

    @property
    def falls_short(self) -> bool:
        """Whether it covers less than was asked for, by more than chance."""
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
    """Methods tried on held-out labels, and what was chosen by evidence on all of them.

    Attributes
    ----------
    trials : tuple of Trial
        One a method, the one that looks at no neighbours first; none where labels are too few.
    choices : tuple of Choice
        What `auto` chooses for even and for small sets, and why.
    alpha : float
        Error rate.
    labels, judged, needed : int
        Labelled nodes, those of them that judged, and how many are needed at least.
    folds : int
        Into how many parts they were cut.
    """

    trials: tuple[Trial, ...]
    choices: tuple[Choice, ...]
    alpha: float
    labels: int
    judged: int
    needed: int
    folds: int = FOLDS

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
        """The method to use: the smallest sets, but `auto` where it is about as good, and split where nothing helps."""
        plain = TRIED[0]
        fit = {trial.method: trial for trial in self._fit() if not trial.larger}
        if not self.enough or not fit:
            return plain
        smallest = min(fit.values(), key=lambda trial: trial.size)
        auto = fit.get("auto")
        near = auto is not None and auto.size <= (1 + _WORTH) * smallest.size + smallest.size_se
        if auto is not None and near and (auto.smaller or not smallest.smaller):
            return "auto"
        return smallest.method if smallest.smaller else plain

    def _fit(self) -> list[Trial]:
        """Return those that look at the graph, are meant to be even, and cover."""
        return [trial for trial in self.trials[1:] if trial.method != _SMALL and not trial.falls_short]

    def reasons(self) -> list[str]:
        """Explain the verdict, a sentence or two a point."""
        if not self.enough:
            return [
                f"{self.labels:,} labels are too few to try methods on: at alpha = {self.alpha:g} it takes "
                f"{self.needed:,}, of which some are hidden to judge by and others set the level.",
                *map(self._on_choice, self.choices),
            ]
        return [self._on_sizes(), *self._on_coverage(), *map(self._on_choice, self.choices)]

    def _on_sizes(self) -> str:
        plain, others = self.trials[0], sorted(self._fit(), key=lambda trial: trial.size)
        seen = f"On {self.judged:,} held-out labels {plain.title} makes sets of {plain.size:.2f} ± {plain.size_se:.2f}"
        if not others:
            return f"{seen}; of the methods that look at neighbourhoods, none covers as asked for."
        best = others[0]
        how = "smaller" if best.smaller else "larger" if best.larger else "no clear difference"
        return (
            f"{seen} labels; of the methods that look at neighbourhoods, {best.title} makes the smallest: "
            f"{best.size:.2f} ± {best.size_se:.2f} ({best.difference:+.2f} ± {best.difference_se:.2f}: {how})."
        )

    def _on_coverage(self) -> list[str]:
        short = [trial for trial in self.trials if trial.falls_short]
        full = [trial for trial in self.trials if trial.full >= 0.1]
        told = [f"{t.title} covers {t.coverage:.1%} ± {t.coverage_se:.1%}" for t in short]
        empty = [f"{t.title} gives {t.full:.0%} of nodes every label" for t in full]
        found = [f"Less than the {1 - self.alpha:.0%} asked for: {', '.join(told)}."] if told else []
        return found + ([f"Sets that say nothing: {', '.join(empty)}."] if empty else [])

    @staticmethod
    def _on_choice(choice: Choice) -> str:
        return f"For {choice.prefer} sets, auto chooses {choice}."

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
    """Try methods on the labels at hand, by cross-fitting, and choose by evidence.

    Parameters
    ----------
    graph, probabilities, ids
        As in `NAPS.calibrate`.
    labels : array of shape (nodes,)
        Integers, −1 where unknown.
    alpha : float
        Error rate.
    hops, decay, direction
        How NAPS, as printed and exact, is to look around; other methods follow edges as they are.
    seed : int
        Seed of the folds and of the methods.
    progress : callable, optional
        Called as ``progress(done, total)`` in methods and folds.
    """
    alpha, seed = check_alpha(alpha), check_seed(seed)
    y = check_labels(labels, size=graph.num_nodes, num_classes=np.iinfo(np.int64).max)
    known = np.flatnonzero(y >= 0)
    if known.size == 0:
        raise InvalidInputError("`labels` must have at least one known label; all are −1")
    given = Given.check(graph, probabilities, y, known, ids)
    settings = Settings(hops=hops, decay=decay, seed=seed, alpha=alpha, direction=check_direction(direction))
    needed = fewest(alpha)
    choices = tuple(Choosing(alpha, prefer, seed).fit(given).choice for prefer in _PREFERENCES)
    if known.size < needed:
        return Trials((), choices, alpha, int(known.size), 0, needed)
    fold = np.random.default_rng(seed).permutation(known.size) % FOLDS
    sizes: list[list[FloatArray]] = [[] for _ in TRIED]
    hits: list[list[FloatArray]] = [[] for _ in TRIED]
    counts = []
    for f in range(FOLDS):
        judged = known[fold == f]
        if judged.size > _JUDGED:
            judged = judged[np.linspace(0, judged.size - 1, _JUDGED).astype(np.int64)]
        counts.append(judged.size)
        rest = Given(graph, given.outputs, given.labels, known[fold != f], given.ids)
        for m, name in enumerate(TRIED):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NapsetsWarning)
                sets = make_method(name, settings).fit(rest).predict(judged, alpha)
            sizes[m].append(sets.sizes.astype(np.float64))
            hits[m].append(sets.contains(y).astype(np.float64))
            if progress is not None:
                progress(f * len(TRIED) + m + 1, FOLDS * len(TRIED))
    place = np.repeat(np.arange(FOLDS), counts)
    of_sizes, of_hits = (np.stack([np.concatenate(parts) for parts in each]) for each in (sizes, hits))
    trials = tuple(
        Trial(
            name,
            title(name),
            *_mean(of_sizes[m], place),
            *_mean(of_hits[m], place),
            float((of_sizes[m] == given.outputs.shape[1]).mean()),
            *_mean(of_sizes[m] - of_sizes[0], place),
            1.0 - alpha,
        )
        for m, name in enumerate(TRIED)
    )
    return Trials(trials, choices, alpha, int(known.size), int(place.size), needed)


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
