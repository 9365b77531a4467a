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
from contextvars import ContextVar
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

#: Files that must not be written to meanwhile, such as the inputs and the settings file of a command.
_PROTECTED: ContextVar[tuple[Path, ...]] = ContextVar("protected", default=())


@contextmanager
def replacing(path: AnyPath) -> Iterator[Path]:
    """Yield a path to write to, next to `path` and with its suffix; rename it to `path` on success.

    A link stays a link: what it leads to is replaced.
    """
    named = check_path("path", path)
    target = check_apart(named)
    if target.is_dir():
        raise InvalidInputError(f"`path` must name a file; {target} is a folder")
    if not target.parent.is_dir():
        raise InvalidInputError(f"`path` must be in a folder that exists; there is no folder {named.parent}")
    # Cut, so that the name of the draft is not too long where that of the target is just short enough. The suffix is
    # that of the name given, by which the format was chosen.
    draft = target.with_name(f".{target.stem[:40]}.{draft_mark()}{named.suffix}")
    with _owning(draft):
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield draft
        draft.replace(target)


@contextmanager
def protecting(*inputs: AnyPath | None) -> Iterator[None]:
    """Let `check_apart` treat these paths as inputs in this context, wherever it is called."""
    token = _PROTECTED.set(tuple(Path(path) for path in inputs if path is not None))
    try:
        yield
    finally:
        _PROTECTED.reset(token)


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


def check_output(
    path: AnyPath, inputs: Iterable[AnyPath | None] = (), suffixes: Iterable[str] = (), *, name: str = "output"
) -> Path:
    """Refuse, before any work is done, a file that must not or cannot be written; one rule for all commands.

    One that is there is replaced, unless it is no plain file, or one of the `inputs` or inside one; what is protected
    (see `protecting`) counts as such. Where there are `suffixes`, its name must have one, in capital letters or small.
    """
    named, endings = Path(path), tuple(suffixes)
    if endings and not named.name.lower().endswith(endings):
        raise InvalidInputError(f"`{name}` must be a file that ends in {', '.join(endings)}; got {named}")
    target = check_apart(named, inputs, name=name)
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


def check_apart(output: AnyPath, inputs: Iterable[AnyPath | None] = (), *, name: str = "output") -> Path:
    """Return where an output will really be; refuse one that is an input, lies inside one or holds one.

    What is compared are the files, once links and ``..`` are followed, and not the names: ``new/../edges.csv`` is
    ``edges.csv``, also while there is no folder ``new``.
    """
    target = Path(os.path.realpath(output))
    if any(path.is_symlink() for path in (target, *target.parents)):  # what is followed to the end is not a link
        raise InvalidInputError(f"`{name}` must be a file; {output} is a link that leads back to itself")
    for path in (*inputs, *_PROTECTED.get()):
        if path is None:
            continue
        source = Path(os.path.realpath(path))
        if _same(source, target):
            raise InvalidInputError(f"`{name}` would overwrite the input {path}; name another file")
        if _is_inside(target, output, source):
            raise InvalidInputError(f"`{name}` must lie outside the inputs; {output} lies in the input {path}")
        if _is_inside(source, path, target):
            raise InvalidInputError(
                f"`{name}` must not hold an input, which would be lost; {output} holds the input {path}"
            )
    return target


def _is_inside(place: Path, path: AnyPath, folder: Path) -> bool:
    """Tell whether something lies in a folder, where it really is or by its own name."""
    return any(_same(parent, folder) for parent in {*place.parents, *Path(os.path.abspath(path)).parents})


def _same(first: Path, second: Path) -> bool:
    with suppress(OSError):
        return first.samefile(second)
    return False  # one of them is not there
