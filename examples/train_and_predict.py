"""Train a graph neural network on Amazon Computers, then predict a set of labels for test nodes.

Run with ``python examples/train_and_predict.py``; needs the extra ``gnn``.
"""

from __future__ import annotations

import numpy as np

import napsets as ns


def main() -> None:
    data = ns.datasets.load("amazon-computers", seed=0)
    predictions = ns.gnn.train(data, seed=0)
    print(predictions)
    predictions.save("artifacts/amazon-graphsage.parquet")

    # As in the paper, neighbourhoods are those of the graph induced on the test nodes, half of which calibrate.
    graph, test = data.graph.subgraph(data.test), predictions.take(data.test)
    order = np.random.default_rng(0).permutation(data.test.size)
    calibration, nodes = order[:6000], order[6000:]
    naps = ns.NAPS(hops=2, seed=0).calibrate(graph, test.probabilities, test.labels, calibration=calibration)
    sets = naps.predict(nodes, alpha=0.1)
    print(f"coverage {ns.coverage(sets, test.labels):.3f}, mean size {ns.mean_size(sets):.2f}")


if __name__ == "__main__":
    main()
