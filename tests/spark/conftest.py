"""One local Spark for all tests of this folder.

Where PySpark or Java is missing the tests are skipped, but fail in CI: there both must be present.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import napsets as ns
from skips import PACKAGES, lacking

#: Where the package under test lies, so that Spark's workers find the same one, installed or not.
PACKAGE_ROOT = str(Path(ns.__file__).parents[1])

#: Small data: interpreted plans start sooner than compiled ones run, Java compiles simply and soon, no task is skewed.
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.executorEnv.PYTHONPATH": PACKAGE_ROOT,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:Tier3InvocationThreshold=50 "
    "-XX:Tier3MinInvocationThreshold=20 -XX:Tier3CompileThreshold=300 -XX:+UseSerialGC",
}


def need_spark() -> None:
    """Skip where Spark cannot run; fail where it must."""
    try:
        from napsets.spark.session import check_java

        check_java()
    except ns.MissingDependencyError:
        lacking("no PySpark", PACKAGES)
    except ns.NapsetsError:
        lacking("no Java of 17 or newer", "apt-get install openjdk-17-jre-headless")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    need_spark()
    from napsets.spark import start_session

    path, workers = os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent / "workers")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [PACKAGE_ROOT, workers, path]))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = start_session("local[2]", SMALL | {"spark.python.daemon.module": "preloaded_daemon"})
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    os.environ["PYTHONPATH"] = path


@pytest.fixture(params=["graph", "joins"])
def plan(request: pytest.FixtureRequest) -> str:
    """Both plans, which give the same bits."""
    return str(request.param)
