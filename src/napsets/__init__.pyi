"""The public names of napsets: one list, which the lazy import reads and type checkers see."""

from napsets import datasets, gnn, report, spark
from napsets.advice.inspection import inspect_node
from napsets.advice.theory import coverage_gap_bound as coverage_gap_bound
from napsets.advice.theory import expected_homophily as expected_homophily
from napsets.advice.theory import labels_needed
from napsets.advice.theory import node_homophily as node_homophily
from napsets.advice.theory import sbm_favours_naps as sbm_favours_naps
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
    mean_size,
)
from napsets.evaluation.metrics import (
    coverage_by_class as coverage_by_class,
)
from napsets.evaluation.metrics import (
    coverage_by_degree as coverage_by_degree,
)
from napsets.evaluation.metrics import (
    empty_rate as empty_rate,
)
from napsets.evaluation.metrics import (
    full_rate as full_rate,
)
from napsets.evaluation.metrics import (
    groups_by_class as groups_by_class,
)
from napsets.evaluation.metrics import (
    groups_by_confidence as groups_by_confidence,
)
from napsets.evaluation.metrics import (
    groups_by_degree as groups_by_degree,
)
from napsets.evaluation.metrics import (
    groups_by_neighbourhood as groups_by_neighbourhood,
)
from napsets.evaluation.metrics import (
    mean_width as mean_width,
)
from napsets.evaluation.metrics import (
    neighbourhood_partition as neighbourhood_partition,
)
from napsets.evaluation.metrics import (
    pccv as pccv,
)
from napsets.evaluation.metrics import (
    singleton_rate as singleton_rate,
)
from napsets.evaluation.metrics import (
    size_given_coverage as size_given_coverage,
)
from napsets.evaluation.metrics import (
    sscv as sscv,
)
from napsets.graph import Graph
from napsets.groups import ByClass, ByCommunity, ByDegree, ByGroup, Clustered
from napsets.levels import Exact, Nominal
from napsets.live import monitoring
from napsets.live.live import Live
from napsets.live.steering import Steered
from napsets.localisers import (
    CovariateShift,
    Everyone,
    Hops,
    LabelShift,
    PathLengths,
    Weights,
)
from napsets.localisers.hops import hop_weights as hop_weights
from napsets.methods import NAPS, Auto, Calibrated, Choice, Method, SplitConformal, list_methods, load, make_method
from napsets.methods.p_values import select
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.quantile import weighted_quantile as weighted_quantile
from napsets.randomness import node_uniforms as node_uniforms
from napsets.scores import (
    APS,
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
)
from napsets.scores import (
    aps_scores as aps_scores,
)
from napsets.scores import (
    informed_probabilities as informed_probabilities,
)
from napsets.scores import (
    similar_nodes as similar_nodes,
)

__version__: str

# Names that only experts call work but are not listed: single metrics, groups, the pure functions behind the methods,
# and bounds of the coverage gap.
__all__ = [
    "APS",
    "CQR",
    "NAPS",
    "RAPS",
    "SAPS",
    "THR",
    "AbsoluteResidual",
    "Auto",
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
    "Graph",
    "Hops",
    "Informed",
    "InformedIntervals",
    "InvalidInputError",
    "LabelShift",
    "Live",
    "Method",
    "MissingDependencyError",
    "NapsetsError",
    "NapsetsWarning",
    "Nominal",
    "NormalisedResidual",
    "NotCalibratedError",
    "PathLengths",
    "Prediction",
    "PredictionIntervals",
    "PredictionSets",
    "Sharpened",
    "Similarity",
    "SplitConformal",
    "Steered",
    "Weights",
    "compare",
    "coverage",
    "coverage_gap",
    "datasets",
    "gnn",
    "inspect_node",
    "labels_needed",
    "list_methods",
    "load",
    "make_method",
    "mean_size",
    "monitoring",
    "report",
    "select",
    "spark",
]
