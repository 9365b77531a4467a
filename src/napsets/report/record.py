"""What a report records of how it was made, so that ``napsets inspect --like report.html`` explains the same sets.

The record stands in the page as JSON: the settings by the names of the command's options, and which nodes calibrated.
Those have a mark per node, in the order of the ids' 64-bit keys: the order of rows in a file cannot matter. Arrays and
JSON get into a page so that no script can end early.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets import __version__
from napsets.checks.arguments import BoolArray, IntArray
from napsets.checks.text import visible
from napsets.errors import FileFormatError, InvalidInputError
from napsets.evaluation.results import Comparison
from napsets.files.paths import reading
from napsets.localisers.hops import hop_weights
from napsets.methods import Method
from napsets.randomness import UInt64Array, hash_ids
from napsets.scores.base import score_name


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """Return an array as base64, little-endian, integers at the smallest width that holds them.

    The page's script and `unpacked` read it back to the last bit.
    """
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    elif array.dtype.kind in "iu":
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        widths = (np.uint8, np.uint16, np.int16, np.uint32, np.int32)
        fitting = [width for width in widths if np.iinfo(width).min <= low and high <= np.iinfo(width).max]
        array = array.astype(fitting[0])
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": base64.b64encode(little.tobytes()).decode()}


def unpacked(value: dict[str, Any]) -> npt.NDArray[Any]:
    """Return the array that was packed, its integers perhaps narrower."""
    raw = np.frombuffer(base64.b64decode(value["data"], validate=True), np.dtype(value["dtype"]).newbyteorder("<"))
    return raw.reshape(value["shape"])


def as_json(value: object) -> str:
    """Return JSON that may stand in a script element: ASCII, no NaN, and no `<` that could close it."""
    return json.dumps(_plain(value), separators=(",", ":")).replace("<", "\\u003c")


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, np.ndarray):
        return packed(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


#: Where the page holds the record.
_START, _END = '<script type="application/json" id="data-record">', "</script>"


def record_of(comparison: Comparison, settings: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return the record of a comparison, with more settings of the caller; `method` is explained by default."""
    nodes, shared = comparison.graph.num_nodes, comparison.settings
    calibrates = np.zeros(nodes, dtype=bool)
    calibrates[comparison.data.calibration] = True
    keys = hash_ids(np.arange(nodes) if comparison.ids is None else comparison.ids)
    return {
        "napsets": __version__,
        "method": method,
        "method_description": _description(comparison[method].calibrated.method),
        "methods": [result.name for result in comparison],
        "alpha": comparison.alpha,
        "hops": comparison.hops,
        "score": score_name(shared.score),
        "seed": int(shared.seed),
        "allow_empty": shared.allow_empty,
        "fallback": shared.fallback,
        **_weights(comparison),
        "directed": comparison.graph.directed,
        **settings,
        "num_nodes": nodes,
        "calibration": int(comparison.data.calibration.size),
        "calibrating": _packed_marks(calibrates[np.argsort(keys, kind="stable")]),
    }


def read_report_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record that stands in a report."""
    with reading(path) as source:
        _, start, rest = source.read_text(encoding="utf-8").partition(_START)
        if not start:
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


def _description(method: Method) -> dict[str, Any] | None:
    """Return a method as plain JSON; None for one that only Python can describe."""
    try:
        description = method.describe()
        json.dumps(description)
    except (InvalidInputError, TypeError):
        return None
    return description


def _weights(comparison: Comparison) -> dict[str, Any]:
    """Return what was said about weights, as JSON has it; a function of the hop by the weights that it gives."""
    settings = comparison.settings
    decay = settings.decay
    if decay is not None and not isinstance(decay, str):
        decay = hop_weights(decay, settings.hops, depth=comparison.hops).tolist()
    weights = {
        "decay": decay,
        "pool": settings.pool,
        "alike": settings.alike,
        "level": settings.level if isinstance(settings.level, str) else None,  # others have no name
        "radius": settings.radius,
        "direction": None if settings.direction == "out" else settings.direction,
    }
    return {name: value for name, value in weights.items() if value is not None}


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
