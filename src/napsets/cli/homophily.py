"""``napsets homophily``: how much neighbours agree."""

from __future__ import annotations

from typing import Any

from napsets.cli._options import Directed, Edges, IdKind, IdKindName, Labels
from napsets.cli._output import Output, number, percent, table

__all__ = ["EXAMPLES", "homophily"]

EXAMPLES = [
    "napsets homophily --edges edges.parquet --labels y.parquet",
    "napsets homophily -e edges.csv.gz -l y.csv --json",
]


def homophily(
    run: Output,
    edges: Edges,
    labels: Labels,
    directed: Directed = False,
    ids: IdKind = IdKindName.auto,
) -> None:
    """Measure how often neighbours share a label, beside what random labels would give.

    NAPS relies on homophily: the average share of a node's labelled neighbours that have its label (Table 1's Ĥ) should
    exceed Σ p², which labels drawn at random with the same frequencies p would have (H_rand). Nodes without a
    labelled neighbour count as 0 in Ĥ, as in the paper; the mean without them stands beside it.
    """
    from napsets.files import read_graph

    with run.steps() as steps:
        inputs = read_graph(edges, labels, directed=directed, ids=ids.value, stage=steps.stage)
        steps.stage("comparing neighbours")
        result = _measured(inputs.graph, inputs.labels, inputs.class_names)
    for note in inputs.notes:
        run.note(note)
    run.result(result, _main_table(result), _class_table(result))


def _measured(graph: Any, labels: Any, names: list[str]) -> dict[str, Any]:
    import numpy as np

    from napsets import expected_homophily, node_homophily
    from napsets.kernels.balls import same_label_shares

    known = labels >= 0
    shares, seen = np.empty(labels.size), np.empty(labels.size)
    same_label_shares(graph.indptr, graph.indices, labels, shares)
    # With one label for all, the share is 1 just where there is a labelled neighbour.
    same_label_shares(graph.indptr, graph.indices, np.where(known, 0, -1), seen)
    met = seen > 0
    groups = [(name, labels == y) for y, name in enumerate(names)]
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "mean_degree": graph.num_edges / graph.num_nodes,
        "labelled": int(known.sum()),
        "without_labelled_neighbour": int((known & ~met).sum()),
        "homophily": node_homophily(graph, labels),
        "homophily_where_seen": float(shares[known & met].mean()) if (known & met).any() else float("nan"),
        "expected_homophily": expected_homophily(labels),
        "classes": [
            {
                "class": name,
                "nodes": int(own.sum()),
                "homophily": float(shares[own & met].mean()) if (own & met).any() else float("nan"),
                "expected_homophily": float(own.sum() / max(np.count_nonzero(known), 1)),
            }
            for name, own in groups
        ],
    }


def _main_table(result: dict[str, Any]) -> Any:
    rows = [
        ("nodes", number(result["nodes"])),
        ("stored edges", number(result["edges"])),
        ("mean degree", number(result["mean_degree"], 2)),
        ("labelled nodes", number(result["labelled"])),
        ("… without a labelled neighbour", number(result["without_labelled_neighbour"])),
        ("homophily Ĥ", number(result["homophily"])),
        ("… among nodes with a labelled neighbour", number(result["homophily_where_seen"])),
        ("expected of random labels H_rand", number(result["expected_homophily"])),
    ]
    return table("Homophily", ["", ""], rows)


def _class_table(result: dict[str, Any]) -> Any:
    rows = [
        (row["class"], number(row["nodes"]), percent(row["homophily"]), percent(row["expected_homophily"]))
        for row in result["classes"]
    ]
    return table("By class", ["class", "nodes", "neighbours of the same class", "at random"], rows)
