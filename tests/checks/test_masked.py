"""Masked arrays: what a mask hides must not count."""

from __future__ import annotations

import re

import numpy as np
import pytest

import napsets as ns

GRAPH = ns.Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], 5)
P = np.full((5, 2), 0.5)
Y = np.array([0, 1, 0, 1, 0])
SETS = ns.SplitConformal().calibrate(P, Y, [0, 1]).predict([2, 3])


def calibrate(**changes):
    return ns.NAPS().calibrate(**({"graph": GRAPH, "probabilities": P, "labels": Y, "calibration": [0, 1]} | changes))


USES = {
    "edges": ("edge_index", [[0, 1], [1, 2]], lambda x: ns.Graph.from_edge_index(x, 5)),
    "indptr": ("indptr", [0, 1, 2], lambda x: ns.Graph(x, [1, 0])),
    "indices": ("indices", [1, 0], lambda x: ns.Graph([0, 1, 2], x)),
    "a column": ("table['source']", [0, 1], lambda x: ns.Graph.from_table({"source": x, "target": [1, 2]})),
    "probabilities": ("probabilities", P, lambda x: calibrate(probabilities=x)),
    "labels": ("labels", Y, lambda x: calibrate(labels=x)),
    "calibration": ("calibration", [0, 1], lambda x: calibrate(calibration=x)),
    "a mask of nodes": ("nodes", Y == 1, lambda x: ns.neighbourhood_partition(GRAPH, x)),
    "nodes": ("nodes", [3, 4], lambda x: calibrate().predict(x)),
    "ids": ("ids", np.arange(5), lambda x: calibrate(ids=x)),
    "ids that are names": ("ids", list("abcde"), lambda x: ns.node_uniforms(x)),
    "decay": ("decay", [1.0, 0.5], lambda x: ns.NAPS(decay=x)),
    "the truth": ("labels", Y, lambda x: ns.coverage(SETS, x)),
    "scores": ("scores", [0.1, 0.2], lambda x: ns.weighted_quantile(x, [1, 1])),
    "weights": ("weights", [1.0, 2.0], lambda x: ns.weighted_quantile([0.1, 0.2], x)),
    "u": ("u", np.full(5, 0.5), lambda x: ns.aps_scores(P, x)),
    "counts": ("hop_counts", [3, 4], lambda x: ns.coverage_gap_bound([1, 1], x, [0.1, 0.1])),
    "features": ("features", P, lambda x: ns.datasets.NodeDataset(GRAPH, x, Y, [0, 1], [], [2])),
    "node ids": ("node_ids", np.arange(5), lambda x: ns.datasets.NodeDataset(GRAPH, P, Y, [0, 1], [], [2], node_ids=x)),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_a_masked_entry_is_refused_and_a_mask_that_hides_nothing_is_not(use):
    name, values, act = USES[use]
    array = np.array(values)
    act(np.ma.array(array))
    hidden = np.zeros(array.shape, bool)
    hidden.flat[-1] = True
    with pytest.raises(ns.InvalidInputError, match=re.escape(f"`{name}` must not be masked") + ".* 1 entries are"):
        act(np.ma.array(array, mask=hidden))


def test_masked_parts_of_a_list_are_refused():
    source = np.ma.array([0, 1], mask=[False, True])
    with pytest.raises(ns.InvalidInputError, match="`edge_index` must not be masked"):
        ns.Graph.from_edge_index([source, np.array([1, 2])], 5)


def test_missing_labels_of_pandas_are_unknown_and_other_missing_values_refused():
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series([0, 1, 0, 1, None], dtype="Int64")
    calibrate(labels=labels, calibration=[0, 1, 2, 3])
    with pytest.raises(ns.InvalidInputError, match="`calibration` must hold nodes whose label is known"):
        calibrate(labels=labels, calibration=[0, 1, 2, 3, 4])
    with pytest.raises(ns.InvalidInputError, match="`labels` must"):
        calibrate(labels=pandas.Series([0, 1, 0, 1, None], dtype="boolean"))
    rows = pandas.DataFrame({"a": pandas.array([0.5] * 4 + [None], "Float64"), "b": 0.5})
    with pytest.raises(ns.InvalidInputError, match="`probabilities` must be"):
        calibrate(probabilities=rows)
    calibrate(labels=pandas.Series(Y, dtype="Int64"))
