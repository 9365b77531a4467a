"""The plan *joins*, for graphs that no machine holds: edges and probabilities stay on Spark.

Labelled nodes come to the driver, where they are read, split and scored by the code of one machine. Neighbourhoods are
found by K rounds of joins: the frontier joined with the edges, without what was seen before. Each target's reference
nodes are then gathered into one row, and a task computes its threshold by the specification in `napsets.quantile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_schema

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import InvalidInputError, warn
from napsets.files import Inputs, read_probabilities
from napsets.files.formats import TableFile
from napsets.files.prediction_file import prediction_schema
from napsets.files.reading import Reading
from napsets.files.writers import prediction_rows
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops, Reference
from napsets.localisers.base import Cut, LocalThresholds
from napsets.localisers.hops import Sizes, Weighting, hop_weights
from napsets.methods.method import Method
from napsets.predictions import PredictionSets
from napsets.quantile import cumulative_mass, local_rank
from napsets.randomness import node_uniforms
from napsets.scores import learns
from napsets.scores.base import BoundRows
from napsets.spark.graph_plan import Request, SparkSets, calibrate_tables, in_memory, level_of, shipped

Batches = Iterator[pa.RecordBatch]

_COST = (
    "the plan joins is slow: each hop shuffles every pair of a node to predict and a node that it reaches, where the "
    "plan graph follows edges in memory (docs/scale.md)"
)


def check_joins(method: Any, p_values: Any, reading: Reading) -> None:
    """Raise where joins cannot do what is asked: they know row scores, everyone or hops, a nominal or exact level."""
    rows = all(callable(getattr(getattr(method, "score", None), part, None)) for part in ("matrix", "at"))
    plain = type(method) is Method and method.groups is None and rows and not learns(method.score)
    if not (plain and type(method.localiser) in (Everyone, Hops) and type(method.level) in (Nominal, Exact)):
        raise InvalidInputError(
            "`plan` must be 'graph' for this method: joins know split and naps, with scores of single rows, at a "
            "nominal or exact level"
        )
    for what, wanted in (("p-values", p_values is not False), ("unknown nodes to skip", reading.skip_unknown)):
        if wanted:
            raise InvalidInputError(f"`plan` must be 'graph' for {what}; got 'joins'")


def predict_by_joins(spark: SparkSession, tables: Mapping[str, DataFrame], request: Request) -> SparkSets:
    """Calibrate the labelled nodes on the driver; search neighbourhoods and predict on workers."""
    warn(_COST)
    method, alpha, reading = request.method, request.alpha, request.reading
    counted = _check_ids(tables)
    inputs, calibrated = _calibrated(tables, request)
    scored, places = calibrated.scored, np.arange(len(inputs.ids))
    marks = {"reference": np.isin(places, scored.reference.nodes), "labelled": np.isin(places, scored.calibration)}
    labelled = spark.createDataFrame(pa.table({"node": inputs.ids.values, "place": places, **marks}))
    # One place more, for all nodes without a label.
    reference = Reference(scored.reference.nodes, scored.reference.scores, places.size + 1)
    task = _Task(
        method,
        alpha,
        reference,
        inputs.outputs.argmax(axis=1),
        method.level.fit(reference, np.empty(0), np.empty(0)),
        replace(reading, rename={}),
        inputs.class_names,
        prediction_schema(PredictionSets, inputs.ids.output_type, {}, integer_labels=inputs.integer_labels),
    )
    walk = _Walk.of(tables["edges"], labelled.where("reference"), method.localiser, directed=reading.directed)
    if scored.level_nodes.size:
        scores = np.full(places.size, np.nan)
        scores[scored.level_nodes] = scored.level_scores
        held_out = walk.met(labelled.where("labelled and not reference")).select("place", "near")
        ranks = shipped(spark, partial(task.ranks, scores))
        ranked = held_out.mapInArrow(ranks, "place bigint, share double").toArrow()
        shares = ranked.sort_by("place")["share"].to_numpy()
        task = replace(task, level=method.level.fit(reference, shares, scored.level_scores))
    if "nodes" in tables:
        targets = tables["nodes"].select("node")
    else:
        targets = tables["probabilities"].select("node").join(labelled.where("labelled"), "node", "left_anti")
    rows = walk.met(targets.join(labelled.select("node", "place"), "node", "left"))
    # Names that no class has: a task takes them off again.
    own = rows.select("node", sf.col("place").alias(_PLACE), sf.col("near").alias(_MET))
    make, schema = shipped(spark, task.sets), from_arrow_schema(task.schema)
    sets = own.join(tables["probabilities"], "node").mapInArrow(make, schema)
    facts = level_of(task.level, alpha) if method.level.holds_out_labels else {}
    return SparkSets(sets, inputs, counted, calibrated.level_size, method, facts)


# -- tables ------------------------------------------------------------------------------------------------------------

#: The columns of ids, by table.
_IDS = {"edges": ("source", "target"), **dict.fromkeys(("probabilities", "labels", "nodes", "evidence"), ("node",))}


def _check_ids(tables: Mapping[str, DataFrame]) -> int:
    """Raise unless ids are of one kind, present, known, and where they must be, unique; return the number of nodes."""
    kinds: dict[str, str] = {}
    for name, table in tables.items():
        TableFile(name, Path("the DataFrame"), "parquet", tuple(table.columns)).require(*_IDS[name])
        for column in _IDS[name]:
            kind = table.schema[column].dataType
            kinds[f"{name}.{column}"] = "integer" if isinstance(kind, st.IntegralType) else kind.simpleString()
    if set(kinds.values()) not in ({"integer"}, {"string"}):
        shown = ", ".join(f"{name} is {kind}" for name, kind in kinds.items())
        raise InvalidInputError(
            f"all tables must hold ids that are integers or strings, and ids must be of one kind in all; {shown}"
        )
    columns = [
        table.select(sf.col(column).alias("node"), sf.lit(name).alias("table"))
        for name, table in tables.items()
        for column in _IDS[name]
    ]
    each = [sf.count_if(sf.col("table") == name).alias(name) for name in tables]
    counts = reduce(DataFrame.unionByName, columns).groupBy("node").agg(*each)
    once = [name for name in tables if name not in ("edges", "probabilities")]
    wrong = sf.col("node").isNull() | (sf.col("node").cast("string") == "") | (sf.col("probabilities") != 1)
    for name in once:
        wrong = wrong | (sf.col(name) > 1)
    row = counts.agg(sf.sum("probabilities"), sf.first(sf.when(wrong, sf.struct("*")), ignorenulls=True)).head()
    assert row is not None
    if row[1] is None:
        return int(row[0] or 0)
    bad = row[1].asDict()
    node = bad.pop("node")
    if node is None or node == "":
        table = next(name for name, count in bad.items() if count)
        raise InvalidInputError(f"`{table}` must have an id in each row; {' or '.join(_IDS[table])} is empty in some")
    if not bad["probabilities"]:
        table = next(name for name, count in bad.items() if count)
        raise InvalidInputError(f"every id must be in `probabilities`; `{table}` has the node {node!r}, which it lacks")
    table = next(name for name in ("probabilities", *once) if bad[name] > 1)
    raise InvalidInputError(f"`{table}` must have each node once; node {node!r} is there {bad[table]} times")


def _calibrated(tables: Mapping[str, DataFrame], request: Request) -> tuple[Inputs, Any]:
    """Read and score the labelled nodes on the driver, in the order of their ids."""
    reading, names = request.reading, [name for name in ("labels", "evidence") if name in tables]
    listed = reduce(DataFrame.unionByName, (tables[name].select("node") for name in names)).distinct()
    rows = in_memory("probabilities", tables["probabilities"].join(listed, "node", "left_semi"), reading)
    if not rows.rows.num_rows:
        raise InvalidInputError("`labels` must have at least one label; it has none")
    ids = rows.rows["node"]
    # Self-loops are dropped: neighbourhoods are searched on Spark.
    alone = TableFile.in_memory("edges", pa.table({"source": ids, "target": ids}), reading)
    known = {"edges": alone, "probabilities": rows, **{name: tables[name] for name in names}}
    return calibrate_tables(known, replace(request, method=replace(request.method, localiser=Everyone())))


# -- neighbourhoods ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Walk:
    """The graph as tables, and how far to go in it."""

    links: DataFrame  #: node, neighbour
    reference: DataFrame  #: node, place
    hops: int

    @classmethod
    def of(cls, edges: DataFrame, reference: DataFrame, localiser: Any, *, directed: bool) -> _Walk:
        """Return the walk of a localiser; where everyone counts alike, it has no hops."""
        if not getattr(localiser, "hops", 0):
            return cls(edges, reference, 0)
        along = edges.select(sf.col("source").alias("node"), sf.col("target").alias("neighbour"))
        against = edges.select(sf.col("target").alias("node"), sf.col("source").alias("neighbour"))
        ways = {"out": along, "in": against, "both": along.union(against)}
        links = ways[localiser.direction if directed else "both"].where("node != neighbour").distinct()
        return cls(_kept(links), _kept(reference.select("node", "place")), localiser.hops)

    def met(self, targets: DataFrame) -> DataFrame:
        """Add the reference nodes around each target: ``near``, a list of places and hops, null where there is none."""
        if not self.hops:
            return targets.withColumn("near", sf.lit(None).cast("array<struct<place: bigint, hop: int>>"))
        seen = frontier = targets.select(sf.col("node").alias("target"), "node")
        # At the last hop only reference nodes matter.
        last = self.links.join(self.reference.select(sf.col("node").alias("neighbour")), "neighbour", "left_semi")
        levels = []
        for hop in range(1, self.hops + 1):
            links = last if hop == self.hops else self.links
            reached = frontier.join(links, "node").select("target", sf.col("neighbour").alias("node")).distinct()
            frontier = _kept(reached.join(seen, ["target", "node"], "left_anti"))
            seen = seen.union(frontier)
            levels.append(frontier.join(self.reference, "node").withColumn("hop", sf.lit(hop)))
        met = reduce(DataFrame.unionByName, levels).groupBy("target")
        near = met.agg(sf.collect_list(sf.struct("place", "hop")).alias("near"))
        return targets.join(near.withColumnRenamed("target", "node"), "node", "left")


def _kept(table: DataFrame) -> DataFrame:
    """Compute a table once: in the session's checkpoint directory if it has one, otherwise on its executors."""
    directory = table.sparkSession.sparkContext.getCheckpointDir()
    return table.localCheckpoint() if directory is None else table.checkpoint()


# -- tasks -------------------------------------------------------------------------------------------------------------

#: Columns of a task beside those of the probabilities.
_PLACE, _MET = "__napsets_place", "__napsets_near"


@dataclass(frozen=True, eq=False)
class _Task:
    """Turns rows of probabilities with the reference nodes around each into sets."""

    method: Method
    alpha: float
    reference: Reference
    predicted: IntArray  #: the first choice for each labelled node
    level: Any
    reading: Reading
    class_names: list[str] | None
    schema: pa.Schema

    def sets(self, batches: Batches) -> Batches:
        """Turn rows of probabilities into rows of sets."""
        for batch in batches:
            if batch.num_rows:
                yield from self._sets(pa.Table.from_batches([batch])).to_batches()

    def ranks(self, scores: FloatArray, batches: Batches) -> Batches:
        """Turn places of held-out nodes, with `scores` at their labels by place, into shares of mass below these."""
        for batch in batches:
            places = batch.column("place").to_numpy()
            shares = self.local(batch.column("near"), places, self.predicted[places]).ranks(places, scores[places])
            yield pa.RecordBatch.from_arrays([batch.column("place"), pa.array(shares)], ["place", "share"])

    def _sets(self, rows: pa.Table) -> pa.Table:
        table = TableFile.in_memory("probabilities", rows.drop_columns([_PLACE, _MET]), self.reading)
        outputs = read_probabilities(table, self.reading)
        places = rows[_PLACE].combine_chunks().fill_null(self.predicted.size).to_numpy()
        local = self.local(rows[_MET].combine_chunks(), places, outputs.values.argmax(axis=1))
        local = local.thresholds(places, self.level.cuts([self.alpha]))
        chosen = self.level.thresholds(local, places, [self.alpha])
        thresholds = chosen.at(0, self.alpha, level=None, allow_empty=self.method.allow_empty)
        bound = BoundRows(self.method.score, outputs.values, node_uniforms(outputs.ids.keys, self.method.seed))
        nodes = np.arange(places.size)
        (sets,) = bound.predict(nodes, [thresholds])
        named = sets.with_names(places.size, None, self.class_names)
        return prediction_rows(named, outputs.ids.take(nodes), outputs.values, nodes, self.schema)

    def local(self, near: pa.Array, places: IntArray, predicted: IntArray) -> Any:
        """Return the localiser of some targets, which are known by their places among the labelled nodes."""
        localiser: Any = self.method.localiser
        if isinstance(localiser, Everyone):
            return localiser.fit(self.reference)
        weights = hop_weights(localiser.decay, localiser.hops)
        numbers = np.full(self.predicted.size + 1, -1)
        numbers[self.reference.nodes] = np.arange(self.reference.nodes.size)
        lengths = near.value_lengths().fill_null(0).to_numpy()
        inside = near.flatten()
        return _Around(
            Weighting(weights, localiser.pool, localiser.alike),
            self.reference.scores,
            self.predicted[self.reference.nodes],
            numbers[places],
            predicted,
            np.append(0, np.cumsum(lengths)),
            numbers[inside.field("place").to_numpy()],
            inside.field("hop").to_numpy(),
        )


@dataclass(frozen=True, eq=False)
class _Around:
    """Reference nodes around some targets, weighted as `Hops` weights them."""

    weighting: Weighting
    scores: FloatArray  #: of all reference nodes
    classes: IntArray  #: their first choices
    own: IntArray  #: which of them each target is, −1 where it is none
    predicted: IntArray  #: each target's first choice
    starts: IntArray  #: where the near nodes of each target begin, and where the last end
    near: IntArray  #: reference nodes near the targets, one target after the other
    hop: IntArray  #: and their hops

    def thresholds(self, places: IntArray, cuts: list[Cut]) -> LocalThresholds:
        """Return the smallest score of each target whose mass each cut accepts."""
        values = np.full((len(cuts), self.own.size), np.inf)
        for i in range(self.own.size):
            scores, hop, pools = self._mass_of(i)
            ordered, mass = cumulative_mass(scores, hop, self.weighting.hops, **pools)
            mass, ordered = np.append(0.0, mass), np.append(-np.inf, ordered)
            for row, cut in zip(values, cuts, strict=True):
                reached = cut.accepts(mass, 1.0 + mass[-1])
                if reached.any():
                    row[i] = ordered[reached.argmax()]
        sizes = self._sizes()
        return LocalThresholds(values, sizes.support(self.weighting), sizes.effective_size(self.weighting))

    def ranks(self, places: IntArray, values: FloatArray) -> FloatArray:
        """Return the share of mass strictly below a value of each target."""
        shares = np.empty(values.size)
        for i, value in enumerate(values):
            scores, hop, pools = self._mass_of(i)
            shares[i] = local_rank(scores, hop, self.weighting.hops, value, **pools)
        return shares

    def _mass_of(self, i: int) -> tuple[FloatArray, IntArray, dict[str, Any]]:
        """Return the scores that count for a target, their hops, and the pools as `hop_quantile` takes them."""
        part = slice(self.starts[i], self.starts[i + 1])
        near, hop = self.near[part], self.hop[part]
        pool, alike = self.weighting.pool, self.weighting.alike
        if not (pool or alike):
            return self.scores[near], hop, {}
        every = np.zeros(self.scores.size, dtype=np.int64)  # far nodes are at no hop
        every[near] = hop
        others = np.arange(self.scores.size) != self.own[i]
        same = (self.classes == self.predicted[i])[others]
        return self.scores[others], every[others], {"pool": pool, "alike": alike, "same": same}

    def _sizes(self) -> Sizes:
        hops, targets = self.weighting.hops.size, self.own.size
        of = np.repeat(np.arange(targets), np.diff(self.starts))
        near = np.bincount(of * hops + self.hop - 1, minlength=targets * hops).reshape(targets, hops)
        itself = (self.own >= 0).astype(np.int64)
        same = None
        if self.weighting.alike:
            most = int(max(self.classes.max(initial=0), self.predicted.max(initial=0))) + 1
            same = np.bincount(self.classes, minlength=most)[self.predicted] - itself
        return Sizes(near, self.scores.size - itself, same)
