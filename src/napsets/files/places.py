"""Files that appear whole or not at all, places that may be written to, and damaged files that say so."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from napsets.checks.values import check_path
from napsets.errors import FileFormatError, InvalidInputError, MissingDependencyError
from napsets.files.drafts import draft_mark, drafting, sweep

__all__ = ["check_apart", "check_output", "note_written", "protecting", "reading", "recording", "replacing"]

AnyPath = str | os.PathLike[str]

_WRITTEN: ContextVar[list[Path] | None] = ContextVar("written", default=None)

#: Inputs that whoever writes does not know of, such as the settings file of a command.
_PROTECTED: ContextVar[tuple[Path, ...]] = ContextVar("protected", default=())


@contextmanager
def replacing(path: AnyPath) -> Iterator[Path]:
    """Yield a path to write to, next to `path` and with its suffix; rename it to `path` on success.

    A link stays a link: what it leads to is replaced. What killed runs have left in the folder is removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, replacing(f"{folder}/a.txt") as draft:
    ...     _ = draft.write_text("whole")
    """
    named = check_path("path", path)
    target = check_apart(named)
    if target.is_dir():
        raise InvalidInputError(f"`path` must name a file; {target} is a folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    # Cut, so that the name of the draft is not too long where that of the target is just short enough. The suffix is
    # that of the name given, by which the format was chosen.
    draft = target.with_name(f".{target.stem[:40]}.{draft_mark()}{named.suffix}")
    with drafting(draft, named):
        yield draft
        draft.replace(target)
        note_written(named)


@contextmanager
def protecting(*paths: AnyPath | None) -> Iterator[None]:
    """Keep files from being written to meanwhile: `check_apart` takes them for inputs wherever it is called."""
    token = _PROTECTED.set((*_PROTECTED.get(), *(Path(path) for path in paths if path is not None)))
    try:
        yield
    finally:
        _PROTECTED.reset(token)


@contextmanager
def recording() -> Iterator[list[Path]]:
    """Give the list of what is written from here on, so that an error can say truly what is there."""
    written: list[Path] = []
    token = _WRITTEN.set(written)
    try:
        yield written
    finally:
        _WRITTEN.reset(token)


def note_written(path: AnyPath) -> None:
    """Note that a file or folder is there now, whole."""
    written = _WRITTEN.get()
    if written is not None:
        written.append(Path(path))


@contextmanager
def reading(path: AnyPath, name: str | None = None, *, folder: bool = False) -> Iterator[Path]:
    """Turn what a missing, truncated or mistyped file makes its reader raise into an error that names the file.

    The disk's own errors, such as a file that may not be read, stay what they are.

    Parameters
    ----------
    path : path
        The file.
    name : str, optional
        The argument that it came from: it opens the message.
    folder : bool
        Whether a folder of parts will do.

    Raises
    ------
    FileFormatError
        Where there is no such file, its reader fails, or what it holds is refused.
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

    Parameters
    ----------
    path : path
        The file to write. One that is there is replaced, unless it is an input or no plain file.
    inputs : iterable of path or None
        What is read: `path` may be none of these, under whatever name, and lie inside none of them. What is being
        protected (see `protecting`) counts too.
    suffixes : iterable of str
        Endings of which the name must have one, in capital letters or small; any where there are none.
    name : str
        The argument that the path came from.
    """
    named, endings = Path(path), tuple(suffixes)
    if endings and not named.name.lower().endswith(endings):
        raise InvalidInputError(f"`{name}` must be a file that ends in {', '.join(endings)}; got {named}")
    target = check_apart(named, inputs, name=name)
    if target.is_dir():
        raise InvalidInputError(f"`{name}` must be a file; {named} is a folder. Name a file in it.")
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"`{name}` must be a file; {named} is a device or a pipe")
    # Folders that are not there yet are made when the file is, so the nearest that is there decides.
    folder = next(parent for parent in target.parents if parent.exists())
    with tempfile.TemporaryFile(dir=folder):
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
