"""First lines with ids and tables.

What a researcher writes without the manual works, or says in one sentence what to write instead. The file is typed
like a user's own strict project: mypy --strict and pyright read it too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest

import napsets as ns
from first_lines import A_WARNING_IS_AN_ERROR, CLASSES, GRAPH, IDS, KNOWN, NAMES, REST, SIZE, P, Y, frame

#: A guess that works says nothing.
pytestmark = A_WARNING_IS_AN_ERROR


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_integer_ids_are_ids_in_predict_and_in_results() -> None:
    split = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=IDS)
    some = REST[[5, 0, 9]]
    sets = split.predict(IDS[some])
    assert sets.nodes.tolist() == some.tolist()
    assert sets.ids is not None
    assert sets.ids.tolist() == IDS[some].tolist()
    assert sets.ids.dtype == IDS.dtype
    assert sets.to_pandas()["node"].tolist() == IDS[some].tolist()
    assert sets.to_polars()["node"].dtype == pl.Int64


def test_positions_have_a_way_of_their_own() -> None:
    split = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=IDS)
    by_position, by_mask, by_id = split.predict(positions=REST), split.predict(~KNOWN), split.predict(IDS[REST])
    assert by_position.same_as(by_mask)
    assert by_position.same_as(by_id)
    with pytest.raises(ns.InvalidInputError, match="`positions` must be left out where `nodes` are given"):
        split.predict(REST, positions=REST)


def test_without_ids_numbers_are_positions() -> None:
    split = ns.SplitConformal().calibrate(P, Y, KNOWN)
    assert split.predict(REST).same_as(split.predict(positions=REST))


def test_calibration_nodes_can_be_named_by_their_ids_too() -> None:
    by_mask = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=IDS)
    by_id = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, IDS[KNOWN], ids=IDS)
    by_name = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, list(NAMES[KNOWN]), ids=NAMES)
    assert by_id.predict(~KNOWN).same_as(by_mask.predict(~KNOWN))
    assert by_name.predict(list(NAMES[REST])).nodes.tolist() == REST.tolist()


def test_an_id_that_no_node_has_is_refused() -> None:
    split = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=IDS + 10_000)
    with pytest.raises(
        ns.InvalidInputError,
        match=r"`nodes` must hold ids that are among the ids; 2 are not, 3 first. For positions pass positions=",
    ):
        split.predict([3, 5])
    named = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=NAMES)
    with pytest.raises(ns.InvalidInputError, match="names that are among the ids; 1 are not, 'nobody' first"):
        named.predict([str(NAMES[0]), "nobody"])
    with pytest.raises(ns.InvalidInputError, match="`nodes` must be numbers, unless the nodes' names are passed to"):
        ns.SplitConformal().calibrate(P, Y, KNOWN).predict(["nobody"])


def test_a_set_is_found_by_its_id() -> None:
    sets = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=IDS).predict()
    row = 7
    assert sets.loc[IDS[REST[row]]] == sets[row]
    assert sets.loc[IDS[REST[[3, 1]]]].nodes.tolist() == REST[[3, 1]].tolist()
    named = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=NAMES).predict()
    assert named.loc[NAMES[REST[row]]] == named[str(NAMES[REST[row]])] == named[row]


def test_ids_of_any_kind_survive_a_file(tmp_path: Path) -> None:
    for ids in (IDS, NAMES):
        split = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=ids)
        split.save(tmp_path / "split.npz")
        again = ns.load(tmp_path / "split.npz")
        assert again.predict(ids[REST]).same_as(split.predict(ids[REST]))
        assert again.predict().row_names.tolist() == ids[REST].tolist()


# -- tables ------------------------------------------------------------------------------------------------------------


def test_integer_labels_stay_integers_in_tables() -> None:
    sets = ns.SplitConformal().calibrate(P, Y, KNOWN).predict()
    assert list(sets.to_pandas()["labels"][0]) == sets[0]
    assert sets.to_polars()["labels"].dtype == pl.List(pl.Int64)
    named = ns.SplitConformal().calibrate(P, Y, KNOWN, class_names=CLASSES).predict()
    assert list(named.to_pandas()["labels"][0]) == named[0]


def test_a_pandas_index_is_aligned() -> None:
    plain = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=NAMES).predict(NAMES[REST])
    shuffled = np.random.default_rng(2).permutation(SIZE)
    labels, known = pd.Series(Y, index=NAMES), pd.Series(KNOWN, index=NAMES)
    split = ns.SplitConformal().calibrate(frame(NAMES), labels.iloc[shuffled], known.iloc[shuffled[::-1]])
    sets = split.predict(NAMES[REST])
    assert sets.same_as(plain)
    assert sets.ids is not None
    assert sets.ids.tolist() == NAMES[REST].tolist()


def test_shuffled_rows_go_back_to_the_nodes_of_the_graph() -> None:
    plain = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    shuffled = np.random.default_rng(2).permutation(SIZE)
    naps = ns.NAPS(pool=10).calibrate(GRAPH, frame().iloc[shuffled], pd.Series(Y), KNOWN)
    assert naps.predict(REST).same_as(plain)


def test_indexes_that_differ_are_refused() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`labels` must have the index of `probabilities`; .*'user-"):
        ns.SplitConformal().calibrate(frame(NAMES), pd.Series(Y), KNOWN)
    with pytest.raises(ns.InvalidInputError, match=r"`probabilities` must have the `ids` for an index"):
        ns.SplitConformal().calibrate(frame(NAMES), Y, KNOWN, ids=IDS)


def test_column_names_become_class_names() -> None:
    sets = ns.SplitConformal().calibrate(frame(columns=CLASSES), Y, KNOWN).predict()
    assert sets.class_names == tuple(CLASSES)
    numbered = ns.SplitConformal().calibrate(frame(), Y, KNOWN).predict()
    assert numbered.class_names is None
    polars = ns.SplitConformal().calibrate(pl.DataFrame(P, schema=CLASSES), pl.Series(Y), KNOWN).predict()
    assert polars.class_names == tuple(CLASSES)


def test_labels_may_be_the_names_of_classes() -> None:
    plain = ns.SplitConformal().calibrate(P, Y, KNOWN, class_names=CLASSES).predict()
    names = np.array(CLASSES)[Y]
    some = pd.Series(names, dtype=object).where(KNOWN, None)
    frames = frame(columns=CLASSES), pl.DataFrame(P, schema=CLASSES)
    for sets in (
        ns.SplitConformal().calibrate(P, names, KNOWN, class_names=CLASSES).predict(),
        ns.SplitConformal().calibrate(frames[0], some, KNOWN).predict(),
        ns.SplitConformal().calibrate(frames[0], pd.Series(pd.Categorical(names)), KNOWN).predict(),
        ns.SplitConformal().calibrate(frames[1], pl.Series(names.tolist()), KNOWN).predict(),
    ):
        assert sets.same_as(plain)
        assert sets.class_names == tuple(CLASSES)
        assert ns.coverage(sets, names) == ns.coverage(plain, Y)
    comparison = ns.compare(GRAPH, P, names, KNOWN, ~KNOWN, methods=["split"], class_names=CLASSES)
    assert comparison[0].coverage == ns.coverage(plain, Y)


def test_names_that_no_class_has_are_refused() -> None:
    names = np.array(CLASSES)[Y].astype(object)
    with pytest.raises(ns.InvalidInputError, match=r"`labels` must hold integers; got names.*pass class_names="):
        ns.SplitConformal().calibrate(P, names, KNOWN)
    mapping: Any = dict(enumerate(CLASSES))
    numbers: Any = [1, 2, 3, 4]
    with pytest.raises(ns.InvalidInputError, match=r"`class_names` must be a list of names; got \{0: 'cat'"):
        ns.SplitConformal().calibrate(P, Y, KNOWN, class_names=mapping)
    with pytest.raises(ns.InvalidInputError, match="`labels` must be class names, as text"):
        ns.SplitConformal().calibrate(P, Y, KNOWN, class_names=numbers)
    names[3] = "cow"
    with pytest.raises(ns.InvalidInputError, match=r"`labels` must be among the class names.*1 are not, 'cow' first"):
        ns.SplitConformal().calibrate(P, names, KNOWN, class_names=CLASSES)


def test_labels_that_are_missing_are_unknown() -> None:
    plain = ns.SplitConformal().calibrate(P, Y, KNOWN).predict()
    missing = np.where(KNOWN, Y, np.nan)
    integers: list[int | None] = [int(y) if known else None for y, known in zip(Y, KNOWN, strict=True)]
    for labels in (missing, pd.Series(missing), pd.Series(integers, dtype="Int64"), np.array(integers), Y[:, None]):
        assert ns.SplitConformal().calibrate(P, labels, KNOWN).predict().same_as(plain)
    with pytest.raises(ns.InvalidInputError, match="whose label is known"):
        ns.SplitConformal().calibrate(P, missing, ~KNOWN)


def test_columns_by_number_go_to_their_classes() -> None:
    plain = ns.SplitConformal().calibrate(P, Y, KNOWN).predict()
    order = [2, 0, 3, 1]
    assert ns.SplitConformal().calibrate(frame().iloc[:, order], Y, KNOWN).predict().same_as(plain)
    with pytest.raises(ns.InvalidInputError, match=r"columns that are class names, or numbered from 0.*\[1, 2, 3, 4\]"):
        ns.SplitConformal().calibrate(frame(columns=[1, 2, 3, 4]), Y, KNOWN)
    with pytest.raises(ns.InvalidInputError, match=r"`labels` must be class names, as text.*astype\(str\)"):
        ns.SplitConformal().calibrate(frame(columns=["1", "2", "3", "4"]), Y, KNOWN)
    text = (Y + 1).astype(str)
    assert ns.SplitConformal().calibrate(frame(columns=["1", "2", "3", "4"]), text, KNOWN).predict().same_as(plain)
    with pytest.raises(ns.InvalidInputError, match="`class_names` must be in the order of the columns"):
        ns.SplitConformal().calibrate(frame(columns=CLASSES), Y, KNOWN, class_names=CLASSES[::-1])


# -- one node ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [IDS, IDS + 10_000, NAMES])
def test_a_node_is_inspected_by_its_id(ids: npt.NDArray[Any]) -> None:
    auto = ns.Auto(alpha=0.2).calibrate(GRAPH, P, Y, KNOWN, ids=ids, class_names=CLASSES)
    place = int(REST[5])
    seen = ns.inspect_node(auto, ids[place])
    assert (seen.node, seen.id, seen.alpha) == (place, ids[place], 0.2)
    assert seen.threshold == auto.predict(ids[[place]]).thresholds[0]
    assert ns.inspect_node(auto, position=place).threshold == seen.threshold
    assert repr(ids[place].item()) in repr(seen)
    with pytest.raises(ns.InvalidInputError, match="`node` must be given, or else its `position`"):
        ns.inspect_node(auto)
