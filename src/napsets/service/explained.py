"""Why a node has its set, as plain JSON."""

from __future__ import annotations

from typing import Any

from napsets.live.live import Live
from napsets.service.rows import set_rows

__all__ = ["explained"]

#: Neighbours that are listed at the most, nearest first.
_MOST_NEIGHBOURS = 50


def explained(live: Live, node: Any, alpha: float | None = None) -> dict[str, Any]:
    """Return the set of one node with its candidates, their p-values, and the labelled neighbours that speak."""
    with live._busy:  # all of one state
        inspection = live.inspect(node, alpha)
        (row,) = set_rows([node], live.predict([node], alpha))
        p_values, neighbours = live.p_values([node])[0], live.labelled_around(node, _MOST_NEIGHBOURS)
    names: Any = live.class_names or range(inspection.member.size)
    columns = zip(names, inspection.probabilities, inspection.scores, p_values, strict=True)
    return row | {
        "reason": inspection.reason(),
        "candidates": [
            {
                "label": name,
                "probability": float(probability),
                "score": float(score),
                "p_value": float(p_value),
                "member": name in row["labels"],
            }
            for name, probability, score, p_value in columns
        ],
        "neighbours": [{"node": other, "label": names[label], "hops": hops} for other, label, hops in neighbours],
    }
