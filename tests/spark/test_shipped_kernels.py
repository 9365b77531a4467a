"""Compiled kernels go along: what one process has compiled, others that see the folder need not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .conftest import PACKAGE_ROOT

#: Hashes a text with the kernels kept in a folder; says how often it was compiled, and how often it was found.
PROGRAM = """
import sys
import numpy as np
from napsets.kernels import _jit, texts
if len(sys.argv) > 1:
    _jit.keep_in(sys.argv[1], stay="stay" in sys.argv)
texts.hash_texts(texts.Texts(np.array([0, 3]), np.frombuffer(b"abc", dtype=np.uint8)))
stats = texts._hash.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()), stats.cache_path)
"""


def run(own: Path, *arguments: str) -> tuple[int, int, str]:
    """Run the program as if its machine kept what it compiles in the folder `own`."""
    environment = os.environ | {"PYTHONPATH": PACKAGE_ROOT, "NUMBA_CACHE_DIR": str(own)}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    compiled, kept, path = done.split(maxsplit=2)
    return int(compiled), int(kept), path.strip()


def test_kernels_are_compiled_once_for_all_who_see_the_folder(tmp_path: Path) -> None:
    driver, worker, shared = (tmp_path / name for name in ("driver", "worker", "shared"))
    shared.mkdir()
    assert run(driver)[:2] == (1, 0)
    compiled, kept, path = run(driver, str(shared), "stay")  # what the driver does: it copies, and stays where it was
    assert (compiled, kept) == (0, 1)
    assert path.startswith(str(driver))
    compiled, kept, path = run(worker, str(shared))  # another machine
    assert (compiled, kept) == (0, 1)
    assert path.startswith(str(shared))
    drafts = list(shared.rglob("*.draft"))
    assert drafts == []
