"""Methods (a score × a localiser × a level), calibrated methods, and the table of their names."""

from __future__ import annotations

import sys
from types import ModuleType

from napsets.methods.auto import AutoMethod
from napsets.methods.calibrated import Calibrated, find_thresholds, predict_in_parts
from napsets.methods.choice import Candidate, Choice
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.method import NAPS, Method, Settings
from napsets.methods.predictors import Auto, RandomisedNAPS, SplitConformal, load
from napsets.methods.saving import save
from napsets.methods.table import METHODS, PAPER, make_method, methods, title

__all__ = [
    "METHODS",
    "NAPS",
    "PAPER",
    "Auto",
    "AutoMethod",
    "Calibrated",
    "CalibrationData",
    "Candidate",
    "Choice",
    "Method",
    "RandomisedNAPS",
    "Scored",
    "Settings",
    "SplitConformal",
    "find_thresholds",
    "load",
    "make_method",
    "methods",
    "predict_in_parts",
    "save",
    "title",
]


class _Methods(ModuleType):
    """A room that answers ``napsets.methods()`` with the names of all methods and what each is for."""

    def __call__(self) -> dict[str, str]:
        return methods()


sys.modules[__name__].__class__ = _Methods
