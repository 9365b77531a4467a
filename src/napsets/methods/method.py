"""A method is a score × a localiser × a level; calibrated, it never changes again.

`Method.calibrate` gives a frozen `Calibrated`, which predicts for one alpha or for several from one search.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_column,
    check_alpha,
    check_flag,
    check_index,
    check_kind,
    check_list,
    check_seed,
    shown,
)
from napsets.checks.frozen import sealed
from napsets.errors import InvalidInputError, NapsetsWarning
from napsets.graph import Graph
from napsets.groups import ByClass, Clustered, Grouping, make_groups
from napsets.intervals import PredictionIntervals
from napsets.levels import FittedLevel, Level, Nominal
from napsets.localisers import (
    Everyone,
    HopsLocal,
    Local,
    Localiser,
    LocalThresholds,
    PathLengthsLocal,
    share_length_search,
    share_search,
)
from napsets.localisers.neighbourhoods import check_threads
from napsets.methods.given import Given, Scored
from napsets.methods.grouped import Grouped
from napsets.scores import APS, BoundIntervals, BoundScore, InformedIntervals, is_regression, learns, make_score
from napsets.scores.residuals import IntervalScore
from napsets.sets import PredictionSets, members, score_pieces

__all__ = ["Calibrated", "Method", "fill_sets", "find_thresholds"]


@dataclass(frozen=True)
class Method:
    """A score × a localiser × a level, × groups where coverage is wanted for each class or group.

    Parameters
    ----------
    score : Score or str
        How badly a label fits.
    localiser : Localiser
        How the threshold depends on the node: `Everyone` (split conformal prediction), `Hops` (NAPS), …
    level : Level
        `Nominal()`, or `Exact()` for a level set on labels kept apart.
    seed : int
        Seed of each node's uniform number and of the split, functions of seed and node id alone.
    allow_empty : bool
        With False, a set that would be empty gets the best label.
    groups : Groups, str or array, optional
        Within what coverage is to hold: "class", "clusters" (of classes), "degree", "community", or an array with the
        group of each node (see `napsets.groups`).

    Examples
    --------
    >>> from napsets.levels import Exact
    >>> from napsets.localisers import Hops
    >>> Method("aps", Hops(hops=2, pool=10), Exact()).level
    Exact(share=0.5)
    """

    score: Any = field(default_factory=APS)
    localiser: Localiser = field(default_factory=Everyone)
    level: Level = field(default_factory=Nominal)
    seed: int = 0
    allow_empty: bool = True
    groups: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", make_score(self.score))
        object.__setattr__(self, "groups", make_groups(self.groups))
        object.__setattr__(self, "seed", check_seed(self.seed))
        object.__setattr__(self, "allow_empty", check_flag("allow_empty", self.allow_empty))
        for name in ("localiser", "level"):
            value: object = getattr(self, name)
            if isinstance(value, type):
                raise InvalidInputError(
                    f"`{name}` must be a {name.capitalize()}; got the class {value.__name__} (write {value.__name__}() "
                    f"with brackets)"
                )
        check_kind("localiser", self.localiser, Localiser, way="Take Everyone(), Hops() or PathLengths().")  # type: ignore[type-abstract]
        check_kind("level", self.level, Level, way="Take Nominal() or Exact().")  # type: ignore[type-abstract]
        for what, learner in (("score", self.score), ("grouping", self.groups)):
            if learns(learner) and not self.level.keeps_apart:
                raise InvalidInputError(
                    f"`level` must be exact for a {what} that learns from labels; {type(learner).__name__} does. Pass "
                    f"exact=True, or level=Exact()."
                )

        if is_regression(self.score) and not isinstance(self.score, IntervalScore | InformedIntervals):
            raise InvalidInputError(
                f"`score` must be one of numbers itself, or InformedIntervals of one; {type(self.score).__name__} "
                f"looks at labels"
            )
        if is_regression(self.score) and isinstance(self.groups, ByClass | Clustered):
            raise InvalidInputError(
                f"`by` must group nodes with a score of numbers, which has no classes; got {type(self.groups).__name__}"
            )

    def __repr__(self) -> str:
        # Most methods have no groups: they are not spoken of then.
        told = [one for one in fields(self) if one.name != "groups" or self.groups is not None]
        return f"Method({', '.join(f'{one.name}={getattr(self, one.name)!r}' for one in told)})"

    def calibrate(
        self,
        graph: Any,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Calibrated:
        """Score the labelled nodes and set the level; arguments as in `NAPS.calibrate`."""
        return self.fit(check_given(self.score, graph, probabilities, labels, calibration, ids, class_names))

    def fit(self, given: Given) -> Calibrated:
        """Do what `calibrate` does with arguments that were checked."""
        return self.on(given.scored(self.score, self.level, self.seed))

    def on(self, scored: Scored) -> Calibrated:
        """Calibrate on nodes that were scored already."""
        local = self.localiser.fit(scored.reference)
        shares = local.ranks(scored.apart, scored.apart_scores) if scored.apart.size else np.empty(0)
        return self.with_ranks(scored, local, shares)

    def with_ranks(
        self, scored: Scored, local: Local, shares: FloatArray, grouping: Grouping | None = None
    ) -> Calibrated:
        """Calibrate on nodes that were scored and ranked already; groups that were found already may be given."""
        level = self.level.fit(scored.reference, shares, scored.apart_scores)
        if self.groups is None:
            return Calibrated(self, scored, local, level)
        if scored.labels.size != scored.reference.nodes.size:
            raise InvalidInputError(
                "`by` must be set before calibrate(...): a file keeps labels only of methods that judge by groups"
            )
        if grouping is None:
            grouping = self.groups.fit(scored.reference, scored.labels, num_labels(scored.bound))
        size = num_labels(scored.bound) if getattr(grouping, "of", "") == "label" else scored.reference.num_nodes
        if not isinstance(grouping, Grouping) or grouping.groups.shape != (size,):
            raise InvalidInputError(
                f"`by` must give a Grouping with a group for each label or node; {type(self.groups).__name__}.fit gave "
                f"{shown(grouping)}"
            )
        grouped = Grouped(
            grouping,
            Calibrated(replace(self, groups=None), scored, local, level),
            grouping.of_labelled(scored.reference.nodes, scored.labels),
            grouping.of_labelled(scored.apart, scored.apart_labels),
            shares,
        )
        return Calibrated(self, scored, local, level, grouped=grouped)


@dataclass(frozen=True, eq=False, repr=False)
class Calibrated:
    """A method that has seen labels, and never changes again.

    Attributes
    ----------
    method : Method
        Its settings.
    scored : Scored
        The nodes and their scores.
    local : Local
        The localiser of the reference nodes.
    level : FittedLevel
        The level that the labels kept apart gave.
    choice : Choice or None
        How the method was chosen, where it was (see `napsets.methods.auto`).
    grouped : Grouped or None
        A calibration for each group, where coverage is wanted for each.
    """

    method: Method
    scored: Scored
    local: Local
    level: FittedLevel
    choice: Any = None
    grouped: Grouped | None = None

    def __repr__(self) -> str:
        labels, apart = self.scored.calibration.size, self.scored.apart.size
        level = f"level set on {apart} of them" if self.is_exact else "level 1 − alpha"
        return f"Calibrated({self.method!r}, {labels} labels, {level})"

    @property
    def score(self) -> BoundScore:
        """The score of every node."""
        return self.scored.bound

    @property
    def graph(self) -> Graph | None:
        """The graph whose neighbourhoods count."""
        return self.scored.reference.graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.scored.reference.num_nodes

    @property
    def is_exact(self) -> bool:
        """Whether labels were kept apart to set the level."""
        return self.method.level.keeps_apart

    @property
    def is_regression(self) -> bool:
        """Whether it gives intervals of numbers instead of sets of labels."""
        return isinstance(self.score, BoundIntervals)

    @overload
    def predict(
        self, nodes: ArrayLike, alpha: float = ..., *, allow_empty: bool | None = ..., threads: int | None = ...,
        progress: Any = ...,
    ) -> PredictionSets: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike, alpha: Sequence[float], *, allow_empty: bool | None = ..., threads: int | None = ...,
        progress: Any = ...,
    ) -> list[PredictionSets]: ...  # fmt: skip

    def predict(
        self,
        nodes: ArrayLike,
        alpha: float | Sequence[float] = 0.1,
        *,
        allow_empty: bool | None = None,
        threads: int | None = None,
        progress: Any = None,
    ) -> PredictionSets | list[PredictionSets]:
        """Return the prediction sets of `nodes`: for one alpha, or a list of them for several from one search.

        Parameters
        ----------
        nodes : array
            Node indices or a boolean mask.
        alpha : float or sequence of floats
            Error rates.
        allow_empty : bool, optional
            Overrides the setting of the same name.
        threads, progress
            As in `hop_thresholds`.
        """
        sets: PredictionSets | list[PredictionSets]
        sets = self._predict(nodes, alpha, allow_empty, threads, progress, stacklevel=3)
        return sets

    def _predict(
        self,
        nodes: ArrayLike,
        alpha: float | Sequence[float],
        allow_empty: bool | None,
        threads: int | None,
        progress: Any,
        stacklevel: int,
    ) -> Any:
        several, alphas = check_rates(alpha)
        check_threads(threads)
        chosen = self.check_nodes(nodes, stacklevel=stacklevel)
        allowed = None if allow_empty is None else check_flag("allow_empty", allow_empty)
        found = find_thresholds([self], chosen, alphas, threads=threads, progress=progress)[0]
        caveat = None if self.grouped is None else self.grouped.caveat(chosen, alphas)
        if caveat is not None:
            warnings.warn(caveat, NapsetsWarning, stacklevel=stacklevel)
        if self.is_regression:
            intervals = [self.intervals(chosen, found, a, alphas[a]) for a in range(len(alphas))]
            return intervals if several else intervals[0]
        member = np.empty((len(alphas), chosen.size, self.score.probabilities.shape[1]), dtype=bool)
        for _, a, rows, piece in fill_sets([self], [found], chosen, allowed):
            member[a, rows] = piece
        sets = [self.sets(chosen, sealed(member[a]), found, a, alphas[a]) for a in range(len(alphas))]
        return sets if several else sets[0]

    def sets(
        self, nodes: IntArray, member: npt.NDArray[np.bool_], found: LocalThresholds, row: int, alpha: float
    ) -> PredictionSets:
        """Put together what was found for one alpha."""
        support, effective_size = found.rests_on(row)
        return PredictionSets(
            nodes,
            member,
            found.values[row],
            support,
            effective_size,
            alpha,
            class_names=self.scored.class_names,
            num_nodes=self.num_nodes,
            ids=None if self.scored.ids is None else self.scored.ids[nodes],
            level=self.level.level(alpha) if self.is_exact and self.grouped is None else None,
            label_thresholds=None if found.by_group is None else sealed(found.of_labels(row, slice(None))),
        )

    def intervals(self, nodes: IntArray, found: LocalThresholds, row: int, alpha: float) -> PredictionIntervals:
        """Put together what was found for one alpha, where targets are numbers."""
        support, effective_size = found.rests_on(row)
        bound: Any = self.score
        lower, upper = bound.interval(nodes, found.values[row])
        return PredictionIntervals(
            nodes,
            lower,
            upper,
            found.values[row],
            support,
            effective_size,
            alpha,
            num_nodes=self.num_nodes,
            level=self.level.level(alpha) if self.is_exact and self.grouped is None else None,
            ids=None if self.scored.ids is None else self.scored.ids[nodes],
            centre=bound.centre(nodes),
        )

    def stand_in(self, matrix: FloatArray, nodes: IntArray, allow_empty: bool | None = None) -> IntArray | None:
        """Return the labels that stand in for empty sets, or None where sets may be empty.

        They are those with the smallest score: the first to enter as sets grow, unless labels have thresholds of their
        own, so that sets stay nested. Of several, the most probable one.
        """
        if self.method.allow_empty if allow_empty is None else allow_empty:
            return None
        smallest = matrix == matrix.min(axis=1, keepdims=True)
        best: IntArray = np.where(smallest, self.score.probabilities[nodes], -1.0).argmax(axis=1)
        return best

    def check_nodes(self, nodes: ArrayLike, *, stacklevel: int) -> IntArray:
        """Return node indices, with a warning where some of them helped to calibrate."""
        chosen = check_index("nodes", self._places_of(nodes), self.num_nodes)
        calibrates = np.zeros(self.num_nodes, dtype=bool)
        calibrates[self.scored.calibration] = True
        both = int(calibrates[chosen].sum())
        if both:
            warnings.warn(
                f"`nodes` holds {both} calibration nodes; a node's own label is left out of its own set"
                + (", though it helped to set the level" if self.is_exact else ""),
                NapsetsWarning,
                stacklevel=stacklevel + 1,
            )
        return chosen

    def _places_of(self, nodes: ArrayLike) -> ArrayLike:
        """Return the indices of nodes that are given by name, and anything else as it is."""
        named = as_column("nodes", nodes)
        if named.dtype.kind not in "UO" or not all(isinstance(name, str) for name in named.flat):
            return nodes
        if self.scored.ids is None:
            raise InvalidInputError("`nodes` must be numbers, or calibrate(...) be given the nodes' names as ids=")
        asked = named.reshape(-1).astype(str)
        order = np.argsort(self.scored.ids.astype(str), kind="stable")
        known = self.scored.ids[order].astype(str)
        places = np.searchsorted(known, asked)
        twice = np.searchsorted(known, asked, side="right") - places > 1
        if twice.any():
            raise InvalidInputError(
                f"`nodes` must hold names of one node each; several are called {shown(str(asked[twice][0]))}"
            )
        lost = (places == known.size) | (known[np.minimum(places, known.size - 1)] != asked)
        if lost.any():
            raise InvalidInputError(
                f"`nodes` must hold names that are among the ids; {int(lost.sum())} are not, "
                f"{shown(str(asked[lost][0]))} first"
            )
        found: IntArray = order[places]
        return found


def check_given(
    score: Any,
    graph: Any,
    outputs: ArrayLike,
    labels: ArrayLike,
    calibration: ArrayLike,
    ids: ArrayLike | None,
    class_names: Sequence[str] | None = None,
) -> Given:
    """Refuse arguments that a score cannot be calibrated on: probabilities and labels, or outputs and targets."""
    if not is_regression(score):
        return Given.check(graph, outputs, labels, calibration, ids, class_names)
    if class_names is not None:
        raise InvalidInputError(f"`class_names` must be None with a score of numbers; {type(score).__name__} is one")
    return Given.of_targets(graph, outputs, labels, calibration, ids)


def num_rows(bound: BoundScore) -> int:
    """Return how many nodes a bound score knows."""
    return int((bound.outputs if isinstance(bound, BoundIntervals) else bound.probabilities).shape[0])


def num_labels(bound: BoundScore) -> int:
    """Return how many labels there are; none where targets are numbers."""
    return 0 if isinstance(bound, BoundIntervals) else int(bound.probabilities.shape[1])


def check_rates(alpha: Any) -> tuple[bool, list[float]]:
    """Return whether several error rates were given, and the rates one by one."""
    several = isinstance(alpha, list | tuple) or np.ndim(alpha) > 0
    if not several:
        return False, [check_alpha(alpha)]
    rates = check_list("alpha", alpha, "error rates")
    if not rates:
        raise InvalidInputError("`alpha` must hold at least one error rate; it is empty")
    for rate in rates:
        if isinstance(rate, list | tuple) or np.ndim(rate) > 0:
            raise InvalidInputError(f"`alpha` must be a number or a list of numbers; got {shown(rate)} in a list")
    return True, [check_alpha(rate) for rate in rates]


def fill_sets(
    calibrated: Sequence[Calibrated],
    found: Sequence[LocalThresholds],
    nodes: IntArray,
    allow_empty: bool | None = None,
) -> Iterator[tuple[int, int, slice, npt.NDArray[np.bool_]]]:
    """Turn thresholds into sets, some nodes at a time: which method, which alpha, which nodes, and their members.

    Methods of one score share its matrix, so that no more of them is held than a piece.
    """
    by_score: dict[int, list[int]] = {}
    for m, each in enumerate(calibrated):
        by_score.setdefault(id(each.score), []).append(m)
    for group in by_score.values():
        for rows, matrix in score_pieces(calibrated[group[0]].score, nodes):
            for m in group:
                best = calibrated[m].stand_in(matrix, nodes[rows], allow_empty)
                for a in range(len(found[m].values)):
                    yield m, a, rows, members(matrix, found[m].of_labels(a, rows), top_labels=best)


def find_thresholds(
    calibrated: Sequence[Calibrated],
    nodes: IntArray,
    alphas: Sequence[float],
    *,
    threads: int | None = None,
    progress: Any = None,
) -> list[LocalThresholds]:
    """Return the thresholds of several calibrated methods, shape (alphas, nodes) each.

    Weightings of the same scored nodes share one search.
    """
    cuts = [each.level.cuts(alphas) for each in calibrated]
    found: list[LocalThresholds | None] = [None] * len(calibrated)
    together: dict[tuple[Any, int], list[int]] = {}
    for i, each in enumerate(calibrated):
        if each.grouped is not None:
            find = partial(find_thresholds, threads=threads)
            found[i] = each.grouped.thresholds(nodes, alphas, find)
        elif isinstance(each.local, HopsLocal):
            together.setdefault((share_search, id(each.local.reference)), []).append(i)
        elif isinstance(each.local, PathLengthsLocal):
            together.setdefault((share_length_search, id(each.local.reference)), []).append(i)
        else:
            found[i] = each.local.thresholds(nodes, cuts[i], threads=threads)
    for (share, _), members_ in together.items():
        locals_ = [calibrated[i].local for i in members_]
        shared = share(locals_, nodes, [cuts[i] for i in members_], threads=threads, progress=progress)
        for i, one in zip(members_, shared, strict=True):
            found[i] = one
    if progress is not None and nodes.size and not together:
        progress(nodes.size, nodes.size)
    return [
        one if each.grouped is not None else each.level.thresholds(one, nodes, alphas)
        for each, one in zip(calibrated, found, strict=True)
        if one is not None
    ]
