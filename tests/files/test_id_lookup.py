"""Ids of any kind have places, and come back as they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.ids import NodeIds
from napsets.randomness import hash_ids


def integers(values: list[int]) -> pa.Array:
    return pa.array(values, pa.int64())


def strings(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
numbers = st.integers(-(2**63), 2**63 - 1)


@given(st.one_of(st.lists(numbers, unique=True, max_size=40), st.lists(words, unique=True, max_size=40)), st.data())
def test_every_id_is_found_at_its_place_and_no_other_id_is(values, data):
    is_text = bool(values) and isinstance(values[0], str)
    make = strings if is_text else integers
    known = NodeIds(make(values))
    assert known.positions(make(values)).tolist() == list(range(len(values)))
    others = data.draw(st.lists(words if is_text else numbers, max_size=10))
    expected = [values.index(other) if other in values else -1 for other in others]
    assert known.positions(make(others)).tolist() == expected
    assert known.take(np.arange(len(values))).to_pylist() == values


def test_unsigned_ids_above_two_to_the_63_are_kept():
    known = NodeIds(pa.array([2**64 - 1, 7], pa.uint64()))
    assert known.take(np.array([0])).to_pylist() == [2**64 - 1]
    assert known.positions(pa.array([7, 2**64 - 1], pa.uint64())).tolist() == [1, 0]


def test_keys_are_what_uniform_numbers_are_drawn_from():
    names = ["a", "bb", "", "ü" * 30]
    np.testing.assert_array_equal(NodeIds(strings(names)).keys, hash_ids(np.array(names)))


def test_unsigned_ids_above_two_to_the_63_are_not_negative_ones():
    nodes = NodeIds(pa.array([-1, 5], pa.int64()))
    assert nodes.positions(pa.array([2**64 - 1, 5], pa.uint64())).tolist() == [-1, 1]
    large = NodeIds(pa.array([2**64 - 1, 5], pa.uint64()))
    assert large.positions(pa.array([-1, 5], pa.int64())).tolist() == [-1, 1]
    small = NodeIds(pa.array([3, -2], pa.int8()))
    assert small.positions(pa.array([259, 3, -2])).tolist() == [-1, 0, 1]


def test_ids_have_at_most_1024_bytes():
    assert len(NodeIds(pa.array(["x" * 1024, "é" * 512]))) == 2
    with pytest.raises(FileFormatError, match="ids of at most 1,024 bytes; one there has 1,026: 'éé"):
        NodeIds(pa.array(["a", "é" * 513]))


def test_repeated_ids_are_counted_and_listed():
    with pytest.raises(FileFormatError, match=r"2 ids are there more than once: 4, 9\. Keep one row"):
        NodeIds(integers([4, 4, 9, 9, 1]))


def test_an_id_that_was_typed_is_found_or_named():
    assert NodeIds(integers([5, -7])).find("-7") == 1
    assert NodeIds(strings(["5", "x"])).find("x") == 1
    with pytest.raises(InvalidInputError, match="there is no '8'"):
        NodeIds(integers([5])).find("8")
    with pytest.raises(InvalidInputError, match="there is no 'x'"):
        NodeIds(integers([5])).find("x")
