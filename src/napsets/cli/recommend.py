"""``napsets recommend``: which method to use here, and why."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from napsets.checks.arguments import LARGEST_HOPS
from napsets.cli._options import (
    LARGEST_SEED,
    Alpha,
    Directed,
    DirectionName,
    DirectionOption,
    Edges,
    IdKind,
    IdKindName,
    Labels,
    LabelsAre,
    LabelsName,
    Logits,
    Nodes,
    SkipUnknown,
    direction_notes,
)
from napsets.cli._output import Output, number, percent, table
from napsets.files import read_graph, read_inputs

if TYPE_CHECKING:
    from napsets.advice.recommendation import Recommendation
    from napsets.advice.trials import Trials

__all__ = ["EXAMPLES", "recommend"]

EXAMPLES = [
    "napsets recommend --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets recommend --edges edges.parquet --labels y.parquet",
    "napsets recommend -e edges.csv -l y.csv -n ask.csv --alpha 0.05 --max-hops 4 --json",
    "napsets recommend -e citations.csv -l y.csv --directed --direction in",
]


def recommend(
    run: Output,
    edges: Edges,
    labels: Labels,
    probabilities: Annotated[
        Path | None,
        typer.Option(
            "--probabilities",
            "-p",
            help="What the model says of each node, as for predict: methods are then tried on held-out labels.",
        ),
    ] = None,
    nodes: Nodes = None,
    alpha: Alpha = 0.1,
    max_hops: Annotated[
        int, typer.Option("--max-hops", min=1, max=LARGEST_HOPS, help="The deepest neighbourhood to consider.")
    ] = 3,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Labelled nodes on which the agreement of labels is measured.")
    ] = 2000,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of that sample, and of the trials.", min=0, max=LARGEST_SEED)
    ] = 0,
    directed: Directed = False,
    direction: DirectionOption = DirectionName.out,
    ids: IdKind = IdKindName.auto,
    skip_unknown: SkipUnknown = False,
    labels_are: LabelsAre = LabelsName.auto,
    logits: Logits = False,
) -> None:
    """Say which method suits the graph, the labels and the model, and why.

    With --probabilities, methods are tried by cross-fitting: each fifth of the labels judges what the others make of
    its nodes. The verdict rests on that, and says what `--method auto` would choose.

    Without, it says what the graph alone says, in the paper's terms: homophily, the bound on the coverage gap, and the
    size of the calibration sample; which hops and decay NAPS would want, and how many nodes lack support. That cannot
    tell how good sets will be. A guide for choosing, not a guarantee.

    With --directed, neighbourhoods are those along --direction, as NAPS with that option would look around.
    """
    from napsets.advice.recommendation import recommend as look
    from napsets.advice.trials import try_methods

    with run.steps() as steps:
        if probabilities is None:
            needy = {
                "--skip-unknown": skip_unknown,
                "--labels-are": labels_are is not LabelsName.auto,
                "--logits": logits,
            }
            for hint in (flag for flag, given in needy.items() if given):
                raise typer.BadParameter("needs --probabilities, which say what is known", param_hint=hint)
            inputs = read_graph(edges, labels, nodes, directed=directed, ids=ids.value, stage=steps.stage)
        else:
            inputs = read_inputs(
                edges,
                probabilities,
                labels,
                nodes,
                directed=directed,
                ids=ids.value,
                skip_unknown=skip_unknown,
                labels_are=labels_are.value,
                logits=logits,
                predicting=False,
                stage=steps.stage,
            )
        steps.stage("looking around nodes")
        found = look(
            inputs.graph,
            inputs.labels,
            nodes=inputs.nodes if inputs.nodes.size else None,
            alpha=alpha,
            max_hops=max_hops,
            sample=sample,
            seed=seed,
            direction=direction.value,
            progress=steps.advance,
        )
        if probabilities is not None:
            steps.stage("trying methods on held-out labels")
            tried = try_methods(
                inputs.graph,
                inputs.probabilities,
                inputs.labels,
                alpha=alpha,
                hops=found.best.hops,
                decay=found.best.decay,
                direction=direction.value,
                seed=seed,
                ids=inputs.ids.keys,
                progress=steps.advance,
            )
            found = found.resting_on(tried)
    for note in [*inputs.notes, *direction_notes(asked=direction is not DirectionName.out, directed=directed)]:
        run.note(note)
    evidence = found.evidence
    asked = f"--hops {found.best.hops} --decay {found.best.decay}"
    asked += f" --direction {direction.value}" if directed and direction is not DirectionName.out else ""
    way = asked if evidence is None else _way(evidence, asked)
    command = f"napsets predict --edges {edges} --probabilities {probabilities or '…'} --labels {labels} "
    command += f"--alpha {alpha:g} {'--directed ' * directed}{way} -o sets.parquet"
    result = asdict(replace(found, evidence=None)) | {"reasons": found.reasons(), "command": command}
    result |= {"evidence": None if evidence is None else evidence.row()}
    run.result(
        result,
        _verdict(found, way),
        *([] if evidence is None else _on_evidence(evidence)),
        *(f"• {reason}" for reason in found.reasons()),
        _table(found),
        command,
    )


#: What the graph alone says; it never says yes.
_GRAPH_ALONE = {
    "maybe": "[bold]The graph alone cannot tell whether NAPS helps here[/bold]; {leaning}, with {way}. Pass "
    "--probabilities to try methods on your labels.",
    "no": "[bold]The graph alone cannot tell which method is best here[/bold], but it speaks against NAPS: split "
    "conformal prediction should do as well. If you try it: {way}. Pass --probabilities to try methods on your labels.",
}
_VERDICTS = {
    "yes": "[bold]Look at neighbourhoods here: use {way}[/bold]. On labels that it had not seen its sets are clearly "
    "smaller than without.",
    "maybe": "[bold]Looking at neighbourhoods makes no clear difference here[/bold]; use {way}.",
    "no": "[bold]Looking at neighbourhoods does not help here[/bold]: use {way}.",
}


def _verdict(found: Recommendation, way: str) -> Text:
    if found.evidence is None:
        leaning = "it speaks for it" if found.favourable else "it speaks neither for it nor against it"
        return Text.from_markup(_GRAPH_ALONE[found.verdict].format(way=way, leaning=leaning))
    if not found.evidence.enough:
        return Text.from_markup(f"[bold]There are too few labels to tell[/bold]; use {way}.")
    return Text.from_markup(_VERDICTS[found.verdict].format(way=way))


def _way(evidence: Trials, asked: str) -> str:
    """Return the options of the method to use; only those of NAPS have hops."""
    return f"--method {evidence.method}" + (f" {asked}" if evidence.method.startswith("naps") else "")


def _on_evidence(found: Trials) -> list[Any]:
    reasons = [f"• {reason}" for reason in found.reasons()]
    alone = "What the graph alone says:"
    if not found.enough:
        return [*reasons, alone]
    rows = [
        (
            trial.method + (" ←" if trial.method == found.method else ""),
            f"{trial.size:.2f} ± {trial.size_se:.2f}",
            f"{100 * trial.coverage:.1f} ± {100 * trial.coverage_se:.1f} %",
            percent(trial.full),
            "–" if trial is found.trials[0] else f"{trial.difference:+.2f} ± {trial.difference_se:.2f}",
        )
        for trial in found.trials
    ]
    shown = f"Tried on {found.judged:,} held-out labels, in {found.folds} parts: each judges what the others make of it"
    columns = ["method", "labels in a set", "coverage", "full sets", f"against {found.trials[0].method}"]
    return [table(shown, columns, rows), *reasons, alone]


def _table(found: Recommendation) -> Any:
    rows = [
        (
            candidate.hops,
            candidate.decay + (" ←" if candidate == found.best else ""),
            number(candidate.bound, 3),
            number(candidate.slack, 3),
            number(candidate.spread, 3),
            number(candidate.effective_size, 1),
            number(candidate.short),
            percent(candidate.short_share),
            number(candidate.cost, 3),
        )
        for candidate in found.candidates
    ]
    columns = ["hops", "decay", "gap bound", "slack", "spread", "effective size", "lack support", "share", "cost"]
    return table("What was compared", columns, rows, left=2)
