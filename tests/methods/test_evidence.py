"""Labels that teach beside labels that judge: `evidence=` is the reference, and all of `calibration` sets the level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.levels import Exact, rank_place
from napsets.localisers import Everyone, Hops
from napsets.methods import Method, make_method
from napsets.scores import APS, THR, ByLabel, Informed
from oracles import same_bits
from worlds import block_model, make_numbers

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

GRAPH, P, Y = block_model(same=0.8, nodes=500, degree=6, strength=0.8)
#: Nodes of one class and a few others, and nodes drawn among the rest.
EVIDENCE = np.sort(np.concatenate([np.flatnonzero(Y == 0)[:114], *(np.flatnonzero(y == Y)[:3] for y in (1, 2))]))
CALIBRATION = np.sort(np.random.default_rng(0).permutation(np.setdiff1d(np.arange(500), EVIDENCE))[:90])
REST = np.setdiff1d(np.arange(500), np.union1d(EVIDENCE, CALIBRATION))
LEARNING = {
    "naps-exact": ns.NAPS(exact=True, pool=10.0),
    "by class": ns.NAPS(exact=True, by="class"),
    "informed": make_method("informed"),
    "local": Method(Informed(THR()), Hops(2, pool=5.0), Exact()),
    "ranked": ns.SplitConformal(score=ByLabel(APS(), 0.5)),
    "clustered": make_method("clustered"),
    "auto": ns.Auto(),
    "auto-small": ns.Auto(prefer="small"),
}


def calibrate(method, evidence=EVIDENCE, calibration=CALIBRATION, labels=Y, **more):
    return method.calibrate(GRAPH, P, labels, calibration, evidence=evidence, **more)


def sets_of(calibrated, nodes=REST):
    sets = calibrated.predict(nodes, alpha=[0.1, 0.3])
    return [array for one in sets for array in (one.thresholds, one.member, one.support, one.effective_size)]


def inside(calibrated):
    return getattr(calibrated, "calibrated_", calibrated)


@pytest.mark.parametrize("method", LEARNING.values(), ids=LEARNING)
def test_evidence_is_the_reference_and_all_calibration_nodes_set_the_level(method):
    scored = inside(calibrate(method)).scored
    assert np.array_equal(scored.reference.nodes, EVIDENCE)
    assert np.array_equal(scored.level_nodes, CALIBRATION)
    assert np.array_equal(scored.sample, CALIBRATION)


@pytest.mark.parametrize("method", LEARNING.values(), ids=LEARNING)
def test_order_of_evidence_form_of_evidence_and_overlap_change_nothing(method):
    expected = sets_of(calibrate(method))
    mask = np.zeros(500, dtype=bool)
    mask[EVIDENCE] = True
    shuffled = np.random.default_rng(1).permutation(EVIDENCE)
    for evidence in (shuffled, mask, np.concatenate([shuffled, CALIBRATION[::3]]), shuffled.tolist()):
        assert all(map(same_bits, sets_of(calibrate(method, evidence)), expected))


@pytest.mark.parametrize("method", LEARNING.values(), ids=LEARNING)
def test_labels_outside_evidence_and_calibration_are_never_read(method):
    hidden = Y.copy()
    hidden[REST] = -1
    assert all(map(same_bits, sets_of(calibrate(method, labels=hidden)), sets_of(calibrate(method))))


@pytest.mark.parametrize("method", LEARNING.values(), ids=LEARNING)
def test_a_saved_method_predicts_the_same_bits(method, tmp_path):
    calibrated = calibrate(method)
    calibrated.save(tmp_path / "method.npz")
    loaded = ns.load(tmp_path / "method.npz")
    assert all(map(same_bits, sets_of(loaded), sets_of(calibrated)))
    assert same_bits(inside(loaded).p_values(REST), inside(calibrated).p_values(REST))
    assert inside(loaded).scored.evidence
    assert str(loaded.verdict(alpha=0.2)).splitlines()[0]


def test_sets_are_those_of_the_split_computed_by_hand():
    """The oracle: ranks among the evidence, the ⌈(|Q|+1)(1−α)⌉-th smallest pair over Q, and which labels are at it."""
    method = Method(THR(), Everyone(), Exact())
    scores = 1.0 - P
    below = np.sort(scores[EVIDENCE, Y[EVIDENCE]])

    def pairs(nodes, values):
        others = below.size - np.isin(nodes, EVIDENCE)
        return list(zip(np.searchsorted(below, values) / (1.0 + others), values, strict=True))

    level = sorted(pairs(CALIBRATION, scores[CALIBRATION, Y[CALIBRATION]]))
    calibrated = calibrate(method)
    for alpha in (0.05, 0.1, 0.35):
        limit = level[rank_place(len(level), alpha) - 1]
        member = calibrated.predict(REST, alpha).member
        by_hand = np.stack([[pair <= limit for pair in pairs(REST, scores[REST, y])] for y in range(P.shape[1])], 1)
        assert np.array_equal(member, by_hand)


def test_a_corrected_model_is_calibrated_like_any_model():
    """What evidence teaches is a model: its corrected outputs, with split conformal prediction on Q, give the sets."""
    informed = calibrate(Method(Informed(THR()), Everyone(), Exact()))
    corrected = informed.scored.bound.probabilities
    plain = Method(THR()).calibrate(GRAPH, corrected, Y, CALIBRATION)
    for alpha in (0.05, 0.1, 0.3):
        assert np.array_equal(informed.predict(REST, alpha).member, plain.predict(REST, alpha).member)


@given(data=st.data())
def test_any_division_of_labels_is_respected(data):
    order = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).permutation(500)
    taught, judged = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 200))
    evidence, calibration = order[:taught], order[taught : taught + judged]
    method = Method(THR(), Hops(2, pool=3.0), Exact())
    scored = calibrate(method, evidence, calibration).scored
    assert np.array_equal(scored.reference.nodes, np.sort(evidence))
    assert np.array_equal(scored.level_nodes, np.sort(calibration))
    assert not np.intersect1d(scored.reference.nodes, scored.level_nodes).size


def test_new_nodes_keep_the_division():
    calibrated = calibrate(Method(Informed(), Everyone(), Exact()))
    rows = P[REST[:5]]
    edges = np.stack([np.arange(500, 505), REST[:5]])
    grown = calibrated.predict_new(rows, edges, alpha=0.1)
    ends = np.concatenate([np.stack([np.repeat(np.arange(500), GRAPH.degrees), GRAPH.indices]), edges], axis=1)
    graph = ns.Graph.from_edge_index(ends, num_nodes=505)
    labels = np.concatenate([Y, np.full(5, -1)])
    again = calibrated.method.calibrate(graph, np.concatenate([P, rows]), labels, CALIBRATION, evidence=EVIDENCE)
    assert same_bits(grown.thresholds, again.predict(np.arange(500, 505), 0.1).thresholds)


def test_names_and_frames_choose_evidence_as_they_choose_calibration():
    ids = np.array([f"n{i}" for i in range(500)])
    method = Method(THR(), Hops(2, pool=3.0), Exact())
    expected = calibrate(method, ids=ids)
    named = calibrate(method, ids[EVIDENCE], ids[CALIBRATION], ids=ids)
    assert all(map(same_bits, sets_of(named, ids[REST]), sets_of(expected, ids[REST])))
    order = np.random.default_rng(2).permutation(500)
    mask = np.isin(np.arange(500), EVIDENCE)
    framed = method.calibrate(
        GRAPH,
        pd.DataFrame(P, index=ids),
        pd.Series(Y, index=ids),
        pd.Series(np.isin(np.arange(500), CALIBRATION), index=ids),
        evidence=pd.Series(mask, index=ids)[ids[order]][ids],
    )
    assert all(map(same_bits, sets_of(framed, ids[REST]), sets_of(expected, ids[REST])))


@pytest.mark.parametrize("name", ["naps-exact", "informed", "auto"])
def test_intervals_learn_from_evidence_too(name):
    world = make_numbers()
    order = np.random.default_rng(0).permutation(world["targets"].size)
    # Only small targets were looked at before.
    small = np.sort(order[np.argsort(world["targets"][order])[:200]])
    calibration = np.setdiff1d(order, small)[:150]
    targets = np.full(world["targets"].size, np.nan)
    targets[small], targets[calibration] = world["targets"][small], world["targets"][calibration]
    method = make_method(name, score=ns.CQR())
    calibrated = method.calibrate(world["graph"], world["outputs"], targets, calibration, evidence=small)
    assert np.array_equal(calibrated.scored.reference.nodes, small)
    assert np.array_equal(calibrated.scored.level_nodes, np.sort(calibration))
    assert len(calibrated.predict(alpha=0.1)) == targets.size - 350


NOMINAL = {
    "naps": ns.NAPS(),
    "split": ns.SplitConformal(),
    **{name: make_method(name) for name in ("thr", "daps", "snaps", "naps-lengths", "by-class", "by-degree")},
}


@pytest.mark.parametrize("method", NOMINAL.values(), ids=NOMINAL)
def test_methods_without_held_out_labels_say_why_they_take_no_evidence(method):
    words = r"`evidence` .* nothing to teach: .* all calibration labels\. Use Auto\(\), make_method\('informed'\)"
    with pytest.raises(ns.InvalidInputError, match=words):
        calibrate(method)


def test_evidence_that_cannot_teach_is_refused_with_the_reason():
    method = Method(THR(), Everyone(), Exact())
    unknown = Y.copy()
    unknown[EVIDENCE[3]] = -1
    with pytest.raises(ns.InvalidInputError, match=rf"`evidence` .* known; 1 are not, node {EVIDENCE[3]} first"):
        calibrate(method, labels=unknown)
    ids = np.array([f"n{i}" for i in range(500)])
    with pytest.raises(ns.InvalidInputError, match=rf"node n{EVIDENCE[3]} first"):
        calibrate(method, labels=unknown, ids=ids)
    with pytest.raises(ns.InvalidInputError, match="`evidence` must hold at least one node; it is empty"):
        calibrate(method, np.zeros(500, dtype=bool))
    with pytest.raises(ns.InvalidInputError, match="all 5 are in both, and count as calibration"):
        calibrate(method, CALIBRATION[:5])
    with pytest.raises(ns.InvalidInputError, match="`evidence` must not repeat a node"):
        calibrate(method, [EVIDENCE[0], EVIDENCE[0]])
    with pytest.raises(ns.InvalidInputError, match=r"`evidence` .* 500"):
        calibrate(method, [500])


def test_auto_leaves_out_evidence_that_is_too_little_and_says_so():
    few = calibrate(ns.Auto(), EVIDENCE[:49])
    assert few.choice.reason.endswith(
        "evidence was left out: its 49 labels are too few to choose by (from 50 on they would be enough)"
    )
    plain = ns.SplitConformal().calibrate(P, Y, CALIBRATION)
    assert all(map(same_bits, sets_of(few), sets_of(plain)))
    enough = calibrate(ns.Auto(), EVIDENCE[:50])
    assert "as if the evidence were a random sample" in enough.choice.reason


def test_auto_leaves_out_evidence_of_one_class_alone():
    """What is learned from one class says that there are no others: sets would be larger than without it."""
    single = EVIDENCE[Y[EVIDENCE] == 0]
    auto = calibrate(ns.Auto(), single)
    share = round(100 * np.delete(P, single, axis=0).mean(axis=0)[1:].sum())
    assert auto.choice.reason.endswith(
        f"evidence was left out: it has fewer than 3 labels of classes that make up {share} % of what the model "
        "predicts for the other nodes"
    )
    assert all(map(same_bits, sets_of(auto), sets_of(ns.Auto().calibrate(GRAPH, P, Y, CALIBRATION))))
    assert inside(auto).scored.sample.size == CALIBRATION.size
    seen = np.concatenate([single, *(np.setdiff1d(np.flatnonzero(y == Y), CALIBRATION)[:3] for y in (1, 2))])
    assert inside(calibrate(ns.Auto(), seen)).scored.evidence
    assert inside(calibrate(make_method("informed"), single)).scored.evidence


def test_one_calibration_label_is_enough_to_set_a_level():
    calibrated = calibrate(Method(THR(), Everyone(), Exact()), calibration=CALIBRATION[:1])
    assert calibrated.scored.level_nodes.size == 1
    assert calibrated.predict(REST, 0.1).member.all()
    assert not calibrated.predict(REST, 0.5).member.all()
