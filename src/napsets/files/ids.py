"""Node ids as people have them, integers or strings: in columns of files, and as the places 0..n−1 of arrays.

PyArrow looks ids up. Every id has a 64-bit key (`napsets.randomness.hash_ids`), from which a node's uniform number is
drawn: an integer is its own, a string has a hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile
from napsets.randomness import MOST_ID_BYTES, UInt64Array, hash_ids, hash_texts

if TYPE_CHECKING:
    import pyarrow as pa

    Ids: TypeAlias = pa.Array | pa.ChunkedArray

Scalar = TypeVar("Scalar", bound=np.generic)

#: An integer below 922·10¹⁶, which 64 bits hold, as Python would write it: what does not look so (``007``, ``+1``)
#: would not come back as it was.
CANONICAL_INTEGER = r"^(0|-?([1-9][0-9]{0,17}|[1-8][0-9]{18}|9[01][0-9]{17}|92[01][0-9]{16}))$"

#: Ids that a message lists.
_SHOWN = 10


class NodeIds:
    """The ids of nodes 0..n−1: an Arrow array of integers or strings, none of them null.

    Messages have the argument they came from, `name`, and the file.
    """

    def __init__(self, values: pa.Array, name: str = "probabilities", path: object = None) -> None:
        pa = arrow()
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        self.values = values
        self.name = name
        self.is_string = not pa.types.is_integer(values.type)
        where = "there" if path is None else f"in {path}"
        if self.is_string and len(values):
            sizes = pa.compute.binary_length(values).to_numpy(zero_copy_only=False)
            if sizes.max() > MOST_ID_BYTES:
                row = int(sizes.argmax())
                raise FileFormatError(
                    f"`{name}` must have ids of at most {MOST_ID_BYTES:,} bytes; one {where} has {sizes[row]:,}: "
                    f"{values[row].as_py()[:20]!r}…"
                )
        self.keys: UInt64Array = id_keys(values)
        ordered = np.sort(self.keys)
        if (ordered[1:] == ordered[:-1]).any():
            counts = pa.compute.value_counts(values)
            repeated = counts.filter(pa.compute.greater(counts.field("counts"), 1))
            raise FileFormatError(
                f"`{name}` must have each node once; {len(repeated):,} ids are {where} more than once: "
                f"{listed(repeated.field('values').to_pylist())}. Keep one row for each."
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def output_type(self) -> pa.DataType:
        """The Arrow type that the ids have in a file."""
        return arrow().string() if self.is_string else self.values.type

    def positions(self, values: Ids) -> npt.NDArray[np.int32]:
        """Return the place of each id, −1 where it is unknown.

        Ids are equal that are written alike: the text "7" is the integer 7, and "007" is another id.
        """
        values, known = _of_one_type(values, self.values)
        places = arrow().compute.index_in(values, value_set=known, skip_nulls=True)
        return np.asarray(places.fill_null(-1).to_numpy(), dtype=np.int32)

    def take(self, places: npt.NDArray[np.integer]) -> pa.Array:
        """Return the ids at some places, as they were."""
        return self.values.take(arrow().array(places)).cast(self.output_type)

    def find(self, text: str) -> int:
        """Return the place of one id that was typed, for instance on a command line."""
        place = int(self.positions(arrow().array([text]))[0])
        if place < 0:
            raise InvalidInputError(f"`node` must be one of the {len(self):,} ids; there is no {text!r}")
        return place


def _of_one_type(*columns: Ids) -> tuple[Ids, ...]:
    """Return columns of ids with one type: integers where all are, as numbers or as text, and otherwise text."""
    pa = arrow()
    if len({column.type for column in columns}) == 1:
        return columns
    kind = pa.large_string()
    if all(pa.types.is_integer(column.type) or looks_integer(column) for column in columns):
        kind = pa.int64()
    try:
        return tuple(column.cast(kind) for column in columns)
    except pa.ArrowInvalid:  # integers above 2^63
        return tuple(column.cast(pa.large_string()) for column in columns)


def one_column(*columns: Ids) -> pa.ChunkedArray:
    """Return all ids in one column, of one type."""
    alike = _of_one_type(*columns)
    chunks = [chunk for column in alike for chunk in getattr(column, "chunks", [column])]
    return arrow().chunked_array(chunks, alike[0].type)


def looks_integer(values: Ids) -> bool:
    """Whether every text is an integer in its usual form, so that it comes back as it was."""
    pa = arrow()
    matches = pa.compute.match_substring_regex(values, CANONICAL_INTEGER)
    return bool(pa.compute.all(matches, min_count=0).as_py())


def id_keys(values: pa.Array) -> UInt64Array:
    """Return the 64-bit key of each id of an Arrow array."""
    pa = arrow()
    if pa.types.is_integer(values.type):
        return hash_ids(values.to_numpy(zero_copy_only=False))
    values = values.cast(pa.large_string())
    _, offsets, letters = values.buffers()
    first, count = values.offset, len(values)
    if not count:
        return np.empty(0, dtype=np.uint64)
    return hash_texts(
        np.frombuffer(offsets, dtype=np.int64)[first : first + count + 1],
        np.frombuffer(letters or b"", dtype=np.uint8),
    )


def listed(values: Sequence[object]) -> str:
    """Return the first few ids or labels as a message shows them."""
    return ", ".join(repr(value) for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The rows of a file about nodes: where each row's node is, −1 where it is unknown and left out, and columns."""

    table: TableFile
    nodes: int  # how many there are
    places: npt.NDArray[np.int32]
    ids: pa.ChunkedArray
    columns: dict[str, pa.ChunkedArray]

    def spread(self, values: npt.NDArray[Scalar], missing: object) -> npt.NDArray[Scalar]:
        """Return the values of the rows at the places of their nodes, and `missing` at all others."""
        everyone = np.full(self.nodes, missing, dtype=values.dtype)
        everyone[self.places[self.places >= 0]] = values[self.places >= 0]
        return everyone

    def at(self, row: int) -> str:
        """Name a row for a message, with its node."""
        return self.table.at(row, self.ids[row].as_py(), path=False)


def read_node_rows(
    table: TableFile, nodes: NodeIds, *columns: str, notes: list[str] | None = None, text: Sequence[str] = ("node",)
) -> NodeRows:
    """Read ``node`` as places among `nodes`, none twice, and some more columns, those in `text` as text in CSV.

    Rows of any other node are refused, or have the place −1 where the file is read so; `notes` says that.
    """
    table.require("node", *columns)
    rows = table.read(["node", *columns], text)
    ids = id_column(table, rows)
    places = place_rows(table, nodes, ids, notes)
    return NodeRows(table, len(nodes), places, ids, {column: rows.column(column) for column in columns})


def place_rows(
    table: TableFile, nodes: NodeIds, ids: pa.ChunkedArray, notes: list[str] | None = None
) -> npt.NDArray[np.int32]:
    """Return the place of each row's node, as `places_of` does; refuse a file that names a node twice."""
    places = places_of(table, nodes, ids, notes)
    repeated = np.flatnonzero(np.bincount(places[places >= 0], minlength=1) > 1)
    if repeated.size:
        second = int(np.flatnonzero(places == repeated[0])[1])
        names = listed(nodes.take(repeated[: _SHOWN + 1]).to_pylist())
        raise table.fault(
            "have each node once",
            f"repeats {repeated.size:,}: {names}, the first in {table.at(second, path=False)}",
            "Keep one row for each.",
        )
    return places


def places_of(
    table: TableFile, nodes: NodeIds, ids: pa.ChunkedArray, notes: list[str] | None = None
) -> npt.NDArray[np.int32]:
    """Return the places of a file's ids among the nodes; unknown ids are refused or, if skipped, noted."""
    places = nodes.positions(ids)
    missing = places < 0
    if not missing.any():
        return places
    unknown, first = int(missing.sum()), int(missing.argmax())
    shown = ids.filter(arrow().array(missing)).unique().slice(0, _SHOWN + 1).to_pylist()
    rows, have = ("1 row", "has") if unknown == 1 else (f"{unknown:,} rows", "have")
    message = f"{rows} of `{table.name}` ({table.path}) {have} ids that `{nodes.name}` lacks: {listed(shown)}"
    if not table.reading.skip_unknown:
        skip = ", or pass --skip-unknown to leave those rows out" if nodes.name == "probabilities" else ""
        spaced = next((name for name in shown if isinstance(name, str) and name != name.strip()), "")
        if spaced and nodes.positions(arrow().array([spaced.strip()]))[0] >= 0:
            skip += f". Or remove the spaces around the ids: {spaced!r} should be {spaced.strip()!r}"
        raise FileFormatError(
            f"every id must be in `{nodes.name}`; {message}; the first is in {table.at(first, path=False)}. Add them "
            f"there{skip}."
        )
    if notes is not None:
        notes.append(f"left out: {message}")
    return places


def id_column(table: TableFile, rows: pa.Table, column: str = "node") -> pa.ChunkedArray:
    """Return a column of ids as integers or large strings, or raise where it holds anything else."""
    pa = arrow()
    values = rows.column(column)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_null(values.type):  # a column without rows and without a type
        values = values.cast(pa.int64())
    is_text = bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))
    empty = pa.compute.is_null(values)
    if is_text:
        empty = pa.compute.or_kleene(empty, pa.compute.equal(values, ""))
    if pa.compute.any(empty).as_py():
        raise FileFormatError(
            f"`{table.name}` must have an id in each row; the column {column} has an empty cell in "
            f"{table.at(pa.compute.index(empty, True).as_py())}. Fill it in or drop that row."
        )
    if not is_text and not pa.types.is_integer(values.type):
        raise table.fault(
            "hold ids that are integers or strings", f"has {values.type} in the column {column}",
            "Write that column as integers or as text.",
        )  # fmt: skip
    return values.cast(pa.large_string()) if is_text else values


def own_ids(table: TableFile, values: pa.ChunkedArray) -> NodeIds:
    """Return a file's ids as nodes; text from a CSV becomes integers where it all looks so."""
    whole = not table.typed and looks_integer(values)
    return NodeIds(values.cast(arrow().int64()) if whole else values, table.name, table.path)
