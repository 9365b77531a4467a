"""Where the log is kept: numbered events in an SQLite file, each row chained to the one before by a checksum.

The log determines the state. A folder holds it (``log.sqlite``) with snapshots of the state that make a start fast and
may be deleted at any time. A batch is one transaction, on the disk before `append` returns. A log that was cut,
reordered or changed is refused, and what stands before the damage can be copied with `recover`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from napsets.checks.values import check_path, shown
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.paths import draft_mark
from napsets.live.events import KINDS, Change, pack, unpack
from napsets.live.state import Array

if sys.platform != "win32":
    import fcntl

#: Of the log's layout and of what its events mean.
VERSION = 1
FORMAT = "napsets live graph"
LOG, LOCK = "log.sqlite", "lock"
#: Bytes of one row at the most, before the arrays of a batch are spread over several.
_ROW_BYTES = 1 << 24

#: Bytes that a disk must have left for a store to count as writable.
_LEAST_SPACE = 1 << 19

#: What reading a damaged database raises: errors of SQLite, text that is not UTF-8, and values of another type.
_UNREADABLE = (sqlite3.DatabaseError, ValueError, TypeError)

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE log (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, kind TEXT NOT NULL, batch_key TEXT, payload BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE INDEX batch_keys ON log (batch_key) WHERE batch_key IS NOT NULL;
"""


class Row(NamedTuple):
    """Events of one kind that came together, as the log holds them."""

    first: int
    events: int
    kind: str
    key: str | None
    payload: bytes
    checksum: bytes

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + self.events - 1

    def change(self) -> Change:
        """Return the events."""
        return Change(self.kind, unpack(self.payload))

    def chained(self, before: bytes) -> bytes:
        """Return the checksum that this row must have after another."""
        head = json.dumps([self.first, self.events, self.kind, self.key]).encode()
        chain = hashlib.blake2b(before + head + b"\n", digest_size=16)
        chain.update(self.payload)
        return chain.digest()


class Store:
    """The log of one living graph, open for one writer; without a path it is a temporary file of its own."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path | None,
        lock: sqlite3.Connection | BinaryIO | None,
        settings: str,
    ) -> None:
        self.path, self.settings = path, json.loads(settings)
        self.is_open, self.read_only = True, path is not None and lock is None
        self._connection, self._lock = connection, lock
        self.events, self.checksum = -1, b""  # until the head is read

    def _read_head(self) -> None:
        ((head,),) = self._connection.execute("SELECT value FROM meta WHERE name = 'head'")
        events, checksum = json.loads(head)
        self.events, self.checksum = int(events), bytes.fromhex(checksum)

    # -- making and opening --------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, settings: Mapping[str, object]) -> Store:
        """Return a new, empty log in a temporary file."""
        connection = _connect("")
        connection.executescript(_TABLES)
        text = json.dumps(settings, sort_keys=True)
        store = cls(connection, None, None, text)
        head = json.dumps([0, store._start().hex()])
        meta = {"format": FORMAT, "version": str(VERSION), "settings": text, "head": head}
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        store._read_head()
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False, damaged: bool = False) -> Store:
        """Open the log of a folder for its one writer, or for reading; of a damaged log, the rows before the damage."""
        folder = _folder(path)
        with ExitStack() as closed_on_error:
            lock = None if read_only else closed_on_error.enter_context(closing(_take_lock(folder)))
            connection = closed_on_error.enter_context(closing(_connect(folder / LOG, read_only=read_only)))
            try:
                store = cls(connection, folder, lock, _read_settings(connection, folder))
                if not damaged:
                    with store.one_moment():
                        next(store.rows(), None)  # the settings must be those that the first row follows from
            except _UNREADABLE as error:
                if isinstance(error, InvalidInputError):
                    raise
                raise damaged_log(folder, 0, f"its head cannot be read ({error})") from error
            closed_on_error.pop_all()
        return store

    def close(self) -> None:
        """Close the log, and release its lock."""
        self.is_open = False
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def copy_to(self, path: str | os.PathLike[str]) -> Path:
        """Write the log to a new folder, whole or not at all."""
        target = Path(check_path("path", path))
        if not target.name or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
            raise InvalidInputError(f"`path` must be a new folder; {os.fspath(target)} is there already")
        draft = target.parent / f".{target.name}.{draft_mark()}"
        draft.mkdir(parents=True)
        try:
            with closing(_connect(draft / LOG)) as copy:
                self._connection.backup(copy)
                copy.execute("PRAGMA journal_mode=WAL")
            _sync_folder(draft)
            os.replace(draft, target)
            _sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return target

    # -- the log -------------------------------------------------------------------------------------------------------

    def append(self, changes: Sequence[Change], key: str | None = None) -> int:
        """Write a batch in one transaction, and return the number of its first event."""
        self._check_open()
        start = first = self.events + 1
        checksum = self.checksum
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            for part in (part for change in changes for part in _in_rows(change)):
                row = Row(first, len(part), part.kind, key, pack(part.columns), b"")
                checksum = row.chained(checksum)
                self._connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", row._replace(checksum=checksum))
                first += len(part)
            self._write_head(first - 1, checksum)
        self.events, self.checksum = first - 1, checksum
        return start

    def _write_head(self, events: int, checksum: bytes) -> None:
        head = json.dumps([events, checksum.hex()])
        self._connection.execute("UPDATE meta SET value = ? WHERE name = 'head'", (head,))

    def take_back(self, events: int, checksum: bytes) -> None:
        """Remove the batch after an event; it could not be applied, and was not acknowledged."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM log WHERE first > ?", (events,))
            self._write_head(events, checksum)
        self.events, self.checksum = events, checksum

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Read head and rows of one moment, whatever a writer does meanwhile."""
        self._connection.execute("BEGIN")
        try:
            self._read_head()
            yield
        finally:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def check_complete(self, snapshot: int) -> None:
        """Raise if the log ends before the last event of its snapshot: acknowledged events are lost."""
        if snapshot > self.events:
            raise FileFormatError(
                f"`path` must hold a whole log; in {self.path}, it ends at event {self.events}, and snapshot.npz has "
                f"seen {snapshot}. Put back a newer log, or delete snapshot.npz to go on without these events."
            )

    def rows(self) -> Iterator[Row]:
        """Yield all rows, checking the chain."""
        name = self.path
        checksum = self._start()
        last = 0
        try:
            for values in self._connection.execute("SELECT * FROM log ORDER BY first"):
                row = Row(*values)
                if row.first != last + 1 or not isinstance(row.events, int) or row.events < 1 or row.kind not in KINDS:
                    raise damaged_log(name, last, f"event {last + 1} is missing or out of order")
                if not isinstance(row.payload, bytes):
                    raise damaged_log(name, last, f"event {row.first} holds no bytes")
                checksum = row.chained(checksum)
                if checksum != row.checksum:
                    raise damaged_log(name, last, f"event {row.first} does not have the checksum that it should have")
                last += row.events
                yield row
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise damaged_log(name, last, f"the file cannot be read on ({error})") from error
        if (last, checksum) != (self.events, self.checksum):
            raise damaged_log(name, last, f"it ends at event {last}, and its head names {self.events}")

    def checksum_at(self, event: int) -> object:
        """Return the checksum of the row that ends with an event; None where there is none."""
        query = "SELECT checksum FROM log WHERE first <= ? AND first + count - 1 = ? ORDER BY first DESC LIMIT 1"
        with suppress(sqlite3.DatabaseError):  # `rows` says what is damaged
            row = self._connection.execute(query, (event, event)).fetchone()
            return None if row is None else row[0]
        return None

    def _check_open(self) -> None:
        """Raise unless the log is open for writing."""
        if self.read_only or not self.is_open:
            how = "was opened read_only" if self.is_open else "was closed"
            raise InvalidInputError(f"`path` must be open for writing to be changed; {self.path} {how}")

    def check_space(self) -> None:
        """Raise if the disk is almost full or read-only, without writing anything."""
        if self.path is not None and not self.read_only:
            free = shutil.disk_usage(self.path).free
            if free < _LEAST_SPACE:
                raise OSError(errno.ENOSPC, f"the disk has {free:,} bytes left", os.fspath(self.path))
            if not os.access(self.path, os.W_OK):
                raise OSError(errno.EROFS, "the disk can only be read", os.fspath(self.path))

    def check_writable(self) -> None:
        """Write to the disk without changing anything; raise what a batch would."""
        self._check_open()
        self.check_space()
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("UPDATE meta SET value = value WHERE name = 'head'")

    def batch(self, key: str) -> list[tuple[str, bytes]]:
        """Return the batch with a key, as `packed` returns it; nothing where there is no such batch."""
        query = "SELECT kind, payload FROM log WHERE batch_key = ? ORDER BY first"
        return [(kind, _timeless(unpack(payload))) for kind, payload in self._connection.execute(query, (key,))]

    def _start(self) -> bytes:
        return hashlib.blake2b(json.dumps(self.settings, sort_keys=True).encode(), digest_size=16).digest()


def packed(changes: Sequence[Change]) -> list[tuple[str, bytes]]:
    """Return kinds and payloads without times, to compare a batch with one that has the same key."""
    return [(part.kind, _timeless(part.columns)) for change in changes for part in _in_rows(change)]


def _timeless(columns: Mapping[str, Array]) -> bytes:
    return pack({name: column for name, column in columns.items() if name != "times"})


def _in_rows(change: Change) -> Iterator[Change]:
    """Yield the events of one kind in parts that a row can hold."""
    size = sum(_num_bytes(column) for column in change.columns.values())
    step = max(1, len(change) * _ROW_BYTES // max(size, 1))
    if step >= len(change):
        yield change
    else:
        for start in range(0, len(change), step):
            yield change[start : start + step]


def _num_bytes(column: Array) -> int:
    """Approximate size of a column in the log, in bytes."""
    if column.dtype != object:
        return int(column.nbytes)
    return sum(4 + len(item) if isinstance(item, str) else 20 for item in column.tolist())


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(check_path("path", path))
    if not (folder / LOG).is_file():
        raise FileFormatError(f"`path` must be the folder of a living graph; {folder} holds no {LOG}")
    return folder


def _connect(path: Path | str, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a database with transactions under our own control; of an empty name, a temporary one."""
    name = f"{Path(path).absolute().as_uri()}?{_read_mode(Path(path))}" if read_only else os.fspath(path)
    connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False, uri=read_only)
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):  # whether it is one is found out when it is read
        if not read_only:
            connection.execute(f"PRAGMA journal_mode={'WAL' if path else 'MEMORY'}")
        connection.execute(f"PRAGMA synchronous={'FULL' if path else 'OFF'}")
    return connection


def _read_mode(log: Path) -> str:
    """Return the mode for reading a log: immutable where SQLite cannot create the files of a reader."""
    if log.with_name(f"{LOG}-wal").exists() or _can_write(log.parent):
        return "mode=ro"
    return "mode=ro&immutable=1"


def _can_write(folder: Path) -> bool:
    """Whether files can be created in a folder; tried on the disk, because permissions do not bind root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _take_lock(folder: Path) -> sqlite3.Connection | BinaryIO:
    """Lock the folder for this process, by a file of its own, so that readers of the log are not locked out.

    Where there is `flock`, the lock belongs to the open file. Those of SQLite belong to the process, which loses them
    when it closes any other handle of the file, for instance to copy the folder.
    """
    if not _can_write(folder):
        raise InvalidInputError(
            f"`path` must be a folder that can be written to; {folder} cannot.",
            {"python": "Free or mend its disk, or pass read_only=True.", "terminal": "Free or mend its disk."},
        )
    if sys.platform == "win32":
        lock: sqlite3.Connection | BinaryIO = sqlite3.connect(
            folder / LOCK, timeout=0.0, isolation_level=None, check_same_thread=False
        )
    else:
        lock = (folder / LOCK).open("ab")
    try:
        if isinstance(lock, sqlite3.Connection):
            lock.execute("BEGIN EXCLUSIVE")
        elif sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (sqlite3.Error, OSError) as error:
        lock.close()
        raise InvalidInputError(
            f"`path` must not be open for writing elsewhere; {folder} is.",
            {
                "python": "Close it there, or pass read_only=True.",
                "terminal": "Stop the process that has it. `napsets status` can read it meanwhile.",
            },
        ) from error
    return lock


def _sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, where the system can."""
    if os.name == "posix":
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _read_settings(connection: sqlite3.Connection, folder: Path) -> str:
    """Return the settings of a log, which must be of this version."""
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    if meta.get("format") != FORMAT:
        raise FileFormatError(f"`path` must be the folder of a living graph; {folder / LOG} is another database")
    if meta.get("version") != str(VERSION):
        raise FileFormatError(
            f"`path` must hold a log of version {VERSION}; {folder} holds version {shown(meta.get('version'))}. "
            f"Nothing was changed: open it with the napsets that wrote it."
        )
    return str(meta.get("settings", ""))


def damaged_log(folder: Path | None, whole: int, what: str) -> FileFormatError:
    """Return the error for a damaged log, which names the events that can be saved."""
    return FileFormatError(
        f"`path` must hold a whole log; in {folder}, {what}. Nothing was changed. Events 1 to {whole} are whole: "
        f"Live.recover(path, into) copies them to a new folder."
        if whole
        else f"`path` must hold a whole log; in {folder}, {what}. Nothing was changed, and no event can be read."
    )
