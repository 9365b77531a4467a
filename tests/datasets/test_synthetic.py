"""Synthetic graphs: right in distribution, the same for a seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from napsets.datasets import dcsbm, dcsbm_graph, load, sbm, sbm_graph
from napsets.datasets.synthetic import _pair_of
from napsets.errors import InvalidInputError


def share_inside(graph, blocks):
    row = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return (blocks[row] == blocks[graph.indices]).mean()


def test_the_triangle_is_enumerated_without_gaps():
    u, v = _pair_of(np.arange(190))
    assert [(a, b) for a in range(20) for b in range(a)] == list(zip(u.tolist(), v.tolist(), strict=True))
    far = np.array([10**17, 10**17 + 1])
    u, v = _pair_of(far)
    assert np.array_equal(u * (u - 1) // 2 + v, far)
    assert (v < u).all()
    assert (v >= 0).all()


def test_edges_of_the_block_model_are_bernoulli():
    size, p_in, p_out = 400, 0.1, 0.02
    graph, blocks = sbm_graph(size, p_in, p_out, seed=3)
    inside = round(share_inside(graph, blocks) * graph.num_edges) // 2
    outside = graph.num_edges // 2 - inside
    for count, pairs, p in ((inside, size * (size - 1), p_in), (outside, size * size, p_out)):
        low, high = binom.ppf([1e-6, 1 - 1e-6], pairs, p)
        assert low <= count <= high


@pytest.mark.parametrize(("p_in", "p_out", "degree"), [(1.0, 0.0, 9), (0.0, 1.0, 10), (1.0, 1.0, 19), (0.0, 0.0, 0)])
def test_sure_edges_are_there_and_impossible_ones_are_not(p_in, p_out, degree):
    graph, _ = sbm_graph(10, p_in, p_out)
    assert (graph.degrees == degree).all()


def test_the_two_blocks_differ_in_noise_only_and_no_feature_tells_the_block():
    data = sbm(2000, 0.01, 0.001, noise=(0.5, 2.0), seed=1)
    spread = [data.features[(data.blocks == b) & (data.labels == 0)].std(axis=0).mean() for b in (0, 1)]
    assert spread[0] == pytest.approx(0.5, rel=0.05)
    assert spread[1] == pytest.approx(2.0, rel=0.05)
    centres = [data.features[(data.blocks == b) & (data.labels == 0)].mean(axis=0) for b in (0, 1)]
    assert np.abs(centres[0] - centres[1]).max() < 5 * 2.0 / np.sqrt(500)


def test_the_degree_corrected_model_keeps_homophily_and_degree():
    graph, blocks = dcsbm_graph(20_000, 20, 5, homophily=0.7, seed=0)
    assert graph.num_edges / graph.num_nodes == pytest.approx(20, rel=0.08)
    assert share_inside(graph, blocks) == pytest.approx(0.7, abs=0.02)
    assert graph.degrees.max() > 8 * graph.degrees.mean()
    assert np.bincount(blocks).min() > 0


@pytest.mark.parametrize("homophily", [0.0, 1.0])
def test_extreme_homophily_is_exact(homophily):
    graph, blocks = dcsbm_graph(500, 6, 3, homophily=homophily, seed=2)
    assert graph.num_edges > 0
    assert share_inside(graph, blocks) == homophily


def test_one_block_takes_all_edges():
    graph, _ = dcsbm_graph(200, 4, 1, homophily=0.5)
    assert graph.num_edges > 600


@pytest.mark.parametrize("name", ["sbm", "dcsbm"])
def test_a_seed_fixes_everything(name):
    small = {"block_size": 200} if name == "sbm" else {"num_nodes": 400}
    first, again, other = (load(name, seed=seed, **small) for seed in (5, 5, 6))
    assert first.graph == again.graph
    assert np.array_equal(first.features, again.features)
    assert np.array_equal(first.train, again.train)
    assert first.graph != other.graph


def test_features_can_be_left_out():
    assert dcsbm(300, 4, 3, num_features=0).features.shape == (300, 0)


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"exponent": 2.0}, "exponent"), ({"homophily": 1.5}, "homophily"), ({"mean_degree": -1}, "mean_degree")],
)
def test_impossible_parameters_are_refused(options, argument):
    with pytest.raises(InvalidInputError, match=f"`{argument}` must"):
        load("dcsbm", **options)
