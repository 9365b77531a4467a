"""The one place where the goldens use names that are not in `napsets` itself: when one moves, it changes here."""

from __future__ import annotations

from typing import Any

import numpy as np

from napsets.advice.inspection import inspect_node
from napsets.advice.recommendation import recommend
from napsets.evaluation.comparison import CURVE_ALPHAS, compare, compare_intervals, interval_methods
from napsets.methods import load as load_calibrated
from napsets.methods import save as save_calibrated

__all__ = ["choice_of", "compare", "compare_intervals", "inspect_node", "interval_methods", "load_calibrated"]
__all__ += ["CURVE_ALPHAS", "explorer_arrays", "recommend", "report_rows", "run_command", "save_calibrated"]


def choice_of(predictor: Any) -> Any:
    """Return how a predictor, or a calibrated method, was chosen; None where it was not."""
    return getattr(predictor, "choice", None)


def run_command(*arguments: object) -> tuple[int, str, str]:
    """Run ``napsets`` in this process: exit code, standard output and standard error."""
    from typer.testing import CliRunner

    from napsets.cli import make_app

    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    result = runner.invoke(make_app(), [str(argument) for argument in arguments], prog_name="napsets")
    return result.exit_code, result.stdout, result.stderr


#: What a report shows of both tasks, of sets alone and of intervals alone, as rows of plain values.
_ROWS = ("alpha", "hops", "methods", "curve", "by_degree", "front", "balls", "links", "left_out", "record")
_SETS_ROWS = ("class_names", "by_size", "by_class")
_INTERVALS_ROWS = ("band", "widths", "skewed", "by_width", "by_prediction", "shared")
#: Text that the explorer shows: prose.
_PROSE = ("sentences", "reasons", "threshold_text")


def report_data(comparison: Any, **options: Any) -> Any:
    """Return what a report on a comparison of sets, or of intervals, shows."""
    from napsets.report.page import page_data

    return page_data(comparison, **options)


def report_rows(data: Any) -> dict[str, Any]:
    """Return the rows of a report by name."""
    own = _SETS_ROWS if hasattr(data, "by_class") else _INTERVALS_ROWS
    return {name: getattr(data, name) for name in (*_ROWS, *own)}


def explorer_arrays(data: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a report's explorer by name; names of nodes are arrays of text."""
    return {name: np.asarray(value) for name, value in vars(data.explorer).items() if name not in _PROSE}
