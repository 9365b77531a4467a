"""Sets of many nodes, written as they are made.

Memory. Beside the interpreter and its libraries, what is held is the probabilities, the graph and a few arrays of one
entry a node; the sets are made and written some nodes at a time. `memory_bound` states it as a formula, and
a test holds a run to it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.errors import NapsetsWarning
from napsets.files.inputs import Inputs
from napsets.files.sets_file import ROW_GROUP, writing_sets

__all__ = ["CHUNK", "SetsSummary", "memory_bound", "write_predictions"]

#: Nodes predicted at a time: a few row groups, so that what a search needs to start is paid for rarely.
CHUNK = 4 * ROW_GROUP


def memory_bound(nodes: int, classes: int, edges: int, *, width: int = 4) -> int:
    """Return the most bytes that a prediction from Parquet files with integer ids holds.

    400 MB + nodes · (2·width·classes + 150) + edges · 30, however many nodes are predicted.

    Parameters
    ----------
    nodes, classes : int
        Shape of the probabilities.
    edges : int
        Rows of the file of edges.
    width : int
        Bytes of a probability: 4 where the file has float32, otherwise 8.
    """
    return 400_000_000 + nodes * (2 * width * classes + 150) + edges * 30


@dataclass(frozen=True, eq=False)
class SetsSummary:
    """What was written.

    Attributes
    ----------
    size_counts : numpy.ndarray
        How many sets have 0, 1, …, classes labels.
    infinite : int
        Nodes with too little support: their threshold is +∞, here as in `PredictionSets` and on Spark.
    unreached : int
        Those among them that have no calibration node in reach at all.
    """

    size_counts: IntArray
    infinite: int
    unreached: int

    @property
    def nodes(self) -> int:
        """Number of sets."""
        return int(self.size_counts.sum())

    @property
    def mean_size(self) -> float:
        """Average number of labels in a set."""
        return float(self.size_counts @ np.arange(self.size_counts.size)) / self.nodes


def write_predictions(
    inputs: Inputs,
    path: str | os.PathLike[str],
    predictor: Any,
    *,
    alpha: float,
    metadata: Mapping[str, Any],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SetsSummary:
    """Calibrate, then predict and write some nodes at a time.

    Parameters
    ----------
    inputs : Inputs
        What was read.
    path : path
        The sets file.
    predictor : NAPS or Method
        Its settings.
    alpha : float
        Error rate.
    metadata : mapping
        What the file's metadata holds.
    progress : callable
        Called as ``progress(done, total)`` in nodes.
    """
    calibrated = predictor.calibrate(
        inputs.graph, inputs.probabilities, inputs.labels, calibration=inputs.calibration, ids=inputs.ids.keys
    )
    counts = np.zeros(len(inputs.class_names) + 1, dtype=np.int64)
    infinite = unreached = 0
    nodes = inputs.nodes
    with writing_sets(path, inputs.ids.output_type, metadata) as writer, warnings.catch_warnings():
        # `read_inputs` has noted labelled nodes once; other warnings are to be seen.
        warnings.filterwarnings("ignore", "`nodes` holds", NapsetsWarning)
        for start in range(0, nodes.size, CHUNK):
            part = nodes[start : start + CHUNK]
            report = partial(_report, progress, start, nodes.size)
            sets = replace(calibrated.predict(part, alpha, progress=report), class_names=inputs.class_names)
            writer.write(sets.to_arrow().set_column(0, "node", inputs.ids.take(part)))
            counts += np.bincount(sets.sizes, minlength=counts.size)
            infinite += sets.infinite
            unreached += int((sets.support == 0).sum())
    return SetsSummary(counts, infinite, unreached)


def _report(progress: Callable[[int, int], None], start: int, total: int, done: int, _: int) -> None:
    progress(start + done, total)
