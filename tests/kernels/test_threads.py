"""Pieces of work on threads: all done once, progress in order, and nothing left running after an error."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

import napsets as ns
from napsets.checks.values import check_threads
from napsets.kernels import csr, deep, jobs
from napsets.kernels.threads import available_threads, run
from oracles import same_bits
from searches import hop_thresholds, make_layout, search_thresholds


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
    monkeypatch.setattr(jobs, "BATCH", 4)
    n = 40_000  # enough batches that no thread has done them all before the first report, on a busy machine either
    graph = ns.Graph.from_edge_index([np.arange(n), np.roll(np.arange(n), 1)], n)
    calls = []

    def progress(done, total):
        calls.append((done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hop_thresholds(graph, np.ones(n), np.arange(n), np.arange(n), [1.0], threads=threads, progress=progress)
    assert len(calls) == 1
    assert calls[0][0] < n
    assert not workers()


def test_threads_come_from_the_argument_then_the_environment_then_the_machine(monkeypatch):
    monkeypatch.setenv("NAPSETS_THREADS", "3")
    assert available_threads(5) == check_threads(5) == 5
    assert available_threads() == check_threads(None) == 3
    monkeypatch.setenv("NAPSETS_THREADS", "")
    assert available_threads() >= 1
    monkeypatch.delenv("NAPSETS_THREADS")
    assert available_threads() >= 1


@pytest.mark.parametrize("value", ["0", "many", "1.5", "-2"])
def test_a_bad_number_of_threads_in_the_environment_is_named(monkeypatch, value):
    monkeypatch.setenv("NAPSETS_THREADS", value)
    with pytest.raises(ValueError, match="`NAPSETS_THREADS` must be"):
        available_threads()
    with pytest.raises(
        ns.InvalidInputError, match=f"`NAPSETS_THREADS` must be an integer from 1 to 1,024; got '{value}'"
    ):
        check_threads(None)


def test_a_search_reports_its_progress_in_nodes():
    graph = ns.Graph.from_edge_index([np.arange(2999), np.arange(1, 3000)], 3000)
    seen = []
    hop_thresholds(graph, [0.5], [0], np.arange(3000), [1.0], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3000, 3000)
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)


@pytest.mark.parametrize(("batches", "fitting"), [(1, 8), (4, 2), (4, 8)])
def test_all_threads_share_the_work_of_a_deep_search(batches, fitting, monkeypatch):
    """Six threads, whether one batch is searched at a time, two, or more than that."""
    monkeypatch.setattr(jobs, "BATCH", 64)
    monkeypatch.setattr(csr, "LEAST_EDGES", 1)
    rng = np.random.default_rng(0)
    graph = ns.Graph.from_edge_index(rng.integers(400, size=(2, 2000)), 400)
    index = make_layout(graph, rng.random(400), np.arange(400))
    ask = partial(search_thresholds, index, np.arange(64 * batches), np.ones(4), 0.1, strategy="deep")
    expected = ask(threads=1)
    threads, seen, pull = 6, set(), deep.pull
    everyone = threading.Event()

    def patient(*arguments):
        seen.add(threading.get_ident())
        if len(seen) == threads:
            everyone.set()
        everyone.wait(timeout=30)
        pull(*arguments)

    monkeypatch.setattr(deep, "pull", patient)
    monkeypatch.setattr(jobs, "DEEP_BYTES", fitting * jobs._deep_bytes(index, 4))
    thresholds = ask(threads=threads)
    assert everyone.is_set()
    assert same_bits(thresholds.values, expected.values)
    assert not workers()
