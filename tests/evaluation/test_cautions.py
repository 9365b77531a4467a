"""What to mind is said where it matters, the gravest first, and nothing where nothing does."""

from __future__ import annotations

import numpy as np

from napsets.evaluation.comparison import Comparison, compare
from worlds import make_ring


def test_nothing_to_mind_is_said_with_what_was_looked_at(found: Comparison) -> None:
    told = found.verdict()
    assert told.warnings == ()
    assert (
        told.lines[2] == "Mind: nothing found; labels, support, and drift in degree and predicted class were looked at."
    )


def test_few_labels_and_too_few_are_warned_of() -> None:
    world = make_ring(3)
    few = compare(**(world | {"calibration": world["calibration"][:40]}), methods=("split",)).verdict()
    assert few.mind.startswith("40 labels are few: with others, coverage could as well be ")
    none = compare(**(world | {"calibration": world["calibration"][:5]}), methods=("split",)).verdict()
    assert none.mind == "5 labels are too few to set a level at alpha = 0.1, which takes 9: every set holds every label"


def test_too_little_support_is_counted() -> None:
    world = make_ring(5, edges=400)
    told = compare(**world, methods=("naps",)).verdict()
    short = told.warnings[0]
    assert "get every label, because too few labelled nodes are near" in short


def test_labels_of_one_kind_of_nodes_are_warned_of_with_how_far_they_are_apart() -> None:
    world = make_ring(6, n=2000, labelled=600)
    predicted = world["probabilities"].argmax(axis=1)
    order = np.argsort(predicted == 0, kind="stable")
    biased = world | {"calibration": order[:600], "nodes": order[600:]}
    told = compare(**biased, methods=("split",)).verdict(class_names=["cat", "dog", "owl", "bat"])
    drift = [one for one in told.warnings if "predicted class" in one]
    assert len(drift) == 1
    assert drift[0].startswith(
        "calibrating nodes differ from judged ones in predicted class: nodes predicted to be cat"
    )
    assert "are 0 % of the calibrating and" in drift[0]


def test_labelled_nodes_are_also_compared_with_those_that_have_no_label() -> None:
    world = make_ring(7, n=2000, labelled=600)
    order = np.argsort(world["graph"].degrees, kind="stable")[::-1]
    labels = np.full(2000, -1)
    labels[order[:800]] = world["labels"][order[:800]]
    shuffled = np.random.default_rng(0).permutation(order[:800])
    told = compare(
        **(world | {"labels": labels, "calibration": shuffled[:400], "nodes": shuffled[400:]}), methods=("split",)
    ).verdict()
    assert [one.split(":")[0] for one in told.warnings] == ["labelled nodes differ from unlabelled ones in degree"]
