"""Drafts: what is being written has a hidden name until it is whole.

A process that is killed leaves its draft. The name says which process of which machine that was, so that the next one
which writes to the folder removes the draft; on other machines only age tells that nobody writes to it any more.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["STALE", "discard_drafts", "draft_mark", "drafting", "is_abandoned", "sweep", "temporary_folder"]

#: From this many seconds without a change on, a draft counts as left behind, whoever wrote it.
STALE = 24 * 3600.0

_MARK = re.compile(r"\..*\.napsets-([0-9a-f]{8})-(\d{1,10})-[0-9a-f]{8}(?=\.|$)")

#: What this process is writing, and the name under which it will appear; None where it is not there yet, or to be lost.
_DRAFTS: dict[Path, Path | None] = {}


def draft_mark() -> str:
    """Return a new part of a draft's name: the machine, the process and a random number."""
    return f"napsets-{_machine()}-{os.getpid()}-{os.urandom(4).hex()}"


def is_abandoned(name: str, changed: float) -> bool:
    """Tell whether `name` is a draft of ours that nobody writes to, if it was `changed` then (seconds since 1970)."""
    mark = _MARK.match(name)
    if mark is None:
        return False
    return time.time() - changed > STALE or (mark[1] == _machine() and not _runs(int(mark[2])))


def _machine() -> str:
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _runs(process: int) -> bool:
    """Tell whether a process of this machine may still run; on Windows, asking would end it."""
    try:
        if os.name == "posix":
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it belongs to someone else
    return True


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder that killed runs have left there, and nothing else."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # What another run or user has removed or protected in the meantime is not our concern.
            with suppress(OSError):
                is_file = ".napsets-" in entry.name and entry.is_file(follow_symlinks=False)
                if is_file and is_abandoned(entry.name, entry.stat(follow_symlinks=False).st_mtime):
                    os.unlink(entry.path)


@contextmanager
def drafting(draft: Path, named: Path) -> Iterator[None]:
    """Make an empty draft of what is to be called `named`, and remove it in the end if it is still there."""
    with _owning(draft):
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        _DRAFTS[draft] = named
        yield


@contextmanager
def _owning(draft: Path) -> Iterator[None]:
    _DRAFTS[draft] = None
    try:
        yield
    finally:
        _DRAFTS[draft] = None
        _remove(draft)
        del _DRAFTS[draft]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder for what is on its way from or to a stream."""
    folder = Path(tempfile.gettempdir()) / draft_mark()
    with _owning(folder):
        folder.mkdir(mode=0o700)
        yield folder


def discard_drafts() -> list[Path]:
    """Remove all that this process is writing, which is about to end; return what has got its name by now."""
    named = [name for draft, name in _DRAFTS.items() if name is not None and not draft.exists()]
    for draft in _DRAFTS:
        with suppress(OSError):
            _remove(draft)
    return named


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)
