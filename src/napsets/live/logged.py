"""An open log and its fold: opening, saving, and batches that take effect as a whole or not at all."""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Sequence
from typing import Any, TypeVar

from napsets.checks.values import check_flag, shown
from napsets.errors import InvalidInputError
from napsets.live.events import Change, Draft, Repeated
from napsets.live.fold import Fold, Snapshot, read_snapshot, write_snapshot
from napsets.live.monitoring import Monitor
from napsets.live.record import History
from napsets.live.settings import LiveSettings
from napsets.live.state import State
from napsets.live.store import Store, packed, recover

Self = TypeVar("Self", bound="Logged")

log = logging.getLogger("napsets")

#: Events that a restart may have to fold again, at the least, before a snapshot is written.
_TAIL = 50_000

#: What changes something, by name, and the arguments that it has.
_SIGNATURES = {
    name: inspect.signature(function)
    for name, function in vars(Draft).items()
    if callable(function) and not name.startswith("_")
}


class Logged:
    """A living graph and its log; every change goes through `update`."""

    _settings: LiveSettings
    _store: Store

    def _attach(self, store: Store, settings: LiveSettings) -> None:
        """Start from a log: fold all its events."""
        self._settings = settings
        self._store = store
        #: A writer holds the first lock throughout, and the second while the state is read or changed: sets can be
        #: requested while a batch is being written to disk.
        self._writing, self._busy = threading.RLock(), threading.RLock()
        snapshot = read_snapshot(store.path)
        #: How many events the snapshot on the disk has seen; a start has to fold the others again.
        self._kept = 0
        with store.one_moment():
            store.refuse_lost(0 if snapshot is None else snapshot.events)
            try:
                self._begin(snapshot)
            except Exception:  # the log has all that a snapshot holds
                snapshot = None
                self._begin(None)
            for row in store.rows():
                if snapshot is not None and row.last <= snapshot.events:
                    if row.last == snapshot.events and row.checksum == snapshot.checksum:
                        snapshot, self._kept = None, row.last  # which has all that came so far
                    continue
                if snapshot is not None:  # which is not of this log
                    break
                self._fold.take(row.first, row.change())
            if snapshot is not None:
                self._begin(None)
                for row in store.rows():
                    self._fold.take(row.first, row.change())

    def _begin(self, snapshot: Snapshot | None) -> None:
        """Take the state of a snapshot, or an empty one."""
        self._fold = Fold(self._settings)
        self._monitor = Monitor(self._settings.alpha)
        self._history = History(self._settings.alpha)
        if snapshot is not None:
            self._fold.restore(snapshot.events, snapshot.arrays)

    @property
    def _state(self) -> State:
        return self._fold.state

    # -- on the disk ---------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls: type[Self], path: str | os.PathLike[str], *, read_only: bool = False) -> Self:
        """Open what `save` wrote, and stay attached: every change is on the disk before its call returns.

        Parameters
        ----------
        path : str or path
            The folder.
        read_only : bool
            Refuse changes, and leave the folder to its one writer.
        """
        store = Store.open(path, read_only=check_flag("read_only", read_only))
        try:
            live = cls.__new__(cls)
            live._attach(store, LiveSettings.from_description(store.settings))
        except BaseException:
            store.close()
            raise
        return live

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write log and state to a new folder, whole or not at all; this object stays where it is."""
        with self._writing:
            folder = self._store.copy_to(path)
            write_snapshot(folder, self._store.checksum, self._fold)

    def _keep(self, events: int) -> None:
        """Write a snapshot, if there is a folder and this many events have come since the last one.

        The log has everything that it holds: if the disk is full, only the next start takes longer.
        """
        state, store = self._state, self._store
        if store.path is not None and not store.read_only and state.events - self._kept >= events:
            self._kept = state.events
            try:
                write_snapshot(store.path, store.checksum, self._fold)
            except OSError as error:
                log.warning("no snapshot of %s could be written (%s); the log is whole", store.path, error)

    #: Copy the events before a log's damage to a new folder.
    recover = staticmethod(recover)

    def close(self) -> None:
        """Let go of the folder, so that another process may write to it."""
        with self._writing, self._busy:
            if self._store.is_open:
                try:
                    self._keep(1)
                finally:
                    self._store.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- batches -------------------------------------------------------------------------------------------------------

    def update(self, changes: Sequence[tuple[Any, ...]], *, key: str | None = None) -> bool:
        """Do several things as one batch, all of them or none.

        Parameters
        ----------
        changes : sequence of tuples
            The name of a method of this class that changes something, and its arguments:
            ``[("add_nodes", ids, probabilities), ("add_edges", source, target)]``.
        key : str, optional
            As in `add_nodes`.

        Returns
        -------
        bool
            Whether anything was done; False where the key is in the log already.
        """
        if not (key is None or isinstance(key, str)):
            raise InvalidInputError(f"`key` must be text; got {shown(key)}")
        with self._writing:
            # Only a writer changes the state, so a batch is checked while sets are made.
            before = [] if key is None else self._store.batch(key)
            draft = Repeated(self._state) if before else Draft(self._state)
            for change in _listed(changes):
                name, arguments = change[0], change[1:]
                signature = _SIGNATURES.get(name) if isinstance(name, str) else None
                if signature is None:
                    raise InvalidInputError(f"`changes` must name methods of Live that change something; got {name!r}")
                try:
                    signature.bind(draft, *arguments)
                except TypeError as error:
                    raise InvalidInputError(f"`changes` must have the arguments of {name}: {error}") from error
                getattr(draft, name)(*arguments)
            if before and before != packed(draft.changes):
                raise InvalidInputError(f"`key` must be new, or that of the same batch; {key!r} is that of another")
            if not before:
                self._commit(draft.changes, key)
            return not before

    def _do(self, name: str, *arguments: Any, key: str | None) -> None:
        self.update([(name, *arguments)], key=key)

    def _commit(self, changes: list[Change], key: str | None) -> None:
        """Enter a batch that was checked in the log, and let it take effect."""
        if changes:
            first = self._store.append(changes, key)
            try:
                with self._busy:
                    for change in changes:
                        self._fold.take(first, change)
                        first += len(change)
            except BaseException:
                self._store.close()  # the log is ahead of the state; opening it again brings them together
                raise
            self._keep(max(_TAIL, self._state.events // 4))

    def check_writable(self) -> None:
        """Raise what the disk raises where the log cannot be written to now."""
        with self._writing:
            self._store.check_writable()

    @property
    def is_open(self) -> bool:
        """Whether the log can still be written to."""
        return self._store.is_open

    @property
    def events(self) -> int:
        """How many events the log holds."""
        return self._state.events


def _listed(changes: Any) -> list[tuple[Any, ...]]:
    """Return changes as tuples that are not empty."""
    try:
        listed = [tuple(change) for change in changes]
    except TypeError:
        listed = [()]
    if not all(listed):
        raise InvalidInputError(
            f"`changes` must be a sequence of tuples, a name and its arguments; got {type(changes).__name__}"
        )
    return listed
