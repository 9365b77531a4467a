"""Methods (a score × a localiser × a level), calibrated methods, and the table of their names."""

from __future__ import annotations

from napsets.methods.auto import Auto
from napsets.methods.calibratable import Calibratable
from napsets.methods.calibrated import Calibrated
from napsets.methods.choice import Candidate, Choice
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.method import Method
from napsets.methods.named import NAPS, SplitConformal
from napsets.methods.saving import load, save
from napsets.methods.table import ALIASES, METHODS, PAPER, AnyMethod, list_methods, make_method, title
from napsets.methods.thresholds import find_thresholds, predict_in_parts

__all__ = [
    "ALIASES",
    "METHODS",
    "NAPS",
    "PAPER",
    "AnyMethod",
    "Auto",
    "Calibratable",
    "Calibrated",
    "CalibrationData",
    "Candidate",
    "Choice",
    "Method",
    "Scored",
    "SplitConformal",
    "find_thresholds",
    "list_methods",
    "load",
    "make_method",
    "predict_in_parts",
    "save",
    "title",
]
