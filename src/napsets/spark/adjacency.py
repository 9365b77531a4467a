"""The graph as tables for walking: each node's neighbours in rows of bounded work.

A row holds one part of a node's neighbours. A node of degree d can stand in the neighbourhoods of d targets, and
expanding it there makes d·d pairs; its neighbours are therefore split into about d²/`PAIRS_PER_PART` parts, which
different tasks expand. No hub's neighbours times its targets ever meet on one task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

__all__ = ["PAIRS_PER_PART", "Adjacency", "Keep", "adjacency", "parts_of", "place_of"]

#: Pairs (target, neighbour) that one part of one node's neighbours may give: seconds of a task's time.
PAIRS_PER_PART = 1 << 24

#: A part is not made smaller than this many neighbours: each costs the walk one row a target.
_SMALLEST_PART = 64

#: Takes a table and its name; returns the table, perhaps as read from where it was written.
Keep = Callable[[DataFrame, str], DataFrame]


@dataclass(frozen=True)
class Adjacency:
    """The graph, with what a walk wants to know on arrival.

    Attributes
    ----------
    degrees : DataFrame
        ``node``, ``degree``.
    through : DataFrame
        For the hops before the last: ``node``, ``part``, ``entries`` of (neighbour, degree, score).
    last : DataFrame
        For the last hop, to which only calibration nodes matter: ``entries`` of (neighbour, score), those alone.
    """

    degrees: DataFrame
    through: DataFrame
    last: DataFrame


def _as_it_is(table: DataFrame, name: str) -> DataFrame:
    return table


def place_of(node: Column) -> Column:
    """Return a number in [0, 1) that belongs to a node: which part it is in, and whether a cap leaves it out."""
    return sf.shiftrightunsigned(sf.xxhash64(node), 11) * sf.lit(2.0**-53)


def parts_of(degree: Column, pairs_per_part: int = PAIRS_PER_PART) -> Column:
    """Return into how many parts the neighbours of a node of some degree are split."""
    wide = degree.cast("double")
    wanted = sf.least(wide * wide / float(pairs_per_part), wide / float(_SMALLEST_PART))
    return sf.greatest(sf.lit(1), sf.ceil(wanted).cast("int"))


def adjacency(
    edges: DataFrame, scores: DataFrame, *, hops: int, directed: bool, pairs_per_part: int, keep: Keep = _as_it_is
) -> Adjacency:
    """Make the tables: duplicate edges merged, self-loops dropped, each neighbour with its degree and its score.

    `keep` may write each table down as it is made, so that the next reads it instead of making it again.
    """
    links = keep(_links(edges, directed), "links")
    degrees = keep(links.groupBy("node").agg(sf.count(sf.lit(1)).alias("degree")), "degrees")
    # Both of a neighbour's attributes come in one join: the links are shuffled by neighbour once.
    about = degrees.join(scores, "node", "full_outer").withColumnRenamed("node", "neighbour")
    arrived = links.join(about, "neighbour", "left")
    own = degrees.select("node", parts_of(sf.col("degree"), pairs_per_part).alias("parts"))
    part = sf.floor(place_of(sf.col("neighbour")) * sf.col("parts")).cast("int")
    placed = arrived.join(own, "node").select(
        "node",
        part.alias("part"),
        "neighbour",
        sf.coalesce("degree", sf.lit(0).cast("bigint")).alias("degree"),
        "score",
    )
    if hops == 1:  # the last hop is the first: other neighbours need not be gathered
        only = _packed(placed.where(sf.col("score").isNotNull()))
        return Adjacency(degrees, only, keep(_calibrated(only), "last"))
    through = keep(_packed(placed), "through")
    return Adjacency(degrees, through, keep(_calibrated(through), "last"))


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
