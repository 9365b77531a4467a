"""What to mind about a method: labels that are few, nodes without support, coverage that falls short, drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.evaluation.drift import Drift, drifts
from napsets.evaluation.promises import coverage_band, falls_short, level_labels
from napsets.evaluation.side_by_side import SideBySide
from napsets.levels import fewest_ranks

if TYPE_CHECKING:
    from napsets.methods import Calibrated

__all__ = ["SHORT", "drifts_in", "looked_at", "warnings_on"]

#: A method is said to fall short where chance would make it cover so little less often than this.
SHORT = 0.001
#: A smaller share of nodes without a threshold of their own is not worth a word.
_WORTH_SAYING = 0.1
#: Drift of this size is graver than few labels or little support.
_GRAVE = 0.2
#: Labels are few where another draw of them could cost this much coverage.
_FEW = 0.05


def drifts_in(found: SideBySide[Any], class_names: Sequence[str] | None = None) -> tuple[Drift, ...]:
    """Compare who calibrates with who is judged, and who has a label with who has none."""
    predicted, calibration, judged = found.predicted, found.given.calibration, found.nodes
    looks = drifts(
        found.graph, predicted, calibration, judged, between=("calibrating", "judged"), class_names=class_names
    )
    labelled = np.union1d(calibration, judged)
    rest = np.setdiff1d(np.flatnonzero(~found.known), labelled, assume_unique=True)
    names = ("labelled", "unlabelled")
    return looks + drifts(found.graph, predicted, labelled, rest, between=names, class_names=class_names)


def warnings_on(
    calibrated: Calibrated,
    alpha: float,
    *,
    infinite: int,
    nodes: int,
    looks: Sequence[Drift] = (),
    hits: int | None = None,
) -> list[str]:
    """Return what to mind about a method, the gravest first.

    Parameters
    ----------
    calibrated : Calibrated
        The method.
    alpha : float
        Error rate.
    infinite, nodes : int
        Nodes that lack support, of so many.
    looks : sequence of Drift
        Differences between labelled nodes and others that were looked at.
    hits : int, optional
        Nodes that are covered, where all were judged.
    """
    count, told = level_labels(calibrated), []
    numbers = calibrated.is_regression
    if hits is not None and falls_short(hits, nodes, count, alpha) < SHORT:
        told.append(
            f"it covers {100 * hits / nodes:.1f} % where {100 * (1 - alpha):g} % were asked for, less than chance "
            f"explains; labels and judged nodes may differ"
        )
    large = sorted((look for look in looks if look.matters(len(looks))), key=lambda look: -look.distance)
    drifted = [f"{look}; coverage may differ there" for look in large]
    grave = sum(look.distance >= _GRAVE for look in large)
    few, too_few = _on_labels(count, alpha, "interval is the whole line" if numbers else "set holds every label")
    share = infinite / max(nodes, 1)
    get = "get the whole line" if numbers else "get every label"
    told_short = f"{infinite:,} of {nodes:,} nodes ({100 * share:.0f} %) {get}"
    short = [f"{told_short}, because too few labelled nodes are near"]
    return [
        *told,
        *too_few,
        *drifted[:grave],
        *(short if share >= _WORTH_SAYING and not too_few else []),
        *few,
        *drifted[grave:],
    ]


def _on_labels(count: int, alpha: float, then: str) -> tuple[list[str], list[str]]:
    """Return what to say where labels are few, and where they are too few for any threshold."""
    needed = fewest_ranks(alpha)
    if count < needed:
        told = f"{count:,} labels are too few to set a level at alpha = {alpha:g}, which takes {needed:,}"
        return [], [f"{told}: every {then}"]
    low, high = coverage_band(count, alpha)
    if low >= 1.0 - alpha - _FEW:
        return [], []
    told = f"{count:,} labels are few: with others, coverage could as well be {100 * low:.0f} or {100 * high:.0f} %"
    return [told], []


def looked_at(looks: Sequence[Drift]) -> str:
    """Return what was looked at for warnings, in words."""
    respects = " and ".join(dict.fromkeys(look.what for look in looks))
    return f"labels, support, and drift in {respects}" if looks else "labels and support"
