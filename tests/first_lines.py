"""The graph on which people try their first lines, with nodes and classes that have names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import napsets as ns
from worlds import make_ring

WORLD = make_ring(0)
GRAPH: ns.Graph = WORLD["graph"]
P: npt.NDArray[np.float64] = WORLD["probabilities"]
Y: npt.NDArray[np.int64] = WORLD["labels"]
SIZE = Y.size
KNOWN = np.zeros(SIZE, dtype=bool)
KNOWN[WORLD["calibration"]] = True
REST = np.flatnonzero(~KNOWN)
#: Numbers that nodes have elsewhere: a permutation, so that each could also be a position.
IDS = np.random.default_rng(1).permutation(SIZE)
NAMES = np.array([f"user-{i}" for i in IDS])
CLASSES = ["cat", "dog", "owl", "bat"]

#: For tests of what works and says nothing; the labels of this small graph are few.
A_WARNING_IS_AN_ERROR = [
    pytest.mark.filterwarnings("error::napsets.NapsetsWarning"),
    pytest.mark.filterwarnings(r"ignore:\d+ labels are few:napsets.NapsetsWarning"),
]


def frame(index: Any = None, columns: Any = None) -> pd.DataFrame:
    return pd.DataFrame(P, index=index, columns=columns)
