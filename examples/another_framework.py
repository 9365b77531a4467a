"""Probabilities from any framework: a scikit-learn model on node features, and a NetworkX graph with names.

Run with ``python examples/another_framework.py``; needs scikit-learn and networkx.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import napsets as ns

TEAMS = ["sales", "research", "support"]


def main(people: int = 1500) -> None:
    rng = np.random.default_rng(0)
    team = rng.integers(len(TEAMS), size=people)
    features = rng.normal(size=(people, 4)) + 0.8 * np.eye(len(TEAMS), 4)[team]
    names = np.array([f"user-{i}" for i in range(people)])
    # An edge joins two people who talk to each other, mostly members of the same team.
    talks = nx.Graph()
    talks.add_nodes_from(names)
    for i in range(people):
        mates = np.flatnonzero(team == team[i]) if rng.random() < 0.8 else np.arange(people)
        talks.add_edges_from((names[i], names[j]) for j in rng.choice(mates, 4) if i != j)

    known = rng.permutation(people)[:900]
    train, calibration = known[:500], known[500:]
    model = HistGradientBoostingClassifier(random_state=0).fit(features[train], team[train])
    probabilities = model.predict_proba(features)

    method = ns.Auto(alpha=0.1)
    auto = method.calibrate(talks, probabilities, team, calibration=calibration, ids=names, class_names=TEAMS)
    rest = np.setdiff1d(np.arange(people), known)
    sets = auto.predict(rest)
    print(auto.choice)
    print(f"{names[rest[0]]} works in {' or '.join(sets[0])}")
    print(f"coverage {ns.coverage(sets, team):.3f}, mean size {ns.mean_size(sets):.2f}")


if __name__ == "__main__":
    main()
