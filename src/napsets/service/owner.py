"""The threads that work on a living graph: calls take their turn, and none is waited for too long."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, TypeVar

from napsets.errors import NapsetsError
from napsets.live.live import Live
from napsets.service.guard import RefusedError

Result = TypeVar("Result")
Thread = Literal["reader", "writer", "batches", "parser"]
log = logging.getLogger("napsets")


class Owner:
    """Runs calls on a living graph in threads, each of which makes one call at a time.

    Small requests for sets have a thread, the reader, and wait neither for the disk nor for bodies that are parsed.
    Large requests for sets have another: between their pieces the reader has its turn, and the writer waits. A call may
    wait for its turn, and take, so many seconds together.
    """

    def __init__(self, live: Live, seconds: float) -> None:
        self._live, self._seconds = live, seconds
        names: tuple[Thread, ...] = ("parser", "writer", "batches", "reader")
        self._threads = {name: ThreadPoolExecutor(1, thread_name_prefix=f"napsets-{name}") for name in names}
        #: Why no call can be made any more; None while all is well.
        self.broken: str | None = None
        self._unwritable = False

    async def call(self, work: Callable[[Live], Result], thread: Thread = "reader") -> Result:
        """Return what a call gives. A call that comes too late is not made; one that was begun is finished."""
        return await self.wait_for(partial(self._run, work), thread)

    async def wait_for(self, work: Callable[[], Result], thread: Thread = "parser") -> Result:
        """Return what work gives that needs no living graph."""
        try:
            future = self._threads[thread].submit(work)
        except RuntimeError:
            raise RefusedError(503, "the service is stopping") from None
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except asyncio.TimeoutError:
            raise RefusedError(
                503,
                f"the service is busy: no answer within {self._seconds:g} seconds. A change that was begun is "
                f"finished; send it again with the same Idempotency-Key.",
            ) from None

    async def check_ready(self) -> None:
        """Refuse where calls cannot be made, or where the last that failed on the disk would fail again."""

        def check(live: Live) -> None:
            if self._unwritable:
                live.check_writable()
                self._unwritable = False

        await self.call(check, "writer" if self._unwritable else "reader")

    def _run(self, work: Callable[[Live], Result]) -> Result:
        if self.broken is not None:
            raise RefusedError(503, self.broken)
        try:
            return work(self._live)
        except BaseException as error:
            if self._live.is_open and isinstance(error, NapsetsError | RefusedError):
                raise
            if self._live.is_open and isinstance(error, sqlite3.Error | OSError):
                self._unwritable = True
                text = f"the store cannot be read or written ({error}). Nothing was changed."
                raise RefusedError(503, text) from error
            # The log is the truth; whether the state still follows from it is not known any more.
            self.broken = "the service met an internal error and stopped answering; start it again: the log is intact"
            log.exception("an internal error of napsets")
            raise RefusedError(503, self.broken) from error

    def close(self) -> None:
        """Finish what was begun, and let go of the store."""
        for thread in self._threads.values():
            thread.shutdown(wait=True, cancel_futures=True)
        self._live.close()
