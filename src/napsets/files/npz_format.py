"""npz: arrays with a header, without pickle; and as batches of Arrow columns, a matrix as a column of lists."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import MAGIC_PREFIX, read_array_header_1_0, read_array_header_2_0

from napsets.checks.frozen import sealed
from napsets.checks.optional import arrow
from napsets.errors import FileFormatError
from napsets.files.places import reading, replacing

#: The key in a file's metadata under which napsets keeps its settings, as JSON.
METADATA_KEY = b"napsets"

_ENDS = ("source", "target")

#: Arrays with one row per node: without ids, their rows are the nodes 0, 1, 2, …
_A_ROW_A_NODE = ("probabilities", "features", "label")

#: Arrays that are matrices.
_MATRICES = ("probabilities", "features")


def npz_header(name: str, path: Path) -> tuple[list[str], dict[bytes, bytes]]:
    """Return the names of the columns, and the settings that napsets keeps in addition to them."""
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        for column in names:
            _refuse_pickle(name, path, archive, column)
        metadata = {METADATA_KEY: str(archive["about"]).encode()} if "about" in names else {}
    if "edge_index" in names:
        if set(_ENDS) & set(names):
            raise FileFormatError(
                f"`{name}` must hold either edge_index or source and target; {path} holds both. Keep one of them."
            )
        names += _ENDS
    if "node" not in names and set(_A_ROW_A_NODE) & set(names):
        names.append("node")
    return names, metadata


def npz_batches(name: str, path: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Give record batches of the columns, of at most this many rows."""
    arrays = npz_arrays(name, path, columns)
    for start in range(0, max(map(len, arrays.values()), default=0), rows):
        parts = [_arrow_column(arrays[column][start : start + rows]) for column in columns]
        yield arrow().RecordBatch.from_arrays(parts, names=list(columns))


def npz_arrays(name: str, path: Path, columns: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns as arrays, all of one length."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = _arrays(name, path, archive, columns)
    lengths = {column: len(array) for column, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FileFormatError(f"`{name}` must have arrays of one length; {path} has {lengths}")
    return arrays


def npz_array(name: str, path: Path, archive: Any, column: str, *, ndim: int = 1) -> npt.NDArray[Any]:
    """Return an array of numbers or text with this many dimensions, in this machine's byte order."""
    array: npt.NDArray[Any] = archive[column]
    if array.ndim != ndim:
        shape = "one row per node and one column per class or feature" if ndim == 2 else "one dimension"
        raise FileFormatError(f"`{name}` must have {shape} in its array {column}; {path} has shape {array.shape}")
    if column in _MATRICES and not array.shape[1]:
        raise FileFormatError(f"`{name}` must have at least one entry in each row of {column}; {path} has none")
    if array.dtype.kind not in "iufbUS" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise FileFormatError(
            f"`{name}` must hold numbers or text in its array {column}; {path} has dtype {array.dtype}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _arrays(name: str, path: Path, archive: Any, columns: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    ends = _edge_index(name, path, archive) if "source" in columns and "edge_index" in archive.files else {}
    arrays = {
        column: ends[column]
        if column in ends
        else npz_array(name, path, archive, column, ndim=2 if column in _MATRICES else 1)
        for column in columns
        if column in ends or column in archive.files
    }
    if "node" in columns and "node" not in arrays:
        whole = next(column for column in _A_ROW_A_NODE if column in archive.files)
        arrays["node"] = np.arange(len(archive[whole]))
    return arrays


def _refuse_pickle(name: str, path: Path, archive: Any, column: str) -> None:
    """Refuse Python objects in any array, even one that is not used: napsets opens no pickle."""
    stored = f"{column}.npy" if f"{column}.npy" in archive.zip.namelist() else column
    with archive.zip.open(stored) as stream:
        if stream.read(len(MAGIC_PREFIX)) != MAGIC_PREFIX:
            raise FileFormatError(f"`{name}` must hold NumPy arrays; {column} in {path} is none")
        version = tuple(stream.read(2))
        header = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}.get(version)
        if header is None or not header(stream)[2].hasobject:  # other versions are for names of fields: no objects
            return
    kind = {"edge_index": "integers", "probabilities": "numbers", "features": "numbers"}.get(column)
    way = {"integers": '"int64"', "numbers": '"float64"'}.get(kind or "", "str")
    raise FileFormatError(
        f"`{name}` must hold {kind or 'numbers or text'} in its array {column}; {path} has Python objects. Write "
        f"{column}.astype({way}) instead."
    )


def _edge_index(name: str, path: Path, archive: Any) -> dict[str, npt.NDArray[Any]]:
    array = archive["edge_index"]
    shape = array.shape
    if len(shape) != 2 or shape[0] != 2:
        transposed = len(shape) == 2 and shape[1] == 2
        way = "Transpose it: edge_index.T." if transposed else "Keep sources and targets alone, one row each."
        if len(shape) < 2:
            way = "Put sources and targets into one row each: np.stack([source, target])."
        raise FileFormatError(f"`{name}` must hold edge_index of shape (2, edges); {path} has shape {shape}. {way}")
    if array.dtype.kind == "f":
        raise FileFormatError(
            f"`{name}` must hold integers in its array edge_index; {path} has dtype {array.dtype}. Write "
            f'edge_index.astype("int64") instead.'
        )
    return dict(zip(_ENDS, npz_array(name, path, archive, "edge_index", ndim=2), strict=True))


def _arrow_column(array: npt.NDArray[Any]) -> Any:
    pa = arrow()
    if array.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).reshape(-1)), array.shape[1])
    return pa.array(array)


# -- archives ------------------------------------------------------------------------------------------


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
