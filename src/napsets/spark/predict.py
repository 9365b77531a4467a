"""predict_sets: DataFrames in, a DataFrame of prediction sets out."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.checks.values import check_alpha, check_count, check_flag, check_progress, choose
from napsets.errors import InvalidInputError, warn
from napsets.files.reading import LabelsAre
from napsets.graph import Direction
from napsets.kernels.threads import Progress
from napsets.localisers import Everyone
from napsets.localisers.hops import Decay, hop_weights
from napsets.methods.method import Method
from napsets.methods.method import Settings as MethodSettings
from napsets.methods.table import make_method
from napsets.scores import APS
from napsets.spark.arrays import Arrays
from napsets.spark.graph_plan import GraphJob
from napsets.spark.join_tasks import SparkSettings
from napsets.spark.joins import Checkpoints, JoinsJob
from napsets.spark.mapped import Folder
from napsets.spark.plans import (
    GRAPH_PLAN,
    JOINS,
    Content,
    Plan,
    Size,
    check_method,
    choose_plan,
    contents_of,
    fingerprint_of,
    joins_know,
)
from napsets.spark.session import absolute, claimed, local_path, plain_errors
from napsets.spark.tables import Result, Tables, as_tables

_ALREADY = "`checkpoint_dir` must serve one job at a time; another is doing the same in {}"


def predict_sets(
    spark: SparkSession,
    edges: DataFrame,
    probabilities: DataFrame,
    labels: DataFrame,
    nodes: DataFrame | None = None,
    hops: int = 2,
    decay: Decay | None = None,
    score: Any = None,
    alpha: float = 0.1,
    seed: int = 0,
    *,
    pool: float | None = None,
    alike: float | None = None,
    exact: bool = False,
    by: Any = None,
    directed: bool = False,
    direction: Direction = "out",
    allow_empty: bool = True,
    class_names: Sequence[str] | None = None,
    max_neighbourhood: int | None = None,
    checkpoint_dir: str | None = None,
    batch_size: int | None = None,
    progress: bool | Progress | None = None,
    labels_are: LabelsAre = "auto",
    method: str | Method | None = None,
    plan: Plan = "auto",
) -> DataFrame:
    """Return the prediction sets of `nodes`, to the bit those that one machine gives.

    There are two plans. With the *graph on every worker*, tables become arrays, workers map them and run the kernels
    on their share of the nodes: as fast as one machine times their number, as long as the graph fits into the memory
    of each. With *joins* nothing has to fit anywhere, and everything takes many times as long, which a warning says.
    Which is taken, and why, goes to the logger ``napsets``.

    Without `checkpoint_dir`, arrays go to a folder of Spark's own where it runs on this machine alone; otherwise the
    driver makes them and Spark carries them to its executors. They go when the session ends. With a `checkpoint_dir`
    that all machines see, they go there, large tables pass the driver by, and the same call goes on where another
    ended.

    Joins without `checkpoint_dir` give a plan, and nothing runs before it is asked for, except for what all thresholds
    depend on: with `pool` or `alike` the scores of the labelled nodes, with `exact` the level. With it, targets are
    walked from in batches, each written before the next begins, so that a lost executor, or a lost driver, costs a
    batch. Nothing but counts, the number of classes and the level is brought to the driver; with `pool` or `alike` one
    score for each labelled node.

    Parameters
    ----------
    spark : SparkSession
        The session. Its workers need this package.
    edges : DataFrame
        Columns ``source`` and ``target``. Duplicates are merged and self-loops dropped. Nodes that only occur here
        are walked through.
    probabilities : DataFrame
        ``node`` and one column per class, or ``node`` and one list column ``probabilities``; a row for each labelled
        node and for each of `nodes`.
    labels : DataFrame
        ``node`` and ``label``, a class's name or number: the calibration nodes. A node's own label never counts for
        its own set.
    nodes : DataFrame, optional
        ``node``: what to predict, each once in the result. By default all nodes of `probabilities` without a label.
    hops, decay, score, alpha, seed
        As in `NAPS` and `NAPS.predict`; the score is `APS` by default.
    pool, alike, exact
        As in `NAPS`; None leaves a choice to the method. With an exact level, the metadata of the column ``alpha`` hold
        the ``level`` computed from the held-out labels, null if there are too few.
    by : str, Groups or array, optional
        As in `NAPS`: groups within which coverage is to hold, such as ``"class"`` or ``"degree"``. An array has one
        group per row of `probabilities`, in the order of the ids. Needs the graph on every worker.
    directed : bool
        With True, edges go from source to target.
    direction : {"out", "in", "both"}
        As in `NAPS`: whether hops lead to the targets of the edges that leave a node, to the sources of those that
        reach it, or both.
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
    progress : bool or callable
        True for a line on the terminal, or a function that is called as ``progress(done, total)`` in batches.
    labels_are : {"auto", "names", "indices"}
        What a label is. With "auto": names where every label is one, numbers from 0 where none is; a mixture is
        refused.
    method : str or Method, optional
        A method of the table by its name (`napsets.methods`), made from the settings here, or as it is. Those whose
        scores look at other nodes (``daps``, ``informed``, ``auto``) need the graph on every worker; nodes are then
        numbered in the order of their ids, in which sums are taken: one machine that has its rows in that order gives
        the same bits.
    plan : {"auto", "graph-on-every-worker", "joins"}
        By default the graph on every worker where it fits, otherwise joins.

    Returns
    -------
    DataFrame
        ``node``, ``labels`` (names, or integers as in `labels`), ``size``, ``threshold``, ``support``,
        ``effective_size``, ``alpha``, ``prediction`` and ``probability`` (the most probable label, and how probable it
        is); in no particular order.
    """
    settings = MethodSettings(
        APS() if score is None else score, hops, decay, pool, alike, seed, allow_empty, alpha=alpha, by=by,
        direction=direction,
    )  # fmt: skip
    inputs = {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes}
    options = Options(
        alpha, directed, class_names, max_neighbourhood, checkpoint_dir, batch_size, check_progress(progress),
        labels_are, plan,
    )  # fmt: skip
    return predict(spark, inputs, named_method(method, settings, exact=exact), options).sets


@dataclass(frozen=True, eq=False)
class Options:
    """How a call runs: what is not the method's, as in `predict_sets`."""

    alpha: float
    directed: bool = False
    class_names: Sequence[str] | None = None
    max_neighbourhood: int | None = None
    checkpoint_dir: str | None = None
    batch_size: int | None = None
    progress: Progress | None = None
    labels_are: LabelsAre = "auto"
    plan: Plan = "auto"
    #: Where the rows of probabilities stand in their files, if they come from some: nodes are then numbered as one
    #: machine that reads those files numbers them.
    order: Sequence[Column] = ()
    #: Whether labels that are text are known to be so from the type of their column, in a file that has types.
    labels_typed: bool = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        choose("labels_are", self.labels_are, dict.fromkeys(get_args(LabelsAre)))
        choose("plan", self.plan, dict.fromkeys(get_args(Plan)))
        for name in ("max_neighbourhood", "batch_size"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_count(name, getattr(self, name), minimum=1))
        if self.batch_size is not None and self.checkpoint_dir is None:
            raise InvalidInputError("`batch_size` must come with `checkpoint_dir`, where batches are written; got none")


def named_method(method: str | Method | None, settings: MethodSettings, *, exact: bool) -> Any:
    """Return a method as it is, or made from settings; without a name NAPS, at an exact level if that is wanted."""
    if method is None:
        level = "exact" if check_flag("exact", exact) else None
        return check_method(make_method("naps", settings, level=level))
    if exact:
        raise InvalidInputError("`exact` must be left out where a `method` is given, which says at which level")
    if isinstance(method, str):
        return check_method(make_method(method, settings))
    if settings.by is not None:
        raise InvalidInputError("`by` must be left out where `method` is a Method, which has its own groups")
    return check_method(method)


def predict(spark: SparkSession, inputs: dict[str, DataFrame | None], method: Method, options: Options) -> Result:
    """Do what `predict_sets` does with a method; return its level, what it chose, and the plan, too."""
    tables = as_tables(
        **inputs, class_names=options.class_names, order=options.order, labels_typed=options.labels_typed
    )
    checkpoint_dir, size, capped = options.checkpoint_dir, options.batch_size, options.max_neighbourhood is not None
    ordered = not joins_know(method)
    place = None if checkpoint_dir is None else absolute(spark, checkpoint_dir)
    folder = None if place is None else local_path(place)
    with plain_errors():
        # Without a place to keep anything, these tables are not needed again.
        lazy = place is None and (options.plan == JOINS or capped)
        contents = {} if lazy else _contents(inputs, tables, ordered=ordered, hashed=place is not None)
        rows = _size(contents, tables, options.directed, _direction(method))
        choice = choose_plan(spark, options.plan, method, rows, folder=folder, capped=capped)
    logging.getLogger("napsets").info("%s", choice)
    if choice.plan == JOINS:
        job = _job(spark, tables, method, options)
        if checkpoint_dir is None:
            return job.run(spark)
        path = f"{checkpoint_dir.rstrip('/')}/napsets-{job.fingerprint(contents, size)}"
        with claimed(spark, path, _ALREADY.format(path)):
            kept = Checkpoints(spark, path)
            result = replace(job, kept=kept, batch_size=size, progress=options.progress).run(spark)
        return replace(result, nodes=rows.nodes, tables=tables)
    route = choice.route
    if route.temporary:
        path = f"{spark.sparkContext._temp_dir}/napsets-{uuid.uuid4().hex[:16]}"
    else:
        settings = {"plan": GRAPH_PLAN, "method": method, "alpha": options.alpha, "classes": tables.class_names}
        settings |= {"labels are": options.labels_are, "directed": options.directed}
        settings |= {"batch size": size, "integers": tables.integer_labels}
        path = f"{folder}/napsets-{fingerprint_of(contents, settings)}"
    arrays = Arrays(spark, tables, Folder(path), route, options.directed, options.labels_are, ordered=ordered)
    with nullcontext() if route.temporary else claimed(spark, path, _ALREADY.format(path)):
        progress = options.progress or (lambda done, total: None)
        result = GraphJob(arrays, method, options.alpha, size, progress).run()
    return replace(result, tables=tables)


def _job(spark: SparkSession, tables: Tables, method: Method, options: Options) -> JoinsJob:
    """Return the job of joins."""
    if str(spark.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        warn("spark.sql.adaptive.enabled is off; it evens out skewed tasks")
    if tables.may_be_labelled:
        tables = replace(tables, nodes=tables.nodes.distinct())
    localiser: Any = method.localiser
    everyone = isinstance(localiser, Everyone)
    direction = _direction(method) if options.directed else "out"
    if direction == "in":  # hops against the edges are hops along turned ones
        turned = tables.edges.select(sf.col("target").alias("source"), sf.col("source").alias("target"))
        tables = replace(tables, edges=turned)
    settings = SparkSettings(
        weights=np.empty(0) if everyone else hop_weights(localiser.decay, localiser.hops),
        score=method.score,
        alpha=options.alpha,
        seed=method.seed,
        allow_empty=method.allow_empty,
        class_names=tables.class_names,
        labels_are=options.labels_are,
        integer_labels=tables.integer_labels,
        pool=0.0 if everyone else localiser.pool,
        alike=0.0 if everyone else localiser.alike,
        everyone=everyone,
        level=method.level,
    )
    directed = options.directed and direction != "both"
    return JoinsJob(tables, settings, directed, options.max_neighbourhood, reverse=direction == "in")


def _direction(method: Any) -> Direction:
    direction: Direction = getattr(getattr(method, "localiser", None), "direction", "out")
    return direction


def _contents(
    inputs: dict[str, DataFrame | None], tables: Tables, *, ordered: bool, hashed: bool
) -> dict[str, Content | None]:
    """Read each table once, to know it again; where the order of rows matters, as rows in their order."""
    used = {"edges": ["source", "target"], "labels": ["node", "label"], "nodes": ["node"]}
    read = {
        name: table if table is None or name not in used else table.select(*used[name])
        for name, table in inputs.items()
    }
    if ordered and tables.order != ["node"]:
        read["probabilities"] = tables.rows
    if not hashed:  # how many labels and nodes there are does not matter
        read = {name: read[name] for name in ("edges", "probabilities")}
    return contents_of(read, hashed=hashed)


def _size(contents: dict[str, Content | None], tables: Tables, directed: bool, direction: Direction) -> Size:
    edges, probabilities = contents.get("edges"), contents.get("probabilities")
    kind: Any = tables.rows.schema["probabilities"].dataType
    width = 4 if kind.elementType.simpleString() == "float" else 8
    nodes, stored = (0 if table is None else table.rows for table in (probabilities, edges))
    return Size(nodes, stored, len(tables.class_names), width, directed, direction, tables.id_type == "string")
