"""predict_sets: DataFrames in, a DataFrame of prediction sets out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from napsets.checks.arguments import check_alpha, check_count, check_flag
from napsets.checks.names import choose
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.localisers.decay import Decay, hop_weights
from napsets.methods.method import Method
from napsets.scores import APS
from napsets.spark import arrow
from napsets.spark.batches import Checkpoints
from napsets.spark.job import Job, Result
from napsets.spark.methods import check_method
from napsets.spark.session import plain_errors
from napsets.spark.tables import LabelsAre, as_tables

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

__all__ = ["hops_method", "predict", "predict_sets"]


def predict_sets(
    spark: SparkSession,
    edges: DataFrame,
    probabilities: DataFrame,
    labels: DataFrame,
    nodes: DataFrame | None = None,
    hops: int = 2,
    decay: Decay = "uniform",
    score: Any = None,
    alpha: float = 0.1,
    seed: int = 0,
    *,
    pool: float = 0.0,
    alike: float = 0.0,
    exact: bool = False,
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

    Without `checkpoint_dir` the result is a plan and nothing runs before it is asked for, but for what all thresholds
    depend on: with `pool` or `alike` the scores of the labelled nodes, with `exact` the level. With it, targets are
    walked from in batches, each written before the next begins, so that a lost executor, or a lost driver, costs a
    batch: the same call goes on where the other ended. The sets are then a plan over what was written. Nothing but
    counts, the number of classes and the level is ever brought to the driver, and with `pool` or `alike` one score for
    each labelled node.

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
        As in `NAPS` and `NAPS.predict`; the score is `APS` by default, and must look at a node's own row alone.
    pool, alike, exact
        As in `NAPS`. With `exact`, the metadata of the column ``alpha`` hold the ``level`` that the labels kept apart
        gave, null where they are too few for any.
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
    method = hops_method(hops, decay, score, seed, pool=pool, alike=alike, exact=exact, allow_empty=allow_empty)
    return predict(
        spark,
        {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes},
        method,
        alpha=alpha,
        directed=directed,
        class_names=class_names,
        max_neighbourhood=max_neighbourhood,
        checkpoint_dir=checkpoint_dir,
        batch_size=batch_size,
        progress=progress,
        labels_are=labels_are,
    ).sets


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
) -> Method:
    """Return the method that `NAPS` with these settings is."""
    level = Exact() if check_flag("exact", exact) else Nominal()
    return Method(APS() if score is None else score, Hops(hops, decay, pool, alike), level, seed, allow_empty)


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
) -> Result:
    """Do what `predict_sets` does with a method, whose score looks at rows, and tell its level.

    Parameters
    ----------
    spark, alpha, directed, class_names, max_neighbourhood, checkpoint_dir, batch_size, progress, labels_are
        As in `predict_sets`.
    given : dict
        The tables by the names that `predict_sets` has for them.
    method : Method
        Everyone or Hops, at a nominal or an exact level; see `check_method`.
    """
    choose("labels_are", labels_are, {"auto": 1, "names": 1, "indices": 1})
    chosen = check_method(method)
    tables = as_tables(**given, class_names=class_names)
    localiser: Any = chosen.localiser
    everyone = isinstance(localiser, Everyone)
    settings = arrow.Settings(
        weights=np.empty(0) if everyone else hop_weights(localiser.decay, localiser.hops),
        score=chosen.score,
        alpha=check_alpha(alpha),
        seed=chosen.seed,
        allow_empty=chosen.allow_empty,
        class_names=tables.class_names,
        labels_are=labels_are,
        pool=0.0 if everyone else localiser.pool,
        alike=0.0 if everyone else localiser.alike,
        everyone=everyone,
        level=chosen.level,
    )
    cap = None if max_neighbourhood is None else check_count("max_neighbourhood", max_neighbourhood, minimum=1)
    size = None if batch_size is None else check_count("batch_size", batch_size, minimum=1)
    if size is not None and checkpoint_dir is None:
        raise InvalidInputError("`batch_size` must come with `checkpoint_dir`, where batches are written; got none")
    if str(spark.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        warnings.warn("spark.sql.adaptive.enabled is off; it evens out skewed tasks", NapsetsWarning, stacklevel=3)
    job = Job(tables, settings, directed, cap)
    if checkpoint_dir is None:
        return job.run(spark)
    with plain_errors():
        name = job.fingerprint(given, size)
    return job.run(spark, Checkpoints(spark, checkpoint_dir, name), size, progress)
