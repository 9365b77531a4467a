"""Is NAPS expected to help here, with which hops and decay, and why: the paper's arguments on one's own graph.

The coverage gap of NAPS is at most Σ_k w(k)·n_k·tv_k / (1 + Σ_k w(k)·n_k) (`eq:linearcg`), where n_k calibration nodes
stand k hops away and tv_k is how far their data are from being exchangeable with the node's own. tv cannot be seen; as
in the paper's block-model lemma, the share of nodes with *another label* stands for it. For split conformal prediction,
which takes its calibration nodes from everywhere, that share is 1 − H_rand.

Few calibration nodes cost twice. Coverage may exceed 1−α by the test point's own share of the mass, 1/(1+Σw)
(`eq:lower_upper`); and it fluctuates with the sample by about √(α(1−α)/(1+n)), n being the effective size. Hops and
decay are chosen by the sum of the three, in which a node without support, whose set says nothing, counts as 1. The
verdict compares the first two with those of split conformal prediction.

All this is a guide for choosing settings. It is no part of any guarantee, and the graph alone cannot tell how good sets
will be: that depends on the model. With its probabilities, methods are tried on held-out labels
(`napsets.advice.trials`), and the verdict rests on what they did there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np

from napsets.advice.theory import coverage_gap_bound, expected_homophily
from napsets.advice.trials import Trials, try_methods
from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_column,
    check_alpha,
    check_count,
    check_hops,
    check_index,
    check_labels,
    check_seed,
)
from napsets.errors import InvalidInputError
from napsets.graph import Direction, Graph, as_graph
from napsets.localisers.decay import DECAYS, hop_weights
from napsets.localisers.depth import useful_hops
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds
from napsets.quantile import ROUNDING, effective_size

__all__ = ["Candidate", "Recommendation", "recommend"]

#: Depths that are compared at most; nobody would read a longer table.
_DEEPEST = 256

#: Nodes whose hop counts are held at a time.
_CHUNK = 1 << 17


@dataclass(frozen=True)
class Candidate:
    """One choice of hops and decay.

    Attributes
    ----------
    hops, decay
        The choice.
    bound : float
        Mean of the coverage-gap bound, with "has another label" for the distance in total variation.
    bound_se : float
        Its standard error over the labelled nodes that were looked at.
    slack : float
        Mean of 1 / (1 + Σw): how far coverage may lie above 1−α for want of calibration nodes.
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
    """What to do, and the numbers it rests on.

    Attributes
    ----------
    verdict : {"yes", "maybe", "no"}
        Whether to look at the neighbourhood of a node. With `evidence`, what the held-out labels say. Without, "yes" is
        never said: "maybe" where the graph is homophilous, "no" where it is not, or where most nodes lack support.
    best : Candidate
        The hops and decay to use.
    candidates : tuple of Candidate
        All that were looked at.
    alpha : float
        Error rate.
    homophily, homophily_se, expected_homophily : float
        The mean share of labelled neighbours with a node's label, its standard error, and what random labels give.
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
    best: Candidate
    candidates: tuple[Candidate, ...]
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
        rests = "what methods did on held-out labels" if self.evidence else "the graph alone"
        told = self.evidence.reasons()[0] if self.evidence else self._on_homophily()
        return f"{self.verdict} (by {rests}): {told}"

    def __repr__(self) -> str:
        return f"Recommendation({self})"

    def _repr_html_(self) -> str:
        """Return verdict, reasons and candidates, for notebooks."""
        told = [*(self.evidence.reasons() if self.evidence else []), *self.reasons()]
        points = "".join(f"<li>{escape(text)}</li>" for text in told)
        head = "".join(f"<th>{name}</th>" for name in ("", "hops", "decay", "bound", "effective size", "lack support"))
        rows = "".join(
            f"<tr><td>{'→' if one == self.best else ''}</td><td>{one.hops}</td><td>{escape(one.decay)}</td>"
            f"<td>{one.bound:.3f}</td><td>{one.effective_size:.0f}</td><td>{one.short_share:.1%}</td></tr>"
            for one in self.candidates
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<p><b>{self.verdict}</b></p><ul>{points}</ul>{table}"

    def reasons(self) -> list[str]:
        """Say what the graph alone says, a sentence or two a point; for what labels say, see ``evidence.reasons()``."""
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
        """Whether neighbours agree more often than random labels would, by more than chance."""
        return self.homophily - 2.0 * self.homophily_se > self.expected_homophily

    def _on_homophily(self) -> str:
        if np.isnan(self.homophily):
            return "No labelled node has a labelled neighbour, so homophily cannot be seen in these labels."
        seen = (
            f"Neighbours share a label {self.homophily:.1%} of the time (± {self.homophily_se:.1%}); with random "
            f"labels it would be {self.expected_homophily:.1%}. "
        )
        if self.homophilous:
            return seen + "The graph is homophilous, which is what NAPS relies on."
        return seen + "The graph is not homophilous: near nodes tell no more about a node than far ones do."

    def _on_bounds(self) -> str:
        verb = "below" if self.favourable else "not clearly below"
        return (
            f"Taking 'has another label' for the distance in total variation, the bound on the coverage gap and the "
            f"slack of a small sample come to {self.best.bound + self.best.slack:.3f} with NAPS, {verb} the "
            f"{self.split_bound:.3f} of split conformal prediction."
        )

    def _on_hops(self) -> str:
        same = [c for c in self.candidates if c.decay == self.best.decay]
        shares = ", ".join(f"{c.short_share:.1%} at K = {c.hops}" for c in same)
        return (
            f"A node has {self.mean_degree:.1f} neighbours on average. Nodes that lack support: {shares}. K = "
            f"{self.best.hops} weighs nearness against these and gives an effective size of "
            f"{self.best.effective_size:.0f} on average."
        )

    def _on_decay(self) -> str:
        by_hop = ", ".join(
            "–" if np.isnan(share) else f"{share:.0%} at hop {k}" for k, share in enumerate(self.agreement, start=1)
        )
        if self.best.hops == 1:
            choice = "with one hop there is nothing to weigh against it"
        elif self.best.decay == "uniform":
            choice = "a larger effective sample is worth more here than nearness, so all hops weigh alike"
        else:
            choice = "nearness is worth more here than a larger effective sample, so nearer nodes weigh more"
        return f"Labelled nodes agree with a node's label: {by_hop}; {choice} ({self.best.decay})."

    def _on_support(self) -> str:
        return (
            f"{self.best.short:,} of {self.nodes:,} nodes ({self.best.short_share:.1%}) have less than the weight "
            f"{self.needed:.3g} = (1−α)/α around them that a finite threshold needs at alpha = {self.alpha:g}; they "
            f"get every label."
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
        Integers, −1 where unknown; those known would calibrate.
    probabilities : array of shape (nodes, classes), optional
        What the model says. With them methods are tried on held-out labels, and the verdict rests on that; without, on
        the graph alone, which cannot say "yes".
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
    progress : callable, optional
        Called as ``progress(done, total)`` in nodes to predict.
    """
    given = graph if isinstance(graph, Graph) else as_graph(graph, as_column("labels", labels).size or None)
    graph = given.along(direction)
    alpha, asked_hops = check_alpha(alpha), check_hops("max_hops", max_hops, minimum=1)
    y = check_labels(labels, size=graph.num_nodes, num_classes=np.iinfo(np.int64).max)
    calibration = np.flatnonzero(y >= 0)
    if calibration.size == 0:
        raise InvalidInputError("`labels` must have at least one known label; all are −1")
    asked = np.flatnonzero(y < 0) if nodes is None else check_index("nodes", nodes, graph.num_nodes)
    asked = asked if asked.size else np.arange(graph.num_nodes)
    rng = np.random.default_rng(check_seed(seed))
    chosen = np.sort(rng.choice(calibration, min(check_count("sample", sample, minimum=1), calibration.size), False))
    max_hops = max(1, useful_hops(graph, np.concatenate([asked, chosen]), asked_hops))
    if max_hops > _DEEPEST:
        raise InvalidInputError(f"`max_hops` must be at most {_DEEPEST} where the graph is so deep; got {asked_hops}")
    total, same = _label_counts(graph, y, calibration, chosen, max_hops)
    support = _Support(alpha, max_hops)
    index = CalibrationIndex(graph, np.zeros(calibration.size), calibration)
    for start in range(0, asked.size, _CHUNK):
        support.add(_hop_counts(index, asked[start : start + _CHUNK], max_hops))
        if progress is not None:
            progress(min(start + _CHUNK, asked.size), asked.size)
    candidates = tuple(
        support.candidate(hops, decay, total, same)
        for hops in range(1, max_hops + 1)
        for decay in (DECAYS if hops > 1 else ["uniform"])
    )
    best = min(candidates, key=lambda candidate: candidate.cost)
    random = expected_homophily(y)
    split = 1.0 - random * calibration.size / (calibration.size + 1.0)
    met = total[:, 0] > 0
    homophily, homophily_se = _mean(same[met, 0] / total[met, 0])
    found = Recommendation(
        verdict=_verdict(best, homophily - 2.0 * homophily_se > random),
        best=best,
        candidates=candidates,
        alpha=alpha,
        homophily=homophily,
        homophily_se=homophily_se,
        expected_homophily=random,
        agreement=tuple(_share(same[:, k].sum(), total[:, k].sum()) for k in range(max_hops)),
        split_bound=split,
        mean_degree=graph.num_edges / max(graph.num_nodes, 1),
        needed=(1.0 - alpha) / alpha,
        nodes=int(asked.size),
        calibration=int(calibration.size),
    )
    if probabilities is None:
        return found
    return found.resting_on(
        try_methods(
            given,
            probabilities,
            y,
            alpha=alpha,
            hops=best.hops,
            decay=best.decay,
            direction=direction,
            seed=check_seed(seed),
            ids=ids,
        )
    )


class _Support:
    """Sums over the nodes to predict, for each choice of hops and decay."""

    def __init__(self, alpha: float, max_hops: int) -> None:
        self.alpha = alpha
        self.weights = {(k, decay): hop_weights(decay, k) for k in range(1, max_hops + 1) for decay in DECAYS}
        self.short = dict.fromkeys(self.weights, 0)
        self.size = dict.fromkeys(self.weights, 0.0)
        self.nodes = 0

    def add(self, counts: IntArray) -> None:
        self.nodes += counts.shape[0]
        for key, weights in self.weights.items():
            mass, size = _mass_and_size(counts, weights)
            self.short[key] += int(self._lacks(mass).sum())
            self.size[key] += float(size.sum())

    def _lacks(self, mass: FloatArray) -> Any:
        # The largest score gathers all of the mass: the threshold is finite just where that is enough.
        return mass < (1.0 - self.alpha) * (1.0 + mass) * (1.0 - ROUNDING)

    def candidate(self, hops: int, decay: str, total: IntArray, same: IntArray) -> Candidate:
        key = hops, decay
        weights, counts = self.weights[key], total[:, :hops]
        other = np.divide(counts - same[:, :hops], counts, out=np.zeros(counts.shape), where=counts > 0)
        mass, size = _mass_and_size(counts, weights)
        held = ~self._lacks(mass)
        bounds = np.atleast_1d(coverage_gap_bound(weights, counts, other))
        bound, bound_se = _mean(bounds[held])
        return Candidate(
            hops=hops,
            decay=decay,
            bound=bound,
            bound_se=bound_se,
            slack=_mean(1.0 / (1.0 + mass[held]))[0],
            spread=_mean(np.sqrt(self.alpha * (1.0 - self.alpha) / (1.0 + size[held])))[0],
            effective_size=self.size[key] / self.nodes,
            short=self.short[key],
            short_share=self.short[key] / self.nodes,
        )


def _verdict(best: Candidate, homophilous: bool) -> Literal["maybe", "no"]:
    """Return what the graph alone can say."""
    return "maybe" if homophilous and best.short_share < 0.5 else "no"


def _label_counts(
    graph: Graph, labels: IntArray, calibration: IntArray, nodes: IntArray, hops: int
) -> tuple[IntArray, IntArray]:
    """Return, by hop, how many calibration nodes each node sees, and how many of those have its label."""
    total = _hop_counts(CalibrationIndex(graph, np.zeros(calibration.size), calibration), nodes, hops)
    same = np.zeros_like(total)
    for label in np.unique(labels[nodes]):
        alike = calibration[labels[calibration] == label]
        rows = labels[nodes] == label
        same[rows] = _hop_counts(CalibrationIndex(graph, np.zeros(alike.size), alike), nodes[rows], hops)
    return total, same


def _hop_counts(index: CalibrationIndex, nodes: IntArray, hops: int) -> IntArray:
    return neighbourhood_thresholds(index, nodes, np.ones(hops), 0.5).hop_counts


def _mass_and_size(counts: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    near = counts[:, : weights.size]
    return near.astype(np.float64) @ weights, effective_size(weights[None], near)[0]


def _share(part: int, whole: int) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: FloatArray) -> tuple[float, float]:
    """Return a mean and its standard error."""
    if values.size == 0:
        return float("nan"), float("nan")
    return float(values.mean()), float(values.std() / np.sqrt(values.size))
