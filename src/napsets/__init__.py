"""napsets: distribution-free prediction sets for node classification.

Give it a graph, any classifier's probabilities and the labels of some nodes; it gives every other node a set of
labels that is to contain the truth with probability 1 − alpha, calibrated on the node's own neighbourhood.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from napsets.errors import (
    FileFormatError,
    InvalidInputError,
    MissingDependencyError,
    NapsetsError,
    NapsetsWarning,
    NotCalibratedError,
)

if TYPE_CHECKING:
    from napsets.decay import hop_weights
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

#: The core, which brings NumPy: imported when it is first asked for too, so that the command can be stopped (Ctrl-C)
#: without a word from the moment it starts.
_CORE = {
    "hop_weights": "napsets.decay",
    "Graph": "napsets.graph",
    "coverage": "napsets.metrics",
    "coverage_by_class": "napsets.metrics",
    "coverage_by_degree": "napsets.metrics",
    "empty_rate": "napsets.metrics",
    "full_rate": "napsets.metrics",
    "mean_size": "napsets.metrics",
    "neighbourhood_partition": "napsets.metrics",
    "pccv": "napsets.metrics",
    "singleton_rate": "napsets.metrics",
    "size_given_coverage": "napsets.metrics",
    "sscv": "napsets.metrics",
    "NAPS": "napsets.predictors",
    "SplitConformal": "napsets.predictors",
    "weighted_quantile": "napsets.quantile",
    "node_uniforms": "napsets.randomness",
    "APS": "napsets.scores",
    "RAPS": "napsets.scores",
    "SAPS": "napsets.scores",
    "THR": "napsets.scores",
    "aps_scores": "napsets.scores",
    "PredictionSets": "napsets.sets",
    "coverage_gap_bound": "napsets.theory",
    "expected_homophily": "napsets.theory",
    "node_homophily": "napsets.theory",
    "sbm_favours_naps": "napsets.theory",
    "weighted_gap_bound": "napsets.theory",
    "CalibrationIndex": "napsets.thresholds",
    "hop_thresholds": "napsets.thresholds",
    "neighbourhood_thresholds": "napsets.thresholds",
    "split_thresholds": "napsets.thresholds",
}

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
    place = _LAZY.get(name) or _CORE.get(name)
    if place is None:
        raise AttributeError(f"module 'napsets' has no attribute {name!r}")
    module = import_module(place)
    value = module if place == f"napsets.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_CORE, *_LAZY})
