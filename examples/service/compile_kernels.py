"""Compile the kernels that a service uses, as an image does when it is built; they stay in ``NUMBA_CACHE_DIR``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import napsets as ns
from napsets.files import read_inputs

#: The methods, each of which uses other kernels.
METHODS = ("split", "naps", "naps-exact", "informed", "auto", "auto-small")


def compile_kernels() -> None:
    """Let small living graphs go through all kinds of events."""
    rng = np.random.default_rng(0)
    nodes, labels = np.arange(400), rng.integers(0, 3, 400)
    for method in METHODS:
        for kind in (np.float32, np.float64):
            rows = rng.dirichlet(np.ones(3), 400).astype(np.float32).astype(kind)
            live = ns.Live(method)
            live.add_nodes(nodes[:300], rows[:300])
            live.add_edges(rng.integers(0, 300, 5000), rng.integers(0, 300, 5000))
            live.add_labels(nodes[:200], labels[:200])
            live.add_nodes(nodes[300:], rows[300:])
            live.add_edges(nodes[300:], nodes[:100])
            live.set_probabilities(nodes[:10], rows[10:20])
            live.predict()
            live.remove_edges(nodes[300:310], nodes[:10])
            live.remove_labels(nodes[:5])
            live.remove_nodes(nodes[5:10])
            live.add_labels(nodes[300:], labels[300:])
            live.predict(), live.p_values(nodes[20:30]), live.status()
    for prefix in ("", "n"):  # ids that are integers, and texts
        _start_from_files(prefix)


def _start_from_files(prefix: str) -> None:
    """Read files of a small graph."""
    tables = {
        "edges.csv": ["source,target", *(f"{prefix}{i},{prefix}{(i + 1) % 30}" for i in range(30))],
        "p.csv": ["node,a,b", *(f"{prefix}{i},0.5,0.5" for i in range(30))],
        "y.csv": ["node,label", *(f"{prefix}{i},a" for i in range(20))],
    }
    with TemporaryDirectory() as folder:
        for name, lines in tables.items():
            (Path(folder) / name).write_text("\n".join(lines), encoding="utf-8")
        edges, probabilities, labels = (Path(folder) / name for name in tables)
        inputs = read_inputs(edges, probabilities, labels)
        names, classes = inputs.ids.values.to_pylist(), inputs.class_names
        ns.Live.start(inputs.graph, inputs.outputs, inputs.truth, ids=names, class_names=classes).predict()


if __name__ == "__main__":
    compile_kernels()
