"""PredictionSets: what the sets hold, as tables and for people."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import napsets as ns
from napsets.predictions import members


def make(**changes):
    values = {
        "nodes": np.array([4, 1, 7]),
        "member": np.array([[True, False, True], [False, False, False], [True, True, True]]),
        "thresholds": np.array([0.9, 0.2, np.inf]),
        "support": np.array([12, 30, 1]),
        "effective_size": np.array([10.5, 30.0, 1.0]),
        "alpha": 0.1,
        "num_nodes": 8,
    }
    values |= changes
    for name in ("support", "effective_size"):  # as many as there are sets, whatever was changed
        values[name] = np.resize(values[name], len(values["member"]))
    return ns.PredictionSets(**values)


def test_sizes_labels_and_length_read_the_member_matrix():
    sets = make()
    assert len(sets) == 3
    assert sets.num_classes == 3
    assert sets.sizes.tolist() == [2, 0, 3]
    assert [labels.tolist() for labels in sets.labels()] == [[0, 2], [], [0, 1, 2]]
    none = make(nodes=np.array([], int), member=np.zeros((0, 3), bool), thresholds=np.array([]))
    assert none.labels() == []
    assert len(none) == 0


def test_labels_are_those_of_the_graph_unless_they_are_said_to_be_those_of_the_sets():
    graph_labels = np.array([0, 0, 0, 0, 2, 0, 0, 1])
    assert make().contains(graph_labels).tolist() == [True, False, True]
    assert make(num_nodes=None).contains(graph_labels).tolist() == [True, False, True]
    assert make().contains([2, 0, 1], per="set").tolist() == [True, False, True]
    assert make().contains([1, 1, 1], per="set").tolist() == [False, False, True]


def test_sets_of_all_nodes_in_another_order_are_judged_by_node_id():
    order = np.array([2, 0, 1])
    sets = make(nodes=order, member=np.eye(3, dtype=bool)[order], num_nodes=3)  # node v has the set {v}
    assert sets.contains([0, 1, 2]).tolist() == [True, True, True]
    assert sets.contains(order, per="set").tolist() == [True, True, True]
    assert not sets.contains([0, 1, 2], per="set").any()


@pytest.mark.parametrize("num_nodes", [8, None])
def test_labels_of_the_other_length_are_refused_with_the_other_choice(num_nodes):
    sets = make(num_nodes=num_nodes)
    with pytest.raises(ns.InvalidInputError, match=r"one entry per node of the graph, .*8, .* got 3\. Pass per='set'"):
        sets.contains([2, 0, 1])
    with pytest.raises(ns.InvalidInputError, match=r"one entry per set, 3, with per='set'; got 8\. Leave `per` out"):
        sets.own_labels(np.zeros(8, int), per="set")
    with pytest.raises(ns.InvalidInputError, match="`per` must be one of node, set; got 'row'"):
        sets.contains([2, 0, 1], per="row")


def test_labels_of_the_graph_may_be_unknown_elsewhere():
    labels = np.full(8, -1)
    labels[[4, 1, 7]] = 0
    assert make().contains(labels).tolist() == [True, False, True]


def test_where_a_set_is_empty_the_top_label_enters_if_given():
    S, thresholds = np.array([[0.5, 0.9], [0.4, 0.2]]), np.array([0.1, 0.2])
    assert members(S, thresholds).tolist() == [[False, False], [False, True]]
    assert members(S, thresholds, top_labels=np.array([1, 0])).tolist() == [[False, True], [False, True]]


def test_the_arrow_table_has_the_agreed_columns():
    pa = pytest.importorskip("pyarrow")
    table = make(class_names=["cat", "dog", "emu"]).to_arrow()
    assert table.column_names == ["node", "labels", "size", "threshold", "support", "effective_size", "alpha"]
    assert table.to_pylist()[0] == {
        "node": 4, "labels": ["cat", "emu"], "size": 2, "threshold": 0.9, "support": 12, "effective_size": 10.5,
        "alpha": 0.1,
    }  # fmt: skip
    assert table["labels"].to_pylist() == [["cat", "emu"], [], ["cat", "dog", "emu"]]
    assert table["threshold"].to_pylist()[2] == float("inf")
    assert make().to_arrow()["labels"].to_pylist()[0] == [0, 2]
    assert table.schema.field("node").type == pa.int64()


@pytest.mark.parametrize(("method", "package"), [("to_arrow", "pyarrow"), ("to_pandas", "pandas")])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(method, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # which Python takes for one that is missing
    with pytest.raises(
        ns.MissingDependencyError, match=rf"'{package}'; install it with: pip install 'napsets\["
    ) as info:
        getattr(make(), method)()
    assert info.value.package == package


def test_the_repr_tells_sizes_and_what_is_odd():
    assert repr(make()) == (
        "PredictionSets(3 nodes, 3 classes, alpha=0.1: mean size 1.67, 1 empty, 1 full, 1 with too little support)"
    )
    none = make(nodes=np.array([], int), member=np.zeros((0, 3), bool), thresholds=np.array([]))
    assert repr(none) == "PredictionSets(no nodes, alpha=0.1)"


def test_notebooks_get_a_table_that_is_safe_to_show():
    page = make(class_names=["<b>cat</b>", "dog & co", "emu"])._repr_html_()
    assert "{&lt;b&gt;cat&lt;/b&gt;, emu}" in page
    assert "<b>" not in page
    assert "∞" in page
    assert page.count("<tr>") == 4
    many = make(nodes=np.arange(25), member=np.ones((25, 2), bool), thresholds=np.ones(25), num_nodes=25)
    assert "… and 15 more" in many._repr_html_()


def test_sets_cannot_be_changed_by_assignment():
    with pytest.raises(AttributeError):
        make().alpha = 0.5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes": [-1, 0]}, "`nodes` must hold ids from 0 to 4; got -1"),
        ({"nodes": [0, 10]}, "`nodes` must hold ids from 0 to 4; got 10"),
        ({"support": [1]}, r"`support` must have one entry per node, 2; got shape \(1,\)"),
        ({"effective_size": [[1.0, 1.0]]}, "`effective_size` must have one entry per node"),
        ({"support": ["a", "b"]}, "`support` must hold numbers"),
        ({"member": np.ones((2, 2))}, "`member` must be boolean of shape"),
        ({"thresholds": [0.5, float("nan")]}, "`thresholds` must hold numbers, none of them NaN"),
    ],
)
def test_fields_that_do_not_fit_each_other_are_refused(changed, message):
    fields = {
        "nodes": [0, 1], "member": np.eye(2, dtype=bool), "thresholds": [0.5, 0.6], "support": [1, 1],
        "effective_size": [1.0, 1.0], "alpha": 0.1, "num_nodes": 5,
    }  # fmt: skip
    ns.PredictionSets(**fields)
    with pytest.raises(ns.InvalidInputError, match=message):
        ns.PredictionSets(**fields | changed)


def test_names_of_nodes_are_text_in_a_notebook_and_nothing_else():
    sets = ns.PredictionSets(["<script>"], np.ones((1, 2), bool), [0.5], [1], [1.0], 0.1)
    assert "<script>" not in sets._repr_html_()


def test_a_summary_counts_what_the_sets_hold():
    summary = make(support=np.array([12, 30, 0])).summary()
    assert summary.size_counts.tolist() == [1, 0, 1, 1]
    assert (summary.nodes, summary.num_classes) == (3, 3)
    assert (summary.empty, summary.singletons, summary.full) == (1, 0, 1)
    assert (summary.infinite, summary.unreached) == (1, 1)
    assert summary.mean_size == 5 / 3
    with pytest.raises(ValueError, match="read-only"):
        summary.size_counts[0] = 2


def test_summaries_of_pieces_add_up_to_that_of_the_whole():
    whole = make()
    names = ("nodes", "member", "thresholds", "support", "effective_size")
    first, rest = (make(**{name: getattr(whole, name)[rows] for name in names}) for rows in (slice(0, 1), slice(1, 3)))
    none = make(nodes=np.array([], int), member=np.zeros((0, 3), bool), thresholds=np.array([])).summary()
    assert np.isnan(none.mean_size)
    both = none + first.summary() + rest.summary()
    assert both.size_counts.tolist() == whole.summary().size_counts.tolist()
    assert (both.infinite, both.unreached) == (whole.summary().infinite, whole.summary().unreached)


def test_a_set_is_found_by_its_place_and_by_its_nodes_name():
    sets = make(ids=["tom", "rex", "owl"], class_names=["cat", "dog", "bird"])
    assert sets[0] == ["cat", "bird"]
    assert sets[-1] == sets["owl"] == ["cat", "dog", "bird"]
    assert sets["rex"] == []
    assert list(sets) == [["cat", "bird"], [], ["cat", "dog", "bird"]]
    assert make()[np.int64(0)] == [0, 2]


@pytest.mark.parametrize("which", [slice(1, 3), [1, 2], np.array([False, True, True])])
def test_several_sets_are_sets_again(which):
    few = make(ids=["tom", "rex", "owl"], label_thresholds=np.ones((3, 3)))[which]
    assert few.nodes.tolist() == [1, 7]
    assert few.ids.tolist() == ["rex", "owl"]
    assert few.label_thresholds.shape == (2, 3)
    assert few.infinite == 1


def test_a_set_that_is_not_there_is_said_to_be_missing():
    with pytest.raises(KeyError, match="no set is of that node"):
        make(ids=["tom", "rex", "owl"])["bob"]
    with pytest.raises(KeyError, match="the sets have no ids"):
        make()["bob"]
    with pytest.raises(IndexError, match="there are 3 sets, numbered from 0; got 3"):
        make()[3]


def test_sets_made_with_names_for_nodes_are_found_by_them():
    assert make(nodes=np.array(["a", "b", "c"]), num_nodes=None)["a"] == [0, 2]


def test_names_of_nodes_stand_in_tables():
    named = make(ids=["tom", "rex", "owl"])
    assert named.to_arrow()["node"].to_pylist() == ["tom", "rex", "owl"]
    assert "<td>tom</td>" in named._repr_html_()


def test_names_must_be_as_many_as_sets():
    with pytest.raises(ns.InvalidInputError, match="`ids` must have one name per set, 3"):
        make(ids=["tom"])
    with pytest.raises(ns.InvalidInputError, match="`label_thresholds` must have the shape of `member`"):
        make(label_thresholds=np.ones((3, 2)))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_sets_are_saved_as_the_table_that_they_are(tmp_path, suffix):
    pandas = pytest.importorskip("pandas")
    sets = ns.PredictionSets(
        [4, 2], [[True, True], [False, True]], [0.9, 0.8], [30, 30], [30.0, 30.0], 0.1, ["cat", "dog"]
    )
    sets.save(tmp_path / f"sets{suffix}")
    read = pandas.read_parquet if suffix == ".parquet" else pandas.read_csv
    table = read(tmp_path / f"sets{suffix}")
    labels = [list(names) if suffix == ".parquet" else json.loads(names) for names in table["labels"]]
    assert labels == [["cat", "dog"], ["dog"]]
    assert table["threshold"].tolist() == [0.9, 0.8]
    assert [path.name for path in tmp_path.iterdir()] == [f"sets{suffix}"]
    with pytest.raises(ns.InvalidInputError, match=r"`path` must be one of \.parquet, \.csv; got '\.txt'"):
        sets.save(tmp_path / "sets.txt")


def test_the_coverage_of_sets_is_the_share_that_contain_the_truth():
    sets = ns.PredictionSets([4, 2], [[True, True], [False, True]], [0.9, 0.8], [30, 30], [30.0, 30.0], 0.1)
    assert sets.coverage([0, 0], per="set") == 0.5
    assert sets.coverage([0, 0, 1, 0, 1]) == 1.0
