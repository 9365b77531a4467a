"""Choosing by name."""

from __future__ import annotations

import pytest

from napsets.checks.values import Registry, choose
from napsets.errors import InvalidInputError


def test_a_name_that_is_taken_is_refused_unless_the_same_thing_is_defined_again():
    table = Registry("DECAYS")

    def halving(k):
        return 0.5**k

    table.add("half")(halving)
    table.add("half")(halving)  # a cell of a notebook that is run again
    with pytest.raises(InvalidInputError, match=r"'half' is .*halving there.*del DECAYS\['half'\]"):
        table.add("half")(choose)
    assert table["half"] is halving
