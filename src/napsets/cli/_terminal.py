"""What people read on the terminal: streams that are open and never harmed by text from a file, and errors.

Names of classes, nodes and files come from users' files. Whatever in them a terminal would obey instead of show is
written as an escape that it shows. An error is one paragraph that says what is wrong and how to put it right, with an
exit code.
"""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from napsets.checks.text import visible
from napsets.cli._signals import INTERRUPTED, whole
from napsets.errors import NapsetsError

#: For streams that know only a few letters: what our own words use beyond ASCII.
_PLAIN = {
    "∞": "inf", "–": "-", "−": "-", "…": "...", "±": "+/-", "≤": "<=", "≥": ">=", "τ": "tau", "•": "*", "←": "<-",
    "→": "->", "×": "x", "·": "*", "α": "alpha", "Δ": "delta ", "Ĥ": "H", "Σ": "sum ", "²": "^2", "⁻": "-", "ᵏ": "k",
    "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "━": "-", "╸": "-", "╺": "-",
}  # fmt: skip


class PrintingError(OSError):
    """Standard output could not take what was to be printed."""


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Say what an encoding cannot: our own signs in ASCII, other letters as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    plain = "".join(_PLAIN.get(letter, letter.encode("unicode_escape").decode()) for letter in part)
    return plain, error.end


def prepare_streams() -> None:
    """Make standard output and standard error what the rest relies on: there, and able to say every letter."""
    codecs.register_error("napsets.plainly", _plainly)
    _fill_gaps()
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="napsets.plainly")


def _fill_gaps() -> None:
    """Open something in place of a closed stream (``>&-``), or the next file that is opened would take its number.

    Nothing can be written there, and trying to print says so. What goes to standard error is lost.
    """
    while (number := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115  (stays open)


def flush() -> None:
    """Make sure that what was printed has been written, so that a failure is reported now and not at the very end."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise printing_error(error) from error


def printing_error(error: OSError) -> PrintingError:
    """Return what to raise where standard output does not take any more."""
    silence(sys.stdout)
    return PrintingError(error.errno or errno.EIO, error.strerror or str(error))


def silence(stream: Any) -> None:
    """Discard everything that is still to be written to a stream: it cannot be shown."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def tell(text: str) -> None:
    """Write a line to standard error, if there is anyone to read it."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


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
        silence(sys.stdout)  # the reader of our output has gone
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
        return f"cannot write to standard output ({reason}); {whole(written)}."
    if isinstance(error, OSError) and error.errno is not None:
        return _describe_system(error, written)
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for these files. Pass fewer --nodes, store probabilities as float32, or use "
            "--engine spark."
        )
    return (
        f"unexpected {type(error).__name__}: {error}. This is a bug in napsets; please run the command again with "
        "--debug and report the output."
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
