"""NodeQuantiles: what a model of quantiles said of which nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.frozen import Sealed, frozen

__all__ = ["NodeQuantiles"]


@dataclass(frozen=True, eq=False, repr=False)
class NodeQuantiles(Sealed):
    """Quantiles of the numbers of all nodes of a dataset.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, 0..n−1.
    outputs : numpy.ndarray
        A row a node, ascending: what `napsets.CQR` takes, where there are two.
    quantiles : tuple of float
        Which quantiles the columns are.
    targets : numpy.ndarray
        The truth; NaN where unknown.
    split : numpy.ndarray
        The part each node lay in: train, validation, test, or an empty string.
    dataset, model : str
        Their names.
    settings : mapping
        How the model was trained.
    """

    nodes: IntArray
    outputs: FloatArray
    quantiles: tuple[float, ...]
    targets: FloatArray
    split: npt.NDArray[np.str_]
    dataset: str = ""
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("nodes", "outputs", "targets", "split"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name))))

    @property
    def loss(self) -> float:
        """Mean pinball loss on the test nodes; NaN where there are none."""
        rows = (self.split == "test") & np.isfinite(self.targets)
        errors = self.targets[rows, None] - self.outputs[rows]
        levels = np.array(self.quantiles)
        each = np.maximum(levels * errors, (levels - 1.0) * errors)
        return float(each.mean()) if each.size else float("nan")

    def to_arrow(self) -> Any:
        """Return a PyArrow table: node, lower and upper (or a column a quantile), target, split."""
        import pyarrow as pa

        names = ["lower", "upper"] if len(self.quantiles) == 2 else [f"q{level:g}" for level in self.quantiles]
        columns = {name: pa.array(self.outputs[:, i]) for i, name in enumerate(names)}
        return pa.table({"node": self.nodes, **columns, "target": self.targets, "split": self.split})

    def __repr__(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.quantiles)
        return (
            f"NodeQuantiles({self.model!r} on {self.dataset!r}: {self.nodes.size:,} nodes, quantiles {levels}, "
            f"pinball loss {self.loss:.4g} on test nodes)"
        )
