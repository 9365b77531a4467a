"""``napsets homophily``: how often neighbours share a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from napsets.cli._options import Edges, Labels, Only, ReadingOptions
from napsets.cli._output import Output, number, percent, table
from napsets.files import read_graph

if TYPE_CHECKING:
    from napsets.advice.theory import Homophily
    from napsets.graph import Graph

EXAMPLES = [
    "napsets homophily --edges edges.parquet --labels y.parquet",
    "napsets homophily -e edges.csv.gz -l y.csv --json",
    "napsets homophily -e citations.csv -l y.csv --directed --direction both",
]


def homophily(
    run: Output,
    edges: Edges,
    labels: Labels,
    read: Annotated[ReadingOptions, Only("directed", "direction")],
) -> None:
    """Measure how often neighbours share a label, compared with random labels.

    NAPS relies on homophily: the average share of a node's labelled neighbours that have its label (Table 1's Ĥ) should
    exceed Σ p², which labels drawn at random with the same frequencies p would have (H_rand). Nodes without a
    labelled neighbour count as 0 in Ĥ, as in the paper; the mean without them is next to it. With --directed,
    neighbours are those along --direction: whom a node points to, who points to it, or both.
    """
    from napsets.advice.theory import measure_homophily

    with run.steps() as steps:
        inputs = read_graph(edges, labels, reading=read.reading, stage=steps.stage)
        run.notes(inputs.notes)
        steps.stage("comparing neighbours")
        assert inputs.graph is not None
        graph, names = inputs.graph.along(read.direction), inputs.class_names or []
        measured = measure_homophily(graph, inputs.truth, num_classes=len(names))
    result = _result(graph, measured, names)
    run.result(result, _main_table(result), _class_table(result))


def _result(graph: Graph, measured: Homophily, names: list[str]) -> dict[str, Any]:
    by_class = zip(names, measured.class_counts, measured.class_means, measured.class_expected, strict=True)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "mean_degree": graph.num_edges / graph.num_nodes,
        "labelled": measured.labelled,
        "without_labelled_neighbour": measured.unmet,
        "homophily": measured.mean,
        "homophily_where_seen": measured.where_met,
        "expected_homophily": measured.expected,
        "classes": [
            {"class": name, "nodes": int(count), "homophily": float(mean), "expected_homophily": float(expected)}
            for name, count, mean, expected in by_class
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
        ("expected with random labels, H_rand", number(result["expected_homophily"])),
    ]
    return table("Homophily", ["", ""], rows)


def _class_table(result: dict[str, Any]) -> Any:
    rows = [
        (row["class"], number(row["nodes"]), percent(row["homophily"]), percent(row["expected_homophily"]))
        for row in result["classes"]
    ]
    return table("By class", ["class", "nodes", "neighbours of the same class", "at random"], rows)
