"""Values as files: NumPy arrays and a JSON header in one archive, no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from napsets.checks.frozen import sealed
from napsets.files.places import reading, replacing

__all__ = ["read_archive", "write_archive"]


def write_archive(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and arrays, whole or not at all."""
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header, default=_plain)), **arrays)


@contextmanager
def read_archive(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give the header and the arrays; whatever goes wrong with them is a `FileFormatError` that names the file."""
    with reading(path) as source:
        with np.load(source, allow_pickle=False) as archive:
            arrays = {name: sealed(archive[name]) for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        yield header, arrays


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers, which JSON does not know, into Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written")
