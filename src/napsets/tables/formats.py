"""Files of rows as batches of Arrow columns, whatever their format.

A `TableFile` knows its column names and gives batches of the columns asked for. Parquet (a file, or a folder of
parts), CSV (plain or gzip) and npz look alike from here on, but for one thing: CSV has no types, so the columns that
hold ids and names are read from it as text.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from napsets.errors import FileFormatError, InvalidInputError, MissingDependencyError

__all__ = ["BATCH_ROWS", "SIDECAR", "TEXT_COLUMNS", "Format", "TableFile", "arrow", "format_of", "open_table"]

Format = Literal["parquet", "csv", "npz"]

#: Rows that are decoded at a time.
BATCH_ROWS = 1 << 16

#: Columns that hold ids or names: in a file without types they are text, so that ``007`` stays ``007``.
TEXT_COLUMNS = ("node", "source", "target", "label", "labels")

#: The file in a folder of parts that holds what a single file has in its metadata; readers of Parquet pass over it.
SIDECAR = "_napsets.json"

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".npz": "npz",
}


def arrow() -> Any:
    """Import PyArrow with the parts used here, or say which extra brings it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "cli") from error
    return pa


def format_of(name: str, path: str | os.PathLike[str]) -> Format:
    """Return the format that a file's name asks for; `name` is the argument it came from."""
    text = os.fspath(path).lower()
    for suffix, kind in _SUFFIXES.items():
        if text.endswith(suffix):
            return kind
    raise InvalidInputError(f"`{name}` must be a file that ends in {', '.join(_SUFFIXES)}; got {os.fspath(path)}")


@dataclass(frozen=True)
class TableFile:
    """A file of rows.

    Attributes
    ----------
    name : str
        The argument it came from: edges, probabilities, labels, nodes or sets. It opens every message.
    path : Path
        Where it is.
    format : {"parquet", "csv", "npz"}
        What it is.
    columns : tuple of str
        Its columns.
    metadata : dict
        What a Parquet file carries beside its rows.
    """

    name: str
    path: Path
    format: Format
    columns: tuple[str, ...]
    metadata: dict[bytes, bytes]

    @property
    def typed(self) -> bool:
        """Whether the file says which type a column has."""
        return self.format != "csv"

    def require(self, *columns: str) -> None:
        """Refuse a file that lacks a column."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            shown = ", ".join(self.columns[:12]) + (", …" if len(self.columns) > 12 else "")
            raise FileFormatError(
                f"`{self.name}` must have the column{'s' * (len(columns) > 1)} {', '.join(columns)}; {self.path} lacks "
                f"{', '.join(missing)}. It has: {shown}. Rename its columns, or pass another file."
            )

    def batches(self, columns: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[Any]:
        """Give record batches of the columns, in the order of the file."""
        reader = {"parquet": _parquet_batches, "csv": _csv_batches, "npz": _npz_batches}[self.format]
        with damaged(self.name, self.path):
            yield from reader(self, list(columns), rows)

    def num_rows(self) -> int | None:
        """Return the number of rows, where that can be known without reading them."""
        if self.format != "parquet":
            return None
        with damaged(self.name, self.path):
            return sum(int(arrow().parquet.read_metadata(part).num_rows) for part in _parts(self.path))


def open_table(name: str, path: str | os.PathLike[str]) -> TableFile:
    """Open a file far enough to know its columns."""
    source, kind = Path(path), format_of(name, path)
    if not source.exists():
        raise FileFormatError(f"`{name}` must be a file; there is none at {source}. Check the path.")
    if source.is_dir() and kind != "parquet":
        raise FileFormatError(f"`{name}` must be a file; {source} is a folder")
    with damaged(name, source):
        columns, metadata = {"parquet": _parquet_header, "csv": _csv_header, "npz": _npz_header}[kind](source)
    repeated = sorted({column for column in columns if columns.count(column) > 1})
    if repeated:
        raise FileFormatError(f"`{name}` must not repeat a column; {source} has {repeated[0]!r} more than once")
    return TableFile(name, source, kind, tuple(columns), metadata)


@contextmanager
def damaged(name: str, path: Path) -> Iterator[None]:
    """Turn what a truncated or mistyped file makes its reader raise into an error that names the file."""
    pa = arrow()
    kinds = (pa.ArrowException, ValueError, KeyError, EOFError, zipfile.BadZipFile, OSError)
    try:
        yield
    except (FileFormatError, InvalidInputError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise FileFormatError(f"`{name}` must be UTF-8 text; {path} is not: {error}") from error
        raise
    except kinds as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        reason = " ".join(str(error).split())
        raise FileFormatError(
            f"`{name}` must be a whole file of the kind its name says; {path} is truncated or of another kind: {reason}"
        ) from error


# -- Parquet -------------------------------------------------------------------------------------------------------


def _parts(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    parts = sorted(part for part in path.rglob("*.parquet") if not part.name.startswith(("_", ".")))
    if not parts:
        raise FileFormatError(f"{path} must hold Parquet files; there are none in this folder")
    return parts


def _parquet_header(path: Path) -> tuple[list[str], dict[bytes, bytes]]:
    schema = arrow().parquet.read_schema(_parts(path)[0])
    return list(schema.names), dict(schema.metadata or {}) | _sidecar(path)


def _sidecar(path: Path) -> dict[bytes, bytes]:
    """Return what a folder of parts says of them all, where Spark's engine has written it."""
    file = path / SIDECAR
    return {b"napsets": file.read_bytes()} if file.is_file() else {}


def _parquet_batches(table: TableFile, columns: list[str], rows: int) -> Iterator[Any]:
    for part in _parts(table.path):
        # Without prefetching and with a small buffer, what is in memory is a batch, not a row group.
        with arrow().parquet.ParquetFile(part, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)


# -- CSV -----------------------------------------------------------------------------------------------------------


def _csv_header(path: Path) -> tuple[list[str], dict[bytes, bytes]]:
    with arrow().csv.open_csv(path) as reader:
        return list(reader.schema.names), {}


def _csv_batches(table: TableFile, columns: list[str], rows: int) -> Iterator[Any]:
    pa = arrow()
    types = {column: pa.string() if column in TEXT_COLUMNS else pa.float64() for column in columns}
    options = pa.csv.ConvertOptions(
        include_columns=columns, column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    with pa.csv.open_csv(table.path, convert_options=options) as reader:
        for batch in reader:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)


# -- npz -----------------------------------------------------------------------------------------------------------


def _npz_header(path: Path) -> tuple[list[str], dict[bytes, bytes]]:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        metadata = {b"napsets": str(archive["about"]).encode()} if "about" in names else {}
    if "edge_index" in names:
        names += ["source", "target"]
    if "node" not in names and {"probabilities", "label"} & set(names):
        names.append("node")
    return names, metadata


def _npz_batches(table: TableFile, columns: list[str], rows: int) -> Iterator[Any]:
    with np.load(table.path, allow_pickle=False) as archive:
        arrays = {column: _npz_column(archive, column) for column in columns}
    lengths = {column: len(array) for column, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FileFormatError(f"`{table.name}` must have arrays of one length; {table.path} has {lengths}")
    pa = arrow()
    for start in range(0, max(lengths.values(), default=0), rows):
        parts = [_arrow_column(arrays[column][start : start + rows]) for column in columns]
        yield pa.RecordBatch.from_arrays(parts, names=columns)


def _npz_column(archive: Any, column: str) -> Any:
    if column in ("source", "target") and column not in archive.files:
        return np.asarray(archive["edge_index"])[("source", "target").index(column)]
    if column == "node" and column not in archive.files:
        # Without ids of their own, rows are the nodes 0, 1, 2, …
        return np.arange(len(archive["probabilities" if "probabilities" in archive.files else "label"]))
    return archive[column]


def _arrow_column(array: Any) -> Any:
    pa = arrow()
    if array.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).reshape(-1)), array.shape[1])
    return pa.array(array)
