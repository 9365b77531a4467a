"""How a threshold depends on the node: who counts for whom, and how much."""

from __future__ import annotations

from napsets.localisers.base import LOCALISERS, Cut, Local, Localiser, LocalThresholds, Reference
from napsets.localisers.everyone import Everyone
from napsets.localisers.hops import Hops, HopsLocal, share_ranks, share_search
from napsets.localisers.path_lengths import PathLengths, PathLengthsLocal, near_radii, share_length_search

__all__ = [
    "LOCALISERS",
    "Cut",
    "Everyone",
    "Hops",
    "HopsLocal",
    "Local",
    "LocalThresholds",
    "Localiser",
    "PathLengths",
    "PathLengthsLocal",
    "Reference",
    "near_radii",
    "share_length_search",
    "share_ranks",
    "share_search",
]
