"""Evidence in comparisons and verdicts: only the labels that set the level are judged to be a random sample or not."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import compare
from napsets.evaluation.verdict import foresee
from napsets.levels import falls_short
from oracles import same_bits
from worlds import amazon_by_heart, make_ring

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


def divided(labelled: str, count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some labelled nodes as evidence, a random sample of the others, and the rest of those."""
    world = amazon_by_heart()
    others = np.random.default_rng(5).permutation(np.setdiff1d(world["rest"], world[labelled]))
    return world[labelled], np.sort(others[:count]), np.sort(others[count:])


@pytest.mark.parametrize("name", ["informed", "naps-exact"])
def test_labels_that_withdraw_the_promise_as_calibration_keep_it_as_evidence(name: str) -> None:
    world = amazon_by_heart()
    biased, random, rest = divided("confident")
    arrays = world["graph"], world["outputs"], world["labels"]
    method = ns.make_method(name)
    alone = method.calibrate(*arrays, biased)
    broken = foresee(alone, name, alpha=0.1, nodes=rest, size=1.0, infinite=0, outputs=world["outputs"])
    assert broken.withdrawn
    assert broken.lines[1] == (
        "What to do: label a few hundred nodes drawn at random among those without a label, and pass these as "
        "`calibration=` and the labels that you have as `evidence=`."
    )
    calibrated = method.calibrate(*arrays, random, evidence=biased)
    verdict = foresee(calibrated, name, alpha=0.1, nodes=rest, size=1.0, infinite=0, outputs=world["outputs"])
    assert verdict.withdrawn == verdict.remedy == ""
    assert "guaranteed if the calibration nodes were drawn at random: 400 labels set the level" in verdict.certainty
    assert verdict.cost == "none; 3,000 labels are evidence, and all 400 calibration labels set the level"
    hits, before = (int(one.predict(rest, 0.1).contains(world["labels"]).sum()) for one in (calibrated, alone))
    assert falls_short(hits, rest.size, 400, 0.1) > 1e-3
    # Confident labels alone set a level that is too low for the other nodes, and mislead methods that learn from them.
    assert before < hits
    if name != "naps-exact":
        assert falls_short(before, rest.size, alone.scored.level_nodes.size, 0.1) < 1e-3


def test_calibration_labels_that_are_no_random_sample_withdraw_it_beside_evidence_too() -> None:
    world = amazon_by_heart()
    random, other, rest = divided("random")
    confident = np.setdiff1d(world["confident"], np.union1d(random, rest))
    calibrated = ns.make_method("informed").calibrate(
        world["graph"], world["outputs"], world["labels"], confident, evidence=random
    )
    verdict = foresee(calibrated, "informed", alpha=0.1, nodes=rest, size=1.0, infinite=0, outputs=world["outputs"])
    assert verdict.withdrawn.startswith("the model finds the calibration nodes easier than the predicted nodes")
    assert "only if the calibration nodes are a random sample" in verdict.certainty
    assert verdict.remedy
    assert other.size


def test_a_verdict_expects_no_sizes_from_evidence() -> None:
    world = amazon_by_heart()
    biased, random, rest = divided("confident")
    auto = ns.Auto().calibrate(world["graph"], world["outputs"], world["labels"], random, evidence=biased)
    text = str(auto.verdict(rest))
    assert "as if the evidence were a random sample" in text
    assert "Before looking at these nodes" not in text


@pytest.fixture(scope="module")
def world() -> dict[str, np.ndarray]:
    ring = make_ring(2, nodes=900, labelled=150)
    own = ring["labels"][ring["nodes"]]
    evidence = np.concatenate([ring["nodes"][own == y][: 111 if y == 1 else 3] for y in range(4)])
    return ring | {"evidence": evidence, "nodes": np.setdiff1d(ring["nodes"], evidence)}


def test_methods_that_cannot_learn_are_compared_without_evidence_and_the_result_says_so(world) -> None:
    methods = ["split", "thr", "informed", "auto"]
    comparison = compare(**world, methods=methods)
    plain = compare(**{name: value for name, value in world.items() if name != "evidence"}, methods=["split", "thr"])
    for name in ("split", "thr"):
        assert same_bits(comparison[name].prediction.thresholds, plain[name].prediction.thresholds)
    arrays = world["graph"], world["probabilities"], world["labels"], world["calibration"]
    for name in ("informed", "auto"):
        alone = ns.make_method(name).calibrate(*arrays, evidence=world["evidence"]).predict(world["nodes"])
        assert same_bits(comparison[name].prediction.thresholds, alone.thresholds)
    assert comparison.evidence == (
        "120 more labels as evidence, which Split APS, Split THR cannot learn from and ran without"
    )
    assert str(comparison).splitlines()[0].endswith(f"calibrated on 150 labels, with {comparison.evidence}")
    assert comparison.evidence in comparison._repr_html_()
    assert plain.evidence == ""
    assert compare(**world, methods=["informed"]).evidence == "120 more labels as evidence"


def test_the_level_of_all_methods_is_set_on_the_same_labels(world) -> None:
    comparison = compare(**world, methods=["split", "naps-exact", "auto"])
    for result in comparison:
        assert np.array_equal(result.calibrated.scored.sample, np.sort(world["calibration"]))
    row = comparison.verdict().row()
    assert ("evidence" in row) == (comparison.verdict().method != "split")


def test_evidence_that_no_method_learns_from_is_refused(world) -> None:
    with pytest.raises(ns.InvalidInputError, match="`evidence` must be left out where no method learns from it"):
        compare(**world, methods=["split", "naps"])


@pytest.mark.filterwarnings("default::napsets.NapsetsWarning")
def test_judging_what_taught_is_warned_of(world) -> None:
    nodes = np.concatenate([world["nodes"], world["evidence"][:7]])
    with pytest.warns(ns.NapsetsWarning, match="`nodes` holds 7 nodes of `evidence`"):
        compare(**(world | {"nodes": nodes}), methods=["split", "informed"])
