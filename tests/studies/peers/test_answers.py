"""The plain forms answer as the package did while the methods were part of it."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.methods import make_method
from studies.peers.cf_gnn import CFGNN
from studies.peers.pagerank import PageRank
from studies.peers.rlcp import Balls

LOCAL = ("rlcp", "pagerank", "edge-ex")


@pytest.mark.parametrize("name", ["rlcp", "pagerank", "pagerank-exact", "node-ex", "edge-ex"])
def test_methods_of_the_table_answer_as_before(answers, name):
    answers.check(name, make_method(name, seed=3))


@pytest.mark.parametrize("name", LOCAL)
def test_settings_do_what_they_did(answers, name):
    answers.check(f"{name} exact", make_method(name, level="exact", score="thr"))
    answers.check(f"{name} by degree", make_method(name, by="degree"))
    answers.check(f"{name} intervals", make_method(name, score="cqr"), intervals=True)


@pytest.mark.parametrize("name", ["pagerank", "edge-ex"])
def test_directed_graphs_are_walked_as_before(answers, name):
    answers.check(f"{name} directed", make_method(name), directed=True)


def test_other_settings_of_the_localisers_answer_as_before(answers):
    answers.check("rlcp small balls", ns.Method("aps", Balls(20, 2)))
    answers.check("pagerank near", ns.Method("aps", PageRank(0.5, 15.0, 0.0, 1e-3)))


@pytest.mark.gnn
@pytest.mark.parametrize("directed", [False, True])
def test_the_trained_correction_is_as_before(answers, directed):
    # Messages are summed in another order, and 40 epochs enlarge the last digits.
    pytest.importorskip("torch_geometric")
    quick = {"epochs": 40, "rate": 0.05, "hidden": 16}
    for name, score in {
        "cf-gnn": CFGNN(**quick),
        "cf-gnn alone": CFGNN(ns.THR(), 0.2, residual=False, seed=5, **quick),
    }.items():
        calibrated = answers.calibrate(ns.Method(score, level=ns.Exact()), directed)
        kept = answers.arrays[f"{name}/{'directed' if directed else 'undirected'}"]
        np.testing.assert_allclose(calibrated.score.probabilities, kept, rtol=1e-9, atol=1e-12)
