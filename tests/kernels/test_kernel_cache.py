"""The cache of compiled kernels may be damaged, full or shared: work goes on without it, and says so once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
from numba.core.caching import FunctionCache, IndexDataCacheFile, _CacheLocator

import napsets as ns
from napsets.kernels import _jit
from napsets.kernels._jit import jit


def double(x):
    return x + x


def triple(x):
    return x + x + x


class Kernels:
    """Two kernels as a new process has them: nothing is compiled yet, and nothing was warned of."""

    def __init__(self):
        self.kernels = [jit(double), jit(triple)]
        _jit._printed.clear()

    def call(self):
        """Return what they answer, how many were kept on disk, and the warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = [kernel(2) for kernel in self.kernels]
        hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in self.kernels)
        assert all(w.category is ns.NapsetsWarning for w in caught)
        return answer, hits, [str(w.message) for w in caught]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_jit, "_printed", set())


@pytest.mark.parametrize(
    ("kind", "share"),
    [("nbi", 0.5), ("nbc", 0.99)]
    + [
        pytest.param(*each, marks=pytest.mark.slow)
        for each in [("nbi", 0.0), ("nbi", 0.99), ("nbc", 0.0), ("nbc", 0.5)]
    ],
)
def test_a_damaged_cache_is_told_once_and_made_anew(tmp_path, kind, share):
    assert Kernels().call() == ([4, 6], 0, [])
    damaged = list(tmp_path.rglob(f"*.{kind}"))
    assert len(damaged) == 2
    for path in damaged:
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    answer, hits, warned = Kernels().call()
    assert (answer, hits, len(warned)) == ([4, 6], 0, 1)
    assert f"compiled kernels could not be read in {tmp_path}" in warned[0]
    assert "NUMBA_CACHE_DIR" in warned[0]
    assert Kernels().call() == ([4, 6], 2, [])


def test_what_another_version_kept_is_made_anew_without_a_word(monkeypatch):
    class Pair(NamedTuple):
        first: int

    def add(pair):
        return pair.first + 1

    monkeypatch.setattr(sys.modules[__name__], "Pair", Pair, raising=False)
    Pair.__qualname__ = "Pair"
    assert jit(add)(Pair(2)) == 3
    monkeypatch.delattr(sys.modules[__name__], "Pair")
    Renamed = type(Pair)("Renamed", (Pair,), {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit(add)(Renamed(2)) == 3


@pytest.mark.parametrize("step", ["index", "data"])
def test_a_full_disk_is_told_once_and_leaves_nothing_that_leads_astray(tmp_path, monkeypatch, step):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, f"_save_{step}", refuse)
    answer, _, warned = Kernels().call()
    assert (answer, len(warned)) == ([4, 6], 1)
    assert "could not be written in" in warned[0]
    assert "No space left on device" in warned[0]
    assert not list(tmp_path.rglob("*.nbi"))  # which could name data of an older version


def test_a_folder_that_can_no_longer_be_written_to_is_told_once(monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    kernels = Kernels()
    monkeypatch.setattr(_CacheLocator, "ensure_cache_path", refuse)
    answer, _, warned = kernels.call()
    assert (answer, len(warned)) == ([4, 6], 1)
    assert "Permission denied" in warned[0]


SCRIPT = "import json; from kernels.test_kernel_cache import Kernels; print(json.dumps(Kernels().call()))"


def start_process(folder):
    """Start a process that calls two kernels."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=env, stdout=subprocess.PIPE, text=True)


def printed(process):
    out, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(out)


def test_two_processes_that_fill_one_cache_at_once_both_answer(tmp_path):
    both = [start_process(tmp_path) for _ in range(2)]
    assert [printed(process)[::2] for process in both] == [[[4, 6], []]] * 2
    assert printed(start_process(tmp_path)) == [[4, 6], 2, []]
    assert Kernels().call() == ([4, 6], 2, [])


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
