"""What the paper fixed for each dataset, as data. To add a dataset, add an entry to `SETUPS`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from napsets.checks.names import choose

if TYPE_CHECKING:
    from napsets.datasets import NodeDataset

__all__ = ["PAPER_DATASETS", "SETUPS", "Setup", "load_dataset", "setup_of"]

#: The datasets of the paper's tables, in its order.
PAPER_DATASETS = ("reddit2", "flickr", "amazon-computers")


@dataclass(frozen=True)
class Setup:
    """How a dataset is used.

    Attributes
    ----------
    name, title : str
        What results and tables call it.
    loader : str
        Its name in `napsets.datasets`, or "reddit2-like".
    cutoff : int
        A node is eligible (in the paper's N^cal) with so many test nodes within `cutoff_hops`.
    strata : tuple of (low, high)
        Ranges of set sizes for SSCV.
    largest_balls : int
        How many neighbourhoods PCCV looks at under `as-published`.
    geometric_offset : int
        Under `as-published` the geometric weight is 2^−(k−offset).
    options : mapping
        What else the loader takes.
    from_files : bool
        Whether the dataset is read from files that must be there first.
    cutoff_hops : int
        Depth of the eligibility count; 2 whatever the depth of calibration, as in the ablation.
    """

    name: str
    title: str
    loader: str
    cutoff: int
    strata: tuple[tuple[int, int], ...]
    largest_balls: int
    geometric_offset: int = 0
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    from_files: bool = False
    cutoff_hops: int = 2

    def settings(self) -> dict[str, Any]:
        """Return everything that can change a result, in a form that JSON can hold."""
        return {
            "loader": self.loader,
            "options": dict(self.options),
            "cutoff": [self.cutoff, self.cutoff_hops],
            "strata": [list(stratum) for stratum in self.strata],
            "largest_balls": self.largest_balls,
            "geometric_offset": self.geometric_offset,
        }


_REDDIT2_STRATA = ((0, 1), (2, 2), (3, 3), (4, 41))

SETUPS: dict[str, Setup] = {
    setup.name: setup
    for setup in (
        Setup("reddit2", "Reddit2", "reddit2", 1000, _REDDIT2_STRATA, 20, from_files=True),
        Setup("flickr", "Flickr", "flickr", 50, ((0, 2), (3, 3), (4, 4), (5, 7)), 10, 1, from_files=True),
        Setup("amazon-computers", "Amazon", "amazon-computers", 50, ((0, 1), (2, 3), (4, 10)), 5, 1),
        # A quarter of Reddit2's test nodes, so a quarter of its cutoff.
        Setup("reddit2-like", "Reddit2-like", "reddit2-like", 250, _REDDIT2_STRATA, 20),
    )
}


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
    from napsets import datasets
    from napsets.paper.synthetic import reddit2_like

    setup = setup_of(name)
    options = dict(setup.options)
    if setup.loader == "reddit2-like":
        return reddit2_like(seed, **options)
    if setup.from_files:
        return datasets.load(setup.loader, root=Path(root or "data") / name, download=False, **options)
    return datasets.load(setup.loader, seed=seed, **options)
