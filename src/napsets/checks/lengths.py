"""Checks of edge weights: lengths, or strengths, which are 1 / length."""

from __future__ import annotations

import warnings
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, as_array, shown
from napsets.checks.names import choose
from napsets.errors import InvalidInputError, NapsetsWarning

__all__ = ["LONGEST", "SHORTEST", "WeightsAre", "WeightsMean", "check_lengths", "check_weights_are", "lengths_from"]
__all__ += ["weights_mean"]

#: The meanings of edge weights: the length of an edge, or its strength, which gives the length 1 / strength.
WeightsAre = Literal["lengths", "strengths"]
#: The same, or that they are not to be used.
WeightsMean = Literal["lengths", "strengths", "ignored"]

#: The shortest and the longest edge. Sums of as many as there are edges stay finite, and so does 1 / strength.
SHORTEST, LONGEST = 1e-100, 1e100

_ZERO = {
    "lengths": "an edge of length 0 would make its two ends one node: make them one, or give the edge a small length",
    "strengths": "a strength of 0 is not an edge: leave it out",
}


def check_weights_are(value: object) -> WeightsAre | None:
    """Return the stated meaning of weights, or None if none is stated."""
    if value is None:
        return None
    meaning: WeightsAre = choose("weights_are", value, {name: name for name in get_args(WeightsAre)})
    return meaning


def weights_mean(name: str, value: object, weights: npt.NDArray[Any]) -> WeightsAre | None:
    """Return the stated meaning of a graph's weights; warn if none is stated and the weights differ.

    Parameters
    ----------
    name : str
        The argument that holds them, for the warning.
    value : {"lengths", "strengths", "ignored"} or None
        What is said.
    weights : numpy.ndarray
        The weights of the edges.
    """
    if value is not None:
        meaning: Any = choose("weights_are", value, {name: name for name in get_args(WeightsMean)})
        return None if meaning == "ignored" else cast(WeightsAre, meaning)
    if weights.size and (weights != weights.flat[0]).any():
        warnings.warn(
            f"`{name}` has entries that differ between edges, and they are not used. Make the graph with weights_are="
            f"'strengths' or weights_are='lengths' to use them, or with weights_are='ignored' if they do not count",
            NapsetsWarning,
            stacklevel=4,
        )
    return None


def check_lengths(name: str, value: object, size: int, *, weights_are: WeightsAre = "lengths") -> FloatArray:
    """Return the length of each of `size` edges, from lengths or from strengths.

    Parameters
    ----------
    name : str
        What errors call the argument.
    value : array of shape (size,)
        Numbers from 1e-100 to 1e100: neither zero nor negative, infinite or NaN.
    size : int
        How many edges there are.
    weights_are : {"lengths", "strengths"}
        What the numbers say.
    """
    array = as_array(name, value)
    if array.shape != (size,):
        raise InvalidInputError(f"`{name}` must have one entry per edge, {size}; got shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"`{name}` must hold numbers; got dtype {array.dtype}")
    numbers = array.astype(np.float64)
    bad = ~((numbers >= SHORTEST) & (numbers <= LONGEST))  # NaN is bad too
    if bad.any():
        i = int(bad.argmax())
        why = f" ({_ZERO[weights_are]})" if numbers[i] == 0 else ""
        raise InvalidInputError(
            f"`{name}` must be positive, from {SHORTEST:g} to {LONGEST:g}; entry {i} is {numbers[i]:g}{why}"
        )
    # Clipped, because 1 / 1e-100 rounds.
    return np.clip(1.0 / numbers, SHORTEST, LONGEST) if weights_are == "strengths" else numbers


def lengths_from(lengths: object, strengths: object, size: int) -> FloatArray | None:
    """Return the lengths of edges that were given as lengths, as strengths, or not at all."""
    if lengths is not None and strengths is not None:
        raise InvalidInputError(f"`strengths` must be left out where `lengths` are given; got {shown(strengths)}")
    if strengths is not None:
        return check_lengths("strengths", strengths, size, weights_are="strengths")
    return None if lengths is None else check_lengths("lengths", lengths, size)
