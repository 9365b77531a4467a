"""Missing Java, missing PySpark: errors that say how to get them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import napsets as ns

from .conftest import PACKAGE_ROOT

pytest.importorskip("pyspark")


def fake_java(folder: Path, says: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return folder


def test_without_java_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ns.spark.MissingJavaError, match=r"no `java` on the PATH; install Java 17 or newer .*JAVA_HOME"):
        ns.spark.start_session("local[1]")


def test_a_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(ns.NapsetsError, match=r"JAVA_HOME is .*nowhere, which has no bin/java; install"):
        ns.spark.start_session("local[1]")


@pytest.mark.parametrize("says", ['openjdk version "1.8.0_402"', 'java version "11.0.2" 2019-01-15 LTS'])
def test_a_java_too_old_for_spark_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, says)))
    with pytest.raises(ns.spark.MissingJavaError, match=r"Spark needs Java 17 or newer, and .* is Java (8|11)"):
        ns.spark.start_session("local[1]")


def test_a_java_new_enough_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from napsets.spark.session import check_java

    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "21.0.1" 2023-10-17')))
    check_java()


def test_without_pyspark_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import napsets as ns\n"
        "try:\n    ns.spark\n"
        "except ns.MissingDependencyError as error:\n    print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": PACKAGE_ROOT}, capture_output=True, text=True, check=True
    )
    assert "this needs the package 'pyspark'; install it with: pip install 'napsets[spark]'" in ran.stdout
