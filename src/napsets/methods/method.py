"""A method is a score × a localiser × a level (× groups): settings alone, which can be written as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, check_scores
from napsets.checks.values import check_flag, check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.graph import Direction
from napsets.groups import Grouping, describe_groups, make_groups, rebuild_groups
from napsets.kernels.threads import Progress
from napsets.levels import LEVELS, Full, Level, Nominal
from napsets.localisers import LOCALISERS, Everyone, Local, Localiser
from napsets.localisers.hops import Decay
from napsets.methods.calibrated import Calibrated
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.grouped import Grouped
from napsets.methods.predictor import Calibrates
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
        scored = data.scored(self.score, self.level, self.seed, on_request=True)
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
