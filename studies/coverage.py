"""The rows of Tables 1, 2 and 3 and of the ablation, under two calibration protocols.

The page ``pages/reproduction.md`` says what the two protocols do. `strict` is what conformal prediction promises: the
label of an evaluation node calibrates nothing, in no method. `as-published` does what the paper's released code did, to
compare with the printed tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np

import napsets as ns
from napsets.datasets import NodeDataset, NodePredictions
from napsets.kernels import threads
from napsets.localisers import Cut, Everyone, Hops, Reference
from napsets.localisers.hops import share_search
from napsets.predictions import members
from napsets.scores import APS
from studies.collections import load
from studies.rows import Folders, Kind, kept_predictions
from studies.setups import BASELINE, METHODS, SETUPS, Setup
from studies.tables import Bools, Floats, Ints, Row, grouped

#: The metrics of the sets of a repetition; a row has the median over repetitions of each, and of PCCV.
METRICS: dict[str, Callable[[ns.PredictionSets, ScoredGraph], float]] = {
    "coverage": lambda sets, scored: ns.coverage(sets, scored.labels),
    "mean_size": lambda sets, scored: ns.mean_size(sets),
    "size_given_coverage": lambda sets, scored: ns.size_given_coverage(sets, scored.labels),
    "sscv": lambda sets, scored: ns.sscv(sets, scored.labels, scored.setup.strata),
    "infinite_rate": lambda sets, scored: float(np.isinf(sets.thresholds).mean()),
    "support": lambda sets, scored: float(np.median(sets.support)),
}
#: Depth of the count that makes a node eligible, whatever the depth of calibration, as in the ablation.
CUTOFF_HOPS = 2
#: PCCV looks at neighbourhoods of at least this many nodes, says the paper's Section 7.
MIN_BALL = 30
#: Keeps the streams of random numbers of one seed apart.
_EVALUATION, _HALVES, _CHANCE = 1, 2, 3


@dataclass(frozen=True, eq=False)
class ScoredGraph:
    """One trained model on the subgraph induced on a dataset's test nodes, which are 0..n−1 here."""

    setup: Setup
    graph: ns.Graph
    labels: Ints
    score_matrix: Floats  #: the APS score of every label of each node
    eligible: Ints  #: nodes that may be evaluated: the paper's N^cal
    accuracy: float  #: of the model on all test nodes
    seed: int  #: draws the repetitions

    @cached_property
    def scores(self) -> Floats:
        """Score of each node at its label."""
        scores: Floats = self.score_matrix[np.arange(self.labels.size), self.labels]
        return scores

    def draws(self, repetitions: int, evaluated: int) -> list[Ints]:
        """Return the evaluation nodes of each repetition, drawn from the eligible nodes without replacement."""
        if evaluated >= self.eligible.size:
            raise ns.InvalidInputError(
                f"`evaluated` must be below the number of eligible nodes, {self.eligible.size}; got {evaluated}"
            )
        rng = np.random.default_rng([self.seed, _EVALUATION])
        return [np.sort(rng.choice(self.eligible, evaluated, replace=False)) for _ in range(repetitions)]

    def halves(self, repetitions: int) -> list[Ints]:
        """Return the tested half of the eligible nodes in each repetition of PCCV."""
        rng = np.random.default_rng([self.seed, _HALVES])
        return [np.sort(rng.permutation(self.eligible)[: self.eligible.size // 2]) for _ in range(repetitions)]

    def balls(self, half: Ints, repetition: int) -> list[Ints]:
        """Cut a tested half into neighbourhoods of radius 2, the largest first."""
        seed = int(np.random.default_rng([self.seed, _HALVES, repetition]).integers(2**31))
        return ns.neighbourhood_partition(self.graph, half, radius=2, min_size=1, seed=seed)

    def without(self, nodes: Ints) -> Ints:
        """Return all other nodes."""
        kept: Bools = np.ones(self.graph.num_nodes, dtype=bool)
        kept[nodes] = False
        return np.flatnonzero(kept)

    def reference(self, calibration: Ints) -> Reference:
        """Return nodes with their scores, for a localiser to calibrate on."""
        return Reference(calibration, self.scores[calibration], self.graph.num_nodes, self.graph)

    def sets(self, nodes: Ints, thresholds: Floats, support: Ints, alpha: float) -> ns.PredictionSets:
        """Return the sets of some nodes with these thresholds, which are based on so many nodes."""
        member, size = members(self.score_matrix[nodes], thresholds), support.astype(np.float64)
        return ns.PredictionSets(nodes, member, thresholds, support, size, alpha, num_nodes=self.graph.num_nodes)


def eligible_nodes(graph: ns.Graph, setup: Setup) -> Ints:
    """Return the nodes with at least `cutoff` other test nodes within `CUTOFF_HOPS` hops of the test subgraph.

    Counted once, among all test nodes and before any draw. No label enters, so that it cannot leak one; a node
    then has a little less support in a repetition, whose evaluation nodes calibrate nothing.
    """
    nodes = np.arange(graph.num_nodes)
    neighbourhoods = Hops(CUTOFF_HOPS).fit(Reference(nodes, np.zeros(nodes.size), nodes.size, graph))
    return np.flatnonzero(neighbourhoods.thresholds(nodes, [Cut(0.5)]).support >= setup.cutoff)


#: Predicts the sets of several cells: of evaluated nodes (first) from the labels of calibration nodes (second).
Predict = Callable[[Ints, Ints], list[ns.PredictionSets]]


def strict(scored: ScoredGraph, cells: Sequence[Row]) -> Predict:
    """Calibrate on the calibration nodes alone, with exact quantiles; one search serves all decays of a depth."""
    decays = [(METHODS[cell["method"]] or "", cell["hops"]) for cell in cells]

    def predict(nodes: Ints, calibration: Ints) -> list[ns.PredictionSets]:
        reference, cuts = scored.reference(calibration), [Cut(1.0 - cells[0]["alpha"])]
        found = {("", 0): Everyone().fit(reference).thresholds(nodes, cuts)}
        for depth in sorted({hops for _, hops in decays} - {0}):
            names = [decay for decay, hops in decays if hops == depth]
            locals_: list[Any] = [Hops(depth, decay).fit(reference) for decay in names]
            shared = share_search(locals_, nodes, [cuts] * len(names), threads=1)
            found |= dict(zip(((decay, depth) for decay in names), shared, strict=True))
        return [scored.sets(nodes, found[key].values[0], found[key].support, cells[0]["alpha"]) for key in decays]

    return predict


def as_published(scored: ScoredGraph, cells: Sequence[Row]) -> Predict:
    """Calibrate as the released code did: NAPS on all test nodes, APS with an interpolated quantile."""
    alpha, all_nodes = cells[0]["alpha"], np.arange(scored.graph.num_nodes)
    known: list[tuple[Floats, Ints] | None] = []
    for cell in cells:
        decay, hops = METHODS[cell["method"]], cell["hops"]
        if decay is None:
            known.append(None)
            continue
        weights = ns.hop_weights(decay, hops) * 2.0 ** (scored.setup.geometric_offset if decay == "geometric" else 0)
        local = Hops(hops, weights).fit(scored.reference(all_nodes)).thresholds(all_nodes, [Cut(1.0 - alpha)])
        known.append((np.where(np.isinf(local.values[0]), 1.0 - alpha, local.values[0]), local.support))

    def predict(nodes: Ints, calibration: Ints) -> list[ns.PredictionSets]:
        level = min(1.0, (1.0 - alpha) * (1.0 + 1.0 / calibration.size))
        interpolated = float(np.quantile(scored.scores[calibration], level))
        flat = np.full(nodes.size, interpolated), np.full(nodes.size, calibration.size)
        parts = [flat if one is None else (one[0][nodes], one[1][nodes]) for one in known]
        return [scored.sets(nodes, tau, support, alpha) for tau, support in parts]

    return predict


PROTOCOLS = {"strict": strict, "as-published": as_published}


def measure(scored: ScoredGraph, cells: list[Row]) -> list[Row]:
    """Return the rows of cells about one model, which have the number of repetitions and of evaluated nodes in common.

    PCCV has draws of its own: half of the eligible nodes calibrate, the other half is cut into balls.
    """
    if any((cell["method"] == BASELINE) != (cell["hops"] == 0) for cell in cells):
        raise ns.InvalidInputError(f"{BASELINE} must have 0 hops, and no other method may")
    count, rows = cells[0]["repetitions"], []
    draws, halves = scored.draws(count, cells[0]["evaluated"]), scored.halves(count)
    balls = [scored.balls(half, i) for i, half in enumerate(halves)]
    for (protocol, alpha), here in grouped(cells, "protocol", "alpha").items():
        rng = np.random.default_rng([scored.seed, _CHANCE])
        predict = PROTOCOLS[protocol](scored, here)
        values: list[dict[str, list[float]]] = [{name: [] for name in (*METRICS, "pccv", "pccv_chance")} for _ in here]
        for drawn, half, parts in zip(draws, halves, balls, strict=True):
            published = protocol == "as-published"
            large = parts[: scored.setup.largest_balls] if published else [p for p in parts if p.size >= MIN_BALL]
            chance = chance_violation([part.size for part in large], alpha, rng)
            both = predict(drawn, scored.without(drawn)), predict(half, np.setdiff1d(scored.eligible, half))
            for lists, sets, tested in zip(values, *both, strict=True):
                for name, metric in METRICS.items():
                    lists[name].append(metric(sets, scored))
                lists["pccv"].append(ns.pccv(tested, scored.labels, large))
                lists["pccv_chance"].append(chance)
        for cell, lists in zip(here, values, strict=True):
            medians = {name: _median(np.array(numbers)) for name, numbers in lists.items()}
            rows.append({**cell, "accuracy": scored.accuracy, **medians})
    return rows


def chance_violation(sizes: list[int], alpha: float, rng: np.random.Generator) -> float:
    """Draw the PCCV of sets that contain each label independently with probability 1 − alpha; NaN without balls."""
    if not sizes:
        return float("nan")
    return float(np.abs(rng.binomial(sizes, 1.0 - alpha) / np.array(sizes) - (1.0 - alpha)).max())


def _median(values: Floats) -> float:
    """Return the median of the known values; NaN where no repetition had a neighbourhood large enough."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def _train(cell: Row, data: NodeDataset) -> NodePredictions:
    """Train a model, and return its predictions on the test nodes."""
    if cell["model"] == "label-counts":
        from studies.training.labels import train_label_counts

        return train_label_counts(data, cell["seed"])
    from studies import training

    return training.train(data, cell["model"], cell["preset"], cell["seed"], threads=1).take(data.test)


def scored_graph(cell: Row, folders: Folders) -> ScoredGraph:
    """Return the graph and scores that the cells of a model are measured on."""
    data, setup = load(cell["dataset"], root=folders.root, seed=cell["seed"]), SETUPS[cell["dataset"]]
    name = "_".join(str(cell[setting]) for setting in ("dataset", "model", "preset", "seed"))
    file = folders.predictions(f"{name}.parquet")
    predictions = kept_predictions(file, lambda: _train(cell, data))
    graph, labels = data.graph.subgraph(data.test), data.labels[data.test]
    # u belongs to the node's id in the whole graph, wherever it stands in the subgraph.
    matrix = APS().matrix(predictions.take(data.test).probabilities, ns.node_uniforms(data.test, cell["seed"]))
    return ScoredGraph(setup, graph, labels, matrix, eligible_nodes(graph, setup), predictions.accuracy, cell["seed"])


def _coverage_rows(cells: list[Row], folders: Folders) -> list[Row]:
    # A row takes hundreds of small searches, so compiled kernels are worth their start-up time.
    with patch.object(threads, "SMALL", 0):
        return measure(scored_graph(cells[0], folders), cells)


def _dataset_rows(cells: list[Row], folders: Folders) -> list[Row]:
    return [dataset_row(cell, load(cell["dataset"], root=folders.root, seed=cell["seed"])) for cell in cells]


def dataset_row(cell: Row, data: NodeDataset) -> Row:
    """Return a row of Table 1."""
    graph = data.graph.subgraph(data.test)
    ends = np.repeat(data.labels, data.graph.degrees), data.labels[data.graph.indices]
    return {
        **cell,
        "nodes": data.num_nodes,
        "edges": data.graph.num_edges,
        "features": data.num_features,
        "classes": data.num_classes,
        "test_nodes": int(data.test.size),
        "test_edges": graph.num_edges,
        "eligible": int(eligible_nodes(graph, SETUPS[cell["dataset"]]).size),
        "edge_homophily": float((ends[0] == ends[1]).mean()),
        "node_homophily": ns.node_homophily(data.graph, data.labels),
        "test_homophily": ns.node_homophily(graph, data.labels[data.test]),
        "expected_homophily": ns.expected_homophily(data.labels),
    }


#: One row for each dataset and split seed.
DATASETS = Kind("datasets", ("dataset", "seed"), ("dataset", "seed"), _dataset_rows)
#: One row for each method on each trained model. `preset` names the training settings; `hops` is the paper's K, 0 for
#: the baseline; `evaluated` nodes are drawn in each of the `repetitions`.
COVERAGE = Kind(
    "coverage",
    (
        *("dataset", "model", "seed", "protocol", "method", "hops"),
        *("alpha", "repetitions", "evaluated", "preset"),
    ),
    ("dataset", "model", "seed", "preset", "repetitions", "evaluated"),
    _coverage_rows,
)
