"""The plan *graph*: the driver reads the tables as files are read, and calibrates; workers predict.

The calibrated method, with the graph, is broadcast. A worker unpickles it once and predicts its part of the nodes by
the code of one machine.
"""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from napsets.checks.arguments import IntArray
from napsets.errors import NapsetsWarning, warn
from napsets.files import Inputs, read_inputs
from napsets.files.formats import TableFile
from napsets.files.prediction_file import prediction_schema
from napsets.files.reading import Reading
from napsets.files.writers import CHUNK, prediction_rows
from napsets.predictions import PredictionSets

#: Nodes of a task at most: little work is lost where a task fails.
_LARGEST_PART = 1 << 18


@dataclass(frozen=True)
class Request:
    """A method and how it is run."""

    method: Any
    alpha: float
    reading: Reading
    p_values: bool | Literal["smoothed"]
    plan: str


@dataclass(frozen=True, eq=False)
class SparkSets:
    """Prediction sets on Spark, with what a file of sets records."""

    sets: DataFrame
    inputs: Inputs  #: those on the driver
    nodes: int  #: rows of the table of probabilities
    level_labels: int | None  #: how many labels set the level
    method: Any  #: of one that chooses, the one chosen
    facts: dict[str, Any]  #: the ``level`` of an exact method, and the ``choice`` of one that chooses


def predict_on_graph(spark: SparkSession, tables: Mapping[str, Any], request: Request) -> SparkSets:
    """Calibrate on the driver and predict on workers; each table is a DataFrame or a path."""
    inputs, calibrated = calibrate_tables(tables, request)
    names, nodes = inputs.class_names, inputs.nodes
    valued = names or () if request.p_values is not False else ()
    schema = prediction_schema(
        PredictionSets, inputs.ids.output_type, {}, integer_labels=inputs.integer_labels, valued=valued
    )
    work = Prediction(calibrated, request.alpha, nodes, inputs.ids.values, names, schema, request.p_values)
    rows = spark.range(0, nodes.size, 1, max(spark.sparkContext.defaultParallelism, -(-nodes.size // _LARGEST_PART)))
    sets = rows.mapInArrow(shipped(spark, work), from_arrow_schema(schema))
    exact = calibrated.is_exact and calibrated.grouped is None
    facts = level_of(calibrated.level, request.alpha) if exact else {}
    if calibrated.choice is not None:
        facts["choice"] = str(calibrated.choice)
    return SparkSets(sets, inputs, len(inputs.ids), calibrated.level_size, calibrated.method, facts)


def level_of(level: Any, alpha: float) -> dict[str, Any]:
    """Return an exact level as JSON can hold it: null where it is infinite, because labels are too few."""
    value = level.level(alpha)
    return {"level": None if math.isinf(value) else value}


def calibrate_tables(tables: Mapping[str, Any], request: Request) -> tuple[Inputs, Any]:
    """Read the tables by the code that reads files, and calibrate; notes on how they were read become warnings."""
    reading = request.reading
    files = {name: in_memory(name, table, reading) for name, table in tables.items()}
    edges, probabilities, labels = (files[name] for name in ("edges", "probabilities", "labels"))
    more: dict[str, Any] = {name: files.get(name) for name in ("nodes", "evidence", "features")}
    inputs = read_inputs(edges, probabilities, labels, reading=reading, predicting=False, **more)
    for note in inputs.notes:
        warn(note)
    calibrated = inputs.calibrate(request.method)
    calibrated.predict(inputs.nodes[:0], request.alpha)  # warns of few labels, which workers do not
    return inputs, calibrated


def in_memory(name: str, table: Any, reading: Reading) -> Any:
    """Bring a DataFrame to the driver as a table that readers of files take; return a path unchanged.

    Rows of probabilities come in the order of their ids: Spark's tables have none, and sums over nodes do.
    """
    if not isinstance(table, DataFrame):
        return table
    rows = table.toArrow()
    if name == "probabilities" and "node" in rows.column_names:
        rows = rows.sort_by("node")
    return TableFile.in_memory("labels" if name == "evidence" else name, rows, reading)


@dataclass(frozen=True, eq=False)
class Prediction:
    """A calibrated method with the nodes to predict, as workers need it."""

    calibrated: Any
    alpha: float
    nodes: IntArray
    ids: pa.Array
    class_names: list[str] | None
    schema: pa.Schema
    p_values: bool | Literal["smoothed"]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn places among `nodes` into rows of sets."""
        places = [batch.column(0).to_numpy() for batch in batches]
        nodes = self.nodes[np.concatenate([np.empty(0, dtype=np.int64), *places])]
        probabilities = self.calibrated.score.probabilities
        for start in range(0, nodes.size, CHUNK):
            part = nodes[start : start + CHUNK]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NapsetsWarning)  # the driver has warned
                sets = self.calibrated.predict(part, self.alpha, p_values=self.p_values, threads=1)
            sets = sets.with_names(len(self.ids), None, self.class_names)
            ids = self.ids.take(pa.array(part))
            yield from prediction_rows(sets, ids, probabilities, part, self.schema).to_batches()


def shipped(spark: SparkSession, work: Any) -> Any:
    """Broadcast a function of Arrow batches, and return one that calls it on a worker."""
    # Pickled here, because a broadcast by itself refuses functions without a name, such as a decay.
    sent = spark.sparkContext.broadcast(cloudpickle.dumps(work))
    return lambda batches: _received(sent)(batches)


@lru_cache(maxsize=1)
def _received(sent: Any) -> Any:
    """Unpickle a broadcast once per process."""
    return pickle.loads(sent.value)
