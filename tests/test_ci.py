"""What continuous integration runs beyond `make test`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_ci_runs_what_trains_a_second_time_with_other_last_digits():
    commands = re.findall(r"^make ([\w-]+)", (ROOT / ".ci" / "run").read_text("utf-8"), flags=re.M)
    assert commands[:2] == ["test", "test-plain"]
    (recipe,) = re.findall(r"^test-plain:.*\n\t(.+)", (ROOT / "Makefile").read_text("utf-8"), flags=re.M)
    assert recipe.startswith("ATEN_CPU_CAPABILITY=default ")
    assert recipe.endswith('-m "gnn and not slow"')
