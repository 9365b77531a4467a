"""What is kept does not change under its keeper: arrays are read-only, or copies where they were not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from napsets.checks.arguments import frozen, sealed
from napsets.datasets import NodeDataset, NodePredictions
from napsets.methods import CalibrationData

RNG = np.random.default_rng(0)
SIZE = 80
PAIRS = RNG.integers(SIZE, size=(2, 300))
P = RNG.dirichlet(np.ones(3), SIZE)
Y = RNG.integers(3, size=SIZE)


def graph():
    return ns.Graph.from_edge_index(PAIRS, SIZE)


def closed(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "array",
    [
        sealed(np.arange(3)),
        sealed(np.arange(3))[1:],
        sealed(np.arange(9).reshape(3, 3)[:, 1]),
        closed(np.arange(3)),
        np.frombuffer(b"12345678", dtype=np.int64),
    ],
    ids=["sealed", "a view of it", "sealed as a view", "closed by its owner", "bytes"],
)
def test_what_is_read_only_down_to_its_memory_is_kept_as_it_is(array):
    assert frozen(array) is array
    assert not array.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3),
        np.arange(9).reshape(3, 3)[:, 1],
        np.frombuffer(bytearray(8)),
        closed(np.frombuffer(bytearray(8))),
    ],
    ids=["its own memory", "a view", "a buffer", "a closed view of a buffer"],
)
def test_what_somebody_can_write_to_is_copied_once(array):
    kept = frozen(array)
    assert not np.shares_memory(kept, array)
    assert not kept.flags.writeable
    assert frozen(kept) is kept


def test_a_read_only_view_of_what_can_be_written_to_is_copied():
    base = np.arange(3)
    view = base.view()
    view.flags.writeable = False
    kept = frozen(view)
    base[0] = 9
    assert kept.tolist() == [0, 1, 2]


@pytest.mark.parametrize("plain", [False, True], ids=["a memory map", "an array over one"])
def test_memory_maps_are_copied_because_others_can_write_to_the_file(tmp_path, plain):
    np.save(tmp_path / "p.npy", np.arange(3))
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    kept = frozen(np.asarray(mapped) if plain else mapped)
    np.load(tmp_path / "p.npy", mmap_mode="r+")[:] = 9
    assert kept.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "again", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_what_comes_from_another_process_is_read_only_too(again):
    naps = ns.NAPS().calibrate(graph(), P, Y, calibration=np.arange(50))
    sets = again(naps.predict([60, 70]))
    data = NodeDataset(graph(), P, Y, np.arange(50), [], np.arange(50, SIZE))
    kept = [sets.nodes, sets.member, sets.thresholds, sets.sizes, again(naps).scored.reference.scores]
    kept += [again(data).labels, again(data).features, again(NodePredictions(np.arange(SIZE), P, Y)).probabilities]
    assert not any(array.flags.writeable for array in kept)


def spoil(*arrays):
    for array in arrays:
        array[...] = array[::-1].copy()


def test_calibrations_on_the_same_data_share_one_copy_of_the_outputs():
    p = P.copy()
    data = CalibrationData.check(graph(), p, Y, np.arange(50))
    first, second = (ns.Method(score).calibrate_data(data).score.probabilities for score in ("aps", "thr"))
    assert first is second
    assert not np.shares_memory(first, p)
    assert p.flags.writeable
    assert CalibrationData.check(graph(), first, Y, np.arange(50)).outputs is first


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
    copied = ns.Graph(indptr, indices, original_ids=ids)
    indptr[:], indices[:], ids[:] = 0, 2**31 - 1, -5
    assert copied == rows
    assert copied.original_ids.tolist() == list(range(SIZE))
    nodes = np.array([3, 1, 2])
    part = rows.subgraph(nodes)
    nodes[:] = 0
    assert part.original_ids.tolist() == [3, 1, 2]


def test_sets_keep_what_they_were_made_of():
    arrays = {
        "nodes": np.array([0, 1]), "member": np.array([[True, False], [False, True]]), "thresholds": np.ones(2),
        "support": np.ones(2, int), "effective_size": np.ones(2),
    }  # fmt: skip
    names = ["a", "b"]
    sets = ns.PredictionSets(**arrays, alpha=0.1, class_names=names, num_nodes=2)
    for array in arrays.values():
        array[...] = 0
    names[0] = "z"
    assert sets.nodes.tolist() == [0, 1]
    assert sets.member.tolist() == [[True, False], [False, True]]
    assert sets.thresholds.tolist() == [1, 1]
    assert sets.class_names == ("a", "b")
    for name in arrays:
        assert not getattr(sets, name).flags.writeable


def test_predictions_keep_what_they_were_made_of():
    nodes, p, y, split, settings = np.arange(SIZE), P.copy(), Y.copy(), np.full(SIZE, "test"), {"epochs": [1, 2]}
    predictions = NodePredictions(nodes, p, y, split, settings=settings)
    spoil(nodes, p, y)
    split[:] = "train"
    settings["epochs"].append(3)
    assert predictions.nodes.tolist() == list(range(SIZE))
    assert np.array_equal(predictions.probabilities, P)
    assert np.array_equal(predictions.labels, Y)
    assert set(predictions.split) == {"test"}
    assert predictions.settings == {"epochs": [1, 2]}


@pytest.mark.parametrize("sparse", [False, True])
def test_datasets_keep_what_they_were_made_of(sparse):
    x = RNG.random((SIZE, 4)).astype(np.float32)
    features = sp.csr_array(x) if sparse else x.copy()
    y, train, ids, blocks, settings = Y.copy(), np.arange(40), np.arange(SIZE), Y.copy(), {"seeds": [0]}
    data = NodeDataset(
        graph(), features, y, train, [], np.arange(40, SIZE), node_ids=ids, blocks=blocks, settings=settings
    )  # fmt: skip
    spoil(features.data if sparse else features, y, train, ids, blocks)
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
    datasets = [ns.datasets.load("amazon-computers"), ns.datasets.sbm(20), ns.datasets.dcsbm(50, 3, 2)]
    assert all(data.features is features for data, features in zip(datasets, handed, strict=True))


SETTINGS = [
    (kind, name, default)
    for kind in (
        ns.RAPS, ns.SAPS, ns.Sharpened, ns.Diffused, ns.Similarity, ns.Informed, ns.InformedIntervals, ns.ByLabel,
        ns.Hops, ns.PathLengths, ns.Exact, ns.ByDegree, ns.ByCommunity, ns.Clustered, ns.Method,
    )
    for name, default in ((each, getattr(kind(), each)) for each in kind.__dataclass_fields__)
    if type(default) in (int, float)
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "default"), SETTINGS)
def test_a_setting_that_came_as_an_array_without_dimensions_is_kept_as_a_number(kind, name, default):
    value = np.array(default)
    setting = kind(**{name: value})
    value[...] = 0
    assert getattr(setting, name) == default
    assert type(getattr(setting, name)) in (int, float)
    assert hash(setting) == hash(kind())
