"""Starting a Spark session, and plain messages where Java is missing or a task fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from napsets.errors import InvalidInputError, NapsetsError

#: The oldest Java that Spark 4 runs on.
_OLDEST_JAVA = 17

#: The messages of napsets' own errors in the stack of a task.
_RAISED = re.compile(r"napsets\.errors\.(?:InvalidInputError|FileFormatError): (.+)")


class MissingJavaError(NapsetsError, RuntimeError):
    """Spark needs a Java runtime, and there is none, or only one that is too old."""


def check_java() -> None:
    """Raise `MissingJavaError`, which says how to get Java, unless a Java that Spark can use is found."""
    advice = (
        f"install Java {_OLDEST_JAVA} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
        "conda: conda install -c conda-forge openjdk=17; macOS: brew install openjdk@17) and set JAVA_HOME to its "
        "folder, or put `java` on the PATH"
    )
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no `java` on the PATH"
        raise MissingJavaError(f"Spark needs Java, and {where}; {advice}")
    version = _java_version(java)
    if version is not None and version < _OLDEST_JAVA:
        raise MissingJavaError(f"Spark needs Java {_OLDEST_JAVA} or newer, and {java} is Java {version}; {advice}")


def _java_version(java: str) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingJavaError(f"Spark needs Java, and {java} does not run: {error}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def start_session(master: str = "local[2]", config: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or return the one that runs already.

    Parameters
    ----------
    master : str
        ``local[2]``, ``spark://host:port``, ``yarn``: what Spark takes as its master.
    config : mapping, optional
        Further settings, which go before the ones chosen here.
    """
    check_java()
    settings = {"spark.ui.showConsoleProgress": "false"}
    if master.startswith("local"):
        # Everything runs here: in this interpreter, and without waiting on how this machine is named.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings |= {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
    builder = SparkSession.builder.master(master).appName("napsets")
    for name, value in (settings | dict(config or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def running_session(master: str | None = None) -> Iterator[SparkSession]:
    """Yield the running session, or one for this context alone."""
    running = SparkSession.getActiveSession()
    spark = running or start_session(master or "local[2]")
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise the message of an `InvalidInputError` from a task as that error, without the Java stack."""
    try:
        yield
    except PySparkException as error:
        message = _RAISED.search(str(error))
        if message is None:
            raise
        raise InvalidInputError(message[1].strip()) from error
