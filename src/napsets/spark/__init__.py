"""The same thresholds on a Spark cluster.

`predict_sets` takes DataFrames and gives one; `predict_files` reads and writes files. The mathematics is the core's:
tasks call the same functions as on one machine, on Arrow batches.
"""

from __future__ import annotations

try:
    import pyarrow
    import pyspark
except ImportError as error:
    from napsets.errors import MissingDependencyError

    raise MissingDependencyError(error.name or "pyspark", "spark") from error

from napsets.spark.files import predict_files
from napsets.spark.predict import predict_sets
from napsets.spark.session import MissingJavaError, start_session

__all__ = ["MissingJavaError", "predict_files", "predict_sets", "start_session"]

del pyarrow, pyspark
