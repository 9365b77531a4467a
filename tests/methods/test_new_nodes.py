"""Nodes that come after calibration get what a calibration with them in the graph would give."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from napsets.methods.table import METHODS
from worlds import block_model

OLD, NEW = 80, 15
RNG = np.random.default_rng(5)
P = RNG.dirichlet(np.ones(3), OLD + NEW)
Y = np.array([RNG.choice(3, p=row) for row in P])
EDGES = RNG.integers(0, OLD, (2, 160))
MORE = np.stack([RNG.integers(0, OLD + NEW, 40), RNG.integers(OLD, OLD + NEW, 40)])
KNOWN = np.arange(60)
_, WIDE_P, WIDE_Y = block_model(0.6, seed=2)
X = np.eye(3)[WIDE_Y] + 0.7 * np.random.default_rng(3).normal(size=(600, 3))
#: Needs features, lengths, or chooses; or averages scores over the graph and keeps no outputs.
OTHERS = {"snaps", "naps-lengths", "auto", "auto-small"}


def both(method, **arguments):
    """The sets of new nodes from a calibration without them, and from one with them."""
    old = ns.Graph.from_edge_index(EDGES, OLD)
    new = ns.Graph.from_edge_index(np.concatenate([EDGES, MORE], axis=1), OLD + NEW)
    before = method.calibrate(old, P[:OLD], Y[:OLD], KNOWN)
    after = method.calibrate(new, P, Y, KNOWN)
    nodes = np.arange(OLD, OLD + NEW)
    return before.predict_new(P[OLD:], MORE, alpha=0.2, **arguments), after.predict(nodes, alpha=0.2)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in OTHERS])
def test_new_nodes_get_the_sets_of_a_calibration_with_them(name):
    first, second = both(ns.make_method(name))
    assert np.array_equal(first.member, second.member)
    assert np.array_equal(first.thresholds, second.thresholds)
    assert np.array_equal(first.support, second.support)
    assert first.nodes.tolist() == second.nodes.tolist()


def test_new_rows_of_split_need_no_graph():
    split = ns.SplitConformal().calibrate(P[:OLD], Y[:OLD], KNOWN)
    with_them = ns.SplitConformal().calibrate(P, Y, KNOWN).predict(np.arange(OLD, OLD + NEW), alpha=[0.1, 0.2])
    for one, other in zip(split.predict(probabilities=P[OLD:], alpha=[0.1, 0.2]), with_them, strict=True):
        assert np.array_equal(one.member, other.member)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", [ns.make_method("informed"), ns.Auto(alpha=0.2)], ids=["informed", "auto"])
def test_new_nodes_with_features_get_the_sets_of_a_calibration_with_them(method, form):
    known = np.arange(0, 600, 2)
    before = method.calibrate(None, WIDE_P[:500], WIDE_Y[:500], known[:240], features=form(X[:500]))
    grown = before.predict_new(WIDE_P[500:], features=form(X[500:]))
    after = before.method.calibrate(None, WIDE_P, WIDE_Y, known[:240], features=form(X)).predict(np.arange(500, 600))
    assert np.array_equal(grown.thresholds, after.thresholds)
    assert np.array_equal(grown.member, after.member)


def test_new_nodes_need_features_where_the_others_have_them_and_only_there():
    with_features = ns.make_method("informed").calibrate(P[:OLD], Y[:OLD], KNOWN, features=P[:OLD])
    for ask in (with_features.predict_new, lambda rows: with_features.predict(probabilities=rows)):
        with pytest.raises(ns.InvalidInputError, match=r"`features` must be given for the new nodes, as calibrate"):
            ask(P[OLD:])
    with pytest.raises(ns.InvalidInputError, match="as many columns as at calibration, 3; got 2"):
        with_features.predict_new(P[OLD:], features=P[OLD:, :2])
    with pytest.raises(ns.InvalidInputError, match="`features` must have one row per node, 15; got 1"):
        with_features.predict_new(P[OLD:], features=P[:1])
    split = ns.SplitConformal().calibrate(P[:OLD], Y[:OLD], KNOWN)
    with pytest.raises(ns.InvalidInputError, match="`features` must be None for a method that was calibrated without"):
        split.predict_new(P[OLD:], features=P[OLD:])


def test_new_rows_may_have_names():
    ids = [f"n{i}" for i in range(OLD + NEW)]
    split = ns.SplitConformal().calibrate(P[:OLD], Y[:OLD], KNOWN, ids=ids[:OLD])
    sets = split.predict(probabilities=P[OLD:], ids=ids[OLD:])
    batch = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=ids).predict(ids[OLD:])
    assert np.array_equal(sets.member, batch.member)
    assert sets.ids.tolist() == ids[OLD:]
    with pytest.raises(ns.InvalidInputError, match="`ids` must name the new nodes"):
        split.predict(probabilities=P[OLD:])


def test_intervals_of_new_nodes():
    rng = np.random.default_rng(1)
    outputs, targets = rng.normal(size=OLD + NEW), rng.normal(size=OLD + NEW)
    method = ns.Method("absolute", ns.Hops(2, pool=5.0))
    old = ns.Graph.from_edge_index(EDGES, OLD)
    new = ns.Graph.from_edge_index(np.concatenate([EDGES, MORE], axis=1), OLD + NEW)
    first = method.calibrate(old, outputs[:OLD], targets[:OLD], KNOWN).predict_new(outputs[OLD:], MORE)
    second = method.calibrate(new, outputs, targets, KNOWN).predict(np.arange(OLD, OLD + NEW))
    assert np.array_equal(first.thresholds, second.thresholds)
    assert np.array_equal(first.lower, second.lower)


def test_edges_between_old_nodes_are_refused():
    split = ns.NAPS().calibrate(ns.Graph.from_edge_index(EDGES, OLD), P[:OLD], Y[:OLD], KNOWN)
    with pytest.raises(ns.InvalidInputError, match="must each have a new node at one end; 3 to 5"):
        split.predict_new(P[OLD:], [[OLD, 3], [2, 5]])
    with pytest.raises(ns.InvalidInputError, match="must hold nodes from 0 to 94"):
        split.predict_new(P[OLD:], [[OLD + NEW], [2]])


def test_nodes_or_rows_but_not_both():
    split = ns.SplitConformal().calibrate(P[:OLD], Y[:OLD], KNOWN)
    with pytest.raises(ns.InvalidInputError, match="not both"):
        split.predict([70], probabilities=P[OLD:])
