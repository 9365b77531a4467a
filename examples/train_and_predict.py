"""Train a graph neural network on Amazon Computers, then predict a set of labels for test nodes.

Run with ``python examples/train_and_predict.py``; needs the extra ``gnn``.
"""

from __future__ import annotations

import numpy as np

import napsets as ns


def main(epochs: int = 100) -> None:
    data = ns.datasets.load("amazon-computers", seed=0)
    predictions = ns.gnn.train(data, seed=0, epochs=epochs)
    print(predictions)

    # Training stopped by the validation nodes, so test nodes calibrate: a random half of them. The graph is the one
    # induced on the test nodes, as in the paper on NAPS.
    graph, test = data.graph.subgraph(data.test), predictions.take(data.test)
    order = np.random.default_rng(0).permutation(data.test.size)
    calibration, nodes = order[:6000], order[6000:]
    auto = ns.Auto(alpha=0.1).calibrate(graph, test.probabilities, data.labels[data.test], calibration)
    sets = auto.predict(nodes)
    print(auto.choice)
    print(f"coverage {ns.coverage(sets, data.labels[data.test]):.3f}, mean size {ns.mean_size(sets):.2f}")


if __name__ == "__main__":
    main()
