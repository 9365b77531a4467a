"""``napsets predict``: prediction sets from files to a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from napsets.cli._advice import full_note, support_note
from napsets.cli._methods import (
    Alike,
    By,
    LevelOption,
    MethodOption,
    Pool,
    chosen_method,
    groups_file,
    ignored,
    make,
    recorded,
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
    Nodes,
    Probabilities,
    Radius,
    ScoreOption,
    Seed,
    SkipUnknown,
    WeightsAre,
    make_decay,
    make_score,
)
from napsets.cli._output import Output, number, percent, table
from napsets.cli._places import wrong_use
from napsets.files import (
    Inputs,
    check_writable,
    describe_settings,
    read_inputs,
    read_regression,
    write_intervals,
    write_predictions,
)
from napsets.files.places import check_apart
from napsets.files.regression import RegressionInputs
from napsets.methods import title
from napsets.sets import SetsSummary
from napsets.version import __version__

if TYPE_CHECKING:
    from napsets.evaluation.verdict import Verdict

__all__ = ["EXAMPLES", "predict"]

EXAMPLES = [
    "napsets predict --edges edges.parquet --probabilities p.parquet --labels y.parquet -o sets.parquet",
    "napsets predict -e edges.csv.gz -p p.csv -l y.csv -n ask.csv --alpha 0.05 --decay hyperbolic -o sets.csv",
    "napsets predict -e edges.parquet -p p.parquet -l y.parquet --method naps-h --hops 3 -o sets.parquet",
    "napsets predict -e edges.parquet -p p.parquet -l y.parquet --by class -o sets.parquet",
    "napsets predict --task regression -e edges.csv -p quantiles.csv -l targets.csv --method naps-exact -o out.parquet",
    "napsets predict --config napsets.toml --hops 3 -o sets.parquet --json",
    "napsets predict -e edges.csv -p p.csv -l y.csv --separator ';' --columns node=id,label=class -o sets.jsonl",
    "napsets predict -e edges.parquet -p p.parquet --logits -l - --format jsonl -o - < y.jsonl > sets.jsonl",
    "napsets predict -e edges.parquet -p p.parquet -l y.parquet -o sets.parquet --engine spark --master local[4]",
]


#: Options on how files are written: whoever explains the sets from the same files needs them too.
_AS_WRITTEN = ("columns", "separator", "format")


class PlanName(str, Enum):
    """How Spark goes about it."""

    auto = "auto"
    graph_on_every_worker = "graph-on-every-worker"
    joins = "joins"


class Engine(str, Enum):
    """Where thresholds are computed."""

    local = "local"
    spark = "spark"


def predict(
    run: Output,
    context: typer.Context,
    edges: Edges,
    probabilities: Probabilities,
    labels: Labels,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The sets file: .parquet, .csv, .tsv, .jsonl (.gz too) or .npz, whole or not at all; - is standard "
            "output.",
        ),
    ],
    nodes: Nodes = None,
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
    directed: Directed = False,
    direction: DirectionOption = DirectionName.out,
    weights_are: WeightsAre = None,
    ids: IdKind = IdKindName.auto,
    skip_unknown: SkipUnknown = False,
    labels_are: LabelsAre = LabelsName.auto,
    logits: Logits = False,
    task: TaskOption = Task.classification,
    engine: Annotated[Engine, typer.Option("--engine", help="Compute here, or on Spark.")] = Engine.local,
    master: Annotated[str | None, typer.Option("--master", help="Spark's master, with --engine spark.")] = None,
    plan: Annotated[
        PlanName,
        typer.Option(
            "--plan",
            help="With --engine spark: workers map the graph, from a folder beside the output that all machines see, "
            "or joins. By default the first, where the graph fits into the memory of each machine.",
        ),
    ] = PlanName.auto,
) -> None:
    """Give every node without a label (or those of --nodes) a set of labels.

    Each set is meant to contain the truth with probability 1 − alpha. How sets are made is chosen by evidence on the
    labels, and said in one line; --method asks for one way, and `napsets methods` lists them all.

    Ids may be any integers or strings and come back as they were; only an empty cell is missing. Labels are names of
    classes where all of them are, numbers from 0 where none is; --labels-are decides where they are mixed.

    Sets are written as they are made. Memory, for Parquet files with integer ids: at most 400 MB + nodes × (2 × bytes
    of a probability × classes + 150 bytes) + edges × 30 bytes, however many nodes are predicted; auto and informed hold
    nodes × classes × 64 bytes more, --weights-are edges × 40 bytes, --direction in or both edges × 30 bytes.
    """
    began = perf_counter()
    method = chosen_method(context, method, everywhere=engine is Engine.spark and plan is PlanName.joins)
    settings: dict[str, Any] = {
        "method": method,
        "alpha": alpha,
        "hops": hops,
        "decay": make_decay(decay, hops),
        "pool": pool,
        "alike": alike,
        "radius": radius,
        "score": score,
        "seed": seed,
        "allow_empty": allow_empty,
        "fallback": fallback.value,
        "level": None if level is None else level.value,
        "directed": directed,
        "features": None if features is None else str(features),
        "by": by,
    }
    if direction is not DirectionName.out:
        settings["direction"] = direction.value
    reading: dict[str, Any] = {
        "ids": ids.value,
        "labels_are": labels_are.value,
        "skip_unknown": skip_unknown,
        "logits": logits,
    }
    if weights_are is not None:
        reading["weights_are"] = weights_are.value
    if task is Task.regression:
        elsewhere = engine is Engine.spark or master is not None or plan is not PlanName.auto
        if elsewhere or logits or features is not None:
            raise typer.BadParameter("works with --engine local, without --logits and --features", param_hint="--task")
        numbers = {"edges": edges, "outputs": probabilities, "targets": labels, "nodes": nodes}
        _predict_numbers(run, context, numbers, output, settings, reading)
        return
    made = make(method, settings | {"score": make_score(score)})
    # What was left to the method is written down as it turned out, and what it does not know is not.
    settings = {key: value for key, value in settings.items() if value is not None} | recorded(made) | reading
    settings |= _as_written(context)
    files = {"edges": edges, "probabilities": probabilities, "labels": labels, "nodes": nodes}
    if engine is Engine.spark:
        used_here = {
            "--skip-unknown": skip_unknown,
            "--features": features is not None,
            "--by": groups_file(by) is not None,
            "--logits": logits,
            "--weights-are": weights_are is not None,
        }
        used_here |= {f"--{key}": context.params.get(key) is not None for key in _AS_WRITTEN}
        for flag, used in used_here.items():
            if used:
                raise typer.BadParameter("works with --engine local only", param_hint=flag)
        result = _predict_on_spark(run, files, output, made, method, settings, master, plan)
    else:
        if master is not None:
            raise typer.BadParameter("needs --engine spark", param_hint="--master")
        if plan is not PlanName.auto:
            raise typer.BadParameter("needs --engine spark", param_hint="--plan")
        result = _predict_here(run, files, output, made, settings, reading, features)
    result |= {"output": str(context.params["output"])}
    result |= {"seconds": round(perf_counter() - began, 3), "engine": engine.value, **settings}
    # Spark's workers hold the labels: what they say of them is not known here.
    lines = result["verdict"]["lines"] if "verdict" in result else []
    run.summary(result, _summary_table(result), *lines)
    if "choice" in result:
        run.note(f"{method} chose {result['choice']}")
    for note in (*ignored(context, method), support_note(result, context), full_note(result, context)):
        if note is not None:
            run.note(note)


def _as_written(context: typer.Context) -> dict[str, Any]:
    """Return how files are written, as far as it was said."""
    return {key: context.params[key] for key in _AS_WRITTEN if context.params.get(key) is not None}


def _predict_numbers(
    run: Output,
    context: typer.Context,
    files: dict[str, Any],
    target: Path,
    settings: dict[str, Any],
    reading: dict[str, Any],
) -> None:
    """Give nodes intervals of numbers: the road of labels, with targets in their place."""
    from napsets.evaluation.promises import level_labels

    began = perf_counter()
    how = reading_numbers(reading)
    with wrong_use("--output"):
        check_writable(target, [*files.values(), groups_file(settings.get("by"))])
    with run.steps() as steps:
        inputs = read_regression(**files, **how, directed=settings["directed"], stage=steps.stage)
        for note in inputs.notes:
            run.note(note)
        made, score = make_for_numbers(context, settings, inputs, reading, steps.stage)
        steps.stage("calibrating")
        calibrated = inputs.calibrate(made)
        settings = {key: value for key, value in settings.items() if value is not None} | recorded(made) | how
        settings |= {"score": score, "task": "regression"} | _as_written(context)
        steps.stage("making intervals")
        about: dict[str, Any] = {
            "napsets": __version__,
            "num_nodes": len(inputs.ids),
            "calibration": int(inputs.calibration.size),
            "level_labels": level_labels(calibrated),
        }
        told = write_intervals(
            inputs, target, calibrated, alpha=settings["alpha"], metadata=about | settings, progress=steps.advance
        )
        size = told["mean_width"] if told["infinite"] < told["nodes"] else math.nan
        predicted = inputs.score.centre(inputs.outputs)
        nodes, infinite = int(told["nodes"]), int(told["infinite"])
        verdict = _verdict(calibrated, inputs, settings, nodes, size, infinite, predicted)
    result: dict[str, Any] = {
        "output": str(context.params["output"]), **told, "calibration": about["calibration"], "verdict": verdict.row(),
    }  # fmt: skip
    result |= {"seconds": round(perf_counter() - began, 3), **settings}
    shown = {"nodes": "nodes predicted", "calibration": "calibration nodes", "mean_width": "mean width of an interval"}
    shown |= {"infinite": "too little support (the whole line)"}
    rows = [(text, number(result[key])) for key, text in shown.items()]
    shown_table = table(f"{result['output']}: intervals at alpha = {result['alpha']:g}", ["", ""], rows)
    run.summary(result, shown_table, *verdict.lines)
    if calibrated.choice is not None:
        run.note(f"{settings['method']} chose {calibrated.choice}")
    for note in ignored(context, settings["method"]):
        run.note(note)


def _predict_here(
    run: Output,
    files: dict[str, Any],
    target: Path,
    made: Any,
    settings: dict[str, Any],
    reading: dict[str, Any],
    features: Path | None,
) -> dict[str, Any]:
    from napsets.evaluation.drift import predicted_classes

    with wrong_use("--output"):
        check_writable(target, [*files.values(), features, groups_file(settings.get("by"))])
    with run.steps() as steps:
        inputs = read_inputs(**files, **reading, directed=settings["directed"], stage=steps.stage)
        for note in inputs.notes:
            run.note(note)
        made = with_features(made, features, inputs, reading, steps.stage)
        made = with_file_groups(made, settings.get("by"), inputs, reading, steps.stage)
        steps.stage("calibrating")
        calibrated = inputs.calibrate(made)
        choice = getattr(calibrated, "choice", None)
        steps.stage("making sets")
        metadata = describe_settings(
            settings, inputs.class_names, nodes=len(inputs.ids), calibration=int(inputs.calibration.size)
        )
        summary = write_predictions(
            inputs, target, calibrated, alpha=settings["alpha"], metadata=metadata, progress=steps.advance
        )
        predicted = predicted_classes(inputs.probabilities)
        size, infinite = summary.mean_size, summary.infinite
        verdict = _verdict(calibrated, inputs, settings, summary.nodes, size, infinite, predicted)
    told = _told(target, summary) | {"calibration": int(inputs.calibration.size), "verdict": verdict.row()}
    return told if choice is None else told | {"choice": str(choice)}


def _verdict(
    calibrated: Any,
    inputs: Inputs | RegressionInputs,
    settings: dict[str, Any],
    nodes: int,
    size: float,
    infinite: int,
    predicted: Any,
) -> Verdict:
    """Say what is known of what no truth judges: what was chosen, what is expected, what is promised."""
    from napsets.evaluation.verdict import foresee

    return foresee(
        calibrated,
        settings["method"],
        title(settings["method"], calibrated.method.score),
        alpha=settings["alpha"],
        nodes=nodes,
        size=size,
        infinite=infinite,
        graph=inputs.graph,
        predicted=predicted,
        asked=inputs.nodes,
        class_names=inputs.class_names if isinstance(inputs, Inputs) else None,
    )


def _told(target: Path, summary: SetsSummary) -> dict[str, Any]:
    """Return what is said of the sets, whichever engine made them."""
    nodes = max(summary.nodes, 1)
    return {
        "output": str(target),
        "nodes": summary.nodes,
        "classes": summary.num_classes,
        "mean_size": summary.mean_size,
        "empty_rate": summary.empty / nodes,
        "singleton_rate": summary.singletons / nodes,
        "full_rate": summary.full / nodes,
        "infinite": summary.infinite,
        "unreached": summary.unreached,
    }


#: What the summary shows, as far as an engine knows it.
_ROWS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "nodes": ("nodes predicted", number),
    "calibration": ("calibration nodes", number),
    "classes": ("classes", number),
    "mean_size": ("mean size of a set", number),
    "empty_rate": ("empty sets", percent),
    "singleton_rate": ("sets of one label", percent),
    "full_rate": ("full sets", percent),
    "infinite": ("too little support (threshold ∞)", number),
    "unreached": ("no calibration node in reach", number),
    "seconds": ("seconds", partial(number, digits=1)),
}


def _summary_table(result: dict[str, Any]) -> Any:
    rows = [(text, shown(result[key])) for key, (text, shown) in _ROWS.items() if key in result]
    return table(f"{result['output']}: sets at alpha = {result['alpha']:g}", ["", ""], rows)


def _predict_on_spark(
    run: Output,
    files: dict[str, Any],
    target: Path,
    made: Any,
    method: str,
    settings: dict[str, Any],
    master: str | None,
    plan: PlanName,
) -> dict[str, Any]:
    # Imported by name, because it needs an extra and brings Spark with it.
    predict_files = import_module("napsets.spark").predict_files
    if plan is PlanName.joins and not import_module("napsets.spark.methods").joins_know(made):
        raise typer.BadParameter(f"joins do not know {method}; leave it out", param_hint="--plan")
    with wrong_use("--output"):
        check_apart(target, files.values())
        import_module("napsets.spark.places").check_early(str(target))
    with run.steps() as steps:
        steps.stage("making sets on Spark")
        summary = predict_files(
            **{name: None if path is None else str(path) for name, path in files.items()},
            **{key: settings[key] for key in ("alpha", "ids", "labels_are")},
            method=made,
            name=method,
            plan=plan.value,
            output=str(target),
            directed=settings["directed"],
            master=master,
            progress=steps.advance,
        )
    return _told(target, summary)
