"""Reading a file of intervals, and refusing one whose parts contradict each other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import IdKind, NodeIds, id_column
from napsets.files.numbers import joined_ids
from napsets.files.regression import INTERVAL_COLUMNS
from napsets.files.sets_reader import check_numbers, one_alpha, plain_numbers, whole_numbers
from napsets.files.settings import check_recorded
from napsets.intervals import PredictionIntervals

__all__ = ["IntervalsFile", "holds_intervals", "read_intervals"]

#: The best guess, which `PredictionIntervals.to_arrow` need not have.
_GUESS = "prediction"
_NEEDED = tuple(name for name in INTERVAL_COLUMNS if name != _GUESS)
#: What null stands for in JSON Lines.
_ENDLESS = {"lower": -np.inf, "upper": np.inf, "width": np.inf, "threshold": np.inf}


@dataclass(frozen=True, eq=False)
class IntervalsFile:
    """A file of intervals in memory.

    Attributes
    ----------
    ids : NodeIds
        The ids of the nodes, in the order of the file.
    intervals : PredictionIntervals
        Their intervals, on the places 0..n−1.
    metadata : dict
        Version and settings; empty where the file has none.
    """

    ids: NodeIds
    intervals: PredictionIntervals
    metadata: dict[str, Any]


def holds_intervals(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is one of intervals: it has their ends, and no labels."""
    columns = open_table("sets", path).columns
    return {"lower", "upper"} <= set(columns) and "labels" not in columns


def read_intervals(path: str | os.PathLike[str], *, ids: IdKind = "auto") -> IntervalsFile:
    """Read a file of intervals of any of the formats.

    Parameters
    ----------
    path : path
        The file.
    ids : {"auto", "integer", "string"}
        As in `read_sets`.

    Raises
    ------
    FileFormatError
        Where the file is no file of intervals, or its columns and its metadata contradict each other or what numbers
        can be.
    """
    table = open_table("sets", path)
    table.require(*_NEEDED)
    metadata = table.about()
    check_recorded(table.name, table.path, metadata)
    called, numbers = _rows(table, ids)
    _check(table, numbers)
    size = numbers["lower"].size
    intervals = PredictionIntervals(
        np.arange(size),
        numbers["lower"],
        numbers["upper"],
        numbers["threshold"],
        numbers["support"].astype(np.int64),
        numbers["effective_size"],
        one_alpha(table, numbers["alpha"], metadata),
        num_nodes=size,
        centre=numbers.get(_GUESS),
    )
    return IntervalsFile(NodeIds(called, "sets", table.path), intervals, metadata)


def _rows(table: TableFile, kind: IdKind) -> tuple[Any, dict[str, FloatArray]]:
    columns = [name for name in INTERVAL_COLUMNS if name in table.columns]
    ids: list[Any] = []
    numbers: dict[str, list[Any]] = {name: [] for name in columns if name != "node"}
    for batch in table.batches(columns):
        ids.append(id_column(table, batch, "node", "string" if kind == "string" else "auto"))
        for name, parts in numbers.items():
            parts.append(plain_numbers(table, whole_numbers(table, batch.column(name), name, _ENDLESS), name))
    if not ids:
        raise FileFormatError(f"`sets` must have at least one row; {table.path} has none")
    joined = {name: np.concatenate(parts).astype(np.float64) for name, parts in numbers.items()}
    if table.format == "jsonl":  # where −∞ is null too: an interval of one point has no threshold of +∞
        endless, bounded = np.isposinf(joined["threshold"]), np.isfinite(joined["width"])
        joined["threshold"] = np.where(endless & bounded, -np.inf, joined["threshold"])
    return joined_ids(table, ids, kind), joined


def _check(table: TableFile, numbers: dict[str, FloatArray]) -> None:
    lower, upper, width = (numbers[name] for name in ("lower", "upper", "width"))
    rules = {name: (~np.isnan(numbers[name]), "a number or infinite") for name in ("lower", "upper", "threshold")}
    if _GUESS in numbers:
        rules[_GUESS] = (np.isfinite(numbers[_GUESS]), "a finite number")
    check_numbers(table, numbers, rules)
    crossed = lower > upper
    if crossed.any():
        row = int(crossed.argmax())
        raise FileFormatError(
            f"each lower of `sets` must be at most its upper; row {row} of {table.path} goes from {lower[row]:g} to "
            f"{upper[row]:g}"
        )
    fits = np.isclose(width, upper - lower, rtol=1e-9, atol=0.0)
    if not fits.all():
        row = int(fits.argmin())
        raise FileFormatError(
            f"`sets` must have widths that fit their ends; row {row} of {table.path} goes from {lower[row]:g} to "
            f"{upper[row]:g} and has the width {width[row]:g}"
        )
