"""NumPy arrays with a JSON header in one archive, without pickle: what saved methods are kept in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import sealed
from napsets.files.paths import reading, replacing

Arrays = dict[str, npt.NDArray[np.generic]]


def write_archive(
    path: str | os.PathLike[str], header: Mapping[str, object], arrays: Mapping[str, npt.NDArray[np.generic]]
) -> None:
    """Write a header and arrays, whole or not at all."""
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header, default=_plain)), **arrays)  # type: ignore[arg-type]


def _plain(value: object) -> object:
    """Turn NumPy's numbers, which JSON does not know, into Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written")


@contextmanager
def read_archive(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Give the header and the arrays; whatever goes wrong with them is a `FileFormatError` that names the file."""
    with reading(path) as source:
        with np.load(source, allow_pickle=False) as archive:
            arrays = {name: sealed(archive[name]) for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        yield header, arrays


def is_nested_beyond(value: object, depth: int) -> bool:
    """Whether JSON is nested more than this many levels deep: what walks through it later could exhaust the stack."""
    layer = [value]
    for _ in range(depth):
        nested = [part for part in layer if isinstance(part, dict | list | tuple)]
        layer = [inner for part in nested for inner in (part.values() if isinstance(part, dict) else part)]
    return bool(layer)
