"""Training: inductive by construction, the same for a seed, and it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import GCN, SAGEConv  # noqa: E402

from napsets.datasets import NodeDataset, to_pyg  # noqa: E402
from napsets.errors import InvalidInputError  # noqa: E402
from napsets.gnn import train  # noqa: E402
from napsets.gnn.training import csr_tensor, evaluating  # noqa: E402
from napsets.graph import Graph  # noqa: E402
from worlds import disturbed  # noqa: E402

pytestmark = [pytest.mark.gnn, pytest.mark.usefixtures("one_thread")]

QUICK = {"epochs": 4, "hidden": 8}


class Two(torch.nn.Module):
    """Two layers, on an adjacency whose shape it checks."""

    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(12, 16), SAGEConv(16, 3)

    def forward(self, x, adjacency):
        assert adjacency.shape == (x.shape[0], x.shape[0])
        return self.second(torch.relu(self.first(x, adjacency)), adjacency)


def own_module(seed=0):
    torch.manual_seed(seed)
    return Two()


def weights(module):
    return [value.numpy().copy() for value in module.state_dict().values()]


def test_it_learns_and_says_what_it_did(tiny):
    predictions = train(tiny)
    assert predictions.take(tiny.test).accuracy > 0.6  # the largest class holds about half
    assert predictions.probabilities.shape == (240, 3)
    assert np.allclose(predictions.probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert np.array_equal(predictions.split, tiny.split)
    assert (predictions.model, predictions.dataset) == ("graphsage", "dcsbm")
    assert (predictions.settings["seed"], predictions.settings["hidden"]) == (0, 64)


def test_test_nodes_cannot_change_the_trained_weights(tiny):
    first, second = own_module(), own_module()
    train(tiny, first, **QUICK)
    train(disturbed(tiny), second, **QUICK)
    assert all(np.array_equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))
    assert not np.array_equal(weights(first)[0], weights(own_module())[0])


def test_a_seed_fixes_the_result_and_another_changes_it(tiny):
    first, again, other = (train(tiny, seed=seed, **QUICK) for seed in (3, 3, 4))
    assert np.array_equal(first.probabilities, again.probabilities)
    assert not np.array_equal(first.probabilities, other.probabilities)


def test_training_leaves_the_callers_random_state_alone(tiny):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    train(tiny, **QUICK)
    assert torch.equal(torch.rand(1), expected)


def test_the_best_weights_by_validation_accuracy_are_kept(tiny):
    module = own_module()
    predictions = train(tiny, module, epochs=30)
    seen = np.sort(np.concatenate([tiny.train, tiny.validation]))
    graph = tiny.graph.subgraph(seen)
    with evaluating(module):
        logits = module(torch.from_numpy(tiny.features[seen]), csr_tensor(graph))
    right = logits.argmax(dim=1).numpy() == tiny.labels[seen]
    accuracy = right[np.isin(seen, tiny.validation)].mean()
    assert accuracy == pytest.approx(predictions.settings["validation_accuracy"])
    shorter = train(tiny, own_module(), epochs=predictions.settings["best_epoch"] + 1)
    assert np.array_equal(shorter.probabilities, predictions.probabilities)
    assert not module.training


def test_without_validation_nodes_the_last_weights_are_kept(tiny):
    predictions = train(replace(tiny, validation=[]), **QUICK)
    assert predictions.settings["best_epoch"] == 3
    assert np.isnan(predictions.settings["validation_accuracy"])


def test_the_probabilities_are_those_of_the_module_on_the_edge_list(tiny):
    module, data = own_module(), to_pyg(tiny)
    predictions = train(tiny, module, **QUICK)
    with evaluating(module):
        hidden = torch.relu(module.first(data.x, data.edge_index))
        expected = torch.softmax(module.second(hidden, data.edge_index), dim=1)
    assert np.allclose(predictions.probabilities, expected.numpy(), atol=1e-5)
    assert predictions.model == "Two"


def test_edges_of_directed_graphs_are_read_from_the_source_that_a_row_names():
    graph = Graph.from_edge_index([[0, 1], [1, 2]], num_nodes=3, directed=True)
    assert csr_tensor(graph).to_dense().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    data = NodeDataset(graph, np.eye(3), [0, 1, 0], [0, 1], [], [2])
    assert to_pyg(data).edge_index.tolist() == [[1, 2], [0, 1]]


def test_a_module_of_pytorch_geometric_is_trained_and_named(tiny):
    torch.manual_seed(0)
    predictions = train(tiny, GCN(12, 16, 2, 3), epochs=40)
    assert predictions.model == "GCN"
    assert predictions.take(tiny.test).accuracy > 0.6


def test_progress_counts_epochs_up_to_the_total(tiny):
    seen = []
    train(tiny, progress=lambda done, total: seen.append((done, total)), **QUICK)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_sparse_features_give_the_predictions_of_dense_ones(tiny):
    import scipy.sparse

    sparse = replace(tiny, features=scipy.sparse.csr_array(tiny.features))
    assert np.array_equal(train(sparse, **QUICK).probabilities, train(tiny, **QUICK).probabilities)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "graphsage"}, "`model` must be"),
        ({"dropout": 1.0}, "`dropout` must be"),
        ({"hidden": 0}, "`hidden` must be at least 1"),
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"learning_rate": -1.0}, "`learning_rate` must be"),
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"threads": 0}, "`threads` must be at least 1; got 0"),
        ({"progress": "yes"}, "`progress` must be True, False or a function"),
        ({"dataset": "amazon-computers"}, "`dataset` must be"),
    ],
)
def test_bad_settings_are_refused_by_name(tiny, options, message):
    with pytest.raises(InvalidInputError, match=message):
        train(**{"dataset": tiny} | options)


def test_a_dataset_without_features_or_training_nodes_is_refused(tiny):
    for change in ({"features": np.empty((240, 0))}, {"train": []}):
        with pytest.raises(InvalidInputError, match="`dataset` must have training nodes and at least one feature"):
            train(replace(tiny, **change))


def test_the_threads_torch_has_change_no_bit_and_are_left_as_they_were(tiny):
    runs = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            runs.append(train(tiny, threads=2, **QUICK).probabilities)
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(1)
    assert np.array_equal(*runs)


def test_evaluation_restores_the_mode_of_every_part():
    module = own_module()
    module.train()
    module.first.eval()
    with evaluating(module):
        assert not module.training
    assert module.training
    assert not module.first.training
