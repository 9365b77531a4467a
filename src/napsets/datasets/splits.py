"""Random splits by sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from napsets.checks.arguments import IntArray, check_count, check_list, check_number, check_seed
from napsets.errors import InvalidInputError

__all__ = ["random_split"]


def random_split(num_nodes: int, sizes: Sequence[float], seed: int = 0) -> tuple[IntArray, IntArray, IntArray]:
    """Draw disjoint training, validation and test nodes.

    Parameters
    ----------
    num_nodes : int
        Number of nodes to draw from.
    sizes : three numbers
        How many nodes each part has, or, if none exceeds 1, which share of the nodes.
    seed : int
        The same seed gives the same split.

    Returns
    -------
    train, validation, test : numpy.ndarray
        Ascending node ids.

    Examples
    --------
    >>> [part.size for part in random_split(13_752, (752, 1000, 12_000), seed=0)]
    [752, 1000, 12000]
    """
    num_nodes = check_count("num_nodes", num_nodes, maximum=2**40)
    given = [check_number("sizes", size, largest=2.0**40) for size in check_list("sizes", sizes, "three numbers")]
    if len(given) != 3:
        raise InvalidInputError(f"`sizes` must be three numbers of at least 0; got {tuple(sizes)}")
    shares = max(given) <= 1
    counts = [int(size * num_nodes + 1e-9) if shares else check_count("sizes", size) for size in given]
    if sum(counts) > num_nodes:
        raise InvalidInputError(f"`sizes` must add up to at most {num_nodes} nodes; got {sum(counts)}")
    order = np.random.default_rng(check_seed(seed)).permutation(num_nodes)
    ends = np.cumsum([0, *counts])
    train, validation, test = (np.sort(order[start:end]) for start, end in pairwise(ends))
    return train, validation, test
