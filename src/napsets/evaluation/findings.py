"""Findings: everything that a verdict warns of, as records that are computed once; `sentences` has the words.

The gravest findings withdraw the promise of coverage: the model is more confident about the labelled nodes than about
the others, because it was trained on them or because they are easy; or the labelled nodes differ strongly from the
others. Coverage on the other nodes is then likely to be lower than on the labelled ones, whatever the method. Only
labels that set the level must be a random sample; others can become evidence, which is not checked.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from napsets.checks.arguments import AnyArray, IntArray
from napsets.checks.values import Record, Values
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.evaluation.drift import Accuracy, Drift, confidence_of
from napsets.evaluation.gaps import CoverageGap, WeakGroup, names_of_groups, smallest_notable, weak_groups
from napsets.evaluation.metrics import FIFTHS, mean
from napsets.groups import by_quantiles, make_groups
from napsets.levels import FEW, coverage_band, falls_short, fewest_ranks
from napsets.methods import Calibrated

#: A method is said to fall short where chance would make it cover so little less often than this.
SHORT = 0.001
#: A smaller share of nodes without a threshold of their own is too small to report.
_LEAST_SHARE = 0.1
#: Drift of this size withdraws the promise, whatever it is in.
_GRAVE = 0.2
#: So does a smaller one, where it shows that the model finds the labelled nodes easier.
_EASIER = 0.1
#: From this share of right predictions on, it is likely that a model was trained on labels that it is surer of.
_NEARLY_ALL = 0.995
#: Where a model is suspiciously good, this p-value of a difference in confidence is enough.
_SUPPORTING = 0.01
#: Nodes on which groups are tried, at most.
_MOST_TRIED = 5_000
#: Groups that `by=` can give their own thresholds, by the name of the grouping.
_CAN_BE_TRIED = ("class", "degree")


@dataclass(frozen=True)
class Finding:
    """Something to know about predictions before they are used.

    Attributes
    ----------
    kind : str
        What was found; `sentences` has a sentence for each kind.
    numbers : mapping
        The numbers behind it, by name.
    withdraws : bool
        Whether it withdraws the promise of coverage; otherwise it is a warning.
    helps : tuple of str
        The remedies, by the names that `sentences` has for them.
    """

    kind: str
    numbers: Values = field(default_factory=dict)
    withdraws: bool = False
    helps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """The effect of thresholds per group, tried before they are advised.

    Attributes
    ----------
    by : str
        The grouping: "class" or "degree".
    size, plain : float
        The average size of predictions with such thresholds, and without, on the same nodes.
    helped : tuple of str
        The weak groups that would have a threshold of their own.
    coverage, before : float
        The share of the nodes in these that would be covered, and that are covered without; NaN where no truth judges.
    too_few : tuple of (str, int)
        The weak groups with too few labels for a threshold of their own, with how many of the labels that set the level
        each has.
    needed : int
        How many of these labels a group needs.
    """

    by: str
    size: float
    plain: float
    helped: tuple[str, ...]
    coverage: float
    before: float
    too_few: tuple[tuple[str, int], ...]
    needed: int


def find_all(
    calibrated: Calibrated,
    alpha: float,
    *,
    infinite: int,
    nodes: IntArray,
    gaps: Mapping[str, CoverageGap],
    class_names: Sequence[str] | None,
    looks: Sequence[Drift],
    accuracy: Accuracy | None,
    truth: AnyArray | None = None,
    hits: int | None = None,
    trained: int = 0,
    known: int = 0,
) -> tuple[Finding, ...]:
    """Return all findings about a method's predictions, the gravest first.

    Parameters
    ----------
    infinite : int
        How many of the `nodes` lack support.
    gaps : mapping
        Coverage in groups of the nodes that were checked, by the name of the grouping.
    truth, hits
        The truth of every node and how many of `nodes` are covered, where they were judged.
    trained : int
        On how many labelled nodes the model is known to have been trained.
    known : int
        On how many of the `nodes`.
    """
    labels = calibrated.level_size
    large = sorted((look for look in looks if look.matters(len(looks))), key=lambda look: -look.distance)
    reasons, used = _reasons(large, looks, accuracy, trained)
    short = []
    if hits is not None and falls_short(hits, nodes.size, labels, alpha) < SHORT:
        short.append(Finding("coverage too low", {"coverage": hits / nodes.size, "target": 1 - alpha}))
    too_few = labels < fewest_ranks(alpha)
    band = coverage_band(labels, alpha)
    share = infinite / max(nodes.size, 1)
    found = [*reasons, *short]
    if too_few:
        found.append(Finding("too few labels", {"labels": labels, "alpha": alpha, "needed": fewest_ranks(alpha)}))
    if alpha > 0.5:
        found.append(Finding("alpha as coverage", {"alpha": alpha}, helps=("alpha",)))
    if known:
        found.append(Finding("known nodes", {"known": known, "nodes": int(nodes.size)}))
    shared = None if calibrated.grouped is None else calibrated.grouped.caveat(nodes, [alpha])
    if shared is not None:
        found.append(Finding("shared thresholds", {"groups": shared}))
    found += _weak(calibrated, alpha, gaps, class_names, nodes, truth)
    found += [_difference(look, large) for look in large if look not in used]
    if share >= _LEAST_SHARE and not too_few:
        found.append(Finding("too little support", {"infinite": infinite, "nodes": int(nodes.size)}))
    if not too_few and band[0] < 1.0 - alpha - FEW:
        found.append(Finding("few labels", {"labels": labels, "low": band[0], "high": band[1]}))
    if accuracy is not None and accuracy.too_good and not reasons:
        found.append(Finding("too good", {"accuracy": accuracy}, helps=("unseen labels",)))
    return tuple(found)


# -- labels that are not a random sample -------------------------------------------------------------------------------


def _reasons(
    large: Sequence[Drift], looks: Sequence[Drift], accuracy: Accuracy | None, trained: int
) -> tuple[list[Finding], list[Drift]]:
    """Collect the reasons why the promise does not hold, the clearest first, and the differences that show them."""
    reasons = []
    if trained:
        reasons.append(Finding("trained on labels", {"labels": trained}, True, ("unseen labels",)))
    leaked = accuracy is not None and accuracy.leaked and not trained
    if leaked:
        numbers = {"accuracy": accuracy, "drift": confidence_of(looks)}
        reasons.append(Finding("leaked labels", numbers, True, ("unseen labels",)))
    easier = [look for look in large if look.easier and look.distance >= _EASIER]
    too_good = accuracy is not None and accuracy.too_good
    if not easier and too_good:
        easier = [look for look in looks if look.easier and look.p_value < _SUPPORTING][:1]
    suspected = accuracy is not None and not trained and (too_good or accuracy.share > _NEARLY_ALL)
    for place, look in enumerate(easier):
        learned = accuracy if suspected and not place else None
        helps = ("unseen labels",) * (learned is not None)
        reasons.append(Finding("easier labelled nodes", {"drift": look, "accuracy": learned}, True, (*helps, "sample")))
    grave = [look for look in large if look.distance >= _GRAVE and look not in easier]
    rest = [look for look in grave if _difference(look, large).kind != "easier other nodes"]
    reasons += [replace(_difference(look, large), withdraws=True, helps=("sample",)) for look in rest]
    return reasons, [*easier, *rest, *(look for look in large if leaked and look.ease)]


def _difference(look: Drift, large: Sequence[Drift]) -> Finding:
    """Return the finding that labelled nodes differ from the others in something, one of several large differences."""
    if not look.ease:
        return Finding("labelled nodes differ", {"drift": look})
    if look.easier:
        return Finding("easier labelled nodes", {"drift": look, "accuracy": None})
    confidence = confidence_of(large)
    if confidence is None or confidence.easier:  # the model is no surer of the others, whose neighbours agree more
        return Finding("other neighbours", {"drift": look})
    return Finding("easier other nodes", {"drift": look}, helps=("training",))


# -- groups ------------------------------------------------------------------------------------------------------------


def _weak(
    calibrated: Calibrated,
    alpha: float,
    gaps: Mapping[str, CoverageGap],
    class_names: Sequence[str] | None,
    nodes: IntArray,
    truth: AnyArray | None,
) -> list[Finding]:
    """Return the groups that are covered too little, one finding per grouping, with what would help them."""
    found, judged = [], truth is not None
    by = {"label": "class", "node": "groups"}.get(getattr(calibrated.method.groups, "of", ""), "")
    for what, gap in gaps.items():
        numbers = weak_numbers(gap, what, class_names, level_labels=calibrated.level_size if judged else None)
        if not numbers["groups"]:
            continue
        numbers["judged"] = judged
        helps: tuple[str, ...] = ("more labels",)
        if not by and what in _CAN_BE_TRIED:
            numbers["trial"] = _try_groups(calibrated, what, numbers["groups"], alpha, nodes, truth)
        trial = numbers.get("trial")
        if trial is not None and trial.helped:
            helps = ("by", "more labels")
        elif not by and what not in (*_CAN_BE_TRIED, "neighbourhood"):
            helps = ("own groups", "more labels")
        found.append(Finding("weak groups", numbers, helps=helps))
    return found


def weak_numbers(gap: CoverageGap, what: str, class_names: Sequence[str] | None, *, level_labels: int | None) -> Record:
    """Return the numbers of a finding about groups: those covered too little, of how many, and on how many nodes."""
    names = names_of_groups(gap, what, class_names)
    return {
        "what": what,
        "groups": tuple(weak_groups(gap, what, names, level_labels=level_labels)),
        "of": int(gap.groups.size),
        "target": 1.0 - gap.alpha,
        "checked": int(gap.sizes.sum()),
        "uncheckable": int((gap.sizes < smallest_notable(gap)).sum()),
        "judged": True,
    }


def _try_groups(
    calibrated: Calibrated,
    by: str,
    weak: Sequence[WeakGroup],
    alpha: float,
    nodes: IntArray,
    truth: AnyArray | None,
) -> Trial | None:
    """Calibrate per group, and predict a sample of the nodes; None where the method cannot have groups."""
    sample = nodes[np.unique(np.linspace(0, nodes.size - 1, min(nodes.size, _MOST_TRIED)).astype(np.int64))]
    try:
        grouped = replace(calibrated.method, groups=make_groups(by)).on(calibrated.scored)
    except InvalidInputError:
        return None
    assert grouped.grouped is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)
        after, before = (method.predict(positions=sample, alpha=alpha) for method in (grouped, calibrated))
    needed, too_few, helped = fewest_ranks(alpha), [], [group.name for group in weak]
    if by == "class":
        # A class that no label has cannot have a threshold either.
        counts = np.bincount(calibrated.scored.level_truth()[1], minlength=calibrated.scored.bound.num_labels)
        too_few = [(group.name, int(counts[group.key])) for group in weak if counts[group.key] < needed]
        helped = [group.name for group in weak if counts[group.key] >= needed]
    shares = math.nan, math.nan
    if truth is not None:
        kept = {group.key for group in weak if group.name in helped}
        groups = (
            truth
            if calibrated.graph is None or by == "class"
            else by_quantiles(calibrated.graph.degrees, FIFTHS, nodes)
        )
        inside = np.isin(groups[sample], list(kept))
        shares = tuple(mean(part.contains_own(truth[sample])[inside]) for part in (after, before))  # type: ignore[assignment]
    finite = np.isfinite(after.sizes) & np.isfinite(before.sizes)
    size, plain = (mean(part.sizes[finite].astype(np.float64)) for part in (after, before))
    return Trial(by, size, plain, tuple(helped), *shares, tuple(too_few), needed)
