"""The sentences of findings, and how each surface (the terminal, Python) names what helps.

A finding is a record of numbers; the facts read the same everywhere, and only the remedies differ: the terminal names
options, Python names arguments. The report's page adds the user's own words (`napsets.report.words`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from napsets.checks.values import Values
from napsets.errors import Surface
from napsets.methods.data import on_training
from napsets.predictions import PredictionIntervals

if TYPE_CHECKING:
    from napsets.evaluation.drift import Drift
    from napsets.evaluation.findings import Finding, Trial
    from napsets.evaluation.gaps import WeakGroup
    from napsets.evaluation.verdict import Verdict

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


def sentence_of(finding: Finding, verdict: Verdict) -> str:
    """Return a finding in words, without the full stop."""
    return _SENTENCES[finding.kind](finding, verdict)


def remedy_text(verdict: Verdict, name: str, **values: float | str) -> str:
    """Return a remedy in the words of the surface on which the verdict is read."""
    task = " --task regression" * (verdict.prediction is PredictionIntervals)
    return REMEDIES[verdict.surface][name].format(task=task, **values)


def _trained(finding: Finding, verdict: Verdict) -> str:
    count = finding.numbers["labels"]
    labels = "1 calibration label" if count == 1 else f"{count:,} calibration labels"
    return f"the model was trained on {labels} (`train_mask`). {_upper(remedy_text(verdict, 'unseen labels'))}"


def _easier(finding: Finding, verdict: Verdict) -> str:
    drift, accuracy = finding.numbers["drift"], finding.numbers["accuracy"]
    first, second = drift.between
    text = f"the model finds the {first} nodes easier than the {second} nodes. {_upper(drift_text(drift))}"
    if accuracy is None:
        return text
    return (
        f"{text}. It was probably trained on them: it is right for {100 * accuracy.share:.1f} % of them. "
        f"{_upper(remedy_text(verdict, 'unseen labels'))}"
    )


def _easier_others(finding: Finding, verdict: Verdict) -> str:
    drift = finding.numbers["drift"]
    first, second = drift.between
    text = f"the model finds the {second} nodes easier than the {first} nodes. {_upper(drift_text(drift))}"
    return f"{text}. {remedy_text(verdict, 'training')}"


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
        f"time. {remedy_text(verdict, 'alpha', share=100 * alpha, alpha=1 - alpha)}"
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
    """Describe the groups of one grouping that are covered too little, and the number of nodes behind that."""
    what, weak, plural = numbers["what"], numbers["groups"], len(numbers["groups"]) != 1
    start = f"{len(weak)} of {numbers['of']} {groups_word(what)} {'are' if plural else 'is'} covered less often than"
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
    """Describe what helps weak groups, with its measured effect and the groups where it cannot work."""
    numbers, plural = finding.numbers, len(finding.numbers["groups"]) != 1
    kind = {"class": ("class", "classes"), "neighbourhood": ("neighbourhood", "neighbourhoods")}
    one, many = kind.get(numbers["what"], ("group", "groups"))
    more = f"more labels in {f'these {many}' if plural else f'this {one}'}"
    if "own groups" in finding.helps:
        return f"What helps: {remedy_text(verdict, 'own groups')}, or {more}"
    trial: Trial | None = numbers.get("trial")
    if trial is None or not (trial.helped or trial.too_few):
        return f"What helps: {more}"
    by = remedy_text(verdict, "by", by=trial.by)
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
    """Describe the effect of thresholds per group."""
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
        f"{_upper(remedy_text(verdict, 'unseen labels'))}"
    )


_SENTENCES: dict[str, Callable[[Finding, Verdict], str]] = {
    "trained on labels": _trained,
    "leaked labels": _leaked,
    "easier labelled nodes": _easier,
    "easier other nodes": _easier_others,
    "other neighbours": lambda finding, _: (
        f"{drift_text(finding.numbers['drift'])}, though the model is no more confident about these. Edges that were "
        f"built from labels look like this"
    ),
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
    "shared thresholds": lambda finding, _: str(finding.numbers["groups"]),
    "weak groups": _weak,
    "too little support": _unsupported,
    "too good": _too_good,
}


def drift_text(drift: Drift) -> str:
    """Describe a difference between two sets of nodes, and its size."""
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


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
