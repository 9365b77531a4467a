"""Methods are tried on labels that they have not seen, and no more is claimed than those labels say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napsets.advice import trials as module
from napsets.advice.trials import FOLDS, TRIED, Trial, Trials, fewest, try_methods
from napsets.errors import InvalidInputError
from napsets.methods import make_method
from worlds import draw_world


def drawn(seed: int = 0, *, linked: bool = True, labelled: int = 400) -> dict:
    """Four classes; edges within classes mostly, or at random."""
    inputs = draw_world(seed, 900, 4, 14 * 900 if linked else 5040, other=0.1 if linked else 1.0, labelled=labelled)
    known = np.full(900, -1)
    known[inputs["calibration"]] = inputs["labels"][inputs["calibration"]]
    return {"graph": inputs["graph"], "probabilities": inputs["probabilities"], "labels": known}


@pytest.fixture(scope="module")
def tried() -> Trials:
    return try_methods(**drawn(), seed=1)


def test_sizes_and_coverage_are_those_of_doing_it_by_hand(tried):
    inputs = drawn()
    y = inputs["labels"]
    known = np.flatnonzero(y >= 0)
    fold = np.random.default_rng(1).permutation(known.size) % FOLDS
    for name in ("split", "naps", "informed"):
        sizes, hits = [], []
        for f in range(FOLDS):
            hidden = y.copy()
            hidden[known[fold == f]] = -1  # nobody could look at them
            method = make_method(name, seed=1)
            calibrated = method.calibrate(inputs["graph"], inputs["probabilities"], hidden, known[fold != f])
            sets = calibrated.predict(known[fold == f], 0.1)
            sizes.append(sets.sizes)
            hits.append(sets.contains(y))
        assert tried[name].size == pytest.approx(np.concatenate(sizes).mean())
        assert tried[name].coverage == pytest.approx(np.concatenate(hits).mean())
        over_folds = np.std([part.mean() for part in sizes], ddof=1) / np.sqrt(FOLDS)
        over_nodes = np.concatenate(sizes).std(ddof=1) / np.sqrt(known.size)
        assert tried[name].size_se == pytest.approx(max(over_folds, over_nodes))


def test_where_neighbours_tell_the_label_the_verdict_is_yes(tried):
    assert [trial.method for trial in tried.trials] == list(TRIED)
    assert (tried.verdict, tried.judged, tried.labels) == ("yes", 400, 400)
    assert tried.method in ("auto", "informed")
    assert tried[tried.method].smaller
    assert tried["split"].difference == tried["split"].difference_se == 0.0
    assert [choice.prefer for choice in tried.choices] == ["even", "small"]
    assert any("held-out labels" in reason for reason in tried.reasons())
    assert tried.choices[0].reason in " ".join(tried.reasons())


@pytest.mark.parametrize("seed", range(3))
def test_edges_that_know_nothing_make_no_method_of_neighbourhoods_better(seed):
    trials = try_methods(**drawn(seed, linked=False))
    assert not any(trials[name].smaller for name in ("naps", "naps-exact", "informed"))
    assert (trials.verdict == "yes") == trials["auto"].smaller  # whose sets are made smaller in other ways too


def test_a_label_that_judges_changes_no_set_that_it_judges():
    inputs = drawn(labelled=120)
    before = try_methods(**inputs)
    y = inputs["labels"]
    known = np.flatnonzero(y >= 0)
    fold = np.random.default_rng(0).permutation(known.size) % FOLDS
    seen = []

    def remember(name, settings):
        method = make_method(name, settings)

        class Watched:
            def fit(self, rest):
                seen.append(rest.calibration)
                return method.fit(rest)

        return Watched()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "make_method", remember)
        again = try_methods(**inputs)
    assert again.row() == before.row()
    for call, calibration in enumerate(seen):
        assert calibration.tolist() == known[fold != call // len(TRIED)].tolist()


def test_too_few_labels_are_said_to_be():
    trials = try_methods(**drawn(labelled=99))
    assert not trials.enough
    assert (trials.verdict, trials.method, trials.trials) == ("maybe", "split", ())
    assert "99 labels are too few to try methods on them: alpha = 0.1 needs 100" in trials.reasons()[0]
    assert not try_methods(**drawn(labelled=180), alpha=0.01).enough
    assert fewest(0.1) == 100
    assert fewest(0.01) == 186


def test_only_so_many_labels_of_a_fold_judge(monkeypatch):
    monkeypatch.setattr(module, "_JUDGED", 30)
    monkeypatch.setattr(module, "TRIED", ("split", "informed"))
    assert try_methods(**drawn()).judged == 150


def test_progress_is_told_and_ends():
    reports = []
    try_methods(**drawn(labelled=100), progress=lambda done, total: reports.append((done, total)))
    assert reports == [(k, FOLDS * len(TRIED)) for k in range(1, FOLDS * len(TRIED) + 1)]


def trial(method: str, size: float, coverage: float = 0.9, se: float = 0.01) -> Trial:
    return Trial(method, method, size, se, coverage, se, 0.0, size - 2.0, se, 0.9)


@pytest.mark.parametrize(
    ("sizes", "verdict", "method"),
    [
        ({"naps": 2.5, "informed": 1.5, "auto": 1.5}, "yes", "auto"),
        ({"naps": 2.5, "informed": 1.3, "auto": 1.5}, "yes", "informed"),
        ({"naps": 1.5, "informed": 2.3, "auto": 2.0}, "yes", "naps"),
        ({"naps": 2.5, "informed": 2.01, "auto": 2.01}, "maybe", "split"),
        ({"naps": 2.5, "informed": 1.99, "auto": 1.99}, "maybe", "split"),
        ({"naps": 1.99, "informed": 2.5, "auto": 2.5}, "maybe", "split"),
        ({"naps": 2.5, "informed": 2.5, "auto": 2.5}, "no", "split"),
        ({"naps": 2.5, "informed": 2.5, "auto": 2.5, "auto-small": 1.0}, "no", "split"),
    ],
)
def test_the_verdict_and_the_method_follow_from_the_trials(sizes, verdict, method):
    trials = (trial("split", 2.0), *(trial(name, size) for name, size in sizes.items()))
    outcome = Trials(trials, (), 0.1, 500, 500, 100)
    assert (outcome.verdict, outcome.method) == (verdict, method)


def test_sets_that_do_not_cover_speak_for_nothing():
    short = trial("naps", 1.0, coverage=0.8)
    assert short.falls_short
    trials = Trials((trial("split", 2.0), short), (), 0.1, 500, 500, 100)
    assert (trials.verdict, trials.method) == ("no", "split")
    assert "none of the methods that use neighbourhoods reaches the target" in trials.reasons()[0]
    assert trials.reasons()[1] == "Below the target of 90 %: naps covers 80.0 % ± 1.0 %."
    full = Trials((trial("split", 2.0), replace(trial("naps", 2.0), full=0.4)), (), 0.1, 500, 500, 100)
    assert full.reasons()[-1] == "Full sets carry no information: naps gives every label to 40 % of the nodes."
    with pytest.raises(KeyError):
        trials["auto"]


def test_bad_arguments_are_named():
    inputs = drawn(labelled=100)
    with pytest.raises(InvalidInputError, match="`labels` must have at least one known label"):
        try_methods(**(inputs | {"labels": np.full(900, -1)}))
    with pytest.raises(InvalidInputError, match="`probabilities`"):
        try_methods(**(inputs | {"probabilities": inputs["probabilities"][:5]}))
    with pytest.raises(InvalidInputError, match="`alpha`"):
        try_methods(**inputs, alpha=0)
