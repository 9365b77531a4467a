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
from napsets.version import __version__ as __version__

if TYPE_CHECKING:
    from napsets.advice.theory import (
        coverage_gap_bound,
        expected_homophily,
        node_homophily,
        sbm_favours_naps,
        weighted_gap_bound,
    )
    from napsets.evaluation.gaps import CoverageGap, coverage_gap
    from napsets.evaluation.groups import (
        groups_by_class,
        groups_by_confidence,
        groups_by_degree,
        groups_by_neighbourhood,
    )
    from napsets.evaluation.metrics import (
        coverage,
        coverage_by_class,
        coverage_by_degree,
        empty_rate,
        full_rate,
        mean_size,
        mean_width,
        neighbourhood_partition,
        pccv,
        singleton_rate,
        size_given_coverage,
        sscv,
    )
    from napsets.graph import Graph
    from napsets.groups import ByClass, ByCommunity, ByDegree, ByGroup, Clustered
    from napsets.intervals import PredictionIntervals
    from napsets.levels import Exact, Nominal
    from napsets.localisers import Balls, Everyone, Hops, InverseDegree, PageRank, PathLengths
    from napsets.localisers.decay import hop_weights
    from napsets.localisers.neighbourhoods import (
        CalibrationIndex,
        hop_thresholds,
        neighbourhood_thresholds,
        split_thresholds,
    )
    from napsets.methods import NAPS, Calibrated, Method, RandomisedNAPS, SplitConformal, make_method
    from napsets.quantile import weighted_quantile
    from napsets.randomness import node_uniforms
    from napsets.scores import (
        APS,
        CFGNN,
        CQR,
        RAPS,
        SAPS,
        THR,
        AbsoluteResidual,
        ByLabel,
        Diffused,
        Informed,
        InformedIntervals,
        NormalisedResidual,
        Sharpened,
        Similarity,
        TunedDiffused,
        aps_scores,
        informed_probabilities,
        similar_nodes,
    )
    from napsets.sets import PredictionSets

__all__ = [
    "APS",
    "CFGNN",
    "CQR",
    "NAPS",
    "RAPS",
    "SAPS",
    "THR",
    "AbsoluteResidual",
    "Auto",
    "Balls",
    "ByClass",
    "ByCommunity",
    "ByDegree",
    "ByGroup",
    "ByLabel",
    "Calibrated",
    "CalibrationIndex",
    "Choice",
    "Clustered",
    "CoverageGap",
    "Diffused",
    "Everyone",
    "Exact",
    "FileFormatError",
    "Graph",
    "Hops",
    "Informed",
    "InformedIntervals",
    "InvalidInputError",
    "InverseDegree",
    "Method",
    "MissingDependencyError",
    "NapsetsError",
    "NapsetsWarning",
    "NodePredictions",
    "Nominal",
    "NormalisedResidual",
    "NotCalibratedError",
    "PageRank",
    "PathLengths",
    "PredictionIntervals",
    "PredictionSets",
    "RandomisedNAPS",
    "Sharpened",
    "Similarity",
    "SplitConformal",
    "TunedDiffused",
    "aps_scores",
    "coverage",
    "coverage_by_class",
    "coverage_by_degree",
    "coverage_gap",
    "coverage_gap_bound",
    "datasets",
    "empty_rate",
    "expected_homophily",
    "full_rate",
    "gnn",
    "groups_by_class",
    "groups_by_confidence",
    "groups_by_degree",
    "groups_by_neighbourhood",
    "hop_thresholds",
    "hop_weights",
    "informed_probabilities",
    "make_method",
    "mean_size",
    "mean_width",
    "methods",
    "neighbourhood_partition",
    "neighbourhood_thresholds",
    "node_homophily",
    "node_uniforms",
    "paper",
    "pccv",
    "report",
    "sbm_favours_naps",
    "similar_nodes",
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
    "Choice": "napsets.methods",
    "ByLabel": "napsets.scores",
    "CFGNN": "napsets.scores",
    "Auto": "napsets.methods",
    "Balls": "napsets.localisers",
    "Calibrated": "napsets.methods",
    "Diffused": "napsets.scores",
    "Everyone": "napsets.localisers",
    "ByClass": "napsets.groups",
    "ByCommunity": "napsets.groups",
    "ByDegree": "napsets.groups",
    "ByGroup": "napsets.groups",
    "Clustered": "napsets.groups",
    "Exact": "napsets.levels",
    "AbsoluteResidual": "napsets.scores",
    "CQR": "napsets.scores",
    "InformedIntervals": "napsets.scores",
    "NormalisedResidual": "napsets.scores",
    "PredictionIntervals": "napsets.intervals",
    "Hops": "napsets.localisers",
    "PathLengths": "napsets.localisers",
    "Informed": "napsets.scores",
    "InverseDegree": "napsets.localisers",
    "Method": "napsets.methods",
    "Nominal": "napsets.levels",
    "PageRank": "napsets.localisers",
    "RandomisedNAPS": "napsets.methods",
    "Sharpened": "napsets.scores",
    "Similarity": "napsets.scores",
    "TunedDiffused": "napsets.scores",
    "similar_nodes": "napsets.scores",
    "informed_probabilities": "napsets.scores",
    "make_method": "napsets.methods",
    "hop_weights": "napsets.localisers.decay",
    "Graph": "napsets.graph",
    "CoverageGap": "napsets.evaluation.gaps",
    "coverage_gap": "napsets.evaluation.gaps",
    "groups_by_class": "napsets.evaluation.groups",
    "groups_by_confidence": "napsets.evaluation.groups",
    "groups_by_degree": "napsets.evaluation.groups",
    "groups_by_neighbourhood": "napsets.evaluation.groups",
    "coverage": "napsets.evaluation.metrics",
    "coverage_by_class": "napsets.evaluation.metrics",
    "coverage_by_degree": "napsets.evaluation.metrics",
    "empty_rate": "napsets.evaluation.metrics",
    "full_rate": "napsets.evaluation.metrics",
    "mean_size": "napsets.evaluation.metrics",
    "mean_width": "napsets.evaluation.metrics",
    "neighbourhood_partition": "napsets.evaluation.metrics",
    "pccv": "napsets.evaluation.metrics",
    "singleton_rate": "napsets.evaluation.metrics",
    "size_given_coverage": "napsets.evaluation.metrics",
    "sscv": "napsets.evaluation.metrics",
    "NAPS": "napsets.methods",
    "SplitConformal": "napsets.methods",
    "weighted_quantile": "napsets.quantile",
    "node_uniforms": "napsets.randomness",
    "APS": "napsets.scores",
    "RAPS": "napsets.scores",
    "SAPS": "napsets.scores",
    "THR": "napsets.scores",
    "aps_scores": "napsets.scores",
    "PredictionSets": "napsets.sets",
    "coverage_gap_bound": "napsets.advice.theory",
    "expected_homophily": "napsets.advice.theory",
    "node_homophily": "napsets.advice.theory",
    "sbm_favours_naps": "napsets.advice.theory",
    "weighted_gap_bound": "napsets.advice.theory",
    "CalibrationIndex": "napsets.localisers.neighbourhoods",
    "hop_thresholds": "napsets.localisers.neighbourhoods",
    "neighbourhood_thresholds": "napsets.localisers.neighbourhoods",
    "split_thresholds": "napsets.localisers.neighbourhoods",
}

# What is heavy, or needs an extra, is imported when it is first asked for.
_LAZY = {
    "methods": "napsets.methods",
    "NodePredictions": "napsets.files.predictions",
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
