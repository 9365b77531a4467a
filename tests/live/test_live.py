"""A living graph gives, at any time, the bits of a batch calibration of what is there."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.errors import FileFormatError, InvalidInputError


@pytest.fixture
def world():
    """A graph of 60 nodes with probabilities and labels."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), 60)
    y = np.array([rng.choice(3, p=row) for row in p])
    return rng.integers(0, 60, (2, 120)), p, y


def grown(world, **settings):
    """The same graph, node by node in three steps."""
    edges, p, y = world
    live = ns.Live("split", alpha=0.2, **settings)
    live.add_nodes(np.arange(30), p[:30])
    live.add_nodes(np.arange(30, 60), p[30:])
    live.add_edges(*edges)
    live.add_labels(np.arange(40), y[:40])
    return live


def test_the_sets_of_split_are_those_of_a_batch(world):
    _, p, y = world
    live = grown(world)
    batch = ns.SplitConformal().calibrate(p, y, np.arange(40)).predict(np.arange(40, 60), alpha=0.2)
    sets = live.predict()
    assert np.array_equal(sets.member, batch.member)
    assert np.array_equal(sets.thresholds, batch.thresholds)
    assert sets.ids.tolist() == list(range(40, 60))


def test_a_batch_that_is_wrong_somewhere_changes_nothing(world):
    live = grown(world)
    before = live.status()
    with pytest.raises(InvalidInputError, match="must be new; 1 are there already, 5 first"):
        live.update([("add_nodes", ["new"], [[1, 0, 0]]), ("add_nodes", [5], [[1, 0, 0]])])
    with pytest.raises(InvalidInputError, match="'new' first"):
        live.add_labels(["new"], [0])
    assert live.status() == before


def test_outputs_have_the_type_of_those_of_the_first_nodes(world):
    _, p, y = world
    narrow, wide = p.astype(np.float32), p.round(1)
    wide[:, 0] = 1 - wide[:, 1:].sum(axis=1)
    live = ns.Live("split", alpha=0.2)
    live.add_nodes(np.arange(40), narrow[:40])
    live.add_nodes(np.arange(40, 50), wide[40:50])
    live.add_nodes(np.arange(50, 60), wide[50:].tolist())
    live.add_labels(np.arange(40), y[:40])
    together = np.concatenate([narrow[:40], wide[40:].astype(np.float32)])
    batch = ns.SplitConformal().calibrate(together, y, np.arange(40)).predict(np.arange(40, 60), alpha=0.2)
    assert np.array_equal(live.predict().member, batch.member)
    assert np.array_equal(live.predict().thresholds, batch.thresholds)


def test_what_was_saved_goes_on_from_where_it_was(world, tmp_path):
    live = grown(world)
    live.save(tmp_path / "store")
    with ns.Live.open(tmp_path / "store") as again:
        assert again.status() == live.status()
        again.add_labels([50], [1])
        status, sets = again.status(), again.predict()
    with ns.Live.open(tmp_path / "store") as third:
        assert third.status() == status
        assert np.array_equal(third.predict().thresholds, sets.thresholds)


def test_there_is_one_writer(world, tmp_path):
    grown(world).save(tmp_path / "store")
    with ns.Live.open(tmp_path / "store"):
        with pytest.raises(InvalidInputError, match="open for writing elsewhere"):
            ns.Live.open(tmp_path / "store")
        ns.Live.open(tmp_path / "store", read_only=True).close()


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match=r"holds no log\.sqlite"):
        ns.Live.open(tmp_path)


def test_wrong_arguments_of_changes_are_refused_by_name(tmp_path):
    live = ns.Live()
    with pytest.raises(InvalidInputError, match="`ids` must be nodes of the graph; it has none yet"):
        live.predict()
    live.add_nodes([1, 2], [[0.5, 0.5], [0.2, 0.8]])
    for key in (["a"], 3, 10**30):
        with pytest.raises(InvalidInputError, match="`key` must be text"):
            live.add_edges([1], [2], key=key)
    for changes in (3, [3], [()], [("add_edges", [1])], [("save", "x")]):
        with pytest.raises(InvalidInputError, match="`changes` must"):
            live.update(changes)
    with pytest.raises(InvalidInputError, match="`id` must be one node; got 2"):
        live.explain([1, 2])
    with pytest.raises(InvalidInputError, match="`ids` must be integers of 64 bits or strings"):
        ns.node_uniforms([2**70])
    live.save(tmp_path / "store")
    with pytest.raises(InvalidInputError, match="opened read_only"):
        ns.Live.open(tmp_path / "store", read_only=True).refit()


def test_empty_batches_change_nothing_and_no_other_thing_is_a_node(world):
    live = grown(world)
    before = live.status()
    live.add_nodes([], [])
    live.set_probabilities([], [])
    live.add_nodes([], np.empty((0, 7)))
    live.add_edges([], [])
    live.add_labels([], [])
    live.remove_nodes([])
    assert live.status() == before
    assert live.predict([]).member.shape == (0, 3)
    assert [thing in live for thing in (5, "5", None, 1.5, True, [1, 2], b"5", 2**80)] == [True] + 7 * [False]


def test_ids_may_be_any_text_or_whole_number(tmp_path):
    ids = ["a\0", "a", "a\n", "\0", "", "\u00e9", "e\u0301", " a", "🙂" * 256, "1", 1, np.int8(2), -(2**63), 2**63 - 1]
    live = ns.Live("informed", alpha=0.3)
    live.add_nodes(ids, np.full((len(ids), 2), 0.5))
    live.add_edges(ids[:-1], ids[1:])
    live.add_labels(ids[:8], [0, 1] * 4)
    live.remove_nodes(["a\0"])
    live.save(tmp_path / "store")
    (tmp_path / "store" / "snapshot.npz").unlink()
    with ns.Live.open(tmp_path / "store") as again:
        assert again.ids() == live.ids() == [*ids[1:11], 2, *ids[12:]]
        assert np.array_equal(again.predict(ids[1:]).thresholds, live.predict(ids[1:]).thresholds)


@pytest.mark.parametrize("method", ["split", "naps", "naps-exact", "informed", "auto"])
def test_one_class_one_label_and_nothing_left_are_no_trouble(method):
    live = ns.Live(method)
    live.add_nodes([0, 1], [[1.0], [1.0]])
    live.add_labels([0], [0])
    assert live.predict().member.tolist() == [[True]]
    live.remove_labels([0])
    live.refit()
    live.remove_nodes([0, 1])
    live.refit()
    assert live.predict().member.shape == (0, 1)
