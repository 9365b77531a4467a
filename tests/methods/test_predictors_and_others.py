"""Methods and what others wrote: scores and localisers of one's own, names, graphs of other libraries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import napsets as ns
from napsets.levels import Exact
from napsets.localisers import Hops
from napsets.methods import Method, make_method

from .conftest import CALIBRATION, GRAPH, NODES, SIZE, P, Y, naps


class Own:
    """A score that gives what a function makes of the right scores."""

    def __init__(self, at=lambda x: x, matrix=lambda x: x):
        self.made = at, matrix

    def at(self, p, labels, u):
        return self.made[0](ns.THR().at(p, labels))

    def matrix(self, p, u):
        return self.made[1](ns.THR().matrix(p))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:, None], r"`score` must give a number .*; Own.at gave shape \(\d+, 1\)"),
        (lambda x: x[1:], r"`score` must give a number .*; Own.at gave shape \("),
        (lambda x: np.where(np.arange(x.size) == 3, np.nan, x), "`score` must give a number .*; Own.at gave NaN"),
        (lambda x: ["a"] * x.size, "`score` must give a number .*; Own.at gave <U1"),
        (lambda x: None, "`score` must give a number .*; Own.at gave object"),
    ],
)
def test_scores_of_ones_own_are_checked_at_the_labels(change, message):
    for settings in ({}, {"exact": True}):
        with pytest.raises(ns.InvalidInputError, match=message):
            naps(score=Own(at=change), **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:, 1:], r"`score` must give a number .*; Own.matrix gave shape \("),
        (lambda x: np.full(x.shape, np.nan), "`score` must give a number .*; Own.matrix gave NaN"),
        (lambda x: x.astype(str), "`score` must give a number .*; Own.matrix gave <U"),
    ],
)
def test_scores_of_ones_own_are_checked_at_every_label(change, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        naps(score=Own(matrix=change)).predict(NODES)


def test_scores_of_ones_own_may_be_lists():
    own = Own(at=lambda x: x.tolist(), matrix=lambda x: x.tolist())
    assert np.array_equal(naps(score=own).predict(NODES).member, naps(score="thr").predict(NODES).member)


class OwnLocaliser:
    """Split conformal prediction whose ranks are what a function makes of the right ones."""

    def __init__(self, change):
        self.change = change

    def fit(self, reference):
        local = ns.Everyone().fit(reference)

        def ranks(nodes, scores, **options):
            return self.change(local.ranks(nodes, scores, **options))

        return SimpleNamespace(thresholds=local.thresholds, ranks=ranks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: np.full(x.size, np.nan), "`ranks` must not be NaN"),
        (lambda x: x[1:], "`ranks` must have one entry per held-out node"),
        (lambda x: None, "`ranks` must be an array of numbers"),
    ],
)
@pytest.mark.parametrize("groups", [None, "class"])
def test_ranks_of_a_localiser_of_ones_own_are_checked(change, message, groups):
    with pytest.raises(ns.InvalidInputError, match=message):
        Method("aps", OwnLocaliser(change), Exact(), groups=groups).calibrate(GRAPH, P, Y, CALIBRATION)


def test_ranks_of_a_localiser_of_ones_own_may_be_lists():
    own, everyone = (
        Method("aps", localiser, Exact()).calibrate(GRAPH, P, Y, CALIBRATION).predict(NODES)
        for localiser in (OwnLocaliser(lambda x: x.tolist()), ns.Everyone())
    )
    assert np.array_equal(own.member, everyone.member)


def test_classes_in_place_of_what_they_make_are_refused():
    for arguments, message in [
        (("aps", Hops), r"`localiser` must be a Localiser; got the class Hops \(write Hops\(\) with brackets\)"),
        (("aps", Hops(), Exact), r"`level` must be a Level; got the class Exact \(write Exact\(\) with brackets\)"),
        (("aps", "hops"), "`localiser` must be a Localiser; got str"),
    ]:
        with pytest.raises(ns.InvalidInputError, match=message):
            Method(*arguments)


def test_a_calibrated_method_is_shown_in_one_line():
    assert repr(naps()).endswith("300 labels, level 1 − alpha)")
    shown = repr(naps(exact=True))
    assert shown.startswith("Calibrated(Method(score=APS(")
    assert shown.endswith("300 labels, level set on 150 of them)")
    assert "array" not in shown


def test_methods_do_not_wrap_a_score_twice_and_name_settings_that_they_do_not_have():
    assert make_method("informed", score="informed").score == ns.Informed()
    assert make_method("informed", score=ns.ByLabel(ns.Informed("thr"))).score == ns.ByLabel(ns.Informed("thr"))
    assert make_method("informed", score="thr").score == ns.Informed("thr")
    assert make_method("daps", score=ns.Diffused("thr", 0.2)).score == ns.Diffused("thr", 0.2)
    assert make_method("daps", score="informed").score == ns.Diffused("informed")
    with pytest.raises(
        ns.InvalidInputError, match=r"`settings` must be one of .*hops.*; got 'hop' \(did you mean 'hops'"
    ):
        make_method("naps", hop=3)


NAMES = np.array([f"user-{i}" for i in range(SIZE)])


@pytest.mark.parametrize("kind", ["NAPS", "SplitConformal", "Auto"])
def test_names_of_nodes_and_classes_travel_to_the_sets_also_through_a_file(tmp_path, kind):
    inputs = (P, Y) if kind == "SplitConformal" else (GRAPH, P, Y)
    predictor = getattr(ns, kind)().calibrate(*inputs, calibration=CALIBRATION, ids=NAMES, class_names=list("abcde"))
    predictor.save(tmp_path / "predictor.npz")
    for which in (predictor, ns.load(tmp_path / "predictor.npz")):
        sets = which.predict(["user-301", "user-399"])
        assert sets.nodes.tolist() == [301, 399]
        assert sets.ids.tolist() == ["user-301", "user-399"]
        assert set(sets["user-399"]) <= set("abcde")
        assert np.array_equal(sets.member, which.predict([301, 399]).member)


def test_class_names_must_be_as_many_as_classes():
    with pytest.raises(ns.InvalidInputError, match="`class_names` must have one name per class, 5; got 2"):
        ns.NAPS().calibrate(GRAPH, P, Y, calibration=CALIBRATION, class_names=["a", "b"])


def test_a_graph_of_another_size_than_the_probabilities_is_refused():
    import networkx as nx

    with pytest.raises(ns.InvalidInputError, match="`probabilities` must have one row per node of the graph, 7"):
        ns.NAPS().calibrate(nx.path_graph(7), P, Y, calibration=CALIBRATION)


def test_probabilities_are_looked_through_once_whoever_made_the_graph(monkeypatch):
    from napsets.methods import CalibrationData
    from napsets.predictions import sets

    looked = []
    check = sets.check_probabilities
    monkeypatch.setattr(sets, "check_probabilities", lambda *args, **kw: looked.append(1) or check(*args, **kw))
    for graph in (GRAPH, GRAPH.to_scipy(), np.stack(GRAPH.to_scipy().nonzero()), None):
        looked.clear()
        CalibrationData.check(graph, P, Y, CALIBRATION)
        assert len(looked) == 1
