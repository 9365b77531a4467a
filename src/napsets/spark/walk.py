"""Breadth-first walks from many targets at once, as joins with tables of neighbours.

A level holds, for each target, the nodes at one distance from it. The next level is a join of this one with the
adjacency, without what occurs twice (grouped by target and node) and without what was seen (an anti-join).

A row of the adjacency holds one part of a node's neighbours. A node of degree d can stand in the neighbourhoods of d
targets, and expanding it there makes d·d pairs; its neighbours are therefore split into about d²/`PAIRS_PER_PART`
parts, which different tasks expand. No hub's neighbours times its targets ever meet on one task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

#: Pairs (target, neighbour) that one part of one node's neighbours may give: seconds of a task's time.
PAIRS_PER_PART = 1 << 24

#: A part is not made smaller than this many neighbours: each costs the walk one row per target.
_SMALLEST_PART = 64

#: Targets whose cost is measured to estimate that of all.
_SAMPLE = 400

#: Takes a table and its name; returns the table, perhaps as read from where it was written.
Keep = Callable[[DataFrame, str], DataFrame]


@dataclass(frozen=True)
class EdgeTables:
    """The graph, with what a walk needs on arrival."""

    degrees: DataFrame  # node, degree
    through: DataFrame  # for the hops before the last: node, part, entries of (neighbour, degree, score)
    last: DataFrame  # for the last hop, where only calibration nodes matter: entries of (neighbour, score)


def place_of(*columns: Column) -> Column:
    """Return a number in [0, 1) that belongs to a node: which part it is in, and whether a cap leaves it out."""
    return sf.shiftrightunsigned(sf.xxhash64(*columns), 11) * sf.lit(2.0**-53)


def parts_of(degree: Column) -> Column:
    """Return into how many parts the neighbours of a node of some degree are split."""
    wide = degree.cast("double")
    wanted = sf.least(wide * wide / float(PAIRS_PER_PART), wide / float(_SMALLEST_PART))
    return sf.greatest(sf.lit(1), sf.ceil(wanted).cast("int"))


def adjacency(edges: DataFrame, scores: DataFrame, *, hops: int, directed: bool, keep: Keep) -> EdgeTables:
    """Make the tables: duplicate edges merged, self-loops dropped, each neighbour with its degree and its score.

    `keep` may write each table down as it is made, so that the next reads it instead of making it again.
    """
    links = keep(_links(edges, directed), "links")
    degrees = keep(links.groupBy("node").agg(sf.count(sf.lit(1)).alias("degree")), "degrees")
    # Both of a neighbour's attributes come in one join: the links are shuffled by neighbour once.
    about = degrees.join(scores, "node", "full_outer").withColumnRenamed("node", "neighbour")
    arrived = links.join(about, "neighbour", "left")
    own = degrees.select("node", parts_of(sf.col("degree")).alias("parts"))
    part = sf.floor(place_of(sf.col("neighbour")) * sf.col("parts")).cast("int")
    placed = arrived.join(own, "node").select(
        "node",
        part.alias("part"),
        "neighbour",
        sf.coalesce("degree", sf.lit(0).cast("bigint")).alias("degree"),
        "score",
    )
    # Where the last hop is the first, other neighbours need not be gathered.
    through = keep(_packed(placed), "through") if hops > 1 else _packed(placed.where(sf.col("score").isNotNull()))
    return EdgeTables(degrees, through, keep(_calibrated(through), "last"))


def _links(edges: DataFrame, directed: bool) -> DataFrame:
    links = edges.select(sf.col("source").alias("node"), sf.col("target").alias("neighbour"))
    if not directed:
        links = links.union(links.select(sf.col("neighbour").alias("node"), sf.col("node").alias("neighbour")))
    return links.where(sf.col("node") != sf.col("neighbour")).distinct()


def _packed(placed: DataFrame) -> DataFrame:
    entry = sf.struct("neighbour", "degree", "score")
    return placed.groupBy("node", "part").agg(sf.collect_list(entry).alias("entries"))


def _calibrated(packed: DataFrame) -> DataFrame:
    """Return rows with their calibration nodes alone, without a shuffle."""
    known = sf.filter("entries", lambda entry: entry["score"].isNotNull())
    short = sf.transform(
        known, lambda entry: sf.struct(entry["neighbour"].alias("neighbour"), entry["score"].alias("score"))
    )
    return packed.select("node", "part", short.alias("entries")).where(sf.size("entries") > 0)


@dataclass(frozen=True)
class WalkedPairs:
    """The calibration nodes that a walk has reached."""

    pairs: DataFrame  # target, hop, score: one row for each calibration node near a target
    caps: DataFrame | None  # target, capped_at: the hop at which a target's neighbourhood was cut, where it was


@dataclass
class Walker:
    """Walks `hops` deep; `cap` bounds how many edges a target may follow in one hop."""

    adjacency: EdgeTables
    hops: int
    directed: bool
    cap: int | None = None
    _caps: list[DataFrame] = field(default_factory=list, init=False)

    def walk(self, targets: DataFrame) -> WalkedPairs:
        """Walk from each of the targets (``node``) to the calibration nodes around it."""
        self._caps = []
        levels = self._levels(targets, self.hops)
        pairs = [
            level.where(sf.col("score").isNotNull()).select("target", sf.lit(k).cast("tinyint").alias("hop"), "score")
            for k, level in enumerate(levels[1:], start=1)
        ]
        caps = reduce(DataFrame.unionByName, self._caps) if self._caps else None
        return WalkedPairs(reduce(DataFrame.unionByName, pairs), caps)

    def followed(self, targets: DataFrame, last_share: float = 1.0) -> DataFrame:
        """Return how many edges the walk from each target follows, all hops together: ``target``, ``edges``.

        The last hop is not walked for this: the degrees of the nodes before it tell. Of its edges, only those to
        calibration nodes are followed in fact: `last_share` is the share that counts.
        """
        levels = self._levels(targets, self.hops - 1)
        shares = [1.0] * (self.hops - 1) + [last_share]
        edges = sf.sum("degree") if self.cap is None else sf.least(sf.sum("degree"), sf.lit(self.cap))
        visits = [
            level.groupBy("target").agg((edges * share).alias("edges"))
            for level, share in zip(levels, shares, strict=True)
        ]
        return reduce(DataFrame.unionByName, visits).groupBy("target").agg(sf.sum("edges").alias("edges"))

    def _levels(self, targets: DataFrame, hops: int) -> list[DataFrame]:
        start = targets.join(self.adjacency.degrees, "node")
        levels = [
            start.select(sf.col("node").alias("target"), "node", "degree", sf.lit(None).cast("double").alias("score"))
        ]
        frontier = levels[0]
        for k in range(1, hops + 1):
            table = self.adjacency.last if k == self.hops else self.adjacency.through
            if self.cap is not None:
                frontier = self._with_share(frontier, k)
            level = self._next_level(frontier, table, levels, k)
            levels.append(level)
            # A target that was cut goes no further: what lies behind a sample has no known distance.
            frontier = level if self.cap is None else level.where(sf.col("share") == 1.0).drop("share")
        return levels

    def _next_level(self, frontier: DataFrame, table: DataFrame, levels: list[DataFrame], k: int) -> DataFrame:
        reached = self._expand(frontier, table)
        if k == 1:
            return reached  # an edge is there once: nothing occurs twice, and nothing was seen
        kept = [sf.first(name).alias(name) for name in reached.columns if name not in ("target", "node")]
        once = reached.groupBy("target", "node").agg(*kept)
        # In an undirected graph a neighbour of hop k−1 is at k−2, k−1 or k: earlier levels cannot be met again.
        seen = levels[1:] if self.directed else levels[max(1, k - 2) :]
        before = reduce(DataFrame.unionByName, (level.select("target", "node") for level in seen))
        return once.join(before, ["target", "node"], "left_anti")

    def _expand(self, frontier: DataFrame, table: DataFrame) -> DataFrame:
        """Follow every edge from the frontier; a hub's frontier rows are sent to each of its parts."""
        parts = parts_of(sf.col("degree"))
        capped = "share" in frontier.columns
        if capped:
            # Parts are ranges of `place_of`, as a sample is: those beyond the share hold none of it.
            parts = sf.greatest(sf.lit(1), sf.ceil(parts * sf.col("share")).cast("int"))
        keys = ["target", "node"] + ["share"] * capped
        rows = frontier.select(*keys, sf.explode(sf.sequence(sf.lit(0), parts - 1)).alias("part"))
        reached = rows.join(table, ["node", "part"]).select("target", *["share"] * capped, sf.inline("entries"))
        reached = reached.withColumnRenamed("neighbour", "node").where(sf.col("node") != sf.col("target"))
        return reached.where(place_of(sf.col("node")) < sf.col("share")) if capped else reached

    def _with_share(self, frontier: DataFrame, k: int) -> DataFrame:
        """Add which share of its edges a target may follow in this hop, and note where that is not all."""
        edges = sf.greatest(sf.sum("degree"), sf.lit(1))
        share = sf.least(sf.lit(1.0), sf.lit(float(self.cap or 0)) / edges)
        shares = frontier.groupBy("target").agg(share.alias("share"))
        cut = shares.where(sf.col("share") < 1.0)
        self._caps.append(cut.select("target", sf.lit(k).alias("capped_at")))
        return frontier.join(shares, "target")


# -- cost ----------------------------------------------------------------------------------------------------------


def sampled_cost(walker: Walker, targets: DataFrame, count: int, last_share: float) -> float:
    """Return how many pairs the walk from a target makes: the mean over a sample, plus two standard errors."""
    share = min(1.0, _SAMPLE / count) if count else 1.0
    sample = targets.where(place_of(sf.lit("sample"), targets["node"]) < share)
    pairs = walker.followed(sample, last_share)
    row = pairs.agg(sf.sum("edges"), sf.sum(sf.col("edges") * sf.col("edges")), sf.count(sf.lit(1))).first()
    total, squares, met = (float(value or 0.0) for value in (row or (0.0, 0.0, 0.0)))
    size = max(met, share * count, 1.0)  # targets without an edge are not in the table, and cost nothing
    mean = total / size
    return mean + 2.0 * math.sqrt(max(squares / size - mean**2, 0.0) / size)


def stored_edges(walker: Walker) -> tuple[int, float]:
    """Return the number of stored edges, and the share of them that leads to a calibration node."""
    stored, known = (
        int(row[0] or 0) if row else 0
        for row in (
            walker.adjacency.degrees.agg(sf.sum("degree")).first(),
            walker.adjacency.last.agg(sf.sum(sf.size("entries"))).first(),
        )
    )
    return stored, known / max(stored, 1)
