"""How much a calibration node k hops away counts: the paper's w(k).

To add a decay, add a function of k to `DECAYS`; nothing else needs to change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from napsets._check import ArrayLike, FloatArray, as_array, check_count
from napsets._names import choose
from napsets.errors import InvalidInputError

__all__ = ["DECAYS", "LARGEST_WEIGHT", "Decay", "hop_weights"]

Decay = str | Callable[[int], float] | ArrayLike

#: Heavier weights could overflow when the masses of many nodes are added; the test point weighs 1.
LARGEST_WEIGHT = 1e100

#: The paper's three decays: NAPS, NAPS-H and NAPS-G (Section 4; the geometric one as in the text).
DECAYS: dict[str, Callable[[int], float]] = {
    "uniform": lambda k: 1.0,
    "hyperbolic": lambda k: 1.0 / k,
    "geometric": lambda k: 2.0**-k,
}


def hop_weights(decay: Decay, hops: int, *, name: str = "decay") -> FloatArray:
    """Weights w(1), …, w(hops) of a decay.

    Parameters
    ----------
    decay : str, callable or array
        A name from `DECAYS`, a function of the hop k ≥ 1, or weights indexed by k−1 (at least `hops` of them).
    hops : int
        The neighbourhood's depth, the paper's K.
    name : str
        What errors call the decay.

    Returns
    -------
    numpy.ndarray
        float64 of shape ``(hops,)``; every weight is finite and not negative.

    Examples
    --------
    >>> hop_weights("hyperbolic", 3).tolist()
    [1.0, 0.5, 0.3333333333333333]
    """
    hops = check_count("hops", hops)
    if isinstance(decay, str):
        decay = choose(name, decay, DECAYS)
    weights = _evaluate(name, decay, hops) if callable(decay) else _take(name, decay, hops)
    bad = ~(weights <= LARGEST_WEIGHT) | (weights < 0)  # NaN is bad too
    if bad.any():
        k = int(bad.argmax())
        raise InvalidInputError(
            f"`{name}` must give finite weights from 0 to {LARGEST_WEIGHT:g}; hop {k + 1} weighs {weights[k]:g}"
        )
    return weights


def _evaluate(name: str, decay: Callable[[int], Any], hops: int) -> FloatArray:
    values = [decay(k) for k in range(1, hops + 1)]
    try:
        return np.array([float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`{name}` must return a number for each hop; got {values!r}") from error


def _take(name: str, decay: object, hops: int) -> FloatArray:
    array = as_array(name, decay)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` as an array must hold one number a hop; got shape {array.shape}, {array.dtype}"
        )
    if array.shape[0] < hops:
        raise InvalidInputError(f"`{name}` must have a weight for each of the {hops} hops; got {array.shape[0]}")
    return array[:hops].astype(np.float64)
