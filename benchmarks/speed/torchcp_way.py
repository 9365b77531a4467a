"""TorchCP's NAPS predictor on a sample of nodes: run by a Python that has torchcp, which need not have napsets.

Usage: ``python torchcp_way.py GRAPH.npz HOPS NODES CLASSES SEED``; prints a JSON line.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch
import torchcp
from torch_geometric.data import Data
from torchcp.graph import NAPSPredictor


def main(path: str, hops: int, count: int, classes: int, seed: int) -> None:
    with np.load(path) as arrays:
        indptr, indices = arrays["indptr"], arrays["indices"]
    nodes = indptr.size - 1
    rng = np.random.default_rng(seed)
    edges = torch.from_numpy(np.stack([np.repeat(np.arange(nodes), np.diff(indptr)), indices.astype(np.int64)]))
    labels = torch.from_numpy(rng.integers(0, classes, nodes))
    data = Data(torch.zeros(nodes, 1), edges, y=labels, test_mask=torch.ones(nodes, dtype=torch.bool))
    predictor = NAPSPredictor(data, alpha=0.1, cutoff=0, k=hops, scheme="unif")
    logits = torch.from_numpy(rng.standard_normal((nodes, classes)).astype(np.float32))
    sample = rng.choice(nodes, min(count, nodes), replace=False).tolist()
    begin = time.perf_counter()
    falls_short(predictor, sample[0], logits, labels)
    first = time.perf_counter() - begin
    for node in sample[-5:]:
        falls_short(predictor, node, logits, labels)
    begin, cpu = time.perf_counter(), time.process_time()
    short = sum(falls_short(predictor, node, logits, labels) for node in sample)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    measured = {"seconds": seconds, "cpu_seconds": cpu, "first_seconds": first, "sources": len(sample), "short": short}
    # torch shares the work of large tensors among all cores unless told otherwise; it is measured as it comes.
    print(json.dumps({**measured, "torch_threads": torch.get_num_threads(), "version": torchcp.__version__}))


def falls_short(predictor: NAPSPredictor, node: int, logits: torch.Tensor, labels: torch.Tensor) -> bool:
    """Compute a node's threshold; return whether its neighbourhood has too little mass, where the predictor raises."""
    try:
        predictor.calculate_threshold_for_node(node, logits, labels)
    except ValueError:
        return True
    return False


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]))
