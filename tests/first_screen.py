"""Whether reports say the truth: every sentence of the first screen, on graphs whose labels are all known.

Part of the labels are revealed, at random or under a false premise that is planted; a report is written from them, and
each sentence of its first screen is recognised and compared with numbers that are computed anew, and with the labels
that the report has not seen. A sentence that is not recognised is an error, so that no new one goes unchecked.

``python tests/first_screen.py`` checks ten graphs, ``python tests/first_screen.py eips cora-ml`` the ones that are
named; ``src`` and the folder of the project must be on the path.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import betabinom, binom

import napsets as ns
from first_screen_worlds import ALPHA, GRAPHS, PREMISES, World, compared, make_world
from napsets.evaluation.results import Comparison
from napsets.groups import make_groups
from napsets.report import write_page

#: A claim about chance is false where the truth is less probable than this.
_CHANCE = 1e-4


# -- what the first screen says ----------------------------------------------------------------------------------------


def first_screen_of(page: str) -> list[str]:
    """Return the sentences of a page's first screen, without markup; the name of its part stands before each."""
    card = page[page.index('id="verdict"') : page.index('id="numbers"')]
    card = card[card.index(">") + 1 :]
    sentences = []
    for block in re.findall(r"<(?:p|dd)[^>]*>(.*?)</(?:p|dd)>", card, flags=re.DOTALL):
        if "<pre" in block:
            continue
        text = " ".join(unescape(re.sub(r"<[^>]+>", "", block)).replace("\N{NO-BREAK SPACE}", " ").split())
        sentences += re.split(r"(?<=\.)\s+(?=[A-Z“0-9])", text)
    return [sentence for sentence in sentences if sentence]


@dataclass(eq=False)
class Checker:
    """Compares the sentences of a report with the truth."""

    world: World
    comparison: Comparison
    wrong: list[str] = field(default_factory=list)
    advised: str = ""  #: the groups that the last sentence advised thresholds for

    @cached_property
    def result(self) -> Any:
        """The result of the method that the report recommends."""
        return self.comparison.best

    @cached_property
    def covered(self) -> npt.NDArray[np.bool_]:
        """Whether each judged node is covered."""
        sets, judged = self.result.prediction, self.world.judged
        return np.asarray(sets.member[np.arange(judged.size), self.world.labels[sets.nodes]])

    @cached_property
    def hidden(self) -> Any:
        """The sets of nodes whose labels the report has not seen."""
        return self.result.calibrated.predict(self.world.hidden, ALPHA)

    def hidden_covered(self) -> npt.NDArray[np.bool_]:
        """Whether each hidden node is covered."""
        return np.asarray(self.hidden.member[np.arange(len(self.hidden)), self.world.labels[self.hidden.nodes]])

    def expect(self, sentence: str, shown: float, true: float, digits: float = 0.5) -> None:
        """Note a number that differs from the truth by more than its rounding."""
        if not abs(shown - true) <= digits + 1e-9:
            self.wrong.append(f"{sentence!r}: {shown} is {true:.4g}")

    def claim(self, sentence: str, holds: bool, reason: str) -> None:
        """Note a claim that does not hold."""
        if not holds:
            self.wrong.append(f"{sentence!r}: {reason}")

    def check(self, sentences: Sequence[str]) -> list[str]:
        """Return what is wrong: sentences that are false, and those that no rule knows."""
        for sentence in sentences:
            for pattern, rule in RULES:
                found = re.fullmatch(pattern, sentence)
                if found:
                    rule(self, sentence, found)
                    break
            else:
                self.wrong.append(f"{sentence!r}: not known")
        if not any("No promise of coverage can be made" in sentence for sentence in sentences):
            self._promise()
        return self.wrong

    def _promise(self) -> None:
        """Note a promise that the hidden labels do not keep."""
        if not self.comparison.verdict().proven:
            return
        labels = self.comparison.verdict().level_labels
        hits, count = int(self.hidden_covered().sum()), len(self.hidden)
        place = math.ceil((labels + 1) * (1 - ALPHA) - 1e-9)
        tail = betabinom(count, place, labels + 1 - place).cdf(hits)
        self.claim("(the promise)", bool(tail > _CHANCE), f"{hits / count:.3f} of the hidden nodes are covered")


Rule = Callable[[Checker, str, re.Match[str]], None]


def _sizes(checker: Checker) -> npt.NDArray[np.int64]:
    return np.asarray(checker.result.prediction.member.sum(axis=1))


def _coverage(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["share"]), 100 * checker.covered.mean())
    among = "labelled" in found[0]
    checker.claim(sentence, among == bool(checker.comparison.verdict().withdrawn), "“labelled” stands where it may not")


def _shares(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    sizes = _sizes(checker)
    checker.expect(sentence, float(found["share"]), 100 * (sizes <= int(found["most"])).mean())
    if found["more"]:
        checker.expect(sentence, float(found["larger"]), 100 * (sizes > int(found["more"])).mean())
    if found["longest"]:
        checker.expect(sentence, float(found["longest"]), sizes.max(), 0)


def _average(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["size"]), _sizes(checker).mean(), 0.005)
    checker.expect(sentence, float(found["classes"]), checker.world.outputs.shape[1], 0)


def _example(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    node = int(found["node"])
    row = int(np.flatnonzero(checker.result.prediction.nodes == node)[0])
    labels = np.flatnonzero(checker.result.prediction.member[row])
    named = [int(y) for y in re.findall(r"“class (\d+)”", found["labels"])]
    checker.claim(sentence, set(named) <= set(labels.tolist()), f"its set is {labels.tolist()}")
    checker.expect(sentence, float(found["true"]), checker.world.labels[node], 0)


def _empty(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["share"]), 100 * (_sizes(checker) == 0).mean())


def _target(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["target"]), 100 * (1 - ALPHA), 0)
    hits, labels = int(checker.covered.sum()), checker.comparison.verdict().level_labels
    place = math.ceil((labels + 1) * (1 - ALPHA) - 1e-9)
    law = betabinom(checker.covered.size, place, labels + 1 - place)
    if "less than chance" in sentence:
        checker.claim(sentence, law.cdf(hits) < 0.026, "chance explains it")
    if "within the range" in sentence:
        checker.claim(sentence, law.cdf(hits) > 0.024 and law.sf(hits - 1) > 0.024, "it is outside")


def _counts(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["made"].replace(",", "")), checker.world.calibration.size, 0)
    checker.expect(sentence, float(found["judged"].replace(",", "")), checker.world.judged.size, 0)


def _spread(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    labels = checker.comparison.verdict().level_labels
    place = math.ceil((labels + 1) * (1 - ALPHA) - 1e-9)
    draws = np.random.default_rng(0).beta(place, labels + 1 - place, 200_000)
    for end, tail in (("low", 0.025), ("high", 0.975)):
        checker.expect(sentence, float(found[end]), 100 * float(np.quantile(draws, tail)), 0.6)


def _shorter(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    plain = checker.comparison.baseline
    own, other = _sizes(checker).mean(), plain.prediction.member.sum(axis=1).mean()
    checker.expect(sentence, float(found["share"]), 100 * (1 - own / other))
    other_hidden = plain.calibrated.predict(checker.world.hidden, ALPHA).member.sum(axis=1).mean()
    ratio = float(checker.hidden.member.sum(axis=1).mean() / other_hidden)
    if not checker.comparison.verdict().withdrawn:
        checker.claim(sentence, ratio < 1.0, f"of hidden nodes, lists are {ratio:.2f} times as long")


def _short_of(checker: Checker, result: Any) -> float:
    """Return how far coverage falls short of the target in groups, on average in points, computed anew."""
    verdict, world = checker.comparison.verdict(), checker.world
    if verdict.over == "neighbourhood":
        groups = [np.flatnonzero(np.isin(world.judged, part)) for part in checker.comparison.partition]
    else:
        degrees = ns.groups_by_degree(world.graph, 5, world.judged)[world.judged]
        groups = [np.flatnonzero(degrees == g) for g in np.unique(degrees)]
    covered = result.prediction.member[np.arange(world.judged.size), world.labels[result.prediction.nodes]]
    return 100 * float(np.mean([max(0.0, 1 - ALPHA - covered[group].mean()) for group in groups]))


def _parts(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    own, plain = (_short_of(checker, result) for result in (checker.result, checker.comparison.baseline))
    if "falls less short" in sentence:
        checker.claim(sentence, own < plain, f"{own:.2f} compared with {plain:.2f} points")
    if "falls further short" in sentence:
        checker.claim(sentence, own > plain, f"{own:.2f} compared with {plain:.2f} points")


def _other_plain(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    other = checker.comparison["thr" if found["score"] == "THR" else "split"]
    checker.expect(sentence, float(found["size"]), other.prediction.member.sum(axis=1).mean(), 0.005)
    if found["under"]:
        checker.expect(sentence, float(found["under"]), _short_of(checker, other), 0.051)
        checker.expect(sentence, float(found["own"]), _short_of(checker, checker.result), 0.051)


def _smallest(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    smallest = min(checker.comparison, key=lambda result: float(result.prediction.member.sum(axis=1).mean()))
    size = smallest.prediction.member.sum(axis=1).mean()
    checker.expect(sentence, float(found["share"]), 100 * (1 - size / _sizes(checker).mean()), 1.0)


def _none_better(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["count"]), len(checker.comparison) - 1, 0)
    own = checker.hidden.member.sum(axis=1).mean()
    for result in () if checker.comparison.verdict().withdrawn else checker.comparison:
        if result.calibrated.choice is None:
            continue
        sets = result.calibrated.predict(checker.world.hidden, ALPHA)
        ratio = float(sets.member.sum(axis=1).mean() / own)
        covers = float(sets.member[np.arange(len(sets)), checker.world.labels[sets.nodes]].mean())
        good = covers > checker.comparison.verdict().band[0]
        checker.claim(sentence, ratio > 0.8 or not good, f"{result.title} makes sets {ratio:.2f} times as large")


def _classes(checker: Checker) -> dict[str, npt.NDArray[np.bool_]]:
    own = checker.world.labels[checker.result.prediction.nodes]
    return {f"class {y}": own == y for y in np.unique(own)}


def _tail(checker: Checker, inside: npt.NDArray[np.bool_]) -> float:
    return float(binom.cdf(checker.covered[inside].sum(), inside.sum(), 1 - ALPHA))


def _weak(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    if found["kind"] == "classes":
        groups = _classes(checker)
        for name, share, count in re.findall(r"(class \d+) \((\d+) % of (\d+) nodes?\)", sentence):
            checker.expect(sentence, float(count), groups[name].sum(), 0)
            checker.expect(sentence, float(share), 100 * checker.covered[groups[name]].mean())
            tail = _tail(checker, groups[name]) * len(groups)
            checker.claim(sentence, tail < 0.01, f"{name} may miss the target by chance")
            unseen = checker.world.labels[checker.hidden.nodes] == int(name.split()[1])
            biased = checker.comparison.verdict().withdrawn
            low = biased or unseen.sum() < 20 or checker.hidden_covered()[unseen].mean() < 1 - ALPHA
            checker.claim(sentence, bool(low), f"hidden nodes of {name} are covered")
        return
    for share, count in re.findall(r"(\d+) % of (\d+) nodes?", sentence):
        hits = round(int(share) * int(count) / 100)
        checker.claim(sentence, binom.cdf(hits, int(count), 1 - ALPHA) < 0.01, "chance explains it")


def _none_weak(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    groups = _classes(checker)
    for name, inside in groups.items():
        share = float(checker.covered[inside].mean())
        clear = _tail(checker, inside) * len(groups) < 1e-4 and share < 0.8
        checker.claim(sentence, not clear, f"{name} is covered for {100 * share:.0f} % of {inside.sum()} nodes")


def _advised(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.advised = found["by"]


def _tried(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    world, choice = checker.world, checker.result.calibrated.choice
    if choice is None:
        method: Any = replace(checker.result.calibrated.method, groups=make_groups(checker.advised))
    else:
        method = ns.Auto(ALPHA, by=checker.advised, prefer=choice.prefer)
    sets = method.calibrate(world.graph, world.outputs, world.known, world.calibration).predict(world.judged, ALPHA)
    checker.expect(sentence, float(found["before"]), _sizes(checker).mean(), 0.005)
    checker.expect(sentence, float(found["after"]), sets.member.sum(axis=1).mean(), 0.005)
    if found["share"] and "with enough labels" not in sentence and checker.advised == "class":
        own = world.labels[world.judged]
        weak = [int(group.name.split()[1]) for group in checker.comparison.verdict().weak if group.what == "class"]
        inside = np.isin(own, weak)
        after = sets.member[np.arange(own.size), own][inside].mean()
        checker.expect(sentence, float(found["share"]), 100 * after)
        checker.expect(sentence, float(found["less"]), 100 * checker.covered[inside].mean())


def _withdrawn(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.claim(sentence, bool(checker.comparison.verdict().withdrawn), "nothing withdraws it")


def _fine(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    """Sentences that claim no number."""


def _few(checker: Checker, sentence: str, found: re.Match[str]) -> None:
    checker.expect(sentence, float(found["labels"].replace(",", "")), checker.world.calibration.size, 0)


#: Each sentence of a first screen, as a pattern, with what checks it.
RULES: tuple[tuple[str, Rule], ...] = (
    (r"For (?P<share>\d+) of 100( labelled)? nodes, the true class is in the list\.", _coverage),
    (
        r"(?P<share>\d+) of 100 lists have at most (?P<most>\d+) class(es)?, and ((?P<larger>\d+) of 100 have more "
        r"than (?P<more>\d+)|the longest has (?P<longest>\d+))\.",
        _shares,
    ),
    (r"All lists have at most (?P<most>\d+) class(es)?\.(?P<share>)(?P<more>)(?P<longest>)", _fine),
    (r"On average a list has (?P<size>[\d.]+) of the (?P<classes>\d+) classes\.", _average),
    (
        r"(?:For example,|Some lists are longer:) node (?P<node>\d+) gets (?P<labels>.*); the true class is “class "
        r"(?P<true>\d+)”\.",
        _example,
    ),
    (r"(?P<share>\d+) of 100 lists are empty, because no class fits well enough\.", _empty),
    (r"A model gave each node .* a probability for each class\.|From these, napsets made .*\.", _fine),
    (r"The target is that the list contains the true class for (?P<target>[\d.]+) of 100 nodes(;.*)?\.", _target),
    (
        r"The known classes of (?P<made>[\d,]+) nodes \(their labels\) were used to make the lists, and those of "
        r"(?P<judged>[\d,]+) others to check them\.",
        _counts,
    ),
    (
        r"With other nodes labelled at random, between (?P<low>\d+) and (?P<high>\d+) of 100 would be covered \(in 95 "
        r"of 100 such cases\)\.",
        _spread,
    ),
    (r"(Use|Keep) [^.]*\.|It uses the known classes of a node's neighbours\.", _fine),
    (r"Its lists are (?P<share>\d+) % shorter on average than those of split APS, .*\.", _shorter),
    (r"Within single parts of the graph, .*\.", _parts),
    (
        r"Split (?P<score>THR|APS), which ignores the graph too, gives lists of (?P<size>[\d.]+) classes on average"
        r"(, and within single parts of the graph it falls (?P<under>[\d.]+) points short of the target \(this method: "
        r"(?P<own>[\d.]+)\))?\.",
        _other_plain,
    ),
    (r"If short lists matter most: .* makes them (?P<share>\d+) % shorter still.*\.", _smallest),
    (r"None of the (?P<count>\d+) other methods is clearly better\.", _none_better),
    (
        r"The target is missed, by more than chance, for \d+ of \d+ (?P<kind>classes|neighbourhoods of the graph|"
        r"groups by degree): .*\.",
        _weak,
    ),
    (r"No class or group of nodes clearly misses the target\.", _none_weak),
    (r"Among the labelled nodes, no class or group clearly misses the target\.", _none_weak),
    (r"That says nothing about the nodes that differ from them\.", _withdrawn),
    (r"If (this|these) .* matters?, add by=\"(?P<by>class|degree)\"\.", _advised),
    (
        r"Tried on these nodes, it changes the average size of the lists from (?P<before>[\d.]+) to (?P<after>[\d.]+)"
        r"(, and (?P<share>\d+) % of .* covered instead of (?P<less>\d+) %)?\.",
        _tried,
    ),
    (r"It cannot help .*\.|Or find out the true class of more nodes of .*\.|If (this|these) .* find out .*\.", _fine),
    (r"Find out the true class of more nodes: with only (?P<labels>[\d,]+), the result depends on .*\.", _few),
    (r"Find out the true class of nodes drawn at random, on which the model was not trained, .*\.", _withdrawn),
    (r"To get the lists of the nodes whose class is not known, use this in Python:", _fine),
    (r"No promise of coverage can be made\.", _withdrawn),
    (
        r"For nodes whose class is not known, the lists may miss the true class more often than this page says\.",
        _withdrawn,
    ),
    # The reason for a withdrawn promise is a finding of its own, which tests/evaluation checks.
    (
        r"(The model|The labelled|The calibration|The labels|The average|It was|It is|Calibrate on|Edges that) .*\.",
        _fine,
    ),
)


def check_world(world: World) -> list[str]:
    """Write a report about a world, and return what its first screen gets wrong."""
    comparison = compared(world)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        page = write_page(Path(folder) / "report.html", comparison).read_text(encoding="utf-8")
        return Checker(world, comparison).check(first_screen_of(page))


if __name__ == "__main__":
    false = 0
    for name, premise in product(sys.argv[1:] or GRAPHS, PREMISES):
        wrong = check_world(make_world(name, premise))
        print(f"{name}, {premise}: {'all true' if not wrong else ''}", flush=True)
        for text in wrong:
            print(f"    {text}", flush=True)
        false += len(wrong)
    sys.exit(1 if false else 0)
