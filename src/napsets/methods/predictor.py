"""What `NAPS`, `SplitConformal`, `RandomisedNAPS` and `Auto` share: settings and a calibration kept together."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from operator import is_
from typing import Any, ClassVar, TypeVar

from napsets.checks.arguments import ArrayLike
from napsets.checks.names import choose
from napsets.checks.values import shown
from napsets.errors import FileFormatError, InvalidInputError, NotCalibratedError
from napsets.methods.calibrated import Calibrated, Predicts
from napsets.methods.data import CalibrationData
from napsets.methods.method import Calibrates, Method
from napsets.methods.saving import Saved, read_saved, save

Self = TypeVar("Self", bound="Predictor[Any]")
Kind = TypeVar("Kind")


class Predictor(Predicts, Calibrates[Kind]):
    """Settings and a calibration kept together."""

    #: What the method is called in the table of methods.
    _name: ClassVar[str]
    score: Any
    seed: int
    allow_empty: bool
    by: Any
    calibrated_: Calibrated | None

    def __post_init__(self) -> None:
        self._settle()

    @abstractmethod
    def _method(self) -> Any:
        """Return the method that the settings make."""

    #: The settings that were checked last, and the method that they make.
    _settled: ClassVar[tuple[list[Any], Any] | None] = None

    def _settle(self) -> Any:
        """Check the settings, unless they are those that were checked last, and bring them to one form."""
        if self._settled is not None and all(map(is_, self._values(), self._settled[0])):
            return self._settled[1]
        method = self._method()
        self.score, self.seed, self.allow_empty = method.score, method.seed, method.allow_empty
        self.by = getattr(method, "groups", getattr(method, "by", None))
        vars(self)["_settled"] = (self._values(), method)
        return method

    def to_method(self) -> Any:
        """Return the method that the settings make as they are now: a `Method`, of an `Auto` one that chooses."""
        return self._settle()

    def _values(self) -> list[Any]:
        return list(self.get_params().values())

    def fit(self, data: CalibrationData) -> Kind:
        """Calibrate with arguments that were checked, and return this object."""
        self.calibrated_ = self._settle().fit(data)
        return self  # type: ignore[return-value]

    def calibrated(self, caller: str = "predict") -> Calibrated:
        """Return the calibration with the settings as they are now, or say that there is none."""
        method = self._settle()
        if self.calibrated_ is None:
            raise NotCalibratedError(f"{type(self).__name__}.{caller}() needs calibrate(...) to be called first")
        if method != self.calibrated_.method:
            scored = self.calibrated_.scored
            size = method.level.reference_size(scored.calibration.size)
            changed = [name for name in ("score", "seed") if getattr(method, name) != getattr(scored, name)]
            if size != scored.reference.nodes.size:
                if hasattr(self, "exact"):
                    changed.append("exact")
                elif not changed:  # groups that learn need held-out labels
                    changed.append("by")
            if changed:
                raise self._changed(caller, changed)
            self.calibrated_ = method.on(scored)
        return self.calibrated_

    def _changed(self, caller: str, names: list[str]) -> NotCalibratedError:
        return NotCalibratedError(
            f"{type(self).__name__}.{caller}() needs calibrate(...) to be called again: "
            f"{' and '.join(f'`{name}`' for name in names)} {'was' if len(names) == 1 else 'were'} changed after it"
        )

    def _present(self, caller: str) -> Calibrated:
        return self.calibrated(caller)

    def verdict(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> Any:
        """Say what to expect of the sets of `nodes`, what is promised, and what to watch for, without any truth.

        It prints as three lines; see `napsets.evaluation.verdict_words.Verdict`. The parameters are those of `predict`.
        """
        return self.calibrated("verdict").verdict(nodes, self._rates(alpha), name=self._name)

    def predict_new(
        self,
        probabilities: ArrayLike,
        edges: ArrayLike | None = None,
        alpha: float | Sequence[float] | None = None,
        *,
        ids: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        """Return the sets of nodes that were not there at calibration, as `Calibrated.predict_new` does."""
        calibrated = self.calibrated("predict_new")
        return calibrated.predict_new(probabilities, edges, self._rates(alpha), ids=ids, **options)

    # -- as scikit-learn's tools expect it -----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; there are no estimators inside that `deep` would look into."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self) if attribute.init}  # type: ignore[arg-type]

    def set_params(self: Self, **params: Any) -> Self:
        """Change settings by name, all of them or, where one cannot be, none; return this object."""
        choices = self.get_params()
        for name in params:
            choose("params", name, choices)
        type(self)(**(choices | params))  # refuses what cannot be
        for name, value in params.items():
            setattr(self, name, value)
        self._settle()
        return self

    def __sklearn_clone__(self: Self) -> Self:
        """Return the same settings without the calibration, for ``sklearn.base.clone``."""
        return type(self)(**self.get_params())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one file (NumPy arrays and JSON, no pickle), whole or not at all."""
        save(self.calibrated("save"), path, kind=type(self).__name__)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a predictor that `save` wrote."""
        saved = read_saved(path)
        if saved.kind != cls.__name__:
            raise InvalidInputError(f"`path` must hold a {cls.__name__}; {os.fspath(path)} holds a {saved.kind}")
        return cls._from_saved(saved, path)

    @classmethod
    def _from_saved(cls: type[Self], saved: Saved, path: str | os.PathLike[str]) -> Self:
        predictor = cls._of(saved)
        if not predictor._fits(saved.calibrated.method):
            raise FileFormatError(
                f"`path` must hold settings that a {cls.__name__} can have; {os.fspath(path)} holds "
                f"{shown(saved.calibrated.method)}"
            )
        predictor.calibrated_ = saved.calibrated
        return predictor

    def _fits(self, method: Method) -> bool:
        """Return whether these settings are those of a method that a file holds."""
        return bool(self._method() == method)

    @classmethod
    @abstractmethod
    def _of(cls: type[Self], saved: Saved) -> Self:
        """Return the settings that a file holds."""
