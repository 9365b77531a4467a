"""Methods of other papers that napsets is compared with, one file each, registered as a user's own methods are.

They are on no Pareto front of the leaderboard, so the package does without them. Each is written in plain NumPy, SciPy
or torch: easy to read beside its paper, and slower than a method of the package. Importing `studies` enters them in
the tables of methods, scores and localisers.

>>> import studies.peers
>>> from napsets.methods import make_method
>>> make_method("rlcp").localiser
Balls(min_size=100, furthest=6)
"""

from __future__ import annotations

from studies.peers import cf_gnn, edge_ex, node_ex, pagerank, rlcp

__all__ = ["cf_gnn", "edge_ex", "node_ex", "pagerank", "rlcp"]
