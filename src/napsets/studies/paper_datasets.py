"""What the paper fixed for each dataset, as data, and a synthetic graph that stands in for Reddit2.

To add a dataset, add an entry to `SETUPS`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napsets.checks.arguments import sealed
from napsets.checks.names import choose
from napsets.datasets import NodeDataset, dcsbm_graph, load, random_split
from napsets.datasets.graphsaint import RAW_FILES

#: The datasets of the paper's tables, in its order.
PAPER_DATASETS = ("reddit2", "flickr", "amazon-computers")
#: Depth of the count that makes a node eligible, whatever the depth of calibration, as in the ablation.
CUTOFF_HOPS = 2


@dataclass(frozen=True)
class Setup:
    """How a dataset is used."""

    name: str  #: what results call it: its name in `napsets.datasets`, or "reddit2-like"
    title: str  #: what tables call it
    cutoff: int  #: a node is eligible (in the paper's N^cal) with this many test nodes within `CUTOFF_HOPS`
    strata: tuple[tuple[int, int], ...]  #: ranges of set sizes for SSCV
    largest_balls: int  #: how many neighbourhoods PCCV looks at under `as-published`
    geometric_offset: int = 0  #: under `as-published` the geometric weight is 2^−(k−offset)
    from_files: bool = False  #: whether the dataset is read from files that must be there first

    def settings(self) -> dict[str, Any]:
        """Return everything that can change a result, in a form that JSON can hold."""
        return {
            **loading(self.name),
            "cutoff": [self.cutoff, CUTOFF_HOPS],
            "strata": [list(stratum) for stratum in self.strata],
            "largest_balls": self.largest_balls,
            "geometric_offset": self.geometric_offset,
        }


_REDDIT2_STRATA = ((0, 1), (2, 2), (3, 3), (4, 41))

SETUPS: dict[str, Setup] = {
    setup.name: setup
    for setup in (
        Setup("reddit2", "Reddit2", 1000, _REDDIT2_STRATA, 20, from_files=True),
        Setup("flickr", "Flickr", 50, ((0, 2), (3, 3), (4, 4), (5, 7)), 10, 1, from_files=True),
        Setup("amazon-computers", "Amazon", 50, ((0, 1), (2, 3), (4, 10)), 5, 1),
        # A quarter of Reddit2's test nodes, so a quarter of its cutoff.
        Setup("reddit2-like", "Reddit2-like", 250, _REDDIT2_STRATA, 20),
    )
}


def loading(name: str) -> dict[str, Any]:
    """Return how a dataset is loaded, as the names of rows and of predictions have it: without options."""
    return {"loader": name, "options": {}}


def setup_of(name: str) -> Setup:
    """Return a dataset's setup by its name."""
    return choose("dataset", name, SETUPS)


def is_available(dataset: str, root: str | os.PathLike[str] = "data") -> bool:
    """Say whether a dataset can be had here: embedded, drawn from a seed, or its files are in ``root/dataset``."""
    folder = Path(root) / dataset
    return not setup_of(dataset).from_files or any(
        all((place / name).exists() for name in RAW_FILES) for place in (folder, folder / "raw")
    )


def load_dataset(name: str, seed: int, root: str | os.PathLike[str] = "data") -> NodeDataset:
    """Load one of `SETUPS` as the experiments use it; the seed draws the split, and the graph where it is synthetic."""
    if name == "reddit2-like":
        return reddit2_like(seed)
    if setup_of(name).from_files:
        return load(name, root=Path(root) / name, download=False)
    return load(name, seed=seed)


def reddit2_like(seed: int = 0, *, num_nodes: int = 58_000, mean_degree: float = 120.0) -> NodeDataset:
    """Return a graph like Reddit2, with a quarter of its nodes.

    Like Reddit2 it has 41 classes, a node homophily of 0.8 and two thirds of the nodes for training. In a plain block
    model neighbours betray a node's class with certainty. Here some nodes stray: in each block a share of them, from
    0 in the first to 14 % in the last, has a class drawn at random, so that classes are harder to tell in some
    parts of the graph than in others, and a network is right as often as on Reddit2.

    Parameters
    ----------
    seed : int
        Draws everything.
    num_nodes, mean_degree
        As in `dcsbm_graph`.
    """
    num_classes, num_features = 41, 64
    graph, blocks = dcsbm_graph(num_nodes, mean_degree, num_classes, homophily=0.967, seed=seed)
    rng = np.random.default_rng([seed, 1])
    share = 0.14 * np.arange(num_classes) / (num_classes - 1)
    stray = rng.random(num_nodes) < share[blocks]
    labels = np.where(stray, rng.integers(0, num_classes, num_nodes), blocks)
    # Features are 0.2 times a Gaussian centre of the node's class, plus standard Gaussian noise.
    centres = 0.2 * rng.standard_normal((num_classes, num_features), dtype=np.float32)
    features = sealed(rng.standard_normal((num_nodes, num_features), dtype=np.float32) + centres[labels])
    split = random_split(num_nodes, (0.66, 0.1, 0.24), seed)
    return NodeDataset(graph, features, labels, *split, name="reddit2-like", blocks=blocks, settings={"seed": seed})
