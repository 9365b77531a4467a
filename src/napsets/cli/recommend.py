"""``napsets homophily`` and ``recommend``: how much neighbours agree; and which method to use here, and why."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from napsets.checks.values import LARGEST_HOPS
from napsets.cli._options import (
    LARGEST_COUNT,
    LARGEST_SEED,
    Alpha,
    Edges,
    Labels,
    Nodes,
    Only,
    ReadingOptions,
    refuse_given,
)
from napsets.cli._output import Output, number, percent, table
from napsets.files import read_graph, read_inputs

if TYPE_CHECKING:
    from napsets.advice.recommendation import Recommendation
    from napsets.advice.theory import Homophily
    from napsets.advice.trials import Trials
    from napsets.graph import Graph

EXAMPLES = [
    "napsets homophily --edges edges.parquet --labels y.parquet",
    "napsets homophily -e edges.csv.gz -l y.csv --json",
    "napsets homophily -e citations.csv -l y.csv --directed --direction both",
    "napsets recommend --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets recommend --edges edges.parquet --labels y.parquet",
    "napsets recommend -e edges.csv -l y.csv -n ask.csv --alpha 0.05 --max-hops 4 --json",
    "napsets recommend -e citations.csv -l y.csv --directed --direction in",
]


def homophily(
    run: Output,
    edges: Edges,
    labels: Labels,
    read: Annotated[ReadingOptions, Only("directed", "direction", "ids")],
) -> None:
    """Measure how often neighbours share a label, compared with random labels.

    NAPS relies on homophily: the average share of a node's labelled neighbours that have its label (Table 1's Ĥ) should
    exceed Σ p², which labels drawn at random with the same frequencies p would have (H_rand). Nodes without a
    labelled neighbour count as 0 in Ĥ, as in the paper; the mean without them is next to it. With --directed,
    neighbours are those along --direction: whom a node points to, who points to it, or both.
    """
    from napsets.advice.theory import measure_homophily

    run.notes(read.direction_notes())
    with run.steps() as steps:
        inputs = read_graph(edges, labels, reading=read.reading, stage=steps.stage)
        run.notes(inputs.notes)
        steps.stage("comparing neighbours")
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


def recommend(
    run: Output,
    edges: Edges,
    labels: Labels,
    probabilities: Annotated[
        Path | None,
        typer.Option(
            "--probabilities",
            "-p",
            help="Probabilities, as for predict. With them, methods are tried on held-out labels.",
        ),
    ] = None,
    nodes: Nodes = None,
    alpha: Alpha = 0.1,
    max_hops: Annotated[int, typer.Option(min=1, max=LARGEST_HOPS, help="The largest number of hops to consider.")] = 3,
    sample: Annotated[
        int, typer.Option(min=1, max=LARGEST_COUNT, help="Labelled nodes on which the agreement of labels is measured.")
    ] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of that sample, and of the trials.", min=0, max=LARGEST_SEED)] = 0,
    read: Annotated[
        ReadingOptions,
        Only("directed", "direction", "ids", "skip_unknown", "labels_are", "logits", "normalise", "ignore_columns"),
    ] = ReadingOptions(),
) -> None:
    """Recommend a method for the graph, the labels and the model, and explain why.

    With --probabilities, methods are tried by cross-fitting: each fifth of the labels evaluates the sets that the other
    labels give its nodes. The recommendation is based on that, and shows what `--method auto` would choose.

    Without --probabilities, it is based on the graph alone, in the paper's terms: homophily, the bound on the coverage
    gap and the size of the calibration sample; which hops and decay suit NAPS, and how many nodes lack support. The
    graph alone cannot show how good sets will be. This is a guide for choosing, not a guarantee.

    With --directed, neighbourhoods follow --direction.
    """
    from napsets.advice.recommendation import recommend as look
    from napsets.advice.trials import try_methods

    run.notes(read.direction_notes())
    with run.steps() as steps:
        if probabilities is None:
            needy = {"--skip-unknown": read.skip_unknown, "--labels-are": read.labels_are != "auto"}
            refuse_given("needs --probabilities", {**needy, "--logits": read.logits})
            inputs = read_graph(edges, labels, nodes, read.reading, stage=steps.stage)
        else:
            inputs = read_inputs(edges, probabilities, labels, nodes, read.reading, predicting=False, stage=steps.stage)
        run.notes(inputs.notes)
        steps.stage("looking at neighbourhoods")
        common: dict[str, Any] = {
            "alpha": alpha, "seed": seed, "direction": read.direction, "progress": steps.advance,
        }  # fmt: skip
        targets = inputs.nodes if inputs.nodes.size else None
        advice = look(inputs.graph, inputs.truth, nodes=targets, max_hops=max_hops, sample=sample, **common)
        if probabilities is not None:
            steps.stage("trying methods on held-out labels")
            best: dict[str, Any] = {"hops": advice.best.hops, "decay": advice.best.decay, "ids": inputs.ids.keys}
            advice = advice.resting_on(try_methods(inputs.graph, inputs.outputs, inputs.truth, **best, **common))
    evidence = advice.evidence
    weights = f"--hops {advice.best.hops} --decay {advice.best.decay}"
    weights += f" --direction {read.direction}" if read.directed and read.direction != "out" else ""
    way = weights if evidence is None else _way(evidence, weights)
    command = f"napsets predict --edges {edges} --probabilities {probabilities or '…'} --labels {labels} "
    command += f"--alpha {alpha:g} {'--directed ' * read.directed}{way} -o sets.parquet"
    result = asdict(replace(advice, evidence=None)) | {"reasons": advice.reasons(), "command": command}
    result |= {"evidence": None if evidence is None else evidence.row()}
    run.result(
        result,
        _verdict(advice, way),
        *([] if evidence is None else _on_evidence(evidence)),
        *(f"• {reason}" for reason in advice.reasons()),
        _table(advice),
        command,
    )


#: What the graph alone says; it never says yes.
_GRAPH_ALONE = {
    "maybe": "[bold]The graph alone cannot show whether NAPS helps[/bold]; {leaning}, with {way}. Pass --probabilities "
    "to try methods on your labels.",
    "no": "[bold]The graph alone cannot show which method is best[/bold], but NAPS is unlikely to help: split "
    "conformal prediction should do as well. To try NAPS: {way}. Pass --probabilities to try methods on your labels.",
}
_VERDICTS = {
    "yes": "[bold]Neighbourhoods help: use {way}[/bold]. On held-out labels its sets are clearly smaller than those of "
    "split APS.",
    "maybe": "[bold]Neighbourhoods make no clear difference[/bold]: keep split APS, {way}.",
    "no": "[bold]Neighbourhoods do not help[/bold]: keep split APS, {way}.",
}


def _verdict(advice: Recommendation, way: str) -> Text:
    if advice.evidence is None:
        leaning = "it may" if advice.favourable else "there is no sign either way"
        return Text.from_markup(_GRAPH_ALONE[advice.verdict].format(way=way, leaning=leaning))
    if not advice.evidence.enough:
        return Text.from_markup(f"[bold]There are too few labels to tell[/bold]: use {way}.")
    return Text.from_markup(_VERDICTS[advice.verdict].format(way=way))


def _way(evidence: Trials, weights: str) -> str:
    """Return the options of the method to use; only those of NAPS have hops."""
    return f"--method {evidence.method}" + (f" {weights}" if evidence.method.startswith("naps") else "")


def _on_evidence(evidence: Trials) -> list[Any]:
    reasons = [f"• {reason}" for reason in evidence.reasons()]
    alone = "From the graph alone:"
    if not evidence.enough:
        return [*reasons, alone]
    rows = [
        (
            trial.method + (" ←" if trial.method == evidence.method else ""),
            f"{trial.size:.2f} ± {trial.size_se:.2f}",
            f"{100 * trial.coverage:.1f} ± {100 * trial.coverage_se:.1f} %",
            percent(trial.full),
            f"{100 * trial.gap:.1f}",
            "–" if trial is evidence.trials[0] else f"{trial.difference:+.2f} ± {trial.difference_se:.2f}",
        )
        for trial in evidence.trials
    ]
    shown = f"Tried on {evidence.judged:,} held-out labels, in {evidence.folds} parts; off target: average distance of "
    shown += f"coverage from the target per group, in points ({100 * evidence.trials[0].chance:.1f} by chance)"
    columns = ["method", "average size", "coverage", "full sets", "off target", f"minus {evidence.trials[0].method}"]
    return [table(shown, columns, rows), *reasons, alone]


def _table(advice: Recommendation) -> Any:
    rows = [
        (
            candidate.hops,
            candidate.decay + (" ←" if candidate == advice.best else ""),
            number(candidate.bound, 3),
            number(candidate.slack, 3),
            number(candidate.spread, 3),
            number(candidate.effective_size, 1),
            number(candidate.short),
            percent(candidate.short_share),
            number(candidate.cost, 3),
        )
        for candidate in advice.candidates
    ]
    columns = ["hops", "decay", "gap bound", "slack", "spread", "effective size", "lack support", "share", "cost"]
    return table("Settings of NAPS that were compared", columns, rows, left=2)
