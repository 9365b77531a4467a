"""What a machine may lack: tests that need it are skipped with a word on how to get it, and fail in CI."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import pytest

#: Marks that tell what kind of tests were skipped.
KINDS = ("browser", "spark", "gnn")
#: How `make test` gets every package; here for those who run pytest in an environment of their own.
PACKAGES = "pip install '.[dev]'"


def lacking(what: str, remedy: str) -> NoReturn:
    """Skip the test, saying how to get what it needs; fail it where CI says that everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: {remedy} (with CI=true nothing is skipped for want of it)")
    pytest.skip(f"{what}: {remedy}")


def skipped_line(reports: Iterable[Any]) -> str:
    """Say in one line how many tests of which kind were skipped, why, and how to get what they need."""
    counts = Counter((_kind(report), _reason(report)) for report in reports)
    parts = [f"{count} {_noun(kind, count)} ({reason})" for (kind, reason), count in counts.most_common()]
    return "skipped: " + ", ".join(parts) if parts else ""


def _kind(report: Any) -> str:
    if isinstance(report, pytest.CollectReport):
        return "file"  # not imported, so that nobody knows how many tests it has
    return next((kind for kind in KINDS if kind in report.keywords), "")


def _noun(kind: str, count: int) -> str:
    noun = "file" if kind == "file" else f"{kind} test".strip()
    return noun if count == 1 else f"{noun}s"


def _reason(report: Any) -> str:
    report_text: str | Sequence[Any] = report.longrepr
    reason = report_text if isinstance(report_text, str) else str(report_text[-1])
    reason = " ".join(reason.removeprefix("Skipped: ").split())
    absent = re.match(r"could not import '([\w.]+)'", reason)
    return f"no {absent[1]}: {PACKAGES}" if absent else reason
