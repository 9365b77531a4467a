"""The events of a living graph, and how batches of them are written as plain bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import as_column, refuse_masked
from napsets.checks.values import shown
from napsets.errors import InvalidInputError

Array = npt.NDArray[Any]

#: The columns of each kind of event.
KINDS: dict[str, tuple[str, ...]] = {
    "add nodes": ("ids", "probabilities"),
    "add edges": ("source", "target"),
    "add labels": ("ids", "labels"),
    "set probabilities": ("ids", "probabilities"),
    "remove labels": ("ids",),
    "remove nodes": ("ids",),
    "remove edges": ("source", "target"),
    "refit": (),
    "predictions": ("ids", "alpha", "level", "member"),
}


@dataclass(frozen=True, eq=False)
class Change:
    """Events of one kind, in order."""

    kind: str  #: One of `KINDS`.
    columns: Mapping[str, Array]  #: One entry per event in each column that the kind has.

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 1

    def __getitem__(self, rows: slice) -> Change:
        """Return some of the events."""
        return Change(self.kind, {name: column[rows] for name, column in self.columns.items()})


def as_ids(name: str, value: object) -> Array:
    """Return node ids as an array: int64 where all are integers, otherwise Python objects, integers and texts.

    Examples
    --------
    >>> as_ids("ids", ["a", 1, "1"])
    array(['a', 1, '1'], dtype=object)
    >>> as_ids("ids", 7)
    array([7])
    """
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        value = [value]
    # NumPy would turn 1 into "1" beside a text, and cut zeros off the end of one: lists of Python objects stay such.
    if isinstance(value, list | tuple) and any(isinstance(item, str) for item in value):
        refuse_masked(name, value)
        items = np.empty(len(value), dtype=object)
        items[:] = value
    else:
        items = as_column(name, value)
    if items.ndim != 1:
        raise InvalidInputError(f"`{name}` must have one dimension, one id per entry; got shape {items.shape}")
    if items.dtype.kind in "iu" and (items.dtype != np.uint64 or not items.size or items.max() < 2**63):
        return items.astype(np.int64, copy=False)
    if items.size == 0:
        return np.empty(0, dtype=np.int64)
    if items.dtype.kind in "UO":
        return _checked_objects(name, items.astype(object))
    raise InvalidInputError(f"`{name}` must hold integers below 2^63 or texts; got dtype {items.dtype}")


def _checked_objects(name: str, items: Array) -> Array:
    whole = True
    for place, item in enumerate(items):
        if isinstance(item, str):
            whole = False
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise InvalidInputError(f"`{name}` must be text that UTF-8 can hold; got {item!r}") from error
            items[place] = str(item)
        elif isinstance(item, int | np.integer) and not isinstance(item, bool) and -(2**63) <= item < 2**63:
            items[place] = int(item)
        else:
            raise InvalidInputError(f"`{name}` must hold integers below 2^63 or texts; entry {place} is {shown(item)}")
    return items.astype(np.int64) if whole else items


def pack(columns: Mapping[str, Array]) -> bytes:
    """Write columns as bytes: a line of JSON that describes the arrays, then the arrays one after another."""
    head: dict[str, Any] = {}
    parts: list[bytes] = []
    for name, column in columns.items():
        if column.dtype == object:
            parts.append(json.dumps(column.tolist(), ensure_ascii=False).encode())
            head[name] = ["ids", len(parts[-1])]
        else:
            plain = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            parts.append(plain.tobytes())
            head[name] = [plain.dtype.str, len(parts[-1]), list(plain.shape)]
    return b"".join([json.dumps(head).encode(), b"\n", *parts])


def unpack(payload: bytes) -> dict[str, Array]:
    """Read what `pack` wrote."""
    end = payload.index(b"\n")
    columns, start = {}, end + 1
    for name, (dtype, size, *shape) in json.loads(payload[:end]).items():
        part = payload[start : start + size]
        if dtype == "ids":
            columns[name] = _objects(json.loads(part))
        else:
            columns[name] = np.frombuffer(part, dtype=dtype).reshape(shape[0])
        start += size
    return columns


def _objects(items: list[Any]) -> Array:
    column = np.empty(len(items), dtype=object)
    column[:] = items
    return column
