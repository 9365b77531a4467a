"""``napsets recommend``: whether NAPS is expected to help, and how to use it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from napsets.checks.arguments import LARGEST_HOPS
from napsets.cli._options import LARGEST_SEED, Alpha, Directed, Edges, IdKind, IdKindName, Labels, Nodes
from napsets.cli._output import Output, number, percent, table
from napsets.files import read_graph

if TYPE_CHECKING:
    from napsets.advice.recommendation import Recommendation

__all__ = ["EXAMPLES", "recommend"]

EXAMPLES = [
    "napsets recommend --edges edges.parquet --labels y.parquet",
    "napsets recommend -e edges.csv -l y.csv -n ask.csv --alpha 0.05 --max-hops 4 --json",
]


def recommend(
    run: Output,
    edges: Edges,
    labels: Labels,
    nodes: Nodes = None,
    alpha: Alpha = 0.1,
    max_hops: Annotated[
        int, typer.Option("--max-hops", min=1, max=LARGEST_HOPS, help="The deepest neighbourhood to consider.")
    ] = 3,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Labelled nodes on which the agreement of labels is measured.")
    ] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of that sample.", min=0, max=LARGEST_SEED)] = 0,
    directed: Directed = False,
    ids: IdKind = IdKindName.auto,
) -> None:
    """Look at the graph and the known labels, and say whether NAPS is expected to help here.

    Says which hops and decay to use, how many nodes lack support, and why, in the paper's terms: homophily, the bound
    on the coverage gap, and the size of the calibration sample. A guide for choosing settings, not a guarantee.
    """
    from napsets.advice.recommendation import recommend as look

    with run.steps() as steps:
        inputs = read_graph(edges, labels, nodes, directed=directed, ids=ids.value, stage=steps.stage)
        steps.stage("looking around nodes")
        found = look(
            inputs.graph,
            inputs.labels,
            nodes=inputs.nodes,
            alpha=alpha,
            max_hops=max_hops,
            sample=sample,
            seed=seed,
            progress=steps.advance,
        )
    for note in inputs.notes:
        run.note(note)
    best = found.best
    command = f"napsets predict --edges {edges} --probabilities … --labels {labels} --alpha {alpha:g} "
    command += f"--hops {best.hops} --decay {best.decay} -o sets.parquet"
    result = asdict(found) | {"reasons": found.reasons(), "command": command}
    run.result(result, _verdict(found), *(f"• {reason}" for reason in found.reasons()), _table(found), command)


_VERDICTS = {
    "yes": "[bold]Use NAPS[/bold] with {settings}: it is expected to help here.",
    "maybe": "[bold]NAPS may help here[/bold], with {settings}; judge it on labels that you keep aside.",
    "no": "[bold]NAPS is not expected to help here[/bold]; split conformal prediction should do as well. "
    "If you try it: {settings}.",
}


def _verdict(found: Recommendation) -> Text:
    return Text.from_markup(
        _VERDICTS[found.verdict].format(settings=f"--hops {found.best.hops} --decay {found.best.decay}")
    )


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
