"""``napsets inspect``: why a node's set, or interval, is what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from napsets.cli._methods import MethodOptions, ignored
from napsets.cli._options import LARGEST_COUNT, InputFiles, ReadingOptions
from napsets.cli._output import Output, table
from napsets.scores import SCORES

EXAMPLES = [
    "napsets inspect --node 42 --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets inspect --node user-7 -e edges.csv -p p.csv -l y.csv --hops 3 --decay geometric --neighbours 50",
    "napsets inspect --node 42 -e edges.csv -p p.csv -l y.csv --method informed",
    "napsets inspect --node 42 --task regression -e edges.csv -p quantiles.csv -l targets.csv --method informed",
    "napsets inspect --node 42 --config napsets.toml --json",
]


def inspect(
    run: Output,
    context: typer.Context,
    node: Annotated[str, typer.Option(help="The node's id, as the files have it.")],
    files: InputFiles,
    options: MethodOptions = MethodOptions(),
    neighbours: Annotated[int, typer.Option(min=0, max=LARGEST_COUNT, help="How many calibration nodes to list.")] = 10,
    read: ReadingOptions = ReadingOptions(),
) -> None:
    """Show why a node's set, or its interval, is what it is.

    It prints the neighbourhood by hop with weights, the score of each label, the threshold and where it comes from, and
    the calibration nodes with the nearest scores. If labels are evidence (informed, auto), it also prints the model's
    own probabilities, and by which factor each kind of evidence changed them.

    With --task regression it explains an interval: the model's outputs, how the targets around the node change them
    (informed, auto), and the threshold.

    With the files and settings that `napsets predict` had, it explains the set, or the interval, that was written.
    """
    from napsets.advice.explanation import Explained, TextTable
    from napsets.advice.inspection import inspect_node

    options = options.chosen(context)
    read.refuse({"--logits": read.logits, "--features": options.features is not None})
    run.notes(ignored(context, options.name))
    options.check(read)
    with run.steps() as steps:
        inputs = files.read(read, steps.stage, predicting=False, features=options.features)
        method = options.make_for(context, inputs, read, steps.stage)
        run.notes(inputs.notes)
        place = inputs.ids.find(node)
        calibrated = inputs.calibrate(method)
        inspection = inspect_node(calibrated, position=place, alpha=options.alpha)
        score = options.score if inputs.score is None else SCORES.name_of(type(inputs.score))
        result: dict[str, Any] = {"method": options.name, "task": read.task, "score": score}
        names = inputs.class_names or ()
        explained = Explained(
            inspection, lambda nodes: inputs.ids.take(nodes).to_pylist(), inputs.truth, names, neighbours
        )
        result |= explained.record()
    choice = None if calibrated.choice is None else str(calibrated.choice)
    result["calibration"] = int(inputs.calibration.size)
    if calibrated.scored.evidence:
        result["evidence_labels"] = int(calibrated.scored.reference.nodes.size)
    result["choice"] = choice
    taught = f" with {result['evidence_labels']:,} more as evidence" if "evidence_labels" in result else ""

    def drawn(one: TextTable) -> Any:
        return table(one.title, one.head, one.rows, left=one.left)

    head = explained.head()
    run.result(
        result,
        drawn(replace(head, rows=[("method", options.name), *head.rows])),
        inspection.reason(),
        f"Calibrated on all {result['calibration']:,} labelled nodes{taught}.",
        *([] if choice is None else [f"Chosen: {choice}."]),
        *(text for one in explained.tables() for text in (drawn(one), *([one.note] if one.note else []))),
    )
