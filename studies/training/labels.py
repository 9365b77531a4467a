"""A quick model for a graph without features: gradient boosting on the training labels around a node."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from napsets.datasets import NodeDataset, NodePredictions
from studies.tables import Floats


def label_counts(data: NodeDataset) -> Floats:
    """Return the training labels met one and two steps from each node: counts, shares, and the node's degree.

    A node's own label is never counted: two-step walks that return to the node are taken out.
    """
    adjacency: Any = data.graph.to_scipy()
    own = np.zeros((data.num_nodes, data.num_classes))
    own[data.train, data.labels[data.train]] = 1.0
    degrees = data.graph.degrees.astype(np.float64)[:, None]
    near = adjacency @ own
    far = adjacency @ near - degrees * own
    shares = [counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0) for counts in (near, far)]
    return np.hstack([near, far, *shares, np.log1p(degrees)])


def train_label_counts(data: NodeDataset, seed: int) -> NodePredictions:
    """Train on the training nodes, and return the probabilities of the test nodes."""
    boosting = import_module("sklearn.ensemble").HistGradientBoostingClassifier
    columns = label_counts(data)
    with import_module("threadpoolctl").threadpool_limits(1):
        model = boosting(max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed)
        model.fit(columns[data.train], data.labels[data.train])
        probabilities = model.predict_proba(columns[data.test]).astype(np.float32)
    return NodePredictions(data.test, probabilities, data.labels[data.test], dataset=data.name, model="label-counts")
