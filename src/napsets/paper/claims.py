"""Which of the paper's claims hold: a verdict for each dataset, model and protocol, and the paragraph that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from napsets.paper.blockmodel import informative
from napsets.paper.cells import BASELINE, METHODS, MODELS, Row
from napsets.paper.grids import Scope
from napsets.paper.printed import printed
from napsets.paper.setups import SETUPS
from napsets.paper.table import Entry, Spread, Table
from napsets.paper.tables import bound_holds, select, winner

__all__ = ["CLAIMS", "Claim", "Verdict", "block_paragraph", "claims_table", "judge", "paragraph"]


@dataclass(frozen=True)
class Claim:
    """A claim about NAPS beside APS: `value` is smaller for NAPS.

    Attributes
    ----------
    name, words : str
        Head of its column, and how a sentence says it.
    metric : str
        The metric it is about.
    value : callable
        What is compared, from the metric and alpha.
    digits : int
        Digits after the point.
    """

    name: str
    words: str
    metric: str
    value: Callable[[float, float], float] = lambda value, alpha: value
    digits: int = 3


CLAIMS = (
    Claim("Tighter sets", "smaller sets", "mean_size", digits=2),
    Claim(
        "Coverage nearer 1−α",
        "coverage nearer to 1 − alpha",
        "coverage",
        lambda value, alpha: abs(value - (1.0 - alpha)),
    ),
    Claim("Lower SSCV", "a lower SSCV", "sscv"),
    Claim("Lower PCCV", "a lower PCCV", "pccv"),
)


@dataclass(frozen=True)
class Verdict:
    """A claim for one dataset, model, protocol and method.

    Attributes
    ----------
    differences : tuple of float
        NAPS less APS, for each seed; the claim is that they are negative.
    word : str
        ``holds`` or ``fails`` where the 95 % Student interval of the mean difference excludes 0, else ``open``. With
        one seed there is no interval, and the sign decides.
    printed : bool or None
        Whether the paper's printed numbers bear the claim out.
    """

    claim: Claim
    dataset: str
    model: str
    protocol: str
    method: str
    differences: tuple[float, ...]
    word: str
    printed: bool | None

    @property
    def text(self) -> str:
        """The verdict with the mean difference."""
        return f"{self.word} ({self.mean:+.{self.claim.digits}f})" if self.differences else "–"

    @property
    def mean(self) -> float:
        """Mean difference over seeds."""
        return fmean(self.differences)


def judge(rows: Sequence[Row], scope: Scope, method: str = "NAPS") -> list[Verdict]:
    """Return the verdicts on one method, over all datasets, models and protocols that have rows."""
    verdicts = []
    there = {(row["dataset"], row["model"], row["protocol"]) for row in rows if row["method"] == method}
    for dataset in scope.datasets:
        for model in scope.models:
            for protocol in scope.protocols:
                if (dataset, model, protocol) in there:
                    verdicts += [_verdict(rows, scope, c, dataset, model, protocol, method) for c in CLAIMS]
    return verdicts


def _verdict(
    rows: Sequence[Row], scope: Scope, claim: Claim, dataset: str, model: str, protocol: str, method: str
) -> Verdict:
    where = {"dataset": dataset, "model": model, "protocol": protocol}
    ours = {row["seed"]: row for row in select(rows, method=method, hops=scope.hops, **where)}
    base = {row["seed"]: row for row in select(rows, method=BASELINE, **where)}
    differences = tuple(
        claim.value(ours[seed][claim.metric], scope.alpha) - claim.value(base[seed][claim.metric], scope.alpha)
        for seed in sorted(ours.keys() & base.keys())
        if ours[seed][claim.metric] is not None and base[seed][claim.metric] is not None
    )
    theirs = [printed(claim.metric, dataset, model, name) for name in (method, BASELINE)]
    told = None
    if theirs[0] is not None and theirs[1] is not None:
        told = round(claim.value(theirs[0], scope.alpha) - claim.value(theirs[1], scope.alpha), 6) < 0
    return Verdict(claim, dataset, model, protocol, method, differences, _word(differences), told)


def _word(differences: Sequence[float]) -> str:
    from scipy.stats import t

    if not differences:
        return "open"
    mean, sd = Spread.of(differences)
    half = t.ppf(0.975, len(differences) - 1) * sd / sqrt(len(differences)) if len(differences) > 1 else 0.0
    return "holds" if mean + half < 0 else "fails" if mean - half > 0 else "open"


def claims_table(rows: Sequence[Row], scope: Scope) -> Table:
    """Return the verdicts on every NAPS method."""
    lines: list[list[Entry]] = []
    methods = [method for method, decay in METHODS.items() if decay is not None]
    found = [verdict for method in methods for verdict in judge(rows, scope, method)]
    for dataset in scope.datasets:
        for model in scope.models:
            for protocol in scope.protocols:
                for method in methods:
                    ours = [
                        v.text
                        for v in found
                        if (v.dataset, v.model, v.protocol, v.method) == (dataset, model, protocol, method)
                    ]
                    if ours:
                        lines.append([SETUPS[dataset].title, MODELS[model], protocol, method, *ours])
    columns = ["Dataset", "Model", "Protocol", "Method", *(claim.name for claim in CLAIMS)]
    notes = [
        "In brackets: the method less APS, mean over training seeds. `holds` and `fails`: the 95 % Student interval of "
        "the paired difference excludes 0; `open`: it does not."
    ]
    return Table("claims", "The paper's claims", columns, lines, notes=notes)


def paragraph(rows: Sequence[Row], scope: Scope) -> str:
    """Return the paragraph, made from the numbers: how many models bear each claim out, and what the paper printed."""
    verdicts = judge(rows, scope)
    sentences = []
    for dataset in scope.datasets:
        ours = [verdict for verdict in verdicts if verdict.dataset == dataset]
        if not ours:
            continue
        seeds = max(len(verdict.differences) for verdict in ours)
        sentences.append(
            f"On {SETUPS[dataset].title} ({_count(seeds, 'training seed')}, alpha {scope.alpha:g}, "
            f"K = {scope.hops}), NAPS compares with APS as follows."
        )
        for protocol in scope.protocols:
            clauses = [_clause([v for v in ours if v.protocol == protocol and v.claim is claim]) for claim in CLAIMS]
            sentences.append(f"Under `{protocol}` it has {'; '.join(clause for clause in clauses if clause)}.")
        told = [_told([v for v in ours if v.protocol == scope.protocols[0] and v.claim is claim]) for claim in CLAIMS]
        if any(told):
            sentences.append(f"In the paper's printed numbers it has {', '.join(text for text in told if text)}.")
    return " ".join(sentences)


def _clause(verdicts: Sequence[Verdict]) -> str:
    verdicts = [verdict for verdict in verdicts if verdict.differences]
    if not verdicts:
        return ""
    held = [MODELS[v.model] for v in verdicts if v.word == "holds"]
    failed = [MODELS[v.model] for v in verdicts if v.word == "fails"]
    undecided = [MODELS[v.model] for v in verdicts if v.word == "open"]
    text = f"{verdicts[0].claim.words} for {len(held)} of {_count(len(verdicts), 'model')}"
    means = [verdict.mean for verdict in verdicts]
    digits = verdicts[0].claim.digits
    text += f" (difference {min(means):+.{digits}f} to {max(means):+.{digits}f}"
    text += f"; the opposite for {', '.join(failed)}" if failed else ""
    text += f"; undecided for {', '.join(undecided)}" if undecided else ""
    return text + ")"


def _told(verdicts: Sequence[Verdict]) -> str:
    known = [v for v in verdicts if v.printed is not None]
    return f"{verdicts[0].claim.words} for {sum(bool(v.printed) for v in known)} of {len(known)}" if known else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def block_paragraph(rows: Sequence[Row]) -> str:
    """Return what the block-model study found, made from its rows."""
    if not rows:
        return ""
    held = sum(bound_holds(row, name, 4.0) for row in rows for name in ("aps", "naps"))
    told = [row for row in rows if informative(row) and winner(row)]
    right = sum((winner(row) == "NAPS") == row["lemma_favours_naps"] for row in told)
    favoured = [row for row in rows if row["lemma_favours_naps"]]
    against = [row for row in favoured if row["naps_gap"] - row["aps_gap"] > 4 * row["naps_gap_se"]]
    largest = max((row["naps_gap"] - row["aps_gap"] for row in against), default=0.0)
    tight = [row["aps_gap_hard"] / row["aps_bound"] for row in rows if informative(row)]
    text = (
        f"Over {len(rows)} grid points, {held} of {2 * len(rows)} bounds held within four standard errors. "
        f"Where the lemma is informative, the gap of APS in the harder block reaches {min(tight, default=0):.0%} to "
        f"{max(tight, default=0):.0%} of its bound, and of the {len(told)} such points with a clear winner in that "
        f"block Lemma 1 names it in {right}. "
    )
    if against:
        return text + (
            "Read literally, as a statement about gaps averaged over all nodes, the lemma is contradicted at "
            f"{len(against)} of the {len(favoured)} points where it favours NAPS (by {largest:.4f} at most): its proof "
            "compares bounds, and averaged over both blocks APS has no gap for NAPS to improve on."
        )
    return text + (
        "Averaged over all nodes no point contradicts the lemma, but there APS has no gap to improve on either: its "
        f"mean gap is {max(abs(row['aps_gap']) for row in rows):.4f} at most."
    )
