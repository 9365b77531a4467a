"""Sets as plain JSON, for answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from napsets.errors import InvalidInputError
from napsets.live.live import Live
from napsets.predictions import PredictionSets

#: Sets that are made at a time: other requests get their turn in between.
PIECE = 250


def sets_json(live: Live, nodes: Sequence[Any], alpha: float | None) -> Iterator[bytes]:
    """Yield the sets of nodes as JSON, piece by piece and all of one state: no batch takes effect meanwhile."""
    with nullcontext() if len(nodes) <= PIECE else live._writing:
        yield b'{"sets": ['
        for start in range(0, len(nodes), PIECE):
            piece = nodes[start : start + PIECE]
            try:
                sets = live.predict(piece, alpha)
            except InvalidInputError:
                live.predict(nodes, alpha)  # which says how many of all nodes are not there
                raise
            yield (b", " if start else b"") + json.dumps(set_rows(piece, sets), ensure_ascii=False)[1:-1].encode()
        yield b"]}"


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
