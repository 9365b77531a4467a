"""The first screen: the result in plain words, for a reader who has never heard of conformal prediction.

It says what was done, which method to use and why, where that is weak, and what to do next. The headline cards follow,
with numbers as people read them; no claim that the numbers do not support.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.text import percent, visible
from napsets.evaluation.verdict_words import named
from napsets.report.chart_parts import Row

if TYPE_CHECKING:
    from napsets.report.data import ReportData

#: Weak classes and groups that are named.
_NAMED = 4


@dataclass(frozen=True)
class Vocabulary:
    """What a node and its label are called on the page."""

    node: str = "node"
    label: str = "class"

    @classmethod
    def parse(cls, text: str | None) -> Vocabulary:
        """Return the two words of a text, the usual ones where it has none."""
        parts = [part.strip() for part in (text or "").split(",")]
        return cls(parts[0] or cls.node, parts[1] if len(parts) > 1 and parts[1] else cls.label)

    @property
    def each_node(self) -> str:
        """Each node, with what a node is where the user has no word for it."""
        return f"each {self.node}{' (each item of the graph)' * (self.node == Vocabulary.node)}"

    @property
    def nodes(self) -> str:
        """Several nodes."""
        return _plural(self.node)

    @property
    def labels(self) -> str:
        """Several labels."""
        return _plural(self.label)


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


@dataclass(frozen=True)
class FirstScreen:
    """The sentences of the first screen."""

    #: That no promise of coverage can be made for nodes whose label is not known; shown only where that is so.
    withdrawn: str
    result: str  #: What was found, in one sentence.
    example: str  #: One node and what is predicted for it; empty where there is none to show.
    #: What was done, which method to use and why, and where it is weak.
    done: str
    method: str
    weak: str
    steps: list[str]  #: What to do next.


def summarise(data: ReportData, words: Vocabulary) -> FirstScreen:
    """Return the first screen of a page."""
    verdict, kind = data.verdict, data.kind
    if words.label == Vocabulary.label:
        words = replace(words, label=kind.label)
    result = data.comparison[verdict.method]
    covered = round(100 * verdict.coverage)
    what, done = kind.in_words(result.prediction, words)
    among = " labelled" if verdict.withdrawn else ""
    labels_are = " (their labels)" if kind.label == Vocabulary.label else ""
    empty = round(100 * result.measures.get("empty_rate", 0.0))
    empties = f" {empty} of 100 {kind.noun}s are empty, because no {words.label} fits well enough." if empty else ""
    target = 100 * (1 - data.alpha)
    low, high = verdict.band
    chance = ""
    if verdict.coverage < low:
        chance = f"; {covered} is less than chance usually explains"
    elif verdict.coverage <= high and covered != round(target) and not verdict.withdrawn:
        chance = f"; {covered} is within the range of chance"
    return FirstScreen(
        f"For {words.nodes} whose {words.label} is not known, the {kind.noun}s may miss the true {words.label} more "
        f"often than this page says.",
        f"For {covered} of 100{among} {words.nodes}, {what}.",
        kind.example(result.prediction, data.names, words) + empties,
        f"{done} The target is that the {kind.noun} contains the true {words.label} for {target:g} of 100 {words.nodes}"
        f"{chance}. "
        f"The known {words.labels} of {verdict.labels:,} {words.nodes}{labels_are} were used to make the "
        f"{kind.noun}s, and those of {verdict.judged:,} others to check them.",
        _method(data, words),
        _weak(data, words),
        _steps(data, words),
    )


def _method(data: ReportData, words: Vocabulary) -> str:
    """Say which method to use, and why."""
    verdict, kind = data.verdict, data.kind
    plain = named(verdict.baseline)
    if verdict.baseline.startswith("Split "):
        plain += ", the standard method, which ignores the graph"
    others = len(data.shown) - 1
    does = f" It uses the known {words.labels} of a {words.node}'s neighbours." if verdict.held_out_are_evidence else ""
    if verdict.kept:
        rivals = "" if not others else f" None of the {others} other methods is clearly better."
        choice = f"{plain}.{rivals}"
    elif verdict.change.below:
        even = "neither method is clearly closer to the target"
        if verdict.evenness.above or verdict.evenness.below:
            even = f"it is {'further from' if verdict.evenness.above else 'closer to'} the target"
        share = abs(100 * verdict.change.value)
        choice = (
            f"{named(verdict.title)}.{does} Its {kind.noun}s are {share:.0f} % {kind.shorter} than those of {plain}. "
            f"Within single parts of the graph, {even}."
        )
    else:
        choice = (
            f"{named(verdict.title)}.{does} Within single parts of the graph, it is closer to the target than {plain}."
        )
    smallest = verdict.smallest
    if smallest is None:
        return choice
    even = ", but is further from the target within single parts of the graph" if smallest.evenness.above else ""
    return (
        f"{choice} If {kind.short} {kind.noun}s matter most: {named(smallest.title)} makes them "
        f"{abs(100 * smallest.change.value):.0f} % {kind.shorter} still{even}."
    )


def _weak(data: ReportData, words: Vocabulary) -> str:
    """Say which classes and groups are covered too little."""
    weak = data.verdict.weak
    if not weak:
        which = f"{words.label} or group" if data.kind.label == Vocabulary.label else "group"
        return f"No {which} of {words.nodes} clearly misses the target."
    listed = [f"{group.name} ({100 * group.coverage:.0f} of 100 {words.nodes})" for group in weak[:_NAMED]]
    more = f", and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    return f"The target is missed, by more than chance, for {', '.join(listed)}{more}."


def _steps(data: ReportData, words: Vocabulary) -> list[str]:
    """Say what to do next."""
    verdict, kind = data.verdict, data.kind
    unknown = f"of the {words.nodes} whose {words.label} is not known"
    predict = f"To get the {kind.noun}s {unknown}, run `napsets predict --method "
    steps = []
    if verdict.withdrawn:
        steps.append(
            f"Find out the true {words.label} of {words.nodes} drawn at random, on which the model was not trained, "
            f"and make this report again."
        )
    by = {group.what for group in verdict.weak} & {"class", "degree"}
    if by:
        which = "class" if "class" in by else "degree"
        matter = "this matters" if len(verdict.weak) == 1 else "these matter"
        each = words.label if which == "class" else "group"
        steps.append(
            f"If {matter}, add `--by {which}` to the command below: each {each} then meets the target, with "
            f"{kind.longer} {kind.noun}s. Or find out the true {words.label} of more of these {words.nodes}."
        )
    if verdict.labels < 500 and not verdict.withdrawn:
        steps.append(
            f"Find out the true {words.label} of more {words.nodes}: with only {verdict.labels:,}, the result depends "
            f"on which they are."
        )
    task = "".join(f" --{name} {value}" for name, value in data.kind.recorded.items())
    return [*steps, f"{predict}{verdict.method}{task}`."]


def size_range(sizes: np.ndarray) -> str:
    """Return between what most sizes lie, in words."""
    low, high = (int(end) for end in np.quantile(np.maximum(sizes, 1), [0.1, 0.9], method="nearest"))
    return str(low) if low == high else f"{low} {'or' if high == low + 1 else 'to'} {high}"


def quoted(names: list[str], most: int = 8) -> str:
    """Return names in quotation marks as a list, of many names only the first."""
    marked = [f"“{name}”" for name in names]
    if len(marked) > most:
        marked[most - 1 :] = [f"{len(marked) - most + 1} more"]
    return f"{', '.join(marked[:-1])} and {marked[-1]}" if len(marked) > 1 else marked[0]


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
    """Return a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def unbroken(text: str) -> str:
    """Return text in which a number and its percent sign stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def code(text: str) -> Any:
    """Return a sentence as HTML, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = [escape(unbroken(visible(part))) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if k % 2 else part for k, part in enumerate(parts))


def card(name: str, value: str, *notes: str) -> Row:
    """Return a headline number with what to compare it with."""
    return {"name": name, "value": value, "note": ", ".join(note for note in notes if note)}


@dataclass(frozen=True)
class Headline:
    """The rows of the baseline and of the recommended method, which may be the same."""

    base: Row
    focus: Row

    @classmethod
    def of(cls, data: ReportData) -> Headline:
        """Return those of a page."""
        names = [result.name for result in data.comparison]
        return cls(data.methods[0], data.methods[names.index(data.verdict.method)])

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
        count = self.focus["neighbourhoods"]
        compared = f"{count} neighbourhood{'s' * (count != 1)} compared, with {held} of the evaluation nodes"
        other = self.beside(percent(self.base["lowest"]))
        note = f"of its nodes covered, {other}; {compared}" if other else f"of its nodes covered; {compared}"
        return [card("Worst neighbourhood", percent(self.focus["lowest"]), note)]
