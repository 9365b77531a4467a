"""How badly a label fits: the protocol, the scores, and the table of their names."""

from __future__ import annotations

from napsets.scores.base import BOUND, SCORES, BoundScore, Labelled, RowScore, Score, bind, learns, make_score
from napsets.scores.by_label import ByLabel
from napsets.scores.cf_gnn import CFGNN, training_progress
from napsets.scores.diffused import Diffused
from napsets.scores.informed import Informed, informed_probabilities
from napsets.scores.informed_intervals import InformedIntervals
from napsets.scores.ranks import APS, RAPS, SAPS, RankScore, aps_scores
from napsets.scores.residuals import CQR, AbsoluteResidual, BoundIntervals, NormalisedResidual, is_regression
from napsets.scores.sharpened import Sharpened
from napsets.scores.similarity import Similarity, similar_nodes
from napsets.scores.threshold import THR
from napsets.scores.tuned import TunedDiffused

__all__ = [
    "APS",
    "BOUND",
    "CFGNN",
    "CQR",
    "RAPS",
    "SAPS",
    "SCORES",
    "THR",
    "AbsoluteResidual",
    "BoundIntervals",
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
    "TunedDiffused",
    "aps_scores",
    "bind",
    "informed_probabilities",
    "is_regression",
    "learns",
    "make_score",
    "similar_nodes",
    "training_progress",
]
