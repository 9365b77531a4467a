"""Numbers, names and sentences of a page, as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from napsets.report.chart_parts import median_ends, range_names, ticks
from napsets.report.explorer import each_once
from napsets.report.record import packed, unpacked
from napsets.report.summary import Vocabulary, code, quoted, sentence, size_range, unbroken


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (range_names([(0, 0), (1, 4)]), ["0", "1–4"]),
        (size_range(np.array([1, 1, 2, 2, 3, 3])), "1 to 3"),
        (size_range(np.array([1, 1, 2])), "1 or 2"),
        (size_range(np.array([1, 1, 1, 1])), "1"),
        (quoted(["a"]), "“a”"),
        (quoted(["a", "b", "c"]), "“a”, “b” and “c”"),
        (quoted(["a", "b", "c"], most=2), "“a” and 2 more"),
        (sentence("sets of 1.2 labels"), "Sets of 1.2 labels."),
        (unbroken("53 % smaller"), "53\N{NO-BREAK SPACE}% smaller"),
        (Vocabulary.parse("package, build system").nodes, "packages"),
        (Vocabulary.parse("package, build system").labels, "build systems"),
        (Vocabulary.parse("city, country").labels, "countries"),
    ],
)
def test_names_and_sizes_are_written_as_people_do(written: Any, expected: Any) -> None:
    assert written == expected


def test_what_stands_between_backticks_is_code_and_the_rest_is_escaped() -> None:
    assert str(code("add `--by class` if a < b")) == "add <code>--by class</code> if a &lt; b"


def test_the_interval_of_a_median_lies_between_two_of_the_values() -> None:
    assert median_ends(np.arange(101.0)) == (50.0, 40.0, 60.0)
    assert median_ends(np.array([1.0, 2.0, np.inf])) == (2.0, 1.0, np.inf)


def test_marks_of_an_axis_stand_in_even_steps() -> None:
    assert ticks([0.41, 1.0], 0.9) == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert ticks([0.88, 0.95], 0.9) == [0.88, 0.89, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95]


def test_what_was_packed_is_read_back() -> None:
    assert unpacked(packed(np.array([3, 1, 4]))).tolist() == [3, 1, 4]


def test_what_several_share_is_kept_once() -> None:
    places, items = each_once([3, None, 4, 3], int)
    assert (places.tolist(), items) == ([0, -1, 1, 0], [3, 4])
