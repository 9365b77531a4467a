"""How much a calibration node k hops away counts: the paper's w(k).

To add a decay, add a function of k to `DECAYS`; nothing else needs to change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, as_array
from napsets.checks.values import check_hops, choose, shown
from napsets.errors import InvalidInputError
from napsets.kernels.layout import FEW_HOPS
from napsets.quantile import LARGEST_WEIGHT

Decay = str | Callable[[int], float] | ArrayLike

_MOST_WEIGHTS = 10**7

#: The paper's three decays: NAPS, NAPS-H and NAPS-G (Section 4; the geometric one as in the text).
DECAYS: dict[str, Callable[[int], float]] = {
    "uniform": lambda k: 1.0,
    "hyperbolic": lambda k: 1.0 / k,
    "geometric": lambda k: 2.0**-k,
}


def hop_weights(decay: Decay, hops: int, *, depth: int | None = None, name: str = "decay") -> FloatArray:
    """Weights w(1), …, w(hops) of a decay.

    Parameters
    ----------
    decay : str, callable or array
        A name from `DECAYS`, a function of the hop k ≥ 1, or weights indexed by k−1, as many as `hops`.
    hops : int
        The neighbourhood's depth, the paper's K.
    depth : int, optional
        How many of the weights to return, if the graph has no nodes further away; by default all.
    name : str
        What errors call the decay.

    Returns
    -------
    numpy.ndarray
        float64 of shape ``(hops,)``, or shorter where `depth` is; every weight is finite and not negative.

    Examples
    --------
    >>> hop_weights("hyperbolic", 3).tolist()
    [1.0, 0.5, 0.3333333333333333]
    """
    hops = check_hops("hops", hops)
    wanted = hops if depth is None else min(hops, check_hops("depth", depth))
    if wanted > _MOST_WEIGHTS:
        raise InvalidInputError(f"`hops` must be at most {_MOST_WEIGHTS:,} for all weights to be held; got {hops:,}")
    if isinstance(decay, str):
        decay = choose(name, decay, DECAYS)
    weights = _evaluate(name, decay, wanted) if callable(decay) else _take(name, decay, hops)[:wanted]
    bad = ~(weights <= LARGEST_WEIGHT) | (weights < 0)  # NaN is bad too
    if bad.any():
        k = int(bad.argmax())
        raise InvalidInputError(
            f"`{name}` must give finite weights from 0 to {LARGEST_WEIGHT:g}; hop {k + 1} weighs {weights[k]:g}"
        )
    return weights


def check_decay(decay: Decay, hops: int) -> None:
    """Refuse a decay that is invalid for this many hops, checking only the first few."""
    hop_weights(decay, hops, depth=FEW_HOPS)


def _evaluate(name: str, decay: Callable[[int], Any], hops: int) -> FloatArray:
    values = [decay(k) for k in range(1, hops + 1)]
    try:
        return np.array([float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"`{name}` must return a number for each hop; got {shown(values)}") from error


def _take(name: str, decay: object, hops: int) -> FloatArray:
    array = as_array(name, decay)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` as an array must hold one number per hop; got shape {array.shape}, {array.dtype}"
        )
    if array.shape[0] != hops:
        raise InvalidInputError(
            f"`{name}` must have a weight for each of the {hops} hops; got {array.shape[0]}. Pass as many weights as "
            f"hops."
        )
    return array.astype(np.float64)
