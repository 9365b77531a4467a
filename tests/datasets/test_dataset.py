"""NodeDataset: what it keeps and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from napsets.datasets import NodeDataset, from_pyg, load, to_pyg
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.graph import Graph

GRAPH = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]], num_nodes=6)
GOOD = {
    "graph": GRAPH,
    "features": np.arange(12.0).reshape(6, 2),
    "labels": [0, 1, 0, 1, 0, -1],
    "train": [0, 1],
    "validation": [2],
    "test": [3, 5],
}


def test_features_stay_dense_or_sparse_and_read_the_same():
    dense = NodeDataset(**GOOD)
    sparse = NodeDataset(**GOOD | {"features": scipy.sparse.csr_array(GOOD["features"])})
    assert isinstance(dense.features, np.ndarray)
    assert dense.features.dtype == np.float32
    assert scipy.sparse.issparse(sparse.features)
    rows = np.array([4, 1])
    assert np.array_equal(dense.feature_rows(rows), sparse.feature_rows(rows))


def test_the_split_names_the_part_of_each_node():
    assert NodeDataset(**GOOD).split.tolist() == ["train", "train", "validation", "test", "", "test"]


def test_masks_are_taken_for_indices():
    mask = np.array([False, False, False, True, False, True])
    assert NodeDataset(**GOOD | {"test": mask}).test.tolist() == [3, 5]


def test_class_names_fix_the_number_of_classes():
    assert NodeDataset(**GOOD).num_classes == 2
    assert NodeDataset(**GOOD, class_names=("cat", "dog")).num_classes == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones((5, 2))}, "`features` must have one row per node, 6; got 5"),
        (
            {"features": np.where(np.eye(6) > 0, np.nan, 1)[:, 2:4]},
            "`features` must be finite numbers of single precision; the row of node 2",
        ),
        (
            {"features": scipy.sparse.csr_array(np.diag([0, 0, 1, np.inf, 0, 0.0]))},
            "`features` must be finite numbers of single precision; the row of node 3",
        ),
        ({"features": [["a"]] * 6}, "`features` must be a table of numbers"),
        ({"labels": [0, 1, 0, 1, 0, -2]}, "`labels` must be from 0 to 1"),
        ({"labels": [0, 1]}, "`labels` must have one entry per node"),
        ({"labels": [2**62] * 6}, "`labels` must number the classes from 0, up to 2,147,483,647"),
        ({"class_names": ("only",)}, "`labels` must be from 0 to 0"),
        ({"train": [0, 1, 2]}, "`validation` must not overlap `train`; nodes in both: 1, the first is 2"),
        ({"test": [1]}, "`test` must not overlap `train`"),
        ({"train": [0, 1, 5], "test": [3]}, "`train` must hold labelled nodes; node 5"),
        ({"test": [9]}, "`test` must hold ids from 0 to 5; got 9"),
        ({"test": [3, 3]}, "`test` must not repeat a node"),
    ],
)
def test_bad_parts_are_refused_by_name(change, message):
    with pytest.raises(InvalidInputError, match=message):
        NodeDataset(**GOOD | change)


def test_an_unknown_name_gets_the_nearest_suggested():
    with pytest.raises(InvalidInputError, match="did you mean 'amazon-computers'"):
        load("amazon_computer")


def test_an_unknown_option_is_refused():
    with pytest.raises(InvalidInputError, match="`colour` must be an option of 'sbm'"):
        load("sbm", colour="red")


@pytest.mark.gnn
def test_a_dataset_survives_the_way_to_pytorch_geometric_and_back():
    data = NodeDataset(**GOOD)
    back = from_pyg(to_pyg(data))
    assert back.graph == data.graph
    assert np.array_equal(back.features, data.features)
    assert np.array_equal(back.labels, data.labels)
    assert np.array_equal(back.split, data.split)


@pytest.mark.gnn
def test_a_pyg_object_without_masks_is_refused():
    pyg = to_pyg(NodeDataset(**GOOD))
    pyg.val_mask = None
    with pytest.raises(InvalidInputError, match="it lacks val_mask"):
        from_pyg(pyg)


def test_a_class_that_no_training_node_has_is_warned_of():
    with pytest.warns(NapsetsWarning, match="`train` lacks 1 of the 2 classes, which a model cannot learn: 1") as w:
        data = NodeDataset(**GOOD | {"train": [0]})
    assert w[0].filename == __file__
    assert data.num_classes == 2
