"""What a calibrated method gives for some nodes: `Prediction`, with subclasses for sets of labels and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napsets.predictions.intervals import PredictionIntervals
from napsets.predictions.prediction import Per, Prediction
from napsets.predictions.sets import NodeThresholds, PredictionSets, members
from napsets.predictions.summary import IntervalsSummary, SetsSummary, Summary

if TYPE_CHECKING:

    class Predicted(PredictionSets, PredictionIntervals):  # type: ignore[misc]
        """What `predict` returns: sets or intervals, as the score says. To a type checker it has what both have."""

else:
    Predicted = Prediction

__all__ = [
    "IntervalsSummary",
    "NodeThresholds",
    "Per",
    "Predicted",
    "Prediction",
    "PredictionIntervals",
    "PredictionSets",
    "SetsSummary",
    "Summary",
    "members",
]
