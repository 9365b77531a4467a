"""Conformity scores, which measure how badly a label fits: the interface, the scores, and the table of their names."""

from __future__ import annotations

from napsets.scores.averaged import Diffused, Similarity, similar_nodes
from napsets.scores.base import (
    SCORES,
    BoundLabels,
    BoundScore,
    Labelled,
    RowScore,
    Score,
    bind,
    learns,
    make_score,
    prediction_type,
)
from napsets.scores.by_label import ByLabel
from napsets.scores.informed import Informed, informed_probabilities
from napsets.scores.informed_intervals import InformedIntervals
from napsets.scores.residuals import CQR, AbsoluteResidual, BoundIntervals, NormalisedResidual
from napsets.scores.rows import APS, RAPS, SAPS, THR, RankScore, Sharpened, aps_scores

__all__ = [
    "APS",
    "CQR",
    "RAPS",
    "SAPS",
    "SCORES",
    "THR",
    "AbsoluteResidual",
    "BoundIntervals",
    "BoundLabels",
    "BoundScore",
    "ByLabel",
    "Diffused",
    "Informed",
    "InformedIntervals",
    "Labelled",
    "NormalisedResidual",
    "RankScore",
    "RowScore",
    "Score",
    "Sharpened",
    "Similarity",
    "aps_scores",
    "bind",
    "informed_probabilities",
    "learns",
    "make_score",
    "prediction_type",
    "similar_nodes",
]
