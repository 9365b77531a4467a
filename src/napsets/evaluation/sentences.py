"""The sentences of verdicts and findings, and how each surface (the terminal, Python) names what helps.

A finding is a record of numbers; the facts read the same everywhere, and only the remedies differ: the terminal names
options, Python names arguments. The report's page adds the user's own words (`napsets.report.words`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from napsets.checks.text import percent
from napsets.checks.values import Values
from napsets.errors import Surface
from napsets.methods.data import on_training
from napsets.predictions import PredictionIntervals

if TYPE_CHECKING:
    from napsets.evaluation.drift import Drift
    from napsets.evaluation.findings import Finding, Trial
    from napsets.evaluation.gaps import WeakGroup
    from napsets.evaluation.judgement import Interval
    from napsets.evaluation.verdict import Verdict

#: A width as it is written.
wide = PredictionIntervals.size_text
#: Groups that are named in a sentence.
_NAMED = 8

#: What helps, in the words of each surface.
REMEDIES: dict[Surface, dict[str, str]] = {
    "terminal": {
        "sample": "label a few hundred nodes drawn at random among those without a label, and pass these as `--labels` "
        "and the labels that you have as `--evidence`",
        "unseen labels": "calibrate on labels that it has not seen",
        "training": "If it was trained on some of them, leave those out (`--training FILE`)",
        "by": "`--by {by}`",
        "own groups": "`--by FILE` with these groups",
        "alpha": "For {share:g} % coverage, pass `--alpha {alpha:.3g}`",
        "measure": "To measure it on half of your labels, run `napsets report{task}`",
        "compare": "`napsets report{task}` compares methods on half of the labels",
    },
    "python": {
        "sample": "label a few hundred nodes drawn at random among those without a label, and pass these as "
        "`calibration=` and the labels that you have as `evidence=`",
        "unseen labels": "calibrate on labels that it has not seen",
        "training": "If it was trained on some of them, leave those out of `predict(nodes)`",
        "by": '`by="{by}"`',
        "own groups": "`by=` with these groups",
        "alpha": "For {share:g} % coverage, set `alpha={alpha:.3g}`",
        "measure": "To measure it on half of your labels, use `napsets.compare`",
        "compare": "`napsets.compare` compares methods on labels that are held out",
    },
}


# -- findings ----------------------------------------------------------------------------------------------------------


def sentence_of(finding: Finding, verdict: Verdict) -> str:
    """Return a finding in words, without the full stop."""
    return _SENTENCES[finding.kind](finding, verdict)


def _remedy(verdict: Verdict, name: str, **values: float | str) -> str:
    task = " --task regression" * (verdict.prediction is PredictionIntervals)
    return REMEDIES[verdict.surface][name].format(task=task, **values)


def _trained(finding: Finding, verdict: Verdict) -> str:
    count = finding.numbers["labels"]
    labels = "1 calibration label" if count == 1 else f"{count:,} calibration labels"
    return f"the model was trained on {labels} (`train_mask`). {_upper(_remedy(verdict, 'unseen labels'))}"


def _easier(finding: Finding, verdict: Verdict) -> str:
    drift, accuracy = finding.numbers["drift"], finding.numbers["accuracy"]
    first, second = drift.between
    text = f"the model finds the {first} nodes easier than the {second} nodes. {_upper(drift_text(drift))}"
    if accuracy is None:
        return text
    return (
        f"{text}. It was probably trained on them: it is right for {100 * accuracy.share:.1f} % of them. "
        f"{_upper(_remedy(verdict, 'unseen labels'))}"
    )


def _easier_others(finding: Finding, verdict: Verdict) -> str:
    drift = finding.numbers["drift"]
    first, second = drift.between
    text = f"the model finds the {second} nodes easier than the {first} nodes. {_upper(drift_text(drift))}"
    return f"{text}. {_remedy(verdict, 'training')}"


def _too_good(finding: Finding, verdict: Verdict) -> str:
    accuracy = finding.numbers["accuracy"]
    return (
        f"the model is right for {100 * accuracy.share:.1f} % of the labelled nodes, though its probabilities promise "
        f"{100 * accuracy.promised:.1f} %; if it was trained on these labels, calibrate on others (otherwise it is "
        f"merely too cautious)"
    )


def _alpha(finding: Finding, verdict: Verdict) -> str:
    alpha = finding.numbers["alpha"]
    return (
        f"alpha = {alpha:g} is the error rate: {verdict.prediction.noun}s may miss the truth {100 * alpha:g} % of the "
        f"time. {_remedy(verdict, 'alpha', share=100 * alpha, alpha=1 - alpha)}"
    )


def _too_few(finding: Finding, verdict: Verdict) -> str:
    numbers = finding.numbers
    return (
        f"{numbers['labels']:,} labels are too few for alpha = {numbers['alpha']:g}, which needs at least "
        f"{numbers['needed']:,}: every {verdict.prediction.noun} {_full(verdict)}"
    )


def _unsupported(finding: Finding, verdict: Verdict) -> str:
    infinite, nodes = finding.numbers["infinite"], finding.numbers["nodes"]
    gets = "get the whole line" if verdict.prediction is PredictionIntervals else "get every label"
    return (
        f"{infinite:,} of {nodes:,} nodes ({100 * infinite / nodes:.0f} %) {gets}, because there are too few labelled "
        f"nodes near them"
    )


def _full(verdict: Verdict) -> str:
    return "is the whole line" if verdict.prediction is PredictionIntervals else "holds every label"


def _weak(finding: Finding, verdict: Verdict) -> str:
    return f"{weak_facts(finding.numbers)}. {weak_remedy(finding, verdict)}"


def weak_facts(numbers: Values) -> str:
    """Return which groups of one grouping are covered too little, and how many nodes that rests on."""
    what, weak, several = numbers["what"], numbers["groups"], len(numbers["groups"]) != 1
    start = f"{len(weak)} of {numbers['of']} {groups_word(what)} {'are' if several else 'is'} covered less often than"
    named = [weak_text(group) for group in weak[:_NAMED]]
    more = f", and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    text = f"{start} the target of {100 * numbers['target']:g} %, by more than chance: {', '.join(named)}{more}"
    if numbers["judged"]:
        return text
    limits = f"; for {numbers['uncheckable']} others they are too few to tell" * bool(numbers["uncheckable"])
    return f"{text} (seen on the {numbers['checked']:,} labels that set the level{limits})"


def weak_text(group: WeakGroup) -> str:
    """Return a weak group with its coverage and the number of nodes that it rests on."""
    share = f"{100 * group.coverage:.0f} % of {group.nodes:,} node{'s' * (group.nodes != 1)}"
    return share if group.what == "neighbourhood" else f"{group.name} ({share})"


def groups_word(what: str) -> str:
    """Return several groups in words."""
    names = {"class": "classes", "group": "groups", "neighbourhood": "neighbourhoods"}
    return names.get(what, f"groups by {what}")


def weak_remedy(finding: Finding, verdict: Verdict) -> str:
    """Return what would help weak groups, with what it was seen to give and where it cannot work."""
    numbers, several = finding.numbers, len(finding.numbers["groups"]) != 1
    kind = {"class": ("class", "classes"), "neighbourhood": ("neighbourhood", "neighbourhoods")}
    one, many = kind.get(numbers["what"], ("group", "groups"))
    more = f"more labels in {f'these {many}' if several else f'this {one}'}"
    if "own groups" in finding.helps:
        return f"What helps: {_remedy(verdict, 'own groups')}, or {more}"
    trial: Trial | None = numbers.get("trial")
    if trial is None or not (trial.helped or trial.too_few):
        return f"What helps: {more}"
    by = _remedy(verdict, "by", by=trial.by)
    lacking = ""
    if trial.too_few:
        listed = ", ".join(f"{name} ({count})" for name, count in trial.too_few[:_NAMED])
        rest = f" and {len(trial.too_few) - _NAMED} more" if len(trial.too_few) > _NAMED else ""
        lacking = f"too few for {listed}{rest}: a {one} needs {trial.needed} of the labels that set the level"
    if not trial.helped:
        return f"What helps: {more}. {by} cannot help, as labels are {lacking}"
    text = f"What helps: {by}, or {more}. Tried, {by} {_of_trial(trial, verdict)}"
    return f"{text}; labels are {lacking}" if lacking else text


def _of_trial(trial: Trial, verdict: Verdict) -> str:
    """Return what thresholds per group gave."""
    size, plain = (verdict.prediction.size_text(value) for value in (trial.size, trial.plain))
    text = f"changes the average {verdict.prediction.noun} {verdict.prediction.size_name} from {plain} to {size}"
    if math.isnan(trial.coverage):
        return text
    who = "of their nodes" if not trial.too_few else "of the nodes of the others"
    return f"{text}, and covers {100 * trial.coverage:.0f} % {who} instead of {100 * trial.before:.0f} %"


def _leaked(finding: Finding, verdict: Verdict) -> str:
    accuracy, drift, signs = finding.numbers["accuracy"], finding.numbers["drift"], []
    expected = accuracy.nodes * accuracy.below
    if round(expected) > 0:
        signs.append(
            f"for none of the {accuracy.nodes:,} labelled nodes is the true class less probable than "
            f"{accuracy.least:.2f}, where about {expected:.0f} would be expected to be"
        )
    if accuracy.share > accuracy.promised:
        signs.append(
            f"the model is right for {100 * accuracy.share:.1f} % of them, though its probabilities promise "
            f"{100 * accuracy.promised:.1f} %"
        )
    if drift is not None and not accuracy.better:
        signs.append(drift_text(drift))
    return (
        f"the labels are probably among what the model's probabilities were made from: {', and '.join(signs)}. "
        f"{_upper(_remedy(verdict, 'unseen labels'))}"
    )


_SENTENCES: dict[str, Callable[[Finding, Verdict], str]] = {
    "trained on labels": _trained,
    "leaked labels": _leaked,
    "easier labelled nodes": _easier,
    "easier other nodes": _easier_others,
    "labelled nodes differ": lambda finding, _: f"{drift_text(finding.numbers['drift'])}; coverage may differ there",
    "coverage too low": lambda finding, _: (
        "coverage is {:.1f} % instead of {:g} %, too low for chance; the calibration nodes probably differ from the "
        "evaluation nodes".format(100 * finding.numbers["coverage"], 100 * finding.numbers["target"])
    ),
    "too few labels": _too_few,
    "few labels": lambda finding, _: (
        f"only {finding.numbers['labels']:,} labels set the level: with others, coverage could be anywhere from "
        f"{100 * finding.numbers['low']:.0f} to {100 * finding.numbers['high']:.0f} %"
    ),
    "alpha as coverage": _alpha,
    "known nodes": lambda finding, _: on_training(finding.numbers["known"], finding.numbers["nodes"]) or "",
    "weak groups": _weak,
    "too little support": _unsupported,
    "too good": _too_good,
}


def drift_text(drift: Drift) -> str:
    """Return in what two sets of nodes differ, and how far."""
    first, second = drift.between
    sure = "p < 10⁻⁶" if drift.p_value < 1e-6 else f"p = {drift.p_value:.2g}"
    size = f"(total variation distance {drift.distance:.2f}, {sure})"
    if drift.ease:
        own, other = (f"{abs(average):#.4g}".rstrip(".") for average in drift.means)
        return f"{drift.ease} is {own} for the {first} nodes and {other} for the {second} nodes {size}"
    return (
        f"the {first} nodes differ from the {second} nodes in {drift.what}: nodes {drift.group} make up "
        f"{100 * drift.shares[0]:.0f} % of the {first} and {100 * drift.shares[1]:.0f} % of the {second} nodes {size}"
    )


# -- the verdict -------------------------------------------------------------------------------------------------------


def lines(verdict: Verdict) -> tuple[str, ...]:
    """Return the verdict line by line: whether the promise is withdrawn, the method, how certain, and all warnings."""
    noun = verdict.prediction.noun
    withdrawn = [f"No promise of coverage can be made: {verdict.withdrawn}."] if verdict.withdrawn else []
    withdrawn += [f"What to do: {verdict.remedy}."] if verdict.remedy else []
    smaller = [f"If small {noun}s matter most: {verdict.smaller}."] if verdict.smaller else []
    others = [text for text in verdict.warnings if text != verdict.withdrawn]
    warnings = [f"Warning: {text}." for text in others]
    if not verdict.warnings:
        warnings = [f"Warnings: {verdict.first_warning}."]
    return (
        *withdrawn,
        f"{verdict.headline}: {verdict.gain}.",
        f"Coverage: {verdict.certainty}. Cost: {verdict.cost}.",
        *smaller,
        *warnings,
    )


def remedy(verdict: Verdict) -> str:
    """Return what to do where other labels would restore the promise; empty where nothing is wrong with them."""
    return _remedy(verdict, "sample") if any("sample" in finding.helps for finding in verdict.findings) else ""


def headline(verdict: Verdict) -> str:
    """Return the method, in two or three words."""
    if not verdict.judged:
        return f"{named(verdict.title, first=True)}{' (method chosen automatically)' * (verdict.choice is not None)}"
    return f"{'Keep' if verdict.kept else 'Use'} {named(verdict.title)}"


def gain(verdict: Verdict) -> str:
    """Return what the method gains over the baseline, with intervals."""
    size = verdict.prediction.of_size(verdict.size)
    if not verdict.judged:
        return _expected(verdict, size)
    if verdict.kept:
        beaten = "no other method was compared" if not verdict.rivals else "no other method here is clearly better"
        return f"{size}; {beaten}"
    if verdict.change.value == verdict.change.low == verdict.change.high == 0.0:
        return f"the same {verdict.prediction.noun}s as {named(verdict.baseline)}: {size}"
    return f"{_beside(verdict, size)}{_aside(verdict)}{_evenly(verdict)}"


def certainty(verdict: Verdict) -> str:
    """Return how certain that is: coverage compared with chance, and what the promise rests on."""
    low, high = verdict.band
    band = f"{100 * low:.1f} and {100 * high:.1f} %"
    if not verdict.judged:
        measure = "" if verdict.withdrawn else f". {_remedy(verdict, 'measure')}"
        return f"{_promised(verdict, band)}{measure}"
    backed = "" if verdict.proven else ". No theorem guarantees it for this method"
    if verdict.shifted:
        backed = f". What is guaranteed is {_of_population(verdict)}, not of these nodes"
    return (
        f"{100 * verdict.coverage:.1f} % of the {verdict.judged:,} evaluation nodes are covered (target "
        f"{100 * (1.0 - verdict.alpha):g} %; with other random labels it would lie between {band} in 95 of 100 cases)"
        f"{', which is less than chance usually explains' if verdict.coverage < low else ''}{backed}{_picked(verdict)}"
    )


def cost(verdict: Verdict) -> str:
    """Return which labels the method costs."""
    if verdict.evidence:
        setting = f"all {verdict.held_out:,} calibration labels set the level"
        return f"none; {verdict.evidence:,} labels are evidence, and {setting}"
    if verdict.held_out:
        return f"{verdict.held_out:,} of the {verdict.labels:,} labels are used only to set the level"
    return f"none; all {verdict.labels:,} labels set the threshold{'' if verdict.proven else 's'}"


def smaller(verdict: Verdict) -> str:
    """Return which method makes smaller sets, and how even it is; empty where none is clearly smaller."""
    other = verdict.smallest
    if other is None:
        return ""
    even = ""
    if not math.isnan(other.under) and not math.isnan(verdict.under):
        how = how_even(other.evenness, "not clearly less even")
        even = f"; its coverage is {how} ({100 * other.under:.1f} points short of the target per {_group(verdict)}, "
        even += f"compared with {100 * verdict.under:.1f})"
    size = verdict.prediction.of_size(other.size)
    return f"{named(other.title)} makes the smallest {verdict.prediction.noun}s, {size}{_ends(other.change)}{even}"


def _promised(verdict: Verdict, band: str) -> str:
    """Return what is promised of predictions that no truth judges."""
    if verdict.withdrawn:
        return (
            f"not known. {100 * (1.0 - verdict.alpha):g} % can be expected only if the {_sample(verdict)} nodes are a "
            f"random sample that the model was not trained on"
        )
    if verdict.shifted:
        return f"guaranteed to be {_of_population(verdict)}"
    if not verdict.proven:
        return "no theorem guarantees it for this method; it may be off where neighbours differ"
    drawn = "the calibration nodes were drawn" if verdict.evidence else "the nodes were labelled"
    if verdict.grouped:
        labels = f"{verdict.level_labels:,} labels set their levels"
        return f"guaranteed in each group with enough labels if {drawn} at random: {labels}"
    return (
        f"guaranteed if {drawn} at random: {verdict.level_labels:,} labels set the level, so it lies between {band} in "
        f"95 of 100 draws of labels"
    )


def _sample(verdict: Verdict) -> str:
    return "calibration" if verdict.evidence else "labelled"


def _of_population(verdict: Verdict) -> str:
    """Return what is promised of the population that importance weights describe."""
    return (
        f"at least {100 * (1.0 - verdict.alpha):g} % on average over the population that the importance weights "
        f"describe, as far as these are right"
    )


def _beside(verdict: Verdict, size: str) -> str:
    """Return a size next to those of the methods that ignore the graph, and by which share it differs."""
    plain = verdict.prediction.size_text(verdict.baseline_size)
    text = f"{size}, compared with {plain} for {named(verdict.baseline)}{_ends(verdict.change)}"
    if verdict.plain is None:
        return text
    return f"{text} and {verdict.prediction.size_text(verdict.plain.size)} for {named(verdict.plain.title)}"


def _aside(verdict: Verdict) -> str:
    """Return what an average size does not say: how many have no finite one."""
    if not (verdict.infinite or verdict.baseline_infinite):
        return ""
    share, endless = percent(verdict.infinite or 0.0), verdict.prediction.endless
    if not verdict.judged:
        return f" ({share} of them are the {endless}, which is not counted in the average)"
    plain = percent(verdict.baseline_infinite or 0.0)
    return f" where both are finite; {share} of them are the {endless}, compared with {plain}"


def _group(verdict: Verdict) -> str:
    return "neighbourhood" if verdict.over == "neighbourhood" else "group by degree"


def _evenly(verdict: Verdict) -> str:
    if not verdict.groups or math.isnan(verdict.evenness.value):
        return ""
    how = how_even(verdict.evenness, "not clearly more or less even")
    plain = verdict.plain
    other = "" if plain is None else f", {named(plain.title)} {100 * plain.under:.1f}"
    return (
        f". Coverage is {how}: {100 * verdict.under:.1f} points short of the target per {_group(verdict)} on average, "
        f"compared with {100 * verdict.baseline_under:.1f}{_difference(verdict.evenness)}{other}; chance alone gives "
        f"{100 * verdict.chance:.1f}"
    )


def _picked(verdict: Verdict) -> str:
    if verdict.choice is not None:
        return ". It was chosen without the labels of these nodes"
    if verdict.rivals < 2 or verdict.kept:
        return ""
    return f". It was picked among {verdict.rivals + 1} methods on these nodes, which the intervals allow for"


def _expected(verdict: Verdict, size: str) -> str:
    """Return the size of predictions that no truth judges, beside that of methods without the graph."""
    start = f"{size} on {verdict.nodes:,} nodes{_aside(verdict)}"
    if not math.isnan(verdict.baseline_size):
        start = f"{_beside(verdict, start)}, which {'ignore' if verdict.plain else 'ignores'} the graph"
    if verdict.grouped:
        larger = f"{verdict.prediction.noun}s are usually larger than without groups"
        return f"{start}; {larger}, because every group must meet the target"
    if verdict.choice is None:
        return f"{start}; no other method was tried ({_remedy(verdict, 'compare')})"
    return f"{start}; it chose {verdict.choice}"


def named(title: str, *, first: bool = False) -> str:
    """Return what a method is called within a sentence, or first in it.

    Examples
    --------
    >>> named("Split APS"), named("Split APS", first=True), named("Split absolute"), named("Auto")
    ('split APS', 'Split APS', 'split conformal prediction with absolute residuals', 'Auto')
    """
    split, _, score = title.partition(" ")
    if split != "Split":
        return title
    plain = f"conformal prediction with {score} residuals" if score in ("absolute", "normalised") else score
    return f"{split if first else split.lower()} {plain}"


def how_even(evenness: Interval, otherwise: str) -> str:
    """Return whether coverage is more or less even, as far as that is clear."""
    return "less even" if evenness.above else "more even" if evenness.below else otherwise


def _ends(change: Interval) -> str:
    """Return a change in percent, with its interval where it has one."""
    value, low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (change.value, change.low, change.high))
    return f" ({value} %)" if math.isnan(change.low) else f" ({value} %, 95 % interval {low} to {high} %)"


def _difference(change: Interval) -> str:
    """Return the interval of a difference in points, without its value: rounded numbers need not add up."""
    if math.isnan(change.low):
        return ""
    low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (change.low, change.high))
    return f" (95 % interval of the difference: {low} to {high})"


def whose_finite(whole_lines: Mapping[str, float]) -> str:
    """Return the methods whose widths are compared where all of them are finite, by their shares of whole lines.

    Examples
    --------
    >>> whose_finite({"NAPS": 0.2, "Split": 0.0}), whose_finite({"NAPS": 0.9, "Split": 0.0})
    ('all methods', 'all methods except NAPS')
    """
    endless = [title for title, share in whole_lines.items() if share > 0.5]
    left_out = endless if len(endless) < len(whole_lines) else []
    return "all methods" + (f" except {', '.join(left_out)}" if left_out else "")


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
