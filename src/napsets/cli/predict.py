"""``napsets predict``: sets of labels, or intervals of numbers, from files to a file.

There are two ways to the file: calibrate on files, or predict from a store or a method that was calibrated before. Each
is a function of a `Request` that returns what is said of the file.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import numpy as np
import typer

from napsets.cli._methods import MethodOptions, ignored, is_given, recorded
from napsets.cli._options import Evidence, FailOn, InputFiles, Nodes, ReadingOptions, refuse_given
from napsets.cli._output import Output, Steps, number, percent, table, wrong_use
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.files import Inputs, check_writable, describe_settings, read_nodes, write_prediction
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import SCORES

EXAMPLES = [
    "napsets predict --edges edges.parquet --probabilities p.parquet --labels y.parquet -o sets.parquet",
    "napsets predict -e edges.csv.gz -p p.csv -l y.csv -n ask.csv --alpha 0.05 --decay hyperbolic -o sets.csv",
    "napsets predict -e edges.parquet -p p.parquet -l y.parquet --method naps-h --hops 3 -o sets.parquet",
    "napsets predict -e edges.parquet -p p.parquet -l y.parquet --by class --p-values plain -o sets.parquet",
    "napsets predict -e edges.parquet -p p.parquet -l random.csv --evidence investigated.csv -o sets.parquet",
    "napsets predict --task regression -e edges.csv -p quantiles.csv -l targets.csv --method naps-exact -o out.parquet",
    "napsets predict --config napsets.toml --hops 3 -o sets.parquet --json",
    "napsets predict -e edges.csv -p p.csv -l y.csv --separator ';' --rename id=node --rename class=label -o sets.csv",
    "napsets predict -e edges.parquet -p p.parquet --logits -l - -o - < y.csv > sets.csv",
]


#: What is passed on to `predict` of them.
_WANTED: dict[str, Any] = {"none": False, "plain": True, "smoothed": "smoothed"}


@dataclass(frozen=True)
class Source:
    """What sets are made from: files to calibrate on, or something that was calibrated before."""

    edges: Annotated[Path | None, typer.Option("--edges", "-e")] = None
    probabilities: Annotated[Path | None, typer.Option("--probabilities", "-p")] = None
    labels: Annotated[Path | None, typer.Option("--labels", "-l")] = None
    evidence: Evidence = None
    store: Annotated[
        Path | None, typer.Option(help="Instead of files: the folder of a living graph, as it is now.")
    ] = None
    method_file: Annotated[Path | None, typer.Option(help="Instead of files: what `napsets calibrate` wrote.")] = None

    def is_calibrated(self, context: typer.Context) -> bool:
        """Return whether nothing is to be calibrated; refuse two sources at once."""
        paths = {f"--{key.replace('_', '-')}": getattr(self, key) for key in ("store", "method_file")}
        flags = [flag for flag, path in paths.items() if path is not None]
        if flags and (len(flags) > 1 or any((self.edges, self.probabilities, self.labels, self.evidence))):
            message = "replaces --edges, --probabilities and --labels, and all other options of this kind"
            raise typer.BadParameter(message, param_hint=flags[0])
        if flags and is_given(context, "method"):
            raise typer.BadParameter("the method was calibrated already; leave it out", param_hint="--method")
        return bool(flags)

    def files(self, *, graph_optional: bool = False) -> InputFiles:
        """Return the files, all of which must be named, but that of a graph where it is optional."""
        needed = ("probabilities", "labels") if graph_optional else ("edges", "probabilities", "labels")
        for key in needed:
            if getattr(self, key) is None:
                instead = "--features, --method split, " * (key == "edges") + "--store or --method-file"
                raise typer.BadParameter(f"Missing option; pass it, or {instead}", param_hint=f"--{key}")
        return InputFiles(self.edges, self.probabilities, self.labels, self.evidence)  # type: ignore[arg-type]


_NO_CANDIDATES = "must be left out: intervals have no candidates"


@dataclass(frozen=True)
class Request:
    """What is to be predicted, from what and how."""

    run: Output
    context: typer.Context
    source: Source
    target: Path
    nodes: Path | None
    training: Path | None
    method: MethodOptions
    read: ReadingOptions
    p_values: str

    @property
    def valued(self) -> dict[str, str]:
        """The setting of p-values, where they are written."""
        return {} if self.p_values == "none" else {"p_values": self.p_values}

    def write(
        self, steps: Steps, inputs: Inputs, calibrated: Any, settings: dict[str, Any], *, calibration: int,
        level_labels: int | None = None,
    ) -> Any:  # fmt: skip
        """Write predictions together with the settings that they were made with; return them in numbers."""
        steps.stage(f"making {inputs.prediction.noun}s")
        metadata = describe_settings(
            {key: value for key, value in settings.items() if value is not None}, inputs.class_names,
            nodes=len(inputs.ids), calibration=calibration, level_labels=level_labels, method=calibrated.method,
        )  # fmt: skip
        return write_prediction(
            inputs, self.target, calibrated,
            alpha=settings["alpha"], metadata=metadata, reading=self.read.reading, p_values=_WANTED[self.p_values],
            progress=steps.advance,
        )  # fmt: skip


def predict(
    run: Output,
    context: typer.Context,
    source: Source,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The sets file: .parquet, .csv or .tsv (.gz too), written completely or not at all; "
            "- is standard output.",
        ),
    ],
    nodes: Nodes = None,
    training: Path | None = None,
    method: MethodOptions = MethodOptions(),
    read: ReadingOptions = ReadingOptions(),
    p_values: Annotated[
        Literal["none", "plain", "smoothed"],
        typer.Option(
            help="Also write the p-value of every class, in a column p_values: plain (a label is in the set if its "
            "p-value is over alpha), or smoothed (ties broken at random, uniform)."
        ),
    ] = "none",
    fail_on: FailOn = "never",
) -> None:
    """Give every node without a label (or those of --nodes) a set of labels.

    Each set contains the true label with probability 1 − alpha, if the labelled nodes are a random sample and the model
    was not trained on their labels. The method is chosen by evidence on the labels, and the choice is explained;
    --method names a method instead, and `napsets methods` lists them.

    If the model was trained on nodes of the graph, list them in a file and pass it as --training: they are left out.

    Ids may be any integers or strings and are returned unchanged; only an empty cell is missing. If all labels are
    names of classes, they are read as names; if none is, as numbers from 0.

    Sets are written as they are made. Memory, for Parquet files with integer ids: at most 500 MB + nodes × (2 × bytes
    per probability × classes + 150 bytes) + edges × 30 bytes, however many nodes are predicted; auto and informed need
    nodes × classes × 64 bytes more, --weights-are edges × 40 bytes, --direction in or both edges × 30 bytes.
    """
    began = perf_counter()
    request = Request(run, context, source, output, nodes, training, method, read, p_values)
    saved = source.is_calibrated(context)
    if saved:
        result = _predict_saved(request)
    else:
        request = replace(request, method=method.chosen(context))
        _check(request)
        result = _predict_here(request)
    settings, prediction = result.pop("settings"), result.pop("prediction", read.prediction)
    result |= {"output": str(context.params["output"])}
    if not saved:
        result["seconds"] = round(perf_counter() - began, 3)
    result |= settings
    # Only what is calibrated here has its labels here, and a verdict on them.
    run.result(result, _summary_table(prediction, result), *result.get("verdict", {}).get("lines", ()), written=True)
    if saved:
        return
    if "choice" in result:
        run.note(f"{request.method.name} chose {result['choice']}")
    run.verdict(result.get("verdict"), fail_on)


def _check(request: Request) -> None:
    """Note options without an effect, and raise for those that the task does not have."""
    read, method = request.read, request.method
    request.source.files(graph_optional=method.graph_optional)
    request.run.notes([method.switched(request.context), *ignored(request.context, method.name)])
    read.refuse({"--logits": read.logits, "--features": method.features is not None})
    if read.prediction is PredictionIntervals:
        refuse_given(_NO_CANDIDATES, {"--p-values": bool(request.valued)})


def _predict_here(request: Request) -> dict[str, Any]:
    """Calibrate and predict in this process."""
    from napsets.evaluation.verdict import foresee

    read, options = request.read, request.method
    files = request.source.files(graph_optional=options.graph_optional)
    with wrong_use("--output"):
        check_writable(request.target)
    options.check(read)
    with request.run.steps() as steps:
        inputs = files.read(
            read, steps.stage, nodes=request.nodes, training=request.training, features=options.features
        )
        request.run.notes(inputs.notes)
        method = options.make_for(request.context, inputs, read, steps.stage)
        steps.stage("calibrating")
        calibrated, calibration = inputs.calibrate(method), int(inputs.calibration.size)
        settings = _settings(options, read, method, inputs.score) | request.valued
        if inputs.evidence is not None:
            settings["evidence_labels"] = int(inputs.evidence.size)
        level = calibrated.level_size
        with warnings.catch_warnings():  # of alpha, of few labels and of groups without their own, the verdict warns
            known = r"alpha = \S+ is the error rate|[\d,]+ labels are|.*(have fewer than|are in no group)"
            warnings.filterwarnings("ignore", known, NapsetsWarning)
            summary = request.write(steps, inputs, calibrated, settings, calibration=calibration, level_labels=level)
        verdict = foresee(
            calibrated,
            options.name,
            alpha=options.alpha,
            nodes=inputs.nodes,
            size=summary.size,
            infinite=summary.infinite,
            outputs=inputs.outputs,
            class_names=inputs.class_names,
            surface="terminal",
        )
    choice = {} if calibrated.choice is None else {"choice": str(calibrated.choice)}
    row: dict[str, Any] = summary.row()
    return row | {"calibration": calibration, "verdict": verdict.row()} | choice | {"settings": settings}


def _settings(options: MethodOptions, read: ReadingOptions, method: Any, score: Any = None) -> dict[str, Any]:
    """Return the settings that a file records: what was left to the method as it turned out, and what it knows.

    Where the columns of a file decide the score, that is recorded, and the task: it is not the usual one.
    """
    settings = {key: value for key, value in options.settings(read).items() if value is not None}
    settings |= recorded(method) | read.recorded()
    return settings if score is None else settings | {"score": SCORES.name_of(type(score)), "task": read.task}


def _predict_saved(request: Request) -> dict[str, Any]:
    """Predict from a store or a saved method: all nodes that have no label, where no file names others."""
    from napsets.cli.stores import SavedMethod, StorePredictor, one_kind

    source, reading = request.source, request.read.reading
    if source.store is not None and request.p_values == "smoothed":
        raise typer.BadParameter("a living graph has plain p-values only", param_hint="--p-values")
    with wrong_use("--output"):
        check_writable(request.target)
    with request.run.steps() as steps:
        path: Any = source.store or source.method_file
        steps.stage(f"opening {path}")
        saved: Any = SavedMethod(path) if source.store is None else StorePredictor(path)
        if saved.prediction is PredictionIntervals:
            refuse_given(_NO_CANDIDATES, {"--p-values": bool(request.valued)})
        own = source.store is not None and not is_given(request.context, "alpha")
        ids = one_kind(saved.ids)
        nodes = saved.unlabelled if request.nodes is None else read_nodes(request.nodes, ids, reading)
        if not nodes.size:
            raise InvalidInputError("there is no node to predict: every node has a label. Pass --nodes.")
        classes = None if saved.class_names is None else list(saved.class_names)
        truth = np.full(len(ids), -1)
        inputs = Inputs(
            ids, None, None, truth, nodes, classes,  # type: ignore[arg-type]
            prediction=saved.prediction, integer_labels=saved.integer_labels,
        )  # fmt: skip
        settings = {
            "alpha": saved.alpha if own else request.method.alpha,
            "store": None if source.store is None else str(source.store),
            **request.valued,
        }
        summary = request.write(steps, inputs, saved, settings, calibration=saved.labels)
    row: dict[str, Any] = summary.row()
    return row | {"calibration": saved.labels, "settings": settings, "prediction": saved.prediction}


#: What the summary shows of each kind of prediction, as far as it is known.
_ROWS: dict[type[Prediction], dict[str, tuple[str, Any]]] = {
    PredictionSets: {
        "nodes": ("nodes predicted", number),
        "calibration": ("calibration nodes", number),
        "evidence_labels": ("evidence nodes", number),
        "method": ("method", str),
        "classes": ("classes", number),
        "mean_size": ("average set size", number),
        "empty_rate": ("empty sets", percent),
        "singleton_rate": ("sets of one label", percent),
        "full_rate": ("sets of all labels", percent),
        "infinite": ("too little support (threshold ∞)", number),
        "unreached": ("no calibration node in reach", number),
        "seconds": ("seconds", partial(number, digits=1)),
    },
    PredictionIntervals: {
        "nodes": ("nodes predicted", number),
        "calibration": ("calibration nodes", number),
        "evidence_labels": ("evidence nodes", number),
        "method": ("method", str),
        "mean_width": ("average interval width", number),
        "infinite": ("too little support (the whole line)", number),
    },
}


def _summary_table(prediction: type[Prediction], result: dict[str, Any]) -> Any:
    rows = [(text, shown(result[key])) for key, (text, shown) in _ROWS[prediction].items() if key in result]
    return table(f"{result['output']}: {prediction.noun}s at alpha = {result['alpha']:g}", ["", ""], rows)
