"""Order statistics with scores left out and put in, and scores ranked by label: what sorting all of them gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napsets.kernels import ranked as kernels
from napsets.kernels.growing import OrderedPairs, move_pair
from napsets.kernels.layout import read_only
from napsets.live.labelled_nodes import ScoreLists
from napsets.scores.by_label import SHRINK, SLOPE, BoundByLabel
from strategies import generators

LABELS = 3
#: Few values, so that many are tied.
VALUES = [0.0, 0.1, 0.25, 0.25 + 2**-40, 0.5, 0.75, 1.0]


@st.composite
def pairs_of_scores(draw):
    """Pairs of a label and a score."""
    rng, size = draw(generators), draw(st.integers(1, 40))
    return list(zip(rng.integers(LABELS, size=size).tolist(), rng.choice(VALUES, size).tolist(), strict=True))


SCORED = pairs_of_scores()


def ordered(pairs, by_label):
    lists = OrderedPairs()
    lists.fill(*np.array([(label if by_label else 0, score) for label, score in pairs], dtype=float).T)
    return lists


def ranking(reference, mix):
    """The ranking of kernels, and the scores of a batch that it stands for."""
    labels, scores = np.array([label for label, _ in reference]), np.array([score for _, score in reference])
    sizes = np.bincount(labels, minlength=LABELS)
    blocks = ordered(reference, by_label=False).blocks, ordered(reference, by_label=True).blocks
    known = kernels.Ranking(*blocks, sizes, np.cumsum(sizes) - sizes, labels.size, mix, SHRINK, SLOPE)

    class Inner:
        probabilities = np.empty((1, LABELS))

        def ranked(self, labels, scores):
            return scores

        def unranked(self, label, values):
            return values, values

    if mix < 0:
        return known, lambda labels, scores: scores
    return known, BoundByLabel(Inner(), scores, labels, mix).ranked


@given(SCORED, SCORED, st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
def test_scores_are_ranked_as_in_a_batch(reference, scored, mix):
    known, batch = ranking(reference, mix)
    labels, scores = np.array([label for label, _ in scored]), np.array([score for _, score in scored])
    values = np.empty(scores.size)
    kernels.rank_scores(read_only(labels), scores, known, values)
    assert np.array_equal(values, batch(labels, scores))


@given(SCORED, st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=5), st.sampled_from([0.25, 1.0]))
def test_scores_ranked_at_a_value_lie_between_those_of_a_batch(reference, values, mix):
    known, batch = ranking(reference, mix)
    bounds = np.empty((LABELS, 2, len(values)))
    kernels.unrank(np.array(values), known, bounds)
    for label in range(LABELS):
        assert np.array_equal(bounds[label], batch.__self__.unranked(label, np.array(values)))


@given(SCORED, SCORED, st.sampled_from([-1.0, 0.25, 1.0]), generators)
def test_thresholds_are_those_of_all_scores_sorted_anew(reference, scored, mix, rng):
    known, batch = ranking(reference, mix)
    labels, scores = np.array([label for label, _ in scored]), np.array([score for _, score in scored])
    ranked = batch(labels, scores)
    sizes = np.bincount(labels, minlength=LABELS) if mix >= 0 else np.array([labels.size])
    removed = rng.permutation(scores.size)[: rng.integers(scores.size)]
    changed = rng.choice([*VALUES, np.nan], (removed.size, 2))
    expected = [
        np.sort(np.concatenate([np.delete(ranked, removed), column[~np.isnan(column)]])) for column in changed.T
    ]
    place = int(rng.integers(min(map(len, expected))))
    reach, guess = removed.size + 2, float(rng.uniform(-1, 2))
    blocks = ordered(scored, by_label=mix >= 0).blocks
    ends = rng.integers(41, size=(2, LABELS))
    values, below = kernels.scores_between(place - reach, place + reach, blocks, sizes, known, guess, ends)
    assert np.array_equal(values, np.sort(ranked)[below : below + values.size])
    thresholds = np.empty((1, 2))
    starts = np.array([0, removed.size])
    kernels.select_changed(values, below, scores.size, np.array([place]), starts, ranked[removed], changed, thresholds)
    assert thresholds[0].tolist() == [column[place] for column in expected]


def test_scores_that_move_within_and_between_blocks_stay_in_order():
    rng, pairs = np.random.default_rng(0), OrderedPairs()
    first, second = rng.integers(3, size=2000).astype(float), rng.integers(300, size=2000).astype(float)
    pairs.fill(first, second)
    for i in rng.integers(2000, size=3000):
        new = float(rng.integers(300) if rng.random() < 0.3 else second[i] + rng.integers(-3, 4))
        assert move_pair(pairs.blocks, first[i], second[i], new)
        second[i] = new
    blocks = pairs.blocks
    listed = [
        (blocks.first[block, place], blocks.second[block, place])
        for block in range(blocks.used[0])
        for place in range(blocks.sizes[block])
    ]
    assert listed == sorted(zip(first, second, strict=True))


@given(SCORED, generators, st.booleans())
def test_scores_that_are_replaced_stay_in_order(scored, rng, by_label):
    lists = ScoreLists(LABELS, 0.5 if by_label else -1.0)
    codes = [label + 1 if rng.random() < 0.5 else -label - 1 for label, _ in scored]
    now = np.array([score for _, score in scored])
    lists.replace(np.array(codes, dtype=np.int32), np.full(now.size, np.nan), now)
    for _ in range(3):
        some = rng.permutation(now.size)[: rng.integers(now.size + 1)]
        new = rng.choice([*VALUES, np.nan], some.size)
        lists.replace(np.array(codes, dtype=np.int32)[some], now[some], new)
        now[some] = new
    listed = [(code, score) for code, score in zip(codes, now, strict=True) if not np.isnan(score)]
    for pairs, kept, grouped in (
        (lists.everyone, [(code - 1, score) for code, score in listed if code > 0], False),
        (lists.own, [(code - 1, score) for code, score in listed if code > 0 and by_label], True),
        (lists.held_out, [(-code - 1, score) for code, score in listed if code < 0], by_label),
    ):
        kept = [(label if grouped else 0, score) for label, score in kept]
        assert pairs.size == len(kept)
        for label, score in [*kept, (1, 0.3)]:
            assert pairs.count(label, score) == sum(pair < (label, score) for pair in kept)
            assert pairs.count(label, score, after=True) == sum(pair <= (label, score) for pair in kept)
    if by_label:
        sizes = np.bincount([code - 1 for code, _ in listed if code > 0], minlength=LABELS)
        assert lists.sizes.tolist() == sizes.tolist()
        assert lists.before.tolist() == (np.cumsum(sizes) - sizes).tolist()
