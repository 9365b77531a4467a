"""Errors for people: one paragraph that says what is wrong and how to put it right, and an exit code."""

from __future__ import annotations

import errno
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence
from pathlib import Path

from napsets.checks.text import visible
from napsets.cli._signals import INTERRUPTED, whole
from napsets.cli._terminal import PrintingError, silence, tell
from napsets.errors import NapsetsError

__all__ = ["report_error"]

#: The exit code of errors; 2, for wrong use, is the parser's.
_FAILED = 1

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def report_error(command: str, error: BaseException, *, written: Sequence[Path] = (), debug: bool = False) -> int:
    """Print an error on standard error and return the exit code.

    Parameters
    ----------
    command : str
        The command that failed.
    error : BaseException
        What it raised.
    written : sequence of Path
        What it had written by then.
    debug : bool
        Whether to show the traceback.
    """
    if debug:
        tell(visible("".join(traceback.format_exception(error)).rstrip(), lines=True))
    elif isinstance(error, BrokenPipeError):
        silence(sys.stdout)  # whoever read our output has gone: there is nobody to tell
    else:
        who = f"napsets {command}".strip()
        tell(_paragraph(visible(f"{who}: error: {_describe(error, written)}")))
        if isinstance(error, NapsetsError):
            tell(f"help: napsets errors {error.topic}")
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else _FAILED


def _describe(error: BaseException, written: Sequence[Path]) -> str:
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted; {whole(written)}."
    if isinstance(error, NapsetsError):
        return str(error)
    if isinstance(error, PrintingError):
        reason = (error.strerror or "").lower()
        return f"standard output could not take what was to be printed ({reason}); {whole(written)}."
    if isinstance(error, OSError) and error.errno is not None:
        return _describe_system(error, written)
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for these files. Pass fewer --nodes, store probabilities as float32, or use "
            "--engine spark."
        )
    return (
        f"unexpected {type(error).__name__}: {error}. This is a fault of napsets; run the command again with --debug "
        "and report what it prints."
    )


def _describe_system(error: OSError, written: Sequence[Path]) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return (
            f"the disk is full or the file too large{where}; {whole(written)}. Free some space, or write to "
            "another place with --output."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.EISDIR):
        reason = (error.strerror or str(error)).lower()
        return f"cannot open or write{where}: {reason}. Check that the folder exists and that you may write there."
    return f"{error.strerror or error}{where}."


def _paragraph(text: str) -> str:
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
