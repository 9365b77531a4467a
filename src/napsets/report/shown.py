"""The methods of a page: what each is called, what it is for, and how its thresholds are to be explained."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from napsets.evaluation.side_by_side import Compared, SideBySide
from napsets.evaluation.verdict import Verdict, is_proven
from napsets.graph import Graph
from napsets.localisers import Everyone, HopsLocal
from napsets.methods import methods

__all__ = ["ShownMethod", "focus", "shown_methods", "walked"]


@dataclass(frozen=True)
class ShownMethod:
    """A method as the page shows it.

    Attributes
    ----------
    name, title, text : str
        Its name in the table of methods, what charts call it (no two the same), and one line on what it is for.
    kind : {"hops", "everyone", "other"}
        Whether its thresholds are quantiles of scores around the node, of all scores, or come about in another way.
    exact : bool
        Whether it covers at the target rate where calibration and judged nodes are exchangeable.
    """

    name: str
    title: str
    text: str
    kind: Literal["hops", "everyone", "other"]
    exact: bool


def shown_methods(found: SideBySide[Any]) -> list[ShownMethod]:
    """Return the methods of a comparison, in its order."""
    texts, often = methods(), Counter(result.title for result in found)
    return [
        ShownMethod(
            result.name,
            result.title if often[result.title] == 1 else f"{result.title} ({result.name})",
            texts.get(result.name, ""),
            _kind(result, found),
            is_proven(result.calibrated),
        )
        for result in found
    ]


def focus(found: SideBySide[Any], verdict: Verdict) -> int:
    """Return the place of the method that the page is about: the one to take, or the first to be held beside it."""
    place = [result.name for result in found].index(verdict.method)
    return place or min(1, len(found.results) - 1)


def walked(found: SideBySide[Any]) -> Graph:
    """Return the graph whose hops the page shows: along the direction of the first method that counts them."""
    locals_ = (result.calibrated.local for result in found)
    return next((local.reference.index.graph for local in locals_ if isinstance(local, HopsLocal)), found.graph)


def _kind(result: Compared, found: SideBySide[Any]) -> Literal["hops", "everyone", "other"]:
    if result.calibrated.grouped is not None:
        return "other"
    local = result.calibrated.local
    # Hops that another direction leads to are not those that the page shows.
    if isinstance(local, HopsLocal):
        return "hops" if local.reference.graph is walked(found) else "other"
    return "everyone" if isinstance(result.calibrated.method.localiser, Everyone) else "other"
