"""Ids of any kind have places, and come back as they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.ids import NodeIds
from napsets.kernels import texts as module
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


@pytest.mark.parametrize("values", [[5, 6, 7, 4], [10**15, -3, 0]])
def test_dense_and_sparse_integers_are_looked_up_alike(values):
    known = NodeIds(integers(values))
    assert (known._table is not None) == (max(values) - min(values) < 20)
    assert known.positions(integers([*values, 99, -(2**63), 2**63 - 1])).tolist() == [*range(len(values)), -1, -1, -1]


def test_unsigned_ids_above_two_to_the_63_are_kept():
    known = NodeIds(pa.array([2**64 - 1, 7], pa.uint64()))
    assert known.take(np.array([0])).to_pylist() == [2**64 - 1]
    assert known.positions(pa.array([7, 2**64 - 1], pa.uint64())).tolist() == [1, 0]


def test_the_width_of_integers_is_kept():
    assert NodeIds(pa.array([3, 1], pa.int16())).output_type == pa.int16()


def test_keys_are_what_uniform_numbers_are_drawn_from():
    names = ["a", "bb", "", "ü" * 30]
    np.testing.assert_array_equal(NodeIds(strings(names)).keys, hash_ids(np.array(names)))


def test_long_and_short_strings_in_one_column_have_the_same_keys_as_alone():
    names = ["x" * 300_000, "y", "z" * 20]
    expected = [int(hash_ids(np.array([name]))[0]) for name in names]
    assert NodeIds(strings(names)).keys.tolist() == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_strings_are_read_from_wherever_their_array_begins_and_whatever_its_width(kind):
    names = [f"user-{i}" for i in range(1000)] + ["", "ü", "user-"]
    whole = pa.array(names, kind)
    known = NodeIds(whole.slice(300))
    assert known.keys.tolist() == hash_ids(np.array(names[300:])).tolist()
    assert known.positions(whole.slice(250, 100)).tolist() == [-1] * 50 + list(range(50))
    assert known.positions(whole.slice(1000)).tolist() == [700, 701, 702]
    assert known.positions(whole.slice(5, 0)).tolist() == []
    assert NodeIds(whole.slice(0, 0)).positions(whole).tolist() == [-1] * 1003


def test_repeated_ids_are_counted_and_listed():
    with pytest.raises(FileFormatError, match=r"2 ids are there more than once: 4, 9\. Keep one row"):
        NodeIds(integers([4, 4, 9, 9, 1]))


def test_strings_with_one_hash_are_not_taken_for_each_other(monkeypatch):
    monkeypatch.setattr(module, "hash_texts", lambda texts: np.diff(texts.offsets).astype(np.uint64))
    known = NodeIds(strings(["a", "bb"]))
    assert known.positions(strings(["a", "b", "bb", "cc"])).tolist() == [0, -1, 1, -1]
    with pytest.raises(InvalidInputError, match="two ids with one 64-bit hash"):
        NodeIds(strings(["a", "b"]))


def test_an_id_that_was_typed_is_found_or_named():
    assert NodeIds(integers([5, -7])).find("-7") == 1
    assert NodeIds(strings(["5", "x"])).find("x") == 1
    with pytest.raises(InvalidInputError, match="there is no '8'"):
        NodeIds(integers([5])).find("8")
    with pytest.raises(InvalidInputError, match="which are integers; got 'x'"):
        NodeIds(integers([5])).find("x")
