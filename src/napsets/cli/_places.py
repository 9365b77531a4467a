"""Where commands may write, one rule for all of them; and files that are standard input or output (``-``)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from napsets.errors import InvalidInputError
from napsets.files.places import check_output, temporary_folder

#: What stands for standard input or output in place of a path.
STANDARD = "-"

#: The format of standard input and output where --format does not say it.
_USUAL = "csv"

#: What a report may be called.
REPORT_SUFFIXES = (".html", ".htm")

#: Options that are paths and no inputs; graphs in the folder `root` are read, but it may well hold all the rest.
_WRITTEN_TO = {"output", "page", "results", "root", "store"}

#: The file, if it is one, that standard input comes from.
_STANDARD_INPUT = Path("/dev/stdin")


def inputs_of(options: Mapping[str, Any]) -> list[Path]:
    """Return the files among a command's options that it reads: none of them may be written to."""
    named = [Path(value) for key, value in options.items() if isinstance(value, Path) and key not in _WRITTEN_TO]
    if options.get("by") is not None:
        named.append(Path(options["by"]))  # a file, or a word for which there is none
    return [_STANDARD_INPUT if str(path) == STANDARD else path for path in named]


def check_standard_output(inputs: Iterable[Path]) -> None:
    """Refuse to print into an input (``>> labels.csv``)."""
    for path in inputs:
        with suppress(OSError):
            if path.is_file() and os.path.samestat(path.stat(), os.fstat(1)):
                raise typer.BadParameter(f"standard output is the input {path}; send it to another file")


def writable_file(path: Path, suffixes: Iterable[str], *, flag: str = "--output") -> Path:
    """Return the file to write if it may be, and otherwise call it wrong use before any work is done."""
    with wrong_use(flag):
        return check_output(path, suffixes=suffixes, name=_argument(flag))


def writable_folder(path: Path, *, flag: str = "--output") -> Path:
    """Return a folder to write into if it may be: one that is not there yet is made later."""
    if os.path.exists(os.path.realpath(path)) and not os.path.isdir(os.path.realpath(path)):
        raise typer.BadParameter(f"must be a folder; {path} is a file", param_hint=flag)
    with wrong_use(flag):
        check_output(path / "any", name=_argument(flag))
    return path


def _argument(flag: str) -> str:
    return flag.removeprefix("--")


@contextmanager
def wrong_use(flag: str) -> Iterator[None]:
    """Call what is refused inside a wrong use of an option."""
    try:
        yield
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error


# -- standard streams --------------------------------------------------------------------------------------------------


@contextmanager
def standard_streams(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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
    values = dict(options)
    with ExitStack() as stack:
        if streams:
            folder = stack.enter_context(temporary_folder())
            suffix = options.get("format") or _USUAL
        for key in inputs:
            values[key] = folder / f"standard-input.{suffix}"
            with open(values[key], "wb") as kept:
                shutil.copyfileobj(sys.stdin.buffer, kept)
        if "output" in streams:
            values["output"] = folder / f"standard-output.{suffix}"
        yield values
        if "output" in streams:
            with open(values["output"], "rb") as finished:
                shutil.copyfileobj(finished, sys.stdout.buffer)
            sys.stdout.buffer.flush()
