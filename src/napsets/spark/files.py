"""predict_files: files or directories in, a directory of Parquet out."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.checks.values import check_progress, choose
from napsets.errors import FileFormatError
from napsets.files.formats import SIDECAR, open_table
from napsets.files.ids import CANONICAL_INTEGER
from napsets.files.outputs import LIST_COLUMN
from napsets.files.reading import IdKind, LabelsAre
from napsets.files.writers import describe_settings
from napsets.graph import Direction
from napsets.groups import GROUPS, ByGroup
from napsets.kernels.threads import Progress
from napsets.levels import Nominal
from napsets.localisers import Hops
from napsets.localisers.hops import Decay, hop_weights
from napsets.methods.method import Method
from napsets.methods.method import Settings as MethodSettings
from napsets.methods.table import METHODS, make_method
from napsets.predictions import SetsSummary
from napsets.scores import APS
from napsets.scores.base import score_name
from napsets.spark.plans import Plan
from napsets.spark.predict import Options, named_method, predict
from napsets.spark.session import (
    absolute,
    beside,
    check_early,
    check_target,
    literally,
    local_path,
    plain_errors,
    start_session,
    write_text,
)
from napsets.spark.tables import Result, named

_ID_COLUMNS = ("node", "source", "target")
_TEXT_COLUMNS = (*_ID_COLUMNS, "label")


def predict_files(
    *,
    edges: str,
    probabilities: str,
    labels: str,
    nodes: str | None = None,
    output: str,
    hops: int = 2,
    decay: Decay | None = None,
    score: Any = None,
    alpha: float = 0.1,
    seed: int = 0,
    method: str | Method | None = None,
    pool: float | None = None,
    alike: float | None = None,
    exact: bool = False,
    by: Any = None,
    master: str | None = None,
    directed: bool = False,
    direction: Direction = "out",
    allow_empty: bool = True,
    max_neighbourhood: int | None = None,
    batch_size: int | None = None,
    ids: IdKind = "auto",
    labels_are: LabelsAre = "auto",
    config: dict[str, str] | None = None,
    progress: bool | Progress | None = None,
    plan: Plan = "auto",
    name: str | None = None,
) -> SetsSummary:
    """Read tables, predict on Spark, and write the sets as a directory of Parquet, whole or not at all.

    Parameters
    ----------
    edges, probabilities, labels, nodes : str
        Files or directories of Parquet, or of CSV (a name that ends in .csv or .csv.gz): paths, or addresses that
        Spark's workers can read (``hdfs://``, ``s3a://``). Columns as in `predict_sets`.
    output : str
        The directory to write. One that napsets wrote before is replaced at the end; any other that holds something is
        refused, and so is one that holds an input or lies in one. Beside the rows it has a file ``_napsets.json`` with
        the version, the classes and the settings; of an exact level also what it came to (``exact_level``, null where
        there are too few labels for any). What is written on the way is next to it, in a hidden directory, and is
        removed at the end. After a kill it is still there, and the same call continues from it.
    hops, decay, score, alpha, seed, pool, alike, exact
        As in `predict_sets`; None leaves a choice to the method.
    by : str, Groups or array, optional
        As in `predict_sets`; an array has one group per row of `probabilities`, in the order of the rows.
    method : str or Method, optional
        A method of the table by its name (`napsets.methods`), made from the settings here, or as it is. Joins know
        those with one threshold for all or with hops, at a nominal or an exact level, whose score looks at single rows;
        the graph on every worker knows all.
    directed, direction, allow_empty, max_neighbourhood, batch_size, progress
        As in `predict_sets`.
    master : str
        Spark's master: ``local[2]`` (the default), ``spark://host:port``, ``yarn``. A session that runs already is
        used instead.
    labels_are : {"auto", "names", "indices"}
        As in `predict_sets`.
    ids : {"auto", "integer", "string"}
        How to read ids. "auto" keeps the type of the file of probabilities; in CSV, integers if every id looks so.
    config : dict, optional
        Further settings for Spark.
    plan : {"auto", "graph-on-every-worker", "joins"}
        As in `predict_sets`. Arrays go next to the output where all machines see that directory; otherwise Spark
        carries them. Nodes are numbered in the order of the rows of `probabilities`, as one machine numbers them.
    name : str, optional
        What `_napsets.json` calls a method that is passed as it is.

    Returns
    -------
    SetsSummary
        What was written, in numbers.
    """
    choose("ids", ids, dict.fromkeys(get_args(IdKind)))
    # The folder for checkpoints, next to the output, is only known once Spark runs.
    options = Options(
        alpha, directed, None, max_neighbourhood, output, batch_size, check_progress(progress), labels_are, plan
    )
    wanted = MethodSettings(
        APS() if score is None else score, hops, decay, pool, alike, seed, allow_empty, alpha=alpha, by=by,
        direction=direction,
    )  # fmt: skip
    chosen = named_method(method, wanted, exact=exact)
    method_name = name or method or ("naps-exact" if exact else "naps")
    check_early(output, configured=bool(config))
    locations = {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes}
    with _session(master or "local[2]", config) as spark:
        target = absolute(spark, output)
        paths = {name: None if path is None else absolute(spark, path) for name, path in locations.items()}
        csv = {name: _is_csv(path or "") for name, path in paths.items()}
        check_target(spark, target, paths.values())
        with beside(spark, target) as (work, written), plain_errors():
            read = {name: None if path is None else _read(spark, name, path) for name, path in paths.items()}
            tables = _with_one_kind_of_ids(read, csv, ids)
            options = replace(
                options,
                checkpoint_dir=work,
                class_names=_stored_class_names(paths["probabilities"] or ""),
                order=_order(csv=csv["probabilities"]),
                labels_typed=not csv["labels"],
            )
            result = predict(spark, tables, chosen, options)
            if result.choice is not None:
                logging.getLogger("napsets").info("%s chose %s", name or method, result.choice)
            _write_sets(result, written)
            settings = {
                **({"method": method_name} if isinstance(method_name, str) else {}),
                "alpha": float(alpha),
                **_recorded(chosen, result.level),
                **_beyond(method_name, chosen),
                "directed": bool(directed),
                "ids": ids,
                "labels_are": labels_are,
                "skip_unknown": False,
                "plan": result.plan,
                **({} if result.choice is None else {"choice": result.choice}),
            } | ({} if max_neighbourhood is None else {"max_neighbourhood": max_neighbourhood})
            assert result.tables is not None
            known = result.tables.labels.count() if result.labelled is None else result.labelled
            names = list(result.tables.class_names)
            about = describe_settings(
                settings, names, nodes=result.nodes or 0, calibration=known, **_described(chosen, known)
            )
            write_text(spark, f"{written}/{SIDECAR}", json.dumps(about))
            return _summary(spark, written, len(names))


def _described(method: Any, labelled: int) -> dict[str, Any]:
    """Return how many labels set the level and the method itself; nothing of one that chooses on the workers."""
    if not isinstance(method, Method):
        return {}
    held_out = labelled - method.level.reference_size(labelled) if method.level.keeps_apart else labelled
    return {"level_labels": held_out, "method": method}


def _beyond(name: Any, method: Any) -> dict[str, Any]:
    """Return groups and level of a method where those of its name are others."""
    if not isinstance(method, Method) or not isinstance(name, str) or name not in METHODS:
        return {}
    usual, settings = make_method(name), {}
    if method.groups != getattr(usual, "groups", None) and not isinstance(method.groups, ByGroup):
        settings["by"] = GROUPS.name_of(type(method.groups))
    if type(method.level) is not type(getattr(usual, "level", None)):
        settings["level"] = "nominal" if isinstance(method.level, Nominal) else "exact"
    return settings


def _order(*, csv: bool) -> list[Column]:
    """Return where a row stands: in which file, at which place; as one machine reads them, one file after the other."""
    file = sf.split(sf.col("_metadata.file_path"), "/").alias("_file")
    if not csv:
        return [file, sf.col("_metadata.row_index").alias("_row")]
    # Rows of a block are read by one task, one after the other.
    block = sf.col("_metadata.file_block_start").alias("_block")
    return [file, block, sf.monotonically_increasing_id().alias("_row")]


def _write_sets(result: Result, target: str) -> None:
    """Write the sets as a directory of Parquet; files that hold them already become a part of it."""
    folder = local_path(target.removeprefix("file:"))
    if not result.files or folder is None:
        result.sets.write.parquet(target)
        return
    os.makedirs(folder)
    for file in result.files:
        place = os.path.join(folder, os.path.basename(file))
        try:
            os.link(file, place)  # it stays where it is too, until all is in its place
        except OSError:  # no links on this file system
            shutil.copyfile(file, place)
    Path(folder, "_SUCCESS").touch()


def _recorded(method: Any, level: float | None) -> dict[str, Any]:
    """Return the settings of a method as they turned out; what it does not know is not there."""
    settings: dict[str, Any] = {"seed": method.seed, "allow_empty": method.allow_empty}
    exact = {"exact": True, "exact_level": None if level is None or math.isinf(level) else level}
    if not isinstance(method, Method):
        return settings if level is None else settings | exact
    settings = {"score": score_name(method.score)} | settings
    localiser = method.localiser
    if isinstance(localiser, Hops):
        decay = localiser.decay
        settings["hops"] = localiser.hops
        settings["decay"] = decay if isinstance(decay, str) else hop_weights(decay, localiser.hops).tolist()
        settings |= {"pool": localiser.pool, "alike": localiser.alike}
        settings |= {} if localiser.direction == "out" else {"direction": localiser.direction}
    if isinstance(method.level, Nominal):
        return settings | {"fallback": method.level.fallback}
    return settings | exact


@contextmanager
def _session(master: str, config: dict[str, str] | None) -> Iterator[SparkSession]:
    running = SparkSession.getActiveSession()
    spark = running or start_session(master, config)
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def _is_csv(path: str) -> bool:
    return path.rstrip("/").lower().endswith((".csv", ".csv.gz"))


def _read(spark: SparkSession, name: str, path: str) -> DataFrame:
    try:
        if not _is_csv(path):
            return spark.read.parquet(path)
        # CSV has no types: ids and names stay text, so that 007 stays 007; everything else is a probability.
        # A quote within quotes is doubled, and nothing but an empty cell is missing, as on one machine.
        table = spark.read.option("header", True).option("escape", '"').csv(path)
    except (AnalysisException, Py4JJavaError) as error:  # there is no table, or a damaged one
        # The last cause is the one that names what is wrong; before it come Spark's own layers.
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
        reason = causes[-1].partition("Exception: ")[2] if causes else str(error).splitlines()[0]
        raise FileFormatError(
            f"`{name}` must be a file or directory of Parquet or CSV; {path} is not: {reason}"
        ) from error
    return table.select(*(named(c) if c in _TEXT_COLUMNS else named(c).cast("double").alias(c) for c in table.columns))


def _with_one_kind_of_ids(
    tables: dict[str, DataFrame | None], csv: dict[str, bool], id_kind: str
) -> dict[str, DataFrame | None]:
    """Read ids as `id_kind` says; with "auto", text from CSV becomes integers where that of `probabilities` is."""
    probabilities = tables["probabilities"]
    assert probabilities is not None
    if "node" not in probabilities.columns:
        return tables  # which predict_sets refuses, in the words it has for that
    kind = id_kind
    if id_kind == "auto":
        typed = probabilities.schema["node"].dataType.simpleString() != "string"
        odd = probabilities.where(~sf.col("node").rlike(CANONICAL_INTEGER))
        guessed = csv["probabilities"] and odd.isEmpty()
        kind = "integer" if typed or guessed else "string"
    result = {}
    for name, table in tables.items():
        if table is not None and (id_kind != "auto" or (csv[name] and kind == "integer")):
            columns = [column for column in _ID_COLUMNS if column in table.columns]
            table = table.withColumns(
                {c: _as_integer(name, c) if kind == "integer" else sf.col(c).cast("string") for c in columns}
            )
        result[name] = table
    return result


def _as_integer(name: str, column: str) -> Column:
    text = sf.col(column).cast("string")
    refusal = sf.lit(f"`{name}` must have integer ids, as `probabilities` has; the column {column} has ")
    stop = sf.raise_error(sf.concat(refusal, text)).cast("bigint")
    return sf.when(text.isNotNull(), sf.when(text.rlike(CANONICAL_INTEGER), text.cast("bigint")).otherwise(stop))


def _stored_class_names(path: str) -> Sequence[str] | None:
    """Return the names of the classes of a list column, from the metadata or by number; None if far."""
    local = local_path(path)
    if local is None or _is_csv(path) or not (Path(local).is_file() or any(Path(local).rglob("*.parquet"))):
        return None
    table = open_table("probabilities", local, kind="parquet")
    if LIST_COLUMN not in table.columns:
        return None
    names: list[str] | None = table.about().get("class_names")
    if names is None:  # so that no job has to look at the first row
        first = next((batch.column(0)[0].as_py() for batch in table.batches([LIST_COLUMN], rows=1)), None)
        names = None if first is None else [str(y) for y in range(len(first))]
    return names


def _summary(spark: SparkSession, written: str, classes: int) -> SetsSummary:
    """Sum up the sets of a folder: here what lies on this machine, which starts no job, otherwise on Spark."""
    none = SetsSummary(np.zeros(classes + 1, dtype=np.int64), 0, 0)
    folder = local_path(written.removeprefix("file:"))
    if folder is not None:
        return sum((_file_summary(path, classes) for path in Path(folder).glob("part-*.parquet")), none)
    sets = spark.read.parquet(literally(written))
    capped = sf.count("capped_at") if "capped_at" in sets.columns else sf.lit(0)
    rows = sets.groupBy("size").agg(
        sf.count(sf.lit(1)),
        sf.count_if(sf.col("threshold") == float("inf")),
        sf.count_if(sf.col("support") == 0),
        capped,
    )
    sizes = np.arange(classes + 1)
    return sum((SetsSummary(nodes * (sizes == size), *others) for size, nodes, *others in rows.collect()), none)


def _file_summary(path: Path, classes: int) -> SetsSummary:
    table = pq.ParquetFile(path).read(columns=["size", "threshold", "support", "capped_at"])
    size, threshold, support = (table[name].to_numpy() for name in ("size", "threshold", "support"))
    cut = len(table["capped_at"].drop_null()) if "capped_at" in table.column_names else 0
    counts = np.bincount(size, minlength=classes + 1)
    return SetsSummary(counts, int(np.isposinf(threshold).sum()), int((support == 0).sum()), cut)
