"""``napsets report``: the report page from files, about sets of labels or intervals of numbers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from napsets.checks.arguments import IntArray
from napsets.cli._comparison import comparison_table, interval_comparison_table
from napsets.cli._methods import COMPARED_METHODS, Alike, LevelOption, MethodsOption, Pool, make, names_of
from napsets.cli._numbers import Task, TaskOption, reading_numbers, score_for_numbers
from napsets.cli._options import (
    DEFAULT_SCORE,
    Alpha,
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
    make_score,
)
from napsets.cli._output import Output
from napsets.cli._places import REPORT_SUFFIXES, writable_file
from napsets.files import read_features, read_inputs, read_labels, read_regression
from napsets.files.regression import read_targets
from napsets.scores import Similarity

__all__ = ["EXAMPLES", "report"]

EXAMPLES = [
    "napsets report --edges edges.parquet --probabilities p.parquet --labels y.parquet -o report.html",
    "napsets report -e edges.csv -p p.csv -l y.csv --methods split,naps,naps-h --hops 3 -o report.html",
    "napsets report -e edges.csv -p p.csv -l calibration.csv --truth truth.csv --title 'Fraud, May' -o report.html",
    "napsets report -e edges.csv -p p.csv -l y.csv --methods split,snaps,auto --features x.npz -o report.html",
    "napsets report --task regression -e edges.csv -p quantiles.csv -l targets.csv -o report.html",
]


def report(
    run: Output,
    context: typer.Context,
    edges: Edges,
    probabilities: Probabilities,
    labels: Labels,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The report: one HTML file (.html, .htm) that needs no network.")
    ],
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            help="Labels to judge by, a file like --labels. Without it, a random half of --labels judges and the other "
            "half calibrates.",
        ),
    ] = None,
    methods: MethodsOption = COMPARED_METHODS,
    alpha: Alpha = 0.1,
    hops: Hops = 2,
    pool: Pool = None,
    alike: Alike = None,
    fallback: FallbackOption = FallbackName.full,
    level: LevelOption = None,
    radius: Radius = None,
    features: FeaturesOption = None,
    score: ScoreOption = DEFAULT_SCORE,
    seed: Seed = 0,
    title: Annotated[str | None, typer.Option("--title", help="Title of the page.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Name of the data, for the page.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of the model, for the page.")] = None,
    directed: Directed = False,
    direction: DirectionOption = DirectionName.out,
    weights_are: WeightsAre = None,
    ids: IdKind = IdKindName.auto,
    skip_unknown: SkipUnknown = False,
    labels_are: LabelsAre = LabelsName.auto,
    logits: Logits = False,
    task: TaskOption = Task.classification,
) -> None:
    """Write the report: which method to take on your own nodes and how sure that is, in one HTML file.

    Labels that judge sets are never used to make them. With --task regression the report is about intervals of numbers.
    """
    from napsets.evaluation.comparison import CURVE_ALPHAS

    writable_file(output, REPORT_SUFFIXES, (edges, probabilities, labels, truth, features))
    numbers = task is Task.regression
    if numbers and (logits or features is not None or labels_are is not LabelsName.auto):
        raise typer.BadParameter("works without --logits, --labels-are and --features", param_hint="--task")
    names = names_of(methods)
    if features is not None and not any(_compares(name) for name in names):
        raise typer.BadParameter(
            "needs a method that compares nodes: --methods split,snaps,auto", param_hint="--features"
        )
    write_page = import_module("napsets.report").write_page
    files: dict[str, Any] = {"edges": edges, "probabilities": probabilities, "labels": labels, "truth": truth}
    reading: dict[str, Any] = {"ids": ids.value, "labels_are": labels_are.value, "skip_unknown": skip_unknown}
    if weights_are is not None:
        reading["weights_are"] = weights_are.value
    reading["logits"] = logits
    settings: dict[str, Any] = {
        "methods": names,
        "alpha": alpha,
        "hops": hops,
        "pool": pool,
        "alike": alike,
        "fallback": fallback.value,
        "level": None if level is None else level.value,
        "radius": radius,
        "direction": direction.value,
        "seed": seed,
        "alphas": CURVE_ALPHAS,
    }
    with run.steps() as steps:
        settings["progress"] = steps.advance
        if numbers:
            found = _numbers(context, files, reading, settings, score, directed, steps.stage)
        else:
            settings["score"] = make_score(score)
            found = _labels(files, reading, settings, features, directed, steps.stage)
        compared, inputs, shown = found
        steps.stage("writing the report")
        output.parent.mkdir(parents=True, exist_ok=True)
        path = write_page(
            output,
            compared,
            ids=np.array(inputs.ids.take(np.arange(len(inputs.ids))).to_pylist()),
            title=title,
            dataset=dataset,
            model=model,
            settings=(reading_numbers(reading) if numbers else reading) | _recorded(features),
            **shown,
        )
    for note in inputs.notes:
        run.note(note)
    rows = compared.rows()
    told = compared.verdict() if numbers else compared.verdict(inputs.class_names)
    result = {
        "report": str(path),
        "calibration": int(compared.given.calibration.size),
        "results": rows,
        "verdict": told.row(),
    }
    table = interval_comparison_table(rows) if numbers else comparison_table(rows)
    run.summary(result, table, *told.lines, f"The report is at {path.resolve()}")


def _labels(
    files: dict[str, Any],
    reading: dict[str, Any],
    settings: dict[str, Any],
    features: Path | None,
    directed: bool,
    stage: Callable[[str], None],
) -> tuple[Any, Any, dict[str, Any]]:
    """Compare sets: return the comparison, what was read, and what else the page shows."""
    from napsets.evaluation.comparison import compare

    read, truth = [files[name] for name in ("edges", "probabilities", "labels")], files["truth"]
    inputs = read_inputs(*read, directed=directed, predicting=False, stage=stage, **reading)
    if features is not None:
        stage("reading features")
        how = {key: reading[key] for key in ("ids", "skip_unknown")}
        settings = settings | {"features": read_features(features, inputs.ids, **how)}
    judged = None
    if truth is not None:
        how = {key: reading[key] for key in ("ids", "labels_are", "skip_unknown")}
        judged, _ = read_labels(truth, inputs.ids, inputs.class_names, notes=inputs.notes, **how)
    y, calibration, nodes = _parts(inputs, inputs.labels, judged, settings["seed"])
    stage("comparing methods")
    compared = compare(inputs.graph, inputs.probabilities, y, calibration, nodes, ids=inputs.ids.keys, **settings)
    return compared, inputs, {"class_names": inputs.class_names}


def _numbers(
    context: typer.Context,
    files: dict[str, Any],
    reading: dict[str, Any],
    settings: dict[str, Any],
    score: str,
    directed: bool,
    stage: Callable[[str], None],
) -> tuple[Any, Any, dict[str, Any]]:
    """Compare intervals, as `_labels` compares sets."""
    from napsets.evaluation.interval_comparison import compare_intervals

    read, how, truth = (
        [files[name] for name in ("edges", "probabilities", "labels")],
        reading_numbers(reading),
        files["truth"],
    )
    inputs = read_regression(*read, directed=directed, predicting=False, stage=stage, **how)
    settings = settings | {"score": score_for_numbers(context, score, inputs)}
    judged = None
    if truth is not None:
        own = {key: reading[key] for key in ("ids", "skip_unknown")}
        judged = read_targets(truth, inputs.ids, notes=inputs.notes, **own)
    y, calibration, nodes = _parts(inputs, inputs.targets, judged, settings["seed"])
    stage("comparing methods")
    compared = compare_intervals(inputs.graph, inputs.outputs, y, calibration, nodes, ids=inputs.ids.keys, **settings)
    return compared, inputs, {}


def _parts(inputs: Any, labels: Any, judged: Any, seed: int) -> tuple[Any, IntArray, IntArray]:
    """Return all labels, the nodes that calibrate and those that judge: no label does both."""
    from napsets.evaluation.judgement import halves
    from napsets.evaluation.side_by_side import known_labels

    if judged is None:
        return labels, *halves(inputs.calibration, seed)
    known = known_labels(judged)
    both, rest = inputs.calibration[known[inputs.calibration]], inputs.calibration[~known[inputs.calibration]]
    if both.size:
        _check_both(judged[both], labels[both], rest.size, inputs.notes)
    return np.where(known, judged, labels), rest, np.flatnonzero(known)


def _check_both(judged: Any, labels: Any, rest: int, notes: list[str]) -> None:
    """Say that nodes with a label in both files only judge, and by which; refuse where none is left to calibrate."""
    count = judged.size
    if rest == 0:
        raise typer.BadParameter(
            f"must leave labels that calibrate: all {count:,} nodes of --labels are in it. Leave some out of it, or "
            f"leave out --truth: then half of --labels judges",
            param_hint="--truth",
        )
    notes.append(
        f"{count:,} of the {count + rest:,} nodes of --labels are in --truth too: they judge, and calibrate nothing"
    )
    # Numbers may have been rounded on their way into one of the files.
    others = int((~np.isclose(judged, labels, rtol=1e-6, atol=0.0)).sum())
    if others:
        notes.append(f"{others:,} of them have another label in --truth than in --labels: that of --truth counts")


def _compares(name: str) -> bool:
    """Return whether a method compares nodes by their features."""
    return isinstance(getattr(make(name, {}), "score", None), Similarity)


def _recorded(features: Path | None) -> dict[str, str]:
    return {} if features is None else {"features": str(features)}
