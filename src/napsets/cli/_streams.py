"""Files that are standard input or standard output: ``-`` in place of a path."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer

from napsets.files.dialect import Dialect

__all__ = ["STANDARD", "standard_streams"]

#: What stands for standard input or output in place of a path.
STANDARD = "-"

#: The format of standard input and output where --format does not say it.
_USUAL = "csv"


@contextmanager
def standard_streams(options: Mapping[str, Any], dialect: Dialect) -> Iterator[dict[str, Any]]:
    """Give the options with files in place of ``-``: what came from standard input, and what is to go to output.

    Readers look at a file more than once, and a file that is written is whole or not there; so what comes in is kept in
    a file meanwhile, and what goes out is sent once it is whole.
    """
    streams = [key for key, value in options.items() if isinstance(value, Path) and str(value) == STANDARD]
    inputs = [key for key in streams if key != "output"]
    if len(inputs) > 1:
        named = " and ".join(inputs)
        raise typer.BadParameter(f"only one file can be standard input; {named} are", param_hint=inputs[1])
    if inputs and sys.stdin.isatty():
        raise typer.BadParameter("standard input must be a pipe or a file; it is the terminal", param_hint=inputs[0])
    given = dict(options)
    with ExitStack() as stack:
        if streams:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="napsets-")))
            suffix = dialect.format or _USUAL
        for key in inputs:
            given[key] = folder / f"standard-input.{suffix}"
            with open(given[key], "wb") as kept:
                shutil.copyfileobj(sys.stdin.buffer, kept)
        if "output" in streams:
            given["output"] = folder / f"standard-output.{suffix}"
        yield given
        if "output" in streams:
            with open(given["output"], "rb") as made:
                shutil.copyfileobj(made, sys.stdout.buffer)
            sys.stdout.buffer.flush()
