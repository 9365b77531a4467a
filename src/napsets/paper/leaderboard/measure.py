"""Measuring: some nodes are labelled at random, every method makes sets of all others, and is judged on them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError, NapsetsError, NapsetsWarning
from napsets.evaluation.gaps import CoverageGap
from napsets.evaluation.groups import usual_groups
from napsets.evaluation.judgement import Judgement, judge
from napsets.methods import Given, Settings, make_method
from napsets.paper.cells import Row
from napsets.paper.leaderboard.cells import LeaderboardCell
from napsets.paper.leaderboard.ground import Ground

__all__ = ["KINDS", "Draw", "Judged", "draw", "judge_method", "measure_draw"]

#: What coverage is to be even over: the groupings of `usual_groups`.
KINDS = ("neighbourhood", "class", "degree", "confidence")


@dataclass(frozen=True, eq=False)
class Draw:
    """Who is labelled: all that methods may see, and what they are judged by.

    Attributes
    ----------
    given : Given
        With the labels of the labelled nodes alone, so that no method can see another one.
    rest : numpy.ndarray
        The other nodes.
    truth : numpy.ndarray
        The labels of all nodes.
    groups : mapping
        What coverage is to be even over.
    settings : Settings
        What all methods are told.
    """

    given: Given
    rest: IntArray
    truth: IntArray
    groups: Mapping[str, IntArray]
    settings: Settings


@dataclass(frozen=True, eq=False)
class Judged:
    """A calibrated method, what its sets are worth, and how long calibrating and predicting took."""

    calibrated: Any
    worth: Judgement
    classes: int
    seconds: float

    @property
    def gaps(self) -> Mapping[str, CoverageGap]:
        """Coverage within groups, by kind."""
        return self.worth.gaps

    @property
    def level_labels(self) -> int:
        """How many labels the level rests on: those kept apart, or all."""
        scored = self.calibrated.scored
        return int(scored.apart.size or scored.calibration.size)


def draw(ground: Ground, share: float, words: Sequence[object], seed: int, alpha: float = 0.1) -> Draw:
    """Label a share of the nodes at random: the same for every model and method.

    Parameters
    ----------
    ground : Ground
        What methods compete on.
    share : float
        Of the nodes; at least one is labelled and one is not.
    words : sequence
        What the draw is called: it depends on these words and nothing else.
    seed : int
        For the methods' own choices, and for the neighbourhoods that judge them.
    alpha : float
        Error rate.
    """
    text = "/".join(map(str, words)).encode()
    rng = np.random.default_rng(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
    order, count = rng.permutation(ground.labels.size), int(share * ground.labels.size)
    if not 0 < count < ground.labels.size:
        raise InvalidInputError(f"`share` must label some of {ground.labels.size} nodes and not all; got {share:g}")
    labelled, rest = np.sort(order[:count]), np.sort(order[count:])
    seen = np.full(ground.labels.size, -1, dtype=np.int64)
    seen[labelled] = ground.labels[labelled]
    given = Given.check(ground.graph, ground.probabilities, seen, labelled)
    groups = usual_groups(ground.graph, ground.probabilities, ground.labels, rest, seed=seed)
    # What a method may be told beside graph, probabilities and labels, as far as there is a setting for it.
    told = {"seed": seed, "alpha": alpha, "features": ground.features}
    known = {one.name for one in fields(Settings)}
    settings = Settings(**{name: value for name, value in told.items() if name in known})
    return Draw(given, rest, ground.labels, groups, settings)


def judge_method(name: str, drawn: Draw) -> Judged:
    """Let a method make the sets of all nodes that are not labelled, and judge them."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Caveats of a method on one draw (groups with few labels, say) show in what is measured over many.
        warnings.simplefilter("ignore", NapsetsWarning)
        calibrated = make_method(name, drawn.settings).fit(drawn.given)
        sets = calibrated.predict(drawn.rest, drawn.settings.alpha, threads=1)
    seconds = time.perf_counter() - start
    worth = judge(sets, drawn.truth, strata=[(0, sets.num_classes)], groups=drawn.groups)
    return Judged(calibrated, worth, sets.num_classes, seconds)


def measure_draw(cells: Sequence[LeaderboardCell], ground: Ground, skipped: dict[str, str]) -> list[Row]:
    """Return the rows of cells that differ in the method only; why a method has none is put into `skipped`.

    Methods share the scores that they have in common, whose time is counted where they are first asked for.
    """
    first = cells[0]
    words = (first.dataset, f"{first.share:g}", first.seed, first.repetition)
    drawn = draw(ground, first.share, words, 1000 * first.seed + first.repetition, first.alpha)
    rows = []
    for cell in cells:
        try:
            judged = judge_method(cell.method, drawn)
        except NapsetsError as error:
            skipped[cell.method] = str(error)
            continue
        rows.append(cell.row(**_measured(judged, drawn, ground.accuracy)))
    return rows


def _measured(judged: Judged, drawn: Draw, accuracy: float) -> Row:
    worth, choice = judged.worth, getattr(judged.calibrated, "choice", None)
    row: Row = {
        "labels": int(drawn.given.calibration.size),
        "level_labels": judged.level_labels,
        "nodes": worth.nodes,
        "classes": judged.classes,
        "accuracy": accuracy,
        "choice": "" if choice is None else choice.name,
        "seconds": round(judged.seconds, 4),
    }
    row |= {name: getattr(worth, name) for name in ("coverage", "mean_size", "singleton_rate", "empty_rate")}
    row["full_rate"] = worth.full_rate
    for kind in KINDS:
        gap = judged.gaps[kind]
        row |= {f"{name}_{kind}": getattr(gap, name) for name in ("gap", "chance", "under", "over", "share")}
    return row
