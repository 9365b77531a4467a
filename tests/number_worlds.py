"""A small world of node regression: a graph, what a model says of numbers, and the numbers, as arrays and as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import napsets as ns
from worlds import write

SIZE = 200
_RNG = np.random.default_rng(0)
ENDS = _RNG.integers(SIZE, size=(2, 700))
X = _RNG.normal(size=SIZE)
Y = 2 * X + _RNG.normal(size=SIZE)
IDS = np.array([f"n{i}" for i in range(SIZE)])
KNOWN, REST = np.arange(150), np.arange(150, 200)
#: What a model says, by the name of the score that looks at it.
COLUMNS = {
    "cqr": {"lower": 2 * X - 1, "upper": 2 * X + 1},
    "absolute": {"prediction": 2 * X},
    "normalised": {"prediction": 2 * X, "spread": 0.5 + np.abs(X)},
}


def number_files(folder: Path, score: str = "cqr", suffix: str = ".parquet", **changes: Any) -> list[Any]:
    """The three files as options of a command."""
    tables = {
        "edges": {"source": IDS[ENDS[0]], "target": IDS[ENDS[1]]},
        "probabilities": {"node": IDS} | COLUMNS[score],
        "labels": {"node": IDS[KNOWN], "target": Y[KNOWN]},
    }
    tables |= changes
    return [
        text for name, columns in tables.items() for text in (f"--{name}", write(folder / f"{name}{suffix}", columns))
    ]


def number_predictor(score: str, method: str, **settings: Any) -> Any:
    """What the command calibrates on these files."""
    predictor = ns.make_method(method, score=score, **settings)
    outputs = np.column_stack(list(COLUMNS[score].values()))
    known = np.where(np.arange(SIZE) < KNOWN.size, Y, np.nan)
    return predictor.calibrate_rows(ns.Graph.from_edge_index(ENDS, SIZE), outputs, known, KNOWN, IDS)
