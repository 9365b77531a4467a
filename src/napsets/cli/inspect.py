"""``napsets inspect``: why a node's set, or interval, is what it is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from napsets.cli._inspected import explanation_of
from napsets.cli._like import Like, read_written_record, written_otherwise
from napsets.cli._methods import MethodOptions, ignored
from napsets.cli._options import LARGEST_COUNT, InputFiles
from napsets.cli._output import Output
from napsets.cli._reading import ReadingOptions
from napsets.files import read_inputs
from napsets.scores import SCORES

EXAMPLES = [
    "napsets inspect --node 42 --like sets.parquet --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets inspect --node 42 --like report.html -e edges.csv -p p.csv -l y.csv --method naps-h",
    "napsets inspect --node user-7 -e edges.csv -p p.csv -l y.csv --hops 3 --decay geometric --neighbours 50",
    "napsets inspect --node 42 -e edges.csv -p p.csv -l y.csv --method informed",
    "napsets inspect --node 42 --task regression -e edges.csv -p quantiles.csv -l targets.csv --method informed",
    "napsets inspect --node 42 --like intervals.parquet -e edges.csv -p quantiles.csv -l targets.csv --neighbours 5",
    "napsets inspect --node 42 --config napsets.toml --json",
]


def inspect(
    run: Output,
    context: typer.Context,
    node: Annotated[str, typer.Option("--node", help="The node's id, as the files have it.")],
    files: InputFiles,
    like: Like = None,
    options: MethodOptions = MethodOptions(),
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, max=LARGEST_COUNT, help="How many calibration nodes to list.")
    ] = 10,
    read: ReadingOptions = ReadingOptions(),
) -> None:
    """Show why a node's set, or its interval, is what it is.

    It prints the neighbourhood by hop with weights, the score of each label, the threshold and where it comes from, and
    the calibration nodes with the nearest scores. If neighbours' labels are evidence (informed, auto), it also prints
    the model's own probabilities, what each kind of evidence adds, and which neighbours are evidence for which label.

    With --task regression it explains an interval: the model's outputs, how the targets around the node change them
    (informed, auto), and the threshold.

    With the files and settings that `napsets predict` had, it explains the set, or the interval, that was written.
    --like takes the settings from that file, or from a report, which may have used half of the labels for evaluation.
    Without it, all labels calibrate.
    """
    from napsets.advice.inspection import inspect_node

    record = None if like is None else read_written_record(like)
    if record is not None:
        record.check_task(read.task)
    options = options.chosen(context)
    read.refuse({"--logits": read.logits, "--features": options.features is not None})
    run.notes(ignored(context, read, options.name))
    options.check(read)
    with run.steps() as steps:
        inputs = read_inputs(
            files.edges, files.probabilities, files.labels, None, read.reading,
            prediction=read.prediction, predicting=False, stage=steps.stage,
        )  # fmt: skip
        if record is not None:
            record.check_score(context, inputs)
        method = options.make_for(context, inputs, read, steps.stage)
        run.notes(inputs.notes)
        place = inputs.ids.find(node)
        calibration = inputs.calibration if record is None else record.calibration(inputs)
        calibrated = inputs.calibrate(method, calibration)
        inspection: Any = inspect_node(calibrated, position=place, alpha=options.alpha)
        explanation = explanation_of(read.prediction)
        score = options.score if inputs.score is None else SCORES.name_of(type(inputs.score))
        result: dict[str, Any] = {"method": options.name, "task": read.task, "score": score}
        result |= explanation.result(inspection, inputs, neighbours)
        if record is not None:
            run.notes([*record.notes(context.params, inputs), *written_otherwise(record, result, inputs, place)])
    choice = None if calibrated.choice is None else str(calibrated.choice)
    result |= {"calibration": int(calibration.size), "labelled": int(inputs.calibration.size)}
    result |= {"like": None if like is None else str(like), "choice": choice}
    first, others = explanation.tables(result, inspection)
    run.result(
        result,
        first,
        inspection.reason(),
        _calibrated_on(result, like.name if like and record and record.calibrated_alike(inputs) else None),
        *([] if choice is None else [f"Chosen: {choice}."]),
        *others,
    )


def _calibrated_on(result: dict[str, Any], alike: str | None) -> str:
    """Say how many labels calibrated, and the name of the file that as many made."""
    used, labelled = result["calibration"], result["labelled"]
    which = f"all {labelled:,}" if used == labelled else f"{used:,} of {labelled:,}"
    return f"Calibrated on {which} labelled nodes" + ("." if alike is None else f", as {alike} was.")
