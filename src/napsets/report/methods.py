"""The methods of a page: what each is called, what it is for, and how its thresholds are to be explained."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from napsets.evaluation.comparison import Comparison, MethodResult
from napsets.evaluation.verdict import Verdict, is_proven
from napsets.graph import Graph
from napsets.localisers import Everyone, HopsLocal
from napsets.methods import methods

__all__ = ["ShownMethod", "focus", "shown_methods", "walked_graph"]

Kind = Literal["hops", "everyone", "other"]


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
    kind: Kind
    exact: bool


def shown_methods(comparison: Comparison) -> list[ShownMethod]:
    """Return the methods of a comparison, in its order."""
    texts, often, graph = methods(), Counter(result.title for result in comparison), walked_graph(comparison)
    return [
        ShownMethod(
            result.name,
            result.title if often[result.title] == 1 else f"{result.title} ({result.name})",
            texts.get(result.name, ""),
            _kind(result, graph),
            is_proven(result.calibrated),
        )
        for result in comparison
    ]


def focus(comparison: Comparison, verdict: Verdict) -> int:
    """Return the place of the method that the page is about: the one to take, or the first to be compared with it."""
    place = [result.name for result in comparison].index(verdict.method)
    return place or min(1, len(comparison.results) - 1)


def walked_graph(comparison: Comparison) -> Graph:
    """Return the graph whose hops the page shows: along the direction of the first method that counts them."""
    locals_ = (result.calibrated.local for result in comparison)
    return next((local.reference.index.graph for local in locals_ if isinstance(local, HopsLocal)), comparison.graph)


def _kind(result: MethodResult, walked: Graph) -> Kind:
    if result.calibrated.grouped is not None:
        return "other"
    local = result.calibrated.local
    # Hops that another direction leads to are not those that the page shows.
    if isinstance(local, HopsLocal):
        return "hops" if local.reference.graph is walked else "other"
    return "everyone" if isinstance(result.calibrated.method.localiser, Everyone) else "other"
