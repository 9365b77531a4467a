"""One call: the steps from tables to sets, as plans that run when they are asked for, or batch by batch.

What the tasks must know of all labelled nodes together is found first and sent to them: the scores of all where those
far away count too, and with an exact level how the labelled nodes are split, and the one rank T̂ that comes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

from napsets.errors import InvalidInputError
from napsets.levels import Rank, rank_place
from napsets.randomness import split_seed
from napsets.spark import arrow
from napsets.spark.batches import (
    Checkpoints,
    Content,
    batch_count,
    fingerprint_of,
    in_batches,
    report_caps,
    sampled_cost,
    stored_edges,
)
from napsets.spark.masses import AllScores, Split
from napsets.spark.session import plain_errors
from napsets.spark.tables import Result, Tables, sets_columns, with_kinds, with_level
from napsets.spark.walk import PAIRS_PER_PART, Walker, adjacency

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

_THRESHOLDS = "threshold double, support bigint, effective_size double"


@dataclass(frozen=True)
class Job:
    """One call: the input in one shape, and the steps from it to the sets.

    With `reverse` the edges of the tables are turned ones. `scored` and `everyone` are found on the way: the labelled
    nodes with their scores, and the scores of all reference nodes, which each worker gets once.
    """

    tables: Tables
    settings: arrow.SparkSettings
    directed: bool
    cap: int | None
    pairs_per_part: int = PAIRS_PER_PART
    reverse: bool = False
    scored: DataFrame | None = None
    everyone: Any = None

    def fingerprint(self, contents: Mapping[str, Content | None], batch_size: int | None) -> str:
        """Name all that the thresholds, and how they are cut into batches, depend on."""
        tables = {name: table for name, table in contents.items() if name != "edges" or self._walks}
        settings = {
            # Thresholds do not depend on how the sets are written.
            "settings": replace(self.settings, allow_empty=True, integer_labels=False),
            "directed": self.directed,
            "reverse": self.reverse,
            "cap": self.cap,
            "parts": self.pairs_per_part,
            "batch size": batch_size,
        }
        return fingerprint_of(tables, settings)

    # -- all of it -------------------------------------------------------------------------------------------------

    def run(
        self,
        spark: SparkSession,
        checkpoints: Checkpoints | None = None,
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> Result:
        """Do what must be done at once, and return a plan of the rest."""
        if not self._walks and not self._needs_own_row:
            return Result(self.sets(None))
        with plain_errors():
            job = self._fitted(spark, checkpoints)
            walker = job.walker(checkpoints) if job._walks else None
        steps = _Steps(checkpoints, batch_size, progress)
        targets = steps.plan(job, walker)
        if job.settings.level.keeps_apart:
            with plain_errors():
                job = replace(job, settings=replace(job.settings, rank=steps.rank(job, walker)))
        if self.settings.everyone and not self.tables.may_be_labelled:
            steps.finish()
            return job._result(job.sets(job.one_threshold(), targets))
        chosen = steps.all(partial(job.thresholds, walker), targets, "batch")
        if self.cap is not None and checkpoints is not None and walker is not None:
            report_caps(chosen, steps.count, self.cap)
        return job._result(job.sets(chosen, targets))

    @property
    def _walks(self) -> bool:
        return not self.settings.everyone and self.settings.weights.size > 0

    @property
    def _needs_own_row(self) -> bool:
        """Whether each target needs a row of its own, even if no walk reached it."""
        return self.settings.far or self.settings.level.keeps_apart

    def _fitted(self, spark: SparkSession, checkpoints: Checkpoints | None) -> Job:
        """Return the job with what it must know of all labelled nodes together."""
        job = self
        if self.settings.level.keeps_apart:
            job = replace(self, settings=replace(self.settings, split=self._split(checkpoints)))
        job = job._scored(checkpoints)
        if self.settings.far:
            columns = ["score", *["predicted"] * bool(self.settings.alike)]
            scores = job.reference().select(*columns).toArrow()
            known = AllScores.of(*(scores.column(name).to_numpy() for name in columns))
            empty = known.scores.size == 0
            job = replace(job, everyone=spark.sparkContext.broadcast(known))
        else:
            empty = checkpoints is not None and job.reference().isEmpty()
        if empty:
            raise InvalidInputError("`labels` must hold at least one known label; it holds none")
        return job

    def _result(self, sets: DataFrame) -> Result:
        if not self.settings.level.keeps_apart:
            return Result(sets)
        level = math.inf if self.settings.rank is None else self.settings.rank.share
        return Result(with_level(sets, level), level)

    # -- labelled nodes --------------------------------------------------------------------------------------------

    def _split(self, checkpoints: Checkpoints | None) -> Split:
        """Find out which labelled nodes are the reference part."""

        def make() -> tuple[Any, ...]:
            labelled = self.tables.labels.select("node")
            # Decimals, because they do not overflow; the sum has no order.
            word = sf.col("word").cast("decimal(20, 0)")
            row = labelled.mapInArrow(arrow.words, "word bigint").agg(sf.count(word), sf.sum(word)).first()
            count, total = (int(value or 0) for value in (row or (0, 0)))
            if count < 2:
                raise InvalidInputError(
                    f"`labels` must hold at least two known labels for an exact level; it holds {count}"
                )
            size, seed = self.settings.level.reference_size(count), split_seed(self.settings.seed, total)
            drawn = labelled.mapInArrow(partial(arrow.keys, seed=seed), f"node {self.tables.id_type}, key double")
            last = _nth(drawn, ["key", "node"], size)
            return Decimal(seed), last["key"], last["node"], count - size

        schema = f"seed decimal(20, 0), key double, node {self.tables.id_type}, apart bigint"
        seed, key, node, apart = make() if checkpoints is None else checkpoints.row("split", schema, make)
        return Split(int(seed), key, node, apart)

    def scores(self) -> DataFrame:
        """Score the labelled nodes at their labels: ``node``, ``score``, ``predicted``, ``apart``."""
        labels = with_kinds(self.tables.labels, self.tables.class_names)
        rows = labels.join(self.tables.probabilities, "node", "left")
        return rows.mapInArrow(
            partial(arrow.calibration_scores, settings=self.settings),
            f"node {self.tables.id_type}, score double, predicted int, apart boolean",
        )

    def _scored(self, checkpoints: Checkpoints | None) -> Job:
        """Return the job with its labelled nodes scored."""
        if self.scored is not None:
            return self
        scores = self.scores()
        return replace(self, scored=scores if checkpoints is None else checkpoints.write(scores, "scores"))

    def reference(self) -> DataFrame:
        """Return the labelled nodes that thresholds are made of."""
        scored = self.scores() if self.scored is None else self.scored
        return scored.where(~sf.col("apart")) if self.settings.level.keeps_apart else scored

    def apart(self) -> DataFrame:
        """Return the labelled nodes that are held out."""
        return (self.scores() if self.scored is None else self.scored).where("apart")

    # -- thresholds ------------------------------------------------------------------------------------------------

    def walker(self, checkpoints: Checkpoints | None = None) -> Walker:
        """Make the graph ready to be walked."""
        hops = int(self.settings.weights.size)
        scores = self._scored(checkpoints).reference().select("node", "score")
        how: dict[str, Any] = {"hops": hops, "directed": self.directed, "pairs_per_part": self.pairs_per_part}
        if checkpoints is not None:
            how["keep"] = checkpoints.write
        graph = adjacency(self.tables.edges, scores, **how)
        return Walker(graph, hops, self.directed, self.pairs_per_part, self.cap)

    def thresholds(self, walker: Walker | None, targets: DataFrame) -> DataFrame:
        """Choose the thresholds of the targets: those they met, and where all count, one row per target in any case."""
        kind = f"node {self.tables.id_type}, {_THRESHOLDS}"
        work = partial(arrow.thresholds, settings=self.settings, everyone=self.everyone)
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
        (threshold,) = arrow.thresholds(iter([unreached]), self.settings, self.everyone)
        (row,) = threshold.drop_columns("node").to_pylist()
        return row

    def ranks(self, walker: Walker | None, held_out: DataFrame) -> DataFrame:
        """Rank the held-out nodes among the reference nodes: ``share``, ``score``."""
        work = partial(arrow.ranks, settings=self.settings, everyone=self.everyone)
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

    def batches(self, walker: Walker | None, targets: DataFrame, count: int, batch_size: int | None) -> int:
        """Return into how many batches the targets are to be put."""
        if walker is None:
            return batch_count(count, 0.0, 0, 1, batch_size)
        stored, last_share = stored_edges(walker)
        tasks = int(targets.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        cost = sampled_cost(walker, targets, count, last_share) if batch_size is None else 0.0
        return batch_count(count, cost, stored, tasks, batch_size)

    def sets(self, thresholds: DataFrame | dict[str, Any] | None, targets: DataFrame | None = None) -> DataFrame:
        """Join thresholds, or the same for all, with probabilities, and make the sets."""
        nodes = self.tables.nodes if targets is None else targets
        rows = nodes.join(self.tables.probabilities, "node", "left")
        extra = ""
        if thresholds is None or isinstance(thresholds, dict):
            kinds, same = (part.split() for part in _THRESHOLDS.split(", ")), thresholds or {}
            rows = rows.withColumns({name: sf.lit(same.get(name)).cast(kind) for name, kind in kinds})
        else:
            rows = rows.join(thresholds, "node", "left")
            extra = ", capped_at int" if "capped_at" in thresholds.columns else ""
        return rows.mapInArrow(
            partial(arrow.prediction_sets, settings=self.settings), f"{sets_columns(self.tables)}{extra}"
        )


class _Steps:
    """How a job is done: as one plan, or in batches that are written one by one."""

    def __init__(self, checkpoints: Checkpoints | None, batch_size: int | None, progress: Progress | None) -> None:
        self.checkpoints, self.batch_size, self.progress = checkpoints, batch_size, progress
        self.count = 0
        self.numbers = {"level": 0, "batch": 0}

    def plan(self, job: Job, walker: Walker | None) -> DataFrame:
        """Return the targets; where there are batches, find out how many."""
        if self.checkpoints is None:
            return job.tables.nodes
        with plain_errors():
            targets = self.checkpoints.write(job.tables.nodes, "nodes")
            self.count = targets.count()
            self._number(job, walker, "batch", "batches", targets, self.count)
            if job.settings.split is not None and self._place(job) is not None:
                self._number(job, walker, "level", "level-batches", job.apart(), job.settings.split.apart)
        return targets

    def _number(self, job: Job, walker: Walker | None, kind: str, name: str, targets: DataFrame, count: int) -> None:
        # Written down too: after a restart the cluster may be another, and batches must stay what they were.
        assert self.checkpoints is not None
        make = partial(job.batches, walker, targets, count, self.batch_size)
        (self.numbers[kind],) = self.checkpoints.row(name, "id bigint", lambda: (make(),))

    @staticmethod
    def _place(job: Job) -> int | None:
        """Return which of the ranks, from 1, is T̂; None where there are too few."""
        count = 0 if job.settings.split is None else job.settings.split.apart
        place = rank_place(count, job.settings.alpha)
        return place if place <= count else None

    def rank(self, job: Job, walker: Walker | None) -> Rank | None:
        """Return T̂: the one rank that the level needs, and all that comes here of them."""
        place = self._place(job)
        if place is None:
            return None

        def make() -> tuple[Any, ...]:
            ranks = self.all(partial(job.ranks, walker), job.apart(), "level")
            return tuple(_nth(ranks, ["share", "score"], place))[:2]

        row = make() if self.checkpoints is None else self.checkpoints.row("rank", "share double, score double", make)
        return Rank(*row)

    def finish(self) -> None:
        """Say that all is done, where it was done at once."""
        if self.progress is not None:
            self.progress(sum(self.numbers.values()), sum(self.numbers.values()))

    def all(self, work: Callable[[DataFrame], DataFrame], targets: DataFrame, kind: str) -> DataFrame:
        """Do some work on all targets."""
        if self.checkpoints is None:
            return work(targets)
        before, total = self.numbers["level"] if kind == "batch" else 0, sum(self.numbers.values())
        tell = self.progress
        report = None if tell is None else lambda done, _: tell(before + done, total)
        return in_batches(targets, work, self.numbers[kind], self.checkpoints, report, name=kind)


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
