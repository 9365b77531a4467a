"""The automatic choice of a score and a localiser, based on the reference labels only.

The labels are split as for any exact level. The choice uses the reference part; the held-out part sets the
level, so that the guarantee holds whatever was chosen. The choice has two steps.

1. *The score*, by the size of its sets: the mean size on nodes outside the reference at the threshold that the
   reference scores give. It reads reference labels only. Informed scores also make coverage more even, so one of them
   is taken unless its sets are larger than those of the plain score; of these, the one with the most class-wise ranks.
2. *The localiser*, by the pinball loss ρ(S_v − τ_v) of leave-one-out thresholds on reference nodes: thresholds are
   estimates of a conditional quantile, and this is their proper loss. All hop weightings come from one search. The
   simpler one, *everyone*, is kept unless the gain is more than three paired standard errors: the best of a dozen
   candidates is better by one or two even if there is nothing to gain. Where edges have lengths, path lengths are tried
   too, with radii that hold some tens or hundreds of labels. If sets should be small, whatever their evenness,
   one threshold for all is best, and this step is skipped; also with few reference nodes. Where labels are evidence,
   the gain must also be at least 2 %.

With few labels every split costs more than it gains: split conformal prediction on all of them is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, IntArray
from napsets.checks.text import percent
from napsets.checks.values import Record, Values, check_alpha, check_count, check_flag, check_seed, choose
from napsets.errors import InvalidInputError
from napsets.groups import Groups, describe_groups, make_groups, rebuild_groups
from napsets.kernels.threads import complete
from napsets.levels import Exact, Level, Nominal, fewest_ranks, rank_place
from napsets.localisers import (
    Cut,
    Everyone,
    Hops,
    Localiser,
    PathLengths,
    Reference,
    near_radii,
    share_search,
)
from napsets.methods.calibratable import Calibratable
from napsets.methods.calibrated import Calibrated
from napsets.methods.choice import Candidate, Choice, Prefer, explain_choice, pieces_of_evidence
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.method import Method, check_groups_suit
from napsets.scores import APS, SCORES, THR, ByLabel, Informed, Score, Sharpened, learns, make_score
from napsets.scores.by_label import BoundByLabel
from napsets.scores.evidence import evenly
from napsets.scores.informed import evidence_of
from napsets.scores.residuals import IntervalScore

#: Below this many labels, or this many per class, none is held out.
FEWEST, _FEWEST_LABELS_PER_CLASS = 100, 15
#: From this many labels on, the reference is half of them, whatever coverage rounding gives away.
MANY = 1000
#: The shares of the reference, of fewer labels and of many, where sets are to be small: better evidence makes them
#: smaller, and a level from fewer labels makes coverage less even.
_SMALL_SHARES = (0.65, 0.75)
#: Larger by more than this, sets of another score are not worth their evenness.
TOLERANCE = 1.01
#: The power that informed probabilities are raised to, and the weights of class-wise ranks, in the order in which they
#: are tried: the first makes sets smaller and less even, the second makes them more even between classes.
SHARPNESS = 2.5
#: The same where features are evidence, too, which makes coverage more even by itself.
_SHARPNESS_OF_FEATURES = 3.5
_MIXES = (0.5, 0.25)
#: Reference nodes per class without which scores are not ranked by class: the few of a rare class rank high by chance.
_FEWEST_PER_CLASS = 15
#: Evidence with fewer labels than this of some classes is left out, where these make up a larger share than this of the
#: model's predictions: sets would be far larger than without it.
_FEWEST_SEEN, _MOST_UNSEEN = 3, 0.1
#: Paired standard errors by which a less simple candidate must win.
ERRORS = 3.0
#: The share of the loss by which it must win where labels are evidence: less makes sets larger, and hardly more even.
_LEAST_GAIN = 0.02
#: Smallest number of reference nodes with which neighbourhoods can be compared.
_FEWEST_LOCAL = 300
#: Reference nodes on which losses are compared, and other nodes on which set sizes are, at most.
_MOST_LOSS_NODES, MOST_SIZE_NODES = 4000, 20_000
_RESAMPLES = 50
#: Reference nodes that half of them have within a radius that is tried, where edges have lengths.
_COUNTS = (30, 100, 300)


@dataclass(frozen=True)
class Auto(Calibratable):
    """A method that is chosen by trying several on part of the labels; the others set the level.

    Calibrated, it is the method chosen, with its `choice`.

    Parameters
    ----------
    alpha : float
        The error rate for which the method is chosen, and the default of `predict`, which takes any other one, too.
    prefer : {"even", "small"}
        Small sets with even coverage, or sets as small as possible.
    seed, allow_empty, by
        As in `NAPS`. Groups set their own levels; the choice is made for all nodes together.
    max_hops : int
        How far localisers may look, from 0 to 4.
    score : IntervalScore or str, optional
        For numbers instead of labels: "cqr", "absolute" or "normalised". For labels the score is chosen.
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
            check_groups_suit(self.score, self.by)
        check_alpha(self.alpha)
        choose("prefer", self.prefer, {"even": 1, "small": 1})
        check_seed(self.seed)
        check_flag("allow_empty", self.allow_empty)
        check_count("max_hops", self.max_hops, maximum=4)

    @property
    def groups(self) -> Groups | None:
        """The groups, as a `Method` calls them."""
        groups: Groups | None = self.by
        return groups

    def describe(self) -> Record:
        """Return the settings as plain JSON, from which `from_description` makes the method again."""
        return asdict(replace(self, by=None, score=None)) | {
            "by": describe_groups(self.by),
            "score": None if self.score is None else SCORES.describe("score", self.score),
        }

    @classmethod
    def from_description(cls, description: Values, *, groups: AnyArray | None = None) -> Auto:
        """Return the method that `describe` described; groups that are an array must be given again."""
        score = description.get("score")
        if isinstance(score, Mapping):
            score = SCORES.rebuild("score", score)
        return cls(**{**description, "by": rebuild_groups(description.get("by"), groups), "score": score})

    def calibrate_data(self, data: CalibrationData, *, followed: bool = False) -> Calibrated:
        """Choose, and calibrate what was chosen, with arguments that were checked.

        If it is to be `followed` in a graph that changes, only what can be kept up to date is chosen: one threshold
        for all where labels are evidence.
        """
        if data.graph is None and (data.features is None or self.score is not None):
            also = "" if self.score is not None else ", or `features`,"
            raise InvalidInputError(f"`graph`{also} must be given to a method that looks at neighbourhoods; got None")
        plain = self.score or (APS() if self.prefer == "even" else THR())
        labels, fewest = data.calibration.size, max(FEWEST, 2 * fewest_ranks(self.alpha) + 1)
        useless = self._useless(data, fewest // 2)
        if useless:
            calibrated = self.calibrate_data(data.without_evidence(), followed=followed)
            choice = calibrated.choice
            reason = f"{choice.reason}; evidence was left out: {useless}"
            return replace(calibrated, choice=replace(choice, reason=reason))
        if self.score is None:
            fewest = max(fewest, _FEWEST_LABELS_PER_CLASS * data.outputs.shape[1])
        if labels < fewest and data.evidence is None:
            method = self._method(plain, Everyone(), Nominal())
            reason = (
                f"{labels} labels are too few to choose by, or to hold out half of them (from {fewest} on they would "
                f"be enough); all of them set one threshold"
            )
            if self.by is not None:
                reason += ", without groups, which would be learned from labels" if learns(self.by) else " per group"
            choice = Choice(method, reason, (), self.prefer, self.alpha, labels, labels)
            return replace(method.calibrate_data(data), choice=choice)
        score_chosen, localiser_chosen, ranking = data.steps(2, 1, 1)
        # Of numbers, and where the order of arrival splits the labels, about half are the reference; evidence is all of
        # it.
        share = 0.5
        if self.score is None and data.split is None and data.evidence is None:
            about = 0.5 if self.prefer == "even" else _SMALL_SHARES[labels >= MANY]
            share = reference_share(labels, self.alpha, about=about)
        scored, score_candidates = self._choose_score(data, plain, share)
        complete(score_chosen)
        localiser, local_candidates = self._choose_localiser(scored, followed=followed)
        complete(localiser_chosen)
        method = self._method(scored.score, localiser, Exact(share))
        candidates = (*score_candidates, *local_candidates)
        informed = evidence_of(scored.bound)
        choice = Choice(
            method,
            explain_choice(candidates, informed, data.prediction)
            + ("; sizes are expected as if the evidence were a random sample" if scored.evidence else "")
            + ("" if self.by is None else "; then one level per group"),
            candidates,
            self.prefer,
            self.alpha,
            scored.calibration.size,
            scored.reference.nodes.size,
            None if informed is None else informed.exponents,
            () if informed is None else pieces_of_evidence(informed),
        )
        return replace(method.on(scored, ranking), choice=choice)

    def _useless(self, data: CalibrationData, fewest: int) -> str:
        """Return the reason why evidence is useless, from its labels and the model's outputs; empty where it is not."""
        if data.evidence is None:
            return ""
        count = data.evidence.size
        if count < fewest:
            return f"its {count} labels are too few to choose by (from {fewest} on they would be enough)"
        if self.score is not None:
            return ""
        # What is learned from labels of some classes says that there are no others.
        rare = np.bincount(data.truth[data.evidence], minlength=data.outputs.shape[1]) < _FEWEST_SEEN
        others = np.delete(np.arange(data.outputs.shape[0]), data.evidence)
        lost = float(data.outputs[others].mean(axis=0, dtype=np.float64)[rare].sum()) if others.size else 0.0
        if lost <= _MOST_UNSEEN:
            return ""
        unseen = f"classes that make up {percent(lost, 0)} of what the model predicts for the other nodes"
        return f"it has fewer than {_FEWEST_SEEN} labels of {unseen}"

    def _method(self, score: Score, localiser: Localiser, level: Level) -> Method:
        # Groups that learn from labels need some of which no level is made: where all are needed, there are none.
        groups = self.by if level.holds_out_labels or not learns(self.by) else None
        return Method(score, localiser, level, self.seed, self.allow_empty, groups, self.alpha)

    # -- the score -----------------------------------------------------------------------------------------------------

    def _choose_score(self, data: CalibrationData, plain: Score, share: float) -> tuple[Scored, list[Candidate]]:
        """Return the nodes scored by the chosen score, and the candidates with their results."""
        informed = self._informed(data)
        level = Exact(share)
        evident = data.scored(informed, level, self.seed)
        named = _evidence_name(data)
        name = type(plain).__name__
        tried = [
            (f"split {name if name.isupper() else name.lower()}", data.scored(plain, level, self.seed)),
            (named, evident),
        ]
        rng, count = np.random.default_rng(self.seed), tried[0][1].reference.nodes.size
        draws = [rng.integers(count, size=count) for _ in range(_RESAMPLES)]  # one for all: differences are paired
        sizes = [_sizes(scored, self.alpha, draws) for _, scored in tried]
        chosen = int(sizes[1][0] <= TOLERANCE * sizes[0][0])
        enough = evident.reference.nodes.size >= _FEWEST_PER_CLASS * evident.bound.num_labels > 0
        if chosen and self.prefer == "even" and enough:
            for mix in _MIXES:
                ranked = _by_label(data, evident, informed, mix)
                tried.append((f"{named}, class-wise ranks (weight {mix:g})", ranked))
                sizes.append(_sizes(ranked, self.alpha, draws))
                if sizes[-1][0] <= TOLERANCE * sizes[0][0]:
                    chosen = len(sizes) - 1
                    break
        candidates = []
        for place, ((name, _), size) in enumerate(zip(tried, sizes, strict=True)):
            larger = size - sizes[0]
            error = float(larger[1:].std(ddof=1))
            candidates.append(Candidate(name, "score", float(size[0]), float(larger[0]), error, place == chosen))
        return tried[chosen][1], candidates

    def _informed(self, data: CalibrationData) -> Score:
        """Return the score that uses labels as evidence."""
        if isinstance(self.score, IntervalScore):
            return self.score.informed(self.alpha)
        sharpness = SHARPNESS if data.features is None else _SHARPNESS_OF_FEATURES
        return Informed(Sharpened(APS(), sharpness) if self.prefer == "even" else THR())

    # -- the localiser -------------------------------------------------------------------------------------------------

    def _choose_localiser(self, scored: Scored, *, followed: bool = False) -> tuple[Localiser, list[Candidate]]:
        """Return the localiser with the smallest pinball loss on reference nodes, or the simplest if it is close."""
        reference = scored.reference
        rows = evenly(reference.nodes.size, _MOST_LOSS_NODES)
        nodes, scores = reference.nodes[rows], reference.scores[rows]
        cut = [Cut(1.0 - self.alpha)]
        tried: list[tuple[str, Localiser, FloatArray]] = [
            ("one global threshold", Everyone(), Everyone().fit(reference).thresholds(nodes, cut).values[0])
        ]
        local = self.prefer == "even" and reference.graph is not None and reference.nodes.size >= _FEWEST_LOCAL
        if local and not (followed and learns(scored.score)):
            by_hops = _by_hops(self.max_hops, alike=scored.bound.num_labels > 0)
            for kind in filter(None, (by_hops, _by_lengths(reference) if self.max_hops else [])):
                locals_: Any = [localiser.fit(reference) for _, localiser in kind]
                shared = share_search(locals_, nodes, [cut] * len(locals_))
                tried += [(*named, thresholds.values[0]) for named, thresholds in zip(kind, shared, strict=True)]
        largest = float(reference.scores.max())
        losses = np.stack([_pinball(scores - np.minimum(tau, largest), 1.0 - self.alpha) for _, _, tau in tried])
        means = losses.mean(axis=1)
        candidates = []
        for (name, _, _), mean, change in zip(tried, means, losses - losses[0], strict=True):
            error = float(change.std(ddof=1)) / math.sqrt(change.size) if change.size > 1 else math.inf
            candidates.append(Candidate(name, "localiser", float(mean), float(change.mean()), error))
        best = int(means.argmin())
        gain, least = -candidates[best].difference, _LEAST_GAIN * means[0] if learns(scored.score) else 0.0
        chosen = best if gain > max(least, ERRORS * candidates[best].se) else 0
        candidates[chosen] = replace(candidates[chosen], chosen=True)
        return tried[chosen][1], candidates


def _evidence_name(data: CalibrationData) -> str:
    """Return the evidence in words, by whose labels it is."""
    if data.features is None:
        return "neighbours' labels as evidence"
    if data.graph is None:
        return "labels of similar nodes as evidence"
    return "neighbours' and similar nodes' labels as evidence"


def reference_share(labels: int, alpha: float, *, about: float = 0.5) -> float:
    """Return the share of labels for the reference: of many, `about`; of few, one near it that wastes no coverage.

    With |Q| labels held out, coverage is ⌈(|Q|+1)(1−α)⌉/(|Q|+1), which is 1 − α only if (|Q|+1)(1−α) is a whole number.

    Examples
    --------
    >>> labels = 169
    >>> held_out = labels - round(reference_share(labels, 0.1) * labels)
    >>> held_out, 0.9 * (held_out + 1)
    (89, 81.0)
    """
    if labels >= MANY:
        return about
    held_out = max(1.0 - about, min(0.5, fewest_ranks(alpha) / labels + 0.05))  # or no level could be set
    sizes = range(math.ceil((held_out - 0.05) * labels), math.floor((held_out + 0.05) * labels) + 1)
    size = min(sizes, key=lambda size: (rank_place(size, alpha) / (size + 1), abs(size - held_out * labels)))
    return (labels - size) / labels


def _by_label(data: CalibrationData, scored: Scored, score: Score, mix: float) -> Scored:
    """Rank existing scores partly by label, with the result of scoring again by `ByLabel`."""
    labels, nodes, level_nodes = data.truth, scored.reference.nodes, scored.level_nodes
    bound = BoundByLabel(scored.bound, scored.reference.scores, labels[nodes], mix)
    return replace(
        scored,
        score=ByLabel(score, mix),
        bound=bound,
        reference=replace(scored.reference, scores=bound.at(nodes, labels[nodes])),
        level_scores=bound.at(level_nodes, labels[level_nodes]),
    )


def _sizes(scored: Scored, alpha: float, draws: list[IntArray]) -> FloatArray:
    """Return the expected size of sets at the threshold of the reference, and at those of draws from it."""
    reference = scored.reference
    others = np.delete(np.arange(reference.num_nodes), reference.nodes)
    size_at = scored.bound.size_at(others[evenly(others.size, MOST_SIZE_NODES)])
    place = rank_place(reference.nodes.size, alpha)

    def size(scores: FloatArray) -> float:
        return float(size_at(np.partition(scores, place - 1)[place - 1] if place <= scores.size else math.inf))

    return np.array([size(reference.scores), *(size(reference.scores[draw]) for draw in draws)])


def _by_hops(max_hops: int, *, alike: bool) -> list[tuple[str, Localiser]]:
    """Return the candidates by hops: depths, decays, every other hop (heterophily) and `alike`, each pooled.

    Numbers have no predicted label that could be alike.
    """
    localisers: list[tuple[str, Localiser]] = []
    if max_hops and alike:
        localisers.append(("1 hop and those alike, pooled 10", Hops(1, pool=10.0, alike=30.0)))
    for hops in range(1, max_hops + 1):
        near = f"{hops} hop{'s' * (hops > 1)}"
        localisers += [(f"{near}, pooled {pool}", Hops(hops, pool=float(pool))) for pool in (10, 30, 100)]
        if hops > 1:
            localisers += [
                (f"{near}, {decay}, pooled 30", Hops(hops, decay, pool=30.0)) for decay in ("hyperbolic", "geometric")
            ]
        if hops in (2, 4):
            every = tuple(float(k % 2 == 0) for k in range(1, hops + 1))
            localisers.append((f"every other of {near}, pooled 30", Hops(hops, every, pool=30.0)))
    return localisers


def _by_lengths(reference: Reference) -> list[tuple[str, Localiser]]:
    """Return those by path length, where edges have lengths: radii by how many reference nodes are within, pooled."""
    if reference.graph is None or reference.graph.lengths is None:
        return []
    localisers: list[tuple[str, Localiser]] = []
    for count, radius in zip(_COUNTS, near_radii(reference, _COUNTS), strict=True):
        localisers += [
            (f"paths up to {radius:.3g} ({count} labels), {decay}, pooled 30", PathLengths(radius, decay, pool=30.0))
            for decay in ("uniform", "gaussian")
        ]
    return localisers


def _pinball(errors: FloatArray, level: float) -> FloatArray:
    """Return ρ(S − τ) = max(level·(S − τ), (level − 1)·(S − τ))."""
    return np.maximum(level * errors, (level - 1.0) * errors)
