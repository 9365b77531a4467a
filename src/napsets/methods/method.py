"""A method is a score × a localiser × a level (× groups): settings alone, which can be written as plain JSON.

`NAPS` is the method of the paper with its settings by name, and keeps its calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from napsets.checks.arguments import FloatArray, check_scores
from napsets.checks.values import check_flag, check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.graph import Direction
from napsets.groups import Grouping, describe_groups, make_groups, rebuild_groups
from napsets.kernels.threads import Progress
from napsets.levels import LEVELS, Exact, Full, Level, Nominal
from napsets.localisers import LOCALISERS, Everyone, Hops, Local, Localiser
from napsets.localisers.hops import Decay
from napsets.methods.calibrated import Calibrated
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.grouped import Grouped
from napsets.methods.predictor import Calibrates, Predictor
from napsets.scores import APS, SCORES, Informed, learns, make_score, prediction_type
from napsets.scores.averaged import check_features
from napsets.scores.base import can_use_held_out


@dataclass(frozen=True)
class Method(Calibrates[Calibrated]):
    """A score × a localiser × a level, × groups if coverage should hold in each class or group.

    Parameters
    ----------
    score : Score or str
        How badly a label fits.
    localiser : Localiser
        How the threshold depends on the node: `Everyone` (split conformal prediction), `Hops` (NAPS), …
    level : Level
        `Nominal()`, or `Exact()` for a level set on held-out labels.
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
        if self.groups is not None:
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

        check_groups_suit(self.score, self.groups)
        if getattr(self.localiser, "by_label", False) and (self.groups is not None or self.level.keeps_apart):
            raise InvalidInputError(
                f"`level` must be Nominal() and `groups` None with {type(self.localiser).__name__}, which has a "
                f"threshold for each label and needs no held-out labels"
            )
        if isinstance(self.level, Full):
            self._check_full()

    def _check_full(self) -> None:
        """Refuse a full level where held-out labels as evidence would have no guarantee, or no definition."""
        uses_held_out = can_use_held_out(self.score)
        if uses_held_out and not isinstance(self.localiser, Everyone):
            raise InvalidInputError(
                f"`localiser` must be Everyone() at a full level, where each candidate has a threshold of its own; got "
                f"{type(self.localiser).__name__}. Take level=Exact() for it."
            )
        inner = self.score
        while inner is not None and not uses_held_out:
            if isinstance(inner, Informed):
                raise InvalidInputError(
                    f"`score` must look at a node's own row around neighbours' labels at a full level; "
                    f"{type(self.score).__name__} with {type(inner.base).__name__} does not. Take level=Exact() for it."
                )
            inner = getattr(inner, "base", None)

    def __repr__(self) -> str:
        names = [attribute.name for attribute in fields(self)]
        settings = [name for name in names if name != "groups" or self.groups is not None]
        return f"Method({', '.join(f'{name}={getattr(self, name)!r}' for name in settings)})"

    def describe(self) -> dict[str, Any]:
        """Return the method as plain JSON, from which `from_description` makes it again.

        Functions and arrays cannot be written: a decay that is a function is refused, and of groups that are an array
        and of `Weights` only the kind is kept.

        Examples
        --------
        >>> Method("thr").describe()["score"]
        {'name': 'thr', 'settings': {}}
        """
        return {
            "score": SCORES.describe("score", self.score),
            "localiser": LOCALISERS.describe("localiser", self.localiser),
            "level": LEVELS.describe("level", self.level),
            "groups": describe_groups(self.groups),
            "seed": self.seed,
            "allow_empty": self.allow_empty,
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, groups: Any = None, weights: Any = None) -> Method:
        """Return the method that `describe` described; groups that are an array, and weights, must be given again."""
        if missing := {"score", "localiser", "level", "seed", "allow_empty"} - set(description):
            raise InvalidInputError(
                f"`description` must be what Method.describe returns; {', '.join(sorted(missing))} are missing. "
                "AutoMethod.from_description reads that of an automatic method"
            )
        return cls(
            SCORES.rebuild("score", description["score"]),
            LOCALISERS.rebuild("localiser", description["localiser"], {"weights": weights}),
            LEVELS.rebuild("level", description["level"]),
            description["seed"],
            description["allow_empty"],
            rebuild_groups(description.get("groups"), groups),
        )

    def fit(self, data: CalibrationData) -> Calibrated:
        """Score the labelled nodes and set the level, with arguments that were checked."""
        scoring, ranking = data.steps(1, 1)
        scored = data.scored(self.score, self.level, self.seed)
        if scoring is not None:
            scoring(1, 1)
        return self.on(scored, ranking)

    def on(self, scored: Scored, report: Progress | None = None) -> Calibrated:
        """Calibrate on nodes that were scored already, and report the progress of the ranks."""
        local = self.localiser.fit(scored.reference)
        nodes, ranks = scored.level_nodes, np.empty(0)
        if nodes.size:
            ranks = local.ranks(nodes, scored.level_scores, progress=report)
            ranks = check_scores("ranks", ranks, size=nodes.size, each="held-out node")  # a user's localiser made them
        if report is not None:
            report(1, 1)
        return self.with_ranks(scored, local, ranks)

    def with_ranks(
        self, scored: Scored, local: Local, ranks: FloatArray, grouping: Grouping | None = None
    ) -> Calibrated:
        """Calibrate on nodes that were scored and ranked already; a grouping that is known already may be passed."""
        level = self.level.fit(scored.reference, ranks, scored.level_scores)
        if self.groups is None:
            return Calibrated(self, scored, local, level)
        if scored.labels.size != scored.reference.nodes.size:
            raise InvalidInputError(
                "`by` must be set before calibrate(...): a file keeps labels only of methods that have groups"
            )
        labels = scored.bound.num_labels
        if grouping is None:
            grouping = self.groups.fit(scored.reference, scored.labels, labels)
        size = labels if getattr(grouping, "of", "") == "label" else scored.reference.num_nodes
        if not isinstance(grouping, Grouping) or grouping.groups.shape != (size,):
            raise InvalidInputError(
                f"`by` must give a Grouping with a group for each label or node; {type(self.groups).__name__}.fit gave "
                f"{shown(grouping)}"
            )
        grouped = Grouped(
            grouping,
            Calibrated(replace(self, groups=None), scored, local, level),
            grouping.of_labelled(scored.reference.nodes, scored.labels),
            grouping.of_labelled(scored.level_nodes, scored.level_labels),
            ranks,
        )
        return Calibrated(self, scored, local, level, grouped=grouped)


def check_groups_suit(score: Any, groups: Any) -> None:
    """Refuse groups of classes with a score of numbers, which has none."""
    prediction = prediction_type(score)
    if getattr(groups, "of", None) == "label" and prediction.truth_name != "labels":
        raise InvalidInputError(
            f"`by` must group nodes with a score of numbers, which has no classes; got {type(groups).__name__}"
        )


@dataclass(eq=False)
class NAPS(Predictor["NAPS"]):
    """Neighbourhood adaptive prediction sets (Clarkson, ICML 2023).

    Parameters
    ----------
    hops : int
        Depth of the neighbourhood, the paper's K.
    decay : str, callable or array
        Weight of a calibration node k hops away: "uniform" (NAPS), "hyperbolic" (NAPS-H), "geometric" (NAPS-G), a
        function of k, or an array indexed by k−1 with as many weights as hops.
    score : Score or str
        How badly a label fits: `APS` by default, another score, or the name of one: "aps", "raps", "saps", "thr".
    seed : int
        Seed of each node's uniform number, which is a function of seed and node id alone; from 0 to 2⁶⁴−1.
    allow_empty : bool
        With False, a set that would be empty gets the best label.
    fallback : {"full", "global"}
        What a node gets if its neighbourhood has too little weight: every label, or the threshold of all calibration
        nodes together (split conformal prediction). Not used with an exact level.
    pool : float
        All calibration nodes together count as much as this many neighbours, in addition to those nearby: for nodes
        with few labelled neighbours, all labelled nodes matter.
    alike : float
        The same for the calibration nodes with the same predicted label.
    exact : bool
        Set the level on held-out labels, so that coverage holds in finite samples whatever the weights (see
        `napsets.levels`).
    by : str, array or Groups, optional
        Groups within which coverage should hold: "class", "clusters" (of classes, with an exact level), "degree",
        "community", or an array with the group of each node (see `napsets.groups`).
    direction : {"out", "in", "both"}
        How edges of a directed graph are followed from the node: forwards, backwards, or both ways.

    Examples
    --------
    >>> import numpy as np, napsets as ns
    >>> ring = ns.Graph.from_edge_index([np.arange(100), np.roll(np.arange(100), 1)], num_nodes=100)
    >>> p = np.tile([0.7, 0.3], (100, 1))
    >>> y = np.arange(100) % 2
    >>> sets = ns.NAPS(hops=10).calibrate(ring, p, y, calibration=np.arange(90)).predict([95], alpha=0.2)
    >>> int(sets.support[0])
    11
    """

    hops: int = 2
    decay: Decay = "uniform"
    score: Any = field(default_factory=APS)
    seed: int = 0
    allow_empty: bool = True
    fallback: Literal["full", "global"] = "full"
    pool: float = 0.0
    alike: float = 0.0
    exact: bool = False
    by: Any = None
    direction: Direction = "out"
    needs_graph: ClassVar[bool] = True
    _name: ClassVar[str] = "naps"

    def _method(self) -> Method:
        localiser = Hops(self.hops, self.decay, self.pool, self.alike, self.direction)
        nominal = Nominal(self.fallback)
        exact = check_flag("exact", self.exact)
        if exact and self.fallback != "full":
            raise InvalidInputError("`fallback` must be 'full' with an exact level, under which nothing falls back")
        self.hops, self.decay, self.pool, self.alike = localiser.hops, localiser.decay, localiser.pool, localiser.alike
        return Method(self.score, localiser, Exact() if exact else nominal, self.seed, self.allow_empty, self.by)

    def _caveat(self) -> str | None:
        if self.hops or self.pool or self.alike or self.exact or self.fallback != "full":
            return None
        return (
            "`hops` is 0: no calibration node is in reach, so that every set is full. Use more hops, or "
            "fallback='global' for split conformal prediction"
        )


@dataclass(frozen=True)
class Settings:
    """The settings of all methods; each uses those that apply to it.

    Attributes
    ----------
    score, hops, decay, pool, alike, seed, allow_empty, fallback, by, direction
        As in `NAPS`. None leaves a choice to the method.
    radius : float or None
        As in `PathLengths`.
    alpha : float
        The error rate that a method which chooses is to choose for.
    level : {"nominal", "exact"} or Level, optional
        Where thresholds are taken. None leaves it to the method; one that chooses sets its own.
    features : array of shape (nodes, columns) or SciPy sparse matrix, optional
        What nodes are compared by, where a method compares them.
    """

    score: Any = field(default_factory=APS)
    hops: int = 2
    decay: Decay | None = None
    pool: float | None = None
    alike: float | None = None
    seed: int = 0
    allow_empty: bool = True
    fallback: Any = "full"
    alpha: float = 0.1
    by: Any = None
    level: Any = None
    direction: Direction = "out"
    radius: float | None = None
    features: Any = None

    def __post_init__(self) -> None:
        if self.features is not None:
            object.__setattr__(self, "features", check_features("features", self.features))
