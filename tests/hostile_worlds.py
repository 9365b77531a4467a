"""The right arguments of all public functions, of which hostile calls replace some."""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

import napsets as ns
from napsets import levels

FOLDER = Path(tempfile.mkdtemp(prefix="napsets-hostile-"))


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
        count = self.calibration.size
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
            "evidence": [None, nodes[-3:]],
            "calibrated": [self.method],
            "k": [1, 3],
            "names": [["coverage"], []],
            "only_space": [True, False],
            "centre": [None, self.intervals.centre],
            "class_names": [None, ["a", "b", "c"]],
            "clusters": [None, 2],
            "data": [pyg_like(self)],
            "dataset": ["d"],
            "decay": ["uniform", "geometric", np.ones(2), lambda k: 1.0],
            "direction": ["out", "in", "both"],
            "directed": [self.graph.directed],
            "edge_index": [self.edge_index],
            "effective_size": [self.sets.effective_size],
            "exact": [True, False],
            "fallback": ["full", "global"],
            "features": [data, data.toarray(), None],
            "free_ranks": [0, 2],
            "graph": [self.graph],
            "groups": [None, "class", y, np.array(["a", "b", ""])[y]],
            "hop_counts": [np.ones((4, 2)), [1, 2]],
            "hop_tv": [np.full((4, 2), 0.1), [0.1, 0.2]],
            "hop_weights": [[1.0, 0.5], np.ones((2, 2))],
            "hops": [2, 1, 0],
            "ids": [None, np.arange(size), np.array([f"n{i}" for i in range(size)])],
            "indices": [table[1]],
            "indptr": [table[0]],
            "intervals": [self.intervals],
            "label_thresholds": [None],
            "labels": [y, np.where(mask, y, y)],
            "lengths": [None, self.graph.lengths, self.long],
            "level": [levels.Nominal(), levels.Exact(), None],
            "localiser": [ns.Everyone(), ns.Hops(1), ns.PathLengths(2.0)],
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
            "name": ["split", "naps", "daps", "by-degree"],
            "near": [0.3],
            "neighbours": [3, 0],
            "node": [int(nodes[0])],
            "node_ids": [None, np.arange(size)],
            "nodes": [nodes, mask, nodes[:1]],
            "noise": [(0.4, 1.2)],
            "num_blocks": [2],
            "num_classes": [3],
            "num_features": [4],
            "node_type": [None],
            "metapaths": [()],
            "num_nodes": [size, None],
            "original_ids": [None, np.arange(size)],
            "outputs": [self.p, self.outputs],
            "p_in": [0.2],
            "p_out": [0.05],
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
            "prediction": [self.sets],
            "keys": [None, np.arange(size)],
            "unlabelled": [True, False],
            "randomized": [True, False],
            "resolution": [1.0],
            "rest_count": [0, 3],
            "rest_tv": [1.0],
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
            "strength": [0.5],
            "strengths": [None, (0.0, 0.5)],
            "support": [self.sets.support],
            "table": [{"source": self.edge_index[0], "target": self.edge_index[1]}],
            "targets": [self.targets],
            "test": [nodes],
            "threads": [None, 1, 2],
            "thresholds": [self.sets.thresholds],
            "train": [self.calibration[:20]],
            "u": [self.u, None],
            "upper": [self.intervals.upper],
            "validation": [self.calibration[20:25]],
            "values": [self.rng.normal(size=(size, 2))],
            "weight": [None, 0.1],
            "weights": [np.ones(3), self.scores],
            "weights_are": [None, "lengths", "strengths"],
            "which": [0, slice(2), [0, 1]],
            "exponent": [2.5],
            "homophily": [0.8],
            "mean_degree": [4.0],
            "edges": [FOLDER / "e.csv"],
            "count": [3],
            "rate": [0.01],
            "signal": [1.0],
            "truth": [y[nodes]],
            "within": [0.02, 0.2],
            "confidence": [0.9],
            "read_only": [True, False],
            "log": [True, False],
            "steered": [None, ns.Steered("aci")],
            "into": [FOLDER / "recovered"],
            "kind": ["dtaci", "aci"],
            "key": [None, "k"],
            "source": [nodes[:2]],
            "target": [nodes[2:4]],
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


WORLDS = [
    World(30, 60, directed=False, lengths=False, seed=0),  # answered by NumPy
    World(40, 120, directed=True, lengths=True, seed=1),
    World(6000, 9000, directed=False, lengths=True, seed=2),  # answered by kernels
    World(6000, 17_000, directed=True, lengths=False, seed=3),
]
