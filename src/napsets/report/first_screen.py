"""The first screen: the result in plain words, for a reader who has never heard of conformal prediction.

It says what was done, which method to use and why, where that is weak, and what to do next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from napsets.evaluation.verdict_words import Verdict, named
from napsets.report.parts import Parts, Shown
from napsets.report.words import Words

#: Weak classes and groups that are named.
_NAMED = 4


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
        f"For {covered} of 100{among} {words.nodes}, {parts.result}.",
        parts.example + empties,
        f"{parts.done} The target is that the {words.item} contains the true {words.label} for {target:g} of 100 "
        f"{words.nodes}{chance}. "
        f"The known {words.labels} of {verdict.labels:,} {words.nodes}{labels_are} were used to make the "
        f"{words.item}s, and those of {verdict.judged:,} others to check them.",
        _method(verdict, words, len(shown.titles) - 1),
        _weak(verdict, words),
        _steps(verdict, words, commands),
        commands.predict(verdict.method),
    )


def _method(verdict: Verdict, words: Words, others: int) -> str:
    """Say which method to use, and why."""
    plain = named(verdict.baseline)
    if verdict.baseline.startswith("Split "):
        plain += ", the standard method, which ignores the graph"
    does = f" It uses the known {words.labels} of a {words.node}'s neighbours." if verdict.informed else ""
    if verdict.kept:
        rivals = "" if not others else f" None of the {others} other methods is clearly better."
        choice = f"{plain}.{rivals}"
    elif verdict.change.below:
        even = "neither method is clearly closer to the target"
        if verdict.evenness.above or verdict.evenness.below:
            even = f"it is {'further from' if verdict.evenness.above else 'closer to'} the target"
        share = abs(100 * verdict.change.value)
        choice = (
            f"{named(verdict.title)}.{does} Its {words.item}s are {share:.0f} % {words.shorter} than those of {plain}. "
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
        f"{choice} If {words.short} {words.item}s matter most: {named(smallest.title)} makes them "
        f"{abs(100 * smallest.change.value):.0f} % {words.shorter} still{even}."
    )


def _weak(verdict: Verdict, words: Words) -> str:
    """Say which classes and groups are covered too little."""
    weak = verdict.weak
    if not weak:
        which = f"{words.label} or group" if words.noun == "set" else "group"
        return f"No {which} of {words.nodes} clearly misses the target."
    listed = [f"{group.name} ({100 * group.coverage:.0f} of 100 {words.nodes})" for group in weak[:_NAMED]]
    more = f", and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    return f"The target is missed, by more than chance, for {', '.join(listed)}{more}."


#: What becomes of labels that are no random sample.
_KEPT = ": with those as `--labels`, and the ones that are known today as `--evidence`"


def _steps(verdict: Verdict, words: Words, commands: Commands) -> list[str]:
    """Say what to do next."""
    steps = []
    if verdict.withdrawn:
        steps.append(
            f"Find out the true {words.label} of {words.nodes} drawn at random, on which the model was not trained, "
            f"and make this report again{_KEPT if verdict.remedy else ''}."
        )
    by = {group.what for group in verdict.weak} & {"class", "degree"}
    if by:
        which = "class" if "class" in by else "degree"
        matter = "this matters" if len(verdict.weak) == 1 else "these matter"
        each = words.label if which == "class" else "group"
        steps.append(
            f"If {matter}, add `--by {which}` to `napsets predict`: each {each} then meets the target, with "
            f"{words.longer} {words.item}s. Or find out the true {words.label} of more of these {words.nodes}."
        )
    if verdict.labels < 500 and not verdict.withdrawn:
        steps.append(
            f"Find out the true {words.label} of more {words.nodes}: with only {verdict.labels:,}, the result depends "
            f"on which they are."
        )
    if not commands.predict(verdict.method):
        return steps or [f"Try it on {words.nodes} of your own: `napsets report --help`."]
    run = "use this in Python" if commands.predict is in_python else "run this command"
    return [*steps, f"To get the {words.item}s of the {words.nodes} whose {words.label} is not known, {run}:"]
