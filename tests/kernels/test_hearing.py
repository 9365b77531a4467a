"""Order statistics with scores left out and put in, and scores ranked by label: what sorting all of them gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napsets.kernels import hearing
from napsets.kernels.ordered import OrderedPairs
from napsets.scores.by_label import SHRINK, SLOPE, BoundByLabel

LABELS = 3
#: Few values, so that many are tied.
VALUES = st.sampled_from([0.0, 0.1, 0.25, 0.25 + 2**-40, 0.5, 0.75, 1.0])
SCORED = st.lists(st.tuples(st.integers(0, LABELS - 1), VALUES), min_size=1, max_size=40)


def ordered(pairs, by_label):
    lists = OrderedPairs()
    lists.fill(*np.array([(label if by_label else 0, score) for label, score in pairs], dtype=float).T)
    return lists


def ranking(reference, mix):
    """The ranking of kernels, and the scores of a batch that it stands for."""
    labels, scores = np.array([label for label, _ in reference]), np.array([score for _, score in reference])
    sizes = np.bincount(labels, minlength=LABELS)
    blocks = ordered(reference, by_label=False).blocks, ordered(reference, by_label=True).blocks
    known = hearing.Ranking(*blocks, sizes, np.cumsum(sizes) - sizes, labels.size, mix, SHRINK, SLOPE)

    class Inner:
        probabilities = np.empty((1, LABELS))

        def ranked(self, labels, scores):
            return scores

    if mix < 0:
        return known, lambda labels, scores: scores
    return known, BoundByLabel(Inner(), scores, labels, mix).ranked


@given(SCORED, SCORED, st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
def test_scores_are_ranked_as_in_a_batch(reference, scored, mix):
    known, batch = ranking(reference, mix)
    labels, scores = np.array([label for label, _ in scored]), np.array([score for _, score in scored])
    values = np.empty(scores.size)
    hearing.rank_scores(labels, scores, known, values)
    assert np.array_equal(values, batch(labels, scores))


@given(SCORED, SCORED, st.sampled_from([-1.0, 0.25, 1.0]), st.data())
def test_thresholds_are_those_of_all_scores_sorted_anew(reference, scored, mix, data):
    known, batch = ranking(reference, mix)
    labels, scores = np.array([label for label, _ in scored]), np.array([score for _, score in scored])
    ranked = batch(labels, scores)
    sizes = np.bincount(labels, minlength=LABELS) if mix >= 0 else np.array([labels.size])
    removed = data.draw(st.lists(st.integers(0, scores.size - 1), unique=True, max_size=scores.size - 1))
    entries = st.lists(st.one_of(VALUES, st.just(np.nan)), min_size=len(removed), max_size=len(removed))
    changed = np.array(data.draw(st.lists(entries, min_size=2, max_size=2))).T.reshape(len(removed), 2)
    expected = [
        np.sort(np.concatenate([np.delete(ranked, removed), column[~np.isnan(column)]])) for column in changed.T
    ]
    place = data.draw(st.integers(0, min(map(len, expected)) - 1))
    reach, guess = len(removed) + 2, data.draw(st.floats(-1, 2))
    blocks = ordered(scored, by_label=mix >= 0).blocks
    values, below = hearing.scores_between(place - reach, place + reach, blocks, sizes, known, guess)
    assert np.array_equal(values, np.sort(ranked)[below : below + values.size])
    thresholds = np.empty((1, 2))
    starts = np.array([0, len(removed)])
    hearing.select_changed(values, below, scores.size, np.array([place]), starts, ranked[removed], changed, thresholds)
    assert thresholds[0].tolist() == [column[place] for column in expected]


@given(SCORED, st.data())
def test_pairs_that_come_and_go_together_stay_in_order(pairs, data):
    lists = ordered(pairs, by_label=True)
    new = data.draw(SCORED)
    gone = data.draw(st.lists(st.sampled_from(range(len(pairs))), unique=True))
    lists.add_all(*np.array(new, dtype=float).T)
    lists.remove_all(*np.array([pairs[i] for i in gone], dtype=float).reshape(-1, 2).T)
    left = sorted([pair for i, pair in enumerate(pairs) if i not in gone] + new)
    assert lists.size == len(left)
    for label, score in [*left, (1, 0.3)]:
        assert lists.count(label, score) == sum(pair < (label, score) for pair in left)
        assert lists.count(label, score, after=True) == sum(pair <= (label, score) for pair in left)
