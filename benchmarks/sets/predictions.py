"""What two models say of the test nodes of each graph: trained once, kept in the project, read ever after.

They are trained as those of the leaderboard, with seed 0, but for GraphSAGE on Amazon, whose predictions come with the
package. They are kept so that measuring needs no torch and gives the same figures everywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

from napsets import NodePredictions
from napsets.datasets import NodeDataset, amazon_predictions
from napsets.paper.leaderboard import ground
from napsets.paper.leaderboard.ground import GRAPHS, Ground, load_graph, train_predictions

__all__ = ["DATA", "GRAPHS", "MODELS", "prepare"]

DATA = Path(__file__).parents[1] / "data"
KEPT = Path(__file__).parents[1] / "results" / "predictions"

MODELS = ground.MODELS[:2]
SEED = 0


def prepare(name: str, model: str) -> Ground:
    """Return the test nodes of a graph with a model's predictions, training the model where none are kept."""
    data = load_graph(name, SEED, DATA)
    return Ground.build(data, _predictions(data, model))


def _predictions(data: NodeDataset, model: str) -> NodePredictions:
    if (data.name, model) == ("amazon-computers", "graphsage-mean"):
        return amazon_predictions()  # which come with the package
    path = KEPT / f"{data.name}_{model}.npz"
    if not path.exists():
        kept = train_predictions(data, model, SEED)
        kept.save(path)
        print(f"{kept} in {kept.settings['train_seconds']:.0f} s", file=sys.stderr, flush=True)
    return NodePredictions.load(path)


if __name__ == "__main__":
    for graph in GRAPHS:
        for name in MODELS:
            task = prepare(graph, name)
            print(graph, name, task.graph, f"accuracy {task.accuracy:.3f}", flush=True)
