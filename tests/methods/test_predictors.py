"""NAPS and SplitConformal: calibrate, predict, and the choices between."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import napsets as ns
from napsets.localisers import Cut, Everyone, Reference
from oracles import order_statistic, same_bits
from searches import hop_thresholds

from .conftest import CALIBRATION, CLASSES, GRAPH, NODES, RNG, SIZE, P, Y, auto, naps, split


def test_naps_is_the_score_the_thresholds_and_the_comparison():
    sets = naps(hops=2, decay="hyperbolic", seed=9).predict(NODES, alpha=0.2)
    u = ns.node_uniforms(np.arange(SIZE), 9)
    S = ns.aps_scores(P, u)
    tau = hop_thresholds(GRAPH, S[CALIBRATION, Y[CALIBRATION]], CALIBRATION, NODES, [1, 0.5], 0.2)
    assert same_bits(sets.thresholds, tau)
    assert np.array_equal(sets.member, S[NODES] <= tau[:, None])
    assert np.array_equal(sets.nodes, NODES)
    assert (sets.alpha, sets.num_nodes) == (0.2, SIZE)


def test_split_conformal_is_the_order_statistic_of_all_calibration_scores():
    sets = split(seed=9).predict(NODES, alpha=0.2)
    S = ns.aps_scores(P, ns.node_uniforms(np.arange(SIZE), 9))
    tau = order_statistic(S[CALIBRATION, Y[CALIBRATION]].tolist(), Fraction(1, 5))
    assert set(sets.thresholds.tolist()) == {tau}
    assert np.array_equal(sets.member, S[NODES] <= tau)
    assert (sets.support == 300).all()
    assert (sets.effective_size == 300).all()


@pytest.mark.parametrize("alpha", [0.003, 0.1, 0.25, 0.5, 0.99])
def test_a_calibration_node_gets_the_order_statistic_of_the_others(alpha):
    scores = np.round(np.random.default_rng(1).random(30), 1)
    computed = Everyone().fit(Reference(np.arange(30), scores, 40)).thresholds(np.arange(40), [Cut(1.0 - alpha)])
    thresholds, support = computed.values[0], computed.support
    exact = Fraction(str(alpha))
    expected = [order_statistic(np.delete(scores, v).tolist() if v < 30 else scores.tolist(), exact) for v in range(40)]
    assert same_bits(thresholds, expected)
    assert support.tolist() == [29] * 30 + [30] * 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decay": "geometic"}, r"`decay` must be one of uniform, .*; got 'geometic' \(did you mean 'geometric'\?\)"),
        ({"score": "rasp"}, r"`score` must be one of aps, .*thr.*; got 'rasp' \(did you mean 'raps'\?\)"),
        ({"score": 3}, "`score` must be one of aps, .*thr.*, or have the methods matrix and at; got 3"),
        ({"score": ns.APS}, r"`score` must be one of .* \(write APS\(\) with brackets\)"),
        ({"seed": -1}, "`seed` must be at least 0 and below 2\\^64; got -1"),
        ({"allow_empty": "no"}, "`allow_empty` must be True or False; got 'no'"),
    ],
)
def test_bad_settings_are_refused_at_once(settings, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        ns.NAPS(**settings)
    if not settings.keys().isdisjoint(("score", "seed", "allow_empty")):
        with pytest.raises(ns.InvalidInputError, match=message):
            ns.SplitConformal(**settings)


@pytest.mark.parametrize(
    ("name", "score"), [("aps", ns.APS()), ("raps", ns.RAPS()), ("saps", ns.SAPS()), ("thr", ns.THR())]
)
def test_scores_go_by_name(name, score):
    assert ns.NAPS(score=name).score == score
    for make in (naps, split):
        one, other = make(score=name).predict(NODES, 0.2), make(score=score).predict(NODES, 0.2)
        assert np.array_equal(one.member, other.member)


METHODS = [ns.NAPS(), ns.SplitConformal(alpha=0.2), ns.Auto(), ns.Method("thr")]


@pytest.mark.parametrize("method", METHODS, ids=["naps", "split", "auto", "method"])
def test_what_other_libraries_call_calibrate_and_predict_is_answered_with_the_right_name(method):
    with pytest.raises(ns.NotCalibratedError, match=r"write calibrated = method\.calibrate\(\.\.\.\)"):
        method.predict([0])
    for name, hint in [("fit", "calibrate"), ("conformalize", "calibrate"), ("predict_set", r"calibrate\(…\).predict")]:
        with pytest.raises(AttributeError, match=f"a method has no {name}; write {hint}"):
            getattr(method, name)
    with pytest.raises(AttributeError, match="object has no attribute 'nonsense'"):
        _ = method.nonsense
    calibrated = method.calibrate(GRAPH, P, Y, CALIBRATION)
    for name, hint in [("predict_set", "predict"), ("fit", r"method\.calibrate"), ("calibrate", r"method\.calibrate")]:
        with pytest.raises(AttributeError, match=f"a calibrated method has no {name}; write {hint}"):
            getattr(calibrated, name)
    assert not hasattr(calibrated, "nonsense")


@pytest.mark.parametrize("method", METHODS, ids=["naps", "split", "auto", "method"])
def test_a_method_is_a_value_with_an_error_rate_that_predict_may_override(method):
    rate = replace(method, alpha=0.3)
    assert rate != method
    assert rate == replace(method, alpha=0.3)
    calibrated = rate.calibrate(GRAPH, P, Y, CALIBRATION)
    assert calibrated.predict(NODES).alpha == calibrated.method.alpha == 0.3
    assert calibrated.predict(NODES, 0.05).alpha == 0.05
    assert calibrated.predict(NODES, [0.05, 0.2])[1].alpha == 0.2


def test_a_method_without_a_graph_takes_three_arrays_or_four():
    four = ns.SplitConformal().calibrate(None, P, Y, CALIBRATION)
    for calibrated in (
        split(),
        ns.SplitConformal().calibrate(P, Y, CALIBRATION, graph=GRAPH),
        ns.SplitConformal().calibrate(probabilities=P, labels=Y, calibration=CALIBRATION, graph=None),
        ns.SplitConformal().calibrate(probabilities=P, labels=Y, calibration=CALIBRATION),
        ns.Method().calibrate(P, Y, calibration=CALIBRATION),
    ):
        assert same_bits(calibrated.predict(NODES).thresholds, four.predict(NODES).thresholds)
    with pytest.raises(TypeError, match="calibration"):
        ns.NAPS().calibrate(GRAPH, P, Y)
    with pytest.raises(ns.InvalidInputError, match="`graph` must be"):
        ns.NAPS().calibrate(None, P, Y, CALIBRATION)


def test_new_rows_are_predicted_with_p_values_where_no_graph_is_used():
    rows = P[NODES[:5]]
    sets = split().predict(probabilities=rows, alpha=0.2, p_values=True)
    assert sets.nodes.tolist() == list(range(SIZE, SIZE + 5))
    assert np.array_equal(sets.p_values > 0.2, sets.member)
    assert np.array_equal(split().predict(probabilities=rows, alpha=[0.1, 0.2])[1].member, sets.member)
    for arguments, message in [
        ({"nodes": [1], "probabilities": rows}, "`nodes` must be given, or else `probabilities`"),
        ({"ids": [1]}, "`ids` must be left out without `probabilities`"),
    ]:
        with pytest.raises(ns.InvalidInputError, match=message):
            split().predict(**arguments)
    with pytest.raises(ns.InvalidInputError, match=r"predict_new\(probabilities, edges\)"):
        naps().predict(probabilities=rows)


def test_the_name_of_a_score_is_no_method_but_says_which():
    for name, hint in [
        ("aps", "write the method 'split'$"),
        ("raps", "method 'split' with score='raps'"),
        ("lac", "thr"),
    ]:
        with pytest.raises(ns.InvalidInputError, match=hint):
            ns.make_method(name)


def test_nodes_with_too_little_around_them_get_the_full_set():
    sets = naps(hops=1).predict(NODES, alpha=0.1)
    short = np.isinf(sets.thresholds)
    assert short.any()
    assert (sets.sizes[short] == CLASSES).all()
    assert (sets.support[short] < 9).all()
    assert (sets.support[~short] >= 9).all()


def test_the_global_fallback_gives_them_the_split_conformal_threshold_instead():
    full, fallback = (naps(hops=1, fallback=f).predict(NODES, alpha=0.1) for f in ("full", "global"))
    short = np.isinf(full.thresholds)
    flat = split().predict(NODES, alpha=0.1)
    assert same_bits(fallback.thresholds[short], flat.thresholds[short])
    assert np.array_equal(fallback.member[short], flat.member[short])
    assert (fallback.support[short] == 300).all()
    assert (fallback.effective_size[short] == 300).all()
    assert same_bits(fallback.thresholds[~short], full.thresholds[~short])
    assert np.array_equal(fallback.support[~short], full.support[~short])


def test_empty_sets_can_be_forbidden_as_a_setting_or_in_a_call():
    loose, strict = split().predict(NODES, 0.9), split(allow_empty=False).predict(NODES, 0.9)
    assert (loose.sizes == 0).any()
    assert (strict.sizes > 0).all()
    assert np.array_equal(split().predict(NODES, 0.9, allow_empty=False).member, strict.member)
    assert np.array_equal(split(allow_empty=False).predict(NODES, 0.9, allow_empty=True).member, loose.member)
    assert naps(allow_empty=False).predict(NODES, 0.9).sizes.min() == 1


@pytest.mark.parametrize("make", [naps, split])
def test_calibration_nodes_among_the_nodes_give_a_warning(make):
    with pytest.warns(
        ns.NapsetsWarning, match="`nodes` holds 2 calibration nodes; a node's own label is left out"
    ) as w:
        make().predict([299, 5, 300])
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().predict([300, 301])


def test_masks_and_tensors_are_taken():
    torch = pytest.importorskip("torch")
    mask = np.arange(SIZE) < 300
    one = naps().predict(NODES)
    predictor = ns.NAPS().calibrate(GRAPH, torch.tensor(P), torch.tensor(Y), calibration=torch.tensor(mask))
    other = predictor.predict(torch.tensor(~mask))
    assert np.array_equal(one.member, other.member)
    grown = torch.tensor(P, requires_grad=True)
    assert np.array_equal(
        ns.SplitConformal().calibrate(grown, torch.tensor(Y), calibration=mask).predict(NODES).member,
        split().predict(NODES).member,
    )


def test_ids_decide_the_uniform_number_and_may_be_strings():
    names = np.array([f"n{i}" for i in range(SIZE)])
    by_name = ns.NAPS().calibrate(GRAPH, P, Y, calibration=CALIBRATION, ids=names)
    assert same_bits(by_name.scored.u, ns.node_uniforms(names, 0))
    objects = ns.NAPS().calibrate(GRAPH, P, Y, calibration=CALIBRATION, ids=names.astype(object))
    assert np.array_equal(by_name.predict(NODES).member, objects.predict(NODES).member)
    numbered = ns.SplitConformal().calibrate(P, Y, calibration=CALIBRATION, ids=np.arange(SIZE))
    assert np.array_equal(numbered.predict(NODES).member, split().predict(NODES).member)


def test_seeds_change_the_randomised_sets_and_nothing_else():
    assert not np.array_equal(naps(seed=0).predict(NODES).member, naps(seed=1).predict(NODES).member)
    one, other = (naps(seed=s, score=ns.APS(randomized=False)).predict(NODES) for s in (0, 1))
    assert np.array_equal(one.member, other.member)


def test_float32_probabilities_are_kept_at_their_width():
    predictor = ns.NAPS().calibrate(GRAPH, P.astype(np.float32), Y, calibration=CALIBRATION)
    assert predictor.score.probabilities.dtype == np.float32
    assert len(predictor.predict(NODES)) == 100


def test_large_requests_are_made_in_pieces_that_do_not_show(monkeypatch):
    whole = naps().predict(NODES)
    monkeypatch.setattr("napsets.methods.thresholds._CHUNK_ENTRIES", 35)
    assert np.array_equal(naps().predict(NODES).member, whole.member)


def test_no_nodes_have_no_sets():
    for predictor in (naps(), split(), naps(fallback="global")):
        sets = predictor.predict([])
        assert len(sets) == 0
        assert sets.member.shape == (0, CLASSES)


def test_zero_hops_know_nothing_and_say_so():
    with pytest.warns(ns.NapsetsWarning, match="`hops` is 0: .* every set is full"):
        assert (naps(hops=0).predict(NODES).sizes == CLASSES).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        naps(hops=1).predict(NODES)
        assert (naps(hops=0, fallback="global").predict(NODES).member == split().predict(NODES).member).all()


@pytest.mark.parametrize("make", [naps, split, auto, lambda: naps(exact=True)])
def test_several_alphas_give_a_list_of_sets(make):
    predictor = make()
    for alphas in ([0.1, 0.4], (0.1, 0.4), np.array([0.1, 0.4])):
        prediction = predictor.predict(NODES, alphas)
        assert isinstance(prediction, list)
        for alpha, sets in zip((0.1, 0.4), prediction, strict=True):
            alone = predictor.predict(NODES, alpha)
            assert sets.alpha == alpha
            for name in ("member", "thresholds", "support", "effective_size"):
                assert np.array_equal(getattr(sets, name), getattr(alone, name)), name
    for wrong, message in [
        ([], "`alpha` must hold at least one error rate; it is empty"),
        (np.empty(0), "`alpha` must hold at least one error rate"),
        ([0.1, [0.2]], r"`alpha` must be a number or a list of numbers; got \[0.2\] in a list"),
        (np.array([[0.1]]), "`alpha` must be a number or a list of numbers"),
        ([0.1, 2.0], "`alpha` must lie strictly between 0 and 1; got 2"),
        ("0.1, 0.2", "`alpha` must be a number"),
    ]:
        with pytest.raises(ns.InvalidInputError, match=message):
            predictor.predict(NODES, wrong)


def test_what_a_fallback_rests_on_is_told_for_each_alpha():
    predictor = naps(hops=1, fallback="global")
    alphas = [0.4, 0.1, 0.02]
    several = predictor.predict(NODES, alphas)
    fallen = [int((sets.support == CALIBRATION.size).sum()) for sets in several]
    assert fallen[0] < fallen[1] < fallen[2]
    for alpha, sets in zip(alphas, several, strict=True):
        alone = predictor.predict(NODES, alpha)
        assert np.array_equal(sets.support, alone.support)
        assert np.array_equal(sets.effective_size, alone.effective_size)


def test_sets_that_may_not_be_empty_stay_nested_with_scores_that_rank_labels_their_own_way():
    predictor = naps(score=ns.Diffused("aps", 0.9), hops=0, fallback="global", allow_empty=False)
    alphas = [0.99, 0.9, 0.7, 0.5, 0.2, 0.05]
    several = predictor.predict(NODES, alphas)
    assert (several[0].sizes == 1).any()
    for small, large in itertools.pairwise(several):
        assert (small.member <= large.member).all()
    scores = predictor.score.matrix(NODES)
    alone = np.isneginf(np.where(scores <= several[0].thresholds[:, None], scores, -np.inf)).all(axis=1)
    assert np.array_equal(several[0].member[alone].argmax(axis=1), scores[alone].argmin(axis=1))


@pytest.mark.parametrize("score", ["aps", "raps", "saps", "thr", ns.APS(randomized=False), ns.Sharpened()])
def test_the_most_probable_label_stands_in_where_rows_are_scored_alone(score):
    p = np.vstack([P[:350], np.eye(CLASSES)[RNG.integers(CLASSES, size=50)]])  # some rows leave no doubt
    calibrated = ns.SplitConformal(score).calibrate(p, Y, calibration=CALIBRATION)
    best = calibrated.score.top_labels(calibrated.score.matrix(NODES), NODES)
    assert np.array_equal(best, p[NODES].argmax(axis=1))
