"""``napsets calibrate``: calibrate a method once, and keep it in a file for later predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from napsets.checks.arguments import BoolArray, IntArray
from napsets.cli._methods import MethodOptions, ignored
from napsets.cli._options import InputFiles, ReadingOptions
from napsets.cli._output import Output, number, table, writable_file
from napsets.methods.saving import save

EXAMPLES = [
    "napsets calibrate --edges edges.parquet --probabilities p.parquet --labels y.parquet -o method.npz",
    "napsets calibrate -e edges.csv -p p.csv -l y.csv --method naps --pool 20 -o method.npz",
]


def calibrate(
    run: Output,
    context: typer.Context,
    files: InputFiles,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of the calibrated method: .npz.")],
    method: MethodOptions = MethodOptions(),
    read: ReadingOptions = ReadingOptions(),
) -> None:
    """Calibrate a method on files and save it: `napsets predict --method-file` then needs no labels.

    The file holds NumPy arrays and JSON, no code. For labels that keep arriving, use a store instead
    (`napsets serve`, `napsets update`).
    """
    writable_file(output, (".npz",))
    options = method.chosen(context)
    run.notes(ignored(context, options.name))
    options.check(read)
    with run.steps() as steps:
        inputs = files.read(read, steps.stage, predicting=False, features=options.features)
        run.notes(inputs.notes)
        chosen = options.make_for(context, inputs, read, steps.stage)
        steps.stage("calibrating")
        ids = inputs.ids.values.to_numpy(zero_copy_only=False)
        names = inputs.class_names
        calibrated = chosen.calibrate(
            inputs.graph,
            inputs.outputs,
            # By name, because classes may be called by other numbers than theirs.
            inputs.truth if names is None else np.array([*names, None], dtype=object)[inputs.truth],
            calibration=_mask(inputs.calibration, len(inputs.ids)),
            evidence=None if inputs.evidence is None else _mask(inputs.evidence, len(inputs.ids)),
            ids=ids.astype(str) if inputs.ids.is_string else ids,
            class_names=names,
            features=inputs.features if chosen.uses_features else None,
        )
        steps.stage(f"writing {output}")
        save(calibrated, output, integer_labels=inputs.integer_labels)
    nodes, calibration = len(inputs.ids), int(inputs.calibration.size)
    result = {"output": str(output), "nodes": nodes, "calibration": calibration, "method": options.name}
    rows = [("nodes", number(nodes)), ("calibration nodes", number(calibration))]
    if inputs.evidence is not None:
        result["evidence_labels"] = int(inputs.evidence.size)
        rows.append(("evidence nodes", number(inputs.evidence.size)))
    run.result(result, table(f"{output}: {options.name}", ["", ""], rows), written=True)


def _mask(nodes: IntArray, size: int) -> BoolArray:
    mask = np.zeros(size, dtype=bool)
    mask[nodes] = True
    return mask
