"""Localisers: the weight of each reference node for the threshold of each node."""

from __future__ import annotations

from napsets.localisers.base import LOCALISERS, Cut, Everyone, Local, Localiser, LocalThresholds, Reference
from napsets.localisers.hops import AroundLocal, Hops, HopsLocal, share_search
from napsets.localisers.path_lengths import PathLengths, PathLengthsLocal, near_radii
from napsets.localisers.shifts import CovariateShift, LabelShift
from napsets.localisers.weights import NodeWeights, Weights

__all__ = [
    "LOCALISERS",
    "AroundLocal",
    "CovariateShift",
    "Cut",
    "Everyone",
    "Hops",
    "HopsLocal",
    "LabelShift",
    "Local",
    "LocalThresholds",
    "Localiser",
    "NodeWeights",
    "PathLengths",
    "PathLengthsLocal",
    "Reference",
    "Weights",
    "near_radii",
    "share_search",
]
