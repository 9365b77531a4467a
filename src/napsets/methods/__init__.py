"""Methods: a score × a localiser × a level, what comes of calibrating one, and the table of their names."""

from __future__ import annotations

import sys
from types import ModuleType

from napsets.methods.auto import Candidate, Choice, Choosing
from napsets.methods.given import Given, Scored
from napsets.methods.method import Calibrated, Method, fill_sets, find_thresholds
from napsets.methods.predictors import NAPS, Auto, RandomisedNAPS, SplitConformal
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
    "RandomisedNAPS",
    "Scored",
    "Settings",
    "SplitConformal",
    "fill_sets",
    "find_thresholds",
    "load",
    "make_method",
    "methods",
    "save",
    "title",
]


class _Methods(ModuleType):
    """A room that answers ``napsets.methods()`` with the names of all methods and what each is for."""

    def __call__(self) -> dict[str, str]:
        return methods()


sys.modules[__name__].__class__ = _Methods
