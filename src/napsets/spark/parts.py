"""Which labelled nodes are the reference part, and which are kept apart to set an exact level.

The rule is that of `napsets.randomness.split_order`: a sum over all labelled ids, which has no order, and the seed give
another seed; the ids in the order of the uniform numbers that it draws are a random order, and the first so many of
them are the reference part. Only the sum, a count and the last id of that part come to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray
from napsets.randomness import node_uniforms, split_words

__all__ = ["Split", "signed_words"]


@dataclass(frozen=True)
class Split:
    """How the labelled nodes are split.

    Attributes
    ----------
    seed : int
        What the order is drawn with.
    key : float
        The number of the last node of the reference part.
    node : int or str
        That node, should another have the same number.
    apart : int
        How many nodes are kept apart.
    """

    seed: int
    key: float
    node: Any
    apart: int

    def keeps_apart(self, ids: npt.NDArray[Any]) -> BoolArray:
        """Tell which of these labelled nodes are kept apart."""
        keys = node_uniforms(ids, self.seed)
        after: BoolArray = (keys > self.key) | ((keys == self.key) & (ids > self.node).astype(bool))
        return after


def signed_words(ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return for each id what it adds to the sum; signed, as tables have integers."""
    return split_words(ids).view(np.int64)
