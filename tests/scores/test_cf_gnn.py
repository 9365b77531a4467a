"""CF-GNN: the loss is the definition's, training is the same bits again, and coverage is exact whatever was learned."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, softmax

import napsets as ns
from napsets.methods import load, make_method, save
from napsets.scores import CFGNN, ByLabel, Diffused, Labelled, training_progress
from napsets.scores.cf_gnn import Network, _loss, _normalised, _smooth_quantile
from worlds import block_model

torch = pytest.importorskip("torch")
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
    loss = _loss(torch, tensor, *map(torch.from_numpy, (labels, calibrating, tested)), score)
    loss.backward()
    assert loss.item() == pytest.approx(numpy_loss(logits, labels, calibrating, tested, alpha, 0.3), rel=1e-12)
    step = 1e-6
    for v in range(nodes):
        for y in range(classes):
            moved = np.zeros_like(logits)
            moved[v, y] = step
            above, below = (
                numpy_loss(logits + s * moved, labels, calibrating, tested, alpha, 0.3) for s in (1.0, -1.0)
            )
            assert tensor.grad[v, y].item() == pytest.approx((above - below) / (2 * step), abs=1e-7)


def test_the_smooth_quantile_is_the_order_statistic_where_there_is_one():
    values = torch.tensor([5.0, 1.0, 4.0, 2.0, 3.0, 9.0, 8.0, 7.0, 6.0], dtype=torch.float64)
    assert [_smooth_quantile(torch, values, k / 10).item() for k in range(1, 10)] == pytest.approx(range(1, 10))
    assert _smooth_quantile(torch, values, 0.15).item() == pytest.approx(1.5)
    assert _smooth_quantile(torch, values, 0.001).item() == 1.0  # never beyond what there is
    assert _smooth_quantile(torch, values, 0.999).item() == 9.0


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_the_network_is_two_graph_convolutions(monkeypatch, residual, directed):
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
    network = Network(torch, CFGNN(hidden=5, residual=residual), _normalised(graph, np.arange(size)), p)
    drawn = [rng.normal(size=tuple(weight.shape)) for weight in network.weights]
    network.weights = [torch.from_numpy(weight) for weight in drawn]
    first, first_bias, second, second_bias = drawn
    z = dense @ np.maximum(dense @ p @ first + first_bias, 0) @ second + second_bias
    expected = softmax(z + (np.log(p) if residual else 0.0), axis=1)
    np.testing.assert_allclose(network.probabilities(), expected, rtol=1e-12)
    monkeypatch.setattr("napsets.scores.cf_gnn._ENTRIES", 20)  # four nodes at a time
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
        learned += fitted.score.correction.epochs > 0
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.0}, "`alpha` must lie strictly between 0 and 1"),
        ({"hidden": 0}, "`hidden` must be at least 1"),
        ({"patience": 0.5}, "`patience` must be"),
        ({"epochs": -1}, "`epochs` must be at least 0"),
        ({"rate": 0.0}, "`rate` must be more than 0; got 0"),
        ({"temperature": math.nan}, "`temperature` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"residual": "yes"}, "`residual` must be"),
    ],
)
def test_bad_settings_are_named(change, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        CFGNN(**change)


def test_labels_kept_apart_change_nothing_of_the_correction():
    one = calibrated(QUICK)
    changed = Y.copy()
    changed[one.scored.level_nodes] = (changed[one.scored.level_nodes] + 1) % 3
    other = calibrated(QUICK, y=changed)
    assert one.score.correction.epochs > 0
    assert np.array_equal(one.score.probabilities, other.score.probabilities)


@pytest.mark.parametrize("labelled", [2, 4, 14])
def test_from_a_handful_of_labels_nothing_is_learned(labelled):
    fitted = calibrated(CFGNN(), calibration=np.arange(labelled))
    assert fitted.score.correction.epochs == 0
    assert np.array_equal(fitted.score.probabilities, P)


def test_where_no_epoch_makes_smaller_sets_the_model_is_left_alone():
    # The model is sure and right: a network that starts from nothing does worse within an epoch.
    sure = softmax(30.0 * (np.arange(3) == Y[:, None]), axis=1)
    fitted = calibrated(CFGNN(ns.THR(), epochs=1, residual=False), p=sure)
    assert fitted.score.correction.epochs == 0
    assert np.array_equal(fitted.score.probabilities, sure)


def test_float32_stays_float32_and_rows_sum_to_one():
    fitted = calibrated(QUICK, p=P.astype(np.float32))
    assert fitted.score.probabilities.dtype == np.float32
    np.testing.assert_allclose(fitted.score.probabilities.sum(axis=1), 1.0, rtol=1e-5)


# -- the same bits -------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_on_one_thread_and_on_two():
    results, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(calibrated(QUICK).score.probabilities)
            assert torch.get_num_threads() == threads  # as many as before
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(results[0], results[1])
    other = calibrated(CFGNN(epochs=20, rate=0.05, hidden=8, seed=1)).score.probabilities
    assert not np.array_equal(results[0], other)


def test_the_order_of_rows_changes_no_bit():
    ids = np.array([f"user-{i}" for i in range(600)])
    turn = np.random.default_rng(0).permutation(600)
    back = np.argsort(turn)
    one = calibrated(QUICK, ids=ids)
    edges = GRAPH.to_scipy().tocoo()
    graph = ns.Graph.from_edge_index([back[edges.row], back[edges.col]], num_nodes=600)
    other = calibrated(QUICK, 0, graph, P[turn], Y[turn], back[CALIBRATION], ids[turn])
    assert np.array_equal(one.score.probabilities[turn], other.score.probabilities)
    assert np.array_equal(one.predict(REST).member, other.predict(back[REST]).member)


def test_torch_draws_no_random_numbers_and_keeps_its_own():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    calibrated(QUICK)
    assert torch.equal(torch.get_rng_state(), before)


def test_one_training_serves_every_alpha():
    reports = []
    with training_progress(lambda done, total: reports.append((done, total))):
        fitted = calibrated(QUICK)
        fitted.predict(REST, [0.05, 0.1, 0.3])
    assert reports == [(epoch, 20) for epoch in range(1, 21)]
    calibrated(QUICK)
    assert len(reports) == 20  # nobody is told any more


def test_progress_ends_at_the_end_though_training_stopped_before():
    reports = []
    with training_progress(lambda done, total: reports.append(done)):
        fitted = calibrated(CFGNN(epochs=5000, rate=0.3, hidden=4))
    assert reports[-1] == 5000
    assert len(reports) < 2000
    assert fitted.score.correction.epochs < len(reports)


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "score", [QUICK, ByLabel(QUICK, 0.5), Diffused(QUICK, 0.3)], ids=["plain", "ranked", "diffused"]
)
def test_a_saved_method_answers_with_the_same_bits_without_torch(tmp_path, score):
    fitted = calibrated(score)
    expected = fitted.predict(REST, [0.1, 0.3])
    save(fitted, tmp_path / "made.npz")
    np.savez(tmp_path / "sets.npz", member=[s.member for s in expected], tau=[s.thresholds for s in expected])
    program = f"""
import sys
sys.modules["torch"] = None  # importing it fails
import numpy as np
from napsets.methods import load
again = load({str(tmp_path / "made.npz")!r})
expected = np.load({str(tmp_path / "sets.npz")!r})
for i, sets in enumerate(again.predict(np.arange(1, 600, 2), [0.1, 0.3])):
    assert np.array_equal(sets.member, expected["member"][i])
    assert np.array_equal(sets.thresholds, expected["tau"][i])
print(again.method)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == str(fitted.method)


def test_a_file_keeps_what_became_of_the_training(tmp_path):
    fitted = calibrated(QUICK)
    save(fitted, tmp_path / "made.npz")
    assert load(tmp_path / "made.npz").score.correction == fitted.score.correction


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ns.MissingDependencyError, match=r"pip install 'napsets\[gnn\]'"):
        calibrated(QUICK)


# -- the table -----------------------------------------------------------------------------------------------------


def test_the_method_of_that_name_takes_seed_and_alpha_from_the_settings():
    method = make_method("cf-gnn", seed=9, alpha=0.2, score="thr")
    assert method.score == CFGNN(ns.THR(), alpha=0.2, seed=9)
    assert method.level == ns.Exact()
    assert make_method("cf-gnn", score=QUICK).score == QUICK


def test_it_binds_to_the_score_of_changed_probabilities():
    bound = QUICK.bind(P, ns.node_uniforms(np.arange(600)), GRAPH, Labelled(CALIBRATION, Y[CALIBRATION]))
    expected = ns.APS().matrix(bound.probabilities, ns.node_uniforms(np.arange(600)))
    assert np.array_equal(bound.matrix(np.arange(600)), expected)
    assert np.array_equal(bound.at(REST, Y[REST]), expected[REST, Y[REST]])
