"""Predictions of a calibrated method: `Prediction`, with subclasses for sets of labels and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napsets.predictions.intervals import PredictionIntervals
from napsets.predictions.prediction import Per, Prediction
from napsets.predictions.sets import NodeThresholds, PredictionSets, members
from napsets.predictions.summary import IntervalsSummary, SetsSummary, Summary

if TYPE_CHECKING:

    class Predicted(PredictionSets, PredictionIntervals):  # type: ignore[misc]
        """The result of `predict`: sets or intervals, by the score. To a type checker it has the members of both."""

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
