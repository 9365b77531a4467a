"""The one place where the goldens use names that are not in `napsets` itself: when one moves, it changes here."""

from __future__ import annotations

from typing import Any

from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import CURVE_ALPHAS, compare, interval_methods

__all__ = ["choice_of", "compare", "inspect_node", "interval_methods"]
__all__ += ["CURVE_ALPHAS", "explorer_shown", "report_rows", "run_command"]


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
_ROWS = ("methods", "curve", "front", "balls", "left_out", "band")
_DETAILS = ("by_degree", "by_size", "by_class", "by_width", "by_prediction", "shared")


def report_data(comparison: Any, **options: Any) -> Any:
    """Return what a report on a comparison of sets, or of intervals, shows."""
    from napsets.report.page import page_data

    return page_data(comparison, **options)


def report_rows(data: Any) -> dict[str, Any]:
    """Return the rows of a report by name."""
    parts = data.parts
    own = {name: parts.details[name] for name in _DETAILS if name in parts.details}
    own |= {"class_names": parts.class_names} if parts.class_names else {"skewed": parts.skewed, "widths": parts.up_to}
    shared = {"alpha": data.comparison.alpha, "hops": data.comparison.hops}
    return shared | {name: getattr(data, name) for name in _ROWS} | own


def explorer_shown(data: Any) -> list[str]:
    """Return a line per explored node and method: prediction, threshold and the bars of scores; no prose."""
    return [
        repr((name, of_method["outcome"], of_method["covers"], of_method["threshold"], of_method["bars"]))
        for name, of_node in zip(data.explorer.names, data.explorer.shown, strict=True)
        for of_method in of_node
    ]
