"""Graph neural networks of PyTorch Geometric (the extra ``gnn``).

`train` goes from a dataset to `napsets.datasets.NodePredictions` in one call; `predict_sets` is for those who already
have a model.
"""

from __future__ import annotations

from napsets.errors import MissingDependencyError

try:
    import torch  # noqa: F401
    import torch_geometric  # noqa: F401
except ImportError as _error:
    raise MissingDependencyError(_error.name or "torch", "gnn") from _error

from napsets.gnn.bridge import predict_sets, probabilities_of
from napsets.gnn.training import train

__all__ = ["predict_sets", "probabilities_of", "train"]
