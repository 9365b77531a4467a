"""Runs of the command that stop themselves: each sends itself a signal when the package calls its n-th function.

A moment is thus a place in the program, whatever the machine is doing. Every run is a process of its own, forked from
one that has loaded other people's packages and nothing of this one.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

#: What commands load, as far as others wrote it.
_OTHERS = (
    "numpy", "scipy.sparse.csgraph", "scipy.special", "scipy.stats", "pandas", "pyarrow.csv", "pyarrow.parquet",
    "pyarrow.pandas_compat", "numba.typed", "numba.np.arraymath", "numba.np.linalg", "numba.np.polynomial",
    "numba.cpython.unicode", "typer._adapters", "typer.rich_utils", "rich.progress", "jinja2", "vl_convert",
    "altair",
)  # fmt: skip


def run_stopped(number: int, moment: int, folder: Path, temporary: Path, arguments: list[str]) -> tuple[int, str, int]:
    """Return exit code, standard error, and the number of calls; `moment` 0 is never."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_OTHERS))
    errors, record = folder.parent / "errors", folder.parent / "calls"
    process = context.Process(target=_run, args=(number, moment, folder, temporary, errors, record, arguments))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode, errors.read_text(), int(record.read_text() or 0)


def _run(number: int, moment: int, folder: Path, temporary: Path, errors: Path, record: Path, arguments: list[str]):
    with open(errors, "wb") as said, open(os.devnull, "r+b") as nothing:
        for new, old in ((nothing, 0), (nothing, 1), (said, 2)):
            os.dup2(new.fileno(), old)
    os.chdir(folder)
    os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
    record.write_text("")
    sys.argv = ["napsets", *arguments]

    import vl_convert

    import napsets
    from napsets.cli import listen, main

    vl_convert.javascript_bundle = lambda snippet: snippet  # two seconds in a library of others

    package, process, calls = os.path.dirname(napsets.__file__), os.getpid(), 0

    def count(frame, event, argument):
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(package) and os.getpid() == process:
            calls += 1
            if calls == moment:
                os.kill(process, number)

    listen()
    sys.setprofile(count)
    try:
        main()
    finally:
        sys.setprofile(None)
        record.write_text(str(calls))
