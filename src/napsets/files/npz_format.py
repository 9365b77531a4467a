"""npz, without pickle: as batches of Arrow columns, a matrix as a column of lists; and as arrays with a header."""

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

from napsets.checks.arguments import sealed
from napsets.checks.values import shown
from napsets.errors import FileFormatError, arrow
from napsets.files.paths import reading, replacing

_ENDS = ("source", "target")

#: Arrays that are matrices.
_MATRICES = ("probabilities", "features", "p_values")

#: Arrays with one row per node: without ids, their rows are the nodes 0, 1, 2, …
_A_ROW_A_NODE = ("probabilities", "features", "label")

#: Deeper JSON is not a description of a file; what walks through it later need not expect it.
_DEEPEST = 20


def npz_header(name: str, path: Path) -> tuple[list[str], bytes | None]:
    """Return the names of the columns, and the settings that napsets keeps in addition to them."""
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        for column in names:
            _refuse_pickle(name, path, archive, column)
        settings = str(archive["about"]).encode() if "about" in names else None
    if "edge_index" in names:
        if set(_ENDS) & set(names):
            raise FileFormatError(
                f"`{name}` must hold either edge_index or source and target; {path} holds both. Keep one of them."
            )
        names += _ENDS
    if "node" not in names and set(_A_ROW_A_NODE) & set(names):
        names.append("node")
    return names, settings


def npz_batches(name: str, path: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Give record batches of the columns, of at most this many rows.

    A matrix is a column of lists. So are ``labels``, where the list of row i is ``labels[offsets[i]:offsets[i + 1]]``.
    """
    cut = name == "sets" and "labels" in columns
    arrays = npz_arrays(name, path, [column for column in columns if not cut or column != "labels"])
    typed = {column: _arrow_column(array) for column, array in arrays.items()}
    if cut:
        typed["labels"] = _label_lists(name, path, len(arrays["node"]))
    batch = arrow().RecordBatch.from_arrays([typed[column] for column in columns], names=list(columns))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _arrow_column(array: npt.NDArray[Any]) -> Any:
    pa = arrow()
    if array.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).reshape(-1)), array.shape[1])
    return pa.array(array)


def _label_lists(name: str, path: Path, count: int) -> Any:
    """Return the labels of each row as a list."""
    pa = arrow()
    with np.load(path, allow_pickle=False) as archive:
        if "offsets" not in archive.files:
            raise FileFormatError(f"`{name}` must have the array offsets, which cuts labels into sets; {path} lacks it")
        labels, offsets = (npz_array(name, path, archive, column) for column in ("labels", "offsets"))
    whole = offsets.dtype.kind in "iu" and offsets.size == count + 1
    if not whole or offsets[0] or offsets[-1] != labels.size or (offsets[1:] < offsets[:-1]).any():
        raise FileFormatError(
            f"`{name}` must have offsets that cut its {labels.size} labels into {count} sets: integers that rise from "
            f"0 to {labels.size}, one more than there are sets. Those of {path} do not."
        )
    names = pa.array(labels.astype(str), pa.large_string())
    return pa.LargeListArray.from_arrays(pa.array(offsets.astype(np.int64)), names)


def npz_arrays(name: str, path: Path, columns: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns as arrays, all of one length."""
    with np.load(path, allow_pickle=False) as archive:
        stored = archive.files
        arrays = {
            column: npz_array(name, path, archive, column, ndim=2 if column in _MATRICES else 1)
            for column in columns
            if column in stored
        }
        if "source" in columns and "edge_index" in stored:
            arrays |= dict(zip(_ENDS, _edge_index(name, path, archive), strict=True))
        if "node" in columns and "node" not in stored:
            whole = next(column for column in _A_ROW_A_NODE if column in stored)
            arrays["node"] = np.arange(len(archive[whole]))
    lengths = {column: len(array) for column, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FileFormatError(f"`{name}` must have arrays of one length; {path} has {lengths}")
    return arrays


def npz_array(name: str, path: Path, archive: Any, column: str, *, ndim: int | None = 1) -> npt.NDArray[Any]:
    """Return an array of numbers or text with this many dimensions (None: any), in this machine's byte order."""
    array: npt.NDArray[Any] = archive[column]
    if ndim is not None and array.ndim != ndim:
        shape = "one row per node and one column per class or feature" if ndim == 2 else "one dimension"
        raise FileFormatError(f"`{name}` must have {shape} in its array {column}; {path} has shape {array.shape}")
    if column in _MATRICES and not array.shape[1]:
        raise FileFormatError(f"`{name}` must have at least one entry in each row of {column}; {path} has none")
    if array.dtype.kind not in "iufbUS" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise FileFormatError(
            f"`{name}` must hold numbers or text in its array {column}; {path} has dtype {array.dtype}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


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


def _edge_index(name: str, path: Path, archive: Any) -> npt.NDArray[Any]:
    """Return an array of shape (2, edges), or say how to bring it into that shape."""
    ends = npz_array(name, path, archive, "edge_index", ndim=None)
    shape = ends.shape
    if len(shape) != 2 or shape[0] != 2:
        transposed = len(shape) == 2 and shape[1] == 2
        way = "Transpose it: edge_index.T." if transposed else "Keep sources and targets alone, one row each."
        if len(shape) < 2:
            way = "Put sources and targets into one row each: np.stack([source, target])."
        raise FileFormatError(f"`{name}` must hold edge_index of shape (2, edges); {path} has shape {shape}. {way}")
    if ends.dtype.kind == "f":
        raise FileFormatError(
            f"`{name}` must hold integers in its array edge_index; {path} has dtype {ends.dtype}. Write "
            f'edge_index.astype("int64") instead.'
        )
    return ends


# -- archives ----------------------------------------------------------------------------------------------------------


def write_archive(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and arrays, whole or not at all."""
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header, default=_plain)), **arrays)


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers, which JSON does not know, into Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written")


@contextmanager
def read_archive(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give the header and the arrays; whatever goes wrong with them is a `FileFormatError` that names the file."""
    with reading(path) as source:
        with np.load(source, allow_pickle=False) as archive:
            arrays = {name: sealed(archive[name]) for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        yield header, arrays


# -- what describes a file ---------------------------------------------------------------------------------------------


def about_fault(about: Any) -> str | None:
    """Return why something cannot be what napsets writes in addition to rows, None where it can."""
    if not isinstance(about, dict):
        return f"holds no JSON object; it is {shown(about)}"
    if is_nested_beyond(about, _DEEPEST):
        return f"is nested deeper than {_DEEPEST} levels"
    names = about.get("class_names")
    listed = isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names)
    if names is not None and not listed:
        return f"has class_names that are not a list of strings: {shown(names)}"
    if names is not None and len(set(names)) < len(names):
        return f"has class_names that repeat a name: {shown(names)}"
    return None


def is_nested_beyond(value: Any, depth: int) -> bool:
    """Whether JSON is nested more than this many levels deep: what walks through it later could exhaust the stack."""
    layer = [value]
    for _ in range(depth):
        nested = [part for part in layer if isinstance(part, dict | list | tuple)]
        layer = [inner for part in nested for inner in (part.values() if isinstance(part, dict) else part)]
    return bool(layer)
