"""``napsets warm-up``: compile now what would be compiled later."""

from __future__ import annotations

import time

from napsets.cli._output import Output

EXAMPLES = ["napsets warm-up"]


def warm_up(run: Output) -> None:
    """Compile the kernels for this processor and keep them, so that no later process has to.

    Small graphs need none, and larger ones compile what they need by themselves, once per machine. This is for images
    of containers, and for machines whose first answer must not be slow. Set NUMBA_CACHE_DIR, now and later, to keep the
    kernels in a folder of your own.
    """
    from napsets.kernels.threads import compiling_now

    start = time.perf_counter()
    with run.steps() as steps, compiling_now():
        steps.stage("Compiling kernels")
        _use_every_kernel()
    seconds = time.perf_counter() - start
    run.result({"seconds": seconds}, f"Kernels are compiled ({seconds:.1f} s).")


def _use_every_kernel() -> None:
    """Search a small graph in every way, and let methods predict on it."""
    import numpy as np

    from napsets.graph import Graph
    from napsets.kernels.layout import Reach
    from napsets.kernels.search import count_below, find_thresholds
    from napsets.localisers.neighbourhoods import CalibrationIndex
    from napsets.methods import NAPS, Auto
    from napsets.quantile import ROUNDING

    rng, nodes, classes = np.random.default_rng(0), 600, 3
    labels, half = rng.integers(classes, size=nodes), np.arange(nodes) < nodes // 2
    probabilities = rng.dirichlet(np.ones(classes), size=nodes)
    for directed in (False, True):
        graph = Graph.from_edge_index(rng.integers(nodes, size=(2, 4 * nodes)), nodes, directed=directed)
        for dtype in (np.float32, np.float64):
            for predictor in (NAPS(), NAPS(pool=1.0, exact=True), Auto()):
                predictor.calibrate(graph, probabilities.astype(dtype), labels, half).predict(~half, 0.1)
        layout = CalibrationIndex(graph, rng.random(nodes // 2), np.flatnonzero(half)).layout
        for strategy in ("dense", "sparse", "deep"):
            for sources in (np.arange(nodes), np.arange(1)):  # with rows renumbered, and as they are
                for pool in (0.0, 1.0):
                    find_thresholds(
                        layout, sources, np.ones((1, 3)), Reach(np.array([0.9]), ROUNDING, pools=np.array([pool])),
                        strategy=strategy,
                    )  # fmt: skip
                count_below(layout, sources, np.array([[1]]), 3, strategy=strategy)
