"""Sets as plain JSON, for answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from napsets.predictions import PredictionSets

__all__ = ["finite", "set_rows"]


def set_rows(nodes: Sequence[Any], sets: PredictionSets) -> list[dict[str, Any]]:
    """Return one entry per node, in their order."""
    names: Any = range(sets.num_classes) if sets.class_names is None else sets.class_names
    entries, columns = np.nonzero(sets.member)
    labels: list[list[Any]] = [[] for _ in nodes]
    for entry, column in zip(entries.tolist(), columns.tolist(), strict=True):
        labels[entry].append(names[column])
    numbers = zip(
        nodes, labels, sets.thresholds.tolist(), sets.support.tolist(), sets.effective_size.tolist(), strict=True
    )
    return [
        {
            "node": node,
            "labels": own,
            "size": len(own),
            "threshold": finite(threshold),
            "support": support,
            "effective_size": effective_size,
            "alpha": sets.alpha,
        }
        for node, own, threshold, support, effective_size in numbers
    ]


def finite(value: float) -> float | None:
    """Return a number that JSON has, or None."""
    return value if math.isfinite(value) else None
