"""predict_sets: DataFrames in, a DataFrame of prediction sets out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from pyspark.sql import DataFrame, SparkSession

from napsets.checks.values import check_alpha, choose
from napsets.errors import InvalidInputError
from napsets.files.reading import PLAIN, Reading
from napsets.methods.method import Method
from napsets.methods.table import make_method
from napsets.predictions import PredictionIntervals
from napsets.scores import prediction_type
from napsets.spark.graph_plan import Request, SparkSets, predict_on_graph
from napsets.spark.joins import check_joins, predict_by_joins
from napsets.spark.session import plain_errors

Plan = Literal["graph", "joins"]


def predict_sets(
    spark: SparkSession,
    edges: DataFrame,
    probabilities: DataFrame,
    labels: DataFrame,
    nodes: DataFrame | None = None,
    method: str | Method = "naps",
    alpha: float = 0.1,
    *,
    evidence: DataFrame | None = None,
    features: DataFrame | None = None,
    p_values: bool | Literal["smoothed"] = False,
    plan: Plan = "graph",
    reading: Reading = PLAIN,
) -> DataFrame:
    """Return the prediction sets of `nodes`, bit for bit those of one machine.

    With the plan *graph* the tables come to the driver, which calibrates and broadcasts the calibrated method; every
    worker predicts a part of the nodes. All methods are available, and the graph must fit into the memory of the driver
    and of each Python worker. With the plan *joins* edges and probabilities stay distributed, and only labelled nodes
    come to the driver; neighbourhoods are searched by joins, which is slower by far. It knows ``split`` and ``naps``
    with any row score, decay, pool, alike, direction and with a nominal or exact level.

    Tables are read when this is called; the sets are predicted when they are used.

    Parameters
    ----------
    spark : SparkSession
        The session. Its workers need this package.
    edges : DataFrame
        Columns ``source`` and ``target``, ids of `probabilities`. Duplicates are merged and self-loops dropped.
    probabilities : DataFrame
        ``node`` and one column per class, or ``node`` and one list column ``probabilities``; one row per node.
    labels : DataFrame
        ``node`` and ``label``, a class's name or number: the calibration nodes. A node's own label never counts for
        its own set.
    nodes : DataFrame, optional
        ``node``: the nodes to predict. By default all nodes of `probabilities` without a label.
    method : str or Method
        The name of a method (`napsets.methods`), or a method with its settings, such as ``ns.NAPS(hops=3)``. Nodes are
        numbered in the order of their ids: groups that are an array are in that order, and one machine gives the same
        bits with its rows in that order.
    alpha : float
        Error rate.
    evidence : DataFrame, optional
        ``node`` and ``label``: labels of any origin, to learn from. All of `labels` then sets the level.
    features : DataFrame, optional
        ``node`` and one column per feature, or ``node`` and one list column ``features``, for methods that compare
        nodes; with the plan *graph* alone.
    p_values : bool or "smoothed"
        Whether sets have the p-value of every class, in a column ``p_values``; with the plan *graph* alone.
    plan : {"graph", "joins"}
        See above.
    reading : Reading
        How the tables are read: ``directed``, ``skip_unknown``, ``logits`` and the like.

    Returns
    -------
    DataFrame
        ``node``, ``labels`` (names, or integers as in `labels`), ``size``, ``threshold``, ``support``,
        ``effective_size``, ``alpha``, ``prediction`` and ``probability`` (the most probable label, and how probable it
        is); in no particular order. With an exact level, the metadata of the column ``alpha`` hold the ``level``, null
        if there are too few labels; of a method that chooses, they hold its ``choice``.
    """
    needed = {"edges": edges, "probabilities": probabilities, "labels": labels}
    tables = {**needed, "nodes": nodes, "evidence": evidence, "features": features}
    for name, table in tables.items():
        if not (isinstance(table, DataFrame) or (table is None and name not in needed)):
            raise InvalidInputError(f"`{name}` must be a Spark DataFrame; got {type(table).__name__}")
    request = check_request(method, alpha, plan, reading, p_values)
    if features is not None and (plan == "joins" or not request.method.uses_features):
        must = "left out with the plan joins" if plan == "joins" else "left out of a method that compares no nodes"
        raise InvalidInputError(f"`features` must be {must}; 'auto', 'informed' and 'snaps' use them on the plan graph")
    return predict(spark, {name: table for name, table in tables.items() if table is not None}, request).sets


def predict(spark: SparkSession, tables: Mapping[str, Any], request: Request) -> SparkSets:
    """Predict from DataFrames; with the plan graph, a table may also be the path of a file that the driver sees."""
    renamed = {
        name: _renamed(name, table, request.reading) if isinstance(table, DataFrame) else table
        for name, table in tables.items()
    }
    with plain_errors():
        result = (predict_by_joins if request.plan == "joins" else predict_on_graph)(spark, renamed, request)
    if "choice" in result.facts:
        logging.getLogger("napsets").info("chose %s", result.facts["choice"])
    return replace(result, sets=result.sets.withMetadata("alpha", result.facts)) if result.facts else result


def check_request(method: Any, alpha: float, plan: str, reading: Reading, p_values: Any) -> Request:
    """Return the request to Spark, or raise if the plan cannot serve it."""
    request = Request(spark_method(method), check_alpha(alpha), reading, p_values, plan)
    if choose("plan", plan, {name: name for name in get_args(Plan)}) == "joins":
        check_joins(request.method, p_values, reading)
    return request


def spark_method(method: Any) -> Any:
    """Return a method that Spark can run, from itself, its name or a predictor."""
    made = make_method(method) if isinstance(method, str) else method
    if not callable(getattr(made, "calibrate_rows", None)):
        raise InvalidInputError(f"`method` must be a Method, or the name of one; got {type(method).__name__}")
    if prediction_type(getattr(made, "score", None)) is PredictionIntervals:
        raise InvalidInputError("`score` must be one of labels on Spark; intervals of numbers are made on one machine")
    return made


def _renamed(name: str, table: DataFrame, reading: Reading) -> DataFrame:
    """Return a table with its columns called as napsets calls them."""
    return table.toDF(*reading.renamed(name, table.columns))
