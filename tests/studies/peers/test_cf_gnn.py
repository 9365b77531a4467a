"""CF-GNN: the loss is the definition's, training is the same bits again, and coverage is exact whatever was learned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, softmax

import napsets as ns
from napsets.methods import make_method
from napsets.scores import Diffused
from studies.peers.cf_gnn import CFGNN, Network, loss
from worlds import block_model

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
pytestmark = pytest.mark.gnn

QUICK = CFGNN(epochs=20, rate=0.05, hidden=8)


GRAPH, P, Y = block_model()
CALIBRATION, REST = np.arange(0, 600, 2), np.arange(1, 600, 2)


def calibrated(score, seed=0, graph=GRAPH, p=P, y=Y, calibration=CALIBRATION, ids=None):
    return ns.Method(score, level=ns.Exact(), seed=seed).calibrate_rows(graph, p, y, calibration, ids)


# -- the definition ------------------------------------------------------------------------------------------------


def numpy_loss(logits, labels, calibrating, tested, alpha, temperature):
    """The definition: cross entropy of all, and the mean over the tested of ReLU(Σ_y σ((p_y − q̂) / τ))."""
    p = softmax(logits, axis=1)
    everyone = np.concatenate([calibrating, tested])
    entropy = -np.mean([np.log(p[v, labels[v]]) for v in everyone])
    at_truth = np.sort([p[v, labels[v]] for v in calibrating])
    place = np.clip(alpha * (at_truth.size + 1), 1, at_truth.size)
    threshold = np.interp(place, np.arange(1, at_truth.size + 1), at_truth)
    sizes = [max(0.0, sum(expit((p[v, y] - threshold) / temperature) for y in range(p.shape[1]))) for v in tested]
    return entropy + np.mean(sizes)


@pytest.mark.parametrize(("alpha", "calibrators"), [(0.1, 19), (0.1, 3), (0.35, 8), (0.95, 6), (0.5, 1)])
def test_the_loss_and_its_gradient_are_those_of_the_definition(alpha, calibrators):
    rng = np.random.default_rng(calibrators)
    nodes, classes, score = 24, 4, CFGNN(alpha=alpha, temperature=0.3)
    logits, labels = rng.normal(size=(nodes, classes)), rng.integers(classes, size=nodes)
    calibrating, tested = np.split(rng.permutation(nodes)[:22], [calibrators])
    tensor = torch.from_numpy(logits).requires_grad_()
    value = loss(tensor, *map(torch.from_numpy, (labels, calibrating, tested)), score)
    value.backward()
    assert value.item() == pytest.approx(numpy_loss(logits, labels, calibrating, tested, alpha, 0.3), rel=1e-12)
    step = 1e-6
    for v in range(nodes):
        for y in range(classes):
            moved = np.zeros_like(logits)
            moved[v, y] = step
            above, below = (
                numpy_loss(logits + s * moved, labels, calibrating, tested, alpha, 0.3) for s in (1.0, -1.0)
            )
            assert tensor.grad[v, y].item() == pytest.approx((above - below) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_the_network_is_two_graph_convolutions(residual, directed):
    rng = np.random.default_rng(4)
    size, classes = 30, 3
    graph = ns.Graph.from_edge_index(rng.integers(20, size=(2, 60)), num_nodes=size, directed=directed)
    p = rng.dirichlet(np.ones(classes), size)
    dense = np.zeros((size, size))
    for v in range(size):
        dense[v, graph.indices[graph.indptr[v] : graph.indptr[v + 1]]] = 1.0
    dense += np.eye(size)
    scale = 1 / np.sqrt(dense.sum(axis=1))
    dense = scale[:, None] * dense * scale
    score = CFGNN(hidden=5, residual=residual)
    network = Network(score, rng, p, graph)
    drawn = {name: rng.normal(size=tuple(weight.shape)) for name, weight in network.weights().items()}
    network.layers.load_state_dict({name: torch.from_numpy(weight) for name, weight in drawn.items()})
    first, second = drawn["first.weight"].T, drawn["second.lin.weight"].T
    z = dense @ np.maximum(dense @ p @ first + drawn["first.bias"], 0) @ second + drawn["second.bias"]
    expected = softmax(z + (np.log(p) if residual else 0.0), axis=1)
    np.testing.assert_allclose(network.probabilities(), expected, rtol=1e-12)


# -- what it promises ----------------------------------------------------------------------------------------------


def test_coverage_follows_the_beta_binomial_law_whatever_was_learned():
    """With nodes labelled at random, the number of covered nodes is beta-binomial, though the network overfits."""
    graph, p, labels = block_model(nodes=300, seed=5)
    score = CFGNN(ns.APS(), epochs=15, rate=0.1, hidden=4)
    alpha, draws, learned = 0.1, 150, 0
    covered, rng = np.empty(draws), np.random.default_rng(8)
    for draw in range(draws):
        calibration = rng.permutation(300)[:60]
        nodes = np.setdiff1d(np.arange(300), calibration)
        fitted = calibrated(score, 0, graph, p, labels, calibration)
        learned += not np.array_equal(fitted.score.probabilities, p)
        covered[draw] = fitted.predict(nodes, alpha).contains(labels).sum()
    assert learned > draws / 2
    place, spread = math.ceil(31 * (1 - alpha) - 1e-9), rng.random(draws)

    def fit(k):
        # Where in its law each count falls, spread evenly over the steps of a discrete law.
        law = stats.betabinom(240, k, 31 - k)
        return stats.kstest(law.cdf(covered - 1) + spread * law.pmf(covered), "uniform").pvalue

    assert fit(place) > 1e-3
    # The test has the power to tell an order statistic from its neighbours.
    assert max(fit(place - 1), fit(place + 1)) < 1e-3


def test_sets_are_smaller_than_without_the_correction_where_neighbours_are_alike():
    nodes, labelled, differences = 1500, 600, []
    for seed in range(6):
        graph, p, labels = block_model(nodes=nodes, seed=seed)
        rng = np.random.default_rng(seed)
        calibration = rng.permutation(nodes)[:labelled]
        rest = np.setdiff1d(np.arange(nodes), calibration)
        inputs = (seed, graph, p, labels, calibration)
        sizes = [calibrated(score, *inputs).predict(rest).sizes.mean() for score in (ns.APS(), CFGNN(epochs=100))]
        differences.append(sizes[0] - sizes[1])
    # Draws are independent: smaller by a tenth of a label at the least, by a one-sided t-test.
    assert stats.ttest_1samp(differences, 0.1, alternative="greater").pvalue < 1e-3


def test_it_needs_an_exact_level_a_graph_and_a_score_of_rows():
    with pytest.raises(ns.InvalidInputError, match="`level` must be exact for a score that learns from labels"):
        ns.NAPS(score=CFGNN())
    with pytest.raises(ns.InvalidInputError, match="`graph` must be given to a score that looks at neighbours"):
        ns.SplitConformal(CFGNN()).calibrate(P, Y, CALIBRATION)
    with pytest.raises(ns.InvalidInputError, match="`base` must score rows alone; Diffused does not"):
        CFGNN(Diffused())


def test_where_no_epoch_makes_smaller_sets_the_model_is_left_alone():
    # The model is sure and right: a network that starts from nothing does worse within an epoch.
    sure = softmax(30.0 * (np.arange(3) == Y[:, None]), axis=1)
    fitted = calibrated(CFGNN(ns.THR(), epochs=1, residual=False), p=sure)
    assert np.array_equal(fitted.score.probabilities, sure)


# -- the same bits -------------------------------------------------------------------------------------------------


# -- the table -----------------------------------------------------------------------------------------------------


def test_the_method_of_that_name_takes_seed_and_alpha_from_the_settings():
    method = make_method("cf-gnn", seed=9, alpha=0.2, score="thr")
    assert method.score == CFGNN(ns.THR(), alpha=0.2, seed=9)
    assert method.level == ns.Exact()
    assert make_method("cf-gnn", score=QUICK).score == QUICK
