"""Auto chooses by evidence, on reference labels alone, and keeps to the simple where there is none."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.levels import Exact, rank_place
from napsets.localisers import Everyone
from napsets.methods import Auto
from napsets.methods.auto import FEWEST, MANY, reference_share
from napsets.scores import ByLabel, Informed
from worlds import block_model


def drawn(same, nodes=3000, seed=0, strength=1.2):
    """A block model of four classes, and its nodes in random order."""
    graph, p, labels = block_model(same, nodes, classes=4, degree=10, seed=seed, strength=strength)
    return graph, p, labels, np.random.default_rng([seed, 1]).permutation(nodes)


def calibrated(inputs, labelled=900, **settings):
    graph, p, labels, order = inputs
    return ns.Auto(**settings).calibrate(graph, p, labels, order[:labelled]), order[labelled:], labels


def test_a_homophilous_graph_is_used_and_sets_become_much_smaller():
    inputs = drawn(0.8)
    auto, nodes, labels = calibrated(inputs)
    sets = auto.predict(nodes)
    split = ns.SplitConformal().calibrate(inputs[1], labels, inputs[3][:900]).predict(nodes)
    assert ns.mean_size(sets) < 0.8 * ns.mean_size(split)
    assert ns.coverage(sets, labels) > 0.87
    assert auto.choice.exponents.near > 0
    assert "the strongest evidence: labels that a random walk meets (451 labels)" in str(auto.choice)
    assert re.search(r"labels of neighbours +\+0\.\d+  × 1\.\d", auto.choice.table())
    first, *lines = auto.choice.table().splitlines()
    assert first.startswith("Step 1, score: expected average size (")
    assert any(line.startswith("Step 2, thresholds: pinball loss") for line in lines)
    assert sum(line.startswith(" → ") for line in lines) == 2
    assert lines[-1] == f"Chosen: {auto.choice}."


def test_heterophily_is_found_as_negative_evidence():
    inputs = drawn(0.0)
    auto, nodes, labels = calibrated(inputs)
    assert auto.choice.exponents.near < 0
    assert "labels of neighbours (451 labels, each of which multiplies its odds by 0.04" in auto.choice.reason
    split = ns.SplitConformal().calibrate(inputs[1], labels, inputs[3][:900]).predict(nodes)
    assert ns.mean_size(auto.predict(nodes)) < 0.95 * ns.mean_size(split)
    homophilous, _, _ = calibrated(drawn(0.8))
    assert homophilous.choice.exponents.near > 0
    assert "every other" not in homophilous.choice.name


@pytest.mark.parametrize("seed", range(4))
def test_on_random_edges_thresholds_do_not_depend_on_the_neighbourhood(seed):
    auto, _, _ = calibrated(drawn(None, seed=seed), seed=seed)
    assert auto.choice.method.localiser == Everyone()
    assert "no significant gain" in auto.choice.reason


def regions(nodes=4000, seed=2):
    """A ring of towns, half of it hard; roads within a half are short, and chance ones across as long as they come."""
    rng = np.random.default_rng(seed)
    hard = np.arange(nodes) < nodes // 2
    ends = rng.integers(nodes, size=(2, 8 * nodes))
    lengths = np.where(hard[ends[0]] == hard[ends[1]], 0.1, 10.0) * rng.uniform(0.5, 1.5, 8 * nodes)
    labels = rng.integers(6, size=nodes)
    p = np.full((nodes, 6), 0.02)
    p[np.arange(nodes), labels] = 0.9
    wrong = hard & (rng.random(nodes) < 0.5)
    p[wrong] = np.roll(p[wrong], 1, axis=1)
    return ends, lengths, p, labels, rng.permutation(nodes)[:2000]


def test_path_lengths_are_tried_where_edges_have_lengths_and_only_there():
    ends, lengths, p, labels, labelled = regions()
    near = ns.Auto().calibrate(ns.Graph.from_edge_index(ends, 4000, lengths=lengths), p, labels, labelled)
    assert isinstance(near.choice.method.localiser, ns.PathLengths)
    assert "paths up to" in near.choice.name
    assert sum("paths up to" in one.name for one in near.choice.candidates) == 6
    plain = ns.Auto().calibrate(ns.Graph.from_edge_index(ends, 4000), p, labels, labelled)
    assert not any("paths" in one.name for one in plain.choice.candidates)


def test_regions_of_unequal_difficulty_are_found_by_the_localiser():
    rng = np.random.default_rng(2)
    n = 4000
    hard = np.arange(n) < n // 2
    ends = rng.integers(n, size=(2, 40 * n))
    graph = ns.Graph.from_edge_index(ends[:, hard[ends[0]] == hard[ends[1]]][:, : 8 * n], num_nodes=n)
    labels = rng.integers(6, size=n)
    p = np.full((n, 6), 0.02)
    p[np.arange(n), labels] = 0.9
    wrong = hard & (rng.random(n) < 0.5)
    p[wrong] = np.roll(p[wrong], 1, axis=1)
    auto = ns.Auto().calibrate(graph, p, labels, rng.permutation(n)[:2000])
    assert "hop" in auto.choice.name
    chosen = [one for one in auto.choice.candidates if one.step == "localiser" and one.chosen]
    assert chosen[0].difference < -2 * chosen[0].se


@pytest.mark.parametrize("prefer", ["even", "small"])
def test_few_labels_are_not_split_and_it_says_so(prefer):
    inputs = drawn(0.8)
    auto, nodes, labels = calibrated(inputs, labelled=FEWEST - 1, prefer=prefer)
    assert auto.choice.method.localiser == Everyone()
    assert not auto.is_exact
    assert "too few to choose by" in auto.choice.reason
    score = "aps" if prefer == "even" else "thr"
    split = ns.SplitConformal(score).calibrate(inputs[1], labels, inputs[3][: FEWEST - 1]).predict(nodes)
    assert np.array_equal(auto.predict(nodes).member, split.member)


def test_a_small_alpha_needs_more_labels_before_any_is_kept_apart():
    inputs = drawn(0.8)
    few, nodes, _ = calibrated(inputs, labelled=150, alpha=0.01)
    assert not few.is_exact
    assert "from 199 on they would be enough" in few.choice.reason
    assert few.predict(nodes).infinite == 0
    enough, nodes, _ = calibrated(inputs, labelled=199, alpha=0.01)
    assert enough.is_exact
    assert enough.predict(nodes).infinite == 0
    small, nodes, _ = calibrated(inputs, labelled=199, alpha=0.01, prefer="small")
    assert small.is_exact
    assert small.predict(nodes).infinite == 0


@given(st.integers(FEWEST, MANY - 1), st.sampled_from([0.05, 0.1, 0.2, 0.3]), st.sampled_from([50, 65]))
def test_about_a_share_of_few_labels_is_held_out_and_no_other_number_near_it_covers_less_in_excess(
    labels, alpha, about
):
    held_out = labels - Exact(reference_share(labels, alpha, about=about / 100)).reference_size(labels)
    near = range(-(-(95 - about) * labels // 100), (105 - about) * labels // 100 + 1)
    assert held_out in near
    excess = [rank_place(size, alpha) / (size + 1) for size in near]
    assert rank_place(held_out, alpha) / (held_out + 1) == min(excess)
    if alpha >= 0.1:
        assert min(excess) == pytest.approx(1 - alpha, abs=1e-12)
    assert reference_share(MANY, alpha) == 0.5


@pytest.mark.parametrize("labelled", [100, 200, 300])
def test_with_few_labels_that_say_nothing_sets_are_hardly_larger_than_those_of_split_aps(labelled):
    excess = []
    for draw in range(24):
        graph, p, labels, order = drawn(None, nodes=600, seed=draw)
        known, nodes = np.split(order, [labelled])
        auto = ns.Auto(seed=draw).calibrate(graph, p, labels, known)
        split = ns.SplitConformal(seed=draw).calibrate(p, labels, known)
        excess.append(ns.mean_size(auto.predict(nodes)) - 1.02 * ns.mean_size(split.predict(nodes, alpha=0.1)))
    error = np.std(excess, ddof=1) / np.sqrt(len(excess))
    assert np.mean(excess) <= 2 * error  # 96 draws of 100 labels on 8 graphs gave a ratio of 1.028 ± 0.012


def test_small_sets_keep_to_the_model_where_evidence_would_make_them_larger():
    for seed in range(6):
        auto, _, _ = calibrated(drawn(None, seed=seed, strength=3.0), labelled=110, prefer="small")
        plain, informed = (one.value for one in auto.choice.candidates if one.step == "score")
        assert (auto.choice.exponents is None) == (informed > 1.01 * plain)


def test_judging_by_label_gives_what_scoring_anew_would_give():
    graph, p, labels, order = drawn(0.8)
    auto = Auto(seed=2).calibrate(graph, p, labels, order[:1500])
    again = auto.method.calibrate(graph, p, labels, order[:1500])
    assert np.array_equal(auto.predict(order[1500:]).thresholds, again.predict(order[1500:]).thresholds)
    assert np.array_equal(auto.predict(order[1500:]).member, again.predict(order[1500:]).member)


def test_small_sets_are_smaller_than_even_ones():
    inputs = drawn(0.7)
    even, nodes, labels = calibrated(inputs)
    small, _, _ = calibrated(inputs, prefer="small")
    assert ns.mean_size(small.predict(nodes)) < ns.mean_size(even.predict(nodes))
    assert ns.coverage(small.predict(nodes), labels) > 0.87


def test_with_many_labels_classes_are_judged_by_their_own_kind_where_that_costs_nothing():
    auto, _, _ = calibrated(drawn(0.8), labelled=1500)
    score = auto.choice.method.score
    assert isinstance(score, ByLabel)
    assert isinstance(score.base, Informed)


def test_the_choice_can_be_read_as_text_table_and_html():
    auto, _, _ = calibrated(drawn(0.8))
    choice = auto.choice
    assert repr(choice) == f"Choice({choice})"
    assert str(choice).startswith(choice.name)
    rows = choice.rows()
    assert sum(row["chosen"] for row in rows) == 2
    assert {row["step"] for row in rows} == {"score", "localiser"}
    html = choice._repr_html_()
    kinds = ["model", "around", "near", "alike", "wide"]
    assert [piece.kind for piece in choice.evidence] == kinds
    assert choice.evidence[2].odds > 1
    assert html.count("<tr>") == len(rows) + 2 + 6  # a head for each of the two steps, and the kinds of evidence
    assert "→" in html


def test_settings_are_checked():
    for settings, message in [
        ({"prefer": "tiny"}, "`prefer` must be one of even, small; got 'tiny'"),
        ({"alpha": 2}, "`alpha` must"),
        ({"max_hops": 9}, "`max_hops` must be at most 4; got 9"),
    ]:
        with pytest.raises(ns.InvalidInputError, match=message):
            ns.Auto(**settings)
    with pytest.raises(ns.NotCalibratedError, match="what calibrate"):
        ns.Auto().predict([0])
