"""A choice by evidence: which score and which localiser, judged on reference labels alone.

The labels are split as for any exact level. The reference part chooses; the part kept apart sets the level, so that the
guarantee holds whatever was chosen. The choice has two steps.

1. *The score*, by the size of its sets: the mean size on nodes outside the reference at the threshold that the
   reference scores give. It reads reference labels only. Informed scores also make coverage more even, so one of them
   is taken unless its sets are clearly larger than those of the plain score.
2. *The localiser*, by the pinball loss ρ(S_v − τ_v) of leave-one-out thresholds on reference nodes: thresholds are
   estimates of a conditional quantile, and this is their proper loss. All hop weightings come from one search. The
   simpler one, *everyone*, is kept unless the gain is more than three paired standard errors: the best of a dozen
   candidates beats it by one or two where nothing is to be gained. Where edges have lengths, path lengths are tried
   too, with radii that hold some tens or hundreds of labels. Where sets are to be small, whatever their evenness,
   one threshold for all is best, and this step is left out; so it is with few reference nodes.

With few labels every split costs more than it brings: plain split conformal prediction on all of them is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_alpha, check_count, check_flag, check_seed
from napsets.checks.names import choose
from napsets.errors import InvalidInputError
from napsets.groups import ByClass, Clustered, make_groups
from napsets.levels import Exact, Nominal, fewest_ranks
from napsets.localisers import (
    Cut,
    Everyone,
    Hops,
    Localiser,
    PathLengths,
    Reference,
    near_radii,
    share_length_search,
    share_search,
)
from napsets.methods.given import Given, Scored
from napsets.methods.method import Calibrated, Method, check_given
from napsets.quantile import weighted_quantile
from napsets.scores import APS, THR, BoundIntervals, ByLabel, Informed, InformedIntervals, Sharpened, learns, make_score
from napsets.scores.by_label import BoundByLabel
from napsets.scores.informed import BoundInformed, evidence_of
from napsets.scores.residuals import IntervalScore

__all__ = ["Candidate", "Choice", "Choosing"]

Prefer = Literal["even", "small"]

#: Below so many labels none is kept apart.
FEWEST = 100
#: From so many labels on, labels may be judged partly by nodes of their own class.
FEWEST_BY_LABEL = 1000
#: Larger by more than this, sets of another score are not worth their evenness.
TOLERANCE = 1.01
#: How pronounced informed probabilities are made, with few labels and with many: with few, thresholds are uncertain and
#: sets large, and there is more to gain in size than to lose in evenness.
SHARPNESS = (2.0, 1.6)
_MIXES = (0.5, 0.25)
#: Paired standard errors by which a less simple candidate must win.
ERRORS = 3.0
#: Reference nodes without which neighbourhoods cannot be told apart.
_FEWEST_LOCAL = 300
#: Reference nodes, and other nodes, that candidates are judged on at the most.
_JUDGED, _SIZED = 4000, 20_000
_RESAMPLES = 50
#: Reference nodes that half of them have within a radius that is tried, where edges have lengths.
_COUNTS = (30, 100, 300)


@dataclass(frozen=True)
class Candidate:
    """Something that could have been chosen, and what spoke for it.

    Attributes
    ----------
    name : str
        What it is, in words.
    step : {"score", "localiser"}
        Which of the two choices it belongs to.
    value : float
        Expected mean size of the sets (scores), or pinball loss (localisers): small is good.
    difference, se : float
        Its value less that of the plain one, and the standard error of that difference (paired).
    chosen : bool
        Whether it was.
    """

    name: str
    step: str
    value: float
    difference: float = 0.0
    se: float = 0.0
    chosen: bool = False


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, against what, by how much, with which uncertainty.

    Attributes
    ----------
    method : Method
        The method chosen.
    reason : str
        One line on why.
    candidates : tuple of Candidate
        All that were looked at, scores first.
    prefer : {"even", "small"}
        What was asked for.
    alpha : float
        The error rate that the choice is for.
    labels, reference : int
        Labelled nodes, and those of them that chose.
    exponents : Exponents or None
        How much each source counts, where labels around a node are evidence.
    """

    method: Method
    reason: str
    candidates: tuple[Candidate, ...]
    prefer: Prefer
    alpha: float
    labels: int
    reference: int
    exponents: Any = None

    @property
    def name(self) -> str:
        """What was chosen, in words."""
        chosen = [candidate.name for candidate in self.candidates if candidate.chosen]
        return ", ".join(chosen) if chosen else "plain split"

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"

    def __repr__(self) -> str:
        return f"Choice({self})"

    def rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary a candidate, for tables and JSON."""
        names = ("step", "name", "value", "difference", "se", "chosen")
        return [{name: getattr(candidate, name) for name in names} for candidate in self.candidates]

    def _repr_html_(self) -> str:
        """Return the candidates as a table, for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in ("", "candidate", "size or loss", "against the plain one"))
        rows = "".join(
            f"<tr><td>{'→' if one.chosen else ''}</td><td>{escape(one.name)}</td><td>{one.value:.4g}</td>"
            f"<td>{one.difference:+.4f} ± {one.se:.4f}</td></tr>"
            for one in self.candidates
        )
        return f"<p>{escape(str(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class Choosing:
    """The method that chooses among methods; calibrated, it is the one chosen, with its `choice`.

    Parameters
    ----------
    alpha : float
        The error rate that the choice is made for; sets may be asked for at any other.
    prefer : {"even", "small"}
        Sets that are small *and* evenly reliable (APS), or as small as they can be (THR).
    seed, allow_empty
        As in `Method`.
    max_hops : int
        How far localisers may look, from 0 to 4.
    score : Score or str, optional
        For regression, the score of the intervals: "cqr", "absolute" or "normalised".
    by : Groups, str or array, optional
        The groups of a `Method`. The choice is made for all nodes together; then each group has a level of its own.
    """

    alpha: float = 0.1
    prefer: Prefer = "even"
    seed: int = 0
    allow_empty: bool = True
    max_hops: int = 3
    by: Any = None
    score: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", make_groups(self.by))
        if self.score is not None:
            object.__setattr__(self, "score", make_score(self.score))
            if not isinstance(self.score, IntervalScore):
                raise InvalidInputError(
                    f"`score` must be a score of numbers, or None for labels, whose score is chosen; got "
                    f"{type(self.score).__name__}"
                )
            if isinstance(self.by, ByClass | Clustered):
                raise InvalidInputError(
                    f"`by` must group nodes with a score of numbers, which has no classes; got {type(self.by).__name__}"
                )
        check_alpha(self.alpha)
        choose("prefer", self.prefer, {"even": 1, "small": 1})
        check_seed(self.seed)
        check_flag("allow_empty", self.allow_empty)
        check_count("max_hops", self.max_hops, maximum=4)

    def calibrate(
        self,
        graph: Any,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Calibrated:
        """Choose, and calibrate what was chosen; arguments as in `NAPS.calibrate`."""
        return self.fit(check_given(self.score, graph, probabilities, labels, calibration, ids, class_names))

    def fit(self, given: Given) -> Calibrated:
        """Do what `calibrate` does with arguments that were checked."""
        if given.graph is None:
            raise InvalidInputError("`graph` must be given to a method that looks at neighbourhoods; got None")
        plain = self.score or (APS() if self.prefer == "even" else THR())
        labels = given.calibration.size
        fewest = max(FEWEST, 2 * fewest_ranks(self.alpha) + 1)
        if labels < fewest:
            method = self._method(plain, Everyone(), Nominal())
            reason = (
                f"{labels} labels are too few to choose by, or to keep half of them apart (from {fewest} on they would "
                f"be enough); all of them set one threshold"
            )
            if self.by is not None:
                reason += ", without groups, which would be learned from labels" if learns(self.by) else " a group"
            choice = Choice(method, reason, (), self.prefer, self.alpha, labels, labels)
            return replace(method.fit(given), choice=choice)
        scores, about_scores = self._choose_score(given, plain)
        localiser, about_localisers = self._choose_localiser(scores)
        method = self._method(scores.score, localiser, Exact())
        candidates = (*about_scores, *about_localisers)
        informed = evidence_of(scores.bound)
        choice = Choice(
            method,
            _reason(candidates, informed, numbers=self.score is not None)
            + ("" if self.by is None else "; then a level for each group"),
            candidates,
            self.prefer,
            self.alpha,
            labels,
            scores.reference.nodes.size,
            None if informed is None else informed.exponents,
        )
        return replace(method.on(scores), choice=choice)

    def _method(self, score: Any, localiser: Localiser, level: Any) -> Method:
        # Groups that learn from labels need some of which no level is made: where all are needed, there are none.
        groups = self.by if level.keeps_apart or not learns(self.by) else None
        return Method(score, localiser, level, self.seed, self.allow_empty, groups)

    # -- the score -----------------------------------------------------------------------------------------------------

    def _choose_score(self, given: Given, plain: Any) -> tuple[Scored, list[Candidate]]:
        """Return the nodes scored by the score that is chosen, and what spoke for and against each."""
        sizes = _Sizes(self.alpha, self.seed)
        start = given.scored(plain, Exact(), self.seed)
        sizes.add("the model alone", start)
        many = given.calibration.size >= FEWEST_BY_LABEL
        informed: Any
        if self.score is not None:
            informed = InformedIntervals(self.score, low=min(self.alpha / 2.0, 0.499))
        else:
            informed = Informed(Sharpened(APS(), SHARPNESS[many]) if self.prefer == "even" else THR())
        evident = given.scored(informed, Exact(), self.seed)
        sizes.add("labels around as evidence", evident)
        chosen = int(sizes.value[1] <= TOLERANCE * sizes.value[0])
        if chosen and many and self.prefer == "even" and self.score is None:
            for mix in _MIXES:
                ranked = _by_label(given, evident, informed, mix)
                sizes.add(f"labels around as evidence, classes judged by their own kind ({mix:g})", ranked)
                if sizes.value[-1] <= TOLERANCE * sizes.value[0]:
                    chosen = len(sizes.value) - 1
                    break
        return sizes.scored[chosen], sizes.candidates(chosen)

    # -- the localiser -------------------------------------------------------------------------------------------------

    def _choose_localiser(self, scored: Scored) -> tuple[Localiser, list[Candidate]]:
        """Return the localiser with the smallest pinball loss on reference nodes, or the simplest if it is close."""
        reference = scored.reference
        rows = _some(reference.nodes.size, _JUDGED)
        nodes, scores = reference.nodes[rows], reference.scores[rows]
        cut = [Cut(1.0 - self.alpha)]
        everyone = Everyone().fit(reference).thresholds(nodes, cut).values[0]
        local = self.prefer == "even" and reference.nodes.size >= _FEWEST_LOCAL
        localisers: list[tuple[str, Localiser]] = []
        taus = [everyone]
        if local:
            kinds: list[tuple[list[tuple[str, Localiser]], Any]] = [
                (_by_hops(self.max_hops, alike=self.score is None), share_search),
                (_by_lengths(reference) if self.max_hops else [], share_length_search),
            ]
            for kind, share in kinds:
                locals_ = [localiser.fit(reference) for _, localiser in kind]
                shared = share(locals_, nodes, [cut] * len(locals_)) if locals_ else []
                taus += [one.values[0] for one in shared]
                localisers += kind
        names = ["everyone alike", *(name for name, _ in localisers)]
        largest = float(reference.scores.max())
        losses = np.stack([_pinball(scores - np.minimum(tau, largest), 1.0 - self.alpha) for tau in taus])
        means = losses.mean(axis=1)
        best = int(means.argmin())
        gain = losses[best] - losses[0]
        se = float(gain.std(ddof=1)) / math.sqrt(gain.size) if gain.size > 1 else math.inf
        chosen = best if -float(gain.mean()) > ERRORS * se else 0
        candidates = []
        for c, name in enumerate(names):
            apart = losses[c] - losses[0]
            error = float(apart.std(ddof=1)) / math.sqrt(apart.size) if apart.size > 1 else math.inf
            candidates.append(Candidate(name, "localiser", float(means[c]), float(apart.mean()), error, chosen == c))
        return (Everyone() if chosen == 0 else localisers[chosen - 1][1]), candidates


def _by_label(given: Given, scored: Scored, score: Any, mix: float) -> Scored:
    """Rank scores that are there already partly by label: what scoring anew with `ByLabel` would give."""
    labels, nodes, apart = given.labels, scored.reference.nodes, scored.apart
    bound = BoundByLabel(scored.bound, scored.reference.scores, labels[nodes], mix)
    ranked = replace(scored.reference, scores=bound.at(nodes, labels[nodes]))
    return replace(
        scored, score=ByLabel(score, mix), bound=bound, reference=ranked, apart_scores=bound.at(apart, labels[apart])
    )


class _Sizes:
    """Expected sizes of the sets of several scores of the same nodes, at the thresholds that their references give."""

    def __init__(self, alpha: float, seed: int) -> None:
        self.alpha = alpha
        self.rng = np.random.default_rng(seed)
        self.names: list[str] = []
        self.scored: list[Scored] = []
        self.value: list[float] = []
        self.resampled: list[FloatArray] = []
        self._draws: Any = None

    def add(self, name: str, scored: Scored) -> None:
        reference = scored.reference
        rest = np.ones(reference.num_nodes, dtype=bool)
        rest[reference.nodes] = False
        nodes = np.flatnonzero(rest)
        nodes = nodes[_some(nodes.size, _SIZED)]
        size_at = (
            _widths_at(scored.bound, nodes)
            if isinstance(scored.bound, BoundIntervals)
            else _sizes_at(scored.bound.matrix(nodes))
        )

        def size(scores: FloatArray) -> float:
            return size_at(weighted_quantile(scores, np.ones(scores.size), self.alpha))

        if self._draws is None:  # the same for all scores: differences are paired
            count = reference.nodes.size
            self._draws = [self.rng.integers(count, size=count) for _ in range(_RESAMPLES)]
        self.names.append(name)
        self.scored.append(scored)
        self.value.append(size(reference.scores))
        self.resampled.append(np.array([size(reference.scores[draw]) for draw in self._draws]))

    def against(self, one: int, other: int) -> tuple[float, float]:
        """Return by how much the other's sets are larger, and the bootstrap's standard error of that."""
        apart = self.resampled[other] - self.resampled[one]
        return self.value[other] - self.value[one], float(apart.std(ddof=1))

    def candidates(self, chosen: int) -> list[Candidate]:
        return [
            Candidate(name, "score", self.value[c], *self.against(0, c), chosen == c)
            for c, name in enumerate(self.names)
        ]


def _sizes_at(matrix: FloatArray) -> Callable[[float], float]:
    """Return how many labels sets have on average at a threshold: so many scores are at most that."""
    entries = np.sort(matrix, axis=None)
    return lambda tau: float(np.searchsorted(entries, tau, side="right")) / max(len(matrix), 1)


def _widths_at(bound: BoundIntervals, nodes: IntArray) -> Callable[[float], float]:
    """Return how wide intervals are on average at a threshold."""

    def mean_width(tau: float) -> float:
        low, high = bound.interval(nodes, np.full(nodes.size, tau))
        return float((high - low).mean()) if nodes.size else 0.0

    return mean_width


def _by_hops(max_hops: int, *, alike: bool) -> list[tuple[str, Localiser]]:
    """Return the localisers to look at: hops, decays, every other hop (heterophily), those alike, each pooled.

    Numbers have no predicted label that could be alike.
    """
    found: list[tuple[str, Localiser]] = []
    if max_hops and alike:
        found.append(("1 hop and those alike, pooled 10", Hops(1, pool=10.0, alike=30.0)))
    for hops in range(1, max_hops + 1):
        near = f"{hops} hop{'s' * (hops > 1)}"
        found += [(f"{near}, pooled {pool}", Hops(hops, pool=float(pool))) for pool in (10, 30, 100)]
        if hops > 1:
            found += [
                (f"{near}, {decay}, pooled 30", Hops(hops, decay, pool=30.0)) for decay in ("hyperbolic", "geometric")
            ]
        if hops in (2, 4):
            every = tuple(float(k % 2 == 0) for k in range(1, hops + 1))
            found.append((f"every other of {near}, pooled 30", Hops(hops, every, pool=30.0)))
    return found


def _by_lengths(reference: Reference) -> list[tuple[str, Localiser]]:
    """Return those by path length, where edges have lengths: radii by how many reference nodes are within, pooled."""
    if reference.graph is None or reference.graph.lengths is None:
        return []
    found: list[tuple[str, Localiser]] = []
    for count, radius in zip(_COUNTS, near_radii(reference, _COUNTS), strict=True):
        found += [
            (f"paths up to {radius:.3g} ({count} labels), {decay}, pooled 30", PathLengths(radius, decay, pool=30.0))
            for decay in ("uniform", "gaussian")
        ]
    return found


def _pinball(errors: FloatArray, level: float) -> FloatArray:
    """Return ρ(S − τ) = max(level·(S − τ), (level − 1)·(S − τ))."""
    return np.maximum(level * errors, (level - 1.0) * errors)


def _some(size: int, most: int) -> IntArray:
    """Return at most so many of 0..size, evenly spread: no more are needed to judge by."""
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(np.int64)


def _reason(candidates: Sequence[Candidate], informed: BoundInformed | None, *, numbers: bool = False) -> str:
    score = next(one for one in candidates if one.step == "score" and one.chosen)
    plain = next(one for one in candidates if one.step == "score")
    if score is plain:
        told = f"the labels around a node would not make {'intervals' if numbers else 'sets'} smaller"
    else:
        size = f"intervals {score.value:.3g} wide" if numbers else f"sets of {score.value:.2f} labels"
        told = (
            f"{size} expected against {plain.value:.{'3g' if numbers else '2f'}} of the model alone "
            f"({score.difference:+.2f} ± {score.se:.2f})"
        )
    if informed is not None:
        counts = np.bincount(informed.reference.labels)
        told += f"; {informed.exponents.explain(counts / counts.sum())}"
    local = [one for one in candidates if one.step == "localiser"]
    chosen = next(one for one in local if one.chosen)
    if len(local) == 1:
        return f"{told}; one threshold for all"
    if chosen is not local[0]:
        gain = -chosen.difference / (chosen.value - chosen.difference)
        return f"{told}; thresholds by neighbourhood are {gain:.1%} nearer"
    return f"{told}; thresholds by neighbourhood gain nothing that is sure"
