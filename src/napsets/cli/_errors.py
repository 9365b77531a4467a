"""Errors for people: one paragraph that says what is wrong and how to put it right, and an exit code."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import textwrap
import traceback

from napsets.errors import NapsetsError

__all__ = ["FAILED", "WRONG_USE", "Interrupted", "report_error"]

#: Exit codes beside 0.
FAILED = 1
WRONG_USE = 2

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Interrupted(KeyboardInterrupt):
    """The process was asked to end (SIGTERM); treated as Ctrl-C is."""


def report_error(command: str, error: BaseException, *, debug: bool) -> int:
    """Print an error on standard error and return the exit code."""
    if debug:
        traceback.print_exception(error)
    elif isinstance(error, BrokenPipeError):
        # Whoever read our output has gone: there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        sys.stderr.write(_paragraph(f"napsets {command}: error: {_describe(error)}") + "\n")
    return FAILED


def _describe(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; nothing was written."
    if isinstance(error, NapsetsError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return _describe_system(error)
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for these files. Pass fewer --nodes, store probabilities as float32, or use "
            "--engine spark."
        )
    return (
        f"unexpected {type(error).__name__}: {error}. This is a fault of napsets; run the command again with --debug "
        "and report what it prints."
    )


def _describe_system(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return (
            f"the disk is full or the file too large{where}; nothing was written. Free some space, or write to "
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
