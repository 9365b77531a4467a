"""Arrays as plain files in a folder: written in parts by tasks, mapped by every reader.

A file is written under another name and renamed, so that a name stands for the whole of it; an array that many tasks
write together is made at its full size first, and each writes its own rows. Writing the same rows twice changes
nothing: a task that is run again does no harm. Mapped arrays are read-only, and a machine holds one copy of them, in
its page cache, however many processes map it.

A calibrated method goes between processes as a few bytes and such files (`pack`): pickled whole, each worker would have
copies of its own. Values that an object has worked out once (`cached_property`) go along: no worker sorts or lays out
anything again. The bytes travel on Spark's own way between its processes and are never read from a file.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.cloudpickle import CloudPickler

from napsets.checks.arguments import Sealed

Array = npt.NDArray[Any]

#: Bytes that are written at a time.
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Folder:
    """A folder of arrays, and of marks that say which steps are done."""

    path: str  # on every machine

    def file(self, name: str) -> str:
        """Return the path of something in it."""
        return f"{self.path}/{name}"

    # -- arrays ----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return os.path.exists(self.file(f"{name}.npy"))

    def array(self, name: str) -> Array:
        """Map an array; nothing is read before it is looked at."""
        # As a view of read-only memory: this file is not written to again, so the array needs no copy.
        return np.asarray(memoryview(np.load(self.file(f"{name}.npy"), mmap_mode="r")))

    def save(self, name: str, array: Array) -> None:
        """Write an array, whole or not at all."""
        with drafted(self.file(f"{name}.npy")) as draft, open(draft, "wb") as stream:
            np.save(stream, array, allow_pickle=False)

    def make(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        """Make room for an array that tasks are to fill."""
        with drafted(self.file(f"{name}.npy")) as draft:
            np.lib.format.open_memmap(draft, "w+", np.dtype(dtype), shape)

    def fill(self, name: str, row: int, values: Array) -> None:
        """Write rows of an array from one on; through the file: a full disk kills writers of maps."""
        path = self.file(f"{name}.npy")
        whole = np.load(path, mmap_mode="r")
        data, place = _bytes(values.astype(whole.dtype, copy=False)), whole.offset + row * whole.strides[0]
        with open(path, "r+b") as stream:
            while data:
                written = os.pwrite(stream.fileno(), data[:_BLOCK], place)
                data, place = data[written:], place + written

    # -- steps -----------------------------------------------------------------------------------------------------

    def done(self, step: str) -> dict[str, Any] | None:
        """Return what a step that is done has recorded, None where it is not done."""
        try:
            with open(self.file(f"{step}.done"), encoding="utf-8") as stream:
                record: dict[str, Any] = json.load(stream)
        except FileNotFoundError:
            return None
        return record

    def step(self, name: str, make: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        """Do a step, unless it is done; `make` gets the name of a folder of its own and returns what to record.

        The folder is new each time: tasks of a run that was killed may still write to theirs.
        """
        record = self.done(name)
        if record is not None:
            return record
        self.clear(name)
        own = f"{name}-{uuid.uuid4().hex[:8]}"
        os.makedirs(self.file(own))
        record = {"folder": own} | make(own)
        with drafted(self.file(f"{name}.done")) as draft:
            Path(draft).write_text(json.dumps(record), encoding="utf-8")
        return record

    def clear(self, step: str) -> None:
        """Remove the folders of a step."""
        for path in Path(self.path).glob(f"{step}-*"):
            shutil.rmtree(path, ignore_errors=True)


def _bytes(values: Array) -> memoryview:
    return memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


@contextmanager
def drafted(path: str) -> Iterator[str]:
    """Yield a path next to `path` for a file or a folder, which is renamed to `path` at the end.

    A folder that another task has put there meanwhile stays.
    """
    folder, name = os.path.split(path)
    draft = Path(folder, f".{name}.{uuid.uuid4().hex[:8]}")
    try:
        yield str(draft)
        if not os.path.isdir(path):
            os.replace(draft, path)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


# -- what one task writes ------------------------------------------------------------------------------------------


def part_name(part: int) -> str:
    """Return what a part is called, so that parts are in their order by name."""
    return f"part-{part:07d}"


@contextmanager
def writing_part(folder: str, part: int) -> Iterator[Callable[..., None]]:
    """Give a function that adds rows to columns of a part: files of bare numbers, which appear together in the end."""
    with drafted(f"{folder}/{part_name(part)}") as draft, ExitStack() as closing:
        os.makedirs(draft)
        files: dict[str, Any] = {}

        def add(**columns: Array) -> None:
            for name, values in columns.items():
                if name not in files:
                    files[name] = closing.enter_context(open(f"{draft}/{name}", "wb"))
                files[name].write(_bytes(values))

        yield add


def read_part(folder: str, part: int, column: str, dtype: npt.DTypeLike) -> Array:
    """Map a column of a part; one that is not there is empty."""
    path = f"{folder}/{part_name(part)}/{column}"
    there = os.path.exists(path) and os.path.getsize(path) > 0
    return np.memmap(path, dtype, "r") if there else np.empty(0, dtype=dtype)


def offsets_of(sizes: Sequence[int]) -> list[int]:
    """Return where each part starts, and where the last ends."""
    return [0, *np.cumsum(np.array(sizes, dtype=np.int64)).tolist()]


#: Arrays of fewer bytes are sent along.
_SMALL = 1 << 12


def pack(
    value: Any, folder: Folder, known: dict[str, Array], prefix: str, prepare: Callable[[Any], None] = lambda part: None
) -> bytes:
    """Return a value as bytes, its large arrays as files of the folder, with names that start with `prefix`.

    Arrays that were mapped from the folder are `known` by their names there. `prepare` is called with each object on
    the way, before it is looked into.
    """
    stream = io.BytesIO()
    _Packer(stream, folder, known, prefix, prepare).dump(value)
    return stream.getvalue()


def unpack(data: bytes, folder: Folder) -> Any:
    """Return the value that was packed, its large arrays mapped, each once."""
    unpickler: Any = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = cache(folder.array)
    return unpickler.load()


def _identity(array: Array) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str


class _Packer(CloudPickler):  # which knows functions that have no name, as Spark does
    def __init__(
        self, stream: Any, folder: Folder, known: dict[str, Array], prefix: str, prepare: Callable[[Any], None]
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
        names = [field.name for field in fields(value) if field.init]  # type: ignore[arg-type]
        cached = {name: part for name, part in vars(value).items() if name not in names}
        return _restored, (type(value), tuple(getattr(value, name) for name in names), cached)


def _restored(kind: Any, arguments: tuple[Any, ...], cached: dict[str, Any]) -> Any:
    value = kind(*arguments)
    vars(value).update(cached)
    return value
