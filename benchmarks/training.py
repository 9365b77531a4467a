"""Time and memory of training at three sizes, each run in a process of its own.

``python -m benchmarks.training`` writes ``benchmarks/results/training.json``. Amazon Computers is the real graph; the
other two are degree-corrected block models with as many nodes, edges, features and classes as Flickr and Reddit2.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from napsets.files.paths import replacing

RESULTS = Path(__file__).parent / "results" / "training.json"
PAPER_MODELS = ("graphsage-mean", "graphsage-max", "shadow-sage", "shadow-gcn")

#: name: (dataset, its options, model, preset, changed settings)
RUNS: dict[str, tuple[str, dict[str, Any], str, str, dict[str, Any]]] = {
    f"amazon-computers, {model}, {preset}": ("amazon-computers", {}, model, preset, {})
    for preset in ("paper", "released-code")
    for model in PAPER_MODELS
} | {
    "flickr-sized, graphsage-mean, 15 epochs": (
        "dcsbm",
        {
            "num_nodes": 89_250,
            "mean_degree": 10.4,
            "num_classes": 7,
            "num_features": 500,
            "homophily": 0.32,
            "signal": 0.05,
            "sizes": (44_625, 22_312, 22_313),
        },
        "graphsage-mean",
        "released-code",
        {"epochs": 15},
    ),
    "reddit2-sized, graphsage-mean, 1 epoch": (
        "dcsbm",
        {
            "num_nodes": 232_965,
            "mean_degree": 112.0,
            "num_classes": 41,
            "num_features": 602,
            "homophily": 0.8,
            "signal": 0.05,
            "sizes": (153_932, 23_699, 55_334),
        },
        "graphsage-mean",
        "released-code",
        {"epochs": 1},
    ),
}


def run_one(name: str) -> dict[str, Any]:
    """Train in this process; return seconds, accuracy and the highest resident memory."""
    from napsets import datasets, gnn

    dataset, options, model, preset, changes = RUNS[name]
    start = time.perf_counter()
    data = datasets.load(dataset, seed=0, **options)
    loaded = time.perf_counter()
    trained = gnn.fit(data, model, preset, seed=0, **changes)
    fitted = time.perf_counter()
    predictions = gnn.predict(trained, data)
    done = time.perf_counter()
    return {
        "data": repr(data),
        "epochs": len(trained.history),
        "load_s": loaded - start,
        "fit_s": fitted - loaded,
        "predict_s": done - fitted,
        "train_s": done - loaded,
        "accuracy": predictions.accuracy,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="run only those whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(run_one(arguments.child)))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in RUNS:
        if arguments.only is None or arguments.only in name:
            command = [sys.executable, "-m", "benchmarks.training", "--child", name]
            results[name] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            row = results[name]
            print(
                f"{name}: {row['train_s']:.1f} s, {row['peak_gib']:.2f} GiB, accuracy {row['accuracy']:.3f}", flush=True
            )
            with replacing(RESULTS) as draft:
                draft.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
