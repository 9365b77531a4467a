"""A Spark session of our own, where it reads and writes, and what to say where Java or a task fails.

Places are local paths or addresses such as ``hdfs://`` and ``s3a://``; all of them are looked at through Hadoop.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from napsets.errors import InvalidInputError, NapsetsError
from napsets.files.formats import SIDECAR
from napsets.files.paths import STALE, check_apart, check_output, draft_mark, is_abandoned, note_written

#: The oldest Java that Spark 4 runs on.
_OLDEST_JAVA = 17

#: What napsets and Spark put in front of a message that was raised on purpose, far down in a task.
_RAISED = re.compile(r"(?:InvalidInputError: |\[USER_RAISED_EXCEPTION\] )(.+)")


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
    settings: dict[str, Any] = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.skewJoin.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }
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
def plain_errors() -> Iterator[None]:
    """Turn what a task raised about its input into the `InvalidInputError` it was, without the Java stack."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if "spark.driver.maxResultSize" in str(error):
            raise InvalidInputError(
                "`checkpoint_dir` must be a directory that all machines see for tables this large, or Spark must let "
                "more through to its driver: raise spark.driver.maxResultSize, or take the plan joins"
            ) from error
        message = _RAISED.search(str(error))
        if message is None:
            raise
        raise InvalidInputError(re.sub(r" SQLSTATE: \w+$", "", message[1].strip())) from error


# -- file systems ------------------------------------------------------------------------------------------------------


def located(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, local or an address such as ``hdfs://``, and the path as Hadoop has it."""
    context: Any = spark.sparkContext
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(context._jsc.hadoopConfiguration()), place


def literally(path: str) -> str:
    """Return a path as Spark's readers need it, for which brackets and stars are patterns."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

#: What Spark and napsets put into a folder of sets; hidden files are checksums of the others.
_OURS = re.compile(rf"_SUCCESS|{SIDECAR}|part-.*\.parquet|\.(_SUCCESS|{SIDECAR}|part-.*\.parquet)\.crc")

#: Names of what a run keeps next to its result until that is complete.
_WORK = re.compile(r"napsets-[0-9a-f]{16}|\.claim\.napsets-.*")


def absolute(spark: SparkSession, path: str) -> str:
    """Return the one name of a place: an address as it is, a local path from the root, links followed.

    Relative paths begin where this process is; Java would take the folder in which it was started. Where Hadoop is set
    up for another file system, a path without an address lies there, as it does for Spark.
    """
    bare = path.rstrip("/") or "/"
    if not _ADDRESS.match(bare) and located(spark, "/")[0].getScheme() == "file":
        return os.path.realpath(bare)
    system, place = located(spark, bare)
    place = system.makeQualified(place)
    return os.path.realpath(place.toUri().getPath()) if place.toUri().getScheme() == "file" else str(place)


def local_path(place: str) -> str | None:
    """Return an absolute place as a path of this machine, None where it is not on it."""
    return None if _ADDRESS.match(place) else place


def check_target(spark: SparkSession, target: str, inputs: Iterable[str | None]) -> None:
    """Refuse a directory to write that holds anything but an earlier result, or has to do with an input.

    All places are absolute; a pattern stands for all that fits it.
    """
    read = [place for path in inputs if path is not None for place in (path, *_matching(spark, path))]
    if local_path(target) is None:
        _check_addresses(target, read)
    else:
        check_apart(target, [path for path in read if local_path(path) is not None])
        check_output(Path(target).parent / "any")  # can be written at all
    system, path = located(spark, target)
    if not system.exists(path):
        return
    if system.getFileStatus(path).isDirectory():
        entries = [(status.getPath().getName(), status.isDirectory()) for status in system.listStatus(path)]
        _refuse_foreign(target, entries)
    elif not target.lower().endswith((".parquet", ".pq")):
        raise InvalidInputError(f"`output` must be a directory of Parquet; {target} is a file")


#: Settings by which a path without an address is on another file system than that of this machine.
_ELSEWHERE = {"HADOOP_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME"}


def check_early(output: str, *, configured: bool = False) -> None:
    """Refuse, before Spark is started, what `check_target` would refuse once it runs.

    `configured` says whether Spark gets settings that may put local paths elsewhere.
    """
    if output.rstrip("/").lower().endswith((".csv", ".csv.gz", ".npz")):
        raise InvalidInputError(f"`output` must be a directory of Parquet; got {output}")
    elsewhere = configured or SparkSession.getActiveSession() is not None or not _ELSEWHERE.isdisjoint(os.environ)
    folder = Path(output)
    if not elsewhere and not _ADDRESS.match(output) and folder.is_dir():
        _refuse_foreign(output, sorted((entry.name, entry.is_dir()) for entry in os.scandir(folder)))


def _refuse_foreign(target: str, entries: list[tuple[str, bool]]) -> None:
    """Refuse a folder that holds what a run of ours does not write, or that lacks our mark."""
    names = [name for name, _ in entries]
    foreign = [name for name, is_folder in entries if is_folder or not _OURS.fullmatch(name)]
    if foreign or (names and SIDECAR not in names):
        what = (
            f"{foreign[0]!r}, which it did not write" if foreign else f"{names[0]!r}, and nothing that says what it is"
        )
        raise InvalidInputError(
            f"`output` must be a new directory, or one that napsets wrote, which is replaced; {target} holds {what}. "
            f"Name another, or remove it yourself."
        )


def _matching(spark: SparkSession, path: str) -> list[str]:
    system, place = located(spark, path)
    return [absolute(spark, str(status.getPath())) for status in system.globStatus(place) or ()]


def _check_addresses(target: str, inputs: Iterable[str]) -> None:
    for path in inputs:
        if path == target:
            raise InvalidInputError(f"`output` would overwrite the input {path}; name another directory")
        if target.startswith(f"{path}/"):
            raise InvalidInputError(f"`output` must lie outside the inputs; {target} lies in the input {path}")
        if path.startswith(f"{target}/"):
            raise InvalidInputError(
                f"`output` must not hold an input, which would be lost; {target} holds the input {path}"
            )


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a small file wherever Spark can write, whole or not at all."""
    (system, place), (_, draft) = located(spark, path), located(spark, f"{path}.draft")
    with closing(system.create(draft, True)) as stream:
        stream.write(bytearray(text.encode()))
    if not system.rename(draft, place):
        raise NapsetsError(f"{path} could not be written: {path}.draft could not be renamed to it")


def read_text(spark: SparkSession, path: str) -> str | None:
    """Return what a small file holds, None where there is none."""
    system, place = located(spark, path)
    if not system.exists(place):
        return None
    with closing(system.open(place)) as stream:
        return bytes(stream.readAllBytes()).decode()


# -- from draft to result ------------------------------------------------------------------------------------------


@contextmanager
def beside(spark: SparkSession, target: str) -> Iterator[tuple[str, str]]:
    """Yield two directories next to `target`, for work and for the result; move the result there at the end.

    That for work has the same name each time, and stays when something goes wrong that is not the fault of the input.
    What killed runs have left of results is removed; a result that one of them had put aside is put back first.
    """
    system, place = located(spark, target)
    hidden = f"{place.getParent()}".rstrip("/") + f"/.{place.getName()}"
    _sweep(system, place)
    mark = draft_mark()
    work, written, old = (located(spark, f"{hidden}.{end}")[1] for end in ("work", mark, f"{mark}.old"))
    begun = system.exists(work)
    try:
        with claimed(spark, str(work), f"`output` must be written by one job at a time; another is writing {target}"):
            yield str(work), str(written)
            _put(system, written, place, old)
            note_written(target)
            begun = False
    except InvalidInputError:
        raise
    except BaseException:
        begun = True  # the same call continues from here
        raise
    finally:
        system.delete(written, True)
        if not begun:
            _clear(system, work)
        if system.exists(work) and len(system.listStatus(work)) == 0:
            system.delete(work, False)


@contextmanager
def claimed(spark: SparkSession, folder: str, refusal: str) -> Iterator[None]:
    """Have a folder, made if it is not there, for one job alone; refuse where one that still runs has claimed it."""
    system, claim = located(spark, f"{folder}/.claim.{draft_mark()}")
    place = claim.getParent()
    system.mkdirs(place)
    system.createNewFile(claim)
    try:
        # Claims have a time in milliseconds: after this pause every one that could be as old as this can be seen.
        time.sleep(0.01)
        own = (system.getFileStatus(claim).getModificationTime(), claim.getName())
        for status in system.listStatus(place):
            name = status.getPath().getName()
            older = name.startswith(".claim.") and (status.getModificationTime(), name) < own
            if older and not _is_dead(system, status, place):
                raise InvalidInputError(f"{refusal}. Wait until it ends, or name another directory.")
        yield
    finally:
        system.delete(claim, True)


def _put(system: Any, written: Any, target: Any, old: Any) -> None:
    if system.exists(target):
        system.rename(target, old)
    if not system.rename(written, target):
        system.rename(old, target)  # what was there before stays
        raise OSError(f"could not rename {written} to {target}")
    system.delete(old, True)


def _sweep(system: Any, target: Any) -> None:
    """Remove what killed runs have left next to a result."""
    if not system.exists(target.getParent()):
        return
    for status in system.listStatus(target.getParent()):
        path = status.getPath()
        name = path.getName()
        if not name.startswith(f".{target.getName()}.napsets-") or not _is_dead(system, status, path):
            continue
        if name.endswith(".old") and not system.exists(target):
            system.rename(path, target)
        else:
            system.delete(path, True)


def _clear(system: Any, work: Any) -> None:
    """Remove the work of all runs, unless one of them is alive; nothing in the folder that is not ours."""
    if not system.exists(work):
        return
    entries = [status for status in system.listStatus(work) if _WORK.fullmatch(status.getPath().getName())]
    claims = [status for status in entries if status.getPath().getName().startswith(".claim.")]
    if all(_is_dead(system, status, work) for status in claims):
        for status in entries:
            system.delete(status.getPath(), True)


def _is_dead(system: Any, status: Any, folder: Any) -> bool:
    """Return whether the run that named a directory is gone; elsewhere, if `folder` has not changed for long."""
    newest = status.getModificationTime()
    if time.time() - newest / 1000 > STALE:
        files = system.listFiles(folder, True)
        while files.hasNext():
            newest = max(newest, files.next().getModificationTime())
    return is_abandoned(status.getPath().getName(), newest / 1000)
