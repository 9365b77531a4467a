"""Full conformal prediction: every candidate, every bag counted again gives the same bits, and coverage is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.levels import Exact, Full, rank_place
from napsets.localisers import Everyone, Hops
from napsets.methods import Method
from napsets.methods.data import CalibrationData
from napsets.scores import APS, RAPS, SAPS, THR, ByLabel, Diffused, Informed, Labelled, Sharpened
from worlds import weak_model

BASES = [APS(), THR(), Sharpened(APS(), 2.0), RAPS(), Sharpened(THR(), 1.6), SAPS()]


pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


def random_case(seed):
    """A small graph with hubs, isolated nodes, one-way edges and ties, a model, labels of some nodes and a score."""
    rng = np.random.default_rng(seed)
    nodes, classes = int(rng.integers(5, 40)), int(rng.integers(2, 5))
    ends = rng.integers(nodes, size=(2, int(rng.integers(0, 3 * nodes))))
    if rng.random() < 0.5:  # a hub
        ends[1, rng.random(ends.shape[1]) < 0.5] = 0
    graph = ns.Graph.from_edge_index(ends, num_nodes=nodes, directed=bool(rng.random() < 0.5))
    p = np.full((nodes, classes), 1 / classes) if rng.random() < 0.2 else rng.dirichlet(np.full(classes, 0.7), nodes)
    p = p.astype(np.float32) if rng.random() < 0.3 else p
    labels = rng.integers(classes, size=nodes)
    for v in range(nodes):
        near = graph.neighbours(v)
        if near.size and rng.random() < 0.7:
            labels[v] = labels[near[rng.integers(near.size)]]
    score = Informed(BASES[int(rng.integers(len(BASES)))], int(rng.integers(0, 3)), bool(rng.random() < 0.3))
    score = ByLabel(score, 0.5) if rng.random() < 0.4 else score
    calibration = rng.permutation(nodes)[: rng.integers(4, nodes + 1)]
    data = CalibrationData.check(graph, p, labels, calibration, score=score)
    return (
        data,
        Method(score, Everyone(), Full(float(rng.choice([0.3, 0.5]))), seed),
        float(rng.choice([0.1, 0.3, 0.5])),
    )


def scores_of_bag(calibrated, data, nodes, labels, wanted):
    """Count the evidence of a bag from scratch, and score some of its nodes at their labels."""
    scored = calibrated.scored
    reference, order = scored.reference.nodes, np.argsort(nodes)
    bag, known = Labelled(nodes[order], labels[order]), Labelled(reference, data.truth[reference])
    learned = ns.scores.informed.evidence_of(calibrated.score).learned
    _, bound = scored.score.bind_with_bag(data.outputs, scored.u, data.graph, known, bag, learned)
    return bound, bound.at(wanted, data.truth[wanted])


def slow_thresholds(calibrated, data, v, alpha, judges=None):
    """The threshold of each candidate of a node by the definition: the bag again for each."""
    held_out, classes = calibrated.scored.level_nodes, data.outputs.shape[1]
    others = held_out[held_out != v]
    judging = others if judges is None else others[np.isin(others, judges)]
    needed = rank_place(judging.size, alpha)
    thresholds = np.full(classes, np.inf)
    for y in range(classes if needed <= judging.size else 0):
        nodes, labels = np.append(others, v), np.append(data.truth[others], y)
        if v in calibrated.scored.reference.nodes:  # whose label has spoken
            nodes, labels = held_out, data.truth[held_out]
        thresholds[y] = np.sort(scores_of_bag(calibrated, data, nodes, labels, judging)[1])[needed - 1]
    return thresholds


def check_case(seed):
    """Compare the thresholds of all nodes with those of the definition."""
    data, method, alpha = random_case(seed)
    calibrated = method.fit(data)
    nodes = np.arange(data.outputs.shape[0])
    sets = calibrated.predict(nodes, alpha)
    for v in nodes:
        assert np.array_equal(sets.label_thresholds[v], slow_thresholds(calibrated, data, v, alpha)), (seed, v)
    assert np.array_equal(sets.member, calibrated.score.matrix(nodes) <= sets.label_thresholds)


@pytest.fixture(params=[False, True], ids=["numpy", "kernels"])
def kernels(request, monkeypatch):
    """Whether kernels do the work, however little it is."""
    monkeypatch.setattr("napsets.methods.full._KERNELS.pay", lambda work: request.param)
    return request.param


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 16]), st.sampled_from([1, 64]))
def test_thresholds_are_those_of_every_bag_counted_anew(kernels, seed, window, crowd):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napsets.methods.moves._WINDOW", window)
        patch.setattr("napsets.methods.moves._LISTED", 1)
        patch.setattr("napsets.scores.evidence.CROWD", crowd)
        check_case(seed)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 2]))
@example(8, 2)  # a tie with the own label once another label is near
@example(297, 0)  # the wanted score is one place further without a node's own
@example(1424, 2)  # a label whose weight falls as it is counted more often
@example(102020, 0)  # a judge for which a node is evidence near and from two hops away
def test_kernels_find_what_every_bag_shows_for_all_nodes(seed, window):
    data, method, alpha = random_case(seed)
    calibrated = method.fit(data)
    nodes, labels = np.arange(data.outputs.shape[0]), np.arange(data.outputs.shape[1])
    scores, full = calibrated.score.matrix(nodes), calibrated.full
    answers = []
    for kernels in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("napsets.methods.moves._WINDOW", window)
            patch.setattr("napsets.methods.full._KERNELS.pay", lambda work, kernels=kernels: kernels)
            answers.append(
                (full.thresholds(nodes, [alpha], None, None, None)[1], *full.compared(nodes, scores, labels))
            )
    for one, other in zip(*answers, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("by", ["class", "node"])
def test_within_groups_only_their_own_labels_judge_and_all_speak(by, seed, kernels):
    data, method, _ = random_case(seed)
    groups = "class" if by == "class" else np.arange(data.outputs.shape[0]) % 2
    calibrated = Method(method.score, Everyone(), Full(), seed, groups=groups).fit(data)
    held_out, nodes = calibrated.scored.level_nodes, np.arange(data.outputs.shape[0])
    sets = calibrated.predict(nodes, 0.5)
    grouping = calibrated.grouped.grouping
    member = grouping.of_labelled(held_out, data.truth[held_out])
    enough = calibrated.grouped.suffice(0.5)
    for v in nodes[::3]:
        for y in range(data.outputs.shape[1]):
            group = grouping.groups[y] if by == "class" else grouping.groups[v]
            if enough[group]:
                slow = slow_thresholds(calibrated, data, v, 0.5, held_out[member == group])
                assert sets.label_thresholds[v, y] == slow[y]


def test_threads_batches_and_the_order_of_nodes_change_nothing(kernels, monkeypatch):
    graph, p, labels = weak_model(seed=0)
    calibrated = Method(Informed(), Everyone(), Full()).calibrate(graph, p, labels, np.arange(0, 260, 2))
    nodes = np.arange(1, 260, 2)
    whole = calibrated.predict(nodes, 0.1)
    for threads in (1, 3):
        assert np.array_equal(calibrated.predict(nodes, 0.1, threads=threads).label_thresholds, whole.label_thresholds)
    backwards = calibrated.predict(nodes[::-1], 0.1)
    assert np.array_equal(backwards.label_thresholds[::-1], whole.label_thresholds)
    for name, value in (("full._DENSE", 900), ("full._ENTRIES", 50), ("moves._ROWS", 3), ("moves._LISTED", 1)):
        monkeypatch.setattr(f"napsets.methods.{name}", value)
    assert np.array_equal(calibrated.predict(nodes, 0.1).label_thresholds, whole.label_thresholds)
    for row, node in enumerate(nodes[:20]):
        assert np.array_equal(calibrated.predict([node], 0.1).label_thresholds[0], whole.label_thresholds[row])
    several = calibrated.predict(nodes, [0.3, 0.1])
    assert np.array_equal(several[1].label_thresholds, whole.label_thresholds)


def test_a_full_level_needs_one_threshold_for_all_and_a_score_of_rows():
    with pytest.raises(ns.InvalidInputError, match="`localiser` must be Everyone"):
        Method(Informed(), Hops(2), Full())
    with pytest.raises(ns.InvalidInputError, match="`score` must look at a node's own row"):
        Method(Informed(Diffused()), Everyone(), Full())
    with pytest.raises(ns.InvalidInputError, match="`score` must look at a node's own row"):
        Method(Diffused(Informed()), Everyone(), Full())
    assert Method.from_description(Method(Informed(), Everyone(), Full()).describe()).level == Full()


def test_a_score_without_evidence_is_at_a_full_level_what_it_is_at_an_exact_one():
    graph, p, labels = weak_model(seed=3)
    sets = [
        Method(APS(), Everyone(), level).calibrate(graph, p, labels, np.arange(100)).predict(np.arange(100, 260))
        for level in (Full(), Exact())
    ]
    assert np.array_equal(sets[0].member, sets[1].member)
    assert sets[0].label_thresholds is None


def test_a_split_and_a_map_that_are_given_give_the_same_sets():
    """What a living graph is tested against: the parts and what was learned are passed in again."""
    data, method, alpha = random_case(11)
    calibrated = method.fit(data)
    scored = calibrated.scored
    learned = ns.scores.informed.evidence_of(calibrated.score).learned
    parts = scored.reference.nodes, scored.level_nodes
    again = method.on(data.scored_in_parts(method.score, method.seed, *parts, level=method.level, learned=learned))
    nodes = np.arange(data.outputs.shape[0])
    assert np.array_equal(
        again.predict(nodes, alpha).label_thresholds, calibrated.predict(nodes, alpha).label_thresholds
    )


def test_a_saved_method_gives_the_same_sets(tmp_path):
    graph, p, labels = weak_model(seed=4)
    for score, groups in ((Informed(), None), (ByLabel(Informed(THR())), "class")):
        calibrated = Method(score, Everyone(), Full(), groups=groups).calibrate(graph, p, labels, np.arange(120))
        calibrated.save(tmp_path / "method.npz")
        loaded = ns.load(tmp_path / "method.npz")
        nodes = np.arange(120, 260)
        assert np.array_equal(loaded.predict(nodes).label_thresholds, calibrated.predict(nodes).label_thresholds)
        assert loaded.method == calibrated.method


def test_an_inspection_says_what_the_candidate_itself_changed():
    graph, p, labels = weak_model(seed=5)
    calibrated = Method(Informed(), Everyone(), Full()).calibrate(graph, p, labels, np.arange(120))
    seen = ns.inspect_node(calibrated, 200)
    held_out = calibrated.scored.level_nodes
    near = set(graph.neighbours(200).tolist())
    far = {int(w) for u in near for w in graph.neighbours(u)}
    assert set(seen.listeners.tolist()) == (near | far) & set(held_out.tolist())
    needed = rank_place(held_out.size, 0.1)
    assert seen.base_threshold == np.sort(calibrated.scored.level_scores)[needed - 1]
    assert np.array_equal(seen.label_thresholds, calibrated.predict([200], 0.1).label_thresholds[0])
    assert "whose scores count it as evidence" in seen.reason()
    alone = ns.inspect_node(calibrated, int(np.flatnonzero(graph.degrees == graph.degrees.min())[0]))
    assert alone.neighbours.size in (held_out.size, held_out.size - 1)
