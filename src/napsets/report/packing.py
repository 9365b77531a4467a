"""Arrays as text that both the page's script and Python read back to the last bit."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["packed", "unpacked"]


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """Return an array as base64, little-endian, integers at the smallest width that holds them."""
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
    """Return the array that `packed` was given, its integers perhaps narrower.

    Examples
    --------
    >>> unpacked(packed(np.array([3, 1, 4]))).tolist()
    [3, 1, 4]
    """
    raw = np.frombuffer(base64.b64decode(value["data"], validate=True), np.dtype(value["dtype"]).newbyteorder("<"))
    return raw.reshape(value["shape"])
