"""Which methods Spark can run: the one place that refuses the others."""

from __future__ import annotations

from typing import Any

from napsets.errors import InvalidInputError
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods.method import Method
from napsets.scores import RowScore, learns

__all__ = ["check_method"]

_HERE = "Use one machine for it: calibrate and predict in Python, or --engine local."


def check_method(method: Any, name: str | None = None) -> Method:
    """Return a method that Spark can run: a score of single rows, one threshold or hops, a nominal or exact level.

    Parameters
    ----------
    method : Method
        What was asked for.
    name : str, optional
        What the user called it.
    """
    called = type(method).__name__ if name is None else name
    if not isinstance(method, Method):
        told = f"{called} is more than one score, one localiser and one level"
        raise InvalidInputError(f"`method` must be one that Spark can run; {told}. {_HERE}")
    score, localiser, level = method.score, method.localiser, method.level
    rows = isinstance(score, RowScore) or all(callable(getattr(score, part, None)) for part in ("matrix", "at"))
    if learns(score) or not rows:
        told = f"{type(score).__name__} looks at other nodes" + (f", and {name} takes it" if name else "")
        raise InvalidInputError(f"`score` must look at a node's own probabilities alone on Spark; {told}. {_HERE}")
    for argument, value, kinds in (("localiser", localiser, (Everyone, Hops)), ("level", level, (Nominal, Exact))):
        if type(value) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            told = f"that of {called} is {type(value).__name__}"
            raise InvalidInputError(f"`method` must have {wanted} as its {argument} on Spark; {told}. {_HERE}")
    direction = getattr(localiser, "direction", "out")
    if direction != "out":
        raise InvalidInputError(f"`direction` must be out on Spark; that of {called} is {direction}. {_HERE}")
    if method.groups is not None:
        raise InvalidInputError(f"`method` must have no groups on Spark; {called} judges by groups. {_HERE}")
    return method
