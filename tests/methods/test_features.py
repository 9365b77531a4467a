"""Features in calibrations: with a graph and without, in files, ignored in a sentence, and at exact coverage."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Exact, hits_law
from napsets.localisers import Everyone
from napsets.methods import Method, make_method
from napsets.scores import APS, Diffused, Informed, Sharpened
from oracles import tails
from worlds import block_model

GRAPH, P, Y = block_model(0.6, seed=2)
X = np.eye(3)[Y] + 0.7 * np.random.default_rng(3).normal(size=(600, 3))
KNOWN, NEW = np.arange(0, 600, 2), np.arange(1, 600, 2)


def size(calibrated):
    return ns.mean_size(calibrated.predict(NEW))


def test_similar_nodes_make_sets_smaller_with_a_graph_and_without():
    auto = ns.Auto(seed=1)
    both = size(auto.calibrate(GRAPH, P, Y, KNOWN, features=X))
    assert both < size(auto.calibrate(GRAPH, P, Y, KNOWN))
    alone = auto.calibrate(None, P, Y, KNOWN, features=X)
    assert size(alone) < 0.9 * size(ns.SplitConformal().calibrate(P, Y, KNOWN))
    assert np.array_equal(auto.calibrate(P, Y, KNOWN, features=X).probabilities, alone.probabilities)
    assert alone.choice.name.startswith("labels of similar nodes as evidence")
    pieces = {piece.kind: piece for piece in alone.choice.evidence}
    assert list(pieces) == ["model", "alike", "similar_5", "similar_25", "linear"]
    assert pieces["similar_5"].odds > 1.2
    assert pieces["linear"].odds is None
    assert sum(pieces[kind].gain for kind in ("similar_5", "similar_25", "linear")) > 0.02
    assert "labels of the 5 most similar nodes" in alone.choice.table()
    assert "the strongest evidence: a linear model of the features (151 labels)" in alone.choice.reason


def test_a_comparison_passes_features_to_the_methods_that_compare_nodes():
    methods = ["split", "snaps", "informed", "auto"]
    without = ns.compare(GRAPH, P, Y, KNOWN, NEW, methods=methods)
    compared = ns.compare(GRAPH, P, Y, KNOWN, NEW, methods=methods, features=X)
    for result, plain in zip(compared, without, strict=True):
        assert (result.mean_size == plain.mean_size) == (result.name == "split")
    auto = ns.make_method("auto").calibrate(GRAPH, P, Y, KNOWN, features=X)
    assert size(auto) == compared["auto"].mean_size


def test_rows_and_names_are_permuted_together_and_nothing_else_changes():
    method, order = Method(Informed(), Everyone(), Exact()), np.random.default_rng(0).permutation(600)
    ids = np.array([f"node {i}" for i in range(600)])
    tied = np.round(X)  # with many equal similarities
    one = method.calibrate(None, P, Y, ids[KNOWN], features=tied, ids=ids)
    other = method.calibrate(None, P[order], Y[order], ids[KNOWN], features=tied[order], ids=ids[order])
    np.testing.assert_allclose(other.probabilities, one.probabilities[order], atol=1e-7)
    first, second = one.predict(ids[NEW]), other.predict(ids[NEW])
    assert np.array_equal(first.member, second.member)


def test_a_frame_of_features_is_aligned_by_its_index():
    pandas = pytest.importorskip("pandas")
    names = [f"n{i}" for i in range(600)]
    frames = [pandas.DataFrame(table, index=names) for table in (P, X)]
    series = pandas.Series(Y, index=names)
    method = make_method("informed")
    known = [names[i] for i in KNOWN]
    one = method.calibrate(None, frames[0], series, known, features=frames[1])
    other = method.calibrate(None, frames[0], series, known, features=frames[1].iloc[::-1])
    assert np.array_equal(one.probabilities, other.probabilities)
    with pytest.raises(ns.InvalidInputError, match="features"):
        method.calibrate(None, frames[0], series, known, features=frames[1].rename(index={"n3": "other"}))


def test_methods_that_compare_no_nodes_say_so_and_bad_features_are_named():
    with pytest.warns(ns.NapsetsWarning, match="`features` are ignored: no method that is calibrated here compares"):
        ns.NAPS().calibrate(GRAPH, P, Y, KNOWN, features=X)
    with pytest.raises(ns.InvalidInputError, match="`graph` or `features` must be given"):
        make_method("informed").calibrate(None, P, Y, KNOWN)
    with pytest.raises(ns.InvalidInputError, match="`features` must have one row per node, 600; got 5"):
        ns.Auto().calibrate(GRAPH, P, Y, KNOWN, features=X[:5])
    broken = X.copy()
    broken[17, 1] = np.nan
    with pytest.raises(ns.InvalidInputError, match="the row of node 17 has a NaN or infinite entry"):
        ns.Auto().calibrate(GRAPH, P, Y, KNOWN, features=broken)


def test_a_score_around_an_informed_one_passes_the_features_on():
    method = Method(Diffused(Informed()), Everyone(), Exact())
    with_features, without = (method.calibrate(GRAPH, P, Y, KNOWN, features=table) for table in (X, None))
    assert not np.array_equal(with_features.probabilities, without.probabilities)


@pytest.mark.parametrize("kind", ["informative", "noise", "tied", "constant"])
def test_coverage_obeys_its_law_whatever_the_features(kind):
    rng = np.random.default_rng(7)
    tables = {"informative": X, "noise": rng.normal(size=X.shape), "tied": np.round(X), "constant": np.ones((600, 2))}
    method, draws, labels = Method(Informed(Sharpened(APS(), 2.0)), Everyone(), Exact()), 60, 80
    covered = []
    for _ in range(draws):
        order = rng.permutation(600)
        calibrated = method.calibrate(None, P, Y, order[:labels], features=tables[kind])
        assert calibrated.scored.level_nodes.size == labels // 2
        sets = calibrated.predict(order[labels:], alpha=0.2)
        covered.append(int(sets.contains(Y).sum()))
    assert 2 * min(tails(np.array(covered), hits_law(labels // 2, 0.2, 600 - labels))) > 0.001
