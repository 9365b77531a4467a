"""What the kernels of `napsets.kernels.candidates` read and write: a judge is a labelled node that others hear."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Cuts", "Heard", "Judges", "Listed", "Room", "Rule", "choose_listed", "room_for"]

#: Columns of `Judges.tables`: the weights of labels that a score sees; labels counted near and far, with what is added
#: to all counts; and, for a label that is added far away, by how much the score moves at the most for each unit of its
#: share, up to which share that holds, and what the score is without it. The last three stand twice: for a label that
#: is added far away alone, and for one that is added near too.
WEIGHT, NEAR, FAR, SLACK, STEADY, SCORE = range(6)
#: Columns of `Judges.facts`: the share of its own label's weight that counts in a judge's score, and up to which share
#: of any label that is added far away alone it stays where it is, outside all cuts.
KEPT, LIMIT = range(2)
#: Columns of `Judges.numbers`: a judge's label, whose cuts are its own, and its number in the order of scores.
LABEL, GROUP, PLACE = range(3)


class Judges(NamedTuple):
    """What is known of the judges.

    Attributes
    ----------
    tables : float64 of shape (judges, 9, labels)
        As above.
    limits : float64 of shape (judges, 2, labels)
        For a label that is added far away alone, and for one that is added near too: up to which share a judge's score
        stays below all cuts; the negative of that where it stays above them, and 0 where it may be anywhere.
    facts : float64 of shape (judges, 2)
        As above.
    numbers : int64 of shape (judges, 3)
        As above.
    """

    tables: Any
    limits: Any
    facts: Any
    numbers: Any


class Heard(NamedTuple):
    """Who hears a node: compressed rows of the nodes that have it as a neighbour, and of the judges that do.

    Attributes
    ----------
    indptr, indices : arrays
        Nodes that have each node as a neighbour.
    judge_indptr, judge_indices : arrays
        Judges that have.
    shares : float64
        What each node passes on of a label.
    """

    indptr: Any
    indices: Any
    judge_indptr: Any
    judge_indices: Any
    shares: Any


class Cuts(NamedTuple):
    """Between what scores are to be told apart.

    Attributes
    ----------
    low, high : float64 of shape (windows, groups, cuts)
        A judge of a group is below a cut if its score is less than the first, and above it if it is more than the
        second.
    starts : int64 of shape (windows, cuts + 1)
        The number of the first judge, in the order of scores, at each cut; the last is where they end.
    values : float64 of shape (cuts,)
        What stands at the cuts, where one window serves all.
    """

    low: Any
    high: Any
    starts: Any
    values: Any


class Rule(NamedTuple):
    """How scores are made of weights: exponents of the counts, the margin, and whether all labels above one count."""

    near: float
    far: float
    margin: float
    ranked: bool
    known: bool


class Room(NamedTuple):
    """What a kernel writes on.

    Attributes
    ----------
    added : float64 of shape (judges, 2)
        What a node adds to the counts near and far of each judge; zero between two nodes.
    touched : int64 of shape (judges, 4)
        Judges that hear it; those that move, and the lowest and highest position of each.
    counts : int64 of shape (3, positions)
        Scores at each cut, and changed ones at each position, counted by the lowest and by the highest.
    """

    added: Any
    touched: Any
    counts: Any


class Listed(NamedTuple):
    """Scores that are to be compared to the bit, and numbers of scores at cuts among them.

    Attributes
    ----------
    numbers : int64 of shape (entries, 3)
        Row × candidates + candidate; which judge, −1 for a cut; how many scores stand there.
    values : float64 of shape (entries, 2)
        What is added to the judge's counts near and far; or the value of the cut, twice.
    """

    numbers: Any
    values: Any


def room_for(judges: int, cuts: int, entries: int) -> tuple[Room, Listed]:
    """Return space for one thread, and for so many listed entries."""
    touched, counts = np.empty((judges, 4), dtype=np.int64), np.empty((3, 2 * cuts + 1), dtype=np.int64)
    listed = Listed(np.empty((entries, 3), dtype=np.int64), np.empty((entries, 2)))
    return Room(np.zeros((judges, 2)), touched, counts), listed


def choose_listed(
    values: npt.NDArray[np.float64],
    ranks: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
) -> None:
    """Write the scores that are wanted of those listed for each group."""
    order = np.lexsort((scores, numbers[:, 0]))
    groups, starts = np.unique(numbers[order, 0], return_index=True)
    reached = np.append(0, np.cumsum(numbers[order, 2]))
    wanted = np.searchsorted(reached, reached[starts] + ranks.reshape(-1)[groups], side="left") - 1
    values.reshape(-1)[groups] = scores[order][wanted]
