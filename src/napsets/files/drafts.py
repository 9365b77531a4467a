"""Names for what is being written: they say by whom, so that what a killed run has left is known and removed.

A draft is called ``.<what>.napsets-<place>-<process>-<start>-<random>``. The place stands for the machine as far as
process numbers mean anything (its name, its last start, the container), so that "this process is gone" can be told
without a lock, on any file system. Where the place is another, only age can tell.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

__all__ = ["STALE", "draft_mark", "is_abandoned", "sweep"]

#: From so many seconds without a change on, what a process elsewhere was writing counts as left behind.
STALE = 24 * 3600.0

#: Whether asking after a process does it no harm; on Windows it would end it.
_CAN_ASK = os.name == "posix"

_MARK = re.compile(r"\.napsets-([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{8}(?=\.|$)")


def draft_mark() -> str:
    """Return a new name part that says who writes: place, process, when that began, and a random number."""
    pid = os.getpid()
    return f"napsets-{_place()}-{pid}-{_started(pid) or 0}-{os.urandom(4).hex()}"


def is_abandoned(name: str, changed: float) -> bool:
    """Tell whether `name` is a draft of ours whose writer is gone.

    Parameters
    ----------
    name : str
        The name of a file or folder.
    changed : float
        When it was last changed, in seconds since 1970.
    """
    found = _MARK.search(name)
    if found is None or not name.startswith("."):
        return False
    place, pid, started = found[1], int(found[2]), int(found[3])
    if place == _place() and _CAN_ASK:
        return not _runs(pid, started)
    return time.time() - changed > STALE


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder that killed runs have left there; nothing else, and no living run's."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # What another run or user has removed or protected in the meantime is not our concern.
            with suppress(OSError):
                if ".napsets-" not in entry.name or not entry.is_file(follow_symlinks=False):
                    continue
                if is_abandoned(entry.name, entry.stat(follow_symlinks=False).st_mtime):
                    os.unlink(entry.path)


def _runs(pid: int, started: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it runs, and belongs to someone else
    # It may have ended and wait to be asked how; and the number may have been given to another process since.
    told = _told_of(pid)
    if told[:1] == ["Z"]:
        return False
    now = _started(pid)
    return now is None or started == 0 or now == started


def _started(pid: int) -> int | None:
    """Return when a process began, in ticks since the machine's start; None where that cannot be known."""
    try:
        return int(_told_of(pid)[19])
    except (ValueError, IndexError):
        return None


def _told_of(pid: int) -> list[str]:
    """Return what the machine tells of a process, its state first; nothing where it tells nothing."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


@lru_cache(maxsize=1)
def _place() -> str:
    """Return eight digits for where process numbers are the same: the machine since its start, and the container."""
    told = [platform.node()]
    with suppress(OSError):
        told.append(os.readlink("/proc/self/ns/pid"))
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    return hashlib.blake2b("\n".join(told).encode(), digest_size=4).hexdigest()
