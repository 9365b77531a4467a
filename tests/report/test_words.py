"""Numbers, names and sentences of a page, as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from napsets.report.words import Words, code, quoted, sentence, sizes_text, unbroken


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (sizes_text(np.ones(9), Words()), "All lists have at most 1 class."),
        (
            sizes_text(np.repeat([1, 2, 8], [6, 3, 1]), Words()),
            "60 of 100 lists have at most 1 class, and 10 of 100 have more than 2.",
        ),
        (
            sizes_text(np.repeat([1, 3], [39, 1]), Words()),
            "98 of 100 lists have at most 1 class, and the longest has 3.",
        ),
        (quoted(["a"]), "“a”"),
        (quoted(["a", "b", "c"]), "“a”, “b” and “c”"),
        (quoted(["a", "b", "c"], most=2), "“a” and 2 more"),
        (sentence("sets of 1.2 labels"), "Sets of 1.2 labels."),
        (unbroken("53 % smaller"), "53\N{NO-BREAK SPACE}% smaller"),
        (Words.parse("package, build system", "set").nodes, "packages"),
        (Words.parse("package, build system", "set").Labels, "Build systems"),
        (Words.parse("city, country", "set").labels, "countries"),
        (Words.parse("shop, branch of trade", "set").Labels, "Branches of trade"),
        (Words.parse("city", "interval").label, "value"),
        (Words.parse(None, "set").put("3 of 7 classes"), "3 of 7 classes"),
    ],
)
def test_names_and_sizes_are_written_as_people_do(written: Any, expected: Any) -> None:
    assert written == expected


def test_a_users_words_leave_code_quoted_names_and_parts_of_words_alone() -> None:
    words = Words.parse("page, topic", "set")
    assert words.put("Nodes of a node: 2 classes") == "Pages of a page: 2 topics"
    for text in ("`--by class` and `nodes`", "“class” and “node”", "node-js, subclass, node.js, ./class"):
        assert words.put(text) == text


def test_a_users_words_stand_in_the_titles_of_charts_and_nowhere_else() -> None:
    spec = {"layer": [{"encoding": {"x": {"field": "nodes", "title": "Nodes in the neighbourhood"}}}], "width": 3}
    worded = {"layer": [{"encoding": {"x": {"field": "nodes", "title": "Pages in the neighbourhood"}}}], "width": 3}
    assert Words.parse("page, topic", "set").put_titles(spec) == worded


def test_what_stands_between_backticks_is_code_and_the_rest_is_escaped() -> None:
    assert str(code("add `--by class` if a < b")) == "add <code>--by class</code> if a &lt; b"
