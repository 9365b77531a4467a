"""Node ids as people have them, integers or strings: in columns of files, and as the places 0..n−1 of arrays.

Every id has a 64-bit key (`napsets.randomness.hash_ids`, the same that a node's uniform number is drawn from):
an integer is its own, a string has a hash. Keys are looked up; where they are hashes, the strings are then compared,
so that two strings with one hash are never taken for each other. Strings stay the bytes that Arrow holds: kernels read
them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile
from napsets.randomness import UInt64Array, hash_ids

if TYPE_CHECKING:
    from napsets.kernels.texts import Texts, TextTable


#: An integer below 922·10¹⁶, which 64 bits hold, as Python would write it: what does not look so (``007``, ``+1``)
#: would not come back as it was.
CANONICAL_INTEGER = r"^(0|-?([1-9][0-9]{0,17}|[1-8][0-9]{18}|9[01][0-9]{17}|92[01][0-9]{16}))$"

#: A table from id to place is made where it is at most this many times as long as the ids are many.
_TABLE_SPREAD = 4

#: Ids that a message lists.
_SHOWN = 10


class NodeIds:
    """The ids of nodes 0..n−1: an Arrow array of integers or strings, none of them null.

    Messages have the argument they came from, `name`, and the file.
    """

    def __init__(self, values: Any, name: str = "probabilities", path: object = None) -> None:
        pa = arrow()
        self.values = values
        self.name = name
        self.is_string = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        self.keys: UInt64Array = id_keys(values)
        self._texts: TextTable | None = None
        self._table: IntArray | None = None
        self._order: IntArray | None = None
        self._sorted: UInt64Array | None = None
        self._low = np.uint64(0)
        if self._prepare():
            self._refuse_repeated(name, "there" if path is None else f"in {path}")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def output_type(self) -> Any:
        """The Arrow type that the ids have in a file."""
        return arrow().string() if self.is_string else self.values.type

    def _prepare(self) -> bool:
        """Make what lookups need; return whether an id is there twice."""
        size = len(self)
        if self.is_string:
            from napsets.kernels.texts import TextTable

            self._texts = TextTable(id_texts(self.values), self.keys)
            return self._texts.repeated
        if size:
            low, high = arrow().compute.min_max(self.values).as_py().values()
            if high - low + 1 <= _TABLE_SPREAD * size:
                self._low = np.uint64(low % 2**64)
                self._table = np.full(high - low + 1, -1, dtype=np.int32 if size < 2**31 else np.int64)
                self._table[self.keys - self._low] = np.arange(size, dtype=self._table.dtype)
                return int((self._table >= 0).sum()) < size
        self._order = np.argsort(self.keys, kind="stable")
        self._sorted = self.keys[self._order]
        same = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        return bool(same.size)

    def _refuse_repeated(self, name: str, where: str) -> None:
        pa = arrow()
        counts = pa.compute.value_counts(self.values)
        repeated = counts.filter(pa.compute.greater(counts.field("counts"), 1))
        if len(repeated) == 0:
            raise InvalidInputError(f"`{name}` has two ids with one 64-bit hash; rename one of them")
        shown = listed(repeated.field("values").to_pylist())
        raise FileFormatError(
            f"`{name}` must have each node once; {len(repeated):,} ids are {where} more than once: {shown}. "
            f"Keep one row for each."
        )

    def positions(self, values: Any) -> IntArray:
        """Return the place of each id, −1 where it is unknown."""
        if len(self) == 0 or len(values) == 0:
            return np.full(len(values), -1, dtype=np.int64)
        keys = id_keys(values)
        if self._texts is not None:
            return self._texts.places(id_texts(values), keys)
        if self._table is not None:
            offset = keys - self._low  # modulo 2⁶⁴: what lies below the lowest id is far beyond the table
            inside = offset < self._table.size
            return np.where(inside, self._table[np.where(inside, offset, 0)], -1)
        assert self._order is not None
        assert self._sorted is not None
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self) - 1)
        return np.where(self._sorted[at] == keys, self._order[at], -1)

    def take(self, places: npt.NDArray[Any]) -> Any:
        """Return the ids at some places, as they were."""
        taken = self.values.take(arrow().array(places))
        return taken.cast(arrow().string()) if self.is_string else taken

    def find(self, text: str) -> int:
        """Return the place of one id that was typed, for instance on a command line."""
        pa = arrow()
        if self.is_string:
            typed = pa.array([text], pa.large_string())
        elif looks_integer(pa.array([text])):
            typed = pa.array([int(text)])
        else:
            raise InvalidInputError(f"`node` must be one of the ids, which are integers; got {text!r}")
        place = int(self.positions(typed)[0])
        if place < 0:
            raise InvalidInputError(f"`node` must be one of the {len(self):,} ids; there is no {text!r}")
        return place


def looks_integer(values: Any) -> bool:
    """Whether every text is an integer in its usual form, so that it comes back as it was."""
    pa = arrow()
    matches = pa.compute.match_substring_regex(values, CANONICAL_INTEGER)
    return bool(pa.compute.all(matches, min_count=0).as_py())


def id_keys(values: Any) -> UInt64Array:
    """Return the 64-bit key of each id of an Arrow array."""
    if arrow().types.is_integer(values.type):
        integers = values.to_numpy(zero_copy_only=False)
        return hash_ids(integers if integers.dtype == np.uint64 else integers.astype(np.int64, copy=False))
    from napsets.kernels.texts import hash_texts

    return hash_texts(id_texts(values))


def id_texts(values: Any) -> Texts:
    """Return an Arrow array of strings as the arrays that it is made of, without a copy where offsets have 64 bits."""
    from napsets.kernels.texts import Texts

    values = values.cast(arrow().large_string())
    _, offsets, letters = values.buffers()
    first, count = values.offset, len(values)
    return Texts(
        np.frombuffer(offsets, dtype=np.int64)[first : first + count + 1] if count else np.zeros(1, dtype=np.int64),
        np.frombuffer(letters or b"", dtype=np.uint8),
    )


def listed(values: Sequence[Any]) -> str:
    """Return the first few ids or labels as a message shows them."""
    return ", ".join(repr(value) for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")


class IdLookup:
    """The places of a file's ids among the nodes that are known; other ids are counted, and the first few listed."""

    def __init__(self, table: TableFile, nodes: NodeIds) -> None:
        self.table = table
        self.nodes = nodes
        self.unknown = 0  # rows
        self._first: dict[Any, None] = {}

    def places(self, batch: Any, column: str = "node") -> IntArray:
        """Return the places of a batch's ids, −1 where they are not known."""
        values = id_column(self.table, batch, column, like=self.nodes)
        places = self.nodes.positions(values)
        unknown = places < 0
        if unknown.any():
            self.unknown += int(unknown.sum())
            distinct = values.filter(arrow().array(unknown)).unique().slice(0, _SHOWN + 1)
            self._first.update(dict.fromkeys(distinct.to_pylist() if len(self._first) <= _SHOWN else []))
        return places

    def settle(self, notes: list[str] | None) -> None:
        """Where ids were unknown: refuse them, or note that their rows are left out, as the file is read."""
        if not self.unknown:
            return
        rows, have = ("1 row", "has") if self.unknown == 1 else (f"{self.unknown:,} rows", "have")
        message = (
            f"{rows} of `{self.table.name}` ({self.table.path}) {have} ids that `{self.nodes.name}` lacks: "
            f"{listed(list(self._first))}"
        )
        if not self.table.reading.skip_unknown:
            skip = ", or pass --skip-unknown to leave those rows out" if self.nodes.name == "probabilities" else ""
            raise FileFormatError(f"every id must be in `{self.nodes.name}`; {message}. Add them there{skip}.")
        if notes is not None:
            notes.append(f"left out: {message}")

    def each_once(self, parts: Sequence[IntArray], notes: list[str] | None = None) -> IntArray:
        """Return the places of all batches, settled; refuse a file that names a node twice."""
        self.settle(notes)
        places = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        repeated = np.flatnonzero(np.bincount(places[places >= 0], minlength=1) > 1)
        if repeated.size:
            raise FileFormatError(
                f"`{self.table.name}` must have each node once; {repeated.size:,} are in {self.table.path} more than "
                f"once: {listed(self.nodes.take(repeated[: _SHOWN + 1]).to_pylist())}. Keep one row for each."
            )
        return places


def read_node_rows(
    table: TableFile, nodes: NodeIds, *columns: str, notes: list[str] | None = None
) -> tuple[IntArray, dict[str, list[Any]]]:
    """Read ``node`` as places among `nodes`, none twice, and some more columns, each a list of Arrow arrays.

    Rows of any other node are refused, or have the place −1 where the file is read so; `notes` says that.
    """
    table.require("node", *columns)
    lookup, places = IdLookup(table, nodes), []
    parts: dict[str, list[Any]] = {column: [] for column in columns}
    for batch in table.batches(["node", *columns]):
        places.append(lookup.places(batch))
        for column in columns:
            parts[column].append(batch.column(column))
    return lookup.each_once(places, notes), parts


def id_column(table: TableFile, batch: Any, column: str = "node", *, like: NodeIds | None = None) -> Any:
    """Return a batch's ids as an Arrow array of int64, uint64 or large strings, whatever the file has.

    They must be of the kind of the nodes that they are to be `like`, if any. Text becomes integers only where those are
    integers: in a file without types where it looks so, in a file with types if ``ids="integer"``.
    """
    pa = arrow()
    kind, values = table.reading.ids, batch.column(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if values.null_count or (is_text and pa.compute.any(pa.compute.equal(values, "")).as_py()):
        raise FileFormatError(
            f"`{table.name}` must have an id in each row; the column {column} of {table.path} has empty cells. "
            f"Fill them in or drop those rows."
        )
    if pa.types.is_null(values.type):  # a column without rows and without a type
        values = values.cast(pa.int64())
    if not is_text and not pa.types.is_integer(values.type):
        raise FileFormatError(
            f"`{table.name}` must hold ids that are integers or strings; the column {column} of {table.path} is "
            f"{values.type}. Write that column as integers or as text."
        )
    if kind == "string" or (is_text and (like is None or like.is_string)):
        return values.cast(pa.large_string())
    if like is None or is_text == like.is_string:
        return values
    if is_text and looks_integer(values) and (kind == "integer" or not table.typed):
        return values.cast(pa.int64())
    theirs, ours = "strings", "integers"
    if is_text:
        odd = values.filter(pa.compute.invert(pa.compute.match_substring_regex(values, CANONICAL_INTEGER)))
        theirs, ours = "integers", f"text such as {(odd if len(odd) else values)[0].as_py()!r}"
    raise FileFormatError(
        f"ids must be of one kind in all files: those of `{like.name}` are {theirs}, but the column {column} of "
        f"`{table.name}` ({table.path}) holds {ours}. Write the ids alike in both files, or pass --ids string to read "
        f"all of them as text."
    )


def joined_ids(table: TableFile, parts: list[Any]) -> NodeIds:
    """Return the ids of all batches as nodes; text from a CSV becomes integers where it all looks so."""
    pa = arrow()
    wanted = table.reading.ids
    kinds = sorted({str(part.type) for part in parts})
    if len(kinds) > 1:
        raise FileFormatError(
            f"`{table.name}` must have ids of one type in all its parts; {table.path} has {' and '.join(kinds)}"
        )
    values = pa.concat_arrays(parts)
    if not pa.types.is_integer(values.type) and (wanted == "integer" or (wanted == "auto" and not table.typed)):
        if looks_integer(values):
            values = values.cast(pa.int64())
        elif wanted == "integer":
            raise FileFormatError(
                f"`{table.name}` must have integer ids, because of --ids integer; {table.path} does not. "
                f"Leave --ids out to keep its ids as text."
            )
    return NodeIds(values, table.name, table.path)


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
