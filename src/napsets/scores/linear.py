"""A linear model of features: how the labels of reference nodes depend on the features of a node and its neighbours.

A ridge regression of the labels, one column of zeros and ones per class, on the features of a node (as unit rows along
their directions, see `napsets.features`) and on their mean over its neighbours. A model of the user that was trained
with the same features was trained with other labels: those of the reference nodes add to them.

For a reference node the prediction is leave-one-out, which a ridge regression has in closed form: with h the leverage
of the node, y − (y − ŷ)/(1 − h). Of a few strengths of the ridge, the one with the smallest squared leave-one-out error
is taken.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.features import Directions, Features
from napsets.graph import Graph
from napsets.scores.base import Labelled

#: What predictions are multiplied by, so that an exponent near 1 is what their evidence is mostly worth.
SCALE = 4.0
#: The strengths of the ridge among which the leave-one-out error decides.
_RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: A leverage counts as at most this much.
_MOST_LEVERAGE = 0.999
#: Nodes whose features are held in double precision at a time.
_BLOCK = 1 << 14


def linear_scores(
    features: Features, directions: Directions, graph: Graph | None, reference: Labelled, classes: int
) -> FloatArray:
    """Return the prediction for every node and class, shape (nodes, classes): around 0, or `SCALE` for the label.

    Parameters
    ----------
    features : table
        What `check_features` returned, one row per node.
    directions : Directions
        Along which features are looked at.
    graph : Graph or None
        The graph; None if features of neighbours are not known.
    reference : Labelled
        The labels to learn from; nodes among them are predicted without their own label.
    classes : int
        The number of classes.

    Takes O(nodes × directions) time and, apart from blocks of features, O(nodes × classes) memory.
    """
    inputs = _unit_rows(features, directions, reference.nodes)
    if graph is not None:
        inputs = np.hstack([inputs, _neighbour_rows(features, directions, graph, reference.nodes)])
    coefficients, constants, left_out = fit_ridge(inputs, reference.labels, classes)
    width = inputs.shape[1] // (1 if graph is None else 2)
    parts = coefficients if graph is None else np.hstack([coefficients[:width], coefficients[width:]])
    projected = np.empty((features.shape[0], parts.shape[1]))
    for rows in _blocks(features.shape[0]):
        projected[rows] = _unit_rows(features, directions, rows) @ parts
    scores = projected[:, :classes] + constants
    if graph is not None:
        around = projected[:, classes:]
        scores += np.where(graph.degrees[:, None] > 0, graph.neighbour_means(around), around)
    scores[reference.nodes] = left_out
    scores *= SCALE
    return scores


def fit_ridge(inputs: FloatArray, labels: IntArray, classes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit the ridge regression of labels on inputs.

    Returns
    -------
    coefficients : array of shape (inputs, classes)
    constants : array of shape (classes,)
    left_out : array of shape (rows, classes)
        The prediction of every row by the other rows.
    """
    truth = np.zeros((labels.size, classes))
    truth[np.arange(labels.size), labels] = 1.0
    shares, centre = truth.mean(axis=0), inputs.mean(axis=0)
    truth -= shares
    x = inputs - centre
    spread, axes = np.linalg.eigh(x.T @ x)
    spread = np.maximum(spread, 0.0)
    x = x @ axes
    slopes, squares = x.T @ truth, x**2
    best, least = (slopes, truth), np.inf
    for ridge in _RIDGES:
        coefficients = slopes / (spread + ridge)[:, None]
        leverage = squares @ (1.0 / (spread + ridge)) + 1.0 / labels.size
        residuals = (truth - x @ coefficients) / (1.0 - np.minimum(leverage, _MOST_LEVERAGE))[:, None]
        error = float((residuals**2).sum())
        if error < least:
            best, least = (coefficients, truth - residuals), error
    coefficients = axes @ best[0]
    return coefficients, shares - centre @ coefficients, best[1] + shares


def _unit_rows(features: Features, directions: Directions, rows: IntArray | slice) -> FloatArray:
    """Return rows of features along the directions, divided by their lengths."""
    table = directions.rows(features[rows])
    unit: FloatArray = table / np.maximum(np.sqrt((table**2).sum(axis=1)), 1e-300)[:, None]
    return unit


def _neighbour_rows(features: Features, directions: Directions, graph: Graph, nodes: IntArray) -> FloatArray:
    """Return the mean of the neighbours' unit rows of some nodes; the own row of a node without neighbours."""
    edges = graph.to_scipy()[nodes].tocsc()
    sums: npt.NDArray[np.float64] | float = 0.0
    for rows in _blocks(graph.num_nodes):
        sums = sums + edges[:, rows] @ _unit_rows(features, directions, rows)
    degrees = graph.degrees[nodes][:, None]
    return np.where(degrees > 0, sums / np.maximum(degrees, 1), _unit_rows(features, directions, nodes))


def _blocks(size: int) -> list[slice]:
    return [slice(start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK)]
