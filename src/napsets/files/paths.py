"""Files that appear whole or not at all, places that may be written to, and damaged files that say so.

What is being written is a draft: it has a hidden name until it is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from napsets.checks.values import check_path
from napsets.errors import FileFormatError, InvalidInputError, MissingDependencyError

#: The drafts of this process.
_DRAFTS: set[Path] = set()


def draft_mark() -> str:
    """Return a new part of a draft's name: the process and a random number."""
    return f"napsets-{os.getpid()}-{os.urandom(4).hex()}"


@contextmanager
def _owning(draft: Path) -> Iterator[None]:
    """Remove a draft in the end if it is still there."""
    _DRAFTS.add(draft)
    try:
        yield
    finally:
        _remove(draft)
        _DRAFTS.discard(draft)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder for what is on its way from or to a stream."""
    folder = Path(tempfile.gettempdir()) / draft_mark()
    with _owning(folder):
        folder.mkdir(mode=0o700)
        yield folder


def discard_drafts() -> None:
    """Remove the drafts of this process, which is about to end."""
    for draft in tuple(_DRAFTS):
        with suppress(OSError):
            _remove(draft)


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


AnyPath = str | os.PathLike[str]


@contextmanager
def replacing(path: AnyPath) -> Iterator[Path]:
    """Yield a path to write to, next to `path` and with its suffix; rename it to `path` on success.

    A link stays a link: what it leads to is replaced.
    """
    named = check_output(check_path("path", path), name="path")
    target = Path(os.path.realpath(named))
    # Cut, so that the name of the draft is not too long where that of the target is just short enough. The suffix is
    # that of the name given, by which the format was chosen.
    draft = target.with_name(f".{target.stem[:40]}.{draft_mark()}{named.suffix}")
    with _owning(draft):
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield draft
        draft.replace(target)


@contextmanager
def reading(path: AnyPath, name: str | None = None, *, folder: bool = False) -> Iterator[Path]:
    """Turn what a missing, truncated or mistyped file makes its reader raise into a `FileFormatError` that names it.

    The disk's own errors, such as a file that may not be read, stay what they are. `name` is the argument that the file
    came from, which opens the message; with `folder`, a folder of parts will do.
    """
    source = check_path(name or "path", path)
    if not source.is_file() and not (folder and source.is_dir()):
        raise _missing(source, name)
    try:
        yield source
    except (FileFormatError, MissingDependencyError, MemoryError):
        raise
    except InvalidInputError as error:
        raise FileFormatError(f"{source}: {error}") from error
    except FileNotFoundError as error:
        raise _missing(source, name) from error  # another process has removed it in the meantime
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # the disk's fault, not the file's; a damaged zip file leads to places before its start
        opening = "" if name is None else f"`{name}` must be a whole file of the kind its name says; "
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{opening}{source} is truncated or of another kind: {reason}") from error


def _missing(source: Path, name: str | None) -> FileFormatError:
    if name is not None and source.is_dir():
        return FileFormatError(f"`{name}` must be a file; {source} is a folder")
    what = (
        f"{source} must be a file; there is none"
        if name is None
        else f"`{name}` must be a file; there is none at {source}"
    )
    return FileFormatError(f"{what}. Check the path.")


# -- where may be written ------------------------------------------------------------------------------------------


def check_output(path: AnyPath, suffixes: Iterable[str] = (), *, name: str = "output") -> Path:
    """Refuse, before any work is done, a file that cannot be written; one rule for all commands.

    One that is there is replaced, unless it is no plain file. Where there are `suffixes`, its name must have one, in
    capital letters or small.
    """
    named, endings = Path(path), tuple(suffixes)
    if endings and not named.name.lower().endswith(endings):
        raise InvalidInputError(f"`{name}` must be a file that ends in {', '.join(endings)}; got {named}")
    target = Path(os.path.realpath(named))
    if target.is_dir():
        raise InvalidInputError(f"`{name}` must be a file; {named} is a folder. Name a file in it.")
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"`{name}` must be a file; {named} is a device or a pipe")
    if not target.parent.is_dir():
        raise InvalidInputError(
            f"`{name}` must be in a folder that exists; there is no folder {named.parent}. Make it first."
        )
    with tempfile.TemporaryFile(dir=target.parent):
        pass
    return named


def check_apart(output: AnyPath, inputs: Iterable[AnyPath], *, name: str = "output") -> None:
    """Raise if an output is an input or lies inside one.

    What is compared are the files, once links and ``..`` are followed, and not the names: ``new/../edges.csv`` is
    ``edges.csv``, also while there is no folder ``new``.
    """
    target = Path(os.path.realpath(output))
    for path in inputs:
        source = Path(os.path.realpath(path))
        same = source.exists() and target.exists() and source.samefile(target)
        if same or source in (target, *target.parents):
            raise InvalidInputError(f"`{name}` would overwrite the input {path}, or lie in it; name another file")
