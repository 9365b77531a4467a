"""Thresholds and predictions of several calibrated methods on the same nodes.

They share what they can: the search where they have the same reference nodes, the scores where they have the same
score. One search serves several error rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.checks.values import shown
from napsets.errors import InvalidInputError
from napsets.kernels.threads import Progress, complete, stages
from napsets.localisers import AroundLocal, LocalThresholds, share_search
from napsets.predictions import NodeThresholds, Prediction

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated

#: Entries of the score matrix held at a time.
_CHUNK_ENTRIES = 1 << 20


def predict_in_parts(
    calibrated: Sequence[Calibrated], thresholds: Sequence[Sequence[NodeThresholds]], nodes: IntArray
) -> Iterator[tuple[slice, dict[int, list[Prediction]]]]:
    """Turn the thresholds of each method at each error rate into predictions, some nodes at a time.

    Methods of one score share its matrix, and no more of it is held than a part. Yields which rows, and by the place of
    each method that shares a score its predictions at each error rate.
    """
    by_score: dict[int, list[int]] = {}
    for place, method in enumerate(calibrated):
        by_score.setdefault(id(method.score), []).append(place)
    for places in by_score.values():
        score = calibrated[places[0]].score
        step = max(1, _CHUNK_ENTRIES // max(1, score.num_labels))
        for start in range(0, max(nodes.size, 1), step):
            rows = slice(start, min(start + step, nodes.size))
            wanted = [node_thresholds[rows] for place in places for node_thresholds in thresholds[place]]
            predictions = iter(score.predict(nodes[rows], wanted))
            yield rows, {place: [next(predictions) for _ in thresholds[place]] for place in places}


def find_thresholds(
    calibrated: Sequence[Calibrated],
    nodes: IntArray,
    alphas: Sequence[float],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[LocalThresholds]:
    """Return the thresholds of several calibrated methods, shape (alphas, nodes) each.

    Weightings of the same scored nodes share one search.
    """
    cuts = [method.level.cuts(alphas) for method in calibrated]
    searches: dict[Any, list[int]] = {}
    for i, method in enumerate(calibrated):
        local = method.local
        shares = isinstance(local, AroundLocal) and method.grouped is None
        searches.setdefault((type(local), id(getattr(local, "reference", None))) if shares else i, []).append(i)
    thresholds: dict[int, LocalThresholds] = {}
    reports = stages(progress, [1] * len(searches), nodes.size)
    for (key, places), report in zip(searches.items(), reports, strict=True):
        first = calibrated[places[0]]
        if first.grouped is not None:
            thresholds[key] = first.grouped.thresholds(nodes, alphas, threads, report)
        else:
            if isinstance(key, tuple):
                locals_: list[Any] = [calibrated[i].local for i in places]
                found = share_search(locals_, nodes, [cuts[i] for i in places], threads=threads, progress=report)
            else:
                alone = first.local.thresholds(nodes, cuts[key], threads=threads, progress=report)
                found = [_check_local(first, alone, (len(cuts[key]), nodes.size))]
            for i, node_thresholds in zip(places, found, strict=True):
                thresholds[i] = calibrated[i].level.thresholds(node_thresholds, nodes, alphas)
        complete(report)
    return [thresholds[i] for i in range(len(calibrated))]


def _check_local(calibrated: Calibrated, thresholds: object, shape: tuple[int, int]) -> LocalThresholds:
    """Check the thresholds of a local, because a user's localiser may return anything."""
    if not isinstance(thresholds, LocalThresholds) or np.shape(thresholds.values) != shape:
        local = isinstance(thresholds, LocalThresholds)
        got = f"values of shape {np.shape(thresholds.values)}" if local else shown(thresholds)  # type: ignore[attr-defined]
        raise InvalidInputError(
            f"`localiser` must give LocalThresholds with values of shape {shape}, one row per cut and one column per "
            f"node; {type(calibrated.method.localiser).__name__} gave {got}"
        )
    return thresholds
