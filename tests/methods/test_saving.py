"""A calibrated predictor as a file: whole or not at all, the same sets afterwards, and no trust in strangers."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import scipy.sparse

import napsets as ns
from live_model import present
from napsets.files import archives
from napsets.localisers import LOCALISERS
from napsets.methods import Calibrated, load
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE = 60
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 200)), SIZE)
P = RNG.dirichlet(np.ones(4), SIZE)
Y = RNG.integers(4, size=SIZE)
NODES = np.arange(40, 60)


def naps(**settings):
    return ns.NAPS(**settings).calibrate(GRAPH, P, Y, calibration=np.arange(40))


def split(**settings):
    return ns.SplitConformal(**settings).calibrate(P, Y, calibration=np.arange(40))


@pytest.mark.parametrize(
    "predictor",
    [
        naps(hops=2, decay="hyperbolic", seed=3),
        naps(hops=3, decay=lambda k: 1 / k**2, fallback="global", allow_empty=False),
        naps(hops=2, decay=np.array([1.0, 0.3]), score=ns.RAPS(0.2, 1)),
        naps(hops=np.int64(2), seed=np.int32(4), score=ns.SAPS(weight=np.float32(0.25))),
        naps(score=ns.THR()),
        split(seed=5, score=ns.APS(randomized=False), allow_empty=False),
        split(score=ns.SAPS()),
    ],
    ids=["named", "function", "array", "numpy", "thr", "split", "split-saps"],
)
def test_what_is_read_predicts_what_was_written(tmp_path, predictor):
    path = tmp_path / "predictor.npz"
    predictor.save(path)
    again = ns.load(path)
    assert again.method == replace(predictor.method, localiser=again.method.localiser)
    for alpha in (0.05, 0.3):
        one, other = predictor.predict(NODES, alpha), again.predict(NODES, alpha)
        assert np.array_equal(one.member, other.member)
        assert same_bits(one.thresholds, other.thresholds)
        assert np.array_equal(one.support, other.support)
    assert os.listdir(tmp_path) == ["predictor.npz"]


@pytest.mark.parametrize("directed", [False, True])
def test_a_function_is_kept_as_its_weights(tmp_path, directed):
    path = ns.Graph.from_edge_index([np.arange(99), np.arange(1, 100)], 100, directed=directed)
    p, y = RNG.dirichlet(np.ones(4), 100), RNG.integers(4, size=100)
    predictor = ns.NAPS(hops=60, decay=lambda k: 1 / k).calibrate(path, p, y, calibration=np.arange(50, 100))
    predictor.save(tmp_path / "a.npz")
    again = ns.load(tmp_path / "a.npz")
    assert again.method.localiser.decay == tuple(1 / k for k in range(1, 61))
    assert same_bits(again.predict([0, 20], 0.5).thresholds, predictor.predict([0, 20], 0.5).thresholds)


def test_direction_ids_and_float32_survive(tmp_path):
    graph = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 400)), SIZE, directed=True)
    ids = np.array([f"n{i}" for i in range(SIZE)])
    predictor = ns.NAPS().calibrate(graph, P.astype(np.float32), Y, calibration=np.arange(40), ids=ids)
    predictor.save(tmp_path / "a")
    again = ns.load(str(tmp_path / "a"))
    assert again.graph == graph
    assert again.graph.directed
    assert again.score.probabilities.dtype == np.float32
    assert np.array_equal(again.predict(NODES, 0.3).member, predictor.predict(NODES, 0.3).member)


def test_names_of_both_kinds_and_keys_survive(tmp_path):
    """Integers and texts draw different numbers; keys only draw them, and are no names."""
    ids = np.array([str(i) if i % 2 else i for i in range(SIZE)], dtype=object)
    named = ns.NAPS(exact=True).calibrate(GRAPH, P, Y, calibration=np.arange(SIZE) < 40, ids=ids)
    keyed = ns.make_method("naps-exact").calibrate_rows(GRAPH, P, Y, np.arange(40), np.arange(SIZE) * 7)
    for calibrated in (named, keyed):
        calibrated.save(tmp_path / "a.npz")
        again = ns.load(tmp_path / "a.npz")
        one, other = (each.predict(positions=NODES, alpha=0.3) for each in (calibrated, again))
        assert same_bits(one.thresholds, other.thresholds)
        assert same_bits(again.scored.u, calibrated.scored.u)
        assert one.row_names.tolist() == other.row_names.tolist()


def test_new_nodes_can_be_predicted_and_saved_with_a_method_from_a_file(tmp_path):
    """A second file holds the split of the first, which the names of the labelled nodes alone would not give."""
    naps(score=ns.Informed(), exact=True).save(tmp_path / "a.npz")
    again, first = ns.load(tmp_path / "a.npz"), naps(score=ns.Informed(), exact=True)
    one, other = (each.predict_new(P[:3], [[60, 61], [0, 7]], 0.3) for each in (first, again))
    assert one.same_as(other)
    again.save(tmp_path / "b.npz")
    assert (tmp_path / "b.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()


@pytest.mark.parametrize(
    "features", [RNG.random((SIZE, 3)), scipy.sparse.csr_array(scipy.sparse.random(SIZE, 3, 0.5, random_state=1))]
)
def test_features_that_nodes_are_compared_by_are_kept(tmp_path, features):
    calibrated = ns.make_method("snaps").calibrate(GRAPH, P, Y, np.arange(40), features=features)
    calibrated.save(tmp_path / "a.npz")
    assert ns.load(tmp_path / "a.npz").predict(NODES, 0.3).same_as(calibrated.predict(NODES, 0.3))


def test_a_calibration_of_a_living_graph_is_not_a_file(tmp_path):
    rng = np.random.default_rng(4)
    live = ns.Live.start(GRAPH, P, Y, method="informed")
    live.label(np.arange(40), rng.integers(4, size=40)) if not live.status()["labels"] else None
    calibrated = present(live)[1]
    with pytest.raises(ns.InvalidInputError, match=r"save the graph itself: live\.save"):
        calibrated.save(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["informed", "auto", "auto-small", "naps-exact", "by-class", "snaps"])
@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
def test_a_calibrated_method_can_be_pickled_after_it_was_used(name):
    calibrated = ns.make_method(name).calibrate(GRAPH, P, Y, np.arange(40))
    sets = calibrated.predict(NODES, 0.3, p_values=True)
    calibrated.verdict()
    ns.inspect_node(calibrated, 50)
    again = pickle.loads(pickle.dumps(calibrated))
    assert again.predict(NODES, 0.3).same_as(sets)
    assert same_bits(again.p_values(NODES), sets.p_values)


def test_the_file_holds_no_pickle(tmp_path):
    naps().save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["header"]))["format"] == "napsets-calibrated"
        assert all(archive[name].dtype != object for name in archive.files)


def test_a_score_of_ones_own_cannot_be_saved_and_leaves_no_file(tmp_path):
    class Mine(ns.APS):
        pass

    with pytest.raises(ns.InvalidInputError, match=r"`score` must be one of aps, .* to be saved; got Mine"):
        naps(score=Mine()).save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


@dataclass(frozen=True)
class Mixed:
    """A localiser of a user's own: neighbours within some hops, weighed by hand."""

    weights: tuple[float, ...] = (1.0, 0.5)
    near: ns.Hops = field(default_factory=ns.Hops)

    def fit(self, reference):
        return replace(self.near, hops=len(self.weights), decay=self.weights).fit(reference)


@pytest.mark.parametrize("level", [ns.Nominal(), ns.Exact()])
@pytest.mark.parametrize("score", ["aps", "cqr"])
def test_a_localiser_of_ones_own_survives_once_it_has_a_name(tmp_path, monkeypatch, score, level):
    monkeypatch.setitem(LOCALISERS, "mixed", Mixed)
    method = ns.Method(score, Mixed((1.0, 0.5, np.float64(0.2)), ns.Hops(1, pool=5.0)), level)
    outputs, truth = (P, Y) if score == "aps" else (np.sort(P[:, :2], axis=1), P[:, 2])
    calibrated = method.calibrate(GRAPH, outputs, truth, np.arange(40))
    calibrated.save(tmp_path / "a.npz")
    again = ns.load(tmp_path / "a.npz")
    assert again.method == method
    assert same_bits(again.predict(NODES, 0.3).thresholds, calibrated.predict(NODES, 0.3).thresholds)
    monkeypatch.delitem(LOCALISERS, "mixed")
    with pytest.raises(ns.FileFormatError, match=r"got 'mixed'. If it is of your own, import what enters it in LOCAL"):
        ns.load(tmp_path / "a.npz")


def test_a_localiser_without_a_name_is_refused_with_what_to_do(tmp_path):
    calibrated = ns.Method("aps", Mixed()).calibrate(GRAPH, P, Y, np.arange(40))
    with pytest.raises(ns.InvalidInputError, match=r"got Mixed\. .* frozen dataclass .*: @LOCALISERS\.add\("):
        calibrated.save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("weights", [np.array([1.0, 0.5]), (lambda k: 1.0,)], ids=["array", "function"])
def test_a_setting_that_is_no_json_is_refused_by_name(tmp_path, monkeypatch, weights):
    monkeypatch.setitem(LOCALISERS, "mixed", Mixed)
    calibrated = ns.Method("aps", Mixed()).calibrate(GRAPH, P, Y, np.arange(40))
    calibrated = replace(calibrated, method=replace(calibrated.method, localiser=Mixed(weights)))
    with pytest.raises(ns.InvalidInputError, match=r"`weights` must be a number, a text, or a tuple .*; Mixed has a"):
        calibrated.save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("score", ["aps", "cqr"])
def test_each_method_of_a_comparison_survives_the_winner_with_its_choice(tmp_path, score):
    rng = np.random.default_rng(2)
    graph = ns.Graph.from_edge_index(rng.integers(400, size=(2, 1600)), 400)
    calibration, nodes = np.arange(300), np.arange(300, 400)
    if score == "aps":
        outputs, truth = rng.dirichlet(np.ones(4), 400), rng.integers(4, size=400)
    else:
        truth = rng.normal(size=400)
        outputs = truth[:, None] + np.sort(rng.normal(size=(400, 2)), axis=1)
    comparison = ns.compare(graph, outputs, truth, calibration, nodes, score=score, alpha=0.2)
    for result in comparison:
        result.calibrated.save(tmp_path / "a.npz")
        again = ns.load(tmp_path / "a.npz")
        assert isinstance(again, Calibrated)
        assert again.method == result.calibrated.method
        assert again.predict(nodes, 0.2).same_as(result.prediction)
        assert str(again.choice) == str(result.calibrated.choice)
    comparison["auto"].calibrated.save(tmp_path / "a.npz")
    again = ns.load(tmp_path / "a.npz")
    assert again.choice.candidates == comparison["auto"].calibrated.choice.candidates


def test_an_interrupted_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    split(seed=1).save(path)
    before = path.read_bytes()

    def half_written(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(archives.np, "savez", half_written)
    with pytest.raises(KeyboardInterrupt):
        naps().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.parametrize("make", [naps, split])
def test_a_file_cut_anywhere_is_refused_by_name(tmp_path, make):
    path = tmp_path / "cut.npz"
    make().save(path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ns.FileFormatError, match=r"cut\.npz"):
            load(path)


def test_a_file_with_a_wrong_byte_is_refused_or_reads_the_same(tmp_path):
    path = tmp_path / "bent.npz"
    naps().save(path)
    whole = bytearray(path.read_bytes())
    expected = naps().predict(NODES, 0.3)
    for place in np.random.default_rng(1).integers(len(whole), size=150).tolist():
        bent = bytearray(whole)
        bent[place] ^= 0xFF
        path.write_bytes(bent)
        with suppress(ns.FileFormatError):
            again = load(path)  # that byte means nothing, such as a time of day
            assert np.array_equal(again.predict(NODES, 0.3).member, expected.member)


def test_what_was_scored_cannot_be_written_to_here_or_in_another_process():
    for scored in (
        naps(exact=True).scored,
        pickle.loads(pickle.dumps(naps(exact=True).scored)),
    ):
        for array in (scored.u, scored.level_nodes, scored.level_scores, scored.reference.scores, scored.calibration):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
