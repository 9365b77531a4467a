"""Arguments for calls of the public surface, by the names of parameters: right ones, bent ones and wrong ones."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

import napsets as ns
from napsets import levels, localisers, scores

FOLDER = Path(tempfile.mkdtemp(prefix="napsets-hostile-"))

# -- right arguments ---------------------------------------------------------------------------------------------------


class World:
    """A graph with all that belongs to it; `good` has right values for each argument, by its name."""

    def __init__(self, size: int, edges: int, *, directed: bool, lengths: bool, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.size, self.classes = size, 3
        self.edge_index = rng.integers(size, size=(2, edges))
        self.long = rng.uniform(0.5, 2.0, edges) if lengths else None
        self.graph = ns.Graph.from_edge_index(self.edge_index, size, directed=directed, lengths=self.long)
        self.p = rng.dirichlet(np.ones(self.classes), size)
        self.y = rng.integers(self.classes, size=size)
        self.calibration = np.sort(rng.permutation(size)[: min(size // 2, 300)])
        self.outside = np.setdiff1d(np.arange(size), self.calibration)
        self.nodes = rng.permutation(self.outside)[:12]
        self.u = ns.node_uniforms(np.arange(size))
        self.targets = self.y + rng.normal(size=size)
        self.outputs = np.column_stack([self.targets - 1.0, self.targets + 1.0])
        self.scores = rng.random(self.calibration.size)

    @cached_property
    def method(self) -> Any:
        return ns.Method("aps", ns.Hops(2, pool=5.0), ns.Exact()).calibrate(
            self.graph, self.p, self.y, self.calibration
        )

    @cached_property
    def sets(self) -> Any:
        return ns.SplitConformal().calibrate(self.p, self.y, self.calibration).predict(self.nodes, 0.2)

    @cached_property
    def intervals(self) -> Any:
        calibrated = ns.SplitConformal("cqr").calibrate(self.outputs, self.targets, self.calibration)
        return calibrated.predict(self.nodes, 0.2)

    @cached_property
    def reference(self) -> Any:
        return self.method.scored.reference

    @cached_property
    def good(self) -> dict[str, list[Any]]:
        size, nodes, y = self.size, self.nodes, self.y
        mask = np.isin(np.arange(size), nodes)
        calibrates = np.isin(np.arange(size), self.calibration)
        known, count = self.method.scored.reference, self.calibration.size
        table = self.graph.indptr, self.graph.indices
        bases: list[Any] = ["aps", ns.APS(), ns.THR(), ns.RAPS(), ns.SAPS(randomized=False), ns.Sharpened()]
        data = sp.random_array((size, 6), density=0.4, format="csr", rng=self.rng)
        return {
            "adjacency": [self.graph.to_scipy()],
            "alike": [0.0, 5.0],
            "allow_empty": [True, False],
            "alpha": [0.1, 0.5, [0.1, 0.3], np.array([0.2])],
            "alphas": [[0.1, 0.3]],
            "base": bases,
            "bins": [1, 5, [0, 2, 4]],
            "block_size": [1, 20],
            "blocks": [None, y],
            "by": [None, "class", "degree", y],
            "calibration": [self.calibration, calibrates],
            "centre": [None, self.intervals.centre],
            "class_names": [None, ["a", "b", "c"]],
            "clusters": [None, 2],
            "cuts": [[localisers.Cut(0.9)]],
            "data": [pyg_like(self)],
            "dataset": ["d"],
            "decay": ["uniform", "geometric", np.ones(2), lambda k: 1.0],
            "deep": [True],
            "depth": [None, 2],
            "direction": ["out", "in", "both"],
            "directed": [self.graph.directed],
            "edge_index": [self.edge_index],
            "effective_size": [self.sets.effective_size],
            "exact": [True, False],
            "fallback": ["full", "global"],
            "features": [data, data.toarray(), None],
            "free_ranks": [0, 2],
            "furthest": [3],
            "graph": [self.graph],
            "groups": [None, "class", y, np.array(["a", "b", ""])[y]],
            "hop_counts": [np.ones((4, 2)), [1, 2]],
            "hop_tv": [np.full((4, 2), 0.1), [0.1, 0.2]],
            "hop_weights": [[1.0, 0.5], np.ones((2, 2))],
            "hops": [2, 1, 0],
            "ids": [None, np.arange(size), np.array([f"n{i}" for i in range(size)])],
            "index": [ns.CalibrationIndex(self.graph, self.scores, self.calibration)],
            "indices": [table[1]],
            "indptr": [table[0]],
            "intervals": [self.intervals],
            "label_thresholds": [None],
            "labels": [y, np.where(mask, y, y)],
            "lengths": [None, self.graph.lengths, self.long],
            "level": [levels.Nominal(), levels.Exact(), None],
            "localiser": [ns.Everyone(), ns.Hops(1), ns.PageRank(), ns.Balls(5), ns.InverseDegree()],
            "low": [0.05],
            "lower": [self.intervals.lower],
            "max_hops": [1],
            "member": [self.sets.member],
            "method": [self.method.method],
            "methods": [["split", "naps"], None],
            "min_size": [1, 5],
            "mix": [0.5],
            "model": ["m"],
            "n": [100],
            "name": ["split", "naps", "daps", "pagerank", "rlcp", "edge-ex"],
            "near": [0.3],
            "neighbours": [3, 0],
            "node": [int(nodes[0])],
            "node_ids": [None, np.arange(size)],
            "nodes": [nodes, mask, nodes[:1]],
            "noise": [(0.4, 1.2)],
            "num_blocks": [2],
            "num_classes": [3],
            "num_features": [4],
            "num_nodes": [size, None],
            "original_ids": [None, np.arange(size)],
            "outputs": [self.p, self.outputs],
            "p_in": [0.2],
            "p_out": [0.05],
            "part": ["test"],
            "partition": [[nodes[:3], nodes[3:]]],
            "path": [FOLDER / "a.npz"],
            "penalty": [0.01],
            "per": ["node", "set"],
            "pool": [0.0, 5.0],
            "power": [1.5],
            "prefer": ["even", "small"],
            "probabilities": [self.p, self.p.astype(np.float32)],
            "progress": [None, lambda done, total: None],
            "radius": [2, 1.5, None],
            "ratios": [np.ones(size), np.ones(3)],
            "logits": [True, False, np.log(self.p)],
            "own": [0.0, 1.0],
            "training": [None, self.outside[-5:]],
            "fdr": [0.1],
            "dependence": ["positive", "any"],
            "label": [0],
            "times": [None, np.arange(size)],
            "smoothed": [True, False],
            "position": [None, int(nodes[0])],
            "positions": [None, nodes],
            "end_thresholds": [None, self.intervals.end_thresholds],
            "prediction": [self.sets],
            "keys": [None, np.arange(size)],
            "unlabelled": [True, False],
            "randomized": [True, False],
            "reference": [known, scores.Labelled(known.nodes, y[known.nodes])],
            "resolution": [1.0],
            "rest_count": [0, 3],
            "rest_tv": [1.0],
            "restart": [0.2],
            "row": [0],
            "score": [*bases, "cqr"],
            "scores": [self.scores, self.scores[:12]],
            "seed": [0, 7],
            "sets": [self.sets, self.intervals],
            "settings": [{}, None],
            "shares": [self.scores],
            "share": [0.5],
            "similar": [0.3],
            "sizes": [(0.25, 0.25, 0.5), np.array([3, 4])],
            "split": [None],
            "splits": [self.rng.random((2, count)) < 0.5],
            "steps": [1],
            "strata": [[(0, 1), (2, 3)]],
            "strategy": [None, "few", "dense", "sparse", "deep", "far"],
            "strength": [0.5],
            "strengths": [None, (0.0, 0.5)],
            "support": [self.sets.support],
            "table": [{"source": self.edge_index[0], "target": self.edge_index[1]}],
            "targets": [self.targets],
            "test": [nodes],
            "threads": [None, 1, 2],
            "thresholds": [self.sets.thresholds],
            "tolerance": [1e-2],
            "train": [self.calibration[:20]],
            "tv": [np.full(3, 0.1)],
            "u": [self.u, None],
            "upper": [self.intervals.upper],
            "validation": [self.calibration[20:25]],
            "values": [self.rng.normal(size=(size, 2))],
            "weight": [None, 0.1],
            "weights": [np.ones(3), self.scores],
            "weights_are": [None, "lengths", "strengths"],
            "which": [0, slice(2), [0, 1]],
            "worth": [20.0],
            "exponent": [2.5],
            "homophily": [0.8],
            "mean_degree": [4.0],
            "root": [None],
            "epochs": [1],
            "hidden": [4],
            "distances": [np.array([0.5, 1.0, np.inf])],
            "edges": [FOLDER / "e.csv"],
            "folder": [FOLDER],
            "labelled": [50],
            "patience": [2],
            "sample": [20, None],
            "count": [3],
            "residual": [True],
            "temperature": [0.1],
            "predictor": [self.method],
            "rate": [0.01],
            "signal": [1.0],
            "truth": [y[nodes]],
            "download": [False],
            "wide": [True, False],
            "read_only": [True, False],
            "log": [True, False],
            "steered": [None, ns.Steered("aci")],
            "into": [FOLDER / "recovered"],
            "kind": ["dtaci", "aci"],
            "key": [None, "k"],
            "id": [int(nodes[0])],
            "source": [nodes[:2]],
            "target": [nodes[2:4]],
            "most": [50],
            "p_value": [0.3],
            "p_values": [self.scores],
            "delay": [0, 3],
            "changes": [[("add_edges", nodes[:2], nodes[2:4])], []],
        }


def pyg_like(world: World) -> Any:
    """Return what has an ``edge_index``, as the data of PyTorch Geometric have."""
    return SimpleNamespace(
        edge_index=world.edge_index, num_nodes=world.size, x=np.ones((world.size, 2), np.float32), y=world.y,
        train_mask=np.arange(world.size) < 5, val_mask=None, test_mask=None,
    )  # fmt: skip


# -- wrong arguments ---------------------------------------------------------------------------------------------------

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


WORLDS = [
    World(30, 60, directed=False, lengths=False, seed=0),  # answered by NumPy
    World(40, 120, directed=True, lengths=True, seed=1),
    World(6000, 9000, directed=False, lengths=True, seed=2),  # answered by kernels
    World(6000, 17_000, directed=True, lengths=False, seed=3),
]
