"""Being asked to stop (Ctrl-C, SIGTERM): at once where there is nothing to clean up, otherwise by an exception."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["Interrupted", "leave_at_once", "stopping", "working"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM)

_IMPORTING = "<frozen importlib._bootstrap>"
_MOMENT = 0.02  # seconds

_asked = False


class Interrupted(KeyboardInterrupt):
    """The process was asked to end."""


def leave_at_once() -> None:
    """From now on, end without a traceback when asked to: nothing has been begun, or all is done.

    While modules are loaded, an exception would be caught by who knows whom, and come out as something else.
    """
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # which whoever started us wanted (nohup)
            signal.signal(number, _leave)


@contextmanager
def working() -> Iterator[None]:
    """While there is something to clean up, raise `Interrupted` when asked to end; as `leave_at_once` afterwards."""
    ours = [number for number in _NUMBERS if signal.getsignal(number) is _leave]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, _leave)


def stopping() -> bool:
    """Tell whether the process was asked to end."""
    return _asked


def _leave(number: int, frame: Any) -> None:
    with suppress(OSError):
        os.write(2, b"napsets: interrupted.\n")
    os._exit(1)


def _interrupt(number: int, frame: Any) -> None:
    global _asked
    _asked = True
    if frame is not None and frame.f_code.co_filename == _IMPORTING:
        # What is raised while a module is loaded may be lost in a callback of Python's own: ask again in a moment.
        threading.Timer(_MOMENT, os.kill, (os.getpid(), number)).start()
        return
    raise Interrupted
