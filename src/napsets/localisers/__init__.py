"""How a threshold depends on the node: who counts for whom, and how much."""

from __future__ import annotations

from napsets.localisers.balls import Balls
from napsets.localisers.base import LOCALISERS, Cut, Local, Localiser, LocalThresholds, Reference
from napsets.localisers.everyone import Everyone
from napsets.localisers.hops import Hops, HopsLocal, share_ranks, share_search
from napsets.localisers.inverse_degree import InverseDegree
from napsets.localisers.pagerank import PageRank
from napsets.localisers.path_lengths import PathLengths, PathLengthsLocal, near_radii, share_length_search
from napsets.localisers.weighed import NodeWeights, WeighedLocal

__all__ = [
    "LOCALISERS",
    "Balls",
    "Cut",
    "Everyone",
    "Hops",
    "HopsLocal",
    "InverseDegree",
    "Local",
    "LocalThresholds",
    "Localiser",
    "NodeWeights",
    "PageRank",
    "PathLengths",
    "PathLengthsLocal",
    "Reference",
    "WeighedLocal",
    "near_radii",
    "share_length_search",
    "share_ranks",
    "share_search",
]
