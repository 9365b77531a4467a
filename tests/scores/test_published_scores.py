"""SNAPS and tuned diffusion, against their definitions in a few lines each."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.features import check_features
from napsets.methods import make_method
from napsets.scores import Diffused, Similarity, similar_nodes
from napsets.scores import averaged as room

RNG = np.random.default_rng(0)
SIZE, CLASSES = 240, 4
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE - 10, size=(2, 700)), SIZE)  # the last nodes have no neighbours
Y = RNG.integers(CLASSES, size=SIZE)
P = 0.4 * np.eye(CLASSES)[Y] + 0.6 * RNG.dirichlet(np.ones(CLASSES), SIZE)
U = ns.node_uniforms(np.arange(SIZE), 0)
EVERYONE = np.arange(SIZE)
X = RNG.normal(size=(SIZE, 6))
X[5] = 0.0  # a node of which nothing is known


def nearest(features, count):
    """The most similar nodes of each by exact integers: (−cosine², number), for rows of small integers."""
    results = []
    for i, a in enumerate(features.tolist()):
        some = []
        for j, b in enumerate(features.tolist()):
            dot = sum(x * y for x, y in zip(a, b, strict=True))
            if i != j and dot > 0:
                some.append((-dot / (math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))), j))
        results.append(sorted((round(c, 12), j) for c, j in some)[:count])
    return results


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 5), st.integers(0, 8), st.sampled_from([1, 3]))
def test_similar_nodes_are_those_with_the_largest_cosine_and_of_equals_the_first(seed, nodes, width, count, threads):
    features = np.random.default_rng(seed).integers(-1, 3, size=(nodes, width)).astype(float)
    expected = nearest(features, count)
    dense = similar_nodes(features, count, threads=threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_DENSE_ENTRIES", -1)
        sparse = similar_nodes(sp.csr_array(features), count, threads=threads)
    for numbers, cosines in (dense, sparse):
        for i, row in enumerate(expected):
            kept = numbers[i] >= 0
            assert [(round(-c, 12), j) for c, j in zip(cosines[i][kept], numbers[i][kept], strict=True)] == row
            assert (cosines[i][~kept] == 0).all()
    assert np.array_equal(dense[0], sparse[0])


def test_precision_and_threads_change_no_neighbour():
    rng = np.random.default_rng(1)
    close = rng.normal(size=(1, 40)) + 1e-5 * rng.normal(size=(1500, 40))  # cosines that single precision confuses
    one, three = (similar_nodes(close, 10, threads=threads) for threads in (1, 3))
    assert np.array_equal(one[0], three[0])
    assert np.array_equal(one[1], three[1])
    length = np.linalg.norm(close, axis=1)
    exact = np.array([[math.fsum(close[i] * close[j]) for j in range(1500)] for i in range(3)])
    exact /= length[:3, None] * length
    for i in range(3):
        exact[i, i] = -1
        order = np.argsort(-exact[i], kind="stable")[:10]
        assert np.array_equal(np.sort(order), np.sort(one[0][i]))


@pytest.mark.parametrize(
    "features", [X, X.astype(np.float32), sp.csr_matrix(X), None], ids=["64", "32", "sparse", "none"]
)
def test_snaps_is_the_formula_of_the_paper(features):
    S, table = ns.aps_scores(P, U), P if features is None else X
    length = np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.divide(table, length, out=np.zeros_like(table), where=length > 0)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, 0)
    A, degree = GRAPH.to_scipy(), GRAPH.degrees
    expected = np.empty_like(S)
    for v in range(SIZE):
        near = (A[[v]] @ S)[0] / degree[v] if degree[v] else S[v]
        top = [j for j in np.argsort(-cosine[v])[:20] if cosine[v, j] > 0]
        similar = cosine[v, top] @ S[top] / cosine[v, top].sum() if top else S[v]
        expected[v] = 0.2 * S[v] + 0.3 * near + 0.5 * similar
    table = None if features is None else check_features("features", features)
    bound = Similarity(ns.APS(), 20, similar=0.5, near=0.3).bind(P, U, GRAPH, None, features=table)
    np.testing.assert_allclose(bound.matrix(EVERYONE), expected, atol=1e-6)
    assert np.array_equal(bound.at(EVERYONE, Y), bound.matrix(EVERYONE)[EVERYONE, Y])


def test_without_similar_nodes_snaps_is_daps():
    daps = Diffused(ns.APS(), 0.4).bind(P, U, GRAPH, None).matrix(EVERYONE)
    np.testing.assert_allclose(
        Similarity(ns.APS(), similar=0.0, near=0.4).bind(P, U, GRAPH, None).matrix(EVERYONE), daps, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Similarity(similar=0.7, near=0.7), "`similar` and `near` must be at most 1 together; got 0.7 and 0.7"),
        (
            lambda: similar_nodes([1.0, 2.0]),
            r"`features` must be a table of numbers, one row per node; got shape \(2,\)",
        ),
        (lambda: similar_nodes([[np.nan]]), "`features` must be finite"),
        (lambda: Similarity(neighbours=-1), "`neighbours` must be at least 0"),
        (
            lambda: make_method("snaps").calibrate(GRAPH, P, Y, EVERYONE[::2], features=X[:5]),
            "`features` must have one row per node, 240; got 5",
        ),
        (lambda: Similarity().bind(P, U, None, None), "`graph` must be given to a score that looks at neighbours"),
        (lambda: similar_nodes(None), "`features` must be"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        make()
