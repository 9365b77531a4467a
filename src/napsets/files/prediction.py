"""Sets of many nodes, written as they are made.

Memory. Beside the interpreter and its libraries, what is held is the probabilities, the graph and a few arrays of one
entry a node; the sets are made and written some nodes at a time. `memory_bound` states it as a formula, and
a test holds a run to it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, IntArray
from napsets.errors import NapsetsWarning
from napsets.files._arrow import arrow
from napsets.files.inputs import Inputs
from napsets.files.sets_file import PREDICTION, ROW_GROUP, writing_sets
from napsets.sets import PredictionSets, SetsSummary

__all__ = ["CHUNK", "Predictor", "first_choices", "memory_bound", "write_predictions"]

#: Nodes predicted at a time: a few row groups, so that what a search needs to start is paid for rarely.
CHUNK = 4 * ROW_GROUP

#: Rows of probabilities that are looked through at a time.
_ROWS = 1 << 14


def memory_bound(nodes: int, classes: int, edges: int, *, width: int = 4, evidence: bool = False) -> int:
    """Return the most bytes that a prediction from Parquet files with integer ids holds.

    400 MB + nodes · (2·width·classes + 150) + edges · 30, however many nodes are predicted; with evidence,
    nodes · classes · 64 more.

    Parameters
    ----------
    nodes, classes : int
        Shape of the probabilities.
    edges : int
        Rows of the file of edges.
    width : int
        Bytes of a probability: 4 where the file has float32, otherwise 8.
    evidence : bool
        Whether the method weighs the labels around each node, as `auto` and `informed` do.
    """
    return 400_000_000 + nodes * (2 * width * classes + 150 + 64 * classes * evidence) + edges * 30


class Predictor(Protocol):
    """What gives sets: a calibrated method. Where it has a `score`, that one's `probabilities` predict labels."""

    def predict(
        self, nodes: ArrayLike, alpha: float, *, progress: Callable[[int, int], None] | None = None
    ) -> PredictionSets:
        """Return the sets of some nodes."""
        ...


def write_predictions(
    inputs: Inputs,
    path: str | os.PathLike[str],
    calibrated: Predictor,
    *,
    alpha: float,
    metadata: Mapping[str, Any],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SetsSummary:
    """Predict and write some nodes at a time.

    Parameters
    ----------
    inputs : Inputs
        What was read.
    path : path
        The sets file.
    calibrated : Predictor
        What makes the sets, calibrated on these inputs (see `Inputs.calibrate`).
    alpha : float
        Error rate.
    metadata : mapping
        What the file's metadata holds.
    progress : callable
        Called as ``progress(done, total)`` in nodes.

    Returns
    -------
    SetsSummary
        What was written, in numbers.
    """
    summary = SetsSummary(np.zeros(len(inputs.class_names) + 1, dtype=np.int64), 0, 0)
    nodes = inputs.nodes
    said = getattr(getattr(calibrated, "score", None), "probabilities", None)
    names = inputs.class_names
    with (
        writing_sets(
            path, inputs.ids.output_type, metadata, predicting=said is not None, integer_labels=inputs.integer_labels
        ) as writer,
        warnings.catch_warnings(),
    ):
        # `read_inputs` has noted labelled nodes once; other warnings are to be seen.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        for start in range(0, nodes.size, CHUNK):
            part = nodes[start : start + CHUNK]
            report = partial(_report, progress, start, nodes.size)
            sets = replace(calibrated.predict(part, alpha, progress=report), class_names=names)
            table = sets.to_arrow().set_column(0, "node", inputs.ids.take(part))
            if said is not None:
                for name, column in zip(PREDICTION, first_choices(said, part, names), strict=True):
                    table = table.append_column(name, column)
            writer.write(table)
            summary += sets.summary()
    return summary


def first_choices(probabilities: npt.NDArray[Any], nodes: IntArray, names: list[str]) -> tuple[Any, Any]:
    """Return the most probable label of each node by name, the first of equals, and its probability."""
    pa = arrow()
    best, top = np.empty(nodes.size, dtype=np.int64), np.empty(nodes.size)
    for start in range(0, nodes.size, _ROWS):
        rows = slice(start, start + _ROWS)
        some = probabilities[nodes[rows]]
        best[rows] = some.argmax(axis=1)
        top[rows] = some.max(axis=1)
    return pa.array(names, pa.string()).take(pa.array(best)), pa.array(top)


def _report(progress: Callable[[int, int], None], start: int, total: int, done: int, _: int) -> None:
    progress(start + done, total)
