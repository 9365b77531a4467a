"""npz: arrays with a header, without pickle; and as batches of Arrow columns, a matrix as a column of lists."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import MAGIC_PREFIX, read_array_header_1_0, read_array_header_2_0

from napsets.checks.arguments import sealed
from napsets.checks.values import LARGEST_HOPS, shown
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.places import reading, replacing
from napsets.localisers.decay import check_decay
from napsets.localisers.path_lengths import LENGTH_DECAYS

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


def is_nested_beyond(value: Any, depth: int) -> bool:
    """Whether JSON is nested more than this many levels deep: what walks through it later could exhaust the stack."""
    layer = [value]
    for _ in range(depth):
        nested = [part for part in layer if isinstance(part, dict | list | tuple)]
        layer = [inner for part in nested for inner in (part.values() if isinstance(part, dict) else part)]
    return bool(layer)


_COUNT = 2**63 - 1


def check_recorded(name: str, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Refuse settings of a kind or size that napsets does not write; those that it does not know are passed over."""
    for key, (fine, wanted) in _RULES.items():
        if key in settings and not fine(settings[key]):
            what = f"have the {key} {shown(settings[key])}, which must be {wanted}"
            raise FileFormatError(f"{_opening(name, path)} {what}. Write the file again.")
    by_length = isinstance(settings.get("decay"), str) and settings["decay"] in LENGTH_DECAYS
    if "decay" in settings and "hops" in settings and not by_length:
        try:
            check_decay(settings["decay"], settings["hops"])
        except InvalidInputError as error:
            raise FileFormatError(f"{_opening(name, path)} do not fit each other: {error}") from error


def _opening(name: str, path: str | os.PathLike[str]) -> str:
    return f"`{name}` must record settings that napsets can have; those of {os.fspath(path)}"


def _integer(largest: int) -> tuple[Callable[[Any], bool], str]:
    def fine(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest

    return fine, f"an integer from 0 to {largest}"


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_YES_OR_NO: tuple[Callable[[Any], bool], str] = (lambda value: isinstance(value, bool), "true or false")

_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "alpha": (lambda value: _number(value) and 0 < value < 1, "a number strictly between 0 and 1"),
    "hops": _integer(LARGEST_HOPS),
    "decay": (
        lambda value: isinstance(value, str) or (isinstance(value, list) and all(map(_number, value))),
        "a name or a list of numbers",
    ),
    "score": (lambda value: isinstance(value, str), "a name"),
    "task": _one_of("classification", "regression"),
    "features": (lambda value: isinstance(value, str), "the name of a file"),
    "by": (lambda value: isinstance(value, str), "the name of a grouping or of a file"),
    "method": (lambda value: isinstance(value, str), "a name"),
    "pool": (lambda value: _number(value) and 0 <= value < math.inf, "a number from 0"),
    "alike": (lambda value: _number(value) and 0 <= value < math.inf, "a number from 0"),
    "radius": (lambda value: _number(value) and 0 < value < math.inf, "a positive number"),
    "direction": _one_of("out", "in", "both"),
    "weights_are": _one_of("lengths", "strengths"),
    "seed": _integer(2**64 - 1),
    "fallback": _one_of("full", "global"),
    "level": _one_of("nominal", "exact"),
    "p_values": _one_of("plain", "smoothed"),
    "ids": _one_of("auto", "integer", "string"),
    "labels_are": _one_of("auto", "names", "indices"),
    "allow_empty": _YES_OR_NO,
    "directed": _YES_OR_NO,
    "skip_unknown": _YES_OR_NO,
    "logits": _YES_OR_NO,
    "num_nodes": _integer(_COUNT),
    "calibration": _integer(_COUNT),
    "level_labels": _integer(_COUNT),
    "method_description": (lambda value: isinstance(value, dict), "a description of a method"),
}
