"""What is kept does not change under its keeper: arrays are read-only, or copies where they were not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from napsets.checks.frozen import frozen, sealed
from napsets.datasets import NodeDataset
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE = 80
PAIRS = RNG.integers(SIZE, size=(2, 300))
P = RNG.dirichlet(np.ones(3), SIZE)
Y = RNG.integers(3, size=SIZE)


def graph():
    return ns.Graph.from_edge_index(PAIRS, SIZE)


def test_what_nobody_can_write_to_is_kept_as_it_is():
    own = sealed(np.arange(3))
    assert frozen(own) is own
    view = own[1:]
    assert frozen(view) is view
    from_bytes = np.frombuffer(b"12345678", dtype=np.int64)
    assert frozen(from_bytes) is from_bytes


@pytest.mark.parametrize("given", [np.arange(3), np.arange(9).reshape(3, 3)[:, 1], np.frombuffer(bytearray(8))])
def test_what_somebody_can_write_to_is_copied_once(given):
    kept = frozen(given)
    assert not np.shares_memory(kept, given)
    assert not kept.flags.writeable
    assert frozen(kept) is kept


def test_a_read_only_view_of_what_can_be_written_to_is_copied():
    base = np.arange(3)
    view = base.view()
    view.flags.writeable = False
    kept = frozen(view)
    base[0] = 9
    assert kept.tolist() == [0, 1, 2]


def test_read_only_arrays_of_others_are_copied_because_their_owners_can_still_write(tmp_path):
    viewed, reopened = np.arange(3), np.arange(3)
    view = viewed[:]
    np.save(tmp_path / "p.npy", np.arange(3))
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    viewed.flags.writeable = reopened.flags.writeable = False
    kept = [frozen(array) for array in (viewed, reopened, mapped)]
    reopened.flags.writeable = True
    for array in (view, reopened, np.load(tmp_path / "p.npy", mmap_mode="r+")):
        array[:] = 9
    assert [array.tolist() for array in kept] == [[0, 1, 2]] * 3


def test_a_view_that_was_taken_before_an_array_was_closed_cannot_change_a_graph():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)
    view = indices[:]
    indptr.flags.writeable = indices.flags.writeable = False
    pair = ns.Graph(indptr, indices)
    view[:] = 10**9
    assert pair.indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    "again", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_what_comes_from_another_process_is_read_only_too(again):
    naps = ns.NAPS().calibrate(graph(), P, Y, calibration=np.arange(50))
    sets = again(naps.predict([60, 70]))
    data = NodeDataset(graph(), P, Y, np.arange(50), [], np.arange(50, SIZE))
    kept = [sets.nodes, sets.member, sets.thresholds, sets.sizes, again(naps).calibrated_.scored.reference.scores]
    kept += [again(data).labels, again(data).features, again(ns.NodePredictions(np.arange(SIZE), P, Y)).probabilities]
    assert not any(array.flags.writeable for array in kept)


def spoil(*arrays):
    for array in arrays:
        array[...] = array[::-1].copy()


def test_arrays_changed_after_calibration_change_no_answer():
    p, y, calibration, ids, decay = P.copy(), Y.copy(), np.arange(50), np.arange(SIZE) + 7, np.array([1.0, 0.5])
    naps = ns.NAPS(hops=2, decay=decay).calibrate(graph(), p, y, calibration=calibration, ids=ids)
    split = ns.SplitConformal().calibrate(p, y, calibration=calibration, ids=ids)
    before = [predictor.predict([60, 70], 0.3) for predictor in (naps, split)]
    spoil(p, y, calibration, ids, decay)
    for predictor, sets in zip((naps, split), before, strict=True):
        after = predictor.predict([60, 70], 0.3)
        assert same_bits(after.thresholds, sets.thresholds)
        assert np.array_equal(after.member, sets.member)


def test_tensors_changed_after_calibration_change_no_answer():
    torch = pytest.importorskip("torch")
    p = torch.tensor(P)
    naps = ns.NAPS().calibrate(graph(), p, Y, calibration=np.arange(50))
    before = naps.predict([60, 70], 0.3)
    p[:] = 1 / 3
    assert np.array_equal(naps.predict([60, 70], 0.3).member, before.member)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_changed_after_the_graph_was_made_do_not_reach_it(dtype):
    rows = graph()
    indptr, indices, ids = rows.indptr.copy(), rows.indices.astype(dtype), np.arange(SIZE)
    made = ns.Graph(indptr, indices, original_ids=ids)
    indptr[:], indices[:], ids[:] = 0, 2**31 - 1, -5
    assert made == rows
    assert made.original_ids.tolist() == list(range(SIZE))
    nodes = np.array([3, 1, 2])
    part = rows.subgraph(nodes)
    nodes[:] = 0
    assert part.original_ids.tolist() == [3, 1, 2]


def test_an_index_keeps_its_calibration_nodes():
    calibration, scores = np.arange(50), RNG.random(50)
    index = ns.CalibrationIndex(graph(), scores, calibration)
    splits = np.arange(50)[None] % 2 == 0
    before = ns.split_thresholds(index, splits, [[60]], [1.0, 1.0], 0.3)[0].values
    spoil(calibration, scores)
    assert same_bits(ns.split_thresholds(index, splits, [[60]], [1.0, 1.0], 0.3)[0].values, before)


def test_sets_keep_what_they_were_made_of():
    given = {
        "nodes": np.array([0, 1]), "member": np.array([[True, False], [False, True]]), "thresholds": np.ones(2),
        "support": np.ones(2, int), "effective_size": np.ones(2),
    }  # fmt: skip
    names = ["a", "b"]
    sets = ns.PredictionSets(**given, alpha=0.1, class_names=names, num_nodes=2)
    for array in given.values():
        array[...] = 0
    names[0] = "z"
    assert sets.nodes.tolist() == [0, 1]
    assert sets.member.tolist() == [[True, False], [False, True]]
    assert sets.thresholds.tolist() == [1, 1]
    assert sets.class_names == ("a", "b")
    for name in given:
        assert not getattr(sets, name).flags.writeable


def test_predictions_keep_what_they_were_made_of():
    nodes, p, y, split, settings = np.arange(SIZE), P.copy(), Y.copy(), np.full(SIZE, "test"), {"epochs": [1, 2]}
    said = ns.NodePredictions(nodes, p, y, split, settings=settings)
    spoil(nodes, p, y)
    split[:] = "train"
    settings["epochs"].append(3)
    assert said.nodes.tolist() == list(range(SIZE))
    assert np.array_equal(said.probabilities, P)
    assert np.array_equal(said.labels, Y)
    assert set(said.split) == {"test"}
    assert said.settings == {"epochs": [1, 2]}


@pytest.mark.parametrize("sparse", [False, True])
def test_datasets_keep_what_they_were_made_of(sparse):
    x = RNG.random((SIZE, 4)).astype(np.float32)
    given = sp.csr_array(x) if sparse else x.copy()
    y, train, ids, blocks, settings = Y.copy(), np.arange(40), np.arange(SIZE), Y.copy(), {"seeds": [0]}
    data = NodeDataset(
        graph(), given, y, train, [], np.arange(40, SIZE), node_ids=ids, blocks=blocks, settings=settings
    )  # fmt: skip
    spoil(given.data if sparse else given, y, train, ids, blocks)
    settings["seeds"].append(1)
    assert np.array_equal(data.feature_rows(slice(None)), x)
    assert np.array_equal(data.labels, Y)
    assert data.train.tolist() == list(range(40))
    assert data.node_ids.tolist() == list(range(SIZE))
    assert np.array_equal(data.blocks, Y)
    assert data.settings == {"seeds": [0]}


def test_datasets_that_were_drawn_or_read_are_not_copied(monkeypatch):
    handed = []
    real = NodeDataset.__post_init__

    def look(self):
        handed.append(self.features)
        real(self)

    monkeypatch.setattr(NodeDataset, "__post_init__", look)
    made = [ns.datasets.load("amazon-computers"), ns.datasets.sbm(20), ns.datasets.dcsbm(50, 3, 2)]
    assert all(data.features is given for data, given in zip(made, handed, strict=True))
