"""Node ids as people have them, integers or strings, and the places 0..n−1 that arrays use.

Every id has a 64-bit key (`napsets.randomness.hash_ids`, the same that a node's uniform number is drawn from):
an integer is its own, a string has a hash. Keys are looked up; where they are hashes, the strings are then compared,
so that two strings with one hash are never taken for each other. Strings stay the bytes that Arrow holds: kernels read
them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.checks.optional import arrow
from napsets.errors import FileFormatError, InvalidInputError
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
    """The ids of nodes 0..n−1.

    Parameters
    ----------
    values : pyarrow.Array
        The ids: integers or strings, none of them null.
    name : str
        The argument they came from, for messages.
    path : path, optional
        The file, for messages.
    """

    def __init__(self, values: Any, name: str = "probabilities", path: object = None) -> None:
        pa = arrow()
        self.values = values
        self.name = name
        self.is_string = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        self.keys: UInt64Array = _keys(values)
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
    def kind(self) -> Literal["integer", "string"]:
        """What the ids are."""
        return "string" if self.is_string else "integer"

    @property
    def output_type(self) -> Any:
        """The Arrow type that the ids have in a file."""
        return arrow().string() if self.is_string else self.values.type

    def _prepare(self) -> bool:
        """Make what lookups need; return whether an id is there twice."""
        size = len(self)
        if self.is_string:
            from napsets.kernels.texts import TextTable

            self._texts = TextTable(_texts(self.values), self.keys)
            return self._texts.repeated
        if size:
            low, high = (int(end) for end in _ends(self.values))
            if high - low + 1 <= _TABLE_SPREAD * size:
                self._low = np.uint64(low % 2**64)
                self._table = np.full(high - low + 1, -1, dtype=np.int32 if size < 2**31 else np.int64)
                self._table[self._offsets(self.keys)] = np.arange(size, dtype=self._table.dtype)
                return int((self._table >= 0).sum()) < size
        self._order = np.argsort(self.keys, kind="stable")
        self._sorted = self.keys[self._order]
        same = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        return bool(same.size)

    def _offsets(self, keys: UInt64Array) -> UInt64Array:
        """Return the distance of each key from the lowest id, modulo 2⁶⁴: below it means far beyond the table."""
        return keys - self._low

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
        keys = _keys(values)
        if self._texts is not None:
            return self._texts.places(_texts(values), keys)
        if self._table is not None:
            offset = self._offsets(keys)
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


def _ends(values: Any) -> tuple[int, int]:
    ends = arrow().compute.min_max(values).as_py()
    return ends["min"], ends["max"]


def _integers(values: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array if array.dtype == np.uint64 else array.astype(np.int64, copy=False)


def _keys(values: Any) -> UInt64Array:
    if arrow().types.is_integer(values.type):
        return hash_ids(_integers(values))
    from napsets.kernels.texts import hash_texts

    return hash_texts(_texts(values))


def _texts(values: Any) -> Texts:
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
    """Return the first few ids as a message shows them."""
    return ", ".join(repr(value) for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
