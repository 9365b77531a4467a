"""A calibrated method between processes: its large arrays as files that all map, the rest as a few bytes.

Spark sends objects to its workers pickled. A calibrated method holds the graph, the probabilities and arrays of an
entry for each node and edge; pickled, each worker would have copies of its own. Here arrays of some size become files
of a `Folder` (those that were mapped from it already are left where they are), and what is sent holds their names.
Values that an object has worked out once (`cached_property`) go along: no worker sorts or lays out anything again.

The bytes travel on Spark's own way between its processes and are never read from a file.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.cloudpickle import CloudPickler

from napsets.checks.frozen import Sealed
from napsets.spark.mapped import Folder

__all__ = ["pack", "unpack"]

#: Arrays of fewer bytes are sent along.
_SMALL = 1 << 12


def pack(
    value: Any,
    folder: Folder,
    known: dict[str, npt.NDArray[Any]],
    prefix: str,
    prepare: Callable[[Any], None] = lambda part: None,
) -> bytes:
    """Return a value as bytes, its large arrays as files of the folder.

    Parameters
    ----------
    value : object
        What to send.
    folder : Folder
        Where arrays go.
    known : dict
        Arrays that were mapped from the folder, by their names there.
    prefix : str
        What the names of new ones start with.
    prepare : callable
        Told of each object on the way, before it is looked into.
    """
    stream = io.BytesIO()
    _Packer(stream, folder, known, prefix, prepare).dump(value)
    return stream.getvalue()


def unpack(data: bytes, folder: Folder) -> Any:
    """Return what `pack` was given, its large arrays mapped."""
    return _Unpacker(io.BytesIO(data), folder).load()


def _identity(array: npt.NDArray[Any]) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str


class _Packer(CloudPickler):  # which knows functions that have no name, as Spark does
    def __init__(
        self,
        stream: Any,
        folder: Folder,
        known: dict[str, npt.NDArray[Any]],
        prefix: str,
        prepare: Callable[[Any], None],
    ) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.folder, self.prefix, self.prepare = folder, prefix, prepare
        self.names = {_identity(array): name for name, array in known.items()}
        self.kept: list[Any] = []  # so that no two arrays get one address

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, np.ndarray) or value.nbytes < _SMALL or value.dtype.hasobject:
            return None
        key = _identity(value)
        if key not in self.names:
            self.names[key] = f"{self.prefix}-{len(self.kept)}"
            self.folder.save(self.names[key], np.asarray(value))
        self.kept.append(value)
        return self.names[key]

    def reducer_override(self, value: Any) -> Any:
        self.prepare(value)
        if not isinstance(value, Sealed):
            return super().reducer_override(value)
        given = [field.name for field in fields(value) if field.init]  # type: ignore[arg-type]
        found = {name: part for name, part in vars(value).items() if name not in given}
        return _restored, (type(value), tuple(getattr(value, name) for name in given), found)


def _restored(kind: Any, given: tuple[Any, ...], found: dict[str, Any]) -> Any:
    value = kind(*given)
    vars(value).update(found)
    return value


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream: Any, folder: Folder) -> None:
        super().__init__(stream)
        self.folder = folder
        self.arrays: dict[str, npt.NDArray[Any]] = {}

    def persistent_load(self, name: str) -> npt.NDArray[Any]:
        if name not in self.arrays:
            self.arrays[name] = self.folder.array(name)
        return self.arrays[name]
