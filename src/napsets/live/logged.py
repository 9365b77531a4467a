"""An open log and its fold: opening, saving, and batches that take effect as a whole or not at all.

A snapshot of the fold makes a start fast. It may be deleted at any time, and never counts against the log: one that
cannot be read, was changed, or is of another log is replaced from the log.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from napsets.checks.values import check_flag, check_path, shown
from napsets.errors import FileFormatError, InvalidInputError, NapsetsError
from napsets.files.paths import replacing
from napsets.live.events import Change, Draft
from napsets.live.fold import Fold, as_bytes
from napsets.live.monitoring import History
from napsets.live.settings import LiveSettings
from napsets.live.state import Array, State
from napsets.live.store import Store, damaged_log, packed
from napsets.randomness import encoded_id

Self = TypeVar("Self", bound="Logged")

log = logging.getLogger("napsets")

#: Events that a restart may have to fold again, at the least, before a snapshot is written.
_TAIL = 50_000

#: The version of a snapshot's contents; a snapshot of another version is replaced from the log.
_VERSION = 8
_SNAPSHOT = "snapshot.npz"

#: The signatures of the changes that a batch may hold, by name.
_SIGNATURES = {
    name: inspect.signature(function)
    for name, function in vars(Draft).items()
    if callable(function) and not name.startswith("_")
}


class BatchError(NapsetsError):
    """A batch that passed all checks could not be applied; it is not in the log, and nothing was changed."""


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
        self._fold_log()

    def _fold_log(self) -> None:
        """Fold all events of the log, from the snapshot on if there is one."""
        store, settings = self._store, self._settings
        self._fold, self._history = Fold(settings), History(settings.alpha)
        #: How many events the snapshot on the disk has seen; a start has to fold the others again.
        self._kept = 0
        snapshot = read_snapshot(store.path)
        with store.one_moment():
            if snapshot is not None:
                store.check_complete(snapshot.events)
                if snapshot.checksum == store.checksum_at(snapshot.events):
                    self._kept = snapshot.events
                    self._fold.restore(snapshot.events, snapshot.arrays)
            for row in store.rows():
                if row.last > self._kept:
                    try:
                        self._fold.apply(row.first, row.change())
                    except MemoryError:
                        raise
                    except Exception as error:
                        reason = f"event {row.first} cannot be applied ({type(error).__name__}: {error})"
                        raise damaged_log(store.path, row.first - 1, reason) from error

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
            Accept no changes; another process may write to the folder meanwhile.
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

        If the disk is full, only the next start takes longer: the log holds everything.
        """
        state, store = self._state, self._store
        if store.path is not None and not store.read_only and state.events - self._kept >= events:
            self._kept = state.events
            try:
                write_snapshot(store.path, store.checksum, self._fold)
            except Exception as error:
                log.warning("no snapshot of %s could be written (%s); the log is whole", store.path, error)

    @staticmethod
    def recover(path: str | os.PathLike[str], into: str | os.PathLike[str]) -> int:
        """Copy the events before a log's damage to a new folder, and return how many there are.

        Parameters
        ----------
        path : str or path
            The folder whose log is refused; it stays as it is.
        into : str or path
            A new folder.
        """
        target = Path(check_path("into", into))
        if target.exists():
            raise InvalidInputError(f"`into` must be a new folder; {os.fspath(target)} is there already")
        with closing(Store.open(path, read_only=True, damaged=True)) as damaged:
            try:
                fold = Fold(LiveSettings.from_description(damaged.settings))
            except Exception as error:
                text = f"`path` must hold settings that can be read; those of {path} cannot ({error})"
                raise FileFormatError(text) from error
            with closing(Store.create(damaged.settings)) as saved:
                with suppress(Exception):  # the damage itself, or an event that cannot be applied
                    for row in damaged.rows():
                        change = row.change()
                        fold.apply(row.first, change)
                        saved.append([change], row.key)
                if not saved.events:
                    raise FileFormatError(f"`path` must hold an event that can be read; {path} holds none")
                saved.copy_to(target)
                return saved.events

    def close(self) -> None:
        """Write a snapshot and close the folder, so that another process may write to it."""
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

    def update(self, changes: Sequence[tuple[object, ...]], *, key: str | None = None) -> bool:
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
        if key is not None:
            if not isinstance(key, str):
                raise InvalidInputError(f"`key` must be text; got {shown(key)}")
            encoded_id("key", key)
        with self._writing:
            # Only a writer changes the state, so a batch is checked while sets are made.
            before = [] if key is None else self._store.batch(key)
            draft = Draft(self._state, compares=self._settings.compares, repeated=bool(before))
            for change in _listed(changes):
                name, arguments = change[0], change[1:]
                if not isinstance(name, str) or name not in _SIGNATURES:
                    raise InvalidInputError(f"`changes` must name methods of Live that change something; got {name!r}")
                try:
                    _SIGNATURES[name].bind(draft, *arguments)
                except TypeError as error:
                    raise InvalidInputError(f"`changes` must have the arguments of {name}: {error}") from error
                getattr(draft, name)(*arguments)
            if before and before != packed(draft.changes):
                raise InvalidInputError(f"`key` must be new, or that of the same batch; {key!r} is that of another")
            if not before:
                self._commit(draft.changes, key)
            return not before

    def _commit(self, changes: list[Change], key: str | None) -> None:
        """Enter a batch that was checked in the log, and let it take effect, or take it back."""
        if not changes:
            return
        store = self._store
        before = store.events, store.checksum
        first = store.append(changes, key)
        try:
            with self._busy:
                for change in changes:
                    self._fold.apply(first, change)
                    first += len(change)
        except BaseException as error:
            self._take_back(*before)
            if not isinstance(error, Exception):
                raise
            raise BatchError(
                f"the batch could not be applied ({type(error).__name__}: {error}). Nothing was changed."
            ) from error
        self._keep(max(_TAIL, self._state.events // 4))

    def _take_back(self, events: int, checksum: bytes) -> None:
        """Remove the last batch from the log, and fold what remains."""
        try:
            self._store.take_back(events, checksum)
            with self._busy:
                self._fold_log()
        except BaseException:
            self._store.close()
            raise

    def check_writable(self, *, only_space: bool = False) -> None:
        """Raise the disk's error if the log cannot be written to; `only_space` looks at the free space alone."""
        if check_flag("only_space", only_space):
            self._store.check_space()
            return
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


def _listed(changes: Sequence[Iterable[object]]) -> list[tuple[object, ...]]:
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


class Snapshot(NamedTuple):
    """The arrays of a fold after some event, and the checksum that the log has there."""

    events: int
    checksum: bytes
    arrays: dict[str, Array]


def write_snapshot(folder: Path, checksum: bytes, fold: Fold) -> None:
    """Write a snapshot of a fold into the folder of its log."""
    arrays = fold.arrays()
    head = {"version": _VERSION, "events": fold.state.events, "checksum": checksum.hex(), "digest": _digest(arrays)}
    with replacing(folder / _SNAPSHOT) as path, path.open("wb") as file:
        np.savez(file, head=as_bytes(json.dumps(head).encode()), **arrays)  # type: ignore[arg-type]


def read_snapshot(folder: Path | None) -> Snapshot | None:
    """Return the snapshot of a folder; None where there is none that can be read, or it is not what was written."""
    if folder is None or not (folder / _SNAPSHOT).exists():
        return None
    try:
        with np.load(folder / _SNAPSHOT, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = json.loads(arrays.pop("head").tobytes())
        if head["version"] != _VERSION or head["digest"] != _digest(arrays):
            return None
        return Snapshot(int(head["events"]), bytes.fromhex(head["checksum"]), arrays)
    except Exception:  # zip files fail in many ways, and the log has all of it
        return None


def _digest(arrays: dict[str, Array]) -> str:
    """Return a digest of arrays: kernels do not check the indices in them."""
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
