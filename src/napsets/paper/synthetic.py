"""A synthetic graph in Reddit2's likeness, for the ablation where Reddit2's files are not at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napsets.checks.frozen import sealed
from napsets.datasets import NodeDataset, dcsbm_graph, random_split

__all__ = ["reddit2_like"]


def reddit2_like(
    seed: int = 0,
    *,
    num_nodes: int = 58_000,
    mean_degree: float = 120.0,
    num_classes: int = 41,
    inside: float = 0.967,
    strays: float = 0.14,
    num_features: int = 64,
    signal: float = 0.2,
    sizes: Sequence[float] = (0.66, 0.1, 0.24),
) -> NodeDataset:
    """Return a graph like Reddit2, with a quarter of its nodes.

    Like Reddit2 it has 41 classes, a node homophily of 0.8 and two thirds of the nodes for training. In a plain block
    model neighbours betray a node's class with certainty. Here some nodes stray: in each block a share of them, from
    0 in the first to `strays` in the last, has a class drawn at random, so that classes are harder to tell in some
    parts of the graph than in others, and a network is right as often as on Reddit2.

    Parameters
    ----------
    seed : int
        Draws everything.
    num_nodes, mean_degree, num_classes
        As in `dcsbm_graph`.
    inside : float
        Share of edges inside a block.
    strays : float
        Share of the last block's nodes whose class is not that of their block.
    num_features, signal
        Features are `signal` times a Gaussian centre of the node's class, plus standard Gaussian noise.
    sizes
        As in `random_split`.
    """
    graph, blocks = dcsbm_graph(num_nodes, mean_degree, num_classes, homophily=inside, seed=seed)
    rng = np.random.default_rng([seed, 1])
    share = strays * np.arange(num_classes) / max(num_classes - 1, 1)
    stray = rng.random(num_nodes) < share[blocks]
    labels = np.where(stray, rng.integers(0, num_classes, num_nodes), blocks)
    centres = signal * rng.standard_normal((num_classes, num_features), dtype=np.float32)
    features = sealed(rng.standard_normal((num_nodes, num_features), dtype=np.float32) + centres[labels])
    split = random_split(num_nodes, sizes, seed)
    return NodeDataset(graph, features, labels, *split, name="reddit2-like", blocks=blocks, settings={"seed": seed})
