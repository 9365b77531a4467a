"""Absurd values for every argument: an answer or an error of our own, never a foreign one, and never for long."""

from __future__ import annotations

import math
from inspect import signature

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.advice.threshold import hop_rings
from napsets.datasets import NodeDataset
from napsets.datasets.dataset import random_split
from napsets.datasets.synthetic import dcsbm_graph, sbm_graph
from napsets.evaluation.comparison import compare

SIZE = 12
RNG = np.random.default_rng(0)
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 20)), SIZE)
P = RNG.dirichlet(np.ones(3), SIZE)
Y = RNG.integers(3, size=SIZE)
KNOWN = np.where(np.arange(SIZE) < 6, Y, -1)
CALIBRATION, NODES = np.arange(6), np.arange(6, 12)
NAPS = ns.NAPS().calibrate(GRAPH, P, Y, CALIBRATION)
SETS = NAPS.predict(NODES, 0.3)

ABSURD = {
    "None": None, "a text": "x", "a number as text": "0.1", "-1": -1, "2.5": 2.5, "NaN": math.nan, "inf": math.inf,
    "2^45": 2**45, "2^63-1": 2**63 - 1, "2^63": 2**63, "2^70": 2**70, "10^400": 10**400, "10^5000": 10**5000,
    "-10^400": -(10**400), "1e308": 1e308, "complex": 1 + 2j, "[]": [], "[[]]": [[]], "[0, 1]": [0, 1],
    "[2^63]": [2**63], "[2^70]": [2**70], "[10^400]": [10**400], "[None]": [None], "ragged": [[0], [0, 1]],
    "a mapping": {"a": 1}, "a set": {1}, "an object": object(), "0 dimensions": np.array(3),
    "uint64": np.array([2**63 + 1], np.uint64), "NaNs": np.full(SIZE, np.nan), "infs": np.full(6, np.inf),
    "no columns": np.zeros((SIZE, 0)), "days": np.array(["2020"], "M8[D]"), "a sparse matrix": sp.eye_array(3),
    "a NetworkX graph": nx.path_graph(3), "masked": np.ma.array([1, 2], mask=[0, 1]), "a flag": True,
    "a function": lambda k: "x", "a huge function": lambda k: 10**400, "huge labels": [2**62] * SIZE,
    "huge numbers": [1e308] * SIZE, "a slice": slice(None), "a graph": GRAPH, "a predictor": NAPS,
}  # fmt: skip


def vary(function, *names, **good):
    """Yield, for each argument, a call that takes that argument and leaves the others good."""
    return {
        f"{function.__name__} {name}": lambda value, name=name: function(**(good | {name: value})) for name in names
    }


def naps(**changes):
    arguments = {"graph": GRAPH, "probabilities": P, "labels": Y, "calibration": CALIBRATION} | changes
    settings = {name: arguments.pop(name) for name in [*arguments] if name in signature(ns.NAPS).parameters}
    return ns.NAPS(**settings).calibrate(**arguments).predict(NODES, 0.3)


SETS_OF = {
    "nodes": NODES, "member": SETS.member, "thresholds": SETS.thresholds, "support": SETS.support,
    "effective_size": SETS.effective_size, "alpha": 0.1,
}  # fmt: skip
INTERVALS_OF = {
    "nodes": NODES, "lower": np.zeros(6), "upper": np.ones(6), "thresholds": np.ones(6), "support": np.ones(6, int),
    "effective_size": np.ones(6), "alpha": 0.1,
}  # fmt: skip
DATA_OF = {"graph": GRAPH, "features": P, "labels": Y, "train": CALIBRATION, "validation": [], "test": NODES}
USES = {
    "a node id": lambda v: ns.Graph.from_edge_index([[0], [v]]),
    "neighbours": GRAPH.neighbours,
    "subgraph": GRAPH.subgraph,
    "from_scipy": ns.Graph.from_scipy,
    "from_networkx": ns.Graph.from_networkx,
    "from_pyg": ns.Graph.from_pyg,
    "from_table": lambda v: ns.Graph.from_table({"source": v, "target": v}),
    "strata": lambda v: ns.sscv(SETS, Y, v),
    "a stratum": lambda v: ns.sscv(SETS, Y, [(0, v)]),
    **vary(ns.Graph, "indptr", "indices", "directed", "original_ids", indptr=[0, 1, 2], indices=[1, 0]),
    **vary(ns.Graph.from_edge_index, "edge_index", "num_nodes", "directed", edge_index=[[0], [1]]),
    **vary(naps, "graph", "probabilities", "labels", "calibration", "ids", "hops", "decay", "score", "seed",
           "fallback", "allow_empty"),
    **vary(NAPS.predict, "nodes", "alpha", "allow_empty", "threads", nodes=NODES),
    **vary(ns.hop_weights, "decay", "hops", decay="uniform", hops=2),
    **vary(ns.weighted_quantile, "scores", "weights", "alpha", scores=[0.1] * 6, weights=[1] * 6),
    **vary(ns.node_uniforms, "ids", "seed", ids=[1, 2]),
    **vary(ns.aps_scores, "probabilities", "u", probabilities=P, u=0.5),
    **vary(ns.RAPS, "penalty", "free_ranks", "randomized"),
    **vary(ns.SAPS, "weight", "randomized"),
    **vary(ns.coverage, "sets", "labels", "per", sets=SETS, labels=Y),
    **vary(ns.mean_size, "sets"),
    **vary(ns.pccv, "sets", "labels", "partition", sets=SETS, labels=Y, partition=[NODES]),
    **vary(ns.coverage_by_degree, "sets", "labels", "graph", "bins", sets=SETS, labels=Y, graph=GRAPH),
    **vary(ns.neighbourhood_partition, "graph", "nodes", "radius", "min_size", "seed", graph=GRAPH, nodes=NODES),
    **vary(ns.node_homophily, "graph", "labels", graph=GRAPH, labels=Y),
    **vary(ns.expected_homophily, "labels"),
    **vary(ns.coverage_gap_bound, "hop_weights", "hop_counts", "hop_tv", hop_weights=[1.0] * 6, hop_counts=[1] * 6,
           hop_tv=[0.1] * 6),
    **vary(ns.sbm_favours_naps, "n", "p_in", "p_out", n=10, p_in=0.1, p_out=0.2),
    **vary(ns.PredictionSets, *SETS_OF, "class_names", "num_nodes", **SETS_OF),
    **vary(ns.PredictionIntervals, *INTERVALS_OF, "num_nodes", "ids", "centre", "level", **INTERVALS_OF),
    **vary(NodeDataset, *DATA_OF, "class_names", "node_ids", "blocks", "settings", **DATA_OF),
    **vary(compare, "graph", "probabilities", "labels", "calibration", "nodes", "alpha", "hops", "score", "seed", "ids",
           "alphas", "strata", graph=GRAPH, probabilities=P, labels=Y, calibration=CALIBRATION, nodes=NODES),
    **vary(hop_rings, "graph", "node", "hops", graph=GRAPH, node=0, hops=2),
    **vary(inspect_node, "calibrated", "node", "alpha", calibrated=NAPS, node=0),
    **vary(random_split, "num_nodes", "sizes", "seed", num_nodes=10, sizes=(0.5, 0.2, 0.3)),
    **vary(sbm_graph, "p_in", "p_out", "seed", block_size=5, p_in=0.1, p_out=0.1),
    **vary(dcsbm_graph, "mean_degree", "homophily", "exponent", "seed", num_nodes=20, mean_degree=3, num_classes=2),
}  # fmt: skip


def foreign_error(use, value):
    """Return what is raised that is not ours, if anything."""
    try:
        use(value)
    except ns.NapsetsError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore")
def test_absurd_values_give_answers_or_errors_of_our_own(use):
    raised = {name: foreign_error(USES[use], value) for name, value in ABSURD.items()}
    assert {name: error for name, error in raised.items() if error} == {}


MESSAGES = {
    "alpha": (lambda: NAPS.predict(NODES, 10**400), "`alpha` must be a number between 0 and 1; got 1000"),
    "an id of 2^45": (
        lambda: ns.Graph.from_edge_index([[0], [2**45]]),
        "`edge_index` must hold ids from 0 to the number of nodes less one; 35184372088833 nodes do not fit into "
        r"memory. Number the nodes from 0 first \(numpy.unique",
    ),
    "an id of 2^63-1": (lambda: ns.Graph.from_edge_index([[0], [2**63 - 1]]), "do not fit into memory"),
    "an id beyond": (
        lambda: ns.Graph.from_edge_index(np.array([[0], [2**63]], np.uint64)),
        r"`edge_index` must hold integers below 2\^63; got 9223372036854775808",
    ),
    "num_nodes": (
        lambda: ns.Graph.from_edge_index([[0], [1]], 2**70),
        "`num_nodes` must be at most 1,099,511,627,776; got 1180591620717411303424",
    ),
    "a few ids far apart": (lambda: ns.Graph.from_edge_index([[0], [2**30]]), "do not fit into memory"),
    "two nodes": (lambda: GRAPH.neighbours([0, 1]), "`node` must be one node; got 2. Pass one at a time"),
    "a seed": (
        lambda: ns.neighbourhood_partition(GRAPH, NODES, seed=-1),
        r"`seed` must be at least 0 and below 2\^64; got -1",
    ),
    "NaN counts": (
        lambda: ns.coverage_gap_bound([1.0], [math.nan], [0.1]),
        "`hop_counts` must be finite, from 0 to 9.22337e\\+18; got nan",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_message_says_what_is_possible(name):
    action, message = MESSAGES[name]
    with pytest.raises(ns.InvalidInputError, match=message):
        action()


def test_ids_of_any_integer_type_make_the_same_graph():
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    for dtype in (np.int8, np.uint16, np.uint32, np.uint64, np.int64):
        assert ns.Graph.from_edge_index(edges.astype(dtype)) == ns.Graph.from_edge_index(edges)


def test_tensors_without_data_are_refused_and_narrow_ones_taken():
    torch = pytest.importorskip("torch")
    with pytest.raises(
        ns.InvalidInputError, match="`probabilities` must be an array; got Tensor: Cannot copy out of meta"
    ):
        naps(probabilities=torch.empty(SIZE, 3, device="meta"))
    with pytest.raises(ns.InvalidInputError, match="`ids` must be an array; got Tensor"):
        naps(ids=torch.empty(SIZE, device="meta"))
    rows = torch.full((SIZE, 4), 0.25, dtype=torch.bfloat16)
    assert np.array_equal(naps(probabilities=rows).member, naps(probabilities=np.full((SIZE, 4), 0.25)).member)


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "abc", None])
def test_every_seed_is_checked_alike(seed):
    for use in (
        lambda: ns.NAPS(seed=seed),
        lambda: ns.node_uniforms([1], seed),
        lambda: ns.neighbourhood_partition(GRAPH, NODES, seed=seed),
        lambda: compare(GRAPH, P, Y, CALIBRATION, NODES, seed=seed),
        lambda: random_split(10, (0.5, 0.2, 0.3), seed),
        lambda: sbm_graph(5, 0.1, 0.1, seed),
        lambda: dcsbm_graph(20, 3, 2, seed=seed),
        lambda: ns.datasets.load("sbm", block_size=5, seed=seed),
    ):
        with pytest.raises(ns.InvalidInputError, match=r"`seed` must be (an integer|at least 0 and below)"):
            use()
    assert ns.node_uniforms([1], 2**64 - 1) is not None
