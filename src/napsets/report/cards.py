"""Numbers as people read them, and the headline cards that every page has; no claim that the numbers do not make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napsets.checks.text import visible
from napsets.report.chart_data import Row

if TYPE_CHECKING:
    from napsets.report.data import ReportData

__all__ = ["Headline", "card", "cell", "code", "number", "percent", "sentence"]


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage, an en dash where there is none.

    Examples
    --------
    >>> percent(0.9012)
    '90.1 %'
    """
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def number(value: float, digits: int = 2) -> str:
    """Return a number with this many decimals, an en dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def cell(value: Any) -> str:
    """Return what stands in a cell of a user's own table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value, 3)
    return str(value)


def sentence(text: str) -> str:
    """Return a clause as a sentence.

    Examples
    --------
    >>> sentence("sets of 1.2 labels")
    'Sets of 1.2 labels.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def code(text: str) -> Any:
    """Return a sentence as HTML, with what stands between backticks as code.

    Examples
    --------
    >>> print(code("add `--by class` if a < b"))
    add <code>--by class</code> if a &lt; b
    """
    from markupsafe import Markup, escape

    parts = [escape(visible(part)) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if k % 2 else part for k, part in enumerate(parts))


def card(name: str, value: str, *notes: str) -> Row:
    """Return a headline number with what to compare it with."""
    return {"name": name, "value": value, "note": ", ".join(note for note in notes if note)}


@dataclass(frozen=True)
class Headline:
    """The rows of the baseline and of the method that the page is about, which may be the same."""

    base: Row
    focus: Row

    @classmethod
    def of(cls, data: ReportData) -> Headline:
        """Return those of a page."""
        return cls(data.methods[0], data.methods[data.explorer.focus])

    def beside(self, text: str) -> str:
        """Return what the baseline has, to compare a number with; nothing for the baseline itself."""
        return "" if self.base is self.focus else f"{self.base['method']} {text}"

    def coverage(self, alpha: float) -> Row:
        """Return the card of the coverage."""
        target = f"target {percent(1 - alpha, 0)}"
        return card("Coverage", percent(self.focus["coverage"]), target, self.beside(percent(self.base["coverage"])))

    def worst(self) -> list[Row]:
        """Return the card of the neighbourhood that is covered least, if there are neighbourhoods."""
        if not self.focus["neighbourhoods"]:
            return []
        held = percent(self.focus["in_neighbourhoods"], 0)
        compared = f"{self.focus['neighbourhoods']} neighbourhoods compared, with {held} of the evaluation nodes"
        other = self.beside(percent(self.base["lowest"]))
        note = f"of its nodes covered, {other}; {compared}" if other else f"of its nodes covered; {compared}"
        return [card("Worst neighbourhood", percent(self.focus["lowest"]), note)]
