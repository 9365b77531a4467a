"""What is done with a neighbourhood once it was searched: thresholds are selected from it, or its nodes counted.

The records go to the kernels as they are. A kernel is compiled for the ending that it gets, None standing for those
that are not wanted, so none pays for another. What "the mass reaches a level" means is said here too, in three rules:
plain Python, which NumPy code calls and kernels compile. Nothing here loads the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.kernels.layout import BLOCK_WORDS, Layout, read_only

Array = npt.NDArray[Any]
Record = TypeVar("Record", bound=tuple[Any, ...])

#: mass ≥ level·(1 + total)·(1 − rounding): what is reached up to rounding counts as reached.
NOMINAL = 0
#: mass / (1 + total) ≥ level, as float64 divides.
AT_LEAST = 1
#: mass / (1 + total) > level, as float64 divides.
ABOVE = 2


class Pairs(NamedTuple):
    """Which calibration nodes count for each source: a pair is a source and a split."""

    offsets: Array  #: int64 of shape (sources + 1,). The pairs of source i are ``offsets[i]..offsets[i + 1]``.
    splits: Array  #: int64 of shape (pairs,). The split of each pair.
    #: uint64 of shape (splits, mask words). The calibration nodes that each split uses, bit b of word w for number 64·w
    #: + b.
    masks: Array


class Reach(NamedTuple):
    """Which shares of the mass thresholds are to reach, and what calibration nodes weigh wherever they are."""

    levels: Array  #: float64 of shape (levels,). Shares of 1 + total mass to be reached.
    rounding: float  #: The part of the mass that is forgiven where the rule is `NOMINAL`.
    #: int8 of shape (levels,), optional. What reaching each level means: `NOMINAL`, `AT_LEAST` or `ABOVE`; NOMINAL by
    #: default.
    rules: Array | None = None
    #: float64 of shape (rows,), optional. What all calibration nodes weigh together, and those of the node's own group;
    #: 0 by default.
    pools: Array | None = None
    alikes: Array | None = None
    #: integers of shape (nodes of the graph,), optional. The group of each node, negative for none.
    groups: Array | None = None

    def filled(self, rows: int) -> tuple[Array, Array, Array, Array, Array | None]:
        """Return levels, rules, pools and alikes as arrays, for this many rows of weights, and groups that matter."""
        levels = np.ascontiguousarray(self.levels, dtype=np.float64)
        rules = np.zeros(levels.size, dtype=np.int8) if self.rules is None else np.asarray(self.rules, dtype=np.int8)
        pools = np.zeros(rows) if self.pools is None else np.asarray(self.pools, dtype=np.float64)
        grouped = self.alikes is not None and self.groups is not None
        alikes = np.asarray(self.alikes, dtype=np.float64) if grouped else np.zeros(rows)
        return levels, rules, pools, alikes, self.groups if alikes.any() else None


class Selection(NamedTuple):
    """Thresholds are wanted."""

    weights: Array  #: float64 of shape (rows, hops). Weights by hop; each row gives thresholds of its own.
    levels: Array  #: float64 of shape (levels,). Shares of the mass to be reached, 1−α.
    rules: Array  #: int8 of shape (levels,). What reaching means: `NOMINAL`, `AT_LEAST` or `ABOVE`.
    rounding: float  #: The part of the mass that the nominal rule forgives.
    scores: Array  #: float64 of shape (calibration nodes,). Ascending.
    #: float64 of shape (pairs, rows, levels). Written: +∞ where the level is not reached, −∞ where it needs no mass.
    thresholds: Array
    hop_counts: Array  #: int64 of shape (pairs, hops). Written: calibration nodes by hop.


class Pooling(NamedTuple):
    """Calibration nodes count wherever they are, and more where their group is the source's."""

    #: float64 of shape (rows,). What all calibration nodes weigh together, and what those of the source's group weigh
    #: together on top.
    pools: Array
    alikes: Array
    #: int64 of shape (sources,). The number of each source, and its group; −1 where it has none.
    own: Array
    group: Array
    ranks: Array  #: int64 of shape (splits, mask words + 1). Nodes of a split before each word.
    group_masks: Array  #: uint64 of shape (groups, mask words). The calibration nodes of each group.
    #: int32 or int64 of shape (splits, groups, mask words + 1). Nodes of a split and a group before each word.
    group_ranks: Array


class Counting(NamedTuple):
    """Counts by hop are wanted."""

    #: int64 of shape (1, positions) or (pairs, positions). Nodes with a number below them are counted; one row may
    #: serve all pairs.
    positions: Array
    counts: Array  #: int32 or int64 of shape (pairs, hops, positions). Written.


class EndingScratch(NamedTuple):
    """Where an ending works."""

    #: int64 of shape (mask words,). Which word of the whole vector each kept word is; all of them unless some are left
    #: out.
    base: Array
    running: Array  #: int64 of shape (hops, blocks + 1). Bits by hop before each block.
    counts: Array  #: int64 of shape (hops, 2). Bits by hop before a word and after it.


def room_for(hops: int, mask_words: int) -> EndingScratch:
    """Return room for neighbourhoods of this many hops, with no word left out."""
    running = np.empty((hops, mask_words // BLOCK_WORDS + 1), np.int64)
    return EndingScratch(np.arange(mask_words), running, np.empty((hops, 2), np.int64))


def seen_by_kernels(record: Record, *written: str) -> Record:
    """Return a record whose arrays cannot be written to, except for those named."""
    fields: Any = record
    return type(record)(
        *(
            value if name in written or not isinstance(value, np.ndarray) else read_only(value)
            for name, value in zip(fields._fields, record, strict=True)
        )
    )


#: Pairs, and what is wanted of them: a selection, with a pooling or without, or a counting.
Ending = tuple[Pairs, Selection | None, Pooling | None, Counting | None]


@dataclass(frozen=True)
class SearchJob:
    """The sources to be searched around, and what is wanted of each of their pairs."""

    layout: Layout  #: Where to search.
    sources: npt.NDArray[np.int64]  #: Node ids, in the order of handling, each once.
    hops: int  #: Depth of the search.
    #: Without a selection or without a counting, that one is None.
    pairs: Pairs
    selection: Selection | None = None
    pooling: Pooling | None = None
    counting: Counting | None = None

    def __post_init__(self) -> None:
        # Once here, and not again for each piece of work.
        written = {"selection": ("thresholds", "hop_counts"), "counting": ("counts",)}
        for name in ("pairs", "selection", "pooling", "counting"):
            record = getattr(self, name)
            if record is not None:
                object.__setattr__(self, name, seen_by_kernels(record, *written.get(name, ())))

    @property
    def mask_words(self) -> int:
        """Words of a mask."""
        return int(self.pairs.masks.shape[1])

    @property
    def last_share(self) -> float:
        """The share of nodes that calibrate: to others the last hop need not go."""
        return self.layout.size / self.layout.adjacency.num_nodes

    def ending(self, first: int, last: int) -> Ending:
        """Return what is wanted of the pairs of some sources, in the order in which kernels take it."""
        offsets = self.pairs.offsets[first : last + 1]
        part, among = slice(offsets[0], offsets[-1]), slice(first, last)
        pairs = self.pairs._replace(offsets=read_only(offsets - offsets[0]), splits=self.pairs.splits[part])
        selection, pooling, counting = self.selection, self.pooling, self.counting
        if selection is not None:
            thresholds, hop_counts = selection.thresholds[part], selection.hop_counts[part]
            selection = selection._replace(thresholds=thresholds, hop_counts=hop_counts)
        if pooling is not None:
            pooling = pooling._replace(own=pooling.own[among], group=pooling.group[among])
        if counting is not None:
            shared = counting.positions.shape[0] == 1
            positions = counting.positions if shared else counting.positions[part]
            counting = Counting(positions, counting.counts[part])
        return pairs, selection, pooling, counting


def needed_mass(level: float, rule: int, total: float, rounding: float) -> float:
    """Return the smallest mass that reaches a level by a rule: −∞ where none is needed, +∞ where none is enough.

    Masses are compared with what this returns by ≥, whichever the rule. That is the same as dividing each of them:
    division by one number never decreases, so there is a smallest float whose quotient is large enough.
    """
    whole = 1.0 + total
    if not (level < float("inf") and whole < float("inf")):  # NaN among them: halving would never end
        return float("inf")
    if rule == NOMINAL:
        needed = level * whole * (1.0 - rounding)
        return needed if needed > 0.0 else -float("inf")
    above = rule == ABOVE
    if level < 0.0 or (level == 0.0 and not above):
        return -float("inf")
    # Two floats with the wanted one between them, then halving: as a rule a handful of floats lies between.
    high = level * whole * (1.0 + 1e-15) + whole * 1e-323
    while not (high / whole > level if above else high / whole >= level):
        high *= 2.0
    low = level * whole * (1.0 - 1e-15)
    if low / whole > level if above else low / whole >= level:
        low = 0.0
    while True:
        middle = low + (high - low) / 2.0
        if middle <= low or middle >= high:
            return high
        if middle / whole > level if above else middle / whole >= level:
            high = middle
        else:
            low = middle
