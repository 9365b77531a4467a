"""Exact inference is what the layers say on the whole graph, or on whole ego-nets; sampling approaches it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import GCNConv, SAGEConv  # noqa: E402

from napsets.datasets import to_pyg  # noqa: E402
from napsets.gnn import MODELS, build_model, settings_for, trainer  # noqa: E402
from napsets.gnn.batches import FeatureTable, chunks, graph_tensor, prefetch  # noqa: E402
from napsets.gnn.trainer import evaluating, exact_logits, sampled_logits  # noqa: E402

pytestmark = pytest.mark.gnn


def model_and_settings(name, data, **changes):
    entry = MODELS[name]
    settings = settings_for("paper", entry.family, **entry.changes | {"hidden": 8} | changes)
    torch.manual_seed(0)
    model = build_model(name, data.num_features, data.num_classes, settings)
    for norm in model.norms:  # statistics that are not those of a fresh layer
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
    return model, settings


def close(a, b):
    return torch.allclose(a, b, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["graphsage-mean", "graphsage-max", "gcn", "gat", "mlp"])
def test_exact_logits_are_those_of_the_layers_on_the_edge_list(tiny, name):
    model, settings = model_and_settings(name, tiny)
    data = to_pyg(tiny)
    x = data.x
    with evaluating(model):
        for i, conv in enumerate(model.convs):
            if isinstance(conv, GCNConv):
                conv = _standard_gcn(conv)
            x = conv(x) if name == "mlp" else conv(x, data.edge_index)
            if i < len(model.norms):  # in evaluation mode, nothing is dropped out
                x = torch.relu(model.norms[i](x))
    assert close(exact_logits(model, tiny.graph, FeatureTable(tiny.features), settings), x)


def _standard_gcn(conv):
    """Return a GCNConv that computes the normalisation itself."""
    twin = GCNConv(conv.in_channels, conv.out_channels)
    twin.load_state_dict(conv.state_dict())
    return twin


@pytest.mark.parametrize("name", ["shadow-sage", "shadow-gcn"])
def test_exact_shadow_logits_are_those_of_each_whole_ego_net(tiny, name):
    model, settings = model_and_settings(name, tiny)
    exact = exact_logits(model, tiny.graph, FeatureTable(tiny.features), settings)
    for root in (0, 17, int(tiny.graph.degrees.argmax())):
        ring = {root}
        for _ in range(2):
            ring |= {int(u) for v in ring for u in tiny.graph.neighbours(v)}
        members = np.array([root, *sorted(ring - {root})])
        ego = tiny.graph.subgraph(members)
        with evaluating(model):
            logits = model(torch.from_numpy(tiny.features[members]), graph_tensor(ego, model.weighting))
        assert close(exact[root], logits[0])


@pytest.mark.parametrize("layers", [1, 3])
def test_exact_shadow_logits_hold_for_other_depths(tiny, layers):
    model, settings = model_and_settings("shadow-gcn", tiny, layers=layers)
    features = FeatureTable(tiny.features)
    wide = replace(settings, ego_fanout=10_000)
    assert close(
        exact_logits(model, tiny.graph, features, settings), sampled_logits(model, tiny.graph, features, wide, 0)
    )


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_sample_of_all_neighbours_is_exact(tiny, name):
    model, settings = model_and_settings(name, tiny, sampler=_sampler(name), batch_size=50)
    features = FeatureTable(tiny.features)
    wide = replace(settings, fanouts=(-1, -1), ego_fanout=10_000)
    assert close(
        exact_logits(model, tiny.graph, features, settings), sampled_logits(model, tiny.graph, features, wide, 0)
    )


def _sampler(name):
    return "shadow" if name.startswith("shadow") else "neighbours"


def test_a_graph_that_is_one_batch_has_one_row_of_logits_per_node(tiny):
    model, settings = model_and_settings("gcn", tiny, sampler="auto", batch_size=7)
    features = FeatureTable(tiny.features)
    sampled = sampled_logits(model, tiny.graph, features, settings, 0)
    assert close(sampled, exact_logits(model, tiny.graph, features, settings))


def test_sampled_logits_follow_the_seed(tiny):
    model, settings = model_and_settings("graphsage-mean", tiny, fanouts=(2, 2))
    features = FeatureTable(tiny.features)
    first, again, other = (sampled_logits(model, tiny.graph, features, settings, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_rows_taken_some_at_a_time_give_the_same_bits(tiny, monkeypatch):
    model, settings = model_and_settings("graphsage-mean", tiny)
    gcn, gcn_settings = model_and_settings("shadow-gcn", tiny)
    features = FeatureTable(tiny.features)
    whole = exact_logits(model, tiny.graph, features, settings)
    egos = exact_logits(gcn, tiny.graph, features, gcn_settings)
    monkeypatch.setattr(trainer, "ENTRIES_AT_ONCE", 100)
    assert close(exact_logits(model, tiny.graph, features, settings), whole)
    assert close(exact_logits(gcn, tiny.graph, features, gcn_settings), egos)


def test_sparse_features_give_the_logits_of_dense_ones(tiny):
    model, settings = model_and_settings("graphsage-mean", tiny)
    sparse = FeatureTable(scipy.sparse.csr_array(tiny.features))
    dense = FeatureTable(tiny.features)
    assert torch.equal(
        exact_logits(model, tiny.graph, sparse, settings), exact_logits(model, tiny.graph, dense, settings)
    )


def test_a_users_module_gets_the_square_adjacency(tiny):
    class Mine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = SAGEConv(12, 3)

        def forward(self, x, adjacency):
            assert adjacency.shape == (x.shape[0], x.shape[0])
            return self.conv(x, adjacency)

    module, features = Mine(), FeatureTable(tiny.features)
    data = to_pyg(tiny)
    with torch.no_grad():
        expected = module.conv(data.x, data.edge_index)
    for sampler in ("neighbours", "shadow", "full"):
        settings = settings_for("paper", sampler=sampler, fanouts=(-1, -1), ego_fanout=10_000)
        assert close(exact_logits(module, tiny.graph, features, settings), expected)
        assert close(sampled_logits(module, tiny.graph, features, settings, 0), expected)


def test_evaluation_restores_the_mode_of_every_part(tiny):
    model, _ = model_and_settings("graphsage-mean", tiny)
    model.train()
    model.norms[0].eval()
    with evaluating(model):
        assert not model.training
    assert model.training
    assert not model.norms[0].training


def test_batches_made_ahead_come_in_order_and_errors_come_through():
    assert list(prefetch(lambda i: i * i, 50)) == [i * i for i in range(50)]

    def fails(i):
        if i == 3:
            raise RuntimeError("disk on fire")
        return i

    with pytest.raises(RuntimeError, match="disk on fire"):
        list(prefetch(fails, 10))


def test_leaving_early_stops_the_background_thread():
    import threading

    before = threading.active_count()
    for item in prefetch(lambda i: i, 1000):
        if item == 2:
            break
    assert threading.active_count() == before


def test_batches_are_as_equal_as_can_be():
    assert [part.size for part in chunks(np.arange(9), 4)] == [3, 3, 3]
    assert [part.size for part in chunks(np.arange(10), 4)] == [4, 3, 3]
    assert [part.size for part in chunks(np.arange(3), 4)] == [3]
    assert np.array_equal(np.concatenate(chunks(np.arange(10), 4)), np.arange(10))
