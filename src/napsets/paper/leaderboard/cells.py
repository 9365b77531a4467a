"""Which cells the comparison is made of: a method on one draw of labels on one trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, ClassVar

from napsets.methods import METHODS
from napsets.paper.cells import Cell
from napsets.paper.leaderboard.ground import GRAPHS, MODELS, TRAINING

__all__ = ["BOARD", "QUICK_BOARD", "Board", "LeaderboardCell", "leaderboard_cells"]


@dataclass(frozen=True)
class LeaderboardCell(Cell):
    """One method on one draw of labelled nodes.

    Attributes
    ----------
    dataset, model : str
        A graph of `ground`, and a name from `napsets.gnn.MODELS`.
    seed : int
        Draws the split and trains the model.
    share : float
        The share of test nodes that are labelled.
    repetition : int
        Which draw of them.
    method : str
        A name from the table of methods.
    alpha : float
        Error rate.
    """

    study: ClassVar[str] = "leaderboard"
    dataset: str
    model: str
    seed: int
    share: float
    repetition: int
    method: str
    alpha: float = 0.1

    def settings(self) -> dict[str, Any]:
        """Return the cell's own settings, and how its model is trained."""
        return {**asdict(self), "training": TRAINING}


@dataclass(frozen=True)
class Board:
    """How much to compare.

    Attributes
    ----------
    datasets, models, seeds, shares
        Every combination is taken.
    repetitions : int
        Draws of labelled nodes for each of them.
    methods : tuple of str or None
        Names from the table of methods; None for whatever the table holds.
    sparing : tuple of str
        Methods that are run on the first model and the first repetition alone, because they take long.
    alpha : float
        Error rate.
    """

    datasets: tuple[str, ...] = GRAPHS
    models: tuple[str, ...] = MODELS
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    shares: tuple[float, ...] = (0.05, 0.3)
    repetitions: int = 2
    methods: tuple[str, ...] | None = None
    sparing: tuple[str, ...] = ()
    alpha: float = 0.1

    @property
    def names(self) -> Sequence[str]:
        """The methods by name."""
        return tuple(METHODS) if self.methods is None else self.methods


BOARD = Board()
#: A version of one or two minutes: four graphs of different kinds, two models, one seed. Its cells are the full one's.
QUICK_BOARD = Board(
    datasets=("cora-ml", "citeseer-full", "squirrel-filtered", "tolokers"),
    models=(MODELS[0], MODELS[-1]),
    seeds=(0,),
    shares=(0.3,),
    repetitions=1,
)


def leaderboard_cells(board: Board) -> list[LeaderboardCell]:
    """Return the cells, seed by seed: whenever a run is stopped, all graphs have about as many."""
    return [
        LeaderboardCell(dataset, model, seed, share, repetition, method, board.alpha)
        for seed, dataset, model, share, repetition, method in product(
            board.seeds, board.datasets, board.models, board.shares, range(board.repetitions), board.names
        )
        if method not in board.sparing or (model == board.models[0] and repetition == 0)
    ]
