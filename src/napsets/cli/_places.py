"""Where commands may write: one rule for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from napsets.errors import InvalidInputError
from napsets.files.places import check_output

__all__ = ["REPORT_SUFFIXES", "writable_file", "writable_folder", "wrong_use"]

#: What a report may be called.
REPORT_SUFFIXES = (".html", ".htm")


def writable_file(
    path: Path, suffixes: Iterable[str], inputs: Iterable[Path | None] = (), *, flag: str = "--output"
) -> Path:
    """Return the file to write if it may be, and otherwise call it wrong use before any work is done."""
    with wrong_use(flag):
        return check_output(path, inputs, suffixes, name=_argument(flag))


def writable_folder(path: Path, *, flag: str = "--output") -> Path:
    """Return a folder to write into if it may be: one that is not there yet is made later."""
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(f"must be a folder; {path} is a file", param_hint=flag)
    with wrong_use(flag):
        check_output(path / "any", name=_argument(flag))
    return path


def _argument(flag: str) -> str:
    return flag.removeprefix("--")


@contextmanager
def wrong_use(flag: str) -> Iterator[None]:
    """Call what is refused inside a wrong use of an option."""
    try:
        yield
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error
