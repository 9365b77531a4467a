"""What the first version answered, case by case: a world made of integers, and every public way to ask about it.

Run ``python tests/golden/cases.py`` to write the answers of the version at hand; the committed file holds those of the
first version, and `tests/test_golden.py` compares every bit with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import napsets as ns

FOLDER = Path(__file__).parent
NODES, CLASSES = 600, 5


class World:
    """A graph with hubs, isolated nodes and several components; probabilities that no processor rounds otherwise."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.labels = rng.integers(0, CLASSES, NODES)
        source = rng.integers(0, NODES - 20, 1500)  # the last nodes are isolated
        near = (source + rng.integers(1, 12, source.size)) % (NODES - 20)
        hubs = np.stack([np.repeat([3, 250], 90), rng.integers(0, NODES - 20, 180)])
        self.edge_index = np.hstack([np.stack([source, near]), hubs])
        self.graph = ns.Graph.from_edge_index(self.edge_index, num_nodes=NODES)
        shares = rng.integers(1, 40, (NODES, CLASSES))
        shares[np.arange(NODES), self.labels] += rng.integers(0, 80, NODES)
        shares[rng.random(NODES) < 0.2] = 16  # rows of equal probabilities, so that scores tie
        total = np.zeros(NODES, dtype=np.int64)
        for y in range(CLASSES):
            total += shares[:, y]
        self.probabilities = shares / total[:, None]
        self.calibration = np.sort(rng.permutation(NODES)[:300])
        self.nodes = np.setdiff1d(np.arange(NODES), self.calibration)

    @property
    def known(self) -> np.ndarray:
        """The labels as a user has them: −1 where they are to be predicted."""
        known = np.full(NODES, -1)
        known[self.calibration] = self.labels[self.calibration]
        return known


#: Settings of NAPS, by the name under which their answers are kept.
NAPS = {
    **{f"{decay}-{hops}": {"decay": decay, "hops": hops}
       for decay in ("uniform", "hyperbolic", "geometric") for hops in (0, 1, 2, 3, 4)},
    "array": {"decay": [0.0, 2.5, 0.125], "hops": 3},
    "function": {"decay": lambda k: 1.0 / (k * k), "hops": 2},
    "aps-fixed": {"score": ns.APS(randomized=False)},
    "raps": {"score": ns.RAPS(penalty=0.05, free_ranks=1)},
    "saps": {"score": ns.SAPS(weight=0.2)},
    "thr": {"score": ns.THR()},
    "global": {"hops": 1, "fallback": "global"},
    "no-empty": {"allow_empty": False, "fallback": "global"},
    "seed": {"seed": 2**40 + 3},
}  # fmt: skip


def kept(sets: ns.PredictionSets) -> dict[str, np.ndarray]:
    """Everything that a user can see of some sets."""
    return {
        "thresholds": sets.thresholds,
        "member": np.packbits(sets.member, axis=1),
        "support": sets.support.astype(np.int32),
        "effective_size": sets.effective_size,
    }


def of_sets(world: World) -> dict[str, np.ndarray]:
    """The sets of NAPS and of split conformal prediction."""
    answers = {}
    inputs = (world.probabilities, world.known, world.calibration)
    for name, settings in NAPS.items():
        naps = ns.NAPS(**settings).calibrate(world.graph, *inputs)
        for alpha in (0.1, 0.4):
            answers |= {
                f"naps/{name}/{alpha}/{key}": value for key, value in kept(naps.predict(world.nodes, alpha)).items()
            }
    for score in (ns.APS(), ns.RAPS(), ns.SAPS(), ns.THR()):
        split = ns.SplitConformal(score=score).calibrate(*inputs)
        sets = split.predict(np.arange(0, NODES, 3), 0.1)
        answers |= {f"split/{type(score).__name__}/{key}": value for key, value in kept(sets).items()}
    names = np.array([f"user-{i}" for i in range(NODES)])
    sets = ns.NAPS().calibrate(world.graph, *inputs, ids=names).predict(world.nodes, 0.2)
    return answers | {f"naps/string ids/{key}": value for key, value in kept(sets).items()}


def of_scores(world: World) -> dict[str, np.ndarray]:
    """Random numbers, scores, and quantiles of given weights."""
    u = ns.node_uniforms(np.arange(NODES), 0)
    matrix = ns.aps_scores(world.probabilities, u)
    scores = matrix[world.calibration, world.labels[world.calibration]]
    exact = [ns.weighted_quantile(scores[:50], np.arange(50) % 4 / 3, alpha) for alpha in (0.05, 0.2, 0.5)]
    return {"u": u, "scores": matrix, "quantile": np.array(exact)}


#: What the first version called the methods of the comparison.
FIRST_NAMES = {"split": "APS", "naps": "NAPS", "naps-h": "NAPS-H", "naps-g": "NAPS-G"}


def first_named(row: dict) -> dict:
    """Return a row of the comparison as the first version wrote it."""
    return {key: value for key, value in row.items() if key != "title"} | {"method": FIRST_NAMES[row["method"]]}


def of_metrics(world: World) -> dict[str, np.ndarray]:
    """What is made of sets: metrics, partitions, the comparison."""
    from napsets.evaluation.comparison import compare

    parts = ns.neighbourhood_partition(world.graph, world.nodes, min_size=5, seed=3)
    compared = compare(
        world.graph,
        world.probabilities,
        world.labels,
        world.calibration,
        world.nodes,
        alphas=(0.05, 0.3),
        seed=1,
        methods=tuple(FIRST_NAMES),
    )
    answers = {
        "partition": np.concatenate(parts),
        "partition sizes": np.array([part.size for part in parts]),
        "comparison": np.array(json.dumps([first_named(row) for row in compared.rows()], sort_keys=True)),
        "homophily": np.array([ns.node_homophily(world.graph, world.labels), ns.expected_homophily(world.labels)]),
    }
    for result in compared:
        name = FIRST_NAMES[result.name]
        answers[f"comparison/{name}/curve"] = np.stack([result.curve_coverage, result.curve_size])
        answers |= {f"comparison/{name}/{key}": value for key, value in kept(result.sets).items()}
    return answers


def answers() -> dict[str, np.ndarray]:
    """All of it."""
    world = World()
    return {**of_sets(world), **of_scores(world), **of_metrics(world)}


def write() -> None:
    """Write the answers."""
    np.savez_compressed(FOLDER / "answers.npz", **answers())


if __name__ == "__main__":
    write()
