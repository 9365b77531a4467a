"""What the goldens are computed on: small graphs, labels, numbers and outputs of models, all made of integers.

Ratios of integers are the same on every processor, so that an answer that differs differs because of napsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import napsets as ns

CLASSES = ("ash", "beech", "cedar", "oak", "yew")
#: The columns that a model gives for each score of numbers.
COLUMNS = {"cqr": ("lower", "upper"), "absolute": ("prediction",), "normalised": ("prediction", "spread")}


@dataclass(frozen=True)
class World:
    """A graph whose last nodes are isolated, what models say of its nodes, and the truth.

    Attributes
    ----------
    ends, lengths
        The edges, and how long each is.
    probabilities, labels, features, targets, centre, spread
        One row or entry per node.
    calibration, nodes
        Whose labels are known, and whose sets are asked for (a few labelled ones among them).
    """

    directed: bool
    long: bool
    ends: np.ndarray
    lengths: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray
    features: np.ndarray
    targets: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    calibration: np.ndarray
    nodes: np.ndarray

    @property
    def size(self) -> int:
        return int(self.labels.size)

    @property
    def graph(self) -> ns.Graph:
        lengths = self.lengths if self.long else None
        return ns.Graph.from_edge_index(self.ends, num_nodes=self.size, directed=self.directed, lengths=lengths)

    @property
    def rest(self) -> np.ndarray:
        """The nodes whose labels judge."""
        return np.setdiff1d(np.arange(self.size), self.calibration)

    @property
    def known(self) -> np.ndarray:
        """The labels as a user has them: −1 where they are to be predicted."""
        return np.where(np.isin(np.arange(self.size), self.calibration), self.labels, -1)

    @property
    def known_targets(self) -> np.ndarray:
        return np.where(np.isin(np.arange(self.size), self.calibration), self.targets, np.nan)

    @property
    def numbers(self) -> np.ndarray:
        """Groups of the user's own, by number; some nodes are in none."""
        return np.arange(self.size) // 7 % 4 - 1

    @property
    def names(self) -> np.ndarray:
        """Groups of the user's own, by name."""
        return np.array(["north", "south", "", "west"])[np.arange(self.size) * 5 % 11 % 4]

    @property
    def ids(self) -> np.ndarray:
        return np.array([f"né-{7 * node % 1009:04d}" for node in range(self.size)])

    @property
    def single(self) -> np.ndarray:
        return self.probabilities.astype(np.float32)

    def outputs(self, score: str) -> np.ndarray:
        """What the model says, for a score of numbers."""
        columns = {
            "lower": self.centre - self.spread,
            "upper": self.centre + self.spread,
            "prediction": self.centre,
            "spread": self.spread,
        }
        return np.column_stack([columns[name] for name in COLUMNS[score]])


def make_world(
    seed: int,
    size: int,
    labelled: int,
    *,
    asked: int = 60,
    directed: bool = False,
    long: bool = False,
    uneven: bool = False,
) -> World:
    """Draw a ring of regions: neighbours are mostly near and alike, two nodes are hubs, the last six are isolated.

    In an uneven one, neighbours' labels tell nothing, and half of the ring is much harder than the other half.
    """
    rng = np.random.default_rng(seed)
    inside = size - 6
    region = np.arange(size) * 12 // size
    usual = np.array([0, 1, 0, 2, 0, 1, 3, 0, 2, 1, 0, 4])[region]
    labels = np.where(rng.random(size) < (1.0 if uneven else 0.25), rng.integers(0, len(CLASSES), size), usual)
    source = rng.integers(0, inside, size * 5)
    near = (source + rng.integers(1, max(3, size // 20), source.size)) % inside
    hubs = np.stack([np.repeat([5, size // 2], size // 8), rng.integers(0, inside, size // 8 * 2)])
    ends = np.hstack([np.stack([source, near]), hubs])
    shares = rng.integers(1, 30, (size, len(CLASSES)))
    hard = uneven & (region < 6)
    shares[np.arange(size), labels] += np.where(hard, 0, rng.integers(0, 90, size) + 200 * uneven)
    shares[rng.random(size) < 0.1] = 16  # rows of equal probabilities, so that scores tie
    order = rng.permutation(size)
    calibration = np.sort(order[:labelled])
    wanted = np.concatenate([order[labelled : labelled + asked - 8], calibration[:6], [size - 1, size - 2]])
    spread = rng.integers(16, 80, size) / 32
    centre = rng.integers(-160, 160, size) / 32
    noise = rng.integers(-64, 65, size) / 32 * spread * np.where(hard, 6, 1)
    return World(
        directed=directed,
        long=long,
        ends=ends,
        lengths=rng.integers(2, 24, ends.shape[1]) / 8,
        probabilities=shares / shares.sum(axis=1)[:, None],
        labels=labels,
        features=rng.integers(0, 4, (size, 6)) + 3.0 * (np.arange(6) == labels[:, None]),
        targets=centre + (region % 3 - 1) * 1.5 + noise,
        centre=centre,
        spread=spread,
        calibration=calibration,
        nodes=np.unique(wanted)[::-1],
    )


_WORLDS: dict[str, dict[str, Any]] = {
    "plain": {"seed": 1, "size": 240, "labelled": 130},
    "directed": {"seed": 2, "size": 220, "labelled": 120, "directed": True},
    "lengths": {"seed": 3, "size": 220, "labelled": 120, "long": True},
    "directed lengths": {"seed": 4, "size": 220, "labelled": 120, "directed": True, "long": True},
    "few labels": {"seed": 5, "size": 160, "labelled": 60, "asked": 40},
    "many labels": {"seed": 6, "size": 1500, "labelled": 1100},
    "many labels, lengths": {"seed": 7, "size": 1000, "labelled": 650, "long": True},
    "many labels, directed": {"seed": 8, "size": 1000, "labelled": 650, "directed": True},
    "uneven": {"seed": 11, "size": 1000, "labelled": 700, "uneven": True},
    "uneven lengths": {"seed": 12, "size": 1000, "labelled": 700, "uneven": True, "long": True},
    "report": {"seed": 13, "size": 700, "labelled": 330},
    "report, directed": {"seed": 14, "size": 300, "labelled": 140, "directed": True},
    "saved": {"seed": 9, "size": 125, "labelled": 101, "asked": 24},
    "saved lengths": {"seed": 10, "size": 110, "labelled": 80, "asked": 24, "directed": True, "long": True},
}


@cache
def world(name: str) -> World:
    """Return the world of that name."""
    return make_world(**_WORLDS[name])
