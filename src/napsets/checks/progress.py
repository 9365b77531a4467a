"""Progress, as users ask for it: True for a line on the terminal, a function of their own, or nothing."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

from napsets.checks.values import shown
from napsets.errors import InvalidInputError

__all__ = ["check_progress"]

#: Seconds between two reports, on a terminal and where lines stay.
_EVERY, _EVERY_LINE = 0.1, 10.0


def check_progress(value: object) -> Any:
    """Return the function that progress is reported to, or None; True stands for a line on standard error."""
    if value is None or value is False:
        return None
    if value is True:
        return _Line()
    if callable(value):
        return value
    raise InvalidInputError(f"`progress` must be True, False or a function of (done, total); got {shown(value)}")


class _Line:
    """Say how far a work is: on a terminal on one line, elsewhere on a line now and then, and at the end."""

    def __init__(self) -> None:
        self.said = monotonic()

    def __call__(self, done: int, total: int) -> None:
        now, live = monotonic(), sys.stderr.isatty()
        ended = done >= total
        if not ended and now - self.said < (_EVERY if live else _EVERY_LINE):
            return
        self.said = now
        text = f"{done:,} of {total:,} ({100 * done // max(total, 1)} %)"
        print(f"\r{text}" if live else text, end="\n" if ended or not live else "", file=sys.stderr, flush=True)
