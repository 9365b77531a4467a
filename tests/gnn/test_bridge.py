"""The bridge for people who already have a model and a Data."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import GraphSAGE  # noqa: E402

import napsets as ns  # noqa: E402
from napsets.datasets import to_pyg  # noqa: E402
from napsets.errors import InvalidInputError, NapsetsWarning  # noqa: E402
from napsets.gnn import predict_sets, probabilities_of  # noqa: E402

pytestmark = [pytest.mark.gnn, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def world(tiny):
    torch.manual_seed(0)
    model = GraphSAGE(tiny.num_features, 8, 2, tiny.num_classes, dropout=0.5)
    calibration, nodes = tiny.validation, tiny.test
    return model, to_pyg(tiny), calibration, nodes


def test_the_sets_are_those_of_naps_on_the_models_probabilities(world, tiny):
    model, data, calibration, nodes = world
    sets = predict_sets(model, data, calibration, nodes, 0.2, method=ns.NAPS(hops=3, decay="geometric", seed=7))
    model.eval()
    with torch.no_grad():
        probabilities = torch.softmax(model(data.x, data.edge_index).double(), dim=1).numpy()
    naps = ns.NAPS(hops=3, decay="geometric", seed=7).calibrate(tiny.graph, probabilities, tiny.labels, calibration)
    expected = naps.predict(nodes, alpha=0.2)
    assert np.array_equal(sets.member, expected.member)
    assert np.array_equal(sets.thresholds, expected.thresholds)
    assert np.isfinite(sets.thresholds).any()
    assert np.array_equal(sets.nodes, nodes)


@pytest.mark.parametrize("within", [False, True])
def test_evidence_teaches_as_it_does_elsewhere(world, tiny, within):
    model, data, calibration, nodes = world
    evidence, judged = nodes[::2], nodes[1::2]
    kept = np.sort(np.concatenate([calibration, nodes])) if within else np.arange(tiny.graph.num_nodes)
    options = {"evidence": evidence, "method": "informed", "within": kept if within else None}
    sets = predict_sets(model, data, calibration, judged, 0.2, **options)
    labels, probabilities = tiny.labels[kept], probabilities_of(model, data)[kept]
    masks = [np.isin(kept, part) for part in (calibration, evidence, judged)]
    calibrated = ns.make_method("informed").calibrate_rows(
        tiny.graph.subgraph(kept) if within else tiny.graph, probabilities, labels, masks[0], kept, evidence=masks[1]
    )
    expected = calibrated.predict(masks[2], 0.2)
    order = np.argsort(sets.nodes)
    assert np.array_equal(sets.member[order], expected.member)
    assert np.array_equal(calibrated.scored.level_nodes, np.flatnonzero(masks[0]))


def test_labels_outside_the_calibration_nodes_are_not_looked_at(world):
    model, data, calibration, nodes = world
    before = predict_sets(model, data, calibration, nodes, 0.2)
    data.y = data.y.clone()
    others = np.setdiff1d(np.arange(data.num_nodes), calibration)
    data.y[others] = -100
    assert np.array_equal(predict_sets(model, data, calibration, nodes, 0.2).member, before.member)


def test_neighbourhoods_can_be_kept_within_some_nodes(world, tiny):
    model, data, calibration, nodes = world
    within = np.concatenate([calibration, nodes])
    sets = predict_sets(model, data, calibration, nodes, 0.2, method=ns.NAPS(), within=within)
    row = np.repeat(np.arange(tiny.num_nodes), tiny.graph.degrees)
    keep = np.isin(row, within) & np.isin(tiny.graph.indices, within)
    cut = ns.Graph.from_edge_index(np.stack([row, tiny.graph.indices])[:, keep], tiny.num_nodes)
    expected = ns.NAPS().calibrate(cut, probabilities_of(model, data), tiny.labels, calibration).predict(nodes, 0.2)
    assert np.array_equal(sets.member, expected.member)
    assert np.array_equal(sets.nodes, nodes)
    with pytest.raises(InvalidInputError, match="`nodes` must lie within `within`"):
        predict_sets(model, data, calibration, nodes, within=calibration)


@pytest.mark.parametrize("training", [True, False])
def test_mode_gradients_and_data_are_left_as_they_were(world, training):
    model, data, calibration, nodes = world
    model.train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = data.x.clone()
    predict_sets(model, data, calibration, nodes)
    assert model.training is training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(data.x, x)


def test_a_model_is_brought_back_to_its_device_even_after_an_error(world):
    model, data, calibration, nodes = world
    seen = []

    def forward(module, moved):
        seen.append(next(module.parameters()).device.type)
        raise RuntimeError("cannot run here")

    moves = []
    original = model.to
    model.to = lambda device: (moves.append(torch.device(device).type), original("cpu"))[1]
    with pytest.raises((RuntimeError, NotImplementedError)):
        predict_sets(model, data, calibration, nodes, device="meta", forward=forward)
    assert moves == ["meta", "cpu"]
    assert next(model.parameters()).device.type == "cpu"


def test_another_way_of_calling_the_model_can_be_given(world):
    model, data, calibration, nodes = world
    plain = predict_sets(model, data, calibration, nodes)
    other = predict_sets(model, data, calibration, nodes, forward=lambda m, d: m(d.x, d.edge_index).log_softmax(dim=1))
    assert np.array_equal(plain.member, other.member)


def test_probabilities_are_taken_as_they_are_and_suspected_where_undeclared(world):
    model, data, _, _ = world

    def forward(module, moved):
        return module(moved.x, moved.edge_index).softmax(dim=1)

    declared = probabilities_of(model, data, outputs="probabilities", forward=forward)
    assert np.allclose(declared, probabilities_of(model, data), atol=1e-6)
    with pytest.warns(NapsetsWarning, match="look like probabilities"):
        probabilities_of(model, data, forward=forward)


def test_outputs_of_the_wrong_shape_are_refused(world):
    model, data, calibration, nodes = world
    with pytest.raises(InvalidInputError, match="`model` must return a matrix"):
        predict_sets(model, data, calibration, nodes, forward=lambda m, d: d.x.sum())
    with pytest.raises(InvalidInputError, match="one row per node, 240; got 10"):
        predict_sets(model, data, calibration, nodes, forward=lambda m, d: d.x[:10])


class TakesData(torch.nn.Module):
    """A model that takes the whole Data, as many tutorials have it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, data, scale=1.0):
        return self.inner(data.x, data.edge_index) * scale


class TakesThree(TakesData):
    def forward(self, x, edge_index, edge_weight):
        return self.inner(x, edge_index)


def test_a_model_that_takes_the_data_is_given_the_data(world):
    model, data, calibration, nodes = world
    plain = predict_sets(model, data, calibration, nodes)
    assert np.array_equal(predict_sets(TakesData(model), data, calibration, nodes).member, plain.member)


def test_a_model_that_takes_something_else_is_refused_with_the_way_out(world):
    model, data, calibration, nodes = world
    with pytest.raises(
        InvalidInputError, match=r"takes \(x, edge_index, edge_weight\)\. Say how .*forward=lambda model"
    ):
        predict_sets(TakesThree(model), data, calibration, nodes)


def test_a_model_in_half_precision_is_taken(world):
    model, data, calibration, nodes = world
    data.x = data.x.bfloat16()
    assert len(predict_sets(model.bfloat16(), data, calibration, nodes)) == nodes.size


def test_labels_of_another_shape_or_kind_are_refused(world):
    model, data, calibration, nodes = world
    labels = data.y
    data.y = labels[:, None]
    predict_sets(model, data, calibration, nodes)
    for y, message in [
        (
            torch.stack([labels, labels], dim=1),
            r"`data.y` must have one label per node, shape \(240,\); got \(240, 2\)",
        ),
        (labels.double(), "`data.y` must hold integers"),
    ]:
        data.y = y
        with pytest.raises(InvalidInputError, match=message):
            predict_sets(model, data, calibration, nodes)
