"""The tree of errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import napsets as ns


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (ns.InvalidInputError, (ns.NapsetsError, ValueError)),
        (ns.FileFormatError, (ns.InvalidInputError, ns.NapsetsError, ValueError)),
        (ns.NotCalibratedError, (ns.NapsetsError, RuntimeError)),
        (ns.MissingDependencyError, (ns.NapsetsError, ImportError)),
        (ns.NapsetsWarning, (UserWarning,)),
    ],
)
def test_each_error_is_also_what_python_would_raise(error, parents):
    assert all(issubclass(error, parent) for parent in parents)


def test_a_missing_dependency_names_package_and_extra_even_from_another_process():
    error = pickle.loads(pickle.dumps(ns.MissingDependencyError("torch", "gnn")))
    assert str(error) == "this needs the package 'torch'; install it with: pip install 'napsets[gnn]'"
    assert (error.package, error.extra) == ("torch", "gnn")


@pytest.mark.parametrize(
    ("wrong", "topic"),
    [
        (lambda: ns.SplitConformal().calibrate([[2.0, 1.0]], [0], [0]), "probabilities"),
        (lambda: ns.SplitConformal().calibrate([[0.5, 0.5]], [7], [0]), "labels"),
        (lambda: ns.SplitConformal().calibrate([[0.5, 0.5]], [0], []), "calibration"),
        (lambda: ns.SplitConformal().calibrate([[0.5, 0.5]], [0], [0]).predict([3]), "nodes"),
        (lambda: ns.Graph.from_edge_index([[0, 1, 2]], num_nodes=3), "graph"),
        (lambda: ns.weighted_quantile([1.0], [1.0], alpha=10), "alpha"),
        (lambda: ns.SplitConformal(by="group").calibrate([[0.5, 0.5]], [0], [0]), "groups"),
        (lambda: ns.SplitConformal("cqr").calibrate([[0.5, np.nan]], [0.1], [0]), "numbers"),
        (lambda: ns.make_method("napz"), "settings"),
        (lambda: ns.NodePredictions.load("there is no such file.npz"), "files"),
        (lambda: ns.NAPS().predict([0]), "not-calibrated"),
    ],
)
def test_an_error_knows_the_topic_of_the_guide_that_is_about_it(wrong, topic):
    with pytest.raises(ns.NapsetsError) as caught:
        wrong()
    assert caught.value.topic == topic


def test_errors_without_an_argument_have_a_topic_too():
    assert ns.NapsetsError("anything").topic == "settings"
    assert ns.InvalidInputError("at least two labelled nodes are needed").topic == "settings"
    assert ns.MissingDependencyError("torch", "gnn").topic == "missing-extra"


@pytest.mark.parametrize(
    ("careless", "topic"),
    [
        (lambda p, y: ns.SplitConformal().calibrate(p, y, range(40)).predict([0, 50]), "calibration-nodes"),
        (lambda p, y: ns.SplitConformal(by="class").calibrate(p, y, range(12)).predict([50]), "small-groups"),
        (lambda p, y: ns.SplitConformal().calibrate(p, y, range(40)).predict([0, 1] * 50), "mask-or-ids"),
        (lambda p, y: ns.sscv(ns.SplitConformal().calibrate(p, y, [0, 1]).predict([5]), y, [(9, 9)]), "other-warnings"),
    ],
)
def test_a_warning_knows_its_topic_too(careless, topic):
    with pytest.warns(ns.NapsetsWarning) as caught:
        careless(np.tile([0.6, 0.4], (100, 1)), np.arange(100) % 2)
    assert topic in [one.message.topic for one in caught]
