"""Pieces of work on threads: all done once, progress in order, and nothing left running after an error."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import napsets as ns
from napsets.errors import InvalidInputError
from napsets.kernels import plan
from napsets.kernels.threads import available_threads, run


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("napsets")]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_piece_runs_once_and_progress_counts_to_the_total(threads):
    ran, seen = [], []
    lock = threading.Lock()

    def piece(i):
        def work(stop):
            assert not stop()
            with lock:
                ran.append(i)

        return work

    pieces = ((i % 3 + 1, piece(i)) for i in range(50))
    total = sum(i % 3 + 1 for i in range(50))
    run(pieces, threads=threads, total=total, progress=lambda done, of: seen.append((done, of)))
    assert sorted(ran) == list(range(50))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (total, total)
    assert not workers()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_piece_stops_the_taking_and_is_raised(threads):
    taken = []

    def pieces():
        for i in range(1000):
            taken.append(i)
            yield 1, (lambda stop: 1 / 0) if i == 5 else (lambda stop: None)

    with pytest.raises(ZeroDivisionError):
        run(pieces(), threads=threads, total=1000)
    assert len(taken) < 100
    assert not workers()


def test_an_error_tells_the_pieces_under_way_to_stop():
    begun, stopped = threading.Event(), threading.Event()

    def patient(stop):
        begun.set()
        while not stop():
            pass
        stopped.set()

    def failing(stop):
        begun.wait()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run([(1, patient), (1, failing)], threads=2, total=2)
    assert stopped.is_set()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_in_the_progress_callback_stops_a_search_and_leaves_no_thread(threads, monkeypatch):
    monkeypatch.setattr(plan, "BATCH", 4)
    n = 4000
    graph = ns.Graph.from_edge_index([np.arange(n), np.roll(np.arange(n), 1)], n)
    calls = []

    def progress(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ns.hop_thresholds(graph, np.ones(n), np.arange(n), np.arange(n), [1.0], threads=threads, progress=progress)
    assert len(calls) == 3
    assert calls[-1][0] < n
    assert not workers()


def test_threads_come_from_the_argument_then_the_environment_then_the_machine(monkeypatch):
    monkeypatch.setenv("NAPSETS_THREADS", "3")
    assert available_threads(5) == 5
    assert available_threads() == 3
    monkeypatch.setenv("NAPSETS_THREADS", "")
    assert available_threads() >= 1
    monkeypatch.delenv("NAPSETS_THREADS")
    assert available_threads() >= 1


@pytest.mark.parametrize("value", ["0", "many", "1.5", "-2"])
def test_a_bad_number_of_threads_in_the_environment_is_named(monkeypatch, value):
    monkeypatch.setenv("NAPSETS_THREADS", value)
    with pytest.raises(InvalidInputError, match="`NAPSETS_THREADS` must be"):
        available_threads()


def test_a_search_reports_its_progress_in_nodes():
    graph = ns.Graph.from_edge_index([np.arange(2999), np.arange(1, 3000)], 3000)
    seen = []
    ns.hop_thresholds(
        graph, [0.5], [0], np.arange(3000), [1.0], progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (3000, 3000)
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)
