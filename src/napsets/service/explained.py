"""Why a node has its set, as plain JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.checks.values import in_digits
from napsets.live.live import Live
from napsets.predictions import PredictionSets
from napsets.service.rows import finite, set_rows

#: Largest number of neighbours that are listed, nearest first.
_MOST_NEIGHBOURS = 50


def explained(live: Live, node: Any, alpha: float | None = None) -> dict[str, Any]:
    """Return the set of one node with its candidates, their p-values, and the labelled neighbours that are evidence."""
    with live._busy:  # all of one state
        sets, p_values = live.predict([node], alpha), live.p_values([node])[0]
        probabilities, scores = live._candidates(node)
        neighbours = live.labelled_around(node, _MOST_NEIGHBOURS)
    names: Any = live.class_names or range(scores.size)
    thresholds = sets.thresholds if sets.label_thresholds is None else sets.label_thresholds[0]
    thresholds = np.broadcast_to(thresholds, scores.shape)
    columns = zip(
        names,
        probabilities.tolist(),
        scores.tolist(),
        thresholds.tolist(),
        p_values.tolist(),
        sets.member[0].tolist(),
        strict=True,
    )
    return set_rows([node], sets)[0] | {
        "reason": _reason(sets, thresholds, p_values),
        "candidates": [
            {
                "label": name,
                "probability": probability,
                "score": finite(score),
                "threshold": finite(threshold),
                "p_value": p_value,
                "member": member,
            }
            for name, probability, score, threshold, p_value, member in columns
        ],
        "neighbours": [{"node": other, "label": names[label], "hops": hops} for other, label, hops in neighbours],
    }


def _reason(sets: PredictionSets, thresholds: FloatArray, p_values: FloatArray) -> str:
    """Say in a few sentences what decides which labels are in the set."""
    alpha, support = f"alpha = {sets.alpha:g}", int(sets.support[0])
    if np.isposinf(thresholds).all():
        return f"Too few labels count for this node to leave out any label at {alpha}: the set has every label."
    low, high = (in_digits(float(end)).replace("inf", "∞") for end in (thresholds.min(), thresholds.max()))
    which = f"the threshold {low}" if low == high else f"its own threshold, from {low} to {high}"
    text = (
        f"A label is in the set if its p-value is above {alpha}, that is, if its score is at most {which}. The "
        f"threshold is based on {support:,} labelled nodes."
    )
    if sets.member.any() and not (p_values > sets.alpha).any():
        text += " No label's p-value is that large: the best label stands in for the empty set."
    return text
