"""Methods: a score × a localiser × a level, what comes of calibrating one, and the table of their names."""

from __future__ import annotations

from napsets.methods.auto import Candidate, Choice, Choosing
from napsets.methods.given import Given, Scored
from napsets.methods.method import Calibrated, Method, find_thresholds
from napsets.methods.predictors import NAPS, Auto, SplitConformal
from napsets.methods.saving import load, save
from napsets.methods.table import METHODS, PAPER, Settings, make_method, methods, title

__all__ = [
    "METHODS",
    "NAPS",
    "PAPER",
    "Auto",
    "Calibrated",
    "Candidate",
    "Choice",
    "Choosing",
    "Given",
    "Method",
    "Scored",
    "Settings",
    "SplitConformal",
    "find_thresholds",
    "load",
    "make_method",
    "methods",
    "save",
    "title",
]
