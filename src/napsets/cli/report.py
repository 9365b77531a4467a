"""``napsets report``: the report page from files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from napsets.cli._comparison import comparison_table
from napsets.cli._methods import COMPARED_METHODS, Alike, LevelOption, MethodsOption, Pool, names_of
from napsets.cli._options import (
    DEFAULT_SCORE,
    Alpha,
    Directed,
    DirectionName,
    DirectionOption,
    Edges,
    FallbackName,
    FallbackOption,
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
from napsets.files import read_inputs, read_labels

__all__ = ["EXAMPLES", "report"]

EXAMPLES = [
    "napsets report --edges edges.parquet --probabilities p.parquet --labels y.parquet -o report.html",
    "napsets report -e edges.csv -p p.csv -l y.csv --methods split,naps,naps-h --hops 3 -o report.html",
    "napsets report -e edges.csv -p p.csv -l calibration.csv --truth truth.csv --title 'Fraud, May' -o report.html",
]


def report(
    run: Output,
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
            help="Labels to judge sets by: columns node, label. Without it, a random half of --labels judges "
            "and the other half calibrates.",
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
) -> None:
    """Write the report: which method to take on your own nodes and how sure that is, in one HTML file.

    Labels that judge sets are never used to make them.
    """
    from napsets.evaluation.comparison import CURVE_ALPHAS, compare
    from napsets.evaluation.judgement import halves

    writable_file(output, REPORT_SUFFIXES, (edges, probabilities, labels, truth))
    write_page = import_module("napsets.report").write_page
    reading: dict[str, Any] = {"ids": ids.value, "labels_are": labels_are.value, "skip_unknown": skip_unknown}
    weights: dict[str, Any] = {} if weights_are is None else {"weights_are": weights_are.value}
    with run.steps() as steps:
        inputs = read_inputs(
            edges,
            probabilities,
            labels,
            directed=directed,
            logits=logits,
            predicting=False,
            stage=steps.stage,
            **reading,
            **weights,
        )
        y, calibration, nodes = inputs.labels, inputs.calibration, np.empty(0, dtype=np.int64)
        if truth is None:
            calibration, nodes = halves(calibration, seed)
        else:
            found, _ = read_labels(truth, inputs.ids, inputs.class_names, notes=inputs.notes, **reading)
            nodes = np.flatnonzero(found >= 0)
            calibration = np.setdiff1d(calibration, nodes)
            y = np.where(found >= 0, found, y)
        steps.stage("comparing methods")
        compared = compare(
            inputs.graph,
            inputs.probabilities,
            y,
            calibration,
            nodes,
            methods=names_of(methods),
            alpha=alpha,
            hops=hops,
            pool=pool,
            alike=alike,
            fallback=fallback.value,
            level=None if level is None else level.value,
            radius=radius,
            direction=direction.value,
            score=make_score(score),
            seed=seed,
            ids=inputs.ids.keys,
            alphas=CURVE_ALPHAS,
            progress=steps.advance,
        )
        steps.stage("writing the report")
        output.parent.mkdir(parents=True, exist_ok=True)
        path = write_page(
            output,
            compared,
            class_names=inputs.class_names,
            ids=np.array(inputs.ids.take(np.arange(len(inputs.ids))).to_pylist()),
            title=title,
            dataset=dataset,
            model=model,
            settings=reading | weights | {"logits": logits},
        )
    for note in inputs.notes:
        run.note(note)
    rows, told = compared.rows(), compared.verdict(inputs.class_names)
    result = {
        "report": str(path),
        "calibration": int(calibration.size),
        "results": rows,
        "verdict": told.row(),
    }
    run.summary(result, comparison_table(rows), *told.lines, f"The report is at {path.resolve()}")
