"""Ctrl-C and SIGTERM: remove what is half-written, say what is whole, and exit with 130 or 143, as shells expect.

The handler itself ends the process, at whatever moment it is called: an exception would be lost in a callback, or come
out of a library as something else. Only work that has to be wound up elsewhere (Spark, other processes) gets one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from napsets.checks.text import visible

_NUMBERS = (signal.SIGINT, signal.SIGTERM)

#: The exit code of Ctrl-C; that of SIGTERM likewise is 128 and its number.
INTERRUPTED = 128 + signal.SIGINT


class Interrupted(KeyboardInterrupt):
    """The process was asked to end."""


class _Run:
    """What the handler has to know: it is called at any moment, with nothing but this."""

    def __init__(self) -> None:
        self.command = "napsets"
        self.written: Sequence[Path] = ()
        self.discard: Callable[[], list[Path]] = list
        self.unwinding = False
        self.stopped: int | None = None


_run = _Run()


def listen() -> None:
    """From now on, end as this module says."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # set by the parent process (nohup)
            signal.signal(number, _stop)


def wind_down() -> None:
    """From now on, do not stop: everything is done and said, and the exit code is known."""
    for number in _NUMBERS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)


def at_work(command: str, written: Sequence[Path], discard: Callable[[], list[Path]]) -> None:
    """Enter the command that runs, the list of what it has written, and what removes what it is writing.

    What `discard` returns has been written too, a moment ago.
    """
    _run.command, _run.written, _run.discard, _run.stopped = f"napsets {command}".strip(), written, discard, None


@contextmanager
def unwinding() -> Iterator[None]:
    """Meanwhile, raise `Interrupted` instead: there are other processes to be told."""
    _run.unwinding = True
    try:
        yield
    finally:
        _run.unwinding = False


def stopped() -> int | None:
    """Return the exit code of a run that was asked to end by an exception, None where it was not.

    A library that is interrupted so may raise something else.
    """
    return _run.stopped


def whole(written: Sequence[Path]) -> str:
    """Say what is there now that was not before; what was on its way to standard output is gone with its folder."""
    written = [path for path in written if path.exists()]
    if not written:
        return "nothing was written"
    if len(written) == 1:
        return f"{written[0]} was written completely"
    return f"{len(written)} files were written completely; the last of them is {written[-1]}"


def _stop(number: int, frame: Any) -> None:
    code = 128 + number
    if _run.unwinding:
        _run.stopped = code
        raise Interrupted
    for other in _NUMBERS:
        signal.signal(other, signal.SIG_IGN)  # once is enough
    try:
        written = [*_run.written, *(path for path in _run.discard() if path not in _run.written)]
        text = visible(f"{_run.command}: error: interrupted; {whole(written)}.") + "\n"
        # Past the stream, which may be busy with another line; a progress bar has hidden the cursor.
        start = b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b""
        os.write(2, start + text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", "backslashreplace"))
    finally:
        os._exit(code)
