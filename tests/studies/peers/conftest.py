"""The graph on which the methods answered while they were part of the package, and their answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import napsets as ns

ALPHAS = [0.05, 0.2, 0.4]


class Answers:
    """What the compiled methods of the package answered before they were written again in plain NumPy."""

    def __init__(self):
        with np.load(Path(__file__).parent / "answers.npz") as archive:
            self.arrays = {name: archive[name] for name in archive.files}
        self.probabilities, self.labels = self.arrays["probabilities"], self.arrays["labels"].astype(np.int64)
        self.calibration, self.nodes = (self.arrays[name].astype(np.int64) for name in ("calibration", "nodes"))
        edges = self.arrays["edges"].astype(np.int64)
        self.graph, self.directed = (ns.Graph.from_edge_index(edges, 400, directed=way) for way in (False, True))

    def calibrate(self, method, directed=False, intervals=False):
        """Calibrate a method on the graph as it was asked."""
        outputs = self.arrays["quantiles"] if intervals else self.probabilities
        truth = self.arrays["targets"] if intervals else self.labels
        return method.calibrate(self.directed if directed else self.graph, outputs, truth, self.calibration)

    def check(self, name, method, directed=False, intervals=False, rtol=0.0):
        """Compare the answers of a method with those that are kept under a name.

        Thresholds are scores, so they are compared to the bit unless scores are summed in another order. Effective
        sizes are sums of weights, whose order a plain form may change.
        """
        calibrated = self.calibrate(method, directed, intervals)
        for alpha, sets in zip(ALPHAS, calibrated.predict(self.nodes, ALPHAS), strict=True):
            kept = {part: self.arrays[f"{name}/{alpha}/{part}"] for part in ("thresholds", "support", "effective_size")}
            np.testing.assert_allclose(sets.thresholds, kept["thresholds"], rtol=rtol, atol=0.0)
            np.testing.assert_array_equal(sets.support, kept["support"])
            np.testing.assert_allclose(sets.effective_size, kept["effective_size"], rtol=1e-12)
            if intervals:
                np.testing.assert_array_equal([sets.lower, sets.upper], self.arrays[f"{name}/{alpha}/bounds"])
            else:
                np.testing.assert_array_equal(np.packbits(sets.member, axis=1), self.arrays[f"{name}/{alpha}/member"])


@pytest.fixture(scope="session")
def answers():
    return Answers()
