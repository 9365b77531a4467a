"""What a calibrated method promises: which labels set its level, and whether its coverage is a theorem."""

from __future__ import annotations

from napsets.checks.arguments import AnyArray, IntArray
from napsets.methods import Calibrated
from napsets.scores.informed import evidence_of
from napsets.scores.informed_intervals import BoundInformedIntervals


def level_labels(calibrated: Calibrated) -> int:
    """Return how many labels set the level: those held out, or all where none is."""
    scored = calibrated.scored
    return int(scored.level_nodes.size if calibrated.is_exact else scored.calibration.size)


def level_nodes(calibrated: Calibrated) -> tuple[IntArray, AnyArray]:
    """Return the nodes whose labels set the level, and their truth."""
    scored = calibrated.scored
    if calibrated.is_exact:
        nodes, truth = scored.level_nodes, scored.level_labels
    else:
        nodes, truth = scored.reference.nodes, scored.labels
    return nodes[: truth.size], truth


def is_proven(calibrated: Calibrated) -> bool:
    """Return whether coverage is a theorem for nodes labelled at random: an exact level, or weights that need none."""
    return calibrated.is_exact or bool(getattr(calibrated.method.localiser, "proven", False))


def is_informed(calibrated: Calibrated) -> bool:
    """Return whether labels, or targets, around a node correct the model."""
    return isinstance(calibrated.score, BoundInformedIntervals) or evidence_of(calibrated.score) is not None


def is_shifted(calibrated: Calibrated) -> bool:
    """Return whether the promise is about the population that importance weights describe."""
    return not calibrated.is_exact and bool(getattr(calibrated.method.localiser, "shifted", False))
