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
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.cloudpickle import CloudPickler

from napsets.checks.arguments import Sealed, sealed

#: Bytes that are copied at a time.
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

    def array(self, name: str) -> npt.NDArray[Any]:
        """Map an array; nothing is read before it is looked at."""
        path = self.file(f"{name}.npy")
        if _is_empty(path):
            return sealed(np.load(path, allow_pickle=False))
        # As a view of read-only memory: this file is not written to again, so the array needs no copy.
        return np.asarray(memoryview(np.load(path, mmap_mode="r")))

    def save(self, name: str, array: npt.NDArray[Any]) -> None:
        """Write an array, whole or not at all."""
        with drafted(self.file(f"{name}.npy")) as draft, open(draft, "wb") as stream:
            np.save(stream, array, allow_pickle=False)

    def make(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        """Make room for an array that tasks are to fill."""
        with drafted(self.file(f"{name}.npy")) as draft, open(draft, "wb") as stream:
            header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(stream, header)
            stream.truncate(stream.tell() + int(np.prod(shape)) * np.dtype(dtype).itemsize)

    def fill(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        """Write rows of an array from one on; through the file: a full disk kills writers of maps."""
        path, place, dtype = self._place(name, row)
        _write_at(path, place, _bytes(values.astype(dtype, copy=False)))

    def copy_into(self, name: str, row: int, source: str) -> None:
        """Write the bytes of a file as the rows of an array from one on."""
        path, place, _ = self._place(name, row)
        with open(source, "rb") as stream:
            while block := stream.read(_BLOCK):
                _write_at(path, place, memoryview(block))
                place += len(block)

    def _place(self, name: str, row: int) -> tuple[str, int, np.dtype[Any]]:
        """Return the file of an array, where a row stands in it, and the type of its numbers."""
        path = self.file(f"{name}.npy")
        with open(path, "rb") as stream:
            shape, start, dtype = _header(stream)
        return path, start + row * int(np.prod(shape[1:])) * dtype.itemsize, dtype

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


def _is_empty(path: str) -> bool:
    with open(path, "rb") as stream:
        shape, _, _ = _header(stream)
    return 0 in shape  # nothing can be mapped where there is nothing


def _header(stream: Any) -> tuple[tuple[int, ...], int, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, stream.tell(), dtype


def _bytes(values: npt.NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _write_at(path: str, place: int, data: memoryview) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        while data:
            written = os.pwrite(file, data[:_BLOCK], place)
            data, place = data[written:], place + written
    finally:
        os.close(file)


@contextmanager
def drafted(path: str) -> Iterator[str]:
    """Yield a path next to `path` to write to, which is renamed to `path` at the end."""
    folder, name = os.path.split(path)
    draft = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}"
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


@contextmanager
def draft_folder(path: str) -> Iterator[str]:
    """Yield a folder next to `path` to write to, renamed at the end unless another task was faster."""
    parent, name = os.path.split(path)
    draft = f"{parent}/.{name}.{uuid.uuid4().hex[:8]}"
    os.makedirs(draft)
    try:
        yield draft
        if not os.path.isdir(path):
            os.rename(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


# -- what one task writes ------------------------------------------------------------------------------------------


def part_name(part: int) -> str:
    """Return what a part is called, so that parts are in their order by name."""
    return f"part-{part:07d}"


@contextmanager
def writing_part(folder: str, part: int) -> Iterator[Callable[..., None]]:
    """Give a function that adds rows to columns of a part: files of bare numbers, which appear together in the end."""
    with draft_folder(f"{folder}/{part_name(part)}") as draft, ExitStack() as closing:
        files: dict[str, Any] = {}

        def add(**columns: npt.NDArray[Any]) -> None:
            for name, values in columns.items():
                if name not in files:
                    files[name] = closing.enter_context(open(f"{draft}/{name}", "wb"))
                files[name].write(_bytes(values))

        yield add


def read_part(folder: str, part: int, column: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a column of a part."""
    path = f"{folder}/{part_name(part)}/{column}"
    return np.fromfile(path, dtype=dtype) if os.path.exists(path) else np.empty(0, dtype=dtype)


def offsets_of(sizes: Sequence[int]) -> list[int]:
    """Return where each part starts, and where the last ends."""
    return [0, *np.cumsum(np.array(sizes, dtype=np.int64)).tolist()]


#: Arrays of fewer bytes are sent along.
_SMALL = 1 << 12


def pack(
    value: Any,
    folder: Folder,
    known: dict[str, npt.NDArray[Any]],
    prefix: str,
    prepare: Callable[[Any], None] = lambda part: None,
) -> bytes:
    """Return a value as bytes, its large arrays as files of the folder, with names that start with `prefix`.

    Arrays that were mapped from the folder are `known` by their names there. `prepare` is called with each object on
    the way, before it is looked into.
    """
    stream = io.BytesIO()
    _Packer(stream, folder, known, prefix, prepare).dump(value)
    return stream.getvalue()


def unpack(data: bytes, folder: Folder) -> Any:
    """Return the value that was packed, its large arrays mapped."""
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
        names = [field.name for field in fields(value) if field.init]  # type: ignore[arg-type]
        cached = {name: part for name, part in vars(value).items() if name not in names}
        return _restored, (type(value), tuple(getattr(value, name) for name in names), cached)


def _restored(kind: Any, arguments: tuple[Any, ...], cached: dict[str, Any]) -> Any:
    value = kind(*arguments)
    vars(value).update(cached)
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
