"""Coverage within classes and groups: thresholds from their own labels, against brute force and the law."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, ttest_1samp

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.evaluation.comparison import compare
from napsets.groups import Grouping
from napsets.methods import make_method
from napsets.report.page import shown_methods
from oracles import place_in_law, same_bits

#: Level of each test of fit, with fixed seeds.
LEVEL = 1e-3


def world(rng, size=60, classes=3):
    graph = ns.Graph.from_edge_index(rng.integers(size, size=(2, 3 * size)), num_nodes=size)
    p = rng.dirichlet(np.full(classes, 0.6), size)
    y = (rng.random((size, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    return graph, p, y


def quantile(scores, alpha):
    """The ⌈(n+1)(1−α)⌉-th smallest, or ∞."""
    place = math.ceil(round((len(scores) + 1) * (1 - alpha), 9))
    return np.inf if place > len(scores) else np.sort(scores)[place - 1]


def brute_force(scores, labels, calibration, nodes, group_of_label, group_of_node, alpha):
    """Sets of a nominal split by groups of labels or of nodes, a node and a label at a time."""
    member = np.zeros((len(nodes), scores.shape[1]), dtype=bool)
    needed = math.ceil(round((1 - alpha) / alpha, 9))
    own = {i: group_of_node[i] if group_of_label is None else group_of_label[labels[i]] for i in calibration}
    large = {group for group in own.values() if group >= 0 and list(own.values()).count(group) >= needed}
    rest = [i for i in calibration if own[i] not in large]
    for row, v in enumerate(nodes):
        for y in range(scores.shape[1]):
            group = group_of_node[v] if group_of_label is None else group_of_label[y]
            alike = [i for i in calibration if own[i] == group] if group in large else rest
            judges = [i for i in (alike if len(alike) >= needed else calibration) if i != v]
            member[row, y] = scores[v, y] <= quantile([scores[i, labels[i]] for i in judges], alpha)
    return member


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), alpha=st.sampled_from([0.1, 0.25, 0.5]), kind=st.sampled_from(["class", "node"]))
def test_a_split_by_groups_is_what_brute_force_gives(seed, alpha, kind):
    rng = np.random.default_rng(seed)
    _, p, y = world(rng, size=40)
    calibration = np.sort(rng.choice(40, 25, replace=False))
    groups = rng.integers(-1, 3, size=40)
    split = ns.SplitConformal(by="class" if kind == "class" else groups, seed=3)
    split = split.calibrate(p, y, calibration=calibration)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)
        sets = split.predict(np.arange(40), alpha)
    scores = ns.aps_scores(p, ns.node_uniforms(np.arange(40), 3))
    by_label = np.arange(3) if kind == "class" else None
    assert np.array_equal(sets.member, brute_force(scores, y, calibration, range(40), by_label, groups, alpha))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("by", ["class", "groups"])
def test_hops_within_groups_are_what_a_method_of_each_group_alone_gives(exact, by):
    rng = np.random.default_rng(1)
    graph, p, y = world(rng, 400)
    calibration, rest = np.arange(0, 400, 2), np.arange(1, 400, 2)
    groups = rng.integers(3, size=400)
    naps = ns.NAPS(hops=2, pool=5.0, exact=exact, by="class" if by == "class" else groups)
    sets = naps.calibrate(graph, p, y, calibration=calibration).predict(rest, 0.2)
    kinds = y if by == "class" else groups
    plain = ns.NAPS(hops=2, pool=5.0, exact=exact)
    for group in range(3):
        if exact:
            # All reference nodes serve every group; only the level is its own.
            whole = plain.calibrate(graph, p, y, calibration=calibration)
            mine = kinds[whole.scored.level_nodes] == group
            shares = whole.local.ranks(whole.scored.level_nodes, whole.scored.level_scores)
            level = whole.method.level.fit(whole.scored.reference, shares[mine], whole.scored.level_scores[mine])
            computed = whole.local.thresholds(rest, level.cuts([0.2]))
            thresholds = level.thresholds(computed, rest, [0.2]).values[0]
        else:
            own = calibration[kinds[calibration] == group]
            thresholds = plain.calibrate(graph, p, y, calibration=own).predict(rest, 0.2).thresholds
        if by == "class":
            assert same_bits(sets.label_thresholds[:, group], thresholds)
        else:
            rows = kinds[rest] == group
            assert same_bits(sets.thresholds[rows], thresholds[rows])


def covered_in_groups(method, rng, draws, sizes, tested, alpha):
    """How often each group's tested nodes were covered, turned into numbers that are uniform if the law holds."""
    kinds = np.repeat(np.arange(len(sizes)), [size + tested for size in sizes])
    calibrates = np.concatenate([np.arange(size + tested) < size for size in sizes])
    results = []
    for draw in range(draws):
        p = rng.dirichlet(np.full(len(sizes), 0.7), kinds.size)
        y = kinds if method == "class" else (rng.random((kinds.size, 1)) > p.cumsum(axis=1)).sum(axis=1)
        # One kind of node is harder than the others: a common threshold would fail it.
        p = np.where((kinds == 0)[:, None], p[:, ::-1], p)
        split = ns.SplitConformal(by="class" if method == "class" else kinds, seed=draw)
        split = split.calibrate(p, np.minimum(y, len(sizes) - 1), calibration=calibrates)
        inside = split.predict(~calibrates, alpha).contains(np.minimum(y, len(sizes) - 1))
        for group, size in enumerate(sizes):
            count = int(inside[kinds[~calibrates] == group].sum())
            results.append((group, place_in_law(count, tested, size, alpha, rng.random())))
    return results


@pytest.mark.parametrize("method", ["class", "node"])
def test_coverage_within_each_group_follows_the_beta_binomial_law(method):
    covered = covered_in_groups(method, np.random.default_rng(8), draws=400, sizes=(19, 30, 44), tested=20, alpha=0.1)
    for group in range(3):
        assert kstest([u for which, u in covered if which == group], "uniform").pvalue > LEVEL


def test_a_common_threshold_fails_the_class_that_is_hard():
    rng = np.random.default_rng(2)
    size = 4000
    y = rng.integers(2, size=size)
    right = np.where(y == 0, rng.beta(8, 2, size), rng.beta(3, 2, size))
    p = np.where(np.arange(2) == y[:, None], right[:, None], 1 - right[:, None])
    calibration, rest = np.arange(0, size, 2), np.arange(1, size, 2)
    common, own = (
        ns.SplitConformal(by=by).calibrate(p, y, calibration=calibration).predict(rest, 0.1).contains(y)
        for by in (None, "class")
    )
    hard = y[rest] == 1
    slack = 4 * np.sqrt(0.09 / hard.sum() + 0.09 / (size / 4))
    assert common[hard].mean() < 0.9 - slack
    assert abs(own[hard].mean() - 0.9) < slack


def test_groups_too_small_even_together_are_judged_by_all_and_that_is_said():
    rng = np.random.default_rng(3)
    _, p, y = world(rng, 200)
    groups = np.full(200, "large")
    groups[:8] = "tiny"
    everyone = ns.SplitConformal().calibrate(p, y, calibration=np.arange(100))
    split = ns.SplitConformal(by=groups).calibrate(p, y, calibration=np.arange(100))
    message = r"1 of 2 groups have fewer than 9 labels \('tiny'\): together they have too few as well: all"
    with pytest.warns(NapsetsWarning, match=message):
        sets = split.predict(np.arange(200), 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)
        assert same_bits(sets.thresholds[:8], everyone.predict(np.arange(8), 0.1).thresholds)
    with pytest.warns(NapsetsWarning) as caught:
        split.predict(np.arange(100, 200), 0.1)  # none of the tiny group is asked for
    assert not any("groups" in str(warning.message) for warning in caught)


def test_one_group_is_the_method_without_groups_to_the_bit():
    graph, p, y = world(np.random.default_rng(4), 100)
    for exact in (False, True):
        plain, one = (
            ns.NAPS(pool=3.0, exact=exact, by=by).calibrate(graph, p, y, calibration=np.arange(60)).predict([70, 80])
            for by in (None, np.zeros(100, dtype=int))
        )
        assert same_bits(plain.thresholds, one.thresholds)
        assert np.array_equal(plain.support, one.support)
        assert np.array_equal(plain.member, one.member)


def test_several_alphas_are_those_asked_for_one_by_one():
    graph, p, y = world(np.random.default_rng(5), 150)
    for by in ("class", "degree"):
        naps = ns.NAPS(pool=3.0, by=by).calibrate(graph, p, y, calibration=np.arange(100))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)
            together = naps.predict(np.arange(100, 150), [0.05, 0.3])
            for sets, alpha in zip(together, (0.05, 0.3), strict=True):
                alone = naps.predict(np.arange(100, 150), alpha)
                assert same_bits(alone.thresholds, sets.thresholds)
                assert np.array_equal(alone.member, sets.member)
                assert np.array_equal(alone.support, sets.support)


def test_a_label_is_in_the_set_up_to_its_own_threshold_and_the_smallest_is_shown():
    graph, p, y = world(np.random.default_rng(6), 200)
    naps = ns.NAPS(pool=5.0, by="class").calibrate(graph, p, y, calibration=np.arange(150))
    sets = naps.predict(np.arange(150, 200), 0.2)
    scores = naps.score.matrix(sets.nodes)
    assert np.array_equal(sets.member, scores <= sets.label_thresholds)
    assert same_bits(sets.thresholds, sets.label_thresholds.min(axis=1))
    assert sets.infinite == np.isinf(sets.label_thresholds).all(axis=1).sum()


def test_auto_sets_a_level_for_each_group_of_what_it_chose():
    graph, p, y = world(np.random.default_rng(9), 800)
    calibration, rest = np.arange(0, 800, 2), np.arange(1, 800, 2)
    plain, grouped = (ns.Auto(by=by).calibrate(graph, p, y, calibration=calibration) for by in (None, "class"))
    assert grouped.choice.method.localiser == plain.choice.method.localiser
    assert grouped.choice.method.groups == ns.ByClass()
    assert grouped.predict(rest).label_thresholds is not None


def test_groups_that_learn_need_labels_kept_apart():
    with pytest.raises(InvalidInputError, match="`level` must be exact for a grouping that learns"):
        ns.NAPS(by="clusters")
    assert make_method("split", by="clusters").level == ns.Exact()
    assert make_method("clustered").level == ns.Exact()


def test_a_setting_gives_groups_to_any_method_of_the_table():
    for name in ns.list_methods():
        method = make_method(name, by="degree")
        assert getattr(method, "groups", None) == ns.ByDegree() or method.by == ns.ByDegree()


def test_an_inspected_node_has_a_threshold_for_each_label_where_labels_are_judged_apart():
    graph, p, y = world(np.random.default_rng(11), 200)
    naps = ns.NAPS(hops=2, pool=10.0, by="class").calibrate(graph, p, y, calibration=np.arange(150))
    seen = inspect_node(naps, 160, alpha=0.3)
    assert np.array_equal(seen.member, seen.scores <= seen.label_thresholds)
    assert seen.reason().startswith("Each label is compared with the labelled nodes of its own group of labels")


def test_methods_with_groups_are_compared_and_reported_like_others():
    graph, p, y = world(np.random.default_rng(12), 400)
    calibration, rest = np.arange(0, 400, 2), np.arange(1, 400, 2)
    names = ("split", "by-class", "clustered", "by-degree", "by-community")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)
        comparison = compare(graph, p, y, calibration, rest, methods=names)
        for result in comparison:
            alone = make_method(result.name).calibrate(graph, p, y, calibration).predict(rest, 0.1)
            assert np.array_equal(result.sets.member, alone.member)
    assert {shown.exact for shown in shown_methods(comparison)} == {True}


@pytest.mark.parametrize("exact", [False, True])
def test_small_groups_judged_together_leave_coverage_over_all_as_it_should_be(exact):
    # Half of the nodes are in one easy group, the others in hard groups too small to be judged alone: by all labelled
    # nodes they would be judged too strictly, and coverage over all would be 0.85.
    rng = np.random.default_rng(5)
    size, means = 800, []
    hard = np.arange(size) % 2 == 1
    groups = np.where(hard, 1 + np.arange(size) // 8, 0)
    for draw in range(60):
        right = np.where(hard, rng.beta(2, 3, size), rng.beta(9, 2, size))
        y = (rng.random(size) > 0.5).astype(int)
        p = np.where(np.arange(2) == y[:, None], right[:, None], 1 - right[:, None])
        calibration = rng.random(size) < 0.5
        naps = ns.NAPS(hops=0, pool=1e6, by=groups, exact=exact, score="thr", seed=draw)
        empty = ns.Graph.from_edge_index(np.empty((2, 0), dtype=int), num_nodes=size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)
            sets = naps.calibrate(empty, p, y, calibration=calibration).predict(~calibration, 0.1)
        means.append(sets.contains(y).mean())
    assert ttest_1samp(means, 0.9, alternative="less").pvalue > LEVEL


def test_a_grouping_that_gives_no_groups_is_refused():
    class Odd:
        def fit(self, reference, labels, num_classes):
            return Grouping("node", np.zeros(3, dtype=int))

    _, p, y = world(np.random.default_rng(13), 300)
    with pytest.raises(InvalidInputError, match=r"`by` must give a Grouping .* Odd\.fit gave"):
        ns.SplitConformal(by=Odd()).calibrate(p, y, calibration=np.arange(150))
