"""The first screen: the result in plain words, for a reader who has never heard of conformal prediction.

It says what was done, which method to use and why, where that is weak, and what to do next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from napsets.errors import Surface
from napsets.evaluation.findings import Finding
from napsets.evaluation.sentences import named
from napsets.evaluation.verdict import Verdict
from napsets.report.parts import Parts, Shown
from napsets.report.words import Words, plural

#: Weak classes and groups that are named.
_NAMED = 4
#: With fewer labels, finding out more of them is advised.
_FEW = 500


def in_python(method: str) -> str:
    """Return the code that predicts with a method of a comparison."""
    return f"comparison[{method!r}].calibrated.predict()"


def inspect_in_python(method: str, node: object) -> str:
    """Return the code that explains a node's prediction by a method of a comparison."""
    return f"napsets.inspect_node(comparison[{method!r}].calibrated, {node!r})"


@dataclass(frozen=True)
class Commands:
    """What to run next with a method: how to predict, and how to explain a node; empty where nothing can be run."""

    predict: Callable[[str], str] = in_python
    inspect: Callable[[str, object], str] = inspect_in_python

    @property
    def surface(self) -> Surface:
        """Where the page is from, and so whether it names options or arguments."""
        return "python" if self.predict is in_python else "terminal"


@dataclass(frozen=True)
class FirstScreen:
    """The sentences of the first screen."""

    #: That no promise of coverage can be made for nodes whose label is not known; shown only where that is so.
    withdrawn: str
    result: str  #: How often the truth is covered, and how large the predictions are.
    example: str  #: One node and what is predicted for it; empty where there is none to show.
    #: What was done, which method to use and why, and where it is weak.
    done: str
    method: str
    weak: str
    steps: list[str]  #: What to do next; the last one is followed by the command.
    command: str


def first_screen(shown: Shown, parts: Parts, verdict: Verdict, commands: Commands) -> FirstScreen:
    """Return the first screen of a page."""
    words = shown.words
    result = shown.comparison[verdict.method]
    covered = round(100 * verdict.coverage)
    among = " labelled" if verdict.withdrawn else ""
    labels_are = "" if words.given else " (their labels)"
    empty = round(100 * result.measures.get("empty_rate", 0.0))
    empties = f" {empty} of 100 {words.item}s are empty, because no {words.label} fits well enough." if empty else ""
    target = 100 * (1 - verdict.alpha)
    low, high = verdict.band
    chance = ""
    if verdict.coverage < low:
        chance = f"; {covered} is less than chance usually explains"
    elif verdict.coverage <= high and covered != round(target) and not verdict.withdrawn:
        chance = f"; {covered} is within the range of chance"
    return FirstScreen(
        f"For {words.nodes} whose {words.label} is not known, the {words.item}s may miss the true {words.label} more "
        f"often than this page says.",
        f"For {covered} of 100{among} {words.nodes}, the true {words.label} is in the {words.item}. {parts.result}",
        parts.example + empties,
        f"{parts.done} The target is that the {words.item} contains the true {words.label} for {target:g} of 100 "
        f"{words.nodes}{chance}. "
        f"The known {words.labels} of {verdict.labels:,} {words.nodes}{labels_are} were used to make the "
        f"{words.item}s, and those of {verdict.judged:,} others to check them.{_spread(verdict, words)}",
        _method(verdict, words, len(shown.titles) - 1),
        _weak(verdict, words),
        _steps(verdict, words, commands),
        commands.predict(verdict.method),
    )


def _spread(verdict: Verdict, words: Words) -> str:
    """Return the spread of coverage over draws of labels, where these are few."""
    few = next((finding for finding in verdict.findings if finding.kind == "few labels"), None)
    if few is None:
        return ""
    low, high = (round(100 * few.numbers[end]) for end in ("low", "high"))
    return (
        f" With other {words.nodes} labelled at random, between {low} and {high} of 100 would be covered (in 95 of 100 "
        f"such cases)."
    )


def _method(verdict: Verdict, words: Words, others: int) -> str:
    """Return the recommended method and the reasons."""
    plain = named(verdict.baseline)
    simple = plain + (", the standard method, which ignores the graph" if verdict.baseline.startswith("Split ") else "")
    does = f" It uses the known {words.labels} of a {words.node}'s neighbours." if verdict.informed else ""
    if verdict.kept:
        rivals = "" if not others else f" None of the {others} other methods is clearly better."
        choice = f"{simple}.{rivals}"
    elif verdict.change.below:
        even = "neither is clearly closer to the target"
        if verdict.evenness.above or verdict.evenness.below:
            even = f"it falls {'further' if verdict.evenness.above else 'less'} short of the target"
        share = abs(100 * verdict.change.value)
        choice = (
            f"{named(verdict.title)}.{does} Its {words.item}s are {share:.0f} % {words.shorter} on average than those "
            f"of {simple}. Within single parts of the graph, {even}."
        )
    else:
        choice = (
            f"{named(verdict.title)}.{does} Within single parts of the graph, it falls less short of the target than "
            f"{simple}."
        )
    if verdict.plain is not None and not verdict.kept and math.isfinite(verdict.plain.size):
        choice += _other_plain(verdict, words)
    smallest = verdict.smallest
    if smallest is None:
        return choice
    even = ", but falls further short of the target within single parts of the graph" * smallest.evenness.above
    return (
        f"{choice} If {words.short} {words.item}s matter most: {named(smallest.title)} makes them "
        f"{abs(100 * smallest.change.value):.0f} % {words.shorter} still{even}."
    )


def _other_plain(verdict: Verdict, words: Words) -> str:
    """Return the sizes and the shortfall of the other method without the graph."""
    other = verdict.plain
    assert other is not None
    sizes = f"{verdict.prediction.size_text(other.size)} {words.labels} on average"
    short = ""
    if not math.isnan(other.under) and not math.isnan(verdict.under):
        short = (
            f", and within single parts of the graph it falls {100 * other.under:.1f} points short of the target "
            f"(this method: {100 * verdict.under:.1f})"
        )
    return f" {named(other.title, first=True)}, which ignores the graph too, gives {words.item}s of {sizes}{short}."


def _weak(verdict: Verdict, words: Words) -> str:
    """Return the classes, groups and neighbourhoods that are covered too little."""
    found = [finding.numbers for finding in verdict.findings if finding.kind == "weak groups"]
    if not found:
        which = f"{words.label} or group" if words.noun == "set" else "group"
        if verdict.withdrawn:
            return (
                f"Among the labelled {words.nodes}, no {which} clearly misses the target. That says nothing about the "
                f"{words.nodes} that differ from them."
            )
        return f"No {which} of {words.nodes} clearly misses the target."
    return " ".join(_weak_groups(numbers, words) for numbers in found)


def _weak_groups(numbers: Mapping[str, Any], words: Words) -> str:
    """Return the groups of one grouping that are covered too little."""
    weak, of, what = numbers["groups"], numbers["of"], numbers["what"]
    plural = {"class": words.labels, "neighbourhood": "neighbourhoods of the graph"}.get(what, f"groups by {what}")
    share = [f"{round(100 * group.coverage)} % of {group.nodes} {_count(words, group.nodes)}" for group in weak]
    if what == "neighbourhood":
        listed = share[:_NAMED]
    else:
        listed = [f"{words.put(group.name)} ({part})" for group, part in zip(weak[:_NAMED], share, strict=False)]
    more = f", and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    return f"The target is missed, by more than chance, for {len(weak)} of {of} {plural}: {', '.join(listed)}{more}."


def _count(words: Words, count: int) -> str:
    return words.node if count == 1 else words.nodes


#: What becomes of labels that are no random sample.
_KEPT = ": with those as `--labels`, and the ones that are known today as `--evidence`"


def _steps(verdict: Verdict, words: Words, commands: Commands) -> list[str]:
    """Return the advice for the next step."""
    steps = []
    if verdict.withdrawn:
        steps.append(
            f"Find out the true {words.label} of {words.nodes} drawn at random, on which the model was not trained, "
            f"and make this report again{_KEPT if verdict.remedy else ''}."
        )
    weak = [finding for finding in verdict.findings if finding.kind == "weak groups"]
    steps += [_for_weak(finding, words, commands) for finding in weak if finding.numbers["what"] in ("class", "degree")]
    if verdict.labels < _FEW and not verdict.withdrawn:
        steps.append(
            f"Find out the true {words.label} of more {words.nodes}: with only {verdict.labels:,}, the result depends "
            f"on which they are."
        )
    if not commands.predict(verdict.method):
        return steps or [f"Try it on {words.nodes} of your own: `napsets report --help`."]
    run = "use this in Python" if commands.surface == "python" else "run this command"
    return [*steps, f"To get the {words.item}s of the {words.nodes} whose {words.label} is not known, {run}:"]


def _for_weak(finding: Finding, words: Words, commands: Commands) -> str:
    """Return the advice for weak classes or groups, with the result of trying thresholds per group."""
    numbers, trial = finding.numbers, finding.numbers.get("trial")
    each = words.label if numbers["what"] == "class" else "group"
    one = len(numbers["groups"]) == 1
    these, matter = (f"this {each}", "matters") if one else (f"these {plural(each)}", "matter")
    more = f"find out the true {words.label} of more {words.nodes} of {these}"
    if trial is None or not trial.helped:
        need = "" if trial is None else f": each {each} needs {trial.needed} for a threshold of its own"
        return f"If {these} {matter}, {more}{need}."
    option = f'`by="{trial.by}"`' if commands.surface == "python" else f"`--by {trial.by}`"
    size, before = (f"{value:.2f}" if words.noun == "set" else f"{value:.3g}" for value in (trial.size, trial.plain))
    text = (
        f"If {these} {matter}, add {option}. Tried on these {words.nodes}, it changes the average size of the "
        f"{words.item}s from {before} to {size}"
    )
    if not math.isnan(trial.coverage):
        whose = f"of {these}" if not trial.too_few else f"of those {plural(each)} with enough labels"
        text += (
            f", and {round(100 * trial.coverage)} % of the {words.nodes} {whose} are covered instead of "
            f"{round(100 * trial.before)} %"
        )
    if trial.too_few:
        listed = ", ".join(name for name, _ in trial.too_few[:_NAMED])
        more_too = f" and {len(trial.too_few) - _NAMED} more" if len(trial.too_few) > _NAMED else ""
        text += f". It cannot help {listed}{more_too}, with too few labels ({trial.needed} are needed)"
    return f"{text}. Or {more}."
