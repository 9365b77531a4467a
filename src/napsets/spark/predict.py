"""predict_sets: DataFrames in, a DataFrame of prediction sets out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.checks.arguments import check_alpha, check_count
from napsets.checks.names import choose
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.localisers.decay import Decay, hop_weights
from napsets.randomness import node_uniforms
from napsets.scores import APS, Score
from napsets.spark import arrow, fingerprint
from napsets.spark.adjacency import PAIRS_PER_PART, adjacency
from napsets.spark.batches import (
    Checkpoints,
    batch_count,
    in_batches,
    report_caps,
    sampled_cost,
    stored_edges,
)
from napsets.spark.session import plain_errors
from napsets.spark.tables import LabelsAre, Tables, as_tables
from napsets.spark.walk import Walker

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

__all__ = ["predict_sets"]

_THRESHOLDS = "threshold double, support bigint, effective_size double"
_SETS = "labels array<string>, size int, threshold double, support bigint, effective_size double, alpha double"


def predict_sets(
    spark: SparkSession,
    edges: DataFrame,
    probabilities: DataFrame,
    labels: DataFrame,
    nodes: DataFrame | None = None,
    hops: int = 2,
    decay: Decay = "uniform",
    score: Score | None = None,
    alpha: float = 0.1,
    seed: int = 0,
    *,
    directed: bool = False,
    allow_empty: bool = True,
    class_names: Sequence[str] | None = None,
    max_neighbourhood: int | None = None,
    checkpoint_dir: str | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
    labels_are: LabelsAre = "auto",
) -> DataFrame:
    """Return the prediction sets of `nodes`, to the bit those that `NAPS` gives on one machine.

    Without `checkpoint_dir` the result is a plan and nothing runs before it is asked for. With it, targets are walked
    from in batches, each written before the next begins, so that a lost executor, or a lost driver, costs a batch:
    the same call goes on where the other ended. The sets are then a plan over what was written. Nothing but counts,
    and the number of classes, is ever brought to the driver.

    Parameters
    ----------
    spark : SparkSession
        The session. Its workers need this package.
    edges : DataFrame
        Columns ``source`` and ``target``. Duplicates are merged and self-loops dropped. Nodes that only occur here
        are walked through.
    probabilities : DataFrame
        ``node`` and one column a class, or ``node`` and one list column ``probabilities``; a row for each labelled
        node and for each of `nodes`.
    labels : DataFrame
        ``node`` and ``label``, a class's name or number: the calibration nodes. A node's own label never counts for
        its own set.
    nodes : DataFrame, optional
        ``node``: what to predict, each once in the result. By default all nodes of `probabilities` without a label.
    hops, decay, score, alpha, seed
        As in `NAPS` and `NAPS.predict`; the score is `APS` by default.
    directed : bool
        With True, neighbours are the targets of the edges that leave a node.
    allow_empty : bool
        With False, a set that would be empty gets the best label.
    class_names : sequence of str, optional
        Names of the classes; by default the columns', or 0, 1, … for a list column.
    max_neighbourhood : int, optional
        How many edges a target may follow in one hop; by default any number. A target that would follow more ends
        there, with a random share of that hop's nodes that does not depend on labels. The result then has a further
        column ``capped_at``: that hop, null where nothing was cut; and with `checkpoint_dir` a warning counts them.
    checkpoint_dir : str, optional
        Where to write what should outlive an executor; removed by no one but you. See above. The tables are read
        once more, to know them again: what was written for other rows or settings is never used.
    batch_size : int, optional
        Targets in a batch; by default chosen from the cost of a sample. Needs `checkpoint_dir`.
    progress : callable, optional
        Called as ``progress(done, total)`` in batches.
    labels_are : {"auto", "names", "indices"}
        What a label is. With "auto": names where every label is one, numbers from 0 where none is; a mixture is
        refused.

    Returns
    -------
    DataFrame
        ``node``, ``labels`` (names), ``size``, ``threshold``, ``support``, ``effective_size``, ``alpha``; in no
        particular order.
    """
    choose("labels_are", labels_are, {"auto": 1, "names": 1, "indices": 1})
    tables = as_tables(edges, probabilities, labels, nodes, class_names)
    settings = arrow.Settings(
        weights=hop_weights(decay, check_count("hops", hops)),
        score=_checked_score(score),
        alpha=check_alpha(alpha),
        seed=_checked_seed(seed),
        allow_empty=bool(allow_empty),
        class_names=tables.class_names,
        labels_are=labels_are,
    )
    cap = None if max_neighbourhood is None else check_count("max_neighbourhood", max_neighbourhood, minimum=1)
    size = None if batch_size is None else check_count("batch_size", batch_size, minimum=1)
    if size is not None and checkpoint_dir is None:
        raise InvalidInputError("`batch_size` must come with `checkpoint_dir`, where batches are written; got none")
    if str(spark.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        warnings.warn("spark.sql.adaptive.enabled is off; it evens out skewed tasks", NapsetsWarning, stacklevel=2)
    job = Job(tables, settings, directed, cap)
    if settings.weights.size == 0:
        return job.sets(None)
    if checkpoint_dir is None:
        return job.sets(job.thresholds(job.walker(), tables.nodes))
    given = {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes}
    with plain_errors():
        name = job.fingerprint(given, size)
    return job.in_batches(Checkpoints(spark, checkpoint_dir, name), size, progress)


def _checked_score(score: Any) -> Any:
    chosen = APS() if score is None else score
    if not all(callable(getattr(chosen, name, None)) for name in ("matrix", "at")):
        raise InvalidInputError(f"`score` must have the methods matrix and at; got {type(chosen).__name__}")
    return chosen


def _checked_seed(seed: int) -> int:
    node_uniforms([0], seed)  # refuses what is no integer, before a task does
    return int(seed)


@dataclass(frozen=True)
class Job:
    """One call: the input in one shape, and the steps from it to the sets."""

    tables: Tables
    settings: arrow.Settings
    directed: bool
    cap: int | None
    pairs_per_part: int = PAIRS_PER_PART

    def fingerprint(self, given: dict[str, DataFrame | None], batch_size: int | None) -> str:
        """Name all that the thresholds, and how they are cut into batches, depend on."""
        used = {"edges": ["source", "target"], "labels": ["node", "label"], "nodes": ["node"]}
        tables = {
            name: table if table is None or name not in used else table.select(*used[name])
            for name, table in given.items()
        }
        settings = {
            "weights": self.settings.weights.tolist(),
            "score": self.settings.score,
            "alpha": self.settings.alpha,
            "seed": self.settings.seed,
            "classes": self.settings.class_names,
            "labels are": self.settings.labels_are,
            "directed": self.directed,
            "cap": self.cap,
            "parts": self.pairs_per_part,
            "batch size": batch_size,
        }
        return fingerprint.of(tables, settings)

    def scores(self) -> DataFrame:
        """Score the calibration nodes at their labels: ``node``, ``score``."""
        labels, names = self.tables.labels, list(self.tables.class_names)
        # One row, which every task gets: of all labels, are some names, are some none, and are some not even numbers?
        name, number = sf.col("label").isin(names), sf.col("label").isin([str(y) for y in range(len(names))])
        kinds = labels.agg(
            sf.max(name).alias("names"), sf.max(~name).alias("others"), sf.max(~name & ~number).alias("strange")
        )
        rows = labels.crossJoin(sf.broadcast(kinds)).join(self.tables.probabilities, "node", "left")
        return rows.mapInArrow(
            partial(arrow.calibration_scores, settings=self.settings), f"node {self.tables.id_type}, score double"
        )

    def walker(self, checkpoints: Checkpoints | None = None) -> Walker:
        """Make the graph ready to be walked."""
        hops = int(self.settings.weights.size)
        scores = self.scores() if checkpoints is None else checkpoints.write(self.scores(), "scores")
        if checkpoints is not None and scores.isEmpty():
            raise InvalidInputError("`labels` must hold at least one known label; it holds none")
        how: dict[str, Any] = {"hops": hops, "directed": self.directed, "pairs_per_part": self.pairs_per_part}
        if checkpoints is not None:
            how["keep"] = checkpoints.write
        graph = adjacency(self.tables.edges, scores, **how)
        return Walker(graph, hops, self.directed, self.pairs_per_part, self.cap)

    def thresholds(self, walker: Walker, targets: DataFrame) -> DataFrame:
        """Walk from the targets and choose their thresholds; a target that met no one has no row."""
        walk = walker.walk(targets)
        # A target's rows stand together in one partition: what `arrow.thresholds` relies on.
        together = walk.pairs.repartition("target").sortWithinPartitions("target")
        chosen = together.mapInArrow(
            partial(arrow.thresholds, settings=self.settings), f"node {self.tables.id_type}, {_THRESHOLDS}"
        )
        if walk.caps is None:
            return chosen
        return chosen.join(walk.caps.withColumnRenamed("target", "node"), "node", "full_outer")

    def in_batches(self, checkpoints: Checkpoints, batch_size: int | None, progress: Progress | None) -> DataFrame:
        """Walk from the targets batch by batch."""
        with plain_errors():
            walker = self.walker(checkpoints)
            targets = checkpoints.write(self.tables.nodes, "nodes")
            count = targets.count()
            # Written down too: after a restart the cluster may be another, and batches must stay what they were.
            batches = checkpoints.number("batches", lambda: self._batches(walker, targets, count, batch_size))
        chosen = in_batches(targets, partial(self.thresholds, walker), batches, checkpoints, progress)
        if self.cap is not None:
            report_caps(chosen, count, self.cap)
        return self.sets(chosen, targets)

    def _batches(self, walker: Walker, targets: DataFrame, count: int, batch_size: int | None) -> int:
        stored, last_share = stored_edges(walker)
        tasks = int(targets.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        cost = sampled_cost(walker, targets, count, last_share) if batch_size is None else 0.0
        return batch_count(count, cost, stored, tasks, batch_size)

    def sets(self, thresholds: DataFrame | None, targets: DataFrame | None = None) -> DataFrame:
        """Join thresholds with probabilities, and make the sets."""
        nodes = self.tables.nodes if targets is None else targets
        rows = nodes.join(self.tables.probabilities, "node", "left")
        extra = ""
        if thresholds is None:
            missing: dict[str, Any] = {
                name: sf.lit(None).cast(kind) for name, kind in (part.split() for part in _THRESHOLDS.split(", "))
            }
            rows = rows.withColumns(missing)
        else:
            rows = rows.join(thresholds, "node", "left")
            extra = ", capped_at int" if "capped_at" in thresholds.columns else ""
        return rows.mapInArrow(
            partial(arrow.prediction_sets, settings=self.settings), f"node {self.tables.id_type}, {_SETS}{extra}"
        )
