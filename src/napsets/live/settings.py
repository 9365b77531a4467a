"""The settings of a living graph: its method, its error rate, its seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from napsets.checks.values import check_alpha, check_flag, check_names, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.levels import Exact, Nominal
from napsets.live.steering import Steered
from napsets.localisers import Everyone, Hops
from napsets.methods.auto import Auto
from napsets.methods.method import Method
from napsets.methods.table import make_method
from napsets.scores import ByLabel, Informed, RowScore
from napsets.scores.base import uses_features


@dataclass(frozen=True)
class LiveSettings:
    """The settings of a living graph, which never change."""

    method: Method | Auto  #: The method of the sets.
    alpha: float = 0.1  #: The error rate at which sets are judged, and the default of `predict`.
    class_names: tuple[str, ...] | None = None  #: The names of the classes.
    directed: bool = False  #: Whether edges have a direction.
    steered: Steered | None = None  #: How the level follows drift; None if it stays at alpha.

    @property
    def seed(self) -> int:
        """Seed of uniform numbers and of the split."""
        return self.method.seed

    @property
    def holds_out_labels(self) -> bool:
        """Whether some labels are held out to set the level."""
        return isinstance(self.method, Auto) or self.method.level.holds_out_labels

    @property
    def compares(self) -> bool:
        """Whether the method compares nodes by their features."""
        return isinstance(self.method, Auto) or uses_features(self.method.score)

    @property
    def share(self) -> float:
        """The share of labels in the reference: 1 if none is held out."""
        if isinstance(self.method, Method) and isinstance(self.method.level, Exact):
            return self.method.level.share
        return 0.5 if self.holds_out_labels else 1.0

    @classmethod
    def check(
        cls,
        method: object,
        alpha: float,
        seed: int,
        class_names: object,
        directed: bool,
        steered: object,
        options: Mapping[str, Any],
    ) -> LiveSettings:
        """Check the settings, and that the method can follow a changing graph."""
        seed, alpha = check_seed(seed), check_alpha(alpha)
        if isinstance(method, str):
            method = make_method(method, seed=seed, alpha=alpha, **options)
        elif options:
            raise InvalidInputError(
                f"`{next(iter(options))}` must be a setting of the method itself; got {shown(method)} beside it"
            )
        names = check_names("class_names", class_names)
        if not (steered is None or isinstance(steered, Steered)):
            raise InvalidInputError(f"`steered` must be None or a Steered, such as Steered(); got {shown(steered)}")
        directed = check_flag("directed", directed)
        return cls(_followed(method, directed), alpha, None if names is None else tuple(names), directed, steered)

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain JSON; `from_description` restores them."""
        names = None if self.class_names is None else list(self.class_names)
        return {
            "method": self.method.describe(), "chooses": isinstance(self.method, Auto), "alpha": self.alpha,
            "class_names": names, "directed": self.directed,
            "steered": None if self.steered is None else asdict(self.steered),
        }  # fmt: skip

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> LiveSettings:
        """Restore the settings from what `describe` returned."""
        kind: type[Method | Auto] = Auto if description["chooses"] else Method
        method, steered = kind.from_description(description["method"]), description["steered"]
        steered = None if steered is None else Steered(**steered)
        alpha, names, directed = (description[name] for name in ("alpha", "class_names", "directed"))
        return cls.check(method, alpha, method.seed, names, directed, steered, {})


def _followed(method: object, directed: bool) -> Method | Auto:
    """Return a method whose sets can be kept up to date, or raise an error that lists such methods."""
    reason = None
    if isinstance(method, Auto):
        reason = "groups" if method.by is not None else None if method.score is None else "a score of numbers"
    elif not isinstance(method, Method):
        reason = shown(method)
    elif not _is_followed(method.score):
        reason = f"the score {method.score!r}"
    elif not isinstance(method.localiser, Everyone | Hops):
        reason = f"the localiser {type(method.localiser).__name__}"
    elif directed and isinstance(method.localiser, Hops) and method.localiser.direction != "out":
        reason = f"direction={method.localiser.direction!r}"
    elif not isinstance(method.level, Nominal | Exact):
        reason = f"the level {type(method.level).__name__}"
    elif method.groups is not None:
        reason = "groups"
    if reason is not None or not isinstance(method, Method | Auto):
        raise InvalidInputError(
            f"`method` must be one that can follow a changing graph: split, naps (pooled or not), naps-h, naps-g, "
            f"naps-exact, informed, auto or auto-small, with a score of each node's own probabilities; got {reason}. "
            f"For others, calibrate again."
        )
    return method


def _is_followed(score: object) -> bool:
    """Return whether a score looks at a node's own row, or corrects it by labels."""
    inner = score.base if isinstance(score, ByLabel) else score
    if isinstance(inner, Informed):
        return isinstance(inner.base, RowScore)
    return isinstance(inner, RowScore)
