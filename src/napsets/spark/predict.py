"""predict_sets: DataFrames in, a DataFrame of prediction sets out."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.checks.arguments import check_alpha, check_count, check_flag
from napsets.checks.names import choose
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.graph import Direction
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.localisers.decay import Decay, hop_weights
from napsets.methods.method import Method
from napsets.methods.table import Settings as MethodSettings
from napsets.methods.table import make_method
from napsets.scores import APS
from napsets.spark import arrow, fingerprint
from napsets.spark.batches import Checkpoints
from napsets.spark.choice import JOINS, PLANS, Plan, Size, choose_plan
from napsets.spark.fingerprint import Content
from napsets.spark.graph_plan import GRAPH_PLAN, GraphJob, looks_around
from napsets.spark.job import Job, Result
from napsets.spark.mapped import Folder
from napsets.spark.methods import check_method, joins_know
from napsets.spark.places import absolute, local_path
from napsets.spark.session import plain_errors
from napsets.spark.tables import LabelsAre, Tables, as_tables

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

__all__ = ["hops_method", "named_method", "predict", "predict_sets"]


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
    directed: bool = False,
    direction: Direction = "out",
    allow_empty: bool = True,
    class_names: Sequence[str] | None = None,
    max_neighbourhood: int | None = None,
    checkpoint_dir: str | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
    labels_are: LabelsAre = "auto",
    method: str | Method | None = None,
    plan: Plan = "auto",
) -> DataFrame:
    """Return the prediction sets of `nodes`, to the bit those that one machine gives.

    There are two plans. With the *graph on every worker*, tables become arrays in `checkpoint_dir`, workers map them
    and run the kernels on their share of the nodes: as fast as one machine times their number, as long as the graph
    fits into the memory of each. With *joins* nothing has to fit anywhere. The first needs `checkpoint_dir`, a
    directory that all machines see; which is taken, and why, is told to the logger ``napsets``.

    Joins without `checkpoint_dir` give a plan, and nothing runs before it is asked for, but for what all thresholds
    depend on: with `pool` or `alike` the scores of the labelled nodes, with `exact` the level. With it, targets are
    walked from in batches, each written before the next begins, so that a lost executor, or a lost driver, costs a
    batch: the same call goes on where the other ended. So it does with the other plan, whose batches are shares of the
    nodes. Nothing but counts, the number of classes and the level is ever brought to the driver; joins with `pool` or
    `alike` bring one score for each labelled node.

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
    pool, alike, exact
        As in `NAPS`; None leaves a choice to the method. With an exact level, the metadata of the column ``alpha`` hold
        the ``level`` that the labels kept apart gave, null where they are too few for any.
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
    progress : callable, optional
        Called as ``progress(done, total)`` in batches.
    labels_are : {"auto", "names", "indices"}
        What a label is. With "auto": names where every label is one, numbers from 0 where none is; a mixture is
        refused.
    method : str or Method, optional
        A method of the table by its name (`napsets.methods`), made from the settings here, or as it is. Those whose
        scores look at other nodes (``daps``, ``informed``, ``auto``) need the graph on every worker, and so
        `checkpoint_dir`; nodes are then numbered in the order of their ids, in which sums are taken: one machine that
        has its rows in that order gives the same bits.
    plan : {"auto", "graph-on-every-worker", "joins"}
        By default the graph on every worker where it fits, otherwise joins.

    Returns
    -------
    DataFrame
        ``node``, ``labels`` (names, or integers as in `labels`), ``size``, ``threshold``, ``support``,
        ``effective_size``, ``alpha``, ``prediction`` and ``probability`` (the most probable label, and how probable it
        is); in no particular order.
    """
    said = {"score": score, "hops": hops, "decay": decay, "pool": pool, "alike": alike, "seed": seed}
    said |= {"direction": direction}
    made = named_method(method, said | {"allow_empty": allow_empty, "alpha": alpha}, exact=exact)
    return predict(
        spark,
        {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes},
        made,
        alpha=alpha,
        directed=directed,
        class_names=class_names,
        max_neighbourhood=max_neighbourhood,
        checkpoint_dir=checkpoint_dir,
        batch_size=batch_size,
        progress=progress,
        labels_are=labels_are,
        plan=plan,
    ).sets


def named_method(method: str | Method | None, said: dict[str, Any], *, exact: bool) -> Any:
    """Return the method that was asked for, by its name or by its settings; None leaves a setting to the method."""
    score = APS() if said["score"] is None else said["score"]
    if method is None:
        chosen = {name: said[name] for name in ("hops", "seed", "allow_empty", "direction")}
        chosen |= {name: said[name] for name in ("decay", "pool", "alike") if said[name] is not None}
        return check_method(hops_method(score=score, exact=exact, **chosen))
    if exact:
        raise InvalidInputError("`exact` must be left out where a `method` is given, which says at which level")
    if not isinstance(method, str):
        return check_method(method)
    return check_method(make_method(method, MethodSettings(**said | {"score": score})), method)


def hops_method(
    hops: int = 2,
    decay: Decay = "uniform",
    score: Any = None,
    seed: int = 0,
    *,
    pool: float = 0.0,
    alike: float = 0.0,
    exact: bool = False,
    allow_empty: bool = True,
    direction: Direction = "out",
) -> Method:
    """Return the method that `NAPS` with these settings is."""
    level = Exact() if check_flag("exact", exact) else Nominal()
    return Method(
        APS() if score is None else score, Hops(hops, decay, pool, alike, direction), level, seed, allow_empty
    )


def predict(
    spark: SparkSession,
    given: dict[str, DataFrame | None],
    method: Method,
    *,
    alpha: float,
    directed: bool = False,
    class_names: Sequence[str] | None = None,
    max_neighbourhood: int | None = None,
    checkpoint_dir: str | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
    labels_are: LabelsAre = "auto",
    plan: Plan = "auto",
    order: Sequence[Column] = (),
    labels_typed: bool = True,
) -> Result:
    """Do what `predict_sets` does with a method, and tell its level, what it chose, and by which plan.

    Parameters
    ----------
    spark, alpha, directed, class_names, max_neighbourhood, checkpoint_dir, batch_size, progress, labels_are, plan
        As in `predict_sets`.
    given : dict
        The tables by the names that `predict_sets` has for them.
    method : Method or Choosing
        What makes the sets; see `joins_know` for those that joins can do.
    order : sequence of Column
        Where the rows of probabilities stand in their files, if they come from some: nodes are then numbered as one
        machine that reads those files numbers them.
    labels_typed : bool
        Whether labels that are text were said to be, by the type of their column in a file that has types.
    """
    choose("labels_are", labels_are, {"auto": 1, "names": 1, "indices": 1})
    choose("plan", plan, PLANS)
    check_alpha(alpha)
    chosen = check_method(method)
    tables = as_tables(**given, class_names=class_names, order=order, labels_typed=labels_typed)
    cap = None if max_neighbourhood is None else check_count("max_neighbourhood", max_neighbourhood, minimum=1)
    size = None if batch_size is None else check_count("batch_size", batch_size, minimum=1)
    if size is not None and checkpoint_dir is None:
        raise InvalidInputError("`batch_size` must come with `checkpoint_dir`, where batches are written; got none")
    joins = joins_know(chosen)
    if checkpoint_dir is None:
        if plan == GRAPH_PLAN or not joins:
            told = f"the plan {GRAPH_PLAN}" if joins else "a method whose scores look at other nodes"
            raise InvalidInputError(
                f"`checkpoint_dir` must be given to {told}: a directory that all machines see; got none"
            )
        return _job(spark, tables, chosen, alpha, labels_are, directed, cap).run(spark)
    with plain_errors():
        contents = _contents(given, tables, ordered=looks_around(chosen))
        place = absolute(spark, checkpoint_dir)
        taken = choose_plan(
            spark, plan, chosen, _size(contents, tables, directed, _direction(chosen)), folder=local_path(place),
            joins=joins, capped=cap is not None,
        )  # fmt: skip
    logging.getLogger("napsets").info("%s", taken)
    if taken.plan == JOINS:
        job = _job(spark, tables, chosen, alpha, labels_are, directed, cap)
        return job.run(spark, Checkpoints(spark, checkpoint_dir, job.fingerprint(contents, size)), size, progress)
    asked = {"plan": GRAPH_PLAN, "method": chosen, "alpha": alpha, "classes": tables.class_names}
    asked |= {"labels are": labels_are, "directed": directed, "batch size": size, "integers": tables.integer_labels}
    store = Folder(f"{place}/napsets-{fingerprint.of(contents, asked)}")
    return GraphJob(spark, tables, chosen, alpha, directed, labels_are, store, size, progress).run()


def _job(
    spark: SparkSession, tables: Tables, method: Method, alpha: float, labels_are: str, directed: bool, cap: int | None
) -> Job:
    """Return the job of joins."""
    if str(spark.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        warnings.warn("spark.sql.adaptive.enabled is off; it evens out skewed tasks", NapsetsWarning, stacklevel=4)
    localiser: Any = method.localiser
    everyone = isinstance(localiser, Everyone)
    direction = _direction(method) if directed else "out"
    if direction == "in":  # hops against the edges are hops along turned ones
        turned = tables.edges.select(sf.col("target").alias("source"), sf.col("source").alias("target"))
        tables = replace(tables, edges=turned)
    settings = arrow.Settings(
        weights=np.empty(0) if everyone else hop_weights(localiser.decay, localiser.hops),
        score=method.score,
        alpha=check_alpha(alpha),
        seed=method.seed,
        allow_empty=method.allow_empty,
        class_names=tables.class_names,
        labels_are=labels_are,
        integer_labels=tables.integer_labels,
        pool=0.0 if everyone else localiser.pool,
        alike=0.0 if everyone else localiser.alike,
        everyone=everyone,
        level=method.level,
    )
    return Job(tables, settings, directed and direction != "both", cap, reverse=direction == "in")


def _direction(method: Any) -> Direction:
    found: Direction = getattr(getattr(method, "localiser", None), "direction", "out")
    return found


def _contents(given: dict[str, DataFrame | None], tables: Tables, *, ordered: bool) -> dict[str, Content | None]:
    """Read each table once, to know it again; where the order of rows matters, as rows in their order."""
    used = {"edges": ["source", "target"], "labels": ["node", "label"], "nodes": ["node"]}
    read = {
        name: table if table is None or name not in used else table.select(*used[name]) for name, table in given.items()
    }
    if ordered and tables.order != ["node"]:
        read["probabilities"] = tables.rows
    return {name: None if table is None else fingerprint.content(table) for name, table in read.items()}


def _size(contents: dict[str, Content | None], tables: Tables, directed: bool, direction: Direction) -> Size:
    edges, probabilities = contents["edges"], contents["probabilities"]
    assert edges is not None
    assert probabilities is not None
    kind: Any = tables.rows.schema["probabilities"].dataType
    width = 4 if kind.elementType.simpleString() == "float" else 8
    return Size(probabilities.rows, edges.rows, len(tables.class_names), width, directed, direction)
