"""The plan with joins: the steps from tables to sets, which run when they are asked for, or batch by batch.

What the tasks must know of all labelled nodes together is found first and sent to them: the scores of all where those
far away count too, and with an exact level how the labelled nodes are split, and the one rank T̂ that comes of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

from napsets.errors import InvalidInputError, warn
from napsets.kernels.threads import Progress, stages
from napsets.levels import Rank, rank_place
from napsets.randomness import split_seed
from napsets.spark import join_tasks
from napsets.spark.join_tasks import AllScores, Split
from napsets.spark.plans import Content, fingerprint_of
from napsets.spark.session import literally, located, plain_errors, read_text, write_text
from napsets.spark.tables import Result, Tables, sets_columns, with_kinds, with_level
from napsets.spark.walk import PAIRS_PER_PART, Walker, adjacency, place_of, sampled_cost, stored_edges

#: Turns targets into a table about them.
Work = Callable[[DataFrame], DataFrame]

#: Pairs that one task of a batch should make: enough to outweigh its start, little enough to lose.
PAIRS_PER_TASK = 4_000_000

_THRESHOLDS = "threshold double, support bigint, effective_size double"


@dataclass(frozen=True)
class Checkpoints:
    """A directory of Parquet that belongs to one input and one way of asking.

    A lost executor takes its shuffle files with it, and Spark recomputes what they came from. Here that is never more
    than the batch under way: the adjacency, the scores and the thresholds of finished batches are in Parquet, in a
    place that outlives executors: a distributed file system, or a local folder where all runs on one machine. The same
    fingerprint (see `fingerprint_of`) finds the same tables again, so that a lost driver costs no more.

    Without a directory nothing is kept: each step is a plan, which runs when the result is asked for.
    """

    spark: Any = None
    path: str | None = None

    def write(self, table: DataFrame, name: str) -> DataFrame:
        """Write a table unless it is there whole, and return it as read from there: its history ends here."""
        if self.path is None:
            return table
        path = f"{self.path}/{name}"
        system, mark = located(self.spark, f"{path}/_SUCCESS")  # Spark's own
        if not system.exists(mark):
            with plain_errors():
                table.write.mode("overwrite").parquet(path)
        kept: DataFrame = self.spark.read.schema(table.schema).parquet(literally(path))
        return kept

    def values(self, name: str, make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return numbers or texts that were written before, or make and write them: as text, which needs no job."""
        if self.path is None:
            return make()
        path = f"{self.path}/{name}.json"
        text = read_text(self.spark, path)
        if text is None:
            text = json.dumps(make())
            write_text(self.spark, path, text)
        return tuple(json.loads(text))

    def in_batches(
        self, targets: DataFrame, work: Work, batches: int, name: str, progress: Progress | None
    ) -> DataFrame:
        """Do some work on the targets batch by batch; return all that was written, as one table."""
        if self.path is None:
            return work(targets)
        place = sf.floor(place_of(sf.lit("batch"), targets["node"]) * batches).cast("int")
        paths = []
        for i in range(batches):
            done = self.write(work(targets.where(place == i)), f"{name}-{i:05d}")
            paths.append(literally(f"{self.path}/{name}-{i:05d}"))
            if progress is not None:
                progress(i + 1, batches)
        whole: DataFrame = self.spark.read.schema(done.schema).parquet(*paths)
        return whole


def batch_count(count: int, cost: float, stored: int, tasks: int) -> int:
    """Return into how many batches `count` targets are put, of which each makes `cost` pairs.

    A batch shuffles the adjacency whatever its size, so that it should make at least as many pairs as there are
    stored edges: then the adjacency is not the larger part of what is shuffled.
    """
    return max(1, math.ceil(count * cost / max(PAIRS_PER_TASK * tasks, stored)))


@dataclass
class JoinsJob:
    """One call: the input in one shape, and the steps from it to the sets.

    With `reverse` the edges of the tables are turned ones. Where steps are kept, targets are put into batches, and
    progress counts those. On the way, the split and the rank of an exact level are added to the settings.
    """

    tables: Tables
    settings: join_tasks.SparkSettings
    directed: bool
    cap: int | None
    reverse: bool = False
    kept: Checkpoints = Checkpoints()
    batch_size: int | None = None
    progress: Progress | None = None
    #: A broadcast of the scores of all reference nodes, found on the way where those count that are not near.
    everyone: Any = field(default=None, init=False)

    def fingerprint(self, contents: Mapping[str, Content | None], batch_size: int | None) -> str:
        """Name all that the thresholds, and how they are cut into batches, depend on."""
        tables = {name: table for name, table in contents.items() if name != "edges" or self._walks}
        settings = {
            # Thresholds do not depend on how the sets are written.
            "settings": replace(self.settings, allow_empty=True, integer_labels=False),
            "directed": self.directed,
            "reverse": self.reverse,
            "cap": self.cap,
            "parts": PAIRS_PER_PART,
            "batch size": batch_size,
        }
        return fingerprint_of(tables, settings)

    # -- all of it -------------------------------------------------------------------------------------------------

    def run(self, spark: SparkSession) -> Result:
        """Do what must be done at once, and return a plan of the rest."""
        if not self._walks and not self._needs_own_row:
            return Result(self.sets({}))
        with plain_errors():
            self._fit(spark)
            walker = self.walker() if self._walks else None
            targets, place = self.kept.write(self.tables.nodes, "nodes"), self._rank_place()
            count = level_batches = batches = 0
            if self.kept.path is not None:
                count = targets.count()
                batches = self._batches(walker, targets, count, "batches")
                if place is not None:
                    level_batches = self._batches(walker, self.apart(), self._held_out, "level-batches")
            total = level_batches + batches
            ranking, choosing = stages(self.progress, [level_batches, batches], total)
            if place is not None:
                rank = self._rank(walker, place, level_batches, ranking)
                self.settings = replace(self.settings, rank=rank)
        if self.settings.everyone and not self.tables.may_be_labelled:
            if self.progress is not None:
                self.progress(total, total)
            return self._result(self.sets(self.one_threshold(), targets))
        chosen = self.kept.in_batches(targets, partial(self.thresholds, walker), batches, "batch", choosing)
        if self.cap is not None and self.kept.path is not None and walker is not None:
            _report_caps(chosen, count, self.cap)
        return self._result(self.sets(chosen, targets))

    @property
    def _walks(self) -> bool:
        return not self.settings.everyone and self.settings.weights.size > 0

    @property
    def _needs_own_row(self) -> bool:
        """Whether each target needs a row of its own, even if no walk reached it."""
        return self.settings.far or self.settings.level.keeps_apart

    def _fit(self, spark: SparkSession) -> None:
        """Find out what must be known of all labelled nodes together."""
        if self.settings.level.keeps_apart:
            self.settings = replace(self.settings, split=self._split())
        if self.settings.far:
            columns = ["score", *["predicted"] * bool(self.settings.alike)]
            scores = self.reference().select(*columns).toArrow()
            known = AllScores(*(scores.column(name).to_numpy() for name in columns))
            self.everyone, empty = spark.sparkContext.broadcast(known), known.scores.size == 0
        else:
            empty = self.kept.path is not None and self.reference().isEmpty()
        if empty:
            raise InvalidInputError("`labels` must hold at least one known label; it holds none")

    def _result(self, sets: DataFrame) -> Result:
        if not self.settings.level.keeps_apart:
            return Result(sets)
        level = math.inf if self.settings.rank is None else self.settings.rank.share
        return Result(with_level(sets, level), level)

    # -- labelled nodes --------------------------------------------------------------------------------------------

    def _split(self) -> Split:
        """Find out which labelled nodes are the reference part."""

        def make() -> tuple[Any, ...]:
            labelled = self.tables.labels.select("node")
            # Decimals, because they do not overflow; the sum has no order.
            word = sf.col("word").cast("decimal(20, 0)")
            row = labelled.mapInArrow(join_tasks.words, "word bigint").agg(sf.count(word), sf.sum(word)).first()
            count, total = (int(value or 0) for value in (row or (0, 0)))
            if count < 2:
                raise InvalidInputError(
                    f"`labels` must hold at least two known labels for an exact level; it holds {count}"
                )
            size, seed = self.settings.level.reference_size(count), split_seed(self.settings.seed, total)
            drawn = labelled.mapInArrow(partial(join_tasks.keys, seed=seed), f"node {self.tables.id_type}, key double")
            last = _nth(drawn, ["key", "node"], size)
            return seed, last["key"], last["node"], count - size

        return Split(*self.kept.values("split", make))

    @cached_property
    def scored(self) -> DataFrame:
        """The labelled nodes with their scores at their labels: ``node``, ``score``, ``predicted``, ``apart``."""
        labels = with_kinds(self.tables.labels, self.tables.class_names)
        scores = labels.join(self.tables.probabilities, "node", "left").mapInArrow(
            partial(join_tasks.calibration_scores, settings=self.settings),
            f"node {self.tables.id_type}, score double, predicted int, apart boolean",
        )
        return self.kept.write(scores, "scores")

    def reference(self) -> DataFrame:
        """Return the labelled nodes that thresholds are made of."""
        return self.scored.where(~sf.col("apart")) if self.settings.level.keeps_apart else self.scored

    def apart(self) -> DataFrame:
        """Return the labelled nodes that are held out."""
        return self.scored.where("apart")

    @property
    def _held_out(self) -> int:
        return 0 if self.settings.split is None else self.settings.split.apart

    def _rank_place(self) -> int | None:
        """Return which of the ranks of the held-out nodes, from 1, is T̂; None where there are too few."""
        place = rank_place(self._held_out, self.settings.alpha)
        return place if place <= self._held_out else None

    def _rank(self, walker: Walker | None, place: int, batches: int, progress: Progress | None) -> Rank:
        """Return T̂: the one rank that the level needs, and all that comes here of them."""

        def make() -> tuple[Any, ...]:
            ranks = self.kept.in_batches(self.apart(), partial(self.ranks, walker), batches, "level", progress)
            return tuple(_nth(ranks, ["share", "score"], place))[:2]

        return Rank(*self.kept.values("rank", make))

    # -- thresholds ------------------------------------------------------------------------------------------------

    def walker(self) -> Walker:
        """Make the graph ready to be walked."""
        hops, scores = int(self.settings.weights.size), self.reference().select("node", "score")
        graph = adjacency(self.tables.edges, scores, hops=hops, directed=self.directed, keep=self.kept.write)
        return Walker(graph, hops, self.directed, self.cap)

    def thresholds(self, walker: Walker | None, targets: DataFrame) -> DataFrame:
        """Choose the thresholds of the targets: those they met, and where all count, one row per target in any case."""
        kind = f"node {self.tables.id_type}, {_THRESHOLDS}"
        work = partial(join_tasks.thresholds, settings=self.settings, everyone=self.everyone)
        itself = self._targets(targets) if self._needs_own_row else None
        if walker is None:
            assert itself is not None
            return itself.mapInArrow(work, kind)
        walk = walker.walk(targets)
        chosen = _together(walk.pairs, itself).mapInArrow(work, kind)
        if walk.caps is None:
            return chosen
        return chosen.join(walk.caps.withColumnRenamed("target", "node"), "node", "full_outer")

    def one_threshold(self) -> dict[str, Any]:
        """Return the threshold, and what it rests on, that all nodes have which are none of the labelled ones."""
        unreached = pa.RecordBatch.from_pydict({"target": [0], "hop": [0], "score": pa.array([None], pa.float64())})
        (threshold,) = join_tasks.thresholds(iter([unreached]), self.settings, self.everyone)
        (row,) = threshold.drop_columns("node").to_pylist()
        return row

    def ranks(self, walker: Walker | None, held_out: DataFrame) -> DataFrame:
        """Rank the held-out nodes among the reference nodes: ``share``, ``score``."""
        work = partial(join_tasks.ranks, settings=self.settings, everyone=self.everyone)
        itself = _about(held_out)
        rows = itself if walker is None else _together(walker.walk(held_out).pairs, itself)
        return rows.mapInArrow(work, "share double, score double")

    def _targets(self, targets: DataFrame) -> DataFrame:
        """Return what is to be known of each target itself: its own score among those that count, its prediction."""
        known = targets.select("node")
        columns = {"score": sf.lit(None).cast("double"), "predicted": sf.lit(None).cast("int")}
        if self.tables.may_be_labelled and self.settings.far:
            known = known.join(self.reference().select("node", "score"), "node", "left")
            columns["score"] = sf.col("score")
        if self.settings.alike:
            known = known.join(self.tables.probabilities, "node", "left")
            first = sf.array_position("probabilities", sf.array_max("probabilities")) - 1
            columns["predicted"] = first.cast("int")
        return _about(known.select("node", *(value.alias(name) for name, value in columns.items())))

    def _batches(self, walker: Walker | None, targets: DataFrame, count: int, name: str) -> int:
        """Return into how many batches the targets are put.

        Written down too: after a restart the cluster may be another, and batches must stay what they were.
        """

        def make() -> tuple[int]:
            if self.batch_size is not None:
                return (max(1, -(-count // self.batch_size)),)
            if walker is None:
                return (1,)
            stored, last_share = stored_edges(walker)
            tasks = int(targets.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
            return (batch_count(count, sampled_cost(walker, targets, count, last_share), stored, tasks),)

        (batches,) = self.kept.values(name, make)
        return int(batches)

    def sets(self, thresholds: DataFrame | dict[str, Any], targets: DataFrame | None = None) -> DataFrame:
        """Join thresholds, or the same for all, with probabilities, and make the sets."""
        nodes = self.tables.nodes if targets is None else targets
        rows = nodes.join(self.tables.probabilities, "node", "left")
        extra = ""
        if isinstance(thresholds, dict):
            kinds = (part.split() for part in _THRESHOLDS.split(", "))
            rows = rows.withColumns({name: sf.lit(thresholds.get(name)).cast(kind) for name, kind in kinds})
        else:
            rows = rows.join(thresholds, "node", "left")
            extra = ", capped_at int" if "capped_at" in thresholds.columns else ""
        return rows.mapInArrow(
            partial(join_tasks.prediction_sets, settings=self.settings), f"{sets_columns(self.tables)}{extra}"
        )


def _report_caps(table: DataFrame, count: int, cap: int) -> None:
    """Warn where a cap has cut neighbourhoods, and say how many."""
    row = table.agg(sf.count("capped_at")).first()
    cut = int(row[0]) if row else 0
    if cut:
        warn(
            f"`max_neighbourhood` = {cap} has cut the neighbourhoods of {cut} of {count} nodes; the column capped_at "
            f"says which"
        )


def _about(known: DataFrame) -> DataFrame:
    """Return what is known of targets themselves as rows of the table of pairs, at hop 0."""
    return known.select(sf.col("node").alias("target"), sf.lit(0).cast("tinyint").alias("hop"), "score", "predicted")


def _together(pairs: DataFrame, itself: DataFrame | None) -> DataFrame:
    """Bring a target's rows together in one partition: what tasks rely on."""
    if itself is not None:
        pairs = pairs.withColumn("predicted", sf.lit(None).cast("int")).unionByName(itself)
    return pairs.repartition("target").sortWithinPartitions("target")


def _nth(table: DataFrame, by: list[str], place: int) -> Row:
    """Return the row at some place, from 1, in the order of some columns: one task sorts, one row comes here."""
    number = sf.row_number().over(Window.orderBy(*by))
    row = table.select(*by).withColumn("place", number).where(sf.col("place") == place).first()
    assert row is not None
    return row
