"""Every sentence of a report's first screen is true, on graphs whose labels are all known, and with false premises."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
first_screen = pytest.importorskip("first_screen")


@pytest.mark.parametrize(
    ("graph", "premise"),
    [
        *(("eips", premise) for premise in first_screen.PREMISES),
        ("cora-ml", "random"),
        ("cora-ml", "leaked"),
        ("squirrel-filtered", "random"),
        ("squirrel-filtered", "confident"),
    ],
)
def test_the_first_screen_says_nothing_false(graph: str, premise: str) -> None:
    assert first_screen.check_world(first_screen.make_world(graph, premise)) == []


def test_a_false_sentence_and_an_unknown_one_are_noticed() -> None:
    world = first_screen.make_world("eips")
    comparison = first_screen.compared(world)
    wrong = first_screen.Checker(world, comparison).check(
        [
            "For 12 of 100 nodes, the true class is in the list.",
            "100 of 100 lists have at most 1 class, and 0 of 100 have more than 1.",
            "Everything is fine.",
        ]
    )
    assert [text.rsplit(": ", 1)[1].split(" is ")[0] for text in wrong[:1]] == ["12.0"]
    assert wrong[-1] == "'Everything is fine.': not known"
    assert len(wrong) >= 3
