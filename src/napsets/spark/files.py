"""predict_files: files or folders in, a folder of Parquet out."""

from __future__ import annotations

import json
import math
import os
import re
from contextlib import closing
from typing import Any, Literal

import numpy as np
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.formats import SIDECAR
from napsets.files.paths import check_apart
from napsets.files.reading import PLAIN, Reading
from napsets.files.writers import describe_settings
from napsets.methods.method import Method
from napsets.predictions import SetsSummary
from napsets.spark.graph_plan import Request, SparkSets
from napsets.spark.predict import Plan, check_request, predict
from napsets.spark.session import plain_errors, running_session


def predict_files(
    edges: str,
    probabilities: str,
    labels: str,
    output: str,
    nodes: str | None = None,
    method: str | Method = "naps",
    alpha: float = 0.1,
    *,
    evidence: str | None = None,
    p_values: bool | Literal["smoothed"] = False,
    plan: Plan = "graph",
    reading: Reading = PLAIN,
) -> SetsSummary:
    """Read files, predict on Spark, and write the sets as a folder of Parquet, as Spark writes it.

    The running session is used, or one is started on this machine (`start_session`).

    Parameters
    ----------
    edges, probabilities, labels, nodes, evidence : str
        Files or folders, with columns as in `predict_sets`. With the plan *graph*, the driver reads those that it sees
        as `napsets predict` reads them, and nodes are numbered in the order of the rows; others, such as ``hdfs://``,
        are read by Spark, as are all with the plan *joins*: these must be Parquet.
    output : str
        The folder to write, a path or an address that Spark writes to. It must not exist. In addition to the rows it
        has a file ``_napsets.json`` with the version, the classes and the method.
    method, alpha, p_values, plan
        As in `predict_sets`.
    reading : Reading
        How files are read.

    Returns
    -------
    SetsSummary
        What was written, in numbers.
    """
    request = check_request(method, alpha, plan, reading, p_values)
    paths = {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes, "evidence": evidence}
    # Java keeps the folder in which it was started, so paths of this machine are made absolute.
    wanted = {name: os.path.abspath(path) if os.path.exists(path) else path for name, path in paths.items() if path}
    output = os.path.abspath(output) if os.path.isdir(os.path.dirname(os.path.abspath(output))) else output
    check_folder(output)
    check_apart(output, [path for path in wanted.values() if os.path.exists(path)])
    with running_session() as spark, plain_errors():
        local = plan == "graph"
        tables = {name: path if local and os.path.exists(path) else _read(spark, name, path)
                  for name, path in wanted.items()}  # fmt: skip
        result = predict(spark, tables, request)
        try:
            result.sets.write.parquet(output)
        except AnalysisException as error:
            if error.getCondition() == "PATH_ALREADY_EXISTS":
                raise _exists(output) from error
            raise
        _write_record(spark, output, result, request, method)
        return _summary(spark, output, len(result.inputs.class_names or ()))


def check_folder(output: str) -> None:
    """Raise where the output exists on this machine, or is named as another kind of file."""
    if output.rstrip("/").lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        raise InvalidInputError(f"`output` must be a folder of Parquet on Spark; got {output}")
    if os.path.exists(output):
        raise _exists(output)


def _exists(output: str) -> InvalidInputError:
    return InvalidInputError(f"`output` must be a new folder; {output} exists. Name another, or remove it.")


def _read(spark: SparkSession, name: str, path: str) -> DataFrame:
    """Read a table with Spark."""
    try:
        return spark.read.parquet(_literally(path))
    except (AnalysisException, Py4JJavaError) as error:
        reason = str(error).splitlines()[0]
        raise FileFormatError(
            f"`{name}` must be a file or folder of Parquet where Spark reads it; {path} is not: {reason}"
        ) from error


def _literally(path: str) -> str:
    """Return a path as Spark's readers need it, for which brackets and stars are patterns."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _write_record(spark: SparkSession, output: str, result: SparkSets, request: Request, method: Any) -> None:
    """Write how the sets were made beside their rows, wherever Spark can write."""
    reading, inputs = request.reading, result.inputs
    settings = {
        **({"method": method} if isinstance(method, str) else {}),
        "alpha": request.alpha,
        "directed": reading.directed,
        "skip_unknown": reading.skip_unknown,
        "plan": request.plan,
        **({} if inputs.evidence is None else {"evidence_labels": int(inputs.evidence.size)}),
        **{key: value for key, value in result.facts.items() if key == "choice"},
    }
    about = describe_settings(
        settings, inputs.class_names, nodes=result.nodes, calibration=int(inputs.calibration.size),
        level_labels=result.level_labels, method=result.method,
    )  # fmt: skip
    context: Any = spark.sparkContext
    place = context._jvm.org.apache.hadoop.fs.Path(f"{output.rstrip('/')}/{SIDECAR}")
    system = place.getFileSystem(context._jsc.hadoopConfiguration())
    with closing(system.create(place, True)) as stream:
        stream.write(bytearray(json.dumps(about).encode()))


def _summary(spark: SparkSession, output: str, classes: int) -> SetsSummary:
    """Sum up the sets that were written."""
    counts = sf.count("size"), sf.count_if(sf.col("threshold") == math.inf), sf.count_if(sf.col("support") == 0)
    rows = spark.read.parquet(_literally(output)).groupBy("size").agg(*counts).collect()
    sizes = np.zeros(classes + 1, dtype=np.int64)
    for size, nodes, _, _ in rows:
        sizes[size] = nodes
    return SetsSummary(sizes, sum(row[2] for row in rows), sum(row[3] for row in rows))
