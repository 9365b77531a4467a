"""Arguments for calls of the public surface, by the names of parameters: right ones, bent ones and wrong ones."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

import napsets as ns
from hostile_worlds import FOLDER, World

WRONG: list[Callable[[World], Any]] = [
    lambda w: None,
    lambda w: True,
    lambda w: "text",
    lambda w: "",
    lambda w: b"bytes",
    lambda w: 1.5,
    lambda w: -1,
    lambda w: 0,
    lambda w: 1,
    lambda w: float("nan"),
    lambda w: float("inf"),
    lambda w: 10**20,
    lambda w: 2**63,
    lambda w: 2**63 - 1,
    lambda w: -(10**400),
    lambda w: 10**5000,
    lambda w: 2**45,
    lambda w: "0.1",
    lambda w: 1 + 2j,
    lambda w: object(),
    lambda w: [],
    lambda w: {},
    lambda w: set(),
    lambda w: [[]],
    lambda w: [None],
    lambda w: ["a"],
    lambda w: [1, "a"],
    lambda w: [[0], [0, 1]],
    lambda w: np.array("x"),
    lambda w: np.array(None),
    lambda w: np.array(3),
    lambda w: np.array(["2020"], "M8[D]"),
    lambda w: np.zeros(3, "i4, f8"),
    lambda w: np.array([1j]),
    lambda w: Fraction(1, 3),
    lambda w: range(4),
    lambda w: iter([0, 1]),
    lambda w: slice(None),
    lambda w: sp.eye_array(w.size, format="csr"),
    lambda w: ns.Graph,
    lambda w: w.graph,
    lambda w: lambda *_: "x",
    lambda w: lambda *_: 10**400,
    lambda w: nx.path_graph(4),
    lambda w: np.zeros((0, 3)),
    lambda w: np.empty(0),
    lambda w: np.zeros((w.size, 0)),
    lambda w: np.full(w.size, np.nan),
    lambda w: np.zeros(w.size),
    lambda w: np.full(w.size, 2**62),
    lambda w: np.full(w.size, -1),
    lambda w: np.full(w.size, w.size),
    lambda w: np.array([w.size]),
    lambda w: [-1],
    lambda w: [2**70],
    lambda w: [10**400],
    lambda w: [1e308] * w.size,
    lambda w: np.array([2**63], np.uint64),
    lambda w: np.full((w.size, 3), np.nan),
    lambda w: np.full((w.size, 3), 1 / 3, dtype=object),
    lambda w: np.ones((3, 2)),
    lambda w: np.ma.array([0, 1], mask=[0, 1]),
    lambda w: np.arange(w.size, dtype=np.int8) if w.size < 100 else w.nodes,
    lambda w: w.method,
    lambda w: w.sets,
    lambda w: ns.Hops(),
    lambda w: ns.APS,
    lambda w: {"source": [0]},
    lambda w: "\x00",
    lambda w: np.ones(w.size, bool),
    lambda w: np.ones(w.size + 1, bool),
    lambda w: np.float32(0.3),
    lambda w: 1e308,
    lambda w: ns.Method,
    lambda w: w.reference,
    lambda w: w.p,
    lambda w: w.y,
    lambda w: w.nodes,
    lambda w: w.scores,
]


def _mapped(array: np.ndarray) -> np.ndarray:
    if not array.size:
        return array
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:  # its own file: one that is overwritten is a bus error
        array.tofile(file.name)
        return np.memmap(file.name, dtype=array.dtype, mode="r", shape=array.shape)


def _with(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.copy()
    if changed.size:
        changed.flat[changed.size // 2] = value
    return changed


#: Arguments that are called.
CALLED = {"progress", "decay"}


#: What is done to a right array: most of it makes it a wrong one, some must be taken as it is.
BENT: list[Callable[[np.ndarray], Any]] = [
    lambda a: a[:-1],
    lambda a: np.concatenate([a, a[:1]]),
    lambda a: a[:0],
    lambda a: a.T,
    lambda a: a[None],
    lambda a: a[..., None],
    lambda a: a[::-1],
    lambda a: a[::2],
    lambda a: np.repeat(a, 2, axis=0)[::2],
    lambda a: np.asfortranarray(a),
    lambda a: a.astype(object),
    lambda a: a.astype(str),
    lambda a: a.astype(np.float32),
    lambda a: a.astype(np.float16),
    lambda a: a.astype(np.float64),
    lambda a: a.astype(bool),
    lambda a: a.astype(complex),
    lambda a: a.astype(np.int32),
    lambda a: a.astype(np.uint64),
    lambda a: a.astype(np.int8),
    lambda a: a.astype(">i8"),
    lambda a: a.astype(">f8"),
    lambda a: a.astype(np.longdouble),
    lambda a: a.tolist(),
    lambda a: tuple(a.tolist()),
    lambda a: -a,
    lambda a: a + 1,
    lambda a: a * 10**6,
    lambda a: a - 1,
    lambda a: _with(a, -1),
    lambda a: _with(a, -2),
    lambda a: _with(a, 10**9),
    lambda a: _with(a, -(2**31)),
    lambda a: _with(a.astype(float), np.nan),
    lambda a: _with(a.astype(float), np.inf),
    lambda a: np.ma.array(a),
    lambda a: np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == 1),
    _mapped,
    lambda a: sp.csr_array(np.atleast_2d(a)),
    lambda a: np.matrix(a),
    lambda a: a.view(np.recarray),
    lambda a: a.ravel(),
    lambda a: a.reshape(-1, 1),
    lambda a: a[:1],
    lambda a: np.broadcast_to(a[:1], a.shape),
    lambda a: np.lib.stride_tricks.as_strided(a, writeable=False),
    lambda a: np.frombuffer(b"\x01" + a.tobytes(), a.dtype, a.size, 1).reshape(a.shape),  # at an odd address
]


def draw(rng: np.random.Generator, world: World, name: str, hostile: float) -> Any:
    """Return a value for an argument: most often a right one, otherwise a right one bent, or anything."""
    pool = world.good[name]
    chance = rng.random()
    if chance < hostile / 2 or not pool:
        wrong = WRONG[rng.integers(len(WRONG))](world)
        return None if callable(wrong) and name in CALLED else wrong  # what a user's own function raises is the user's
    value = pool[rng.integers(len(pool))]
    if isinstance(value, np.ndarray):
        value = value.copy()
        if chance < hostile:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    return BENT[rng.integers(len(BENT))](value)
                except (ValueError, TypeError, OverflowError):  # this array cannot be bent like that
                    return value
    return value
