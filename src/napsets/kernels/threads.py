"""Running kernels on several threads.

Kernels release the interpreter lock, so ordinary threads suffice. The main thread stays in Python: it reports
progress and hears Ctrl-C between any two pieces of work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event

from napsets._check import check_count

__all__ = ["Piece", "Progress", "Stop", "available_threads", "run"]

#: Called with (units done, units in all) from the thread that asked for the work.
Progress = Callable[[int, int], None]
#: Tells a piece of work whether to stop early.
Stop = Callable[[], bool]
#: Units of work, and the work.
Piece = tuple[int, Callable[[Stop], object]]


def available_threads(threads: int | None = None) -> int:
    """Return the number asked for, or else ``NAPSETS_THREADS``, or else the cores this process may use."""
    if threads is not None:
        return check_count("threads", threads, minimum=1)
    wanted = os.environ.get("NAPSETS_THREADS")
    if wanted:
        return check_count("NAPSETS_THREADS", int(wanted) if wanted.strip().isdecimal() else wanted, minimum=1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(pieces: Iterable[Piece], *, threads: int, total: int, progress: Progress | None = None) -> None:
    """Run pieces of work, each with the number of units it stands for.

    Pieces are taken from the iterable as threads come free. An exception, Ctrl-C among them, stops the taking, tells
    the pieces under way to stop, waits for them and is raised.
    """
    stopped = Event()
    done = 0

    def advance(units: int) -> None:
        nonlocal done
        done += units
        if progress is not None:
            progress(done, total)

    if threads == 1:
        for units, piece in pieces:
            piece(stopped.is_set)
            advance(units)
        return
    waiting: dict[Future[object], int] = {}

    def drain(limit: int) -> None:
        while len(waiting) > limit:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                units = waiting.pop(future)
                future.result()
                advance(units)

    with ThreadPoolExecutor(threads, thread_name_prefix="napsets") as pool:
        try:
            for units, piece in pieces:
                waiting[pool.submit(piece, stopped.is_set)] = units
                drain(2 * threads - 1)
            drain(0)
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
