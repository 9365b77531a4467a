"""The public names of napsets: one list, which the lazy import reads and type checkers see."""

from napsets import datasets, gnn, paper, report, spark, studies
from napsets.advice.inspection import inspect_node
from napsets.advice.recommendation import recommend
from napsets.advice.theory import coverage_gap_bound as coverage_gap_bound
from napsets.advice.theory import expected_homophily, node_homophily, sbm_favours_naps
from napsets.advice.theory import weighted_gap_bound as weighted_gap_bound
from napsets.errors import (
    FileFormatError,
    InvalidInputError,
    MissingDependencyError,
    NapsetsError,
    NapsetsWarning,
    NotCalibratedError,
)
from napsets.evaluation.comparison import compare
from napsets.evaluation.gaps import CoverageGap, coverage_gap
from napsets.evaluation.metrics import (
    coverage,
    coverage_by_class,
    coverage_by_degree,
    empty_rate,
    full_rate,
    groups_by_class,
    groups_by_confidence,
    groups_by_degree,
    groups_by_neighbourhood,
    mean_size,
    mean_width,
    neighbourhood_partition,
    pccv,
    singleton_rate,
    size_given_coverage,
    sscv,
)
from napsets.files.predictions import NodePredictions
from napsets.graph import Graph
from napsets.groups import ByClass, ByCommunity, ByDegree, ByGroup, Clustered
from napsets.levels import Exact, Full, Nominal
from napsets.live import monitoring
from napsets.live.live import Live
from napsets.live.steering import Steered
from napsets.localisers import (
    Balls,
    CovariateShift,
    Everyone,
    Hops,
    InverseDegree,
    LabelShift,
    PageRank,
    PathLengths,
    Weights,
)
from napsets.localisers.hops import hop_weights
from napsets.localisers.neighbourhoods import CalibrationIndex as CalibrationIndex
from napsets.localisers.neighbourhoods import hop_thresholds as hop_thresholds
from napsets.localisers.neighbourhoods import neighbourhood_thresholds as neighbourhood_thresholds
from napsets.localisers.neighbourhoods import split_thresholds as split_thresholds
from napsets.methods import NAPS, Auto, Calibrated, Choice, Method, RandomisedNAPS, SplitConformal, load, make_method
from napsets.methods.p_values import select
from napsets.methods.table import methods
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
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

__version__: str

# Names that only experts call still work but are not listed: they are documented where they live, thresholds without a
# method in `napsets.localisers.neighbourhoods`, bounds of the coverage gap in `napsets.advice.theory`.
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
    "Choice",
    "Clustered",
    "CovariateShift",
    "CoverageGap",
    "Diffused",
    "Everyone",
    "Exact",
    "FileFormatError",
    "Full",
    "Graph",
    "Hops",
    "Informed",
    "InformedIntervals",
    "InvalidInputError",
    "InverseDegree",
    "LabelShift",
    "Live",
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
    "Prediction",
    "PredictionIntervals",
    "PredictionSets",
    "RandomisedNAPS",
    "Sharpened",
    "Similarity",
    "SplitConformal",
    "Steered",
    "TunedDiffused",
    "Weights",
    "aps_scores",
    "compare",
    "coverage",
    "coverage_by_class",
    "coverage_by_degree",
    "coverage_gap",
    "datasets",
    "empty_rate",
    "expected_homophily",
    "full_rate",
    "gnn",
    "groups_by_class",
    "groups_by_confidence",
    "groups_by_degree",
    "groups_by_neighbourhood",
    "hop_weights",
    "informed_probabilities",
    "inspect_node",
    "load",
    "make_method",
    "mean_size",
    "mean_width",
    "methods",
    "monitoring",
    "neighbourhood_partition",
    "node_homophily",
    "node_uniforms",
    "paper",
    "pccv",
    "recommend",
    "report",
    "sbm_favours_naps",
    "select",
    "similar_nodes",
    "singleton_rate",
    "size_given_coverage",
    "spark",
    "sscv",
    "studies",
    "weighted_quantile",
]
