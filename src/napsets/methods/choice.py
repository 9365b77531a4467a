"""Choice: what was chosen, compared with what, the difference, and its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Literal

import numpy as np

from napsets.checks.text import html_table, percent
from napsets.checks.values import Record, Values, in_digits
from napsets.methods.method import Method
from napsets.predictions import Prediction
from napsets.scores.exponents import PRIOR, Exponents
from napsets.scores.informed import BoundInformed

Prefer = Literal["even", "small"]


@dataclass(frozen=True)
class Candidate:
    """A candidate of the choice, and its result."""

    name: str  #: what it is, in words
    step: str  #: which of the two choices it belongs to
    value: float  #: expected mean size of the sets (scores), or pinball loss (localisers): small is good
    #: Its value less that of the plain one, and the standard error of that difference (paired).
    difference: float = 0.0
    se: float = 0.0
    chosen: bool = False  #: whether it was


#: The kinds of evidence in words.
_KINDS = {
    "model": "the model's probabilities",
    "around": "the model's probabilities of the neighbours",
    "near": "labels of neighbours",
    "alike": "labels of nodes with the same prediction",
    "wide": "labels that a random walk meets",
    "similar_5": "labels of the 5 most similar nodes",
    "similar_25": "labels of the 25 most similar nodes",
    "linear": "a linear model of the features",
}


@dataclass(frozen=True)
class PieceOfEvidence:
    """A kind of evidence, and what it contributes to the corrected probabilities."""

    kind: str  #: its name in `napsets.scores.exponents.Exponents`
    exponent: float  #: how much it counts; 1 for the model and 0 for all else changes nothing
    #: The factor by which one such label multiplies the odds of that label; None where labels are not counted singly.
    odds: float | None
    #: By how much the mean log-likelihood of the reference labels would fall without it, all else as it is.
    gain: float

    @property
    def name(self) -> str:
        """The kind in words."""
        return _KINDS[self.kind]


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice: the method chosen, its rivals, the differences, and their uncertainty.

    Attributes
    ----------
    method : Method
        The method chosen.
    reason : str
        One line on why.
    candidates : tuple of Candidate
        All that were looked at, scores first.
    prefer : {"even", "small"}
        The preference of the user.
    alpha : float
        The error rate that the choice is for.
    labels, reference : int
        Labelled nodes, and those of them that chose.
    exponents : Exponents or None
        How much each kind of evidence counts, where labels are evidence.
    evidence : tuple of PieceOfEvidence
        What each kind of evidence contributes.
    """

    method: Method
    reason: str
    candidates: tuple[Candidate, ...]
    prefer: Prefer
    alpha: float
    labels: int
    reference: int
    exponents: Exponents | None = None
    evidence: tuple[PieceOfEvidence, ...] = ()

    @property
    def name(self) -> str:
        """The chosen candidates in words."""
        chosen = [candidate.name for candidate in self.candidates if candidate.chosen]
        return ", ".join(chosen) if chosen else "plain split"

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"

    def __repr__(self) -> str:
        return f"Choice({self})"

    def rows(self) -> list[Record]:
        """Return one plain dictionary per candidate, for tables and JSON."""
        names = ("step", "name", "value", "difference", "se", "chosen")
        return [{name: getattr(candidate, name) for name in names} for candidate in self.candidates]

    def describe(self) -> Record:
        """Return all but the method and the exponents as plain JSON."""
        described = {name: value for name, value in vars(self).items() if name not in ("method", "exponents")}
        return described | {name: [asdict(item) for item in described[name]] for name in ("candidates", "evidence")}

    @classmethod
    def from_description(cls, description: Values, method: Method, exponents: Exponents | None) -> Choice:
        """Return the choice that `describe` described."""
        candidates = tuple(Candidate(**candidate) for candidate in description["candidates"])
        evidence = tuple(PieceOfEvidence(**piece) for piece in description["evidence"])
        record = {**description, "candidates": candidates, "evidence": evidence}
        return cls(**record, method=method, exponents=exponents)

    def table(self) -> str:
        """Return both steps of the choice as text: what was compared, in which unit, and what decided.

        The score is chosen first, by the expected average size of the sets (or width of the intervals); then the
        thresholds, by their pinball loss.
        """
        width = max((len(candidate.name) for candidate in self.candidates), default=0)
        lines = []
        for heading, _, rows in self._steps():
            lines.append(heading)
            for mark, name, value, difference in rows:
                lines.append(f" {mark or ' '} {name:<{width}}  {value:>8}  {difference}".rstrip())
        if self.evidence:
            lines.append(_EVIDENCE)
            width = max(len(piece.name) for piece in self.evidence)
            lines += [
                f"   {piece.name:<{width}}  {_gain(piece):>8}  {_odds(piece)}".rstrip() for piece in self.evidence
            ]
        return "\n".join([*lines, f"Chosen: {self}."])

    def _repr_html_(self) -> str:
        """Return both steps as tables, for notebooks."""
        parts = [f"<p>{escape(str(self))}</p>"]
        for heading, unit, rows in self._steps():
            table = html_table(("", "candidate", unit, "minus the first"), rows)
            parts.append(table.replace("<table>", f"<table><caption>{escape(heading)}</caption>", 1))
        if self.evidence:
            pieces = [(piece.name, _gain(piece), _odds(piece)) for piece in self.evidence]
            table = html_table(("evidence", "likelihood gain", "odds per label"), pieces)
            parts.append(table.replace("<table>", f"<table><caption>{escape(_EVIDENCE)}</caption>", 1))
        return "".join(parts)

    def _steps(self) -> Iterator[tuple[str, str, list[tuple[str, str, str, str]]]]:
        """Yield heading, unit and rows of each step: mark, name, value, and difference from the first."""
        rule = "the smallest"
        if self.prefer == "even":
            rule = "class-wise ranks, which even out coverage, as long as size is at most that of the first"
        for step, unit, heading in (
            ("score", "expected size", f"Step 1, score: expected average size ({rule})"),
            ("localiser", "pinball loss", "Step 2, thresholds: pinball loss (local ones only if clearly smaller)"),
        ):
            candidates = [candidate for candidate in self.candidates if candidate.step == step]
            rows = [
                ("→" * candidate.chosen, candidate.name, f"{candidate.value:.4g}", _difference(candidate, place))
                for place, candidate in enumerate(candidates)
            ]
            if rows:
                yield heading, unit, rows


_EVIDENCE = "Evidence: likelihood gain of each kind (mean log-likelihood of a label), and odds per label"


def _gain(piece: PieceOfEvidence) -> str:
    return _signed(f"{piece.gain:+.3f}")


def _odds(piece: PieceOfEvidence) -> str:
    return "" if piece.odds is None else f"× {piece.odds:.2g}"


def pieces_of_evidence(informed: BoundInformed) -> tuple[PieceOfEvidence, ...]:
    """Return the contribution of each kind of evidence to an informed score."""
    learned, counts = informed.learned, np.bincount(informed.reference.labels)
    shares = counts / counts.sum()
    return tuple(
        PieceOfEvidence(
            kind,
            float(getattr(learned.exponents, kind)),
            learned.exponents.odds(kind, shares) if kind in PRIOR and kind != "wide" else None,
            gain,
        )
        for kind, gain in zip(learned.kinds, learned.gains, strict=True)
    )


def _difference(candidate: Candidate, place: int) -> str:
    """Return the difference of a candidate from the first of its step, ± 1.96 standard errors."""
    return "" if place == 0 else f"{_signed(f'{candidate.difference:+.4f}')} ± {1.96 * candidate.se:.4f}"


def _signed(digits: str) -> str:
    """Return digits with a minus sign in place of a hyphen."""
    return digits.replace("-", "−")


def explain_choice(
    candidates: Sequence[Candidate], informed: BoundInformed | None, prediction: type[Prediction]
) -> str:
    """Explain in one line why the chosen candidates were chosen."""
    score = next(candidate for candidate in candidates if candidate.step == "score" and candidate.chosen)
    plain = next(candidate for candidate in candidates if candidate.step == "score")
    if score is plain:
        reason = f"labels as evidence would not make {prediction.noun}s smaller"
    else:
        reason = (
            f"expected {prediction.of_size(score.value)}, compared with {prediction.size_text(plain.value)} for "
            f"{plain.name} ({_signed(in_digits(score.difference, 2, sign='+'))} ± {in_digits(1.96 * score.se, 2)})"
        )
    if informed is not None:
        pieces = [piece for piece in pieces_of_evidence(informed) if piece.kind != "model"]
        strongest = max(pieces, key=lambda piece: piece.gain, default=None)
        if strongest is not None and strongest.gain > 0.0:
            reason += f"; the strongest evidence: {strongest.name} ({informed.reference.nodes.size:,} labels"
            reason += ")" if strongest.odds is None else f", each of which multiplies its odds by {strongest.odds:.2g})"
    local = [candidate for candidate in candidates if candidate.step == "localiser"]
    chosen = next(candidate for candidate in local if candidate.chosen)
    if len(local) == 1:
        return f"{reason}; local thresholds were not tried"
    if chosen is not local[0]:
        gain = -chosen.difference / (chosen.value - chosen.difference)
        return f"{reason}; local thresholds fit {percent(gain)} better"
    return f"{reason}; local thresholds bring no significant gain"
