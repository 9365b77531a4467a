"""Sets as plain JSON, and the set of one node explained: each candidate's p-value, and the labelled nodes around."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.checks.values import in_digits
from napsets.live.state import NodeId, State
from napsets.predictions import PredictionSets

if TYPE_CHECKING:
    from napsets.live.engine import Engine

#: Plain JSON.
JsonObject: TypeAlias = dict[str, object]
#: The most labelled nodes that are listed.
_MOST_NEIGHBOURS = 50


def explain(engine: Engine, node: NodeId, slot: int, sets: PredictionSets) -> JsonObject:
    """Return the factors that decide the set of one node; see `Live.explain`."""
    slots, state = np.array([slot]), engine.state
    (probabilities,), (scores,) = engine.candidates(slots)
    p_values = engine.p_values(slots)[0]
    names, around = state.class_names or range(scores.size), _labelled_around(state, slot)
    return set_rows([node], sets)[0] | {
        "reason": _reason(sets, p_values),
        "candidates": _rows(
            label=names,
            probability=probabilities.tolist(),
            score=map(_finite, scores.tolist()),
            p_value=p_values.tolist(),
            member=sets.member[0].tolist(),
        ),
        "neighbours": [{"node": other, "label": names[y], "hops": hops} for other, y, hops in around],
    }


def set_rows(nodes: Sequence[NodeId], sets: PredictionSets) -> list[JsonObject]:
    """Return one entry per node, in their order."""
    names = sets.class_names or range(sets.num_classes)
    entries, columns = np.nonzero(sets.member)
    labels: list[list[NodeId]] = [[] for _ in nodes]
    for entry, column in zip(entries.tolist(), columns.tolist(), strict=True):
        labels[entry].append(names[column])
    return _rows(
        node=nodes,
        labels=labels,
        size=map(len, labels),
        threshold=map(_finite, sets.thresholds.tolist()),
        support=sets.support.tolist(),
        effective_size=sets.effective_size.tolist(),
        alpha=[sets.alpha] * len(nodes),
    )


def _rows(**columns: Iterable[object]) -> list[JsonObject]:
    """Return columns of one length as one record per row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _finite(value: float) -> float | None:
    """Return a number that JSON has, or None."""
    return value if math.isfinite(value) else None


def _labelled_around(state: State, slot: int) -> list[tuple[NodeId, int, int]]:
    """Return labelled nodes one and two hops from a node with their labels and distances, nearest first."""
    most, labels = _MOST_NEIGHBOURS, state.nodes["labels"]
    near, seen = state.adjacency.neighbours(np.array([slot])).tolist(), {slot}
    around: list[tuple[NodeId, int, int]] = []
    for hops in (1, 2):
        for other in near:
            if other not in seen and labels[other] >= 0 and len(around) < most:
                (name,) = state.names.of(np.array([other])).tolist()
                around.append((name, int(labels[other]), hops))
            seen.add(other)
        if len(around) == most:
            break
        rows = (state.adjacency.neighbours(np.array([other]))[: 20 * most] for other in near[:most])
        near = [far for row in rows for far in row.tolist()]
    return around


def _reason(sets: PredictionSets, p_values: FloatArray) -> str:
    """Explain in a few sentences what decides which labels are in the set."""
    alpha, support, threshold = f"alpha = {sets.alpha:g}", int(sets.support[0]), float(sets.thresholds[0])
    if threshold == math.inf:
        return f"Too few labels count for this node to leave out any label at {alpha}: the set has every label."
    text = (
        f"A label is in the set if its p-value is above {alpha}, that is, if its score is at most the threshold "
        f"{in_digits(threshold).replace('inf', '∞')}. The threshold is based on {support:,} labelled nodes."
    )
    if sets.member.any() and not (p_values > sets.alpha).any():
        text += " No label's p-value is that large: the best label stands in for the empty set."
    return text
