"""Prediction sets on a Spark cluster.

`predict_sets` takes DataFrames and returns one; `predict_files` reads and writes files. Workers run the code of one
machine, so the sets are the same, bit for bit.
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
from napsets.spark.session import MissingJavaError, running_session, start_session

__all__ = ["MissingJavaError", "predict_files", "predict_sets", "running_session", "start_session"]

del pyarrow, pyspark
