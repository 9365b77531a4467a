"""The streams of the command: open, able to say everything, and never harmed by what stands in a file.

Names of classes, nodes and files are other people's text. Whatever of it a terminal would obey instead of show is
written as an escape that it shows.
"""

from __future__ import annotations

import codecs
import errno
import os
import sys
from contextlib import suppress
from typing import Any

__all__ = ["PrintingError", "flush", "prepare_streams", "silence", "tell"]

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
    """Discard everything that is still to be written to a stream: it cannot be shown to anybody."""
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
