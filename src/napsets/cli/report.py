"""``napsets report`` and ``demo``: the report page from files, or on the embedded graph, and its table."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from napsets.checks.arguments import IntArray
from napsets.checks.text import percent
from napsets.cli import make_app
from napsets.cli._methods import ComparisonOptions, ignored, score_of
from napsets.cli._options import (
    DEFAULT_SCORE,
    Amount,
    FailOn,
    InputFiles,
    ReadingOptions,
    ScoreOption,
    Seed,
    refuse_given,
)
from napsets.cli._output import REPORT_SUFFIXES, Output, Steps, number, table, writable_file
from napsets.evaluation.sentences import compared_methods, wide
from napsets.files import Inputs, read_features, read_truth
from napsets.graph import Graph
from napsets.methods import make_method
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

EXAMPLES = [
    "napsets report --edges edges.parquet --probabilities p.parquet --labels y.parquet -o report.html",
    "napsets report -e edges.csv -p p.csv -l y.csv --methods split,naps,naps-h --hops 3 -o report.html",
    "napsets report -e edges.csv -p p.csv -l calibration.csv --truth truth.csv --title 'Fraud, May' -o report.html",
    "napsets report -e edges.csv -p p.csv -l y.csv --methods split,snaps,auto --features x.parquet -o report.html",
    "napsets report -e edges.csv -p p.csv -l y.csv --quick",
    "napsets report --task regression -e edges.csv -p quantiles.csv -l targets.csv -o report.html",
    "napsets demo",
    "napsets demo --alpha 0.05 --seed 1 --output demo.html",
    "napsets demo --json",
]


ReportPath = Annotated[
    Path, typer.Option("--output", "-o", help="The report: one HTML file (.html, .htm) that needs no network.")
]


OptionalReportPath = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The report: one HTML file (.html, .htm) that needs no network."),
]


@dataclass(frozen=True)
class SettingsOptions:
    """Further settings of methods."""

    radius: Amount = None
    features: Path | None = None
    score: ScoreOption = DEFAULT_SCORE
    seed: Seed = 0


@dataclass(frozen=True)
class PageOptions:
    """What the page is called."""

    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None
    dataset: Annotated[str | None, typer.Option(help="Name of the data, for the page.")] = None
    model: Annotated[str | None, typer.Option(help="Name of the model, for the page.")] = None
    words: Annotated[
        str | None, typer.Option(help="What a node and its label are, for the page: 'package, build system'.")
    ] = None


def report(
    run: Output,
    context: typer.Context,
    files: InputFiles,
    output: OptionalReportPath = None,
    quick: Annotated[bool, typer.Option("--quick", help="Print the comparison without writing a report.")] = False,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="Labels to evaluate on, a file like --labels. Without it, a random half of --labels evaluates and the "
            "other half calibrates."
        ),
    ] = None,
    methods: ComparisonOptions = ComparisonOptions(),
    settings: SettingsOptions = SettingsOptions(),
    page: PageOptions = PageOptions(),
    read: ReadingOptions = ReadingOptions(),
    training: Path | None = None,
    fail_on: FailOn = "never",
) -> None:
    """Compare methods on your own nodes, and write a report in plain language: one HTML file.

    The report recommends a method, shows what it gains and how certain that is, and lists warnings. Half of the labels
    calibrate, the other half evaluate; no label does both. Those of --evidence do neither: methods learn from them.
    With --task regression, the report is about intervals.
    """
    if output is None and not quick:
        raise typer.BadParameter("Missing option: name the report, or pass --quick", param_hint="--output")
    if output is not None:
        refuse_given("writes no report; leave out --output", {"--quick": quick})
        writable_file(output, REPORT_SUFFIXES)
    features = settings.features
    read.refuse({"--logits": read.logits, "--features": features is not None})
    if features is not None and not any(make_method(name).uses_features for name in methods.names(read.prediction)):
        raise typer.BadParameter(
            "needs a method that compares nodes: --methods split,snaps,auto", param_hint="--features"
        )
    run.notes(ignored(context, *methods.names(read.prediction)))
    with run.steps() as steps:
        inputs = files.read(read, steps.stage, predicting=False, training=training)
        more: dict[str, Any] = {"radius": settings.radius, "direction": read.direction, "seed": settings.seed}
        if features is not None:
            steps.stage("reading features")
            more["features"] = read_features(features, inputs.ids, read.reading)
        judged = None if truth is None else read_truth(truth, inputs, read.reading)
        y, calibration, nodes = _parts(inputs, judged, settings.seed)
        evidence = None if inputs.evidence is None else _teaching(inputs.evidence, nodes, inputs.notes)
        run.notes(inputs.notes)
        compared = _compare(
            steps, inputs.graph, inputs.outputs, y, calibration, nodes,
            **methods.settings(read.prediction), **more,
            score=score_of(context, settings.score, inputs),
            ids=inputs.ids.keys,
            evidence=None if evidence is None else np.isin(np.arange(y.size), evidence),
            training=np.isin(np.arange(y.size), inputs.training),
        )  # fmt: skip
        if output is not None:
            names = np.array(inputs.ids.take(np.arange(len(inputs.ids))).to_pylist())
            named = {"class_names": inputs.class_names, "ids": names, "commands": commands_of(context)}
            _write(steps, output, compared, **named, **vars(page))
    rows, verdict = compared.rows(), compared.verdict(inputs.class_names, surface="terminal")
    result: dict[str, Any] = {} if output is None else {"report": str(output)}
    result["calibration"] = int(compared.data.calibration.size)
    if evidence is not None:
        result["evidence_labels"] = int(evidence.size)
    result |= {"results": rows, "verdict": verdict.row()}
    shown = comparison_table(rows, inputs.prediction)
    heard = [f"The methods had {compared.evidence}."] if compared.evidence else []
    place = [] if output is None else [f"The report is at {output.resolve()}"]
    run.result(result, shown, *heard, *verdict.lines, *place, written=output is not None)
    run.verdict(verdict.row(), fail_on)


def _compare(
    steps: Steps, graph: Graph | None, outputs: Any, truth: Any, calibration: IntArray, nodes: IntArray, **settings: Any
) -> Any:
    """Compare methods that are calibrated on some nodes and evaluated on others."""
    from napsets.evaluation.comparison import CURVE_ALPHAS, compare

    steps.stage("comparing methods")
    masks = (np.isin(np.arange(truth.size), part) for part in (calibration, nodes))
    return compare(graph, outputs, truth, *masks, **settings, alphas=CURVE_ALPHAS, progress=steps.advance)


def _write(steps: Steps, output: Path, compared: Any, **page: Any) -> None:
    from napsets.report.html import write_text
    from napsets.report.page import page_data, render

    steps.stage("explaining some nodes")
    data = page_data(compared, progress=steps.advance, **page)
    steps.stage("writing the report")
    write_text(output, render(data))


def commands_of(context: typer.Context) -> Any:
    """Return the commands `predict` and `inspect` for the same files, with the options of this run."""
    from napsets.report.first_screen import Commands

    def command(name: str, method: str, *more: str) -> str:
        known = {option.name for option in typer.main.get_command(make_app([name])).commands[name].params}  # type: ignore[attr-defined]
        words = ["napsets", name, *more]
        for option in context.command.params:
            value = context.params.get(option.name or "")
            given = getattr(context.get_parameter_source(option.name or ""), "name", "") in (
                "COMMANDLINE",
                "DEFAULT_MAP",
            )
            if not given or option.name not in known - _OF_REPORT:
                continue
            if option.name == "features" and not make_method(method).uses_features:
                continue
            flag = max(option.opts if value is not False else option.secondary_opts, key=len)
            words += [flag] if isinstance(value, bool) else [flag, str(value)]
        return shlex.join([*words, "--method", method])

    return Commands(
        lambda method: f"{command('predict', method)} -o predictions.parquet",
        lambda method, node: command("inspect", method, f"--node={node}"),
    )


#: Options of a report that mean something else for other commands, or nothing.
_OF_REPORT = {"output", "config", "json", "quiet", "debug", "fail_on", "quick"}


def _parts(inputs: Inputs, judged: Any, seed: int) -> tuple[Any, IntArray, IntArray]:
    """Return the truth of all nodes, the nodes that calibrate and those that judge: no label does both."""
    from napsets.evaluation.judgement import halves

    truth, labelled = inputs.truth, inputs.calibration
    if judged is None:
        return truth, *halves(labelled, seed)
    known = inputs.prediction.known(judged)
    both, rest = labelled[known[labelled]], labelled[~known[labelled]]
    if both.size:
        _check_both(both.size, rest.size, inputs.notes)
    return np.where(known, judged, truth), rest, np.flatnonzero(known)


def _teaching(evidence: IntArray, judged: IntArray, notes: list[str]) -> IntArray:
    """Return the nodes of --evidence that do not judge."""
    taught = np.setdiff1d(evidence, judged, assume_unique=True)
    if not taught.size:
        raise typer.BadParameter(
            "must have labels of nodes that are not in --truth; it has none", param_hint="--evidence"
        )
    if taught.size < evidence.size:
        both = f"{evidence.size - taught.size:,} of the {evidence.size:,} nodes of --evidence"
        notes.append(f"{both} are also in --truth: they are used only to evaluate")
    return taught


def _check_both(count: int, rest: int, notes: list[str]) -> None:
    """Note that nodes with a label in both files only evaluate; raise where none is left to calibrate."""
    if rest == 0:
        raise typer.BadParameter(
            f"must leave labels to calibrate on: all {count:,} nodes of --labels are in it. Leave some out of it, or "
            f"leave out --truth: then half of --labels evaluates",
            param_hint="--truth",
        )
    notes.append(
        f"{count:,} of the {count + rest:,} nodes of --labels are also in --truth: they are used only to evaluate"
    )


# -- demo --------------------------------------------------------------------------------------------------------------

DATASET = "amazon-computers"


def demo(
    run: Output,
    context: typer.Context,
    output: ReportPath = Path("napsets-demo.html"),
    methods: ComparisonOptions = ComparisonOptions(),
    seed: Seed = 0,
) -> None:
    """Train, calibrate, compare and report on Amazon Computers, which comes with napsets.

    Trains a GraphSAGE, takes the graph induced on its test nodes, calibrates on a random half of them,
    compares methods on the other half, and writes the report. Takes less than two minutes.
    """
    from napsets import datasets
    from napsets.evaluation.judgement import halves
    from napsets.report.first_screen import Commands

    began = perf_counter()
    writable_file(output, REPORT_SUFFIXES)
    run.notes(ignored(context, *methods.names()))
    train = import_module("napsets.gnn").train
    with run.steps() as steps:
        steps.stage("loading the graph")
        data = datasets.load(DATASET, seed=seed)
        steps.stage("training GraphSAGE")
        tested = train(data, seed=seed, progress=steps.advance).take(data.test)
        calibration, nodes = halves(np.arange(len(tested)), seed)
        compared = _compare(
            steps, data.graph.subgraph(data.test), tested.probabilities, tested.labels, calibration, nodes,
            **methods.settings(), seed=seed, ids=tested.nodes,
        )  # fmt: skip
        _write(
            steps,
            output,
            compared,
            class_names=tested.class_names,
            dataset=DATASET,
            model=tested.model,
            commands=Commands(lambda method: "", lambda method, node: ""),
        )
    rows, verdict = compared.rows(), compared.verdict(tested.class_names, surface="terminal")
    judged = (
        f"Evaluated on the {len(nodes):,} test nodes that were not used to calibrate, including those with few nodes "
        f"around them, for which NAPS gives large sets; `python -m studies` evaluates, as the paper does, only nodes "
        f"with 50 or more test nodes within two hops"
    )
    result = {
        "dataset": DATASET,
        "model": tested.model,
        "seed": seed,
        "protocol": "strict",
        "accuracy": tested.accuracy,
        "results": rows,
        "verdict": verdict.row(),
        "judged_on": judged,
        "report": str(output),
        "seconds": round(perf_counter() - began, 1),
    }
    run.result(
        result,
        f"{tested.model} on {DATASET}: accuracy {tested.accuracy:.3f} on {len(tested):,} test nodes",
        comparison_table(rows),
        f"{judged}.",
        "",
        *verdict.lines,
        f"The report is at {output.resolve()} ({result['seconds']} seconds in all)",
        written=True,
    )


# -- tables ------------------------------------------------------------------------------------------------------------


def _coverage(row: dict[str, Any]) -> str:
    return f"{100 * row['coverage']:.1f}±{percent(1.96 * row['coverage_se'])}"


def _whole(share: float) -> str:
    """Write a share in whole percent, which leaves room for the other columns; what is not 0 does not look like it."""
    return "<1 %" if 0 < share < 0.005 else percent(share, 0)


def _shared_width(row: dict[str, Any]) -> str:
    error = row["shared_width_se"]
    return wide(row["shared_width"]) + ("" if math.isnan(error) else f"±{wide(1.96 * error)}")


#: The columns of the comparison of methods; --json has all metrics. A gap is the average distance of coverage from the
#: target over groups.
_COLUMNS: dict[type[Prediction], dict[str, Callable[[dict[str, Any]], str]]] = {
    PredictionSets: {
        "method": itemgetter("title"),
        "coverage": _coverage,
        "mean size": lambda row: f"{row['mean_size']:.2f}±{1.96 * row['mean_size_se']:.2f}",
        "one label": lambda row: _whole(row["singleton_rate"]),
        "gap: class": lambda row: number(row["gap_class"], 3),
        "degree": lambda row: number(row["gap_degree"], 3),
    },
    PredictionIntervals: {
        "method": itemgetter("title"),
        "coverage": _coverage,
        "width where finite": _shared_width,
        "median": lambda row: wide(row["median_width"]),
        "whole line": lambda row: percent(row["infinite_rate"]),
        "gap: degree": lambda row: number(row["gap_degree"], 3),
        "prediction": lambda row: number(row["gap_prediction"], 3),
    },
}


def comparison_table(rows: list[dict[str, Any]], prediction: type[Prediction] = PredictionSets) -> Any:
    """Make a table from `Comparison.rows()`."""
    first, columns = rows[0], _COLUMNS[prediction]
    title = f"{first['nodes']:,} nodes at alpha = {first['alpha']:g}, {first['hops']} hops; ± 1.96 standard errors"
    if first.get("shared", 1.0) < 1.0:
        whose = compared_methods({row["title"]: row["infinite_rate"] for row in rows})
        title += f"; the intervals of {whose} are finite on {percent(first['shared'])} of the nodes"
    return table(title, list(columns), [[write(row) for write in columns.values()] for row in rows])
