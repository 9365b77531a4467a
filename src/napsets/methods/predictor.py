"""Predictor: settings and a calibration kept together, as scikit-learn's estimators keep them."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from operator import is_
from typing import Any, TypeVar

from napsets.checks.values import choose, shown
from napsets.errors import FileFormatError, InvalidInputError, NotCalibratedError
from napsets.levels import Exact
from napsets.methods.auto import AutoMethod
from napsets.methods.calibrated import Calibrated, Predicts
from napsets.methods.data import CalibrationData
from napsets.methods.method import Calibrates
from napsets.methods.saving import Saved, read_saved, save

Self = TypeVar("Self", bound="Predictor[Any]")
Kind = TypeVar("Kind")


@dataclass(eq=False)
class Predictor(Predicts, Calibrates[Kind]):
    """Settings and a calibration kept together."""

    calibrated_: Calibrated | None = field(default=None, init=False, repr=False)
    #: The method that was calibrated; of an automatic one the method that chose, None where a file does not say it.
    _calibrated_with: Any = field(default=None, init=False, repr=False)
    #: The settings that were checked last, and the method that they make.
    _checked: tuple[list[Any], Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.to_method()

    @abstractmethod
    def _method(self) -> Any:
        """Return the method that the settings make, which checks them."""

    def to_method(self) -> Any:
        """Return the method that the settings make as they are now: a `Method`, of an `Auto` one that chooses."""
        settings = list(self.get_params().values())
        if self._checked is not None and all(map(is_, settings, self._checked[0])):
            return self._checked[1]
        method = self._method()
        self.score, self.seed, self.allow_empty = method.score, method.seed, method.allow_empty
        self.by = method.by if isinstance(method, AutoMethod) else method.groups
        self._checked = list(self.get_params().values()), method
        return method

    def fit(self, data: CalibrationData) -> Kind:
        """Calibrate with arguments that were checked, and return this object."""
        method = self.to_method()
        self.calibrated_, self._calibrated_with = method.fit(data), method
        return self  # type: ignore[return-value]

    def calibrated(self, caller: str = "predict") -> Calibrated:
        """Return the calibration with the settings as they are now, or say that there is none."""
        method = self.to_method()
        if self.calibrated_ is None:
            raise NotCalibratedError(f"{type(self).__name__}.{caller}() needs calibrate(...) to be called first")
        if self._calibrated_with is None or method == self._calibrated_with:
            return self.calibrated_
        changed = [f"`{name}`" for name in self._scored_otherwise(method)]
        if changed:
            raise NotCalibratedError(
                f"{type(self).__name__}.{caller}() needs calibrate(...) to be called again: {' and '.join(changed)} "
                f"{'was' if len(changed) == 1 else 'were'} changed after it"
            )
        self.calibrated_, self._calibrated_with = method.on(self.calibrated_.scored), method
        return self.calibrated_

    _present = calibrated

    def _scored_otherwise(self, method: Any) -> list[str]:
        """Return the settings that were changed in such a way that nodes must be scored again."""
        scored: Any = self.calibrated_.scored  # type: ignore[union-attr]
        changed = [name for name in ("score", "seed") if getattr(method, name) != getattr(scored, name)]
        if method.level.reference_size(scored.calibration.size) != scored.reference.nodes.size:
            # Other predictors hold labels out for scores and groups that learn.
            changed += ["exact"] if hasattr(self, "exact") else [] if changed else ["by"]
        return changed

    # -- as scikit-learn's tools expect it -----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; there are no estimators inside that `deep` would look into."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self) if attribute.init}

    def set_params(self: Self, **params: Any) -> Self:
        """Change settings by name, all of them or, where one cannot be, none; return this object."""
        choices = self.get_params()
        for name in params:
            choose("params", name, choices)
        type(self)(**(choices | params))  # refuses what cannot be
        for name, value in params.items():
            setattr(self, name, value)
        self.to_method()
        return self

    def __sklearn_clone__(self: Self) -> Self:
        """Return the same settings without the calibration, for ``sklearn.base.clone``."""
        return type(self)(**self.get_params())

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one file (NumPy arrays and JSON, no pickle), whole or not at all."""
        calibrated = self.calibrated("save")
        auto = self._calibrated_with if isinstance(self._calibrated_with, AutoMethod) else None
        save(calibrated, path, kind=type(self).__name__, auto=auto)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a predictor that `save` wrote."""
        saved = read_saved(path)
        if saved.kind != cls.__name__:
            raise InvalidInputError(f"`path` must hold a {cls.__name__}; {os.fspath(path)} holds a {saved.kind}")
        return cls._from_saved(saved, path)

    @classmethod
    def _from_saved(cls: type[Self], saved: Saved, path: str | os.PathLike[str]) -> Self:
        method = saved.calibrated.method
        settings = vars(method) | vars(method.localiser) | {
            "by": method.groups,
            "exact": isinstance(method.level, Exact),
            "fallback": getattr(method.level, "fallback", "full"),
        }  # fmt: skip
        predictor = cls(**{attribute.name: settings[attribute.name] for attribute in fields(cls) if attribute.init})
        if predictor.to_method() != method:
            raise FileFormatError(
                f"`path` must hold settings that a {cls.__name__} can have; {os.fspath(path)} holds {shown(method)}"
            )
        predictor.calibrated_, predictor._calibrated_with = saved.calibrated, method
        return predictor
