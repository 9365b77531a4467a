"""Which methods joins can run, and which need the graph on every worker."""

from __future__ import annotations

from typing import Any

from napsets.errors import InvalidInputError
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods.method import Method
from napsets.scores import RowScore, is_regression, learns

__all__ = ["check_method", "joins_know"]


def check_method(method: Any, name: str | None = None) -> Any:
    """Return a method that Spark can run: anything that is calibrated with `fit`.

    Parameters
    ----------
    method : Method or Choosing
        What was asked for.
    name : str, optional
        What the user called it.
    """
    if not callable(getattr(method, "fit", None)):
        called = type(method).__name__ if name is None else name
        raise InvalidInputError(f"`method` must be a Method, or the name of one; got {called}")
    if is_regression(getattr(method, "score", None)):
        raise InvalidInputError(
            "`score` must be one of labels on Spark; intervals of numbers are made on one machine, in Python or with "
            "--engine local"
        )
    return method


def joins_know(method: Any) -> bool:
    """Tell whether joins can do it: a score of single rows, one threshold or hops, a nominal or exact level."""
    if type(method) is not Method:
        return False
    score = method.score
    rows = isinstance(score, RowScore) or all(callable(getattr(score, part, None)) for part in ("matrix", "at"))
    usual = Method(score, method.localiser, method.level, method.seed, method.allow_empty)
    if learns(score) or not rows or method != usual:  # a field beyond these is set
        return False
    return type(method.localiser) in (Everyone, Hops) and type(method.level) in (Nominal, Exact)
