"""Whether NAPS is expected to help on a graph, with which hops and decay, and why: the paper's arguments.

The coverage gap of NAPS is at most Σ_k w(k)·n_k·tv_k / (1 + Σ_k w(k)·n_k) (`eq:linearcg`), where n_k calibration nodes
stand k hops away and tv_k is how far their data are from being exchangeable with the node's own. tv cannot be observed;
as in the paper's block-model lemma, the share of nodes with *another label* is used instead. For split conformal
prediction, which takes its calibration nodes from everywhere, that share is 1 − H_rand.

Few calibration nodes cost twice. Coverage may exceed 1−α by the test point's own share of the mass, 1/(1+Σw)
(`eq:lower_upper`); and it fluctuates with the sample by about √(α(1−α)/(1+n)), n being the effective size. Hops and
decay are chosen by the sum of the three, in which a node without support, whose set says nothing, counts as 1. The
verdict compares the first two with those of split conformal prediction.

All this is a guide for choosing settings. It is not part of any guarantee, and the graph alone cannot show how good
sets will be: that depends on the model. With its probabilities, methods are tried on held-out labels
(`napsets.advice.trials`), and the verdict is based on these results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np

from napsets.advice.theory import expected_homophily, gap_bound
from napsets.advice.trials import Trials, try_methods
from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray, as_column, check_index, check_labels
from napsets.checks.frames import label_numbers, named_columns
from napsets.checks.text import html_table, percent
from napsets.checks.values import check_alpha, check_count, check_hops, check_progress, check_seed
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import mean, mean_and_error
from napsets.graph import Direction, Graph, as_graph
from napsets.localisers.base import useful_hops
from napsets.localisers.hops import DECAYS, Sizes, Weighting, hop_weights
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds
from napsets.quantile import ROUNDING

#: Largest number of depths that are compared, to keep the table short.
_DEEPEST = 256

#: Nodes whose hop counts are held at a time.
_CHUNK = 1 << 17


@dataclass(frozen=True)
class HopsCandidate:
    """One choice of hops and decay.

    Attributes
    ----------
    hops, decay
        The choice.
    bound : float
        Mean of the coverage-gap bound, where the distance in total variation is 1 for nodes with different labels,
        otherwise 0.
    bound_se : float
        Its standard error over the labelled nodes that were looked at.
    slack : float
        Mean of 1 / (1 + Σw): how far coverage may be above 1−α because there are few calibration nodes.
    spread : float
        Mean of √(α(1−α) / (1 + effective size)): how far it fluctuates with the sample.
    effective_size : float
        Mean effective size of the neighbourhoods of the nodes to predict.
    short : int
        How many of those nodes lack support: they would get every label.
    short_share : float
        The same as a share.
    """

    hops: int
    decay: str
    bound: float
    bound_se: float
    slack: float
    spread: float
    effective_size: float
    short: int
    short_share: float

    @property
    def cost(self) -> float:
        """Bound, slack and spread together; a node without support counts as 1."""
        if np.isnan(self.bound):
            return 1.0
        return (1.0 - self.short_share) * (self.bound + self.slack + self.spread) + self.short_share


@dataclass(frozen=True, repr=False)
class Recommendation:
    """A recommendation, and the numbers it is based on.

    Attributes
    ----------
    verdict : {"yes", "maybe", "no"}
        Whether to use the neighbourhood of a node. With `evidence`, what the held-out labels say. Without, "yes" is
        never said: "maybe" where the graph is homophilous, "no" where it is not, or where most nodes lack support.
    best : HopsCandidate
        The hops and decay to use.
    candidates : tuple of HopsCandidate
        All candidates.
    alpha : float
        Error rate.
    homophily, homophily_se, expected_homophily : float
        The mean share of labelled neighbours with a node's label, its standard error (NaN where one node alone has
        labelled neighbours), and what random labels give.
    agreement : tuple of float
        The share of labelled nodes with the same label, by hop.
    split_bound : float
        Bound and slack together for split conformal prediction.
    mean_degree : float
        Mean number of neighbours.
    needed : float
        The mass below which a threshold is +∞: (1−α)/α.
    nodes, calibration : int
        How many nodes to predict, and how many with labels.
    evidence : Trials or None
        What methods did on held-out labels, where probabilities were given.
    """

    verdict: Literal["yes", "maybe", "no"]
    best: HopsCandidate
    candidates: tuple[HopsCandidate, ...]
    alpha: float
    homophily: float
    homophily_se: float
    expected_homophily: float
    agreement: tuple[float, ...]
    split_bound: float
    mean_degree: float
    needed: float
    nodes: int
    calibration: int
    evidence: Trials | None = None

    def __str__(self) -> str:
        basis = "what methods did on held-out labels" if self.evidence else "the graph alone"
        reason = self.evidence.reasons()[0] if self.evidence else self._on_homophily()
        return f"{self.verdict} (by {basis}): {reason}"

    def __repr__(self) -> str:
        return f"Recommendation({self})"

    def _repr_html_(self) -> str:
        """Return verdict, reasons and candidates, for notebooks."""
        reasons = [*(self.evidence.reasons() if self.evidence else []), *self.reasons()]
        points = "".join(f"<li>{escape(text)}</li>" for text in reasons)
        rows = [
            (
                "→" * (c == self.best),
                c.hops,
                c.decay,
                f"{c.bound:.3f}",
                f"{c.effective_size:.0f}",
                percent(c.short_share),
            )
            for c in self.candidates
        ]
        table = html_table(("", "hops", "decay", "bound", "effective size", "lack support"), rows)
        return f"<p><b>{self.verdict}</b></p><ul>{points}</ul>{table}"

    def reasons(self) -> list[str]:
        """Say what the graph alone says, point by point; for what labels say, see ``evidence.reasons()``."""
        return [self._on_homophily(), self._on_bounds(), self._on_hops(), self._on_decay(), self._on_support()]

    def resting_on(self, evidence: Trials) -> Recommendation:
        """Return the same with evidence, on which the verdict then rests."""
        return replace(self, evidence=evidence, verdict=evidence.verdict)

    @property
    def favourable(self) -> bool:
        """Whether the bound of NAPS is below that of split conformal prediction, by more than chance."""
        return self.best.bound + self.best.slack + 2.0 * self.best.bound_se < self.split_bound

    @property
    def homophilous(self) -> bool:
        """Whether neighbours agree more often than random labels would, by more than chance as far as it is known."""
        return _is_homophilous(self.homophily, self.homophily_se, self.expected_homophily)

    def _on_homophily(self) -> str:
        if np.isnan(self.homophily):
            return "No labelled node has a labelled neighbour, so homophily cannot be seen in these labels."
        seen = (
            f"Neighbours share a label {percent(self.homophily)} of the time (± {percent(self.homophily_se)}); with "
            f"random labels it would be {percent(self.expected_homophily)}. "
        )
        if np.isnan(self.homophily_se):
            return seen + "This was seen at one node only, too few to say whether the graph is homophilous."
        if self.homophilous:
            return seen + "The graph is homophilous, which is what NAPS relies on."
        return seen + "The graph is not homophilous: near nodes tell no more about a node than far ones do."

    def _on_bounds(self) -> str:
        if np.isnan(self.best.bound):
            return (
                f"The bound on the coverage gap of NAPS is not known: no labelled node has the weight "
                f"{self.needed:.3g} = (1−α)/α of other labelled nodes around it. That of split conformal prediction, "
                f"with the slack of its sample, is {self.split_bound:.3f}."
            )
        verb = "below" if self.favourable else "not clearly below"
        return (
            f"The bound on the coverage gap, with a term for small samples, is {self.best.bound + self.best.slack:.3f} "
            f"for NAPS, {verb} the {self.split_bound:.3f} of split conformal prediction. (The distance of two nodes in "
            f"total variation is taken to be 1 if their labels differ, otherwise 0.)"
        )

    def _on_hops(self) -> str:
        same = [c for c in self.candidates if c.decay == self.best.decay]
        shares = ", ".join(f"{percent(c.short_share)} at K = {c.hops}" for c in same)
        return (
            f"A node has {self.mean_degree:.1f} neighbours on average. Nodes that lack support: {shares}. K = "
            f"{self.best.hops} is the best compromise between nearness and support: the effective size is "
            f"{self.best.effective_size:.0f} on average."
        )

    def _on_decay(self) -> str:
        by_hop = ", ".join(
            f"{'not known' if np.isnan(share) else percent(share, 0)} at hop {k}"
            for k, share in enumerate(self.agreement, start=1)
        )
        if self.best.hops == 1:
            choice = "with one hop there is only one weight"
        elif self.best.decay == "uniform":
            choice = "a larger effective sample is worth more here than nearness, so all hops have the same weight"
        else:
            choice = "nearness is worth more here than a larger effective sample, so nearer nodes have more weight"
        return f"Labelled nodes agree with a node's label: {by_hop}; {choice} ({self.best.decay})."

    def _on_support(self) -> str:
        return (
            f"{self.best.short:,} of {self.nodes:,} nodes ({percent(self.best.short_share)}) get every label, because "
            f"the labelled nodes around them weigh less than the {self.needed:.3g} = (1−α)/α that a finite threshold "
            f"needs at alpha = {self.alpha:g}."
        )


def recommend(
    graph: Any,
    labels: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    nodes: ArrayLike | None = None,
    alpha: float = 0.1,
    max_hops: int = 3,
    sample: int = 2000,
    seed: int = 0,
    ids: ArrayLike | None = None,
    direction: Direction = "out",
    progress: Any = None,
) -> Recommendation:
    """Look at a graph, its known labels and, if given, the model's probabilities, and say which method to use.

    Parameters
    ----------
    graph : Graph or another library's
        The graph whose neighbourhoods would count, as in `NAPS.calibrate`.
    labels : array of shape (nodes,)
        Integers, −1 where unknown, or names of classes as in `NAPS.calibrate`; those known would calibrate.
    probabilities : array of shape (nodes, classes), optional
        What the model says. With them methods are tried on held-out labels, and the verdict is based on that; without,
        on the graph alone, and the verdict is never "yes".
    nodes : array, optional
        What is to be predicted; by default the nodes without a label, or all where there are none.
    alpha : float
        Error rate.
    max_hops : int
        The deepest neighbourhood to consider; of more than 64, as far as the graph goes.
    sample : int
        How many labelled nodes the agreement of labels is measured on.
    seed : int
        Seed of that sample, and of the trials.
    ids : array, optional
        What the nodes are called, as in `NAPS.calibrate`: with them `auto` chooses here what it chooses there.
    direction : {"out", "in", "both"}
        Which way NAPS is to follow the edges of a directed graph, as in `Hops`.
    progress : bool or callable
        True for a line on the terminal, or a function that is called as ``progress(done, total)`` in nodes to predict.
    """
    report = check_progress(progress)
    class_names = None
    if probabilities is not None:
        probabilities, class_names = named_columns(probabilities, None)
    labels = label_numbers(labels, class_names)
    whole = graph if isinstance(graph, Graph) else as_graph(graph, as_column("labels", labels).size or None)
    walked = whole.along(direction)
    alpha, deepest = check_alpha(alpha), check_hops("max_hops", max_hops, minimum=1)
    y = check_labels(labels, size=walked.num_nodes, num_classes=np.iinfo(np.int64).max)
    calibration = np.flatnonzero(y >= 0)
    if calibration.size == 0:
        raise InvalidInputError("`labels` must have at least one known label; all are −1")
    targets = np.flatnonzero(y < 0) if nodes is None else check_index("nodes", nodes, walked.num_nodes)
    targets = targets if targets.size else np.arange(walked.num_nodes)
    rng = np.random.default_rng(check_seed(seed))
    chosen = np.sort(rng.choice(calibration, min(check_count("sample", sample, minimum=1), calibration.size), False))
    depth = max(1, useful_hops(walked, np.concatenate([targets, chosen]), deepest))
    if depth > _DEEPEST:
        raise InvalidInputError(f"`max_hops` must be at most {_DEEPEST} for a graph as deep as this; got {deepest}")
    total, same = _label_counts(walked, y, calibration, chosen, depth)
    weightings = [(k, decay) for k in range(1, depth + 1) for decay in DECAYS if k > 1 or decay == "uniform"]
    short, size = np.zeros(len(weightings), dtype=np.int64), np.zeros(len(weightings))
    index = CalibrationIndex(walked, np.zeros(calibration.size), calibration)
    for start in range(0, targets.size, _CHUNK):
        counts = _hop_counts(index, targets[start : start + _CHUNK], depth)
        for place, (hops, decay) in enumerate(weightings):
            mass, sizes = _mass_and_size(counts, hop_weights(decay, hops))
            short[place] += _lacks(mass, alpha).sum()
            size[place] += sizes.sum()
        if report is not None:
            report(min(start + _CHUNK, targets.size), targets.size)
    candidates = tuple(
        _candidate(
            hops, decay, alpha, total, same,
            effective_size=summed / targets.size, short=lacking, short_share=lacking / targets.size,
        )
        for (hops, decay), lacking, summed in zip(weightings, short.tolist(), size.tolist(), strict=True)
    )  # fmt: skip
    best = min(candidates, key=lambda candidate: candidate.cost)
    random = expected_homophily(y)
    met = total[:, 0] > 0
    homophily, homophily_se = mean_and_error(same[met, 0] / total[met, 0])
    by_hop = total.sum(axis=0)
    agreement = np.divide(same.sum(axis=0), by_hop, out=np.full(depth, np.nan), where=by_hop > 0)
    recommendation = Recommendation(
        verdict="maybe" if _is_homophilous(homophily, homophily_se, random) and best.short_share < 0.5 else "no",
        best=best,
        candidates=candidates,
        alpha=alpha,
        homophily=homophily,
        homophily_se=homophily_se,
        expected_homophily=random,
        agreement=tuple(agreement.tolist()),
        split_bound=1.0 - random * calibration.size / (calibration.size + 1.0),
        mean_degree=walked.num_edges / max(walked.num_nodes, 1),
        needed=(1.0 - alpha) / alpha,
        nodes=int(targets.size),
        calibration=int(calibration.size),
    )
    if probabilities is None:
        return recommendation
    trials = try_methods(
        whole, probabilities, y, alpha=alpha, hops=best.hops, decay=best.decay, direction=direction, seed=seed, ids=ids
    )
    return recommendation.resting_on(trials)


def _is_homophilous(homophily: float, error: float, random: float) -> bool:
    """Whether neighbours agree more often than at random: by two standard errors, where there is one."""
    return homophily - 2.0 * (0.0 if np.isnan(error) else error) > random


def _candidate(hops: int, decay: str, alpha: float, total: IntArray, same: IntArray, **near: Any) -> HopsCandidate:
    """Return one choice, given what `_label_counts` returns of labelled nodes and what is `near` those to predict."""
    weights, counts = hop_weights(decay, hops), total[:, :hops]
    other = np.divide(counts - same[:, :hops], counts, out=np.zeros(counts.shape), where=counts > 0)
    mass, size = _mass_and_size(counts, weights)
    held = ~_lacks(mass, alpha)
    bound, bound_se = mean_and_error(gap_bound(weights, counts, other)[held])
    slack, spread = 1.0 / (1.0 + mass[held]), np.sqrt(alpha * (1.0 - alpha) / (1.0 + size[held]))
    return HopsCandidate(hops, decay, bound, bound_se, mean(slack), mean(spread), **near)


def _lacks(mass: FloatArray, alpha: float) -> BoolArray:
    # The largest score gathers all of the mass: the threshold is finite just where that is enough.
    lacks: BoolArray = mass < (1.0 - alpha) * (1.0 + mass) * (1.0 - ROUNDING)
    return lacks


def _label_counts(
    graph: Graph, labels: IntArray, calibration: IntArray, nodes: IntArray, hops: int
) -> tuple[IntArray, IntArray]:
    """Return, by hop, how many calibration nodes are around each node, and how many of those have its label."""
    total = _hop_counts(CalibrationIndex(graph, np.zeros(calibration.size), calibration), nodes, hops)
    same = np.zeros_like(total)
    for label in np.unique(labels[nodes]):
        alike = calibration[labels[calibration] == label]
        rows = labels[nodes] == label
        same[rows] = _hop_counts(CalibrationIndex(graph, np.zeros(alike.size), alike), nodes[rows], hops)
    return total, same


def _hop_counts(index: CalibrationIndex, nodes: IntArray, hops: int) -> IntArray:
    """Return how many calibration nodes are around each node, by hop."""
    return neighbourhood_thresholds(index, nodes, np.ones(hops), 0.5).hop_counts


def _mass_and_size(counts: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    sizes = Sizes(counts, np.zeros(counts.shape[0], dtype=np.int64))
    return counts[:, : weights.size].astype(np.float64) @ weights, sizes.effective_size(Weighting(weights))
