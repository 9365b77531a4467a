"""The threads that work on a living graph: calls take their turn, and none is waited for too long."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from napsets.errors import NapsetsError
from napsets.live.live import Live
from napsets.service.guard import RefusedError

Result = TypeVar("Result")
Thread = Literal["reader", "writer", "batches"]
log = logging.getLogger("napsets.service")


class Owner:
    """Runs calls on a living graph in threads, each of which makes one call at a time.

    Small requests for sets have a thread, the reader, and do not wait for the disk. Large requests for sets have
    another: between their pieces the reader has its turn, and the writer waits. Waiting for its turn and running, a
    call may take this many seconds in all. Until the graph is there, no call is made.
    """

    def __init__(self, seconds: float) -> None:
        self._live: Live | None = None
        self._seconds = seconds
        names: tuple[Thread, ...] = ("writer", "batches", "reader")
        self._threads = {name: ThreadPoolExecutor(1, thread_name_prefix=f"napsets-{name}") for name in names}
        #: Why no call can be made now; None while all is well.
        self.unready: str | None = "the service is starting"
        self._unwritable = False
        self._rang: dict[str, int | None] = {}

    def take(self, live: Live) -> None:
        """Start to answer with a living graph; it is closed at the end."""
        self._live, self.unready = live, None
        self._log_alarms(live)

    async def call(self, work: Callable[[Live], Result], thread: Thread = "reader") -> Result:
        """Return the result of a call. A call that comes too late is not made; one that was begun is finished."""
        try:
            future = self._threads[thread].submit(self._run, work, thread == "writer")
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
        """Raise if calls cannot be made, or if the disk is full or has failed and would fail again."""

        def check(live: Live) -> None:
            live.check_writable(only_space=not self._unwritable)
            self._unwritable = False

        await self.call(check, "writer" if self._unwritable else "reader")

    def _run(self, work: Callable[[Live], Result], changes: bool) -> Result:
        live = self._live
        if self.unready is not None or live is None:
            raise RefusedError(503, self.unready or "the service is starting")
        try:
            result = work(live)
            if changes:
                self._log_alarms(live)
            return result
        except BaseException as error:
            if live.is_open and isinstance(error, NapsetsError | RefusedError):
                raise
            if live.is_open and isinstance(error, sqlite3.Error | OSError):
                self._unwritable = True
                text = f"the store cannot be read or written ({error}). Nothing was changed."
                raise RefusedError(503, text) from error
            # The log is the truth; whether the state still follows from it is not known any more.
            self.unready = "the service met an internal error and stopped answering; start it again: the log is intact"
            log.exception("an internal error of napsets")
            raise RefusedError(503, self.unready) from error

    def _log_alarms(self, live: Live) -> None:
        rang = {name: alarm["rang"] for name, alarm in live.status()["judged"]["alarms"].items()}
        for name, labels in rang.items():
            if labels is not None and self._rang.get(name) is None:
                log.warning("alarm: %s was raised after %d labels", name, labels)
        self._rang = rang

    def close(self) -> None:
        """Finish what was begun, and let go of the store."""
        for thread in self._threads.values():
            thread.shutdown(wait=True, cancel_futures=True)
        if self._live is not None:
            self._live.close()
