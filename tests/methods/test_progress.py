"""Long work shows movement, whatever the method; and results are put together in the order of the methods."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import napsets as ns
from napsets.kernels.threads import stages
from napsets.localisers import LocalThresholds, base
from napsets.methods import find_thresholds
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE = 4000
EDGES = RNG.integers(SIZE, size=(2, 2 * SIZE))
GRAPH = ns.Graph.from_edge_index(EDGES, SIZE, lengths=RNG.uniform(0.5, 2, EDGES.shape[1]))
P, Y = RNG.dirichlet(np.ones(3), SIZE), RNG.integers(3, size=SIZE)
CALIBRATION, NODES = np.arange(0, SIZE, 2), np.arange(1, SIZE, 2)
LOCALISERS = {
    "hops": ns.Hops(2), "path lengths": ns.PathLengths(2.0), "everyone": ns.Everyone(),
    "shift": ns.CovariateShift(1.0 / np.maximum(GRAPH.degrees, 1)),
}  # fmt: skip
METHODS = {name: ns.Method(localiser=localiser) for name, localiser in LOCALISERS.items()} | {
    "by class": ns.Method(localiser=ns.Hops(1), groups="class"),
    "by class, exact": ns.Method(localiser=ns.Hops(2), level=ns.Exact(), groups="class"),
    "by degree": ns.Method(localiser=ns.PathLengths(2.0), groups="degree"),
    "by degree, some alone": ns.Method(groups=np.minimum(np.arange(SIZE), 40)),
}


class Reports(list):
    def __call__(self, done, total):
        self.append((done, total))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(base, "_PIECE", 500)


def ascend_to_the_end(reports, total):
    done = [done for done, _ in reports]
    return done == sorted(set(done)) and done[-1] == total and {of for _, of in reports} == {total}


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_tells_how_far_it_is_and_gives_the_same_bits(name, threads):
    reports = Reports()
    calibrated = METHODS[name].calibrate(GRAPH, P, Y, CALIBRATION)
    prediction = calibrated.predict(NODES, [0.1, 0.3], threads=threads, progress=reports)
    assert ascend_to_the_end(reports, NODES.size)
    if threads == 1:  # several threads may be done before the first report
        assert len(reports) >= 3
    untold = METHODS[name].calibrate(GRAPH, P, Y, CALIBRATION).predict(NODES, [0.1, 0.3], threads=threads)
    for one, other in zip(prediction, untold, strict=True):
        assert same_bits(one.thresholds, other.thresholds)
        assert np.array_equal(one.member, other.member)


@pytest.mark.parametrize("name", LOCALISERS)
def test_ranks_tell_how_far_they_are(name):
    reports = Reports()
    local = LOCALISERS[name].fit(ns.Method().calibrate(GRAPH, P, Y, CALIBRATION).scored.reference)
    local.ranks(NODES, np.full(NODES.size, 0.5), threads=1, progress=reports)
    assert ascend_to_the_end(reports, NODES.size)
    assert len(reports) >= 3


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
def test_methods_side_by_side_are_one_work():
    reports = Reports()
    calibrated = [method.calibrate(GRAPH, P, Y, CALIBRATION) for method in METHODS.values()]
    find_thresholds(calibrated, NODES, [0.1], progress=reports)
    assert ascend_to_the_end(reports, NODES.size)


def test_no_nodes_are_no_work():
    reports = Reports()
    for method in METHODS.values():
        method.calibrate(GRAPH, P, Y, CALIBRATION).predict([], progress=reports)
    assert reports == []


def test_thresholds_stand_in_the_order_of_the_methods():
    names = ["everyone", "hops", "path lengths", "shift"]
    calibrated = [METHODS[name].calibrate(GRAPH, P, Y, CALIBRATION) for name in names]
    together = find_thresholds(calibrated, NODES, [0.1])
    for each, thresholds in zip(calibrated, together, strict=True):
        assert same_bits(thresholds.values, find_thresholds([each], NODES, [0.1])[0].values)


@dataclass(frozen=True)
class Own:
    """A localiser of a user's own, which gives whatever it was told to give."""

    gives: object = None

    def fit(self, reference):
        return SimpleNamespace(reference=reference, thresholds=lambda *_, **__: self.gives)


@pytest.mark.parametrize(
    "gives",
    [None, 7, np.zeros((1, NODES.size)), LocalThresholds(np.zeros((1, 3)), np.zeros(3, dtype=np.int64), np.zeros(3))],
    ids=["None", "a number", "an array", "too few"],
)
def test_a_localiser_that_gives_no_thresholds_is_refused_and_never_left_out(gives):
    calibrated = [ns.Method(localiser=each).calibrate(GRAPH, P, Y, CALIBRATION) for each in (Own(gives), ns.Hops(1))]
    with pytest.raises(ns.InvalidInputError, match=r"`localiser` must give LocalThresholds .*; Own gave"):
        find_thresholds(calibrated, NODES, [0.1])


def test_stages_count_as_one_work_and_never_go_back():
    reports = Reports()
    first, nothing, last = stages(reports, [10, 0, 30], 100)
    first(5, 10), first(10, 10), first(3, 10), nothing(0, 0), nothing(1, 1), last(15, 30), last(30, 30), last(30, 30)
    assert reports == [(12, 100), (25, 100), (62, 100), (100, 100)]
    assert stages(None, [1, 2], 3) == [None, None]
    silent = stages(reports, [0], 0)[0]
    silent(1, 1)
    assert len(reports) == 4
