"""Compressed sparse rows by counting, against adjacency sets."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.kernels import csr, deep, threads
from napsets.kernels.layout import read_only
from oracles import adjacency_sets, rows_of
from strategies import edge_lists

sized_edges = st.integers(1, 15).flatmap(lambda n: st.tuples(st.just(n), edge_lists(n)))


@given(sized=sized_edges)
def test_two_counting_passes_leave_sorted_rows_without_repeats_and_self_loops(sized):
    size, edges = sized
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "SMALL", -1)
        for directed in (False, True):
            expected = rows_of(adjacency_sets(edges, size, directed=directed))
            for dtype in (np.int32, np.int64):
                pairs = np.array(edges, dtype=dtype).reshape(-1, 2)
                rows, columns, _ = csr.compress(*pairs.T, size, directed, None, np.int32)
                assert (rows.tolist(), columns.tolist()) == expected
                assert rows.dtype == np.int64


@pytest.fixture
def far_columns():
    """More than 2³¹ columns, of which only the last are ever touched; the rest is address space, not memory."""
    count = 2**31 + 64
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    columns = np.frombuffer(mmap.mmap(-1, 4 * count, flags=flags), dtype=np.int32)
    assert columns.flags.writeable
    return columns


def test_offsets_beyond_2_to_the_31_are_followed_when_a_graph_is_cut_and_mirrored(far_columns):
    start = 2**31 + 1  # past what 32 bits can count
    far_columns[start : start + 4] = [1, 2, 2, 3]
    rows = np.array([start, start + 2, start + 3, start + 4, start + 4], np.int64)  # 0-1, 0-2, 1-2, 2-3
    out, offsets = np.empty(8, np.int32), np.zeros(5, np.int64)
    csr._mirror(read_only(rows), read_only(far_columns), out, offsets, np.empty(4, np.int64), None, None)
    assert offsets.tolist() == [0, 2, 4, 7, 8]
    assert out.tolist() == [1, 2, 0, 2, 0, 1, 3, 2]
    offsets, kept, _ = csr.subgraph(rows, far_columns, np.array([2, 0, 3]))
    assert offsets.tolist() == [0, 1, 2, 2]
    assert kept.tolist() == [2, 0]


def test_offsets_beyond_2_to_the_31_are_followed_by_a_search(far_columns):
    from napsets.kernels import shallow
    from napsets.kernels.layout import NO_VECTORS, HubRows, Pairs, Selection, read_only_record

    start = 2**31 + 1
    far_columns[start : start + 4] = [1, 0, 2, 1]  # the path 0-1-2
    starts = np.array([start, start + 1, start + 3], np.int64)
    stops = np.array([start + 1, start + 3, start + 4], np.int64)
    mask = np.zeros(8, np.uint64)
    mask[0] = 0b111
    thresholds, counts = np.empty((3, 1, 1)), np.empty((3, 2), np.int64)
    rows = read_only_record(shallow.NumberedRows(starts, stops, far_columns, None))
    hubs = read_only_record(HubRows(stops, stops, NO_VECTORS))
    pairs = read_only_record(Pairs(np.arange(4), mask))
    scores, rules = np.array([0.1, 0.2, 0.3]), np.zeros(1, np.int8)
    selection = Selection(np.ones((1, 2)), np.array([0.5]), rules, 1e-9, scores, thresholds, counts)
    ending = (pairs, read_only_record(selection), None, None)
    shallow.dense_search(read_only(np.arange(3, dtype=np.int32)), rows, hubs, 2, ending, 0, 3)
    assert thresholds.ravel().tolist() == [0.3, 0.3, 0.2]
    assert counts.tolist() == [[1, 1], [2, 0], [1, 1]]


def test_offsets_beyond_2_to_the_31_are_followed_by_the_bit_parallel_search(far_columns):
    start = 2**31 + 1
    far_columns[start : start + 8] = [1, 0, 2, 1, 3, 2, 0, 0]  # the path 0-1-2-3
    indptr = read_only(np.array([start, start + 1, start + 3, start + 5, start + 6], np.int64))
    columns = read_only(far_columns)
    reach, level = np.empty((4, deep.WORDS), np.uint64), np.empty((4, deep.WORDS), np.uint64)
    deep.start(np.array([0, 3]), indptr, columns, reach, level)
    assert level[:, 0].tolist() == [0b01, 0b01, 0b10, 0b10]
    assert deep.active_edges(0, 4, indptr, level) == 6
    everyone = np.array([0b11] + [0] * (deep.WORDS - 1), np.uint64)
    deep.pull(0, 4, indptr, columns, everyone, np.ones(4, bool), level, reach)
    pushed = level.copy()
    deep.push(0, 4, indptr, columns, level, pushed)
    assert reach[:, 0].tolist() == pushed[:, 0].tolist() == [0b01, 0b11, 0b11, 0b10]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("known", [0, 20, 50])
def test_rows_are_renumbered_with_calibration_nodes_first(threads, known, monkeypatch):
    monkeypatch.setattr(csr, "RANGE_EDGES", 20)
    rng = np.random.default_rng(threads)
    graph = ns.Graph.from_edge_index(rng.integers(50, size=(2, 100)), 50)
    numbers = rng.permutation(50).astype(np.int32)
    columns, middles = csr.renumbered(graph.indptr, graph.indices, numbers, known, threads)
    for node in range(50):
        first, middle, last = graph.indptr[node], middles[node], graph.indptr[node + 1]
        assert sorted(columns[first:last]) == sorted(numbers[graph.neighbours(node)])
        assert (columns[first:middle] < known).all()
        assert (columns[middle:last] >= known).all()


@pytest.mark.parametrize("edges", [1, 7, 10**9])
def test_ranges_cut_the_nodes_without_gap_or_overlap(edges, monkeypatch):
    monkeypatch.setattr(csr, "RANGE_EDGES", edges)
    indptr = np.array([0, 0, 5, 5, 30, 31, 31], np.int64)
    assert [v for first, last in csr.row_ranges(indptr) for v in range(first, last)] == list(range(6))


def test_ranges_of_rows_hold_few_edges(monkeypatch):
    monkeypatch.setattr(csr, "RANGE_EDGES", 30)
    graph = ns.Graph.from_edge_index(np.random.default_rng(0).integers(80, size=(2, 200)), 80)
    ranges = csr.row_ranges(graph.indptr)
    assert all(graph.indptr[last] - graph.indptr[first] <= 30 + graph.degrees.max() for first, last in ranges)
