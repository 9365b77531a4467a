"""Outputs are those of PyTorch Geometric's layers on the whole graph, where every neighbour is drawn."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import GCNConv  # noqa: E402

from napsets.datasets import to_pyg  # noqa: E402
from napsets.gnn.training import evaluating  # noqa: E402
from studies.training import MODELS, settings_for  # noqa: E402
from studies.training.recipes import exact_outputs, sampled_outputs  # noqa: E402

pytestmark = [pytest.mark.gnn, pytest.mark.usefixtures("one_thread")]


@pytest.mark.parametrize("sampler", ["neighbours", "full"])
@pytest.mark.parametrize("name", ["graphsage-mean", "graphsage-max", "gcn", "mlp"])
def test_logits_are_those_of_the_layers_on_the_edge_list(tiny, name, sampler):
    settings = settings_for("paper-text", MODELS[name][1], hidden=8, sampler=sampler, batch_size=50, fanouts=(-1, -1))
    torch.manual_seed(0)
    model, data = MODELS[name][0](tiny.num_features, tiny.num_classes, settings), to_pyg(tiny)
    for norm in model.norms:  # statistics that are not those of a fresh layer
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
    x = data.x
    with evaluating(model):
        for i, conv in enumerate(model.convs):
            if isinstance(conv, GCNConv):
                weights, conv = conv.state_dict(), GCNConv(conv.in_channels, conv.out_channels)
                conv.load_state_dict(weights)  # a layer that computes the normalisation itself
            x = conv(x) if name == "mlp" else conv(x, data.edge_index)
            if i < len(model.norms):  # in evaluation mode, nothing is dropped out
                x = torch.relu(model.norms[i](x))
    features = torch.from_numpy(tiny.features)
    for logits in (
        sampled_outputs(model, tiny.graph, features, settings, 0),
        exact_outputs(model, tiny.graph, features, settings),
    ):
        assert torch.allclose(logits, x, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", ["shadow-sage", "shadow-gcn"])
def test_whole_ego_nets_give_the_exact_outputs(tiny, name, layers):
    settings = settings_for("paper-text", "shadow", hidden=8, layers=layers, ego_fanout=10_000, batch_size=50)
    torch.manual_seed(0)
    model, features = MODELS[name][0](tiny.num_features, tiny.num_classes, settings), torch.from_numpy(tiny.features)
    drawn = sampled_outputs(model, tiny.graph, features, settings, 0)
    assert torch.allclose(exact_outputs(model, tiny.graph, features, settings), drawn, atol=2e-5, rtol=1e-4)
