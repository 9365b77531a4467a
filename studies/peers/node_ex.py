"""NodeEx: split conformal prediction for a graph that grows node by node.

Zargarbashi and Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024. Labelled nodes and new ones are
exchangeable once the model has scored all of them on the graph that contains all of them, so `split` on recomputed
outputs has its usual guarantee. Scores computed before nodes arrived must not be used. Cost: one more run of the model,
and a sort.
"""

from __future__ import annotations

from typing import Any

from napsets.methods import METHODS, Method, SplitConformal


@METHODS.add("node-ex")
def node_exchangeable(*, score: Any = "aps") -> Method:
    """NodeEx, for graphs that grow node by node: `split` with outputs computed on the current graph. Guaranteed."""
    return SplitConformal(score)
