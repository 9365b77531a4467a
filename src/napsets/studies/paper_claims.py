"""Which of the paper's claims hold: a verdict for each dataset, model and protocol, and a paragraph about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from napsets.studies.coverage import MODELS
from napsets.studies.paper_tables import printed, select
from napsets.studies.protocols import BASELINE, METHODS, SETUPS
from napsets.studies.study import Row
from napsets.studies.tables import Entry, Table, interval

if TYPE_CHECKING:
    from napsets.studies.paper import Scope


@dataclass(frozen=True)
class Claim:
    """A claim about NAPS compared with APS: `value` is smaller for NAPS."""

    #: Column heading, and its wording in a sentence.
    name: str
    words: str
    metric: str  #: the metric it is about
    #: The compared value, as a function of the metric and alpha.
    value: Callable[[float, float], float] = lambda value, alpha: value
    digits: int = 3  #: digits after the point


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
class ClaimVerdict:
    """A claim for one dataset, model, protocol and method."""

    claim: Claim
    dataset: str
    model: str
    protocol: str
    method: str
    differences: tuple[float, ...]  #: NAPS minus APS, for each seed; the claim is that they are negative
    #: ``holds`` or ``fails`` if the 95 % Student interval of the mean difference excludes 0, else ``open``. With one
    #: seed there is no interval, and the sign decides.
    word: str
    printed: bool | None  #: whether the claim holds for the paper's published numbers

    @property
    def text(self) -> str:
        """The verdict with the mean difference."""
        return f"{self.word} ({self.mean:+.{self.claim.digits}f})" if self.differences else "–"

    @property
    def mean(self) -> float:
        """Mean difference over seeds."""
        return fmean(self.differences)


def judge(rows: Sequence[Row], scope: Scope, method: str = "NAPS") -> list[ClaimVerdict]:
    """Return the verdicts on one method, over all datasets, models and protocols that have rows."""
    measured = {(row["dataset"], row["model"], row["protocol"]) for row in rows if row["method"] == method}
    return [
        _verdict(rows, scope, claim, *place, method)
        for place in product(scope.datasets, scope.models, scope.protocols)
        if place in measured
        for claim in CLAIMS
    ]


def _verdict(
    rows: Sequence[Row], scope: Scope, claim: Claim, dataset: str, model: str, protocol: str, method: str
) -> ClaimVerdict:
    where = {"dataset": dataset, "model": model, "protocol": protocol}
    ours = {row["seed"]: row for row in select(rows, method=method, hops=scope.hops, **where)}
    base = {row["seed"]: row for row in select(rows, method=BASELINE, **where)}
    differences = tuple(
        claim.value(ours[seed][claim.metric], scope.alpha) - claim.value(base[seed][claim.metric], scope.alpha)
        for seed in sorted(ours.keys() & base.keys())
        if ours[seed][claim.metric] is not None and base[seed][claim.metric] is not None
    )
    theirs = [printed(claim.metric, dataset, model, name) for name in (method, BASELINE)]
    as_printed = None
    if theirs[0] is not None and theirs[1] is not None:
        as_printed = round(claim.value(theirs[0], scope.alpha) - claim.value(theirs[1], scope.alpha), 6) < 0
    return ClaimVerdict(claim, dataset, model, protocol, method, differences, _word(differences), as_printed)


def _word(differences: Sequence[float]) -> str:
    if not differences:
        return "open"
    mean, low, high = interval(np.array(differences))
    if math.isnan(low):
        low = high = mean
    return "holds" if high < 0 else "fails" if low > 0 else "open"


def claims_table(rows: Sequence[Row], scope: Scope) -> Table:
    """Return the verdicts on every NAPS method."""
    lines: list[list[Entry]] = []
    methods = [method for method, decay in METHODS.items() if decay is not None]
    verdicts = [verdict for method in methods for verdict in judge(rows, scope, method)]
    for place in product(scope.datasets, scope.models, scope.protocols, methods):
        texts = [v.text for v in verdicts if (v.dataset, v.model, v.protocol, v.method) == place]
        if texts:
            dataset, model, *rest = place
            lines.append([SETUPS[dataset].title, MODELS[model], *rest, *texts])
    columns = ["Dataset", "Model", "Protocol", "Method", *(claim.name for claim in CLAIMS)]
    notes = [
        "In brackets: the method minus APS, mean over training seeds. `holds` and `fails`: the 95 % Student interval "
        "of the paired difference excludes 0; `open`: it does not."
    ]
    return Table("claims", "The paper's claims", columns, lines, notes=notes)


def paragraph(rows: Sequence[Row], scope: Scope) -> str:
    """Return a paragraph on the number of models for which each claim holds, here and in the published numbers."""
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
        in_print = [
            _printed_clause([v for v in ours if v.protocol == scope.protocols[0] and v.claim is claim])
            for claim in CLAIMS
        ]
        if any(in_print):
            sentences.append(f"In the paper's numbers it has {', '.join(text for text in in_print if text)}.")
    return " ".join(sentences)


def _clause(verdicts: Sequence[ClaimVerdict]) -> str:
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


def _printed_clause(verdicts: Sequence[ClaimVerdict]) -> str:
    known = [v for v in verdicts if v.printed is not None]
    return f"{verdicts[0].claim.words} for {sum(bool(v.printed) for v in known)} of {len(known)}" if known else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
