"""Where `compare_intervals` and its kin were documented before `napsets.evaluation.comparison` did both tasks."""

from napsets.evaluation.comparison import IntervalComparison, IntervalResult, compare_intervals, interval_methods

__all__ = ["IntervalComparison", "IntervalResult", "compare_intervals", "interval_methods"]
