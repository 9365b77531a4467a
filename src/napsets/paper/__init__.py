"""The paper's tables, ablation and block-model study, as runnable experiments.

An experiment is data: a cell (`cells`) says everything a row of results depends on, a grid (`grids`) which cells a
table needs. `Laboratory` turns cells into rows of Parquet, skipping those that are there; tables, figures and
the page of the documentation are made from rows and from nothing else.

>>> from napsets.paper import QUICK, cells_of
>>> len(cells_of("sbm", QUICK))
4
"""

from __future__ import annotations

from napsets.paper.blockmodel import BlockCell, simulate
from napsets.paper.cells import INFERENCES, METHODS, MODELS, PROTOCOLS, CoverageCell, DatasetCell
from napsets.paper.grids import FULL, QUICK, TARGETS, Scope, cells_of
from napsets.paper.run import Laboratory, is_available
from napsets.paper.setups import SETUPS, Setup
from napsets.paper.store import RowStore

__all__ = [
    "FULL",
    "INFERENCES",
    "METHODS",
    "MODELS",
    "PROTOCOLS",
    "QUICK",
    "SETUPS",
    "TARGETS",
    "BlockCell",
    "CoverageCell",
    "DatasetCell",
    "Laboratory",
    "RowStore",
    "Scope",
    "Setup",
    "cells_of",
    "is_available",
    "simulate",
]
