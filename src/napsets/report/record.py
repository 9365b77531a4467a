"""What a report records of how it was made, so that ``napsets inspect --like report.html`` explains the same sets.

The record stands in the page as JSON: the settings by the names of the command's options, and which nodes calibrated.
Those are told by a mark for each node, in the order of the ids' 64-bit keys: the order of rows in a file cannot matter.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from napsets.checks.arguments import BoolArray, IntArray
from napsets.errors import FileFormatError
from napsets.evaluation.side_by_side import SideBySide
from napsets.files.places import reading
from napsets.localisers.decay import hop_weights
from napsets.randomness import UInt64Array, hash_ids
from napsets.report.packing import packed, unpacked
from napsets.report.shown import focus
from napsets.scores import SCORES, make_score
from napsets.version import __version__

__all__ = ["calibrating_nodes", "read_record", "record_of"]

#: Where the page holds the record.
_START, _END = '<script type="application/json" id="data-record">', "</script>"


def record_of(found: SideBySide[Any], settings: Mapping[str, Any], method: str | None = None) -> dict[str, Any]:
    """Return the record of a comparison.

    Parameters
    ----------
    found : Comparison or IntervalComparison
        The comparison.
    settings : mapping
        More settings, which only the caller knows.
    method : str, optional
        The method that is explained where no other is asked for; without, the one that the page is about.
    """
    nodes = found.graph.num_nodes
    calibrates = np.zeros(nodes, dtype=bool)
    calibrates[found.given.calibration] = True
    keys = hash_ids(np.arange(nodes) if found.ids is None else found.ids)
    return {
        "napsets": __version__,
        "method": found.results[focus(found, found.verdict())].name if method is None else method,
        "methods": [result.name for result in found],
        "alpha": found.alpha,
        "hops": found.hops,
        "score": _score_name(found.settings.score),
        "seed": int(found.settings.seed),
        "allow_empty": found.settings.allow_empty,
        "fallback": found.settings.fallback,
        **_chosen(found),
        "directed": found.graph.directed,
        **settings,
        "num_nodes": nodes,
        "calibration": int(found.given.calibration.size),
        "calibrating": _packed_marks(calibrates[np.argsort(keys, kind="stable")]),
    }


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record that stands in a report."""
    with reading(path) as source:
        _, found, rest = source.read_text(encoding="utf-8").partition(_START)
        if not found:
            raise FileFormatError(
                f"{source} must be a report of napsets that records how it was made; it does not. Write it again with "
                f"`napsets report`."
            )
        record = json.loads(rest.partition(_END)[0])
        if not isinstance(record, dict):
            raise FileFormatError(f"{source} must record its settings as a JSON object; it has {record!r}")
    return record


def calibrating_nodes(record: Mapping[str, Any], keys: UInt64Array) -> IntArray:
    """Return the nodes that calibrated, ascending, among nodes with these keys (see `napsets.randomness.hash_ids`)."""
    count = record.get("num_nodes", keys.size)
    if count != keys.size:
        raise FileFormatError(f"the report is about {count:,} nodes; these files have {keys.size:,}")
    try:
        marks = _unpacked_marks(record["calibrating"], keys.size)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"the report does not say which nodes calibrated: {error}") from error
    return np.sort(np.argsort(keys, kind="stable")[marks])


def _score_name(score: Any) -> str:
    """Return the name by which the command knows a score; one with settings of its own has none."""
    name = SCORES.name_of(type(score))
    try:
        return name if name is not None and score == make_score(name) else repr(score)
    except TypeError:  # a score that is nothing without settings
        return repr(score)


def _chosen(found: SideBySide[Any]) -> dict[str, Any]:
    """Return what was said about weights, as JSON has it; a function of the hop by the weights that it gives."""
    settings = found.settings
    decay = settings.decay
    if decay is not None and not isinstance(decay, str):
        decay = hop_weights(decay, settings.hops, depth=found.hops).tolist()
    level = settings.level if isinstance(settings.level, str) else None  # others have no name
    chosen = {"decay": decay, "pool": settings.pool, "alike": settings.alike, "level": level}
    chosen["radius"] = settings.radius
    if settings.direction != "out":
        chosen["direction"] = settings.direction
    return {name: value for name, value in chosen.items() if value is not None}


def _packed_marks(marks: BoolArray) -> dict[str, Any]:
    """Return marks as bits, or as the gaps between them where they are few."""
    gaps = packed(np.diff(np.flatnonzero(marks), prepend=0))
    bits = packed(np.packbits(marks, bitorder="little"))
    return {"gaps": gaps} if len(gaps["data"]) < len(bits["data"]) else {"bits": bits}


def _unpacked_marks(value: Mapping[str, Any], count: int) -> BoolArray:
    if "bits" in value:
        return np.unpackbits(unpacked(value["bits"]), count=count, bitorder="little").astype(bool)
    marks = np.zeros(count, dtype=bool)
    places = np.cumsum(unpacked(value["gaps"]), dtype=np.int64)
    if places.size and not (places.min() >= 0 and places.max() < count):
        raise ValueError(f"node {places[-1]} of {count}")
    marks[places] = True
    return marks
