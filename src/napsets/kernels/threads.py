"""The threads that kernels run on, and the rule that decides between a kernel and NumPy.

Nothing here loads the compiler.

Kernels release the interpreter lock, so ordinary threads suffice. The thread that asks for the work does its share of
it, so that there are never more threads than cores; between any two calls of a kernel it hears Ctrl-C and reports
progress.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from threading import Event, Lock

#: Called with (units done, units in all) from the thread that asked for the work.
Progress = Callable[[int, int], None]
#: Tells a piece of work whether to stop early.
Stop = Callable[[], bool]
#: Units of work, and the work.
Piece = tuple[int, Callable[[Stop], object]]

MOST_THREADS = 1024

#: Seconds between two reports while this thread waits for the others to end.
_REPORT_EVERY = 0.1


def available_threads(threads: int | None = None) -> int:
    """Return the number asked for, or else ``NAPSETS_THREADS``, or else the cores this process may use."""
    if threads is not None:
        return threads
    wanted = os.environ.get("NAPSETS_THREADS")
    if wanted:
        if not (wanted.strip().isdecimal() and 1 <= int(wanted) <= MOST_THREADS):
            raise ValueError(f"`NAPSETS_THREADS` must be an integer from 1 to {MOST_THREADS:,}; got {wanted!r}")
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(pieces: Iterable[Piece], *, threads: int, total: int, progress: Progress | None = None) -> None:
    """Run pieces of work, each with its number of units.

    Pieces are taken from the iterable as threads come free. An exception, Ctrl-C among them, stops the taking, tells
    the pieces under way to stop, waits for them and is raised.
    """
    left, lock, stopped = iter(pieces), Lock(), Event()
    done = reported = 0

    def take() -> Piece | None:
        with lock:
            return None if stopped.is_set() else next(left, None)

    def work(item: Piece | None, report: Callable[[], None]) -> None:
        nonlocal done
        try:
            while item is not None:
                units, piece = item
                piece(stopped.is_set)
                with lock:
                    done += units
                report()
                item = take()
        except BaseException:
            stopped.set()
            raise

    def report_progress() -> None:
        nonlocal reported
        if progress is not None and done > reported:
            reported = done
            progress(reported, total)

    first = take()  # what the first piece needs is made before any thread waits for it
    if threads == 1 or first is None or first[0] >= total:  # one thread is enough for one piece
        work(first, report_progress)
        return
    with ThreadPoolExecutor(threads - 1, thread_name_prefix="napsets") as pool:
        helpers = [pool.submit(lambda: work(take(), lambda: None)) for _ in range(threads - 1)]
        try:
            work(first, report_progress)
            while wait(helpers, timeout=_REPORT_EVERY).not_done:
                report_progress()
        except BaseException:
            stopped.set()
            raise
    for helper in helpers:
        helper.result()
    report_progress()


def ranges(start: int, stop: int, step: int) -> list[tuple[int, int]]:
    """Cut start..stop into ranges of this many."""
    return [(first, min(first + step, stop)) for first in range(start, stop, step)]


def run_ranges(
    work: Callable[[int, int], object],
    pieces: Sequence[tuple[int, int]],
    threads: int,
    progress: Progress | None = None,
    total: int | None = None,
) -> None:
    """Call ``work(first, last)`` for each of these ranges, each on one thread.

    Progress counts up to `total`, by default the sum of all ranges.
    """

    def piece(first: int, last: int, stop: Stop) -> None:
        work(first, last)

    total = sum(last - first for first, last in pieces) if total is None else total
    tasks = ((last - first, partial(piece, first, last)) for first, last in pieces)
    run(tasks, threads=max(1, min(threads, len(pieces))), total=total, progress=progress)


def stages(progress: Progress | None, sizes: Sequence[int], total: int) -> list[Progress | None]:
    """Return a progress function for each stage; together they count from 0 to `total`, each by its share of the sizes.

    Examples
    --------
    >>> first, second = stages(lambda done, total: print(done, "of", total), [1, 3], total=100)
    >>> first(1, 2), second(1, 3), second(3, 3)
    12 of 100
    50 of 100
    100 of 100
    (None, None, None)
    """
    if progress is None:
        return [None] * len(sizes)
    whole, reported = sum(sizes), 0

    def stage(before: int, size: int) -> Progress:
        def report(done: int, of: int) -> None:
            nonlocal reported
            reached = total * (before * of + size * done) // max(1, whole * of)
            if reached > reported:
                reported = reached
                progress(reached, total)

        return report

    return [stage(sum(sizes[:i]), size) for i, size in enumerate(sizes)]


def complete(stage: Progress | None) -> None:
    """Report that a stage is complete, if progress is reported at all."""
    if stage is not None:
        stage(1, 1)


# -- whether to compile ------------------------------------------------------------------------------------------------

#: The most edges, or probabilities, for which NumPy is used in place of a kernel, with the same bits.
SMALL = 1 << 19


def worth_compiling(size: float) -> bool:
    """Whether work on this many edges, or probabilities, is done by a kernel and not by NumPy.

    NumPy handles fewer in less time than it takes to compile a kernel. The rule looks at nothing but the size, so that
    the path of a computation never depends on what the process did before.
    """
    return size > SMALL
