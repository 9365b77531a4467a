"""No event is in the log that could not be applied: whatever ids come, in any kind of event, the store opens again."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

import napsets as ns
from napsets.errors import FileFormatError, InvalidInputError
from napsets.live.logged import BatchError
from napsets.live.state import GrowingAdjacency, State
from napsets.randomness import MOST_ID_BYTES

ROWS = [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]]
GOOD = [0, 1, "1", "", "a\0", "ä 🙂", -(2**63), 2**63 - 1, "x" * MOST_ID_BYTES, "é" * (MOST_ID_BYTES // 2)]
BAD = [2**63, 2**64, True, None, 1.5, float("nan"), b"a", "\ud800", "x" * (MOST_ID_BYTES + 1), "é" * MOST_ID_BYTES, [1]]


def hostile_change(rng):
    """A change of any kind, with ids of any kind, length and order."""
    kinds = ["add_nodes", "add_labels", "set_probabilities", "remove_labels", "remove_nodes", "add_edges"]
    kind = rng.choice([*kinds, "add_nodes", "add_labels", "remove_edges", "refit"])
    pool = GOOD if rng.random() < 0.8 else GOOD + BAD
    ids = rng.choices(pool, k=rng.randint(0, 3)) if rng.random() < 0.3 else rng.sample(pool, rng.randint(1, 3))
    if rng.random() < 0.1:
        try:
            ids = np.array(ids)
        except (ValueError, OverflowError):
            ids = rng.choice(pool)
    count = 1 if isinstance(ids, str | int) else len(ids) if hasattr(ids, "__len__") else 1
    count += rng.random() < 0.05
    if kind == "refit":
        return (kind,)
    if kind in ("add_nodes", "set_probabilities"):
        return kind, ids, [rng.choice(ROWS) for _ in range(count)]
    if kind == "add_labels":
        return (
            kind,
            ids,
            [rng.choice((0, 1, 1, 0, 7)) if rng.random() < 0.1 else rng.randint(0, 1) for _ in range(count)],
        )
    if kind in ("add_edges", "remove_edges"):
        return kind, ids, rng.choices(pool, k=count)
    return kind, ids


@pytest.mark.parametrize("method", ["split", "naps-exact", "informed"])
def test_whatever_ids_come_the_store_opens_again(tmp_path, method):
    rng = random.Random(method)
    live = ns.Live(method, alpha=0.3, directed=method == "split")
    done = 0
    for step in range(600):
        before = live.status()
        try:
            done += live.update([hostile_change(rng) for _ in range(rng.randint(1, 3))])
        except InvalidInputError:  # and nothing else
            assert live.status() == before
        if step % 100 == 99:
            folder = tmp_path / str(step)
            live.save(folder)
            (folder / "snapshot.npz").unlink()
            assert ns.Live.recover(folder, tmp_path / f"{step} saved") == live.events
            with ns.Live.open(folder, read_only=True) as again:
                assert again.status() == live.status()
                assert again.predict(again.ids()).same_as(live.predict(live.ids()))
    assert done > 60


@pytest.mark.parametrize("event", ["add_nodes", "add_edges", "add_labels", "set_probabilities", "remove_nodes"])
def test_an_id_is_limited_in_every_kind_of_event(event):
    live, long = ns.Live("split"), "x" * 4_000_000
    live.add_nodes(["a"], [[0.5, 0.5]])
    second = {"add_edges": ["a"], "add_labels": [0], "remove_nodes": None}.get(event, [[0.5, 0.5]])
    with pytest.raises(InvalidInputError, match=r"at most 1,024 bytes per id; .* has 4,000,000"):
        live.update([(event, [long], second) if second is not None else (event, [long])])
    with pytest.raises(InvalidInputError, match="at most 1,024 bytes"):
        live.predict([long])
    assert long not in live
    with pytest.raises(InvalidInputError, match="at most 1,024 bytes"):
        live.add_labels(["a"], [0], key=long)
    with pytest.raises(InvalidInputError, match="`key` must be text that UTF-8 can hold"):
        live.add_labels(["a"], [0], key="\ud800")
    assert live.events == 1


def fault(*_):
    raise ArithmeticError("of a test")


@pytest.mark.parametrize("stop", [ArithmeticError, KeyboardInterrupt])
def test_a_batch_that_cannot_be_applied_is_taken_back(tmp_path, monkeypatch, stop):
    add = State.add_label

    def interrupted(state, slot, *rest):
        if slot == 3:
            raise stop("of a test")
        add(state, slot, *rest)

    live = ns.Live("split", alpha=0.4)
    live.add_nodes(range(9), np.full((9, 2), 0.5))
    live.save(tmp_path / "store")
    with ns.Live.open(tmp_path / "store") as live:
        live.add_labels([0, 1], [0, 1])
        before = live.status(), live.predict()
        with monkeypatch.context() as patch:
            patch.setattr(State, "add_label", interrupted)
            with pytest.raises(KeyboardInterrupt if stop is KeyboardInterrupt else BatchError, match="of a test"):
                live.update([("add_nodes", ["new"], [[0.5, 0.5]]), ("add_labels", [2, 3], [0, 1])], key="k")
        assert live.status() == before[0]
        assert live.predict().same_as(before[1])
        assert live.update([("add_labels", [2], [1])], key="k")
        after = live.status()
    with ns.Live.open(tmp_path / "store") as again:
        assert again.status() == after


def test_an_event_that_cannot_be_applied_is_named_and_what_is_before_it_saved(tmp_path, monkeypatch):
    live = ns.Live("split")
    live.add_nodes(range(9), np.full((9, 2), 0.5))
    live.add_labels([0, 1], [0, 1])
    live.save(tmp_path / "store")
    (tmp_path / "store" / "snapshot.npz").unlink()
    monkeypatch.setattr(State, "add_label", fault)
    with pytest.raises(FileFormatError, match=r"event 10 cannot be applied \(ArithmeticError: of a test\).*1 to 9 are"):
        ns.Live.open(tmp_path / "store")
    assert ns.Live.recover(tmp_path / "store", tmp_path / "saved") == 9
    with ns.Live.open(tmp_path / "saved") as saved:
        assert saved.events == 9


def test_a_batch_removes_no_edge_that_is_not_there():
    live = ns.Live("split")
    live.add_nodes(["a", "b", "c"], [[0.5, 0.5]] * 3)
    live.add_edges(["a"], ["c"])
    before = live.status()
    again = ("add_nodes", ["c"], [[0.5, 0.5]])
    for batch in (
        [("add_edges", ["a"], ["a"]), ("remove_edges", ["a"], ["a"])],  # a loop is no edge
        [("add_edges", ["a"], ["b"]), ("remove_edges", ["a", "b"], ["b", "a"])],
        [("remove_nodes", ["c"]), again, ("remove_edges", ["a"], ["c"])],
        [("remove_nodes", ["c"]), again, ("add_edges", ["c"], ["a"]), ("remove_edges", ["a", "a"], ["c", "c"])],
    ):
        with pytest.raises(InvalidInputError, match="must be edges that are there"):
            live.update(batch)
        assert live.status() == before
    assert live.update([("remove_nodes", ["c"]), again, ("add_edges", ["c"], ["a"]), ("remove_edges", ["a"], ["c"])])
    assert live.status()["edges"] == 0


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_rows_that_grow_and_shrink_hold_the_edges_that_they_should(directed, seed, monkeypatch):
    """Edges come and go in batches, many of them at one hub, beside a set of pairs."""
    rng, adjacency, edges = np.random.default_rng(seed), GrowingAdjacency(directed), set()
    adjacency.add_nodes(40)
    for _ in range(150):
        count = int(rng.integers(1, 60))
        source = np.where(rng.random(count) < 0.5, 7, rng.integers(0, 40, count))
        target = rng.integers(0, 40, count)
        pairs = set(zip(source.tolist(), target.tolist(), strict=True))
        if not directed:
            pairs |= {(b, a) for a, b in pairs}
        step = rng.integers(0, 5)
        if step < 2:
            adjacency.add_edges(source, target)
            edges |= {(a, b) for a, b in pairs if a != b}
        elif step < 4:
            adjacency.remove_edges(source, target)
            edges -= pairs
        else:
            gone = np.unique(rng.integers(0, 40, 3))
            adjacency.remove_nodes(gone)
            edges = {pair for pair in edges if not set(pair) & set(gone.tolist())}
        offsets, columns = adjacency.packed()
        rows = np.repeat(np.arange(40), np.diff(offsets))
        assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(edges)
        assert adjacency.edges == len(edges)


@pytest.mark.parametrize("directed", [False, True])
def test_many_edges_at_once_make_the_rows_of_a_graph(directed):
    rng, adjacency = np.random.default_rng(4), GrowingAdjacency(directed)
    adjacency.add_nodes(300)
    batches = [rng.integers(0, 300, (2, count)) for count in (20, 9_000, 5_000, 40)]
    for number, batch in enumerate(batches, 1):
        adjacency.add_edges(*batch)
        graph = ns.Graph.from_edge_index(np.hstack(batches[:number]), 300, directed=directed)
        offsets, columns = adjacency.packed()
        assert np.array_equal(offsets, graph.indptr)
        assert np.array_equal(columns, graph.indices)
        assert adjacency.edges == graph.indices.size


def test_a_batch_that_is_too_large_for_a_row_of_the_log_is_read_as_one(tmp_path, monkeypatch):
    monkeypatch.setattr("napsets.live.store._ROW_BYTES", 500)
    live, ids = ns.Live("split", alpha=0.3), [f"node {i}" for i in range(200)]
    batch = [("add_nodes", ids, np.full((200, 2), 0.5)), ("add_labels", ids[:90], [0, 1] * 45)]
    assert live.update(batch, key="once")
    assert not live.update(batch, key="once")
    live.save(tmp_path / "store")
    (tmp_path / "store" / "snapshot.npz").unlink()
    with ns.Live.open(tmp_path / "store", read_only=True) as again:
        assert len(list(again._store.rows())) > 10
        assert again.status() == live.status()
        assert again.predict().same_as(live.predict())


def test_an_integer_and_a_text_that_look_alike_keep_their_names():
    live = ns.Live("split", alpha=0.5)
    live.add_nodes([1, "1", "b"], [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    live.add_labels(["b"], [0])
    sets = live.predict([1, "1"])
    assert sets.ids.tolist() == [1, "1"]
    assert sets["1"] == sets[1]
    assert (sets.loc[1], sets.loc["1"]) == (sets[0], sets[1])
    with pytest.raises(InvalidInputError, match="differ as text"):
        sets.to_arrow()
    assert live.predict([1, "b"]).to_arrow()["node"].to_pylist() == ["1", "b"]
    with pytest.raises(InvalidInputError, match="integers below 2"):
        live.add_nodes(np.array([2**63], dtype=np.uint64), [[0.5, 0.5]])


OPEN = "import sys, napsets as ns\nns.Live.open(sys.argv[1])"


def test_copying_a_store_from_the_process_that_writes_it_keeps_the_lock(tmp_path):
    live = ns.Live("split")
    live.add_nodes([1], [[0.5, 0.5]])
    live.save(tmp_path / "store")
    with ns.Live.open(tmp_path / "store"):
        for file in (tmp_path / "store").iterdir():
            file.read_bytes()
        opened = subprocess.run([sys.executable, "-c", OPEN, tmp_path / "store"], capture_output=True, text=True)
        assert "open for writing elsewhere" in opened.stderr
    assert subprocess.run([sys.executable, "-c", OPEN, tmp_path / "store"]).returncode == 0
