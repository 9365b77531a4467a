"""How many labels coverage needs: the law of coverage, asked the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import napsets as ns


def kept(labels, alpha, within):
    """P(|coverage − (1 − alpha)| ≤ within), one number of labels at a time."""
    place = int(np.ceil(round((1 - alpha) * (labels + 1), 9)))
    law = stats.beta(place, labels + 1 - place)
    return law.cdf(min(1.0, 1 - alpha + within)) - law.cdf(max(0.0, 1 - alpha - within))


@given(
    st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.5]),
    st.sampled_from([0.02, 0.03, 0.05, 0.2]),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_from_the_answer_on_coverage_is_kept_and_with_one_label_less_it_is_not(alpha, within, confidence):
    needed = ns.labels_needed(alpha, within, confidence)
    assert all(kept(n, alpha, within) >= confidence for n in range(needed, needed + 60))
    fewest = int(np.ceil(round((1 - alpha) / alpha, 9)))
    assert needed == fewest or kept(needed - 1, alpha, within) < confidence


def test_coverage_of_split_conformal_prediction_is_kept_as_often_as_promised():
    """Of 2,000 draws of labels: a binomial tail, since draws are independent."""
    alpha, within = 0.1, 0.04
    labels = ns.labels_needed(alpha, within, 0.95)
    rng = np.random.default_rng(0)
    place = int(np.ceil((1 - alpha) * (labels + 1)))
    # Scores are uniform, so that the coverage of a threshold is the threshold itself.
    coverage = np.sort(rng.random((2000, labels)), axis=1)[:, place - 1]
    hits = int((abs(coverage - 0.9) <= within).sum())
    assert stats.binom.cdf(hits, 2000, 0.95) > 1e-4
    assert stats.binom.sf(hits - 1, 2000, 0.953) > 1e-4  # and hardly more often: the answer is the smallest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 90}, "`alpha` must lie strictly between 0 and 1; got 90"),
        ({"within": 0.0}, "`within` must lie strictly between 0 and 1; got 0"),
        ({"confidence": 1.0}, "`confidence` must lie strictly between 0 and 1; got 1"),
        ({"within": 1e-5}, "`within` must allow for an answer below 3,333,333; got 1e-05"),
    ],
)
def test_what_cannot_be_answered_is_refused(arguments, message):
    with pytest.raises(ns.InvalidInputError) as error:
        ns.labels_needed(**arguments)
    assert str(error.value) == message
