"""How badly a label fits: the protocol, the scores, and the table of their names."""

from __future__ import annotations

from napsets.scores.ranked import APS, RAPS, SAPS, SCORES, THR, RankScore, Score, aps_scores, make_score

__all__ = ["APS", "RAPS", "SAPS", "SCORES", "THR", "RankScore", "Score", "aps_scores", "make_score"]
