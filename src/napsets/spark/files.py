"""predict_files: files or directories in, a directory of Parquet out."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets._names import choose
from napsets.decay import Decay
from napsets.errors import FileFormatError, InvalidInputError
from napsets.scores import Score
from napsets.spark.batches import Progress, file_system, hadoop_path
from napsets.spark.predict import predict_sets
from napsets.spark.session import plain_errors, start_session
from napsets.spark.tables import named
from napsets.tables.ids import CANONICAL_INTEGER

__all__ = ["SetsSummary", "predict_files"]

_ID_COLUMNS = ("node", "source", "target")
_TEXT_COLUMNS = (*_ID_COLUMNS, "label")


@dataclass(frozen=True)
class SetsSummary:
    """What was written, in numbers.

    Attributes
    ----------
    nodes, empty, full, unsupported : int
        Sets; those without a label; those with every label; those whose neighbourhood has too little mass.
    capped : int
        Neighbourhoods that `max_neighbourhood` has cut.
    mean_size : float
        Labels a set.
    """

    nodes: int
    empty: int
    full: int
    unsupported: int
    capped: int
    mean_size: float


def predict_files(
    *,
    edges: str,
    probabilities: str,
    labels: str,
    nodes: str | None = None,
    output: str,
    hops: int = 2,
    decay: Decay = "uniform",
    score: Score | None = None,
    alpha: float = 0.1,
    seed: int = 0,
    master: str | None = None,
    undirected: bool = True,
    allow_empty: bool = True,
    max_neighbourhood: int | None = None,
    batch_size: int | None = None,
    ids: Literal["auto", "integer", "string"] = "auto",
    config: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> SetsSummary:
    """Read tables, predict on Spark, and write the sets as a directory of Parquet, whole or not at all.

    Parameters
    ----------
    edges, probabilities, labels, nodes : str
        Files or directories of Parquet, or of CSV (a name that ends in .csv or .csv.gz): paths, or addresses that
        Spark's workers can read (``hdfs://``, ``s3a://``). Columns as in `predict_sets`.
    output : str
        The directory to write; one that is there already is replaced at the end. What is written on the way lies
        beside it, in a hidden directory, and is removed at the end. After a kill it is still there, and the same call
        goes on from it.
    hops, decay, score, alpha, seed, undirected, allow_empty, max_neighbourhood, batch_size, progress
        As in `predict_sets`.
    master : str
        Spark's master: ``local[2]`` (the default), ``spark://host:port``, ``yarn``. A session that runs already is
        used instead.
    ids : {"auto", "integer", "string"}
        How to read ids. "auto" keeps the type of the file of probabilities; in CSV, integers if every id looks so.
    config : dict, optional
        Further settings for Spark.

    Returns
    -------
    SetsSummary
        What was written, in numbers.
    """
    choose("ids", ids, {"auto": 1, "integer": 1, "string": 1})
    if output.rstrip("/").lower().endswith((".csv", ".csv.gz", ".npz")):
        raise InvalidInputError(f"`output` must be a directory of Parquet; got {output}")
    paths = {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes}
    with _session(master or "local[2]", config) as spark, _beside(spark, output) as (work, written), plain_errors():
        tables = {name: None if path is None else _read(spark, name, path) for name, path in paths.items()}
        sets = predict_sets(
            spark,
            **_with_one_kind_of_ids(tables, paths, ids),
            hops=hops,
            decay=decay,
            score=score,
            alpha=alpha,
            seed=seed,
            undirected=undirected,
            allow_empty=allow_empty,
            class_names=_stored_class_names(probabilities),
            max_neighbourhood=max_neighbourhood,
            checkpoint_dir=work,
            batch_size=batch_size,
            progress=progress,
        )
        sets.write.parquet(written)
        return _summary(spark.read.parquet(written), tables["probabilities"])


@contextmanager
def _session(master: str, config: dict[str, str] | None) -> Iterator[SparkSession]:
    running = SparkSession.getActiveSession()
    spark = running or start_session(master, config)
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


@contextmanager
def _beside(spark: SparkSession, output: str) -> Iterator[tuple[str, str]]:
    """Give two directories beside `output`, for work and for the result; move the result there at the end.

    That for work has the same name each time, and stays when something goes wrong that is no fault of the input.
    """
    target = hadoop_path(spark, output.rstrip("/"))
    system = file_system(spark, target)
    mark = uuid.uuid4().hex[:8]
    hidden = f"{target.getParent()}/.{target.getName()}"
    work, written, old = (hadoop_path(spark, hidden + end) for end in (".work", f".{mark}", f".{mark}.old"))
    begun = system.exists(work)
    try:
        yield str(work), str(written)
        if system.exists(target):
            system.rename(target, old)
        if not system.rename(written, target):
            system.rename(old, target)  # what was there before stays
            raise OSError(f"could not rename {written} to {target}")
        system.delete(old, True)
        system.delete(work, True)
    except InvalidInputError:
        if not begun:
            system.delete(work, True)
        raise
    finally:
        system.delete(written, True)


def _is_csv(path: str) -> bool:
    return path.rstrip("/").lower().endswith((".csv", ".csv.gz"))


def _read(spark: SparkSession, name: str, path: str) -> DataFrame:
    try:
        if not _is_csv(path):
            return spark.read.parquet(path)
        # CSV has no types: ids and names stay text, so that 007 stays 007; everything else is a probability.
        table = spark.read.option("header", True).csv(path)
    except AnalysisException as error:
        told = str(error).splitlines()[0]
        raise FileFormatError(
            f"`{name}` must be a file or directory of Parquet or CSV; {path} is not: {told}"
        ) from error
    return table.select(*(named(c) if c in _TEXT_COLUMNS else named(c).cast("double").alias(c) for c in table.columns))


def _with_one_kind_of_ids(
    tables: dict[str, DataFrame | None], paths: dict[str, str | None], ids: str
) -> dict[str, DataFrame | None]:
    """Read ids as `ids` says; with "auto", text from CSV becomes integers where that of `probabilities` is."""
    probabilities = tables["probabilities"]
    assert probabilities is not None
    if "node" not in probabilities.columns:
        return tables  # which predict_sets refuses, in the words it has for that
    kind = ids
    if ids == "auto":
        typed = probabilities.schema["node"].dataType.simpleString() != "string"
        guessed = _is_csv(paths["probabilities"] or "") and _looks_integer(probabilities)
        kind = "integer" if typed or guessed else "string"
    result = {}
    for name, table in tables.items():
        if table is not None and (ids != "auto" or (_is_csv(paths[name] or "") and kind == "integer")):
            columns = [column for column in _ID_COLUMNS if column in table.columns]
            table = table.withColumns(
                {c: _as_integer(name, c) if kind == "integer" else sf.col(c).cast("string") for c in columns}
            )
        result[name] = table
    return result


def _looks_integer(probabilities: DataFrame) -> bool:
    return probabilities.where(~sf.col("node").rlike(CANONICAL_INTEGER)).isEmpty()


def _as_integer(name: str, column: str) -> Column:
    text = sf.col(column).cast("string")
    told = sf.concat(sf.lit(f"`{name}` must have integer ids, as `probabilities` has; the column {column} has "), text)
    whole = sf.when(text.rlike(CANONICAL_INTEGER), text.cast("bigint")).otherwise(sf.raise_error(told).cast("bigint"))
    return sf.when(text.isNotNull(), whole)


def _stored_class_names(path: str) -> Sequence[str] | None:
    """Return the class names that napsets keeps beside a list column, where the file is near enough to look."""
    import pyarrow.parquet

    local = Path(re.sub("^file:/+", "/", path))
    parts = sorted(local.rglob("*.parquet")) if local.is_dir() else [local]
    if _is_csv(path) or not parts or not parts[0].is_file():
        return None
    schema = pyarrow.parquet.read_schema(parts[0])
    about = json.loads((schema.metadata or {}).get(b"napsets", b"{}"))
    names = about.get("class_names") if isinstance(about, dict) and "probabilities" in schema.names else None
    return [str(name) for name in names] if names else None


def _summary(sets: DataFrame, probabilities: DataFrame | None) -> SetsSummary:
    assert probabilities is not None
    listed = "probabilities" in probabilities.columns
    capped = sf.count("capped_at") if "capped_at" in sets.columns else sf.lit(0)
    classes = sf.lit(len(probabilities.columns) - 1)
    if listed:
        first = probabilities.select(sf.size("probabilities")).head(1)
        classes = sf.lit(first[0][0] if first else 0)
    row = sets.agg(
        sf.count(sf.lit(1)),
        sf.count_if(sf.col("size") == 0),
        sf.count_if(sf.col("size") == classes),
        sf.count_if(sf.col("threshold") == float("inf")),
        capped,
        sf.coalesce(sf.avg("size"), sf.lit(0.0)),
    ).first()
    assert row is not None
    nodes, empty, full, unsupported, cut = (int(value) for value in row[:5])
    return SetsSummary(nodes, empty, full, unsupported, cut, float(row[5]))
