"""The datasets that have a name. To add one, add its function to `DATASETS`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from napsets.checks.values import choose
from napsets.datasets.amazon import amazon_computers
from napsets.datasets.dataset import NodeDataset
from napsets.datasets.synthetic import dcsbm, sbm
from napsets.errors import InvalidInputError

#: The function of each dataset; its parameters are the options of `load`.
DATASETS: dict[str, Callable[..., NodeDataset]] = {
    "amazon-computers": amazon_computers,
    "sbm": sbm,
    "dcsbm": dcsbm,
}


def load(name: str, *, seed: int = 0, **options: Any) -> NodeDataset:
    """Load a dataset by its name.

    Parameters
    ----------
    name : str
        ``amazon-computers`` (embedded), ``sbm`` or ``dcsbm`` (synthetic): a key of `DATASETS`.
    seed : int
        Draws the split, and the graph where it is synthetic.
    **options
        Further parameters of the dataset's own function.

    Examples
    --------
    >>> load("amazon-computers", seed=0).graph
    Graph(13,752 nodes, 491,722 stored edges, undirected)
    """
    make = choose("name", name, DATASETS)
    known = tuple(inspect.signature(make).parameters)
    for option in options:
        if option not in known:
            raise InvalidInputError(f"`{option}` must be an option of {name!r}, which takes {', '.join(known)}")
    return make(seed=seed, **options)
