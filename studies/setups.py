"""The paper's experiment: its datasets and what it fixed for each, its models and methods, and the numbers it prints.

To add a dataset, add an entry to `SETUPS`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

#: The paper's models, and what its tables call them.
MODELS = {
    "graphsage-mean": "GS-Mean",
    "graphsage-max": "GS-Max",
    "shadow-sage": "SD-SAGE",
    "shadow-gcn": "SD-GCN",
    "label-counts": "Label counts",  # ours, for a graph without features: see `studies.training.labels`
}
#: The paper's methods and the decay of each; APS, with which the paper compares, ignores the graph.
METHODS: dict[str, str | None] = {"APS": None, "NAPS": "uniform", "NAPS-H": "hyperbolic", "NAPS-G": "geometric"}
BASELINE = "APS"


@dataclass(frozen=True)
class Setup:
    """How a dataset is used."""

    name: str  #: what results call it: its name in `studies.collections`
    title: str  #: what tables call it
    cutoff: int  #: a node is eligible (in the paper's N^cal) with this many test nodes within two hops
    strata: tuple[tuple[int, int], ...]  #: ranges of set sizes for SSCV
    largest_balls: int  #: how many neighbourhoods PCCV looks at under `as-published`
    geometric_offset: int = 0  #: under `as-published` the geometric weight is 2^−(k−offset)
    models: tuple[str, ...] = ("graphsage-mean", "graphsage-max", "shadow-sage", "shadow-gcn")


_FLICKR_STRATA = ((0, 2), (3, 3), (4, 4), (5, 7))

SETUPS: dict[str, Setup] = {
    setup.name: setup
    for setup in (
        Setup("reddit2", "Reddit2", 1000, ((0, 1), (2, 2), (3, 3), (4, 41)), 20),
        Setup("flickr", "Flickr", 50, _FLICKR_STRATA, 10, 1),
        Setup("amazon-computers", "Amazon", 50, ((0, 1), (2, 3), (4, 10)), 5, 1),
        Setup("flickr-graph", "Flickr without features", 50, _FLICKR_STRATA, 10, 1, ("label-counts",)),
    )
}


#: Table 1 as the paper prints it: nodes, edges, features, classes, test nodes, N^cal, Ĥ of the full graph and H_rand.
#: Edges are stored entries: an undirected edge counts twice.
PRINTED_DATASETS = {
    "flickr": (89_250, 899_756, 500, 7, 22_313, 5_161, 0.319, 0.266),
    "reddit2": (232_965, 23_213_838, 602, 41, 55_334, 22_160, 0.812, 0.051),
    "flickr-graph": (89_250, 899_756, 500, 7, 22_313, 5_161, 0.319, 0.266),
    "amazon-computers": (13_752, 491_722, 767, 10, 12_000, 11_033, 0.785, 0.208),
}
#: What the paper prints where `PRINTED` has another number, by (metric, dataset, model, method). The two are slips of
#: the decimal point: no violation of a coverage of 0.9 can be 1.03 or 0.99, and the neighbouring rows and the paper's
#: claims fit 0.103 and 0.099.
CORRECTED = {
    ("pccv", "amazon-computers", "shadow-sage", "APS"): 1.03,
    ("pccv", "amazon-computers", "shadow-gcn", "APS"): 0.99,
}
#: The numbers that the paper prints in Tables 2 and 3, by (metric, dataset, model, method). Accuracies, which belong to
#: no method, are those of APS.
PRINTED: dict[tuple[str, str, str, str], float] = {
    (line["metric"], line["dataset"], line["model"], method): float(line[method])
    for line in csv.DictReader((Path(__file__).parent / "printed.csv").read_text(encoding="utf-8").splitlines())
    for method in METHODS
    if line[method]
}
