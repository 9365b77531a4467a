"""How values get into a page: arrays as text, JSON that cannot end a script."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.text import visible

__all__ = ["as_json", "packed", "unpacked"]


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
    """Return the array that was packed, its integers perhaps narrower.

    Examples
    --------
    >>> unpacked(packed(np.array([3, 1, 4]))).tolist()
    [3, 1, 4]
    """
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
