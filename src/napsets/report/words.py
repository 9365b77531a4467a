"""The page's sentences and table cells: numbers made readable, and no claim that the numbers do not make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from napsets.report.data import ReportData
from napsets.report.rows import Row

__all__ = [
    "WORDS",
    "PageWords",
    "Pair",
    "card",
    "cards",
    "cell",
    "method_table",
    "percent",
    "sentence",
    "summary_table",
]


@dataclass(frozen=True)
class PageWords:
    """What the frame of a page says that is another word for sets than for intervals.

    Attributes
    ----------
    thing, truths, size, full : str
        What a node gets, what judges it, how large it is, and what too little support gives.
    gap, scores : str
        What is said of two charts.
    sections : tuple of (id, name)
        The sections before the explorer.
    reasons : mapping
        Why nodes can be explored, in the words of a sentence.
    ball : callable
        What is said of a neighbourhood in a list of them.
    """

    thing: str
    truths: str
    size: str
    full: str
    gap: str
    scores: str
    sections: tuple[tuple[str, str], ...]
    reasons: Mapping[str, str]
    ball: Callable[[Row], str]


#: What the page's frame says of sets.
WORDS = PageWords(
    thing="set",
    truths="labels",
    size="size",
    full="full sets",
    gap="Coverage found minus coverage asked for, with 95 % bands.",
    scores="Weighted distribution of the calibration scores with the threshold and the node's own label scores",
    sections=(
        ("methods", "Methods"),
        ("groups", "Groups"),
        ("neighbourhoods", "Neighbourhoods"),
        ("sizes", "Sizes"),
        ("calibration", "Calibration"),
    ),
    reasons={
        "random": "drawn at random",
        "too little support": "with too little support",
        "empty set": "with an empty set",
        "largest sets": "with the largest sets",
    },
    ball=lambda ball: f"mostly {ball['class']}",
)


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage, an en dash where there is none.

    Examples
    --------
    >>> percent(0.9012)
    '90.1 %'
    """
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def number(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals, an en dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def cell(value: Any) -> str:
    """Return what stands in a cell of a table given by the user."""
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


@dataclass(frozen=True)
class Pair:
    """The rows of the baseline and of the method that the page is about, which may be the same."""

    base: Row
    local: Row

    @classmethod
    def of(cls, data: Any) -> Pair:
        """Return those of a page."""
        return cls(data.methods[0], data.methods[data.explorer.focus])

    def beside(self, text: str) -> str:
        """Return what the baseline has, to be held beside a number; nothing of a method beside itself."""
        return "" if self.base is self.local else f"{self.base['method']} {text}"

    def coverage(self, alpha: float) -> Row:
        """Return the card of the coverage."""
        asked = f"target {percent(1 - alpha, 0)}"
        return card("Coverage", percent(self.local["coverage"]), asked, self.beside(percent(self.base["coverage"])))

    def worst(self) -> list[Row]:
        """Return the card of the neighbourhood that is covered least, if there are neighbourhoods."""
        if not self.local["neighbourhoods"]:
            return []
        held = percent(self.local["in_neighbourhoods"], 0)
        compared = f"{self.local['neighbourhoods']} neighbourhoods compared, with {held} of the judged nodes"
        other = self.beside(percent(self.base["lowest"]))
        note = f"of its nodes covered, {other}; {compared}" if other else f"of its nodes covered; {compared}"
        return [card("Worst neighbourhood", percent(self.local["lowest"]), note)]


def cards(data: ReportData) -> list[Row]:
    """Return the headline numbers: a name, the value of the method that the page is about, what to hold beside it."""
    pair = Pair.of(data)
    base, local, beside = pair.base, pair.local, pair.beside
    supported = f"where all methods have support {number(local['supported_size'])}"
    return [
        pair.coverage(data.alpha),
        card(
            "Labels in a set",
            number(local["mean_size"]),
            beside(f"{number(base['mean_size'])}; {supported}") or supported,
            beside(number(base["supported_size"])),
        ),
        *pair.worst(),
        card("One label only", percent(local["singleton_rate"]), beside(percent(base["singleton_rate"]))),
        card(
            "Too little support",
            f"{local['infinite']:,}",
            f"nodes of {local['nodes']:,} get every label, because too few calibration nodes are near",
        ),
    ]


def card(name: str, value: str, *notes: str) -> Row:
    """Return a headline number with what to hold beside it."""
    return {"name": name, "value": value, "note": ", ".join(note for note in notes if note)}


def method_table(data: ReportData) -> list[list[tuple[str, str]]]:
    """Return the comparison, one list a method, each cell with its note (an uncertainty, or nothing)."""
    return [
        [
            (row["method"], ""),
            (percent(row["coverage"]), f"± {100 * row['coverage_se']:.1f}"),
            (number(row["mean_size"]), f"± {number(row['mean_size_se'])}"),
            (number(row["size_given_coverage"]), ""),
            (number(row["supported_size"]), ""),
            (number(row["sscv"], 3), ""),
            (number(row["pccv"], 3), f"chance {number(row['pccv_chance'], 3)}"),
            (percent(row["lowest"]), ""),
        ]
        for row in data.methods
    ]


def summary_table(data: ReportData) -> list[list[tuple[str, str]]]:
    """Return empty, one-label and full sets and missing support, counted, one list a method."""
    return [
        [
            (row["method"], ""),
            (f"{row['empty']:,}", percent(row["empty_rate"])),
            (f"{row['singletons']:,}", percent(row["singleton_rate"])),
            (f"{row['full']:,}", percent(row["full_rate"])),
            (f"{row['infinite']:,}", percent(row["infinite"] / row["nodes"])),
        ]
        for row in data.methods
    ]
