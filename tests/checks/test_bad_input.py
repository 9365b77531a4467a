"""Bad input: every error names the argument, what it must be, and what came."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from bad_calls import (
    GRAPH,
    P,
    Y,
    calibrate,
    calibrate_split,
    changed,
    sets,
)

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
        "`probabilities` must have one row per node of the graph, 5; got 3",
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
    "a label beyond 64 bits": (
        lambda: calibrate(labels=np.array([2**70, 1, 2, 3, None], dtype=object)),
        "`labels` must hold numbers of at most 64 bits; got 1180591620717411303424 among them",
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
    "unknown labels in calibration": (
        lambda: calibrate(calibration=[1, 4]),
        "`calibration` must hold nodes whose label is known; 1 are not, node 4 first",
    ),
    "a calibration id too large": (
        lambda: calibrate(calibration=[0, 5]),
        "`calibration` must hold ids from 0 to 4; got 5",
    ),
    "a negative calibration id": (
        lambda: calibrate(calibration=[0, 1, -1]),
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
    "a negative node": (lambda: calibrate().predict([-1]), "`nodes` must hold ids from 0 to 4; got -1"),
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
        lambda: calibrate().predict([3], alpha=[0.1, 2.0]),
        "`alpha` must lie strictly between 0 and 1; got 2",
    ),
    "alpha of a quantile": (
        lambda: ns.weighted_quantile([1.0], [1.0], alpha=0),
        "`alpha` must lie strictly between 0 and 1; got 0",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_message_names_the_argument_what_it_must_be_and_what_came(name):
    action, message = ROWS[name]
    with pytest.raises(ns.InvalidInputError, match=re.escape(message)):
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


def test_an_empty_entry_among_integers_is_not_called_too_large():
    objects = np.array([None, 1, 2], dtype=object)
    with pytest.raises(ns.InvalidInputError, match="`calibration` must be an array of numbers; got an array of Python"):
        ns.SplitConformal().calibrate(np.full((3, 2), 0.5), [0, 1, 0], objects)
    objects[0] = 2**64
    with pytest.raises(ns.InvalidInputError, match="`calibration` must hold numbers of at most 64 bits; got 184467"):
        ns.SplitConformal().calibrate(np.full((3, 2), 0.5), [0, 1, 0], objects)
