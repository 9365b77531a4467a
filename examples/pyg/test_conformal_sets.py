"""Tests of the module beside, in the manner of PyTorch Geometric: run with ``pytest examples/pyg``."""

from __future__ import annotations

import math

import pytest
import torch
from conformal_sets import ConformalSets, conformal_sets
from torch_geometric.data import Data


@pytest.fixture
def world():
    torch.manual_seed(0)
    edge_index = torch.randint(200, (2, 800))
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    return torch.randn(200, 4).softmax(dim=1), torch.randint(4, (200,)), edge_index


@pytest.mark.parametrize("score", ["aps", "thr"])
@pytest.mark.parametrize("diffusion", [0.0, 0.5])
def test_the_threshold_is_an_order_statistic(world, score, diffusion):
    probs, y, edge_index = world
    mask = torch.arange(200) < 99
    module = ConformalSets(0.1, score, diffusion).calibrate(probs, y, mask, edge_index)
    own = module.scores(probs, edge_index)[mask, y[mask]].sort().values
    assert module.threshold == own[89]  # the 90th of 99: (99 + 1)(1 - 0.1)
    sets = module(probs, edge_index)
    assert sets.shape == (200, 4)
    assert int(sets[mask, y[mask]].sum()) == 90


def test_too_few_labels_give_every_class(world):
    probs, y, edge_index = world
    module = ConformalSets(0.1).calibrate(probs, y, torch.arange(200) < 8, edge_index)
    assert module.threshold == math.inf
    assert module(probs, edge_index).all()


def test_sets_are_nested_in_alpha(world):
    probs, y, edge_index = world
    mask = torch.arange(200) < 100
    small, large = (ConformalSets(a).calibrate(probs, y, mask, edge_index)(probs, edge_index) for a in (0.3, 0.1))
    assert bool((small <= large).all())


def test_a_node_without_neighbors_keeps_its_score(world):
    probs, _, edge_index = world
    edge_index = edge_index[:, (edge_index != 7).all(dim=0)]
    plain, mixed = ConformalSets(diffusion=0.0), ConformalSets(diffusion=0.5)
    assert torch.equal(mixed.scores(probs, edge_index)[7], plain.scores(probs)[7])


def test_one_call_leaves_model_and_data_as_they_were(world):
    _, y, edge_index = world
    data = Data(x=torch.randn(200, 4), edge_index=edge_index, y=y, train_mask=torch.arange(200) < 50)

    class Model(torch.nn.Module):
        def forward(self, x, edge_index):
            return x

    model = Model().train()
    sets = conformal_sets(model, data, torch.arange(200) >= 100)
    assert sets.dtype == torch.bool
    assert model.training
    with pytest.warns(UserWarning, match="train_mask"):
        conformal_sets(model, data, data.train_mask)


@pytest.mark.parametrize("settings", [{"alpha": 0.0}, {"score": "raps"}, {"diffusion": 2.0}])
def test_settings_are_checked(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        ConformalSets(**settings)


def test_the_threshold_is_saved_with_the_module(world):
    probs, y, edge_index = world
    module = ConformalSets().calibrate(probs, y, torch.arange(200) < 100, edge_index)
    again = ConformalSets()
    again.load_state_dict(module.state_dict())
    assert torch.equal(again(probs, edge_index), module(probs, edge_index))
