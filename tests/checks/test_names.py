"""Choosing by name."""

from __future__ import annotations

import pytest

from napsets.checks.values import Registry, choose
from napsets.errors import InvalidInputError

OPTIONS = {"uniform": 1, "geometric": 2}


def test_a_known_name_gives_its_value():
    assert choose("decay", "geometric", OPTIONS) == 2


def test_a_name_that_is_nearly_right_gets_the_nearest_suggested():
    with pytest.raises(InvalidInputError, match=r"`decay` must be one of uniform, geometric; got 'Unifrom' \(did you"):
        choose("decay", "Unifrom", OPTIONS)


def test_a_name_unlike_all_others_gets_no_suggestion():
    with pytest.raises(InvalidInputError, match=r"got 'zzz'$"):
        choose("decay", "zzz", OPTIONS)


def test_a_name_that_is_taken_is_refused_unless_the_same_thing_is_defined_again():
    table = Registry("DECAYS")

    def halving(k):
        return 0.5**k

    table.add("half")(halving)
    table.add("half")(halving)  # a cell of a notebook that is run again
    with pytest.raises(InvalidInputError, match=r"'half' is .*halving there.*del DECAYS\['half'\]"):
        table.add("half")(choose)
    assert table["half"] is halving
