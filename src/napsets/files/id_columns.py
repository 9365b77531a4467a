"""Columns of ids in files: read as one kind everywhere, and matched with the nodes that are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, IntArray
from napsets.checks.optional import arrow
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile
from napsets.files.ids import CANONICAL_INTEGER, NodeIds, listed, looks_integer


class UnknownIds:
    """Ids of one file that another lacks: counted over the whole file, the first few kept to be listed."""

    #: Distinct ids that are kept: one more than a message lists.
    _KEPT = 11

    def __init__(self, table: TableFile, known: str = "probabilities") -> None:
        self.table = table
        self.known = known
        self.rows = 0
        self._first: dict[Any, None] = {}

    def add(self, values: Any, unknown: BoolArray) -> None:
        """Note the ids that are unknown."""
        self.rows += int(unknown.sum())
        if len(self._first) < self._KEPT and unknown.any():
            distinct = values.filter(arrow().array(unknown)).unique()
            self._first.update(dict.fromkeys(distinct.slice(0, self._KEPT).to_pylist()))

    def message(self) -> str:
        """Say how many there are, and which."""
        return (
            f"{self.rows:,} rows of `{self.table.name}` ({self.table.path}) name ids that `{self.known}` lacks: "
            f"{listed(list(self._first))}"
        )

    def settle(self, notes: list[str] | None) -> None:
        """Where there was any: refuse them, or note that their rows are left out, as the file is read."""
        skip = self.table.reading.skip_unknown
        if self.rows and not skip:
            skipped = ", or pass --skip-unknown to leave those rows out" if self.known == "probabilities" else ""
            raise FileFormatError(f"every id must be in `{self.known}`; {self.message()}. Add them there{skipped}.")
        if self.rows and notes is not None:
            notes.append(f"left out: {self.message()}")


class NodeRows:
    """The rows of a file with a column ``node``, matched with the nodes that are known.

    Parameters
    ----------
    table : TableFile
        The file.
    nodes : NodeIds
        The nodes. Rows of any other are refused, or left out where the file is read so.
    """

    def __init__(self, table: TableFile, nodes: NodeIds) -> None:
        self.table = table
        self.nodes = nodes
        self._unknown = UnknownIds(table, nodes.name)
        self._places: list[IntArray] = [np.empty(0, dtype=np.int64)]

    def batches(self, *columns: str) -> Iterator[Any]:
        """Give record batches of ``node`` and some more columns."""
        for batch in self.table.batches(["node", *columns]):
            self._places.append(known_places(self.table, batch, "node", self.nodes, self._unknown))
            yield batch

    def places(self, notes: list[str] | None = None) -> IntArray:
        """Return the place of each row's node, −1 where it is left out, once all rows were read; none is there twice.

        `notes` says what was left out.
        """
        self._unknown.settle(notes)
        places = np.concatenate(self._places)
        repeated = np.flatnonzero(np.bincount(places[places >= 0], minlength=1) > 1)
        if repeated.size:
            raise FileFormatError(
                f"`{self.table.name}` must have each node once; {repeated.size:,} are in {self.table.path} more than "
                f"once: {listed(self.nodes.take(repeated[:11]).to_pylist())}. Keep one row for each."
            )
        return places


def id_column(table: TableFile, batch: Any, column: str, *, like: NodeIds | None = None) -> Any:
    """Return a batch's ids as an Arrow array of int64, uint64 or large strings, whatever the file has.

    Text becomes integers only where it is to be `like` nodes whose ids are integers: in a file without types where it
    looks so, in a file with types if ``ids="integer"``.
    """
    pa = arrow()
    values = batch.column(column)
    if values.null_count:
        raise _missing_id(table, column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):  # a column without rows and without a type
        values = values.cast(pa.int64())
    if pa.types.is_integer(values.type):
        return values.cast(pa.large_string()) if table.reading.ids == "string" else values
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise FileFormatError(
            f"`{table.name}` must hold ids that are integers or strings; the column {column} of {table.path} is "
            f"{values.type}. Write that column as integers or as text."
        )
    if pa.compute.any(pa.compute.equal(values, "")).as_py():
        raise _missing_id(table, column)
    if like is None or like.is_string or table.reading.ids == "string":
        return values.cast(pa.large_string())
    if not looks_integer(values) or (table.typed and table.reading.ids != "integer"):
        raise FileFormatError(
            f"ids must be of one kind in all files: those of `{like.name}` are integers, but the column {column} of "
            f"`{table.name}` ({table.path}) holds text such as {_first_odd(values)!r}. Write the ids alike in both "
            f"files, or pass --ids string to read all of them as text."
        )
    return values.cast(pa.int64())


def _missing_id(table: TableFile, column: str) -> FileFormatError:
    return FileFormatError(
        f"`{table.name}` must have an id in each row; the column {column} of {table.path} has empty cells. "
        f"Fill them in or drop those rows."
    )


def _first_odd(values: Any) -> str:
    """Return the first text that is not an integer."""
    pa = arrow()
    odd = values.filter(pa.compute.invert(pa.compute.match_substring_regex(values, CANONICAL_INTEGER)))
    return str((odd if len(odd) else values)[0].as_py())


def known_places(
    table: TableFile, batch: Any, column: str, nodes: NodeIds, strangers: UnknownIds
) -> npt.NDArray[np.int64]:
    """Return the places of a batch's ids among `nodes`, −1 where they are not there, which `strangers` notes."""
    values = id_column(table, batch, column, like=nodes)
    if nodes.is_string and arrow().types.is_integer(values.type):
        raise FileFormatError(
            f"ids must be of one kind in all files: those of `{nodes.name}` are strings, but the column {column} of "
            f"`{table.name}` ({table.path}) holds integers. Write the ids the same way in both files, or pass --ids "
            f"string to read all of them as text."
        )
    places = nodes.positions(values)
    unknown = places < 0
    if unknown.any():
        strangers.add(values, unknown)
    return places


def joined_ids(table: TableFile, parts: list[Any]) -> Any:
    """Return the ids of all batches as one Arrow array; text from a CSV becomes integers where it all looks so."""
    pa = arrow()
    ids = table.reading.ids
    kinds = sorted({str(part.type) for part in parts})
    if len(kinds) > 1:
        raise FileFormatError(
            f"`{table.name}` must have ids of one type in all its parts; {table.path} has {' and '.join(kinds)}"
        )
    column = pa.chunked_array(parts).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if not pa.types.is_integer(column.type):
        guessed = ids == "auto" and not table.typed and looks_integer(column)
        if ids == "integer" and not looks_integer(column):
            raise FileFormatError(
                f"`{table.name}` must have integer ids, because of --ids integer; {table.path} does not. "
                f"Leave --ids out to keep its ids as text."
            )
        if guessed or ids == "integer":
            return column.cast(pa.int64())
    return column


def all_ids(tables: Sequence[tuple[TableFile, tuple[str, ...]]]) -> NodeIds:
    """Return the nodes that some file names, each once; with every file come the columns that hold ids."""
    pa = arrow()
    seen: dict[str, Any] = {}
    for table, columns in tables:
        table.require(*columns)
        parts = [id_column(table, batch, column) for batch in table.batches(columns) for column in columns]
        if parts:
            seen[table.name] = (table, pa.chunked_array(one_width(table.name, parts)).unique())
    if not seen:
        raise FileFormatError("`edges` and `labels` must name at least one node; they are empty")
    texts = {name: column for name, (table, column) in seen.items() if not pa.types.is_integer(column.type)}
    integers = [name for name in seen if name not in texts]
    guessed = all(not seen[name][0].typed and looks_integer(column) for name, column in texts.items())
    if integers and texts and not guessed:
        raise FileFormatError(
            f"ids must be of one kind in all files: those of `{integers[0]}` are integers, those of "
            f"`{next(iter(texts))}` are text. Write them the same way, or pass --ids string to read all of them as "
            f"text."
        )
    numbers = guessed and tables[0][0].reading.ids != "string"
    distinct = [column.cast(pa.int64()) if numbers and name in texts else column for name, (_, column) in seen.items()]
    return NodeIds(pa.concat_arrays(one_width("edges", distinct)).unique(), "edges")


def one_width(name: str, columns: list[Any]) -> list[Any]:
    """Bring ids that came as integers of several widths to one; `name` is the argument they came from."""
    pa = arrow()
    kinds = {column.type for column in columns}
    if len(kinds) == 1:
        return columns
    if not all(pa.types.is_integer(kind) for kind in kinds):
        raise FileFormatError(
            f"ids must be of one kind in all files and columns; those of `{name}` are "
            f"{' and '.join(sorted(str(kind) for kind in kinds))}. Write them the same way, or pass --ids string to "
            f"read all of them as text."
        )
    ends = [pa.compute.min_max(column).as_py() for column in columns if len(column)]
    large = any(end["max"] >= 2**63 for end in ends)
    if large and any(end["min"] < 0 for end in ends):
        raise FileFormatError(f"ids must fit into 64 bits together; `{name}` has negative ones and others above 2^63")
    return [column.cast(pa.uint64() if large else pa.int64()) for column in columns]
