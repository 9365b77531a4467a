"""What predicts: `predict`, `verdict` and `warnings`, of a calibrated method and of a predictor that keeps one."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from napsets.checks.arguments import ArrayLike
from napsets.errors import NapsetsWarning
from napsets.methods.p_values import Wanted
from napsets.predictions import Predicted

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated

__all__ = ["Predicts"]


class Predicts:
    """What has a calibration to predict with."""

    @abstractmethod
    def _present(self, caller: str) -> Calibrated:
        """Return the calibration as it is now, for one of the methods below."""

    def _rates(self, alpha: Any) -> Any:
        """Return the error rates, where none was given those that are usual."""
        return getattr(self, "alpha", 0.1) if alpha is None else alpha

    def _caveat(self) -> str | None:
        """Return what should be known of all sets that these settings make."""
        return None

    @overload
    def predict(
        self, nodes: ArrayLike | None = ..., alpha: float | None = ..., *, positions: ArrayLike | None = ...,
        allow_empty: bool | None = ..., p_values: Wanted = ..., threads: int | None = ..., progress: Any = ...,
    ) -> Predicted: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike | None = ..., *, alpha: Sequence[float], positions: ArrayLike | None = ...,
        allow_empty: bool | None = ..., p_values: Wanted = ..., threads: int | None = ..., progress: Any = ...,
    ) -> list[Predicted]: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike | None, alpha: Sequence[float], *, positions: ArrayLike | None = ...,
        allow_empty: bool | None = ..., p_values: Wanted = ..., threads: int | None = ..., progress: Any = ...,
    ) -> list[Predicted]: ...  # fmt: skip

    def predict(
        self,
        nodes: ArrayLike | None = None,
        alpha: float | Sequence[float] | None = None,
        *,
        positions: ArrayLike | None = None,
        allow_empty: bool | None = None,
        p_values: Wanted = False,
        threads: int | None = None,
        progress: Any = None,
    ) -> Predicted | list[Predicted]:
        """Return the prediction sets of `nodes`; with a score of numbers, their `PredictionIntervals`.

        Parameters
        ----------
        nodes : array, optional
            A boolean mask, or nodes by the ids that `calibrate` was given; without ids, their positions 0..n−1. By
            default all nodes that did not calibrate.
        alpha : float or sequence of floats, optional
            Error rate: a set misses the truth with probability at most about alpha. For several, a list of sets comes
            back, from one search. By default 0.1, or what a method that chooses was made for.
        positions : array, optional
            Nodes by their positions 0..n−1, whatever their ids.
        allow_empty : bool, optional
            Overrides the setting of the same name.
        p_values : bool or "smoothed"
            Whether sets are to have the p-value of every label; see `Calibrated.p_values`.
        threads, progress
            As in `hop_thresholds`.
        """
        prediction: Predicted | list[Predicted] = self._predicted(
            nodes, alpha, positions=positions, allow_empty=allow_empty, p_values=p_values, threads=threads,
            progress=progress, stacklevel=3,
        )  # fmt: skip
        return prediction

    def _predicted(
        self,
        nodes: ArrayLike | None,
        alpha: Any,
        *,
        stacklevel: int,
        positions: ArrayLike | None = None,
        allow_empty: bool | None = None,
        p_values: Wanted = False,
        threads: int | None = None,
        progress: Any = None,
    ) -> Any:
        """Do what `predict` does; `stacklevel` says whose line warnings name, as in `warnings.warn`."""
        calibrated = self._present("predict")
        prediction = calibrated._predict(
            nodes, positions, self._rates(alpha), allow_empty, threads, progress, stacklevel=stacklevel + 1
        )
        prediction = calibrated.with_p_values(prediction, p_values)
        caveat = self._caveat()
        if caveat is not None:
            warnings.warn(caveat, NapsetsWarning, stacklevel=stacklevel)
        return prediction

    @abstractmethod
    def verdict(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> Any:
        """Say what to expect of the sets of `nodes`, what is promised, and what to watch for, without any truth.

        It prints as three lines; see `napsets.evaluation.verdict_words.Verdict`. The parameters are those of `predict`.
        """

    def warnings(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> list[str]:
        """Return what to watch for, the gravest first: few labels, little support, labels unlike the other nodes."""
        return list(self.verdict(nodes, alpha).warnings)
