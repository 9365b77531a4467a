"""Bad graphs, scores and settings: every error names the argument, what it must be, and what came."""

from __future__ import annotations

import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from bad_calls import (
    EDGES,
    GRAPH,
    P,
    Y,
    calibrate,
    sets,
)

#: name: (what is done, the message it must give)
ROWS = {
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
        lambda: calibrate(decay=[np.nan, 1.0]),
        "`decay` must give finite weights from 0 to 1e+100; hop 1 weighs nan",
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
    # scores and quantiles
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
        "`u` must be given to a randomised APS, one number in [0, 1] per node; got None",
    ),
    "no u for SAPS": (
        lambda: ns.SAPS().at(P[:4], Y[:4]),
        "`u` must be given to a randomised SAPS, one number in [0, 1] per node; got None",
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
        lambda: ns.neighbourhood_partition(nx.path_graph(5), [0]),
        "`graph` must be a napsets.Graph; got Graph of networkx.classes.graph. Make one with "
        "napsets.Graph.from_networkx(...)",
    ),
    "a sparse matrix for a graph": (
        lambda: ns.neighbourhood_partition(sp.eye_array(5), [0]),
        "`graph` must be a napsets.Graph; got dia_array of scipy.sparse._dia. Make one with napsets.Graph.from_scipy(",
    ),
    "a Data for a graph": (
        lambda: ns.neighbourhood_partition(SimpleNamespace(edge_index=EDGES), [0]),
        "`graph` must be a napsets.Graph; got SimpleNamespace of types. Make one with napsets.Graph.from_pyg(",
    ),
    "a graph of igraph": (
        lambda: ns.neighbourhood_partition(SimpleNamespace(get_edgelist=list, vcount=lambda: 5), [0]),
        "`graph` must be a napsets.Graph; got SimpleNamespace of types. Make one with napsets.Graph.from_igraph(...).",
    ),
    "a graph of DGL": (
        lambda: ns.neighbourhood_partition(SimpleNamespace(ntypes=["_N"], canonical_etypes=[]), [0]),
        "`graph` must be a napsets.Graph; got SimpleNamespace of types. Make one with "
        "napsets.Graph.from_edge_index(torch.stack(graph.edges()), graph.num_nodes()).",
    ),
    "no graph of igraph": (lambda: ns.Graph.from_igraph([(0, 1)]), "`graph` must be an igraph graph; got list"),
    "a type of nodes where there is one": (
        lambda: ns.Graph.from_pyg(SimpleNamespace(edge_index=EDGES), node_type="paper"),
        "`node_type` and `metapaths` must be left out where all nodes have the same type",
    ),
    "a table for a graph": (
        lambda: ns.neighbourhood_partition({"source": [0], "target": [1]}, [0]),
        "`graph` must be a napsets.Graph; got dict of builtins. Make one with napsets.Graph.from_table(",
    ),
    "edges for a graph": (
        lambda: ns.neighbourhood_partition(EDGES, [0]),
        "`graph` must be a napsets.Graph; got ndarray of numpy. Make one with napsets.Graph.from_edge_index(",
    ),
    # the rest
    "an unknown fallback": (
        lambda: calibrate(fallback="none"),
        "`fallback` must be 'full' or 'global'; got 'none'",
    ),
    "too few ids": (lambda: calibrate(ids=[1, 2]), "`ids` must have one entry per node, 5; got shape (2,)"),
    "ids of fractions to draw numbers from": (
        lambda: ns.node_uniforms([0.5]),
        "`ids` must be integers or strings; got dtype float64",
    ),
    "ids beyond 64 bits": (lambda: ns.node_uniforms([2**70]), "`ids` must be integers of 64 bits or strings: "),
    "ids that are fractions": (
        lambda: calibrate(ids=np.linspace(0, 1, 5)),
        "`ids` must be integers or strings; got dtype float64",
    ),
    "ids of two dimensions": (lambda: ns.node_uniforms([[1]]), "`ids` must have 1 dimension; got shape (1, 1)"),
    "a seed that is not an integer": (lambda: calibrate(seed=0.5), "`seed` must be an integer; got 0.5"),
    "no threads": (lambda: calibrate().predict([3], threads=0), "`threads` must be at least 1; got 0"),
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
    "degrees of another graph": (
        lambda: ns.coverage_by_degree(sets(), [0] * 5, ns.Graph.from_edge_index([[0], [1]], 2)),
        "`graph` must have the nodes of the sets; it has no node 3",
    ),
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
    "an impossible probability": (lambda: ns.sbm_favours_naps(10, 1.5, 0.1), "`p_in` must lie in [0, 1]; got 1.5"),
    "a NaN edge probability": (lambda: ns.sbm_favours_naps(10, 0.5, np.nan), "`p_out` must lie in [0, 1]; got nan"),
    "no nodes in a block": (lambda: ns.sbm_favours_naps(0, 0.5, 0.5), "`n` must be at least 1; got 0"),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_message_names_the_argument_what_it_must_be_and_what_came(name):
    action, message = ROWS[name]
    with pytest.raises(ns.InvalidInputError, match=re.escape(message)):
        action()
