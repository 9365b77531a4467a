"""The former module of `compare_intervals` and related names, which are now in `napsets.evaluation.comparison`."""

from napsets.evaluation.comparison import IntervalComparison as IntervalComparison
from napsets.evaluation.comparison import IntervalResult as IntervalResult
from napsets.evaluation.comparison import compare_intervals as compare_intervals
from napsets.evaluation.kinds import interval_methods as interval_methods
