"""What the file that ``--like`` names has for a node, beside what is explained of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napsets.cli._like import Record
from napsets.cli._output import number
from napsets.files import Inputs, read_intervals, read_sets
from napsets.files.ids import NodeIds
from napsets.files.regression import RegressionInputs

__all__ = ["written_otherwise"]

#: Numbers that differ by a smaller share, ends by a smaller share of the width, were rounded on another machine.
_ROUNDED = 1e-6


def written_otherwise(
    record: Record, result: dict[str, Any], inputs: Inputs | RegressionInputs, place: int
) -> list[str]:
    """Say where a file has another set, interval or threshold for a node; nothing of a report, which keeps few nodes.

    Parameters
    ----------
    record : Record
        The file.
    result : dict
        What was explained, as `told_of_set` and `told_of_interval` tell it.
    inputs : Inputs or RegressionInputs
        What was read.
    place : int
        The node.
    """
    if record.report:
        return []
    has = (_interval if isinstance(inputs, RegressionInputs) else _set)(record, result, inputs.ids, place)
    return [] if has is None else [f"{record.path} has {has} for this node: the files or settings are others"]


def _set(record: Record, result: dict[str, Any], ids: NodeIds, place: int) -> str | None:
    """Return the file's set, where it is another."""
    file = read_sets(record.path, ids="string" if ids.is_string else "auto")
    for row in _rows(file.ids, ids, place):
        names = [file.class_names[y] for y in np.flatnonzero(file.sets.member[row])]
        threshold = float(file.sets.thresholds[row])
        if sorted(names) != sorted(result["set"]) or not _alike(threshold, result["threshold"]):
            return f"{{{', '.join(names)}}} at the threshold {_shown(threshold)}"
    return None


def _interval(record: Record, result: dict[str, Any], ids: NodeIds, place: int) -> str | None:
    """Return the file's interval, where it is another."""
    file = read_intervals(record.path, ids="string" if ids.is_string else "auto")
    for row in _rows(file.ids, ids, place):
        lower, upper, threshold = (
            float(values[row]) for values in (file.intervals.lower, file.intervals.upper, file.intervals.thresholds)
        )
        room = _ROUNDED * (upper - lower) if math.isfinite(upper - lower) else 0.0
        ends = np.isclose([result["lower"], result["upper"]], [lower, upper], rtol=1e-12, atol=room)
        if not ends.all() or not _alike(threshold, result["threshold"]):
            return f"[{_shown(lower)}, {_shown(upper)}] at the threshold {_shown(threshold)}"
    return None


def _rows(written: NodeIds, ids: NodeIds, place: int) -> list[int]:
    """Return the row of a node, if the file has one."""
    if written.is_string != ids.is_string:
        return []
    return [int(row) for row in written.positions(ids.take(np.array([place]))) if row >= 0]


def _alike(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDED)


def _shown(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else number(value)
