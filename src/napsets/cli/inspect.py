"""``napsets inspect``: why a node's set, or interval, is what it is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from napsets.cli._inspected_intervals import interval_tables, told_of_interval
from napsets.cli._inspected_sets import set_tables, told_of_set
from napsets.cli._like import Like, read_record
from napsets.cli._like_rows import written_otherwise
from napsets.cli._methods import (
    Alike,
    By,
    LevelOption,
    MethodOption,
    Pool,
    chosen_method,
    ignored,
    make,
    with_features,
    with_file_groups,
)
from napsets.cli._numbers import Task, TaskOption, make_for_numbers, reading_numbers
from napsets.cli._options import (
    DEFAULT_SCORE,
    AllowEmpty,
    Alpha,
    DecayOption,
    Directed,
    DirectionName,
    DirectionOption,
    Edges,
    FallbackName,
    FallbackOption,
    FeaturesOption,
    Hops,
    IdKind,
    IdKindName,
    Labels,
    LabelsAre,
    LabelsName,
    Logits,
    Probabilities,
    Radius,
    ScoreOption,
    Seed,
    SkipUnknown,
    WeightsAre,
    make_decay,
    make_score,
)
from napsets.cli._output import Output
from napsets.files import read_inputs, read_regression

__all__ = ["EXAMPLES", "inspect"]

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
    edges: Edges,
    probabilities: Probabilities,
    labels: Labels,
    like: Like = None,
    method: MethodOption = None,
    alpha: Alpha = 0.1,
    hops: Hops = 2,
    decay: DecayOption = None,
    pool: Pool = None,
    alike: Alike = None,
    radius: Radius = None,
    features: FeaturesOption = None,
    by: By = None,
    score: ScoreOption = DEFAULT_SCORE,
    seed: Seed = 0,
    allow_empty: AllowEmpty = True,
    fallback: FallbackOption = FallbackName.full,
    level: LevelOption = None,
    neighbours: Annotated[int, typer.Option("--neighbours", min=0, help="How many calibration nodes to list.")] = 10,
    directed: Directed = False,
    direction: DirectionOption = DirectionName.out,
    weights_are: WeightsAre = None,
    ids: IdKind = IdKindName.auto,
    skip_unknown: SkipUnknown = False,
    labels_are: LabelsAre = LabelsName.auto,
    logits: Logits = False,
    task: TaskOption = Task.classification,
) -> None:
    """Show why a node's set, or its interval, is what it is.

    Its neighbourhood by hop with weights, the scores of its labels, the threshold and where that comes from, and the
    calibration nodes whose scores are nearest to it. Where the labels around a node are evidence (informed, auto), also
    what the model said by itself, what each kind of evidence adds, and which labelled neighbours speak for which label.

    With --task regression it explains an interval: what the model said, what the targets around the node make of that
    (informed, auto), and the same of the threshold.

    With the files and settings that `napsets predict` had, it explains the set, or the interval, that was written.
    --like takes the settings from that file, or from a report, where half of the labels may have been kept to judge.
    Without it, all labels calibrate.
    """
    from napsets.advice.inspection import inspect_node

    record = None if like is None else read_record(like)
    if record is not None:
        record.check_task(task.value)
    method = chosen_method(context, method)
    settings: dict[str, Any] = {
        "method": method,
        "score": score,
        "alpha": alpha,
        "hops": hops,
        "decay": make_decay(decay, hops),
        "pool": pool,
        "alike": alike,
        "radius": radius,
        "direction": direction.value,
        "seed": seed,
        "allow_empty": allow_empty,
        "fallback": fallback.value,
        "level": None if level is None else level.value,
        "by": by,
    }
    reading: dict[str, Any] = {
        "ids": ids.value,
        "skip_unknown": skip_unknown,
        "labels_are": labels_are.value,
        "logits": logits,
        "weights_are": None if weights_are is None else weights_are.value,
    }
    files, numbers = (edges, probabilities, labels), task is Task.regression
    if numbers and (logits or features is not None):
        raise typer.BadParameter("works without --logits and --features", param_hint="--task")
    called = score
    made = None if numbers else make(method, settings | {"score": make_score(score)})
    with run.steps() as steps:
        how: dict[str, Any] = {"directed": directed, "predicting": False, "stage": steps.stage}
        inputs: Any
        if numbers:
            inputs = read_regression(*files, **(reading_numbers(reading) | how))
            if record is not None:
                record.check_score(context, inputs)
            made, called = make_for_numbers(context, settings, inputs, reading, steps.stage)
        else:
            inputs = read_inputs(*files, **(reading | how))
            made = with_features(made, features, inputs, reading, steps.stage)
            made = with_file_groups(made, by, inputs, reading, steps.stage)
        place = inputs.ids.find(node)
        calibration = inputs.calibration if record is None else record.calibration(inputs)
        calibrated = inputs.calibrate(made, calibration)
        seen: Any = inspect_node(calibrated, place, alpha)
        told, tables = (told_of_interval, interval_tables) if numbers else (told_of_set, set_tables)
        result = {"method": method, "task": task.value, "score": called} | told(seen, inputs, neighbours)
        notes = list(inputs.notes)
        if record is not None:
            notes += [*record.notes(context.params, inputs), *written_otherwise(record, result, inputs, place)]
    for note in [*notes, *ignored(context, method)]:
        run.note(note)
    choice = None if calibrated.choice is None else str(calibrated.choice)
    result |= {"calibration": int(calibration.size), "labelled": int(inputs.calibration.size)}
    result |= {"like": None if like is None else str(like), "choice": choice}
    first, others = tables(result, seen)
    run.result(
        result,
        first,
        seen.reason(),
        _calibrated_on(result, like.name if like and record and record.calibrated_alike(inputs) else None),
        *([] if choice is None else [f"Chosen: {choice}."]),
        *others,
    )


def _calibrated_on(result: dict[str, Any], alike: str | None) -> str:
    """Say how many labels calibrated, and the name of the file that as many made."""
    used, labelled = result["calibration"], result["labelled"]
    which = f"all {labelled:,}" if used == labelled else f"{used:,} of {labelled:,}"
    return f"Calibrated on {which} labelled nodes" + ("." if alike is None else f", as {alike} was.")
