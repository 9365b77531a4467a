"""Random graphs as arrays for one machine and as DataFrames for Spark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import napsets as ns


@dataclass
class Case:
    """A random graph with probabilities and labels, for one machine and for Spark."""

    edge_index: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray
    calibration: np.ndarray
    ids: np.ndarray
    nodes: np.ndarray
    directed: bool = False
    frames: dict[str, Any] = field(default_factory=dict)

    @property
    def graph(self) -> ns.Graph:
        return ns.Graph.from_edge_index(self.edge_index, self.labels.size, directed=self.directed)

    def calibrated(self, method: Any) -> Any:
        """A method calibrated on one machine."""
        graph = ns.Graph.from_edge_index(self.edge_index, self.labels.size, directed=self.directed)
        return method.calibrate_rows(graph, self.probabilities, self.labels, self.calibration, self.ids)

    def columns(self) -> dict[str, dict[str, Any]]:
        """The columns of the tables."""
        ids = self.ids
        classes = {f"class-{y}": self.probabilities[:, y] for y in range(self.probabilities.shape[1])}
        names = [f"class-{y}" for y in self.labels[self.calibration]]
        return {
            "edges": {"source": ids[self.edge_index[0]], "target": ids[self.edge_index[1]]},
            "probabilities": {"node": ids, **classes},
            "labels": {"node": ids[self.calibration], "label": names},
            "nodes": {"node": ids[self.nodes]},
        }

    def tables(self, spark: Any) -> dict[str, Any]:
        """DataFrames in several partitions, made once."""
        if not self.frames:
            self.frames = {name: frame(spark, columns).repartition(3) for name, columns in self.columns().items()}
        return self.frames


def frame(spark: Any, columns: dict[str, Any]) -> Any:
    """A DataFrame of some columns."""
    import pyarrow as pa

    return spark.createDataFrame(pa.table(columns))


def in_id_order(case: Case) -> Case:
    """The same nodes, numbered in the order of their ids, as Spark numbers them."""
    order = np.argsort(case.ids)
    rank = np.argsort(order)
    return replace(
        case,
        edge_index=rank[case.edge_index],
        probabilities=case.probabilities[order],
        labels=case.labels[order],
        calibration=np.sort(rank[case.calibration]),
        ids=case.ids[order],
        nodes=np.sort(rank[case.nodes]),
        frames={},
    )


def random_case(
    seed: int,
    *,
    nodes: int = 120,
    edges: int = 200,
    hubs: int = 2,
    isolated: int = 4,
    ids: str = "integer",
    directed: bool = False,
    dtype: Any = np.float64,
) -> Case:
    """A sparse random graph with hubs, isolated nodes, duplicate edges, self-loops and tied scores."""
    rng = np.random.default_rng(seed)
    inside = nodes - isolated
    ends = rng.integers(0, inside, (2, edges))
    spokes = [np.stack([np.full(inside // 3, hub), rng.integers(0, inside, inside // 3)]) for hub in range(hubs)]
    edge_index = np.concatenate([ends, *spokes, ends[:, :20], np.tile(np.arange(5), (2, 1))], axis=1)
    probabilities = rng.dirichlet(np.full(4, 0.7), nodes).astype(dtype)
    probabilities[rng.random(nodes) < 0.2] = np.array([0.4, 0.3, 0.2, 0.1], dtype=dtype)
    names = rng.permutation(10 * nodes)[:nodes] - 3
    return Case(
        edge_index=edge_index,
        probabilities=probabilities,
        labels=rng.integers(0, 4, nodes),
        calibration=np.flatnonzero(rng.random(nodes) < 0.6),
        ids=names if ids == "integer" else np.array([f"nœud {name}" for name in names]),
        nodes=np.sort(rng.permutation(nodes)[: nodes * 3 // 4]),
        directed=directed,
    )


def assert_same_bits(table: Any, case: Case, calibrated: Any, alpha: float) -> None:
    """Every column that Spark gives is, bit for bit, that of one machine; `table` is of Arrow."""
    expected = calibrated.predict(case.nodes, alpha)
    outputs = calibrated.score.probabilities[case.nodes]
    listed = table.to_pylist()
    rows = {row["node"]: row for row in listed}
    assert len(rows) == len(listed)
    assert sorted(rows) == sorted(case.ids[case.nodes].tolist())
    ordered = [rows[node] for node in case.ids[case.nodes].tolist()]
    assert np.array([row["threshold"] for row in ordered]).tobytes() == expected.thresholds.tobytes()
    assert np.array([row["effective_size"] for row in ordered]).tobytes() == expected.effective_size.tobytes()
    assert [row["support"] for row in ordered] == expected.support.tolist()
    assert [row["size"] for row in ordered] == expected.sizes.tolist()
    assert {row["alpha"] for row in ordered} == {expected.alpha}
    assert [row["labels"] for row in ordered] == [[f"class-{y}" for y in labels] for labels in expected.labels()]
    assert [row["prediction"] for row in ordered] == [f"class-{y}" for y in outputs.argmax(axis=1)]
    assert [row["probability"] for row in ordered] == outputs.max(axis=1).tolist()
