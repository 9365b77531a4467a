"""What the paper fixed for each dataset, as data. To add a dataset, add an entry to `SETUPS`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napsets.checks.names import choose
from napsets.datasets import NodeDataset, load
from napsets.paper.synthetic import reddit2_like

__all__ = ["CUTOFF_HOPS", "PAPER_DATASETS", "SETUPS", "Setup", "load_dataset", "loading", "setup_of"]

#: The datasets of the paper's tables, in its order.
PAPER_DATASETS = ("reddit2", "flickr", "amazon-computers")
#: Depth of the count that makes a node eligible, whatever the depth of calibration, as in the ablation.
CUTOFF_HOPS = 2


@dataclass(frozen=True)
class Setup:
    """How a dataset is used.

    Attributes
    ----------
    name : str
        What results call it: its name in `napsets.datasets`, or "reddit2-like".
    title : str
        What tables call it.
    cutoff : int
        A node is eligible (in the paper's N^cal) with so many test nodes within `CUTOFF_HOPS`.
    strata : tuple of (low, high)
        Ranges of set sizes for SSCV.
    largest_balls : int
        How many neighbourhoods PCCV looks at under `as-published`.
    geometric_offset : int
        Under `as-published` the geometric weight is 2^−(k−offset).
    from_files : bool
        Whether the dataset is read from files that must be there first.
    """

    name: str
    title: str
    cutoff: int
    strata: tuple[tuple[int, int], ...]
    largest_balls: int
    geometric_offset: int = 0
    from_files: bool = False

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


def load_dataset(name: str, seed: int, root: str | os.PathLike[str] | None = None) -> NodeDataset:
    """Load a dataset as the experiments use it.

    Parameters
    ----------
    name : str
        One of `SETUPS`.
    seed : int
        Draws the split, and the graph where it is synthetic.
    root : path, optional
        Folder with a subfolder for each dataset that is read from files.
    """
    if name == "reddit2-like":
        return reddit2_like(seed)
    if setup_of(name).from_files:
        return load(name, root=Path(root or "data") / name, download=False)
    return load(name, seed=seed)
