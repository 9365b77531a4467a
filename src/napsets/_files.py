"""Files that appear whole or not at all, and damaged ones that say so."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from napsets.errors import FileFormatError, MissingDependencyError

__all__ = ["reading", "replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, beside `path` and with its suffix; rename it to `path` if all went well.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, replacing(f"{folder}/a.txt") as draft:
    ...     _ = draft.write_text("whole")
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Turn whatever a missing or damaged file makes its reader raise into a FileFormatError that names the file."""
    source = Path(path)
    if not source.is_file():
        raise FileFormatError(f"{source} must be a file; there is none")
    try:
        yield source
    except (FileFormatError, MissingDependencyError):
        raise
    except Exception as error:
        raise FileFormatError(f"{source} is truncated or of another kind: {error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
