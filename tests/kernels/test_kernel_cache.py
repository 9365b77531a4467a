"""The cache of compiled kernels may be damaged, full or shared: work goes on without it, and says so once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from numba.core.caching import FunctionCache

from napsets.kernels import _jit
from napsets.kernels._jit import jit

SCRIPT = """
import json, warnings
from napsets.kernels._jit import jit

@jit
def double(x):
    return x + x

@jit
def triple(x):
    return x + x + x

{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    answer = [double(2), triple(2)]
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in (double, triple))
assert all(w.category.__name__ == "NapsetsWarning" for w in caught)
print(json.dumps([answer, hits, [str(w.message) for w in caught]]))
"""


@pytest.fixture
def start(tmp_path):
    """Start a process that calls two kernels; it tells their answers, those that were cached, and what it warned."""

    def begin(before=""):
        script = tmp_path / "kernels.py"
        if not script.exists() or script.read_text() != SCRIPT.format(before=before):
            script.write_text(SCRIPT.format(before=before))
            os.utime(script, (0, 0))  # a kernel that seems changed would be compiled again
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        return subprocess.Popen([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True)

    return begin


def printed(process):
    out, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize(
    ("kind", "share"),
    [("nbi", 0.5), ("nbc", 0.99)]
    + [
        pytest.param(*each, marks=pytest.mark.slow)
        for each in [("nbi", 0.0), ("nbi", 0.99), ("nbc", 0.0), ("nbc", 0.5)]
    ],
)
def test_a_damaged_cache_is_told_once_and_made_anew(start, tmp_path, kind, share):
    assert printed(start()) == [[4, 6], 0, []]
    damaged = list(tmp_path.rglob(f"*.{kind}"))
    assert len(damaged) == 2
    for path in damaged:
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    answer, hits, warned = printed(start())
    assert (answer, hits, len(warned)) == ([4, 6], 0, 1)
    assert f"compiled kernels could not be read in {tmp_path}" in warned[0]
    assert "NUMBA_CACHE_DIR" in warned[0]
    assert printed(start()) == [[4, 6], 2, []]


FULL = """
from numba.core.caching import IndexDataCacheFile
def refuse(*_):
    raise OSError(28, "No space left on device")
IndexDataCacheFile._save_{step} = refuse
"""


@pytest.mark.parametrize("step", ["index", "data"])
def test_a_full_disk_is_told_once_and_leaves_nothing_that_leads_astray(start, tmp_path, step):
    answer, _, warned = printed(start(FULL.format(step=step)))
    assert (answer, len(warned)) == ([4, 6], 1)
    assert "could not be written in" in warned[0]
    assert "No space left on device" in warned[0]
    assert not list(tmp_path.rglob("*.nbi"))  # which could name data of an older version


REFUSED = """
from numba.core import caching
def refuse(self):
    raise PermissionError(13, "Permission denied")
caching._CacheLocator.ensure_cache_path = refuse
"""


def test_a_folder_that_can_no_longer_be_written_to_is_told_once(start):
    answer, _, warned = printed(start(REFUSED))
    assert (answer, len(warned)) == ([4, 6], 1)
    assert "Permission denied" in warned[0]


def test_two_processes_that_fill_one_cache_at_once_both_answer(start):
    both = [start() for _ in range(2)]
    assert [printed(process)[::2] for process in both] == [[[4, 6], []]] * 2
    assert printed(start()) == [[4, 6], 2, []]


def test_what_another_process_wrote_under_the_same_name_is_not_taken_for_the_own(monkeypatch):
    @jit
    def double(x):
        return x + x

    assert double(2) == 4
    (whole,) = double.overloads.values()
    monkeypatch.setattr(FunctionCache, "load_overload", lambda *_: whole)
    assert double(2.25) == 4.5
    assert len(double.overloads) == 2


def test_kernels_are_compiled_again_after_a_change_in_any_file_beside_them(monkeypatch):
    @jit
    def double(x):
        return x + x

    assert double(2) == 4
    kept = _jit._Cache(double.py_func)._cache_file
    assert kept._load_index()
    monkeypatch.setattr(_jit, "_newest_source", lambda: (0.0, 1))
    assert not _jit._Cache(double.py_func)._cache_file._load_index()
