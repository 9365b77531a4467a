"""What a machine may lack: tests that need it are skipped with a word on how to get it, and fail in CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

#: How `make test` gets every package; here for those who run pytest in an environment of their own.
PACKAGES = "pip install '.[dev]'"


def lacking(what: str, remedy: str) -> NoReturn:
    """Skip the test, saying how to get what it needs; fail it where CI says that everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: {remedy} (with CI=true nothing is skipped for want of it)")
    pytest.skip(f"{what}: {remedy}")
