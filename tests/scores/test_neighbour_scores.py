"""Scores made of other scores: averaged over neighbours, sharpened, ranked by label."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.kernels import csr as kernel
from napsets.methods import load, save
from napsets.scores import SCORES, ByLabel, Diffused, Informed, Labelled, Sharpened
from napsets.scores.evidence import neighbour_labels
from worlds import guess

RNG = np.random.default_rng(0)
SIZE, CLASSES = 300, 4
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE - 10, size=(2, 900)), SIZE)  # the last nodes have no neighbours
P = RNG.dirichlet(np.ones(CLASSES), SIZE)
Y = RNG.integers(CLASSES, size=SIZE)
U = ns.node_uniforms(np.arange(SIZE), 0)
EVERYONE = np.arange(SIZE)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_diffusion_is_the_sparse_product_of_the_definition(steps):
    S = ns.aps_scores(P, U)
    A, degree = GRAPH.to_scipy(), GRAPH.degrees
    expected = S
    for _ in range(steps):
        mean = (A @ expected) / np.maximum(degree, 1)[:, None]
        expected = np.where((degree == 0)[:, None], expected, 0.6 * expected + 0.4 * mean)
    bound = Diffused(ns.APS(), strength=0.4, steps=steps).bind(P, U, GRAPH, None)
    np.testing.assert_allclose(bound.matrix(EVERYONE), expected, rtol=1e-12)
    assert np.array_equal(bound.at(EVERYONE, Y), bound.matrix(EVERYONE)[EVERYONE, Y])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6))
def test_sums_over_neighbours_add_in_the_order_of_the_columns(seed, nodes, width):
    rng = np.random.default_rng(seed)
    graph = ns.Graph.from_edge_index(rng.integers(nodes, size=(2, 4 * nodes)), num_nodes=nodes)
    values = rng.normal(size=(nodes, width))
    expected = np.zeros((nodes, width))
    for u in range(nodes):
        for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]]:
            expected[u] += values[v]
    assert np.array_equal(graph.neighbour_sums(values), expected)


def test_diffusion_needs_a_graph():
    with pytest.raises(ns.InvalidInputError, match="`graph` must be given to a score that looks at neighbours"):
        ns.SplitConformal(Diffused()).calibrate(P, Y, np.arange(100))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diffused(strength=1.5), r"`strength` must lie in \[0, 1\]; got 1.5"),
        (lambda: Diffused(steps=-1), "`steps` must be at least 0; got -1"),
        (lambda: Sharpened(power=0), "`power` must be more than 0"),
        (lambda: Sharpened(Diffused()), "`base` must score rows alone; Diffused does not"),
        (lambda: ByLabel(mix=2), r"`mix` must lie in \[0, 1\]"),
        (lambda: Diffused("rasp"), "`score` must be one of"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        make()


def test_a_power_of_one_changes_nothing_and_of_two_squares():
    np.testing.assert_allclose(Sharpened(ns.APS(), 1.0).matrix(P, U), ns.aps_scores(P, U), atol=1e-9)
    squared = P**2 / (P**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Sharpened(ns.THR(), 2.0).matrix(P, U), 1 - squared, atol=1e-9)
    zero = np.array([[1.0, 0.0]])
    assert np.isfinite(Sharpened(ns.APS(), 50.0).matrix(zero, [0.5])).all()


def test_by_label_is_the_mixture_of_ranks_that_it_says():
    nodes = np.arange(0, SIZE, 2)
    bound = ByLabel(ns.THR(), mix=0.5).bind(P, U, None, Labelled(nodes, Y[nodes]))
    S = 1.0 - P
    reference = S[nodes, Y[nodes]]
    for v, y in [(1, 0), (7, 3), (200, 2)]:
        own = reference[Y[nodes] == y]
        mix = 0.5 * own.size / (own.size + 20)
        expected = (1 - mix) * (reference < S[v, y]).sum() / (nodes.size + 1)
        expected += mix * (own < S[v, y]).sum() / (own.size + 1)
        assert bound.matrix(np.array([v]))[0, y] == pytest.approx(expected + 1e-6 * S[v, y], abs=1e-12)
    assert np.array_equal(bound.at(EVERYONE, Y), bound.matrix(EVERYONE)[EVERYONE, Y])


def test_by_label_evens_coverage_out_between_classes():
    rng = np.random.default_rng(1)
    n = 6000
    labels = rng.integers(2, size=n)
    hard = labels == 1
    p = guess(labels, np.where(hard, 0.3, 2.5), rng)
    gaps = {}
    for name, score in {"plain": ns.APS(), "by label": ByLabel(ns.APS(), mix=1.0)}.items():
        sets = ns.SplitConformal(score).calibrate(p, labels, np.arange(3000)).predict(np.arange(3000, n))
        covered = sets.contains(labels)
        gaps[name] = max(abs(covered[labels[3000:] == y].mean() - 0.9) for y in (0, 1))
    assert gaps["by label"] < 0.5 * gaps["plain"]


CHAINS = {
    "diffused": Diffused(ns.RAPS(), 0.3, 2),
    "informed": Informed(ns.APS()),
    "sharpened": Informed(Sharpened(ns.APS(), 1.5)),
    "by label": ByLabel(Informed(Sharpened(ns.SAPS(), 2.0)), 0.25),
    "diffused informed": Diffused(Informed(ns.THR()), 0.5),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_scores_are_saved_and_read_back_to_the_bit(tmp_path, name):
    score = CHAINS[name]
    level = ns.Exact() if name != "diffused" else ns.Nominal()
    method = ns.Method(score, ns.Hops(2, pool=10.0, alike=5.0), level, seed=2)
    calibrated = method.calibrate(GRAPH, P, Y, np.arange(0, SIZE, 2))
    save(calibrated, tmp_path / "a.npz")
    again = load(tmp_path / "a.npz")
    assert isinstance(again, ns.Calibrated)
    assert again.method == method
    one, other = (each.predict(np.arange(1, SIZE, 2), [0.05, 0.3]) for each in (calibrated, again))
    for mine, theirs in zip(one, other, strict=True):
        assert np.array_equal(mine.member, theirs.member)
        assert np.array_equal(mine.thresholds, theirs.thresholds)
        assert mine.level == theirs.level


def test_every_score_of_the_table_makes_itself_by_name():
    for name in SCORES:
        method = ns.Method(name, level=ns.Exact()).score
        assert SCORES.name_of(type(method)) == name


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.integers(1, 4))
def test_counts_of_neighbours_labels_are_sums_of_zeros_and_ones(seed, nodes, classes, threads):
    rng = np.random.default_rng(seed)
    graph = ns.Graph.from_edge_index(rng.integers(nodes, size=(2, 4 * nodes)), num_nodes=nodes)
    labels = rng.integers(-1, classes, size=nodes)
    expected = graph.neighbour_sums((np.arange(classes) == labels[:, None]).astype(float))
    assert np.array_equal(neighbour_labels(graph, labels, classes), expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napsets.kernels.threads.SMALL", -1)
        compiled = kernel.neighbour_labels(graph.indptr, graph.indices, labels, classes, threads)
        values = rng.standard_normal((nodes, classes)) * 10.0 ** rng.integers(-9, 9, nodes)[:, None]
        sums = kernel.neighbour_sums(graph.indptr, graph.indices, values, threads)
    assert np.array_equal(compiled, expected)
    assert np.array_equal(sums, graph.neighbour_sums(values))


#: Large enough for kernels, which read whatever stands in memory where an array is too short.
LARGE = ns.Graph.from_edge_index(np.random.default_rng(0).integers(20_000, size=(2, 400_000)), num_nodes=20_000)


@pytest.mark.parametrize(
    "values",
    [
        np.ones((3, 2)), np.ones((20_001, 2)), np.ones(20_000), np.ones((20_000, 2, 1)), np.float64(1), None, "text",
        np.ones((20_000, 1), dtype=complex), np.full((20_000, 1), "1"), sp.csr_array(sp.identity(20_000)),
        [[1.0], [1.0, 2.0]],
    ],
)  # fmt: skip
@pytest.mark.parametrize("graph", [LARGE, GRAPH], ids=["by kernels", "by NumPy"])
def test_sums_over_neighbours_need_one_row_of_numbers_per_node(graph, values):
    for sums in (graph.neighbour_sums, graph.neighbour_means):
        with pytest.raises(ns.InvalidInputError, match="`values` must be a"):
            sums(values)
