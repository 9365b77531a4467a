"""Compiling kernels: few of them for a small graph, once each, and with a word to whoever listens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import napsets as ns
from napsets.kernels import threads
from napsets.kernels.layout import cache_aligned_zeros, read_only
from napsets.kernels.search import _fastest
from napsets.kernels.threads import worth_compiling
from oracles import same_bits

PREDICT = """
import json, logging
import numpy as np, napsets as ns
from numba.core import event

heard = []
logging.getLogger("napsets").setLevel("INFO")
logging.getLogger("napsets").addFilter(lambda record: heard.append(record.getMessage()))

def predict(nodes, frozen=False):
    rng = np.random.default_rng(0)
    edges, p = rng.integers(nodes, size=(2, 3 * nodes)), rng.dirichlet(np.ones(4), nodes)
    labels, known, asked = rng.integers(4, size=nodes), np.arange(nodes // 2), np.arange(nodes // 2, nodes)
    for array in (edges, p, labels, known, asked):
        array.flags.writeable = not frozen
    predictor = ns.NAPS().calibrate(ns.Graph.from_edge_index(edges, nodes), p, labels, known)
    for array in vars(predictor.scored.reference.index).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = not frozen
    return predictor.predict(asked, 0.5).thresholds.tolist()

def compiled(*arguments):
    with event.install_recorder("numba:compile") as seen:
        answer = predict(*arguments)
    return answer, [e.data["dispatcher"].py_func.__name__ for _, e in seen.buffer if e.is_start]
"""


def in_new_process(code, cache):
    command, env = [sys.executable, "-c", PREDICT + code], {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


BY_KERNELS = "from napsets.kernels import search; search.worth_compiling = lambda size: True\n"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Predict in two processes, of which the second is to compile; return where that is kept and what they answer."""
    cache, code = tmp_path_factory.mktemp("kept"), "print(json.dumps([*compiled(1500), heard]))"
    return cache, in_new_process(code, cache), in_new_process(BY_KERNELS + code, cache)


def test_kernels_that_are_compiled_are_few_and_told_once_and_kept_ones_are_used_at_once(kept):
    cache, (answer, names, records), (forced, compiled, told) = kept
    assert (names, records) == ([], [])  # the work is less than compiling
    assert forced == answer
    assert 0 < len(compiled) <= 23
    assert "_dense" in compiled
    (record,) = told
    assert record.startswith("compiling kernels, once on this machine")
    assert in_new_process(BY_KERNELS + "print(json.dumps([*compiled(1500), heard]))", cache) == [answer, [], []]


def test_numpy_does_small_work_whatever_was_done_before(kept):
    cache, (answer, _, _), _ = kept
    code = "print(json.dumps([*compiled(1500), heard, compiled(1500)[1], compiled(1500)[1]]))"
    assert in_new_process(code, cache) == [answer, [], [], [], []]
    assert [worth_compiling(size) for size in (0, 1 << 19, (1 << 19) + 1, 1e12)] == [False, False, True, True]


@pytest.mark.parametrize(("edges", "nodes", "hops", "plain"), [
    (10**5, 1, 2, True), (10**5, 10_000, 2, True), (10**5, 60_000, 2, False), (10**5, 10_000, 30, False),
    (10**6, 1, 1, False),
])  # fmt: skip
def test_the_plain_search_is_for_small_graphs_and_few_passes(edges, nodes, hops, plain):
    layout = SimpleNamespace(adjacency=SimpleNamespace(num_edges=edges, num_nodes=50_000), size=100)
    assert (_fastest(layout, nodes, hops, 1) == "few") == plain


def test_arrays_that_cannot_be_written_to_need_no_kernels_of_their_own(kept):
    code = """
import sys
from napsets.kernels import threads
threads.SMALL = -1

def used():
    modules = [module for name, module in sys.modules.items() if name.startswith("napsets.kernels.")]
    kernels = [kernel for module in modules for kernel in vars(module).values() if hasattr(kernel, "py_func")]
    return {kernel.__name__: len(kernel.signatures) for kernel in kernels if kernel.signatures}

first, before = predict(6000), used()
again, after = predict(6000, True), used()
print(json.dumps([first == again, before, after]))
"""
    same, before, after = in_new_process(code, kept[0])
    assert same
    assert before == after
    assert {"_dense", "_mirror", "_renumber", "_rank_all", "_rank_labels"} <= set(before)


def test_a_view_for_kernels_cannot_be_written_to_and_leaves_the_array_as_it_was():
    array = np.arange(6)
    view = read_only(array)
    assert np.shares_memory(view, array)
    assert not view.flags.writeable
    assert array.flags.writeable
    assert read_only(array[::2]).flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 5, 40])
def test_few_rows_and_many_have_the_same_scores(dtype, classes, monkeypatch):
    rng = np.random.default_rng(classes)
    p = rng.multinomial(2 * classes, np.full(classes, 1 / classes), size=50).astype(dtype) / dtype(2 * classes)
    u, labels = rng.random(50), rng.integers(classes, size=50)

    def scores():
        return [(score.matrix(p, u), score.at(p, labels, u)) for score in (ns.APS(), ns.RAPS(), ns.SAPS())]

    few = scores()
    monkeypatch.setattr(threads, "SMALL", -1)
    for one, other in zip(few, scores(), strict=True):
        assert same_bits(one[0], other[0])
        assert same_bits(one[1], other[1])


@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 872)])
def test_room_for_kernels_is_zero_and_begins_at_a_line_of_the_cache(shape):
    for room in (cache_aligned_zeros(shape, np.uint64) for _ in range(5)):
        assert room.shape == shape
        assert room.dtype == np.uint64
        assert not room.any()
        assert room.ctypes.data % 64 == 0
        assert room.flags.c_contiguous
        assert room.flags.writeable
