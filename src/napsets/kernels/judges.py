"""What the kernel of `napsets.kernels.candidates` reads and writes: a judge is a labelled node that others hear."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: Columns of `Judges.tables`: the weights of labels that a score sees, and those with the label added near; labels
#: counted near and far, with what is added to all counts.
WEIGHT, WITH_NEAR, NEAR, FAR = range(4)
#: Columns of `Judges.facts`: the share of its own label's weight that counts in a judge's score; what limits are made
#: of: the score, by how much it moves at most for each unit of a share, and up to which share that holds; the
#: sum of all weights, the largest weight of another label that does not count in the score, and the sum of this and of
#: those that do; and by how much a weight grows at most if its label is added near, and for each unit of a share,
#: without and with that.
KEPT, SCORE, SLACK, STEADY, TOTAL, NEXT, REACH, GROWTH, SLOPE, NEAR_SLOPE = range(10)
#: Columns of `Judges.numbers`: a judge's label, whose cuts are its own, and its number in the order of scores.
LABEL, GROUP, PLACE = range(3)
#: What a neighbour counts in the sum of both counts: more than all shares together, and exact beside them.
NEIGHBOUR = 2.0**22


class Judges(NamedTuple):
    """What is known of the judges.

    Attributes
    ----------
    tables : float64 of shape (judges, 4, labels)
        As above.
    facts : float64 of shape (judges, 10)
        As above.
    numbers : int64 of shape (judges, 3)
        As above.
    limits : float64 of shape (judges,)
        Up to which share of any label that is added far away alone a judge stays where it is, outside all cuts.
    """

    tables: Any
    facts: Any
    numbers: Any
    limits: Any


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
    """

    low: Any
    high: Any
    starts: Any


class Rule(NamedTuple):
    """How scores are made of weights.

    Attributes
    ----------
    near, far : float
        Exponents of the counts.
    gentle : bool
        Whether the first is 0 or more, and the second between 0 and 1.
    margin : float
        What rounding may change a score by.
    least, most : float
        A label counts in the score of another if its weight is more than `most` times the other's, does not if it is
        less than `least` times that, and may in between.
    known : bool
        Whether all this describes the score.
    """

    near: float
    far: float
    gentle: bool
    margin: float
    least: float
    most: float
    known: bool


class Room(NamedTuple):
    """What a kernel writes on.

    Attributes
    ----------
    added : float64 of shape (judges,)
        What a node adds to the counts of each judge, both together; zero between two nodes.
    touched : int64 of shape (judges + 1,)
        Judges that hear it.
    """

    added: Any
    touched: Any


class Moves(NamedTuple):
    """Judges that may have left their places.

    Attributes
    ----------
    numbers : int64 of shape (moves, 4)
        Row × candidates + candidate; which judge; its lowest and highest possible position.
    values : float64 of shape (moves, 2)
        What is added to the judge's counts near and far.
    """

    numbers: Any
    values: Any


def room_for(judges: int, moves: int) -> tuple[Room, Moves]:
    """Return space for one thread and this many moves."""
    room = Room(np.zeros(judges), np.empty(judges + 1, dtype=np.int64))
    return room, Moves(np.empty((moves, 4), dtype=np.int64), np.empty((moves, 2)))


def choose_listed(
    groups: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return the ranks-th smallest score of each group, from 1, where scores may count several times.

    Parameters
    ----------
    groups, scores, counts : arrays
        Which group each entry belongs to, numbered from 0 without gaps; its score, and how often it counts.
    ranks : array
        Which score is wanted of each group.
    """
    order = np.lexsort((scores, groups))
    starts = np.searchsorted(groups[order], np.arange(ranks.size))
    reached = np.append(0, np.cumsum(counts[order]))
    wanted = np.searchsorted(reached, reached[starts] + ranks, side="left") - 1
    chosen: npt.NDArray[np.float64] = scores[order][wanted]
    return chosen
