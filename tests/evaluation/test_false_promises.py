"""Labels that are not a random sample, or that the model was trained on, withdraw the promise; random ones do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom

import napsets as ns
from napsets.evaluation.comparison import compare
from napsets.evaluation.drift import ALARM, accuracy_on, drifts
from napsets.evaluation.kinds import INTERVALS, SETS
from napsets.evaluation.verdict import Verdict, foresee
from worlds import amazon_by_heart, make_numbers


def judged(labelled: str, method: str = "split") -> tuple[Verdict, float]:
    """The verdict on predictions of all nodes of which no label is known, and their true coverage."""
    world = amazon_by_heart()
    calibrated = ns.make_method(method).calibrate(world["graph"], world["outputs"], world["labels"], world[labelled])
    nodes = np.setdiff1d(world["rest"], world[labelled])
    sets = calibrated.predict(nodes)
    verdict = foresee(
        calibrated, method, alpha=0.1, nodes=nodes, size=ns.mean_size(sets), infinite=0, outputs=world["outputs"]
    )
    return verdict, ns.coverage(sets, world["labels"])


@pytest.mark.parametrize("method", ["split", "informed", "thr"])
def test_labels_that_the_model_was_trained_on_withdraw_the_promise(method: str) -> None:
    verdict, coverage = judged("train", method)
    assert coverage < 0.8
    assert verdict.lines[0].startswith(
        "No promise of coverage can be made: the model finds the labelled nodes easier than the predicted nodes. The "
        "average top probability is "
    )
    assert "It was probably trained on them: it is right for 100.0 % of them" in verdict.lines[0]
    assert "guaranteed" not in str(verdict)
    assert "Coverage: not known" in str(verdict)


@pytest.mark.parametrize("method", ["split", "thr"])
def test_labels_of_the_confident_half_withdraw_the_promise(method: str) -> None:
    verdict, coverage = judged("confident", method)
    assert coverage < verdict.band[0]
    assert verdict.lines[0].startswith("No promise of coverage can be made: the model finds the labelled nodes easier")
    assert "guaranteed" not in str(verdict)


@pytest.mark.parametrize("instead", [False, True], ids=["added", "instead"])
def test_edges_between_nodes_of_one_known_label_are_not_taken_for_easy_nodes(instead: bool) -> None:
    """Labels of the neighbours then tell the truth about labelled nodes alone, and auto trusts them too much."""
    world, rng = amazon_by_heart(), np.random.default_rng(0)
    labels, some = world["labels"], np.sort(rng.choice(world["rest"], 1500, replace=False))
    graph = world["graph"]
    ends = np.stack([np.repeat(np.arange(graph.num_nodes), graph.degrees), graph.indices])
    if instead:
        ends = ends[:, ~np.isin(ends, some).any(axis=0)]
    same = [rng.choice(some[labels[some] == y], (2, 10 * (labels[some] == y).sum())) for y in range(labels.max() + 1)]
    built = ns.Graph.from_edge_index(np.concatenate([ends, *same], axis=1), graph.num_nodes)
    auto, nodes = ns.Auto().calibrate(built, world["outputs"], labels, some), np.setdiff1d(world["rest"], some)
    assert ns.coverage(auto.predict(nodes), labels) < 0.87
    verdict = auto.verdict(nodes)
    assert verdict.withdrawn
    assert "finds the predicted nodes easier" not in str(verdict)
    kinds = {finding.kind for finding in verdict.findings}
    assert kinds & {"other neighbours", "easier labelled nodes"}, kinds


def test_random_labels_keep_it() -> None:
    verdict, coverage = judged("random")
    assert verdict.withdrawn == ""
    assert abs(coverage - 0.9) < 0.02
    assert "guaranteed if the nodes were labelled at random" in verdict.certainty


def test_a_report_withdraws_it_too_where_other_nodes_have_no_label() -> None:
    world = amazon_by_heart()
    labels = np.full(world["labels"].size, -1)
    labels[world["train"]] = world["labels"][world["train"]]
    half = world["train"].size // 2
    order = np.random.default_rng(1).permutation(world["train"])
    verdict = compare(
        world["graph"], world["outputs"], labels, order[:half], order[half:], methods=("split",)
    ).verdict()
    assert verdict.coverage > 0.85
    assert verdict.lines[0].startswith("No promise of coverage can be made: ")


def test_random_labels_raise_no_more_false_alarms_than_promised() -> None:
    world = amazon_by_heart()
    rng, alarms, draws = np.random.default_rng(2), 0, 60
    predicted = SETS.predicted(None, world["outputs"])
    for size in (60, 300, 3000):
        for _ in range(draws):
            labelled = rng.choice(world["rest"], size, replace=False)
            nodes = np.setdiff1d(world["rest"], labelled)
            looks = drifts(world["graph"], predicted, labelled, nodes, outputs=world["outputs"])
            assert len(looks) == 4
            alarms += any(look.matters(len(looks)) for look in looks)
    assert binom.sf(alarms - 1, 3 * draws, ALARM) > 1e-3


def test_p_values_of_confidence_and_agreement_are_those_of_chance() -> None:
    rng = np.random.default_rng(3)
    outputs = rng.dirichlet(np.full(4, 0.5), size=1500)
    graph = ns.Graph.from_edge_index(rng.integers(1500, size=(2, 6000)), num_nodes=1500)
    predicted, draws = outputs.argmax(axis=1), 400
    p_values = []
    for _ in range(draws):
        order = rng.permutation(1500)
        looks = drifts(graph, predicted, order[:250], order[250:], outputs=outputs)
        p_values.append([look.p_value for look in looks[2:]])
    for column in np.array(p_values).T:
        for level in (0.05, 0.2, 0.5):
            rejected = int((column < level).sum())
            assert binom.sf(rejected - 1, draws, level) > 1e-3
            assert binom.cdf(rejected, draws, level) > 1e-3


def test_predicted_nodes_that_are_easier_are_warned_of_but_withdraw_nothing() -> None:
    world = amazon_by_heart()
    calibrated = ns.make_method("split").calibrate(
        world["graph"], world["outputs"], world["labels"], np.sort(world["random"])
    )
    verdict = foresee(
        calibrated, "split", alpha=0.1, nodes=world["train"], size=1.0, infinite=0, outputs=world["outputs"]
    )
    easier = [text for text in verdict.warnings if "finds the predicted nodes easier than the labelled nodes" in text]
    assert "leave those out of `predict(nodes)`" in easier[0]
    assert verdict.withdrawn == ""


def test_a_model_that_is_right_more_often_than_it_promises_is_suspected() -> None:
    rng = np.random.default_rng(4)
    outputs = np.tile([0.8, 0.2], (500, 1))
    honest = accuracy_on(SETS, outputs, (rng.random(500) > 0.8).astype(np.int64))
    assert honest is not None
    assert not honest.too_good
    trained = accuracy_on(SETS, outputs, np.zeros(500, dtype=np.int64))
    assert trained is not None
    assert trained.too_good
    assert trained.p_value == pytest.approx(0.8**500)
    assert accuracy_on(INTERVALS, outputs, np.zeros(500)) is None


@pytest.mark.parametrize("predictor", [ns.SplitConformal(), ns.NAPS(score="informed", exact=True), ns.Auto()])
def test_the_model_is_judged_by_what_it_said_and_not_by_what_evidence_made_of_it(predictor) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=600)
    same = rng.integers(600, size=(2, 6000))
    same = same[:, labels[same[0]] == labels[same[1]]]
    probabilities = np.full((600, 3), 0.25)
    probabilities[np.arange(600), labels] = 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        calibrated = predictor.calibrate(ns.Graph.from_edge_index(same, 600), probabilities, labels, np.arange(300))
        verdict = calibrated.verdict(alpha=0.1)
    assert any("though its probabilities promise 50.0" in text for text in verdict.warnings), verdict.warnings


def test_narrow_intervals_of_labelled_nodes_withdraw_the_promise_of_numbers() -> None:
    world = make_numbers()
    outputs = world["outputs"].copy()
    outputs[world["calibration"]] = outputs[world["calibration"]].mean(axis=1, keepdims=True) + np.array([-0.1, 0.1])
    calibrated = ns.make_method("split", score="cqr").calibrate(
        world["graph"], outputs, world["targets"], world["calibration"]
    )
    verdict = foresee(calibrated, "split", alpha=0.1, nodes=world["nodes"], size=1.0, infinite=0, outputs=outputs)
    assert "The average width that the model gives is 0.2" in verdict.lines[0]


@pytest.mark.parametrize("power", [0.3, 1.0, 4.0], ids=["cautious", "as trained", "too sure"])
@pytest.mark.parametrize("mixed", [0.1, 0.3, 0.6])
def test_labels_mixed_into_the_probabilities_of_labelled_nodes_withdraw_the_promise(mixed: float, power: float) -> None:
    world = amazon_by_heart()
    some = np.random.default_rng(3).choice(world["rest"], 600, replace=False)
    outputs = np.maximum(world["outputs"], 1e-6) ** power
    outputs /= outputs.sum(axis=1, keepdims=True)
    honest = ns.make_method("split").calibrate(world["graph"], outputs, world["labels"], some)
    nodes = np.setdiff1d(world["rest"], some)
    assert honest.verdict(nodes).withdrawn == ""
    outputs[some] *= 1.0 - mixed
    outputs[some, world["labels"][some]] += mixed
    calibrated = ns.make_method("split").calibrate(world["graph"], outputs, world["labels"], some)
    assert ns.coverage(calibrated.predict(nodes), world["labels"]) < 0.88
    verdict = calibrated.verdict(nodes)
    assert verdict.findings[0].kind == "leaked labels"
    accuracy = verdict.findings[0].numbers["accuracy"]
    assert accuracy.least == outputs[some, world["labels"][some]].min()
    assert accuracy.share == (outputs[some].argmax(axis=1) == world["labels"][some]).mean()
    assert "guaranteed" not in str(verdict)


@pytest.mark.parametrize("power", [0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("smoothed", [0.0, 0.3])
def test_random_labels_of_models_that_claim_too_little_or_too_much_leak_nothing(power: float, smoothed: float) -> None:
    world, rng = amazon_by_heart(), np.random.default_rng(7)
    outputs = np.maximum(world["outputs"], 1e-9) ** power
    outputs /= outputs.sum(axis=1, keepdims=True)
    outputs = (1.0 - smoothed) * outputs + smoothed / outputs.shape[1]
    for size in (100, 300, 1000):
        for _ in range(10):
            some = rng.choice(world["rest"], size, replace=False)
            others = np.setdiff1d(world["rest"], some)
            looks = drifts(world["graph"], outputs.argmax(axis=1), some, others, score=ns.APS(), outputs=outputs)
            accuracy = accuracy_on(SETS, outputs[some], world["labels"][some], outputs[others], looks)
            assert accuracy is not None
            assert not accuracy.leaked
