"""Writing files whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a temporary file beside `path`; rename it to `path` at the end, remove it on any error."""
    target = Path(path)
    # The suffix stays, because some writers choose the format by it.
    temporary = target.with_name(f".{target.name}.{uuid4().hex[:8]}{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
