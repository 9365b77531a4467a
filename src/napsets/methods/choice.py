"""Choice: what was chosen, compared with what, the difference, and its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

import numpy as np

from napsets.checks.text import html_table, percent
from napsets.checks.values import in_digits
from napsets.methods.method import Method
from napsets.predictions import Prediction
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


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, what it was compared with, the difference, and its uncertainty.

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
        """Return one plain dictionary per candidate, for tables and JSON."""
        names = ("step", "name", "value", "difference", "se", "chosen")
        return [{name: getattr(candidate, name) for name in names} for candidate in self.candidates]

    def describe(self) -> dict[str, Any]:
        """Return all but the method and the exponents as plain JSON."""
        described = {name: value for name, value in vars(self).items() if name not in ("method", "exponents")}
        return described | {"candidates": [asdict(candidate) for candidate in self.candidates]}

    @classmethod
    def from_description(cls, description: Mapping[str, Any], method: Method, exponents: Any) -> Choice:
        """Return the choice that `describe` described."""
        candidates = tuple(Candidate(**candidate) for candidate in description["candidates"])
        return cls(**{**description, "candidates": candidates}, method=method, exponents=exponents)

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
        return "\n".join([*lines, f"Chosen: {self}."])

    def _repr_html_(self) -> str:
        """Return both steps as tables, for notebooks."""
        parts = [f"<p>{escape(str(self))}</p>"]
        for heading, unit, rows in self._steps():
            table = html_table(("", "candidate", unit, "minus the first"), rows)
            parts.append(table.replace("<table>", f"<table><caption>{escape(heading)}</caption>", 1))
        return "".join(parts)

    def _steps(self) -> Iterator[tuple[str, str, list[tuple[str, str, str, str]]]]:
        """Yield heading, unit and rows of each step: mark, name, value, and difference from the first."""
        rule = "the smallest"
        if self.prefer == "even":
            rule = "class-wise ranks, which even out coverage, as long as size is at most that of the model alone"
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


def _difference(candidate: Candidate, place: int) -> str:
    """Return by how much a candidate differs from the first of its step; nothing of the first."""
    return "" if place == 0 else f"{_signed(f'{candidate.difference:+.4f}')} ± {candidate.se:.4f}"


def _signed(digits: str) -> str:
    """Return digits with a minus sign in place of a hyphen."""
    return digits.replace("-", "−")


def explain_choice(
    candidates: Sequence[Candidate], informed: BoundInformed | None, prediction: type[Prediction]
) -> str:
    """Say in one line why the chosen candidates were chosen."""
    score = next(candidate for candidate in candidates if candidate.step == "score" and candidate.chosen)
    plain = next(candidate for candidate in candidates if candidate.step == "score")
    if score is plain:
        reason = f"neighbours' labels would not make {prediction.noun}s smaller"
    else:
        reason = (
            f"expected {prediction.of_size(score.value)}, compared with {prediction.size_text(plain.value)} for the "
            f"model alone ({_signed(in_digits(score.difference, 2, sign='+'))} ± {in_digits(score.se, 2)})"
        )
    if informed is not None:
        counts = np.bincount(informed.reference.labels)
        reason += f"; {informed.exponents.explain(counts / counts.sum())}, estimated from {counts.sum():,} labels"
    local = [candidate for candidate in candidates if candidate.step == "localiser"]
    chosen = next(candidate for candidate in local if candidate.chosen)
    if len(local) == 1:
        return f"{reason}; local thresholds were not tried"
    if chosen is not local[0]:
        gain = -chosen.difference / (chosen.value - chosen.difference)
        return f"{reason}; local thresholds fit {percent(gain)} better"
    return f"{reason}; local thresholds bring no significant gain"
