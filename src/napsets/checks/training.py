"""Labels that trained the model must not calibrate: the model fits them better than any others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray, as_column
from napsets.errors import NapsetsWarning

__all__ = ["count_trained"]


def count_trained(mask: Any, calibration: IntArray, size: int, *, stacklevel: int) -> int:
    """Return how many calibration nodes a mask of training nodes holds, with a warning where there are any.

    Parameters
    ----------
    mask : array or None
        One boolean per node, or one per node and split, of which all must hold a node; anything else says nothing.
    calibration : numpy.ndarray
        Positions of the calibration nodes.
    size : int
        How many nodes there are.
    stacklevel : int
        Whose line the warning names.
    """
    if mask is None:
        return 0
    marks = as_column("train_mask", mask)
    if marks.dtype != np.bool_ or marks.shape[:1] != (size,) or not marks.size:
        return 0
    trained = int(marks.reshape(size, -1)[calibration].all(axis=1).sum())
    if trained:
        warnings.warn(
            f"`calibration` holds {trained:,} of the nodes of `train_mask`: the model was trained on their labels, so "
            f"coverage of other nodes will be lower than promised. Calibrate on labels that it has not seen, such as "
            f"those of `val_mask`.",
            NapsetsWarning,
            stacklevel=stacklevel + 1,
        )
    return trained
