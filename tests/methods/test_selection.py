"""Selection: few of the nodes that are declared to have a label have another, by computed tail probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

import napsets as ns
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone
from napsets.methods import Method
from napsets.scores import THR, Informed
from worlds import guess, weak_model

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


def chance_of(mean, draws, rate):
    """The largest chance of such an average of numbers in [0, 1] whose mean is at most `rate` (Hoeffding, 1963)."""
    if mean <= rate:
        return 1.0
    gain = mean * np.log(mean / rate) + (1 - mean) * np.log((1 - mean) / (1 - rate)) if mean < 1 else -np.log(rate)
    return float(np.exp(-draws * gain))


def false_shares(method, choose, draws, label=1):
    """Draw labels again and again; return the share of false selections in each draw, and how many were selected."""
    rng = np.random.default_rng(3)
    graph, _, labels = weak_model(seed=rng, nodes=400)
    p = guess(labels, 2.0, rng)
    shares, sizes = [], []
    for draw in range(draws):
        known, new = np.split(rng.permutation(labels.size), [200])
        calibrated = Method(*method, seed=draw, groups=choose.groups).calibrate(graph, p, labels, known)
        selected = choose.rows(calibrated.p_values(new), label)
        sizes.append(selected.size)
        shares.append((labels[new[selected]] != label).mean() if selected.size else 0.0)
    return np.array(shares), np.array(sizes)


class Selecting:
    """How rows are selected, and within which groups p-values are valid."""

    def __init__(self, groups=None, **settings):
        self.groups, self.settings = groups, settings

    def rows(self, p_values, label):
        return ns.select(p_values, label, 0.2, **self.settings)


class Mistaken(Selecting):
    """Takes evidence against one of the other labels for evidence against all of them."""

    def rows(self, p_values, label):
        return ns.select(np.delete(p_values, label, axis=1).min(axis=1, keepdims=True).repeat(2, axis=1), 0, 0.2)


SPLIT = THR(), Everyone(), Nominal()
EXACT = Informed(THR()), Everyone(), Exact()


@pytest.mark.parametrize("groups", [None, "class", "degree"])
@pytest.mark.parametrize(("method", "draws"), [(SPLIT, 400), (EXACT, 150)])
def test_few_selected_nodes_have_another_label(method, draws, groups):
    shares, sizes = false_shares(method, Selecting(groups), draws)
    assert sizes.mean() > 5
    assert chance_of(shares.mean(), draws, 0.2) > 1e-4


def test_selection_by_evidence_against_one_other_label_would_be_found_out():
    shares, sizes = false_shares(SPLIT, Mistaken(), 300)
    assert sizes.mean() > 5
    assert chance_of(shares.mean(), 300, 0.2) < 1e-12


def test_the_rate_is_that_of_the_law_where_no_p_value_falls_between_two_steps():
    """With q(n₀+1)/m an integer and no ties, the rate is exactly q·m₀/m (Marandon, Lei, Mary and Roquain, 2024)."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [229, 30])  # 199 of label 0 are known and 30 are not; of label 1, 20 and 10
    score = rng.random(labels.size) + 0.45 * labels
    p = np.column_stack([1.5 - score, score]) / 1.5
    shares = []
    for draw in range(1500):
        known = np.concatenate([rng.permutation(229)[:199], 229 + rng.permutation(30)[:20]])
        new = np.setdiff1d(np.arange(259), known)
        values = ns.SplitConformal(THR(), by="class", seed=draw).calibrate(p, labels, known).p_values(new)
        selected = ns.select(values, label=1, fdr=0.2)
        shares.append((labels[new[selected]] != 1).mean() if selected.size else 0.0)
    assert ttest_1samp(shares, 0.2 * 30 / 40).pvalue > 1e-4


def test_selection_is_benjamini_and_hochbergs():
    rng = np.random.default_rng(0)
    p = rng.random((50, 3))
    p[:10, [0, 2]] *= 0.005
    p[10:15, [0, 2]] *= 0.06
    against = np.maximum(p[:, 0], p[:, 2])
    for dependence, divisor in (("positive", 1.0), ("any", (1 / np.arange(1, 51)).sum())):
        chosen = ns.select(p, 1, 0.2, dependence=dependence)
        counts = [k for k in range(1, 51) if np.sort(against)[k - 1] <= 0.2 / divisor * k / 50]
        assert chosen.size == max(counts)
        assert set(chosen) == set(np.argsort(against)[: max(counts)])
    assert ns.select(p, 1, 0.2, dependence="any").size < ns.select(p, 1, 0.2).size
    assert ns.select(np.ones((4, 2)), 0).size == 0


WRONG = [{"p_values": None}, {"p_values": [0.1]}, {"p_values": [[2.0, 0.1]]}, {"p_values": [[np.nan, 0.1]]}]


@pytest.mark.parametrize("wrong", [*WRONG, {"label": 3}, {"fdr": 2}, {"dependence": "none"}])
def test_what_cannot_be_selected_by_is_refused(wrong):
    with pytest.raises(ns.InvalidInputError):
        ns.select(**({"p_values": np.full((4, 3), 0.5), "label": 1} | wrong))
