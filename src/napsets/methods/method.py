"""A method is a score × a localiser × a level (× groups): settings alone, which can be written as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, check_scores
from napsets.checks.values import Record, Values, check_alpha, check_flag, check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.groups import Grouping, Groups, describe_groups, make_groups, rebuild_groups
from napsets.kernels.threads import Progress, complete
from napsets.levels import LEVELS, Level, Nominal
from napsets.localisers import LOCALISERS, Everyone, Hops, Local, Localiser, PathLengths
from napsets.methods.calibratable import Calibratable
from napsets.methods.calibrated import Calibrated
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.grouped import Grouped
from napsets.scores import APS, SCORES, learns, make_score, prediction_type


@dataclass(frozen=True)
class Method(Calibratable):
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
    alpha : float
        The error rate of `predict`, which takes any other one, too.

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
    groups: Groups | None = None
    alpha: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", make_score(self.score))
        if self.groups is not None:
            object.__setattr__(self, "groups", make_groups(self.groups))
        object.__setattr__(self, "seed", check_seed(self.seed))
        object.__setattr__(self, "allow_empty", check_flag("allow_empty", self.allow_empty))
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        for name in ("localiser", "level"):
            value: object = getattr(self, name)
            if isinstance(value, type):
                raise InvalidInputError(
                    f"`{name}` must be a {name.capitalize()}; got the class {value.__name__} (write {value.__name__}() "
                    f"with brackets)"
                )
        check_kind("localiser", self.localiser, Localiser, hint="Take Everyone(), Hops() or PathLengths().")  # type: ignore[type-abstract]
        check_kind("level", self.level, Level, hint="Take Nominal() or Exact().")  # type: ignore[type-abstract]
        for what, learner in (("score", self.score), ("grouping", self.groups)):
            if learns(learner) and not self.level.holds_out_labels:
                raise InvalidInputError(
                    f"`level` must be exact for a {what} that learns from labels; {type(learner).__name__} does. Pass "
                    f"exact=True, or level=Exact()."
                )

        check_groups_suit(self.score, self.groups)
        if getattr(self.localiser, "by_label", False) and (self.groups is not None or self.level.holds_out_labels):
            raise InvalidInputError(
                f"`level` must be Nominal() and `groups` None with {type(self.localiser).__name__}, which has a "
                f"threshold for each label and needs no held-out labels"
            )

    def __repr__(self) -> str:
        left_out = [name for name, usual in (("groups", None), ("alpha", 0.1)) if getattr(self, name) == usual]
        settings = [attribute.name for attribute in fields(self) if attribute.name not in left_out]
        return f"Method({', '.join(f'{name}={getattr(self, name)!r}' for name in settings)})"

    def describe(self) -> Record:
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
            "alpha": self.alpha,
        }

    @classmethod
    def from_description(cls, description: Values, *, groups: AnyArray | None = None, weights: object = None) -> Method:
        """Return the method that `describe` described; groups that are an array, and weights, must be given again."""
        if missing := {"score", "localiser", "level", "seed", "allow_empty", "alpha"} - set(description):
            raise InvalidInputError(
                f"`description` must be what Method.describe returns; {', '.join(sorted(missing))} are missing. "
                "Auto.from_description reads that of an automatic method"
            )
        return cls(
            SCORES.rebuild("score", description["score"]),
            LOCALISERS.rebuild("localiser", description["localiser"], {"weights": weights}),
            LEVELS.rebuild("level", description["level"]),
            description["seed"],
            description["allow_empty"],
            rebuild_groups(description.get("groups"), groups),
            description["alpha"],
        )

    @property
    def needs_graph(self) -> bool:
        """Whether thresholds depend on distances in the graph."""
        return isinstance(self.localiser, Hops | PathLengths)

    @property
    def uses_evidence(self) -> bool:
        """Whether labels are held out for the level, so that others teach."""
        return self.level.holds_out_labels

    def calibrate_data(self, data: CalibrationData) -> Calibrated:
        """Score the labelled nodes and set the level, with arguments that were checked."""
        if data.evidence is not None and not self.uses_evidence:
            raise InvalidInputError(
                "`evidence` must be left out here, where it has nothing to teach: a nominal level sets its thresholds "
                "on all calibration labels.",
                {
                    "python": "Use Auto(), make_method('informed') or NAPS(exact=True), which learn from it.",
                    "terminal": "Use --method auto, informed or naps-exact, which learn from it.",
                },
            )
        scoring, ranking = data.steps(1, 1)
        scored = data.scored(self.score, self.level, self.seed)
        complete(scoring)
        return self.on(scored, ranking)

    def on(self, scored: Scored, report: Progress | None = None) -> Calibrated:
        """Calibrate on nodes that were scored already, and report the progress of the ranks."""
        local = self.localiser.fit(scored.reference)
        nodes, ranks = scored.level_nodes, np.empty(0)
        if nodes.size:
            ranks = local.ranks(nodes, scored.level_scores, progress=report)
            ranks = check_scores("ranks", ranks, size=nodes.size, each="held-out node")  # a user's localiser made them
        complete(report)
        return self.with_ranks(scored, local, ranks)

    def with_ranks(
        self, scored: Scored, local: Local, ranks: FloatArray, grouping: Grouping | None = None
    ) -> Calibrated:
        """Calibrate on nodes that were scored and ranked already; a grouping that is known already may be passed."""
        level = self.level.fit(scored.reference, ranks, scored.level_scores)
        if self.groups is None:
            return Calibrated(self, scored, local, level)
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


def check_groups_suit(score: object, groups: object) -> None:
    """Reject groups of classes with a score of numbers, which has none."""
    prediction = prediction_type(score)
    if getattr(groups, "of", None) == "label" and prediction.truth_name != "labels":
        raise InvalidInputError(
            f"`by` must group nodes with a score of numbers, which has no classes; got {type(groups).__name__}"
        )
