"""napsets: distribution-free prediction sets for node classification.

Give it a graph, any classifier's probabilities and the labels of some nodes; it gives every other node a set of
labels that is to contain the truth with probability 1 − alpha, calibrated on the node's own neighbourhood.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from napsets.decay import hop_weights
from napsets.errors import (
    FileFormatError,
    InvalidInputError,
    MissingDependencyError,
    NapsetsError,
    NapsetsWarning,
    NotCalibratedError,
)
from napsets.graph import Graph
from napsets.metrics import (
    coverage,
    coverage_by_class,
    coverage_by_degree,
    empty_rate,
    full_rate,
    mean_size,
    neighbourhood_partition,
    pccv,
    singleton_rate,
    size_given_coverage,
    sscv,
)
from napsets.predictors import NAPS, SplitConformal
from napsets.quantile import weighted_quantile
from napsets.randomness import node_uniforms
from napsets.scores import APS, RAPS, SAPS, THR, aps_scores
from napsets.sets import PredictionSets
from napsets.theory import (
    coverage_gap_bound,
    expected_homophily,
    node_homophily,
    sbm_favours_naps,
    weighted_gap_bound,
)
from napsets.thresholds import CalibrationIndex, hop_thresholds, neighbourhood_thresholds, split_thresholds

__version__ = "0.1.0"

__all__ = [
    "APS",
    "NAPS",
    "RAPS",
    "SAPS",
    "THR",
    "CalibrationIndex",
    "FileFormatError",
    "Graph",
    "InvalidInputError",
    "MissingDependencyError",
    "NapsetsError",
    "NapsetsWarning",
    "NodePredictions",
    "NotCalibratedError",
    "PredictionSets",
    "SplitConformal",
    "aps_scores",
    "coverage",
    "coverage_by_class",
    "coverage_by_degree",
    "coverage_gap_bound",
    "datasets",
    "empty_rate",
    "expected_homophily",
    "full_rate",
    "gnn",
    "hop_thresholds",
    "hop_weights",
    "mean_size",
    "neighbourhood_partition",
    "neighbourhood_thresholds",
    "node_homophily",
    "node_uniforms",
    "paper",
    "pccv",
    "report",
    "sbm_favours_naps",
    "singleton_rate",
    "size_given_coverage",
    "spark",
    "split_thresholds",
    "sscv",
    "weighted_gap_bound",
    "weighted_quantile",
]

# What is heavy, or needs an extra, is imported when it is first asked for.
_LAZY = {
    "NodePredictions": "napsets.predictions",
    "datasets": "napsets.datasets",
    "gnn": "napsets.gnn",
    "paper": "napsets.paper",
    "report": "napsets.report",
    "spark": "napsets.spark",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'napsets' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    value = module if _LAZY[name].endswith(f".{name}") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
