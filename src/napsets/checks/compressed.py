"""Graphs that came from elsewhere: compressed sparse rows, checked and brought to the types that searches use.

With them come edge weights: lengths, or strengths, which are 1 / length.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, as_array, check_integers, sealed
from napsets.checks.values import choose, shown
from napsets.errors import InvalidInputError, warn

#: The meanings of edge weights: the length of an edge, or its strength, which gives the length 1 / strength.
WeightsAre = Literal["lengths", "strengths"]
#: The same, or that they are not to be used.
WeightsMean = Literal["lengths", "strengths", "ignored"]

#: The direction in which edges are followed: forwards, backwards, or both.
Direction = Literal["out", "in", "both"]

#: The shortest and the longest edge. Sums of as many as there are edges stay finite, and so does 1 / strength.
SHORTEST, LONGEST = 1e-100, 1e100

_ZERO = {
    "lengths": "an edge of length 0 would make its two ends the same node: merge them, or give the edge a small length",
    "strengths": "a strength of 0 is not an edge: leave it out",
}


def check_direction(direction: object) -> Direction:
    """Return a direction, or raise with the list of directions."""
    chosen: Direction = choose("direction", direction, {name: name for name in get_args(Direction)})
    return chosen


def check_weights_are(value: object) -> WeightsAre | None:
    """Return the stated meaning of weights, or None if none is stated."""
    if value is None:
        return None
    meaning: WeightsAre = choose("weights_are", value, {name: name for name in get_args(WeightsAre)})
    return meaning


def weights_mean(name: str, value: object, weights: AnyArray) -> WeightsAre | None:
    """Return the stated meaning of a graph's weights; warn if none is stated and the weights differ."""
    if value is not None:
        meanings: dict[str, WeightsAre | None] = {name: name for name in get_args(WeightsAre)}
        return choose("weights_are", value, {**meanings, "ignored": None})
    if weights.size and (weights != weights.flat[0]).any():
        warn(
            f"`{name}` has entries that differ between edges, and they are not used. Make the graph with weights_are="
            f"'strengths' or weights_are='lengths' to use them, or with weights_are='ignored' if they do not count"
        )
    return None


def check_lengths(name: str, value: object, size: int, *, weights_are: WeightsAre = "lengths") -> FloatArray:
    """Return the length of each of `size` edges, from lengths or strengths: numbers from 1e-100 to 1e100."""
    array = as_array(name, value)
    if array.shape != (size,):
        raise InvalidInputError(f"`{name}` must have one entry per edge, {size}; got shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"`{name}` must hold numbers; got dtype {array.dtype}")
    numbers = array.astype(np.float64)
    bad = ~((numbers >= SHORTEST) & (numbers <= LONGEST))  # NaN is bad too
    if bad.any():
        i = int(bad.argmax())
        why = f" ({_ZERO[weights_are]})" if numbers[i] == 0 else ""
        raise InvalidInputError(
            f"`{name}` must be positive, from {SHORTEST:g} to {LONGEST:g}; entry {i} is {numbers[i]:g}{why}"
        )
    # Clipped, because 1 / 1e-100 rounds.
    return np.clip(1.0 / numbers, SHORTEST, LONGEST) if weights_are == "strengths" else numbers


def lengths_from(lengths: object, strengths: object, size: int) -> FloatArray | None:
    """Return the lengths of edges that were given as lengths, as strengths, or not at all."""
    if lengths is not None and strengths is not None:
        raise InvalidInputError(f"`strengths` must be left out where `lengths` are given; got {shown(strengths)}")
    if strengths is not None:
        return check_lengths("strengths", strengths, size, weights_are="strengths")
    return None if lengths is None else check_lengths("lengths", lengths, size)


_CHECKED_AT_ONCE = 1 << 20  # edges; bounds what a check needs in addition to the graph


def id_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """Return the type of node ids: int32 while they fit."""
    return np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64


def check_compressed(
    indptr: ArrayLike, indices: ArrayLike, directed: bool, lengths: ArrayLike | None
) -> tuple[IntArray, AnyArray, FloatArray | None]:
    """Return compressed sparse rows from outside in the types that searches use, or raise an error.

    Lengths are a copy, sealed; the rows are copied where their type or layout is another.
    """
    offsets = check_integers("indptr", indptr).astype(np.int64, copy=False)
    columns = check_integers("indices", indices)
    nodes = offsets.size - 1
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != columns.size or (np.diff(offsets) < 0).any():
        raise InvalidInputError(
            f"`indptr` must ascend from 0 to the number of stored edges, {columns.size}; it does not"
        )
    if columns.size:
        low, high = int(columns.min()), int(columns.max())
        if low < 0 or high >= nodes:
            raise InvalidInputError(f"`indices` must hold ids from 0 to {nodes - 1}; got {low if low < 0 else high}")
    # One width for ids and for whatever is indexed by them, whatever width they came in.
    columns = np.ascontiguousarray(columns, dtype=id_dtype(nodes))
    _check_order(offsets, columns)
    if lengths is not None:
        lengths = sealed(check_lengths("lengths", lengths, columns.size))
    if not directed:
        _check_both_ways(offsets, columns, lengths)
    return np.ascontiguousarray(offsets), columns, lengths


def _check_order(indptr: IntArray, indices: AnyArray) -> None:
    """Reject rows that do not ascend, repeat a neighbour or hold their own node: searches rely on it."""
    for start in range(0, indices.size, _CHECKED_AT_ONCE):
        stop = min(start + _CHECKED_AT_ONCE, indices.size)
        rows = np.searchsorted(indptr, [start, stop - 1], side="right") - 1
        bounds = np.clip(indptr[rows[0] : rows[1] + 2], start, stop)
        row = np.repeat(np.arange(rows[0], rows[1] + 1), np.diff(bounds))
        chunk = indices[start:stop]
        bad = chunk == row
        bad[1:] |= (chunk[1:] <= chunk[:-1]) & (row[1:] == row[:-1])
        if start > indptr[rows[0]]:  # the row began in the chunk before
            bad[0] |= indices[start] <= indices[start - 1]
        if bad.any():
            raise InvalidInputError(
                "`indices` must ascend within each row, without repeats and without the row's own node; "
                f"row {row[bad.argmax()]} does not (Graph.from_edge_index sorts, merges and drops)"
            )


def _check_both_ways(indptr: IntArray, indices: AnyArray, lengths: FloatArray | None) -> None:
    """Reject rows of an undirected graph with an edge that has no reverse edge, or whose reverse has another length."""
    from napsets.kernels.csr import reversed_rows

    offsets, back, lengths_back = reversed_rows(indptr, indices, lengths)
    same = np.array_equal(indptr, offsets) and np.array_equal(indices, back)
    if not same:
        # In the first row that differs from its reverse, an edge is in one of the two and not in the other.
        row = int((np.diff(indptr) != np.diff(offsets)).argmax())
        if (indptr == offsets).all():
            row = int(np.searchsorted(indptr, (indices != back).argmax(), side="right")) - 1
        ahead, behind = indices[indptr[row] : indptr[row + 1]], back[offsets[row] : offsets[row + 1]]
        alone = np.setdiff1d(ahead, behind)
        source, target = (row, alone[0]) if alone.size else (np.setdiff1d(behind, ahead)[0], row)
        raise InvalidInputError(
            f"`indices` must hold every edge of an undirected graph in both rows; {source} → {target} has no reverse "
            f"edge. Pass directed=True to follow edges one way, or make the graph with Graph.from_scipy or "
            f"Graph.from_edge_index, which add reverse edges."
        )
    if lengths is not None and (different := lengths != lengths_back).any():
        entry = int(different.argmax())
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        raise InvalidInputError(
            f"`lengths` must be the same both ways in an undirected graph; {row} → {indices[entry]} is not as long as "
            "its reverse edge. Pass directed=True, or make the graph with Graph.from_edge_index, which keeps the "
            "shorter."
        )
