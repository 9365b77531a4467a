"""Experiments: the paper's tables, the comparison of all methods, and the study of set sizes.

An experiment is data: a cell says everything that a row of results depends on. `Laboratory` turns cells into rows of
Parquet, skipping those that are there; tables, figures and the pages of the documentation are made from rows and from
nothing else.

To add a study, write one module and enter it in `laboratory.STUDIES`. The module has

- a subclass of `study.Cell` (or of `study.ModelCell`, where a model is trained; or of `draws.DrawCell`, where methods
  are compared on drawn labels): its fields are the settings of a row, `measured` names the columns of numbers, and
  `compute` turns cells into rows;
- a subclass of `study.Study` that lists the cells, and makes tables, figures and the parts of a page (whose text is in
  ``pages``) from their rows.

The store checks the rows of every cell class in the table, and `napsets reproduce NAME` runs and shows the study once
`cli.reproduce` has its name.

>>> from napsets.studies import QUICK, cells_of
>>> len(cells_of("sbm", QUICK))
4
"""

from __future__ import annotations

from napsets.studies.block_model import BlockCell, simulate
from napsets.studies.coverage import INFERENCES, MODELS, PROTOCOLS, CoverageCell, DatasetCell
from napsets.studies.laboratory import STUDIES, Laboratory, RowStore
from napsets.studies.paper import FULL, QUICK, TARGETS, Scope, cells_of
from napsets.studies.protocols import METHODS, SETUPS, Setup, is_available

__all__ = [
    "FULL",
    "INFERENCES",
    "METHODS",
    "MODELS",
    "PROTOCOLS",
    "QUICK",
    "SETUPS",
    "STUDIES",
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
