"""Bad input: every error names the argument, what it must be, and what came."""

from __future__ import annotations

import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from napsets.errors import InvalidInputError

EDGES = np.array([[0, 1, 2], [1, 2, 3]])
GRAPH = ns.Graph.from_edge_index(EDGES, 5)
P = np.full((5, 4), 0.25)
Y = np.array([0, 1, 2, 3, -1])
CALIBRATION = [0, 1, 2]
SCORES = [0.1, 0.2, 0.3]


def changed(array, place, value):
    copy = np.array(array, dtype=float)
    copy[place] = value
    return copy


def calibrate(**changes):
    arguments = {"graph": GRAPH, "probabilities": P, "labels": Y, "calibration": CALIBRATION} | changes
    settings = {k: arguments.pop(k) for k in ("hops", "decay", "fallback", "seed", "score") if k in arguments}
    return ns.NAPS(**settings).calibrate(**arguments)


def calibrate_split(**changes):
    arguments = {"probabilities": P, "labels": Y, "calibration": CALIBRATION} | changes
    return ns.SplitConformal().calibrate(**arguments)


def thresholds(**changes):
    arguments = {
        "graph": GRAPH, "scores": SCORES, "calibration": CALIBRATION, "nodes": [3], "hop_weights": [1.0], "alpha": 0.1,
    }  # fmt: skip
    return ns.hop_thresholds(**(arguments | changes))


def index():
    return ns.CalibrationIndex(GRAPH, SCORES, CALIBRATION)


def sets(**changes):
    values = {
        "nodes": np.array([0, 3]), "member": np.ones((2, 3), bool), "thresholds": np.ones(2),
        "support": np.ones(2, int), "effective_size": np.ones(2), "alpha": 0.1, "num_nodes": 5,
    }  # fmt: skip
    return ns.PredictionSets(**(values | changes))


#: name: (what is done, the message it must give)
ROWS = {
    # probabilities
    "rows that do not sum to 1": (
        lambda: calibrate(probabilities=changed(P, (3, 0), 0.08)),
        "`probabilities` must have rows that sum to 1; row 3 sums to 0.83",
    ),
    "logits": (
        lambda: calibrate(probabilities=P * 8),
        "`probabilities` must have rows that sum to 1; row 0 sums to 8. If they are logits, pass logits=True "
        "to calibrate(...)",
    ),
    "negative logits": (
        lambda: calibrate(probabilities=np.log(P)),
        "`probabilities` must not be negative; row 0, class 0 is -1.38629. If they are logits",
    ),
    "sparse probabilities": (
        lambda: calibrate(probabilities=sp.csr_array(P)),
        "`probabilities` must be a dense array; got csr_array: pass its .toarray()",
    ),
    "an integer mask of calibration": (
        lambda: calibrate(calibration=[1, 1, 0, 0, 0]),
        "`calibration` must hold node ids or be a boolean mask; got integers 0 and 1, one per node. If they are a "
        "mask, pass it with .astype(bool)",
    ),
    "an integer mask of nodes to cut up": (
        lambda: ns.neighbourhood_partition(GRAPH, [0, 0, 0, 1, 1]),
        "`nodes` must hold node ids or be a boolean mask; got integers 0 and 1",
    ),
    "a NaN probability": (
        lambda: calibrate(probabilities=changed(P, (2, 1), np.nan)),
        "`probabilities` must be finite; row 2 has a NaN or infinite entry",
    ),
    "an infinite probability": (
        lambda: calibrate_split(probabilities=changed(P, (4, 1), -np.inf)),
        "`probabilities` must be finite; row 4 has a NaN or infinite entry",
    ),
    "a negative probability": (
        lambda: ns.aps_scores([[1.25, -0.25]], [0.5]),
        "`probabilities` must not be negative; row 0, class 1 is -0.25",
    ),
    "one dimension": (
        lambda: calibrate(probabilities=P[0]),
        "`probabilities` must have shape (nodes, classes) with at least one class; got (4,)",
    ),
    "no class": (
        lambda: calibrate(probabilities=np.empty((5, 0))),
        "`probabilities` must have shape (nodes, classes) with at least one class; got (5, 0)",
    ),
    "too few rows": (
        lambda: calibrate(probabilities=P[:3]),
        "`probabilities` must have one row per node of the graph, 5; got 3 rows",
    ),
    "complex probabilities": (
        lambda: calibrate(probabilities=P.astype(complex)),
        "`probabilities` must be float32 or float64; got dtype complex128",
    ),
    "ragged probabilities": (
        lambda: calibrate(probabilities=[[0.5, 0.5], [1.0]]),
        "`probabilities` must be an array; got",
    ),
    "objects": (
        lambda: calibrate(probabilities=[[None, 1.0]]),
        "`probabilities` must be an array of numbers; got an array of Python objects",
    ),
    # labels
    "too few labels": (
        lambda: calibrate(labels=Y[:3]),
        "`labels` must have one entry per node, 5 (−1 where unknown); got 3",
    ),
    "a label too large": (
        lambda: calibrate(labels=[0, 1, 2, 4, 0]),
        "`labels` must be from 0 to 3, or −1 for unknown; got 4",
    ),
    "a label below −1": (
        lambda: calibrate_split(labels=[0, 1, 2, -2, 0]),
        "`labels` must be from 0 to 3, or −1 for unknown; got -2",
    ),
    "labels between classes": (lambda: calibrate(labels=Y + 0.5), "`labels` must hold integers; got dtype float64"),
    "labels that are names": (
        lambda: calibrate(labels=list("abcde")),
        "`labels` must hold integers; got names such as 'a'. For names, pass class_names=[...]",
    ),
    "one-hot labels": (
        lambda: calibrate(labels=np.eye(5, dtype=int)),
        "`labels` must have 1 dimension; got shape (5, 5)",
    ),
    "an unknown label to score": (
        lambda: ns.APS().at(P, Y, np.zeros(5)),
        "`labels` must be known to be scored; entry 4 is −1",
    ),
    "an unknown label to evaluate": (
        lambda: ns.coverage(sets(), [0, 0, 0, -1, 0]),
        "`labels` must be known, from 0 to 2, where there is a set; node 3 has -1",
    ),
    "labels of neither length": (
        lambda: ns.coverage(sets(), [0, 0, 0, 0]),
        "`labels` must have one entry per node of the graph, 5, indexed by node id; got 4. Pass per='set' if",
    ),
    # calibration
    "no calibration": (lambda: calibrate(calibration=[]), "`calibration` must hold at least one node; it is empty"),
    "an empty mask": (
        lambda: calibrate_split(calibration=np.zeros(5, bool)),
        "`calibration` must hold at least one node; it is empty",
    ),
    "no calibration scores": (
        lambda: thresholds(scores=[], calibration=[]),
        "`calibration` must hold at least one node; it is empty",
    ),
    "unknown labels in calibration": (
        lambda: calibrate(calibration=[1, 4]),
        "`calibration` must hold nodes whose label is known; 1 are not, node 4 first",
    ),
    "a calibration id too large": (
        lambda: calibrate(calibration=[0, 5]),
        "`calibration` must hold ids from 0 to 4; got 5",
    ),
    "a negative calibration id": (
        lambda: thresholds(calibration=[0, 1, -1]),
        "`calibration` must hold ids from 0 to 4; got -1",
    ),
    "a calibration node twice": (
        lambda: calibrate(calibration=[2, 0, 2]),
        "`calibration` must not repeat a node; node 2 appears 2 times",
    ),
    "a calibration mask of another length": (
        lambda: calibrate(calibration=np.ones(4, bool)),
        "`calibration` as a boolean mask must have one entry per node, shape (5,); got (4,)",
    ),
    "calibration that is fractions": (
        lambda: calibrate(calibration=[0.5]),
        "`calibration` must hold integers; got dtype float64",
    ),
    # nodes
    "a node too large": (lambda: calibrate().predict([7]), "`nodes` must hold ids from 0 to 4; got 7"),
    "a negative node": (lambda: thresholds(nodes=[-1]), "`nodes` must hold ids from 0 to 4; got -1"),
    "a negative node, with an index": (
        lambda: ns.neighbourhood_thresholds(index(), [-1], [1.0], 0.1),
        "`nodes` must hold ids from 0 to 4; got -1",
    ),
    "a mask of nodes of another length": (
        lambda: calibrate_split().predict([True, False]),
        "`nodes` as a boolean mask must have one entry per node, shape (5,); got (2,)",
    ),
    "a node twice in a subgraph": (
        lambda: GRAPH.subgraph([1, 1]),
        "`nodes` must not repeat a node; node 1 appears 2 times",
    ),
    "a node to partition out of range": (
        lambda: ns.neighbourhood_partition(GRAPH, [9]),
        "`nodes` must hold ids from 0 to 4; got 9",
    ),
    "neighbours of no node": (lambda: GRAPH.neighbours(5), "`node` must hold ids from 0 to 4; got 5"),
    # alpha
    **{
        f"alpha {alpha}": (
            lambda alpha=alpha: calibrate().predict([3], alpha=alpha),
            f"`alpha` must lie strictly between 0 and 1; got {alpha:g}",
        )
        for alpha in (0.0, 1.0, -0.1, 10.0, float("nan"))
    },
    "alpha in words": (
        lambda: calibrate_split().predict([3], alpha="ten"),
        "`alpha` must be a number between 0 and 1; got 'ten'",
    ),
    "a list among several alphas": (
        lambda: calibrate().predict([3], alpha=[0.1, [0.2]]),
        "`alpha` must",
    ),
    "one alpha of several": (
        lambda: thresholds(alpha=[0.1, 2.0]),
        "`alpha` must lie strictly between 0 and 1; got 2",
    ),
    "alpha of a quantile": (
        lambda: ns.weighted_quantile([1.0], [1.0], alpha=0),
        "`alpha` must lie strictly between 0 and 1; got 0",
    ),
    # hops and decay
    "negative hops": (lambda: calibrate(hops=-1), "`hops` must be at least 0; got -1"),
    "half a hop": (lambda: calibrate(hops=1.5), "`hops` must be an integer; got 1.5"),
    "hops in words": (lambda: ns.hop_weights("uniform", "two"), "`hops` must be an integer; got 'two'"),
    "an unknown decay": (
        lambda: calibrate(decay="linear"),
        "`decay` must be one of uniform, hyperbolic, geometric; got 'linear'",
    ),
    "a negative weight": (
        lambda: calibrate(decay=lambda k: 1 - k),
        "`decay` must give finite weights from 0 to 1e+100; hop 2 weighs -1",
    ),
    "an infinite weight": (
        lambda: calibrate(decay=[1.0, np.inf]),
        "`decay` must give finite weights from 0 to 1e+100; hop 2 weighs inf",
    ),
    "a NaN weight": (
        lambda: thresholds(hop_weights=[np.nan]),
        "`hop_weights` must give finite weights from 0 to 1e+100; hop 1 weighs nan",
    ),
    "too few weights": (lambda: calibrate(decay=[1.0]), "`decay` must have a weight for each of the 2 hops; got 1"),
    "a decay that gives no number": (
        lambda: calibrate(decay=lambda k: None),
        "`decay` must return a number for each hop; got [None, None]",
    ),
    "a table of decays": (
        lambda: calibrate(decay=np.ones((2, 2))),
        "`decay` as an array must hold one number per hop; got shape (2, 2), float64",
    ),
    "weights of no shape": (
        lambda: thresholds(hop_weights=1.0),
        "`hop_weights` must have shape (hops,) or (decays, hops); got ()",
    ),
    "no decays": (
        lambda: thresholds(hop_weights=np.empty((0, 2))),
        "`hop_weights` must have shape (hops,) or (decays, hops); got (0, 2)",
    ),
    "weights in words": (
        lambda: thresholds(hop_weights=["a"]),
        "`hop_weights` as an array must hold one number per hop; got",
    ),
    # scores and quantiles
    "too few scores": (lambda: thresholds(scores=[0.1]), "`scores` must have one entry per calibration node, 3; got 1"),
    "a NaN score": (lambda: thresholds(scores=[0.1, np.nan, 0.2]), "`scores` must not be NaN; entry 1 is"),
    "a table of scores": (
        lambda: thresholds(scores=np.ones((3, 2))),
        "`scores` must have 1 dimension; got shape (3, 2)",
    ),
    "scores in words": (lambda: ns.weighted_quantile(["a"], [1]), "`scores` must hold numbers; got dtype <U1"),
    "too few weights of a quantile": (
        lambda: ns.weighted_quantile([1.0, 2.0], [1.0]),
        "`weights` must have one entry per score, 2; got shape (1,)",
    ),
    "a negative weight of a quantile": (
        lambda: ns.weighted_quantile([1.0, 2.0], [1.0, -1.0]),
        "`weights` must be finite, from 0 to 1e+100; entry 1 is -1",
    ),
    "an infinite weight of a quantile": (
        lambda: ns.weighted_quantile([1.0, 2.0], [np.inf, 1.0]),
        "`weights` must be finite, from 0 to 1e+100; entry 0 is inf",
    ),
    "weights of a quantile in words": (
        lambda: ns.weighted_quantile([1.0], ["a"]),
        "`weights` must hold numbers; got dtype <U1",
    ),
    "no u": (
        lambda: ns.APS().matrix(P),
        "`u` must be given to a randomised APS, one number in [0, 1] a node; got None",
    ),
    "no u for SAPS": (
        lambda: ns.SAPS().at(P[:4], Y[:4]),
        "`u` must be given to a randomised SAPS, one number in [0, 1] a node; got None",
    ),
    "too few u": (lambda: ns.aps_scores(P, [0.5, 0.5]), "`u` must have one entry per node, 5; got shape (2,)"),
    "u above 1": (lambda: ns.aps_scores(P, [0, 0, 1.5, 0, 0]), "`u` must lie in [0, 1]; entry 2 is 1.5"),
    "a NaN u": (lambda: ns.aps_scores(P, [0, np.nan, 0, 0, 0]), "`u` must lie in [0, 1]; entry 1 is nan"),
    "u in words": (lambda: ns.aps_scores(P, list("abcde")), "`u` must hold numbers in [0, 1]; got dtype <U1"),
    # graphs
    "an edge to nowhere": (
        lambda: ns.Graph.from_edge_index(EDGES, 3),
        "`edge_index` must hold ids from 0 to 2; got 3",
    ),
    "an edge from a negative id": (
        lambda: ns.Graph.from_edge_index([[0], [-4]], 3),
        "`edge_index` must hold ids from 0 to 2; got -4",
    ),
    "edges the wrong way round": (
        lambda: ns.Graph.from_edge_index(EDGES.T, 4),
        "`edge_index` must have shape (2, edges); got (3, 2). Pass its transpose, .T, if",
    ),
    "edges of one dimension": (
        lambda: ns.Graph.from_edge_index([0, 1], 4),
        "`edge_index` must have 2 dimensions; got shape (2,)",
    ),
    "edges of floats": (
        lambda: ns.Graph.from_edge_index(EDGES * 1.0, 4),
        "`edge_index` must hold integers; got dtype float64",
    ),
    "a negative number of nodes": (
        lambda: ns.Graph.from_edge_index([[], []], -1),
        "`num_nodes` must be at least 0; got -1",
    ),
    "a number of nodes in words": (
        lambda: ns.Graph.from_edge_index(EDGES, "many"),
        "`num_nodes` must be an integer; got 'many'",
    ),
    "a matrix that is not square": (
        lambda: ns.Graph.from_scipy(sp.coo_array((3, 4))),
        "`adjacency` must be a square SciPy sparse matrix; got coo_array of shape (3, 4)",
    ),
    "a dense matrix": (
        lambda: ns.Graph.from_scipy(np.eye(3)),
        "`adjacency` must be a square SciPy sparse matrix; got ndarray of shape (3, 3)",
    ),
    "no NetworkX graph": (lambda: ns.Graph.from_networkx([(0, 1)]), "`graph` must be a NetworkX graph; got list"),
    "no edge_index": (
        lambda: ns.Graph.from_pyg(SimpleNamespace(x=1)),
        "`data` must have an `edge_index` or an `adj_t`; SimpleNamespace has neither",
    ),
    "a table of three columns": (
        lambda: ns.Graph.from_table({"a": [0], "b": [1], "c": [2]}),
        "`table` must have the columns source and target, or just two; got a, b, c",
    ),
    "a table with missing ids": (
        lambda: ns.Graph.from_table({"source": [0.0, np.nan], "target": [1, 2]}),
        "`table['source']` must hold integers; got dtype float64",
    ),
    "a table with columns of unequal length": (
        lambda: ns.Graph.from_table({"source": [0, 1], "target": [1]}),
        "`table` must have as many sources as targets; got 2, 1",
    ),
    "no table": (lambda: ns.Graph.from_table(17), "`table` must be a table that Arrow can read; got int"),
    "offsets that fall": (
        lambda: ns.Graph([0, 2, 1, 2], [1, 2]),
        "`indptr` must ascend from 0 to the number of stored edges, 2; it does not",
    ),
    "offsets that end early": (
        lambda: ns.Graph([0, 1], [0, 0]),
        "`indptr` must ascend from 0 to the number of stored edges, 2; it does not",
    ),
    "a neighbour out of range": (lambda: ns.Graph([0, 1, 1], [2]), "`indices` must hold ids from 0 to 1; got 2"),
    "a negative neighbour": (lambda: ns.Graph([0, 1, 2], [-1, 0]), "`indices` must hold ids from 0 to 1; got -1"),
    "a repeated neighbour": (
        lambda: ns.Graph([0, 2, 2], [1, 1]),
        "`indices` must ascend within each row, without repeats and without the row's own node; row 0 does not",
    ),
    "a self-loop in rows": (
        lambda: ns.Graph([0, 1, 2], [1, 1]),
        "`indices` must ascend within each row, without repeats and without the row's own node; row 1 does not",
    ),
    "too few original ids": (
        lambda: ns.Graph([0, 0, 0], [], original_ids=[7]),
        "`original_ids` must have one entry per node, 2; got 1",
    ),
    "another kind of graph": (
        lambda: ns.CalibrationIndex(nx.path_graph(5), SCORES, CALIBRATION),
        "`graph` must be a napsets.Graph; got Graph of networkx.classes.graph. Make one with "
        "napsets.Graph.from_networkx(...)",
    ),
    "a sparse matrix for a graph": (
        lambda: ns.CalibrationIndex(sp.eye_array(5), SCORES, CALIBRATION),
        "`graph` must be a napsets.Graph; got dia_array of scipy.sparse._dia. Make one with napsets.Graph.from_scipy(",
    ),
    "a Data for a graph": (
        lambda: ns.CalibrationIndex(SimpleNamespace(edge_index=EDGES), SCORES, CALIBRATION),
        "`graph` must be a napsets.Graph; got SimpleNamespace of types. Make one with napsets.Graph.from_pyg(",
    ),
    "a graph of igraph": (
        lambda: ns.NAPS().calibrate(
            SimpleNamespace(get_edgelist=list, vcount=lambda: 5, is_directed=bool), np.eye(5), range(5), [0, 1]
        ),
        "`graph` must be a napsets.Graph; got SimpleNamespace of types. Make one with napsets.Graph.from_edge_index("
        "np.array(g.get_edgelist()).reshape(-1, 2).T, g.vcount(), directed=g.is_directed()), row i for vertex i.",
    ),
    "a table for a graph": (
        lambda: ns.neighbourhood_partition({"source": [0], "target": [1]}, [0]),
        "`graph` must be a napsets.Graph; got dict of builtins. Make one with napsets.Graph.from_table(",
    ),
    "edges for a graph": (
        lambda: thresholds(graph=EDGES),
        "`graph` must be a napsets.Graph; got ndarray of numpy. Make one with napsets.Graph.from_edge_index(",
    ),
    # the rest
    "an unknown fallback": (
        lambda: calibrate(fallback="none"),
        "`fallback` must be 'full' or 'global'; got 'none'",
    ),
    "too few ids": (lambda: calibrate(ids=[1, 2]), "`ids` must have one entry per node, 5; got shape (2,)"),
    "ids that are fractions": (
        lambda: calibrate(ids=np.linspace(0, 1, 5)),
        "`ids` must be integers or strings; got dtype float64",
    ),
    "ids of two dimensions": (lambda: ns.node_uniforms([[1]]), "`ids` must have 1 dimension; got shape (1, 1)"),
    "a seed that is not an integer": (lambda: calibrate(seed=0.5), "`seed` must be an integer; got 0.5"),
    "no threads": (lambda: thresholds(threads=0), "`threads` must be at least 1; got 0"),
    "an unknown strategy": (
        lambda: ns.neighbourhood_thresholds(index(), [3], [1.0], 0.1, strategy="wide"),
        "`strategy` must be one of dense, sparse, deep, or None; got 'wide'",
    ),
    "splits of another shape": (
        lambda: ns.split_thresholds(index(), np.ones((2, 2), bool), [[3], [4]], [1.0], 0.1),
        "`splits` must be boolean of shape (2, 3): one row for each entry of `nodes`, one column per calibration node; "
        "got bool of shape (2, 2)",
    ),
    "splits that are indices": (
        lambda: ns.split_thresholds(index(), np.array([[0, 1, 2]]), [[3]], [1.0], 0.1),
        "`splits` must be boolean of shape (1, 3)",
    ),
    "class names for other classes": (
        lambda: sets(class_names=["a"]),
        "`class_names` must have one name per class, 3; got 1",
    ),
    "strata that overlap": (
        lambda: ns.sscv(sets(), [0] * 5, strata=[(0, 2), (2, 3)]),
        "`strata` must be disjoint ranges of sizes; got [(0, 2), (2, 3)]",
    ),
    "a stratum upside down": (
        lambda: ns.sscv(sets(), [0] * 5, strata=[(3, 1)]),
        "`strata` must be pairs with low ≤ high; got (3, 1)",
    ),
    "a stratum that is no pair": (
        lambda: ns.sscv(sets(), [0] * 5, strata=[3]),
        "`strata` must be pairs (low, high) of set sizes; got 3",
    ),
    "a part without a set": (
        lambda: ns.pccv(sets(), [0] * 5, [[0], [3, 2]]),
        "`partition` must hold nodes that have a set; node 2 has none",
    ),
    "a part out of range": (lambda: ns.pccv(sets(), [0] * 5, [[9]]), "`partition` must hold ids from 0 to 4; got 9"),
    "degree bins that fall": (
        lambda: ns.coverage_by_degree(sets(), [0] * 5, GRAPH, bins=[3, 1]),
        "`bins` must be a number of groups or ascending degrees; got [3, 1]",
    ),
    "no degree bins": (
        lambda: ns.coverage_by_degree(sets(), [0] * 5, GRAPH, bins=0),
        "`bins` must be at least 1; got 0",
    ),
    "a negative radius": (
        lambda: ns.neighbourhood_partition(GRAPH, [0], radius=-1),
        "`radius` must be at least 0; got -1",
    ),
    "homophily of too few labels": (
        lambda: ns.node_homophily(GRAPH, [0]),
        "`labels` must have one entry per node, 5; got 1",
    ),
    "homophily of odd labels": (
        lambda: ns.expected_homophily([0, -7]),
        "`labels` must be at least 0, or −1 for unknown; got -7",
    ),
    "a distance above 1": (
        lambda: ns.coverage_gap_bound([1.0], [3], [1.5]),
        "`hop_tv` must be finite, from 0 to 1; got 1.5",
    ),
    "a negative count": (
        lambda: ns.coverage_gap_bound([1.0], [-3], [0.5]),
        "`hop_counts` must be finite, from 0 to 9.22337e+18; got -3",
    ),
    "counts of other hops": (
        lambda: ns.coverage_gap_bound([1.0], [3, 4], [0.5]),
        "`hop_counts` and `hop_tv` must have one entry per hop, 1; got shapes (2,) and (1,)",
    ),
    "an infinite bound weight": (
        lambda: ns.weighted_gap_bound([1.0, np.inf], [0.5, 0.5]),
        "`weights` must be finite, from 0 to 1e+100; got inf",
    ),
    "too few distances": (
        lambda: ns.weighted_gap_bound([1.0, 1.0], [0.5]),
        "`tv` must have one entry per weight, shape (2,); got (1,)",
    ),
    "an impossible probability": (lambda: ns.sbm_favours_naps(10, 1.5, 0.1), "`p_in` must lie in [0, 1]; got 1.5"),
    "a NaN edge probability": (lambda: ns.sbm_favours_naps(10, 0.5, np.nan), "`p_out` must lie in [0, 1]; got nan"),
    "no nodes in a block": (lambda: ns.sbm_favours_naps(0, 0.5, 0.5), "`n` must be at least 1; got 0"),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_message_names_the_argument_what_it_must_be_and_what_came(name):
    action, message = ROWS[name]
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        action()


@pytest.mark.filterwarnings("ignore:`nodes` holds")
def test_integers_that_look_like_a_mask_of_nodes_to_predict_are_warned_of():
    with pytest.warns(ns.NapsetsWarning, match=r"`nodes` is taken for node ids.* pass it with .astype\(bool\)"):
        prediction = calibrate().predict([0, 0, 0, 1, 1])
    assert prediction.nodes.tolist() == [0, 0, 0, 1, 1]


def test_duplicate_edges_are_merged_and_self_loops_dropped_without_complaint():
    graph = ns.Graph.from_edge_index([[0, 0, 1, 2, 2], [1, 1, 0, 2, 1]], 3)
    assert graph.num_edges == 4


def test_offsets_are_64_bits_wide_whatever_comes_in():
    for graph in (GRAPH, GRAPH.subgraph([0, 1]), ns.Graph(GRAPH.indptr.astype(np.int32), GRAPH.indices)):
        assert graph.indptr.dtype == np.int64


def test_rows_within_rounding_of_1_are_taken():
    p = (np.random.default_rng(0).dirichlet(np.ones(41), 200)).astype(np.float32)
    assert np.abs(p.sum(axis=1, dtype=np.float64) - 1).max() > 0
    ns.aps_scores(p, 0.5)
    ns.aps_scores(np.round(p, 4) + 0, 0.5)
    ns.aps_scores([[1, 0], [0, 1]], 0.5)  # whole numbers are probabilities too


@pytest.mark.parametrize("hops", [0, 1, np.int64(2), 2.0, True])
def test_whole_numbers_of_hops_are_taken(hops):
    assert ns.hop_weights("uniform", hops).shape == (int(hops),)


@pytest.mark.gnn
def test_a_tensor_without_data_is_no_number_either():
    torch = pytest.importorskip("torch")
    nothing = torch.tensor(1, device="meta")
    for use in (lambda: ns.NAPS(hops=nothing), lambda: ns.NAPS(seed=nothing), lambda: ns.RAPS(free_ranks=nothing)):
        with pytest.raises(ns.InvalidInputError, match="must be an integer; got"):
            use()
