"""What ``napsets inspect`` says of any threshold, be it of a set or of an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.cli._output import number, percent, table
from napsets.files.ids import NodeIds

if TYPE_CHECKING:
    from napsets.advice.inspection import ThresholdInspection

__all__ = ["head_table", "hop_tables", "neighbour_table", "support_rows", "told_of_threshold", "with_neighbours"]


def told_of_threshold(seen: ThresholdInspection, ids: NodeIds, outcome: dict[str, Any]) -> dict[str, Any]:
    """Return what a threshold follows from, with what came out of it after the node and alpha."""
    return {
        "node": ids.take(np.array([seen.node]))[0].as_py(),
        "alpha": seen.alpha,
        **outcome,
        "threshold": seen.threshold,
        "support": seen.support,
        "effective_size": seen.effective_size,
        "fell_back": seen.fell_back,
        "neighbourhood_support": seen.neighbourhood_support,
        "neighbourhood_effective_size": seen.neighbourhood_effective_size,
        "total_mass": seen.total_mass,
        "needed_mass": seen.needed_mass,
        "reached_mass": seen.reached_mass,
        "hops": [vars(row) for row in seen.hops],
    }


def with_neighbours(
    seen: ThresholdInspection, ids: NodeIds, shown: int, name: str, truth: Callable[[int], Any]
) -> list[dict[str, Any]]:
    """Return the calibration nodes nearest to the threshold, with what is true of each under the given name."""
    chosen = seen.nearest(shown)
    nodes = seen.neighbours[chosen]
    far = [None] * chosen.size if seen.neighbour_distances is None else seen.neighbour_distances[chosen].tolist()
    around = zip(
        ids.take(nodes).to_pylist(),
        seen.neighbour_hops[chosen],
        seen.neighbour_weights[chosen],
        nodes,
        seen.neighbour_scores[chosen],
        far,
        strict=True,
    )
    return [
        {"node": who, "hop": int(hop) or None, "weight": weight, name: truth(int(place)), "score": score}
        | ({} if distance is None else {"distance": distance})
        for who, hop, weight, place, score, distance in around
    ]


def support_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the threshold rests on, and the neighbourhood's own where another stands in."""
    rows = [
        ("threshold τ", number(result["threshold"])),
        ("support", number(result["support"])),
        ("effective size", number(result["effective_size"], 2)),
    ]
    if result["support"] == result["neighbourhood_support"]:
        return rows
    return [
        *rows,
        ("support of its neighbourhood", number(result["neighbourhood_support"])),
        ("effective size of its neighbourhood", number(result["neighbourhood_effective_size"], 2)),
    ]


def head_table(result: dict[str, Any], rows: list[tuple[str, str]]) -> Any:
    """Return the first table: what came out, and what its threshold rests on."""
    title = f"Node {result['node']} at alpha = {result['alpha']:g}"
    return table(title, ["", ""], [("method", result["method"]), *rows])


def hop_tables(seen: ThresholdInspection) -> list[Any]:
    """Return the neighbourhood by hop, where hops count."""
    if not seen.hops:
        return []
    rows = [
        (
            row.hop,
            number(row.nodes),
            number(row.calibration),
            f"{row.weight:.4g}",
            f"{row.mass:.4g}",
            percent(row.mass / seen.total_mass if seen.total_mass else 0.0),
            number(row.median_score),
            number(row.within),
        )
        for row in seen.hops
    ]
    columns = ["hop", "nodes", "calibration", "weight w(k)", "mass", "share", "median score", "scores ≤ τ"]
    return [table("Neighbourhood by hop", columns, rows)]


def neighbour_table(result: dict[str, Any], in_reach: int, name: str) -> Any:
    """Return the calibration nodes nearest to the threshold, with the column of what is true of them."""
    by_length = any("distance" in row for row in result["neighbours"])

    def away(row: dict[str, Any]) -> Any:
        return f"{row['distance']:.4g}" if by_length else row["hop"] or "–"

    def truth(row: dict[str, Any]) -> Any:
        return row[name] if isinstance(row[name], str) else number(row[name])

    rows = [
        (row["node"], truth(row), away(row), f"{row['weight']:.4g}", number(row["score"]))
        for row in result["neighbours"]
    ]
    title = f"Calibration nodes with scores nearest to τ ({len(rows)} of {in_reach} in reach)"
    columns = ["node", name, "distance" if by_length else "hop", "weight", "score"]
    return table(title, columns, rows, left=1 + all(isinstance(row[name], str) for row in result["neighbours"]))
