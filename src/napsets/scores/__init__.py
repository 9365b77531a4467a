"""How badly a label fits: the protocol, the scores, and the table of their names."""

from __future__ import annotations

from napsets.scores.base import BOUND, SCORES, BoundScore, Labelled, RowScore, Score, bind, learns, make_score
from napsets.scores.ranks import APS, RAPS, SAPS, RankScore, aps_scores
from napsets.scores.threshold import THR

__all__ = [
    "APS",
    "BOUND",
    "RAPS",
    "SAPS",
    "SCORES",
    "THR",
    "BoundScore",
    "Labelled",
    "RankScore",
    "RowScore",
    "Score",
    "aps_scores",
    "bind",
    "learns",
    "make_score",
]
