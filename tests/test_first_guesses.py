"""What a researcher writes first, without the manual: each line works, or says in one sentence what to write instead.

The file is typed like a user's own strict project: mypy --strict and pyright read it too.
"""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import napsets as ns
from worlds import make_ring

WORLD = make_ring(0)
GRAPH: ns.Graph = WORLD["graph"]
P: npt.NDArray[np.float64] = WORLD["probabilities"]
Y: npt.NDArray[np.int64] = WORLD["labels"]
SIZE = Y.size
KNOWN = np.zeros(SIZE, dtype=bool)
KNOWN[WORLD["calibration"]] = True
REST = np.flatnonzero(~KNOWN)
#: Numbers that nodes have elsewhere: a permutation, so that each could also be a position.
IDS = np.random.default_rng(1).permutation(SIZE)
NAMES = np.array([f"user-{i}" for i in IDS])
CLASSES = ["cat", "dog", "owl", "bat"]


@pytest.fixture(autouse=True)
def a_warning_is_an_error(request: pytest.FixtureRequest) -> Any:
    """A guess that works says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ns.NapsetsWarning)
        yield


def frame(index: Any = None, columns: Any = None) -> pd.DataFrame:
    return pd.DataFrame(P, index=index, columns=columns)


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
        assert again.predict().ids.tolist() == ids[REST].tolist()


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


# -- graphs ------------------------------------------------------------------------------------------------------------


def test_weights_that_would_be_lost_are_said() -> None:
    adjacency = GRAPH.to_scipy()
    ns.Graph.from_scipy(adjacency)
    ns.Graph.from_scipy(adjacency * 3.0)  # all edges alike: nothing is lost
    weights = sp.csr_array(adjacency.astype(float) * (1 + np.arange(SIZE) % 3))
    with pytest.warns(ns.NapsetsWarning, match="`adjacency` has entries that differ.*weights_are='strengths'"):
        ns.Graph.from_scipy(weights, directed=True)
    with pytest.warns(ns.NapsetsWarning, match="`adjacency` has entries that differ"):
        ns.NAPS(pool=10).calibrate(sp.csr_array(weights + weights.T), P, Y, KNOWN)
    ns.Graph.from_scipy(weights, directed=True, weights_are="ignored")


def test_a_direction_that_would_be_lost_is_said() -> None:
    one_way = sp.csr_array(sp.triu(GRAPH.to_scipy()))
    with pytest.warns(ns.NapsetsWarning, match="`adjacency` is not symmetric.*directed=True"):
        assert not ns.Graph.from_scipy(one_way).directed
    ns.Graph.from_scipy(one_way, directed=False)
    ns.Graph.from_scipy(one_way, directed=True)


def edges_named(names: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    entries = GRAPH.to_scipy().tocoo()
    return {"source": names[entries.coords[0]], "target": names[entries.coords[1]]}


def networkx_named(names: npt.NDArray[Any]) -> Any:
    """The graph with its nodes in another order than the rows."""
    graph = pytest.importorskip("networkx").Graph()
    graph.add_nodes_from(names[np.random.default_rng(3).permutation(SIZE)].tolist())
    graph.add_edges_from(zip(*(column.tolist() for column in edges_named(names).values()), strict=True))
    return graph


@pytest.mark.parametrize("ids", [IDS, IDS + 10_000, NAMES])
def test_graphs_that_name_their_nodes_are_joined_by_the_ids(ids: npt.NDArray[Any]) -> None:
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=ids).predict(ids[REST])
    for graph in (edges_named(ids), pd.DataFrame(edges_named(ids)), networkx_named(ids)):
        assert ns.NAPS(pool=10).calibrate(graph, P, Y, KNOWN, ids=ids).predict(ids[REST]).same_as(expected)
    indexed = ns.NAPS(pool=10).calibrate(pd.DataFrame(edges_named(NAMES)), frame(NAMES), Y, KNOWN)
    assert indexed.predict(NAMES[REST]).same_as(
        ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=NAMES).predict(NAMES[REST])
    )
    other = np.char.add("other-", NAMES) if ids is NAMES else ids + 20_000
    with pytest.raises(ns.InvalidInputError, match=r"`table\['source'\]` must hold ids of nodes; .* not among them"):
        ns.NAPS().calibrate(edges_named(ids), P, Y, KNOWN, ids=other)


def test_nodes_of_networkx_that_could_be_in_two_orders_are_refused() -> None:
    numbered = networkx_named(np.arange(SIZE))
    with pytest.raises(ns.InvalidInputError, match=r"row i could be node i as well as the i-th.*ids=range\(n\)"):
        ns.NAPS(pool=10).calibrate(numbered, P, Y, KNOWN)
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    by_number = ns.NAPS(pool=10).calibrate(numbered, P, Y, KNOWN, ids=np.arange(SIZE))
    by_index = ns.NAPS(pool=10).calibrate(numbered, frame().iloc[::-1], Y, KNOWN)
    assert by_number.predict(REST).same_as(expected)
    assert by_index.predict(REST).same_as(expected)


def test_the_nodes_of_a_networkx_graph_are_called_by_their_names() -> None:
    graph = networkx_named(NAMES)
    order = np.array([NAMES.tolist().index(name) for name in graph.nodes])
    naps = ns.NAPS(pool=10).calibrate(graph, P[order], Y[order], KNOWN[order])
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=NAMES).predict(NAMES[REST])
    assert naps.predict(NAMES[REST]).same_as(expected)


def test_a_sparse_tensor_is_a_graph() -> None:
    torch = pytest.importorskip("torch")
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    sparse = torch.tensor(GRAPH.to_scipy().toarray()).to_sparse_coo()
    assert ns.NAPS(pool=10).calibrate(sparse, P, Y, KNOWN).predict(REST).same_as(expected)


def test_masks_of_several_splits_say_how_to_take_one() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"Take one split of them, mask\[:, 0\]"):
        ns.SplitConformal().calibrate(P, Y, np.stack([KNOWN] * 10, axis=1))


def pyg(**attributes: Any) -> Any:
    data = pytest.importorskip("torch_geometric.data").Data
    torch = pytest.importorskip("torch")
    row = np.repeat(np.arange(SIZE), GRAPH.degrees)
    index = torch.tensor(np.stack([row, GRAPH.indices.astype(np.int64)]))
    masks = {"train_mask": torch.tensor(np.arange(SIZE) % 3 == 0), "val_mask": torch.tensor(np.arange(SIZE) % 3 == 1)}
    return data(edge_index=index, num_nodes=SIZE, y=torch.tensor(Y), **masks, **attributes)


def test_a_data_of_pytorch_geometric_is_a_graph() -> None:
    torch = pytest.importorskip("torch")
    data = pyg()
    p = torch.tensor(P, dtype=torch.float32)
    auto = ns.Auto(alpha=0.1).calibrate(data, p, data.y, data.val_mask)
    assert len(auto.predict(data.train_mask)) == int(data.train_mask.sum())
    with pytest.warns(ns.NapsetsWarning, match=r"`data\.edge_weight` has entries that differ"):
        ns.NAPS(pool=10).calibrate(pyg(edge_weight=torch.rand(GRAPH.num_edges)), p, data.y, data.val_mask)
    one_way = pyg()
    one_way.edge_index = one_way.edge_index[:, one_way.edge_index[0] < one_way.edge_index[1]]
    with pytest.warns(ns.NapsetsWarning, match=r"`data\.edge_index` is not symmetric"):
        ns.NAPS(pool=10).calibrate(one_way, p, data.y, data.val_mask)


def test_labels_that_trained_the_model_do_not_calibrate_in_silence() -> None:
    data = pyg()
    with pytest.warns(ns.NapsetsWarning, match=r"`calibration` holds 234 of the nodes of `train_mask`.*val_mask"):
        ns.Auto(alpha=0.1).calibrate(data, P, data.y, data.train_mask)
    with pytest.warns(ns.NapsetsWarning, match="nodes of `train_mask`"):
        ns.compare(data, P, data.y, data.train_mask, data.val_mask, methods=["split"])


def test_sets_of_a_model_are_those_of_auto() -> None:
    torch = pytest.importorskip("torch")

    class Known(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, data: Any) -> Any:
            return torch.log(torch.tensor(P))

    data = pyg()
    sets = ns.gnn.predict_sets(Known(), data, data.val_mask, data.train_mask, alpha=0.2)
    auto = ns.Auto(alpha=0.2).calibrate(GRAPH, P, Y, np.asarray(data.val_mask))
    assert sets.same_as(auto.predict(np.asarray(data.train_mask)))
    named = ns.gnn.predict_sets(Known(), data, data.val_mask, data.train_mask, predictor="daps")
    own = ns.gnn.predict_sets(Known(), data, data.val_mask, data.train_mask, predictor=ns.Auto(prefer="small"))
    assert len(named) == len(own) == len(sets)


def test_lengths_that_are_not_there_are_missed() -> None:
    with pytest.warns(ns.NapsetsWarning, match=r"the edges of `graph` have no lengths.*every edge counts as 1"):
        ns.make_method("naps-lengths").calibrate(GRAPH, P, Y, KNOWN)
    with pytest.warns(ns.NapsetsWarning, match="every edge counts as 1"):
        ns.Method(localiser=ns.PathLengths(2.0)).calibrate(GRAPH, P, Y, KNOWN)


# -- progress ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [True, False, None, lambda done, total: None])
def test_progress_is_true_false_or_a_function(progress: Any) -> None:
    out = io.StringIO()
    with redirect_stderr(out):
        auto = ns.Auto().calibrate(GRAPH, P, Y, KNOWN, progress=progress)
        auto.predict(~KNOWN, progress=progress)
        ns.compare(GRAPH, P, Y, KNOWN, ~KNOWN, methods=["split", "naps"], progress=progress)
        ns.recommend(GRAPH, np.where(KNOWN, Y, -1), progress=progress)
    assert bool(out.getvalue()) == (progress is True)


@pytest.mark.parametrize("method", [ns.Auto(), ns.NAPS(exact=True), ns.SplitConformal(), ns.make_method("rlcp")])
def test_calibration_reports_from_nothing_to_all_labelled_nodes(method: Any) -> None:
    reports: list[tuple[int, int]] = []
    method.calibrate(GRAPH, P, Y, KNOWN, progress=lambda done, total: reports.append((done, total)))
    assert reports == sorted(set(reports))
    assert len(reports) >= 2
    assert reports[-1] == (KNOWN.sum(), KNOWN.sum())


def test_progress_of_another_kind_is_refused() -> None:
    with pytest.raises(ns.InvalidInputError, match="`progress` must be True, False or a function"):
        ns.SplitConformal().calibrate(P, Y, KNOWN).predict(progress="yes")


# -- settings ----------------------------------------------------------------------------------------------------------


def test_settings_are_checked_where_they_are_written() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`alpha` must be a number between 0 and 1; got '0\.1'"):
        ns.Auto(alpha="0.1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ns.InvalidInputError, match=r"`by` must be one grouping.*'class', 'degree'"):
        ns.Auto(by=["class", "degree"])


def test_very_few_labels_are_a_warning() -> None:
    few = np.flatnonzero(KNOWN)[:10]
    with pytest.warns(ns.NapsetsWarning, match=r"10 labels are few.*coverage could be anywhere from 69 to 100 %"):
        ns.SplitConformal().calibrate(P, Y, few).predict(REST)
    with pytest.warns(ns.NapsetsWarning, match=r"10 labels are too few.*takes 19"):
        ns.SplitConformal().calibrate(P, Y, few).predict(REST, alpha=0.05)


def test_the_choice_survives_a_file(tmp_path: Path) -> None:
    auto = ns.Auto().calibrate(GRAPH, P, Y, KNOWN)
    auto.save(tmp_path / "auto.npz")
    assert str(ns.Auto.load(tmp_path / "auto.npz").choice) == str(auto.choice)
    assert str(ns.load(tmp_path / "auto.npz").choice) == str(auto.choice)


# -- methods -----------------------------------------------------------------------------------------------------------


def test_every_method_calibrates_and_predicts_in_the_same_words() -> None:
    for method in (ns.make_method("daps"), ns.NAPS(pool=10), ns.SplitConformal(), ns.Auto(), ns.RandomisedNAPS()):
        sets = method.calibrate(GRAPH, P, Y, KNOWN).predict(REST)
        assert len(sets) == REST.size


def test_a_method_that_is_not_calibrated_says_how() -> None:
    daps = ns.make_method("daps")
    daps.calibrate(GRAPH, P, Y, KNOWN)
    with pytest.raises(ns.NotCalibratedError, match=r"calibrated = method\.calibrate\(.*calibrated\.predict"):
        daps.predict(REST)


def test_the_name_of_a_method_is_no_score() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`score` must be .*'daps' is a method: .*make_method\('daps'\)"):
        ns.SplitConformal(score="daps")
    with pytest.raises(ns.InvalidInputError, match=r"Diffused\(\)"):
        ns.NAPS(score="daps")


def test_logits_may_be_whole_numbers() -> None:
    whole = np.random.default_rng(0).integers(-3, 4, size=P.shape)
    sets = [
        ns.SplitConformal().calibrate(logits, Y, KNOWN, logits=True).predict(REST) for logits in (whole, whole * 1.0)
    ]
    assert np.array_equal(sets[0].member, sets[1].member)


def test_logits_are_turned_into_probabilities() -> None:
    logits = np.log(P) + 3.0
    sets = ns.SplitConformal().calibrate(logits, Y, KNOWN, logits=True).predict(REST)
    assert sets.same_as(ns.SplitConformal().calibrate(P, Y, KNOWN).predict(REST))
    with pytest.raises(ns.InvalidInputError, match="logits=True"):
        ns.SplitConformal().calibrate(logits, Y, KNOWN)


def test_predict_without_nodes_is_about_all_that_did_not_calibrate() -> None:
    for method in (ns.SplitConformal(), ns.Auto(), ns.make_method("daps")):
        assert method.calibrate(GRAPH, P, Y, KNOWN).predict().nodes.tolist() == REST.tolist()


def test_predictions_are_joined() -> None:
    split = ns.SplitConformal().calibrate(P, Y, KNOWN, ids=NAMES)
    parts = [split.predict(positions=part) for part in np.array_split(REST, 3)]
    joined = ns.PredictionSets.concat(parts)
    assert joined.same_as(split.predict())
    assert joined.to_pandas().equals(split.predict().to_pandas())


def test_auto_says_what_to_expect_and_what_to_mind() -> None:
    auto = ns.Auto(alpha=0.1).calibrate(GRAPH, P, Y, KNOWN)
    verdict = auto.verdict()
    assert verdict.alpha == 0.1
    assert verdict.nodes == REST.size
    assert verdict.size == pytest.approx(ns.mean_size(auto.predict()))
    assert verdict.choice == str(auto.choice)
    assert len(str(verdict).splitlines()) == 3
    assert list(auto.warnings()) == list(verdict.warnings)
    one_class = ns.Auto(alpha=0.1).calibrate(GRAPH, P, Y, KNOWN & (P.argmax(axis=1) < 2))
    assert any("predicted class" in warning for warning in one_class.warnings())


def test_coverage_by_degree_of_intervals() -> None:
    rng = np.random.default_rng(0)
    targets = rng.normal(size=SIZE)
    intervals = ns.SplitConformal("absolute").calibrate(np.zeros(SIZE), targets, KNOWN).predict()
    groups = ns.coverage_by_degree(intervals, targets, GRAPH, bins=3)
    assert np.average(groups.coverage, weights=groups.count) == pytest.approx(ns.coverage(intervals, targets))


def test_all_that_predicts_says_what_to_watch_for() -> None:
    for method in (ns.NAPS(), ns.make_method("daps")):
        calibrated = method.calibrate(GRAPH, P, Y, KNOWN)
        assert list(calibrated.warnings()) == list(calibrated.verdict().warnings)
        assert repr(calibrated.verdict()) == str(calibrated.verdict())


@pytest.mark.parametrize("method", [ns.SplitConformal(), ns.NAPS(exact=True), ns.make_method("daps"), ns.Auto()])
def test_warnings_name_the_line_that_predicts(method: Any) -> None:
    calibrated = method.calibrate(GRAPH, P, Y, KNOWN)
    with pytest.warns(ns.NapsetsWarning, match="calibration nodes") as record:
        valued = calibrated.predict(np.flatnonzero(KNOWN)[:3], p_values=True)
    assert [warning.filename for warning in record] == [__file__] * len(record)
    assert valued.p_values.shape == (3, 4)


# -- comparing ---------------------------------------------------------------------------------------------------------


def test_methods_are_compared_by_name_and_as_they_are(tmp_path: Path) -> None:
    methods = {"aps": "split", "mine": ns.NAPS(pool=20, score="thr"), "daps": ns.make_method("daps"), "auto": "auto"}
    comparison = ns.compare(GRAPH, P, Y, KNOWN, ~KNOWN, methods=methods)
    assert [result.name for result in comparison] == list(methods)
    assert len(comparison) == 4
    mine = ns.NAPS(pool=20, score="thr").calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    assert comparison["mine"].sets.same_as(mine)
    assert comparison[1].name == "mine"
    assert comparison["aps"].coverage == ns.coverage(ns.SplitConformal().calibrate(P, Y, KNOWN).predict(REST), Y)
    table = comparison.to_pandas()
    assert table.index.tolist() == list(methods)
    assert table.loc["mine", "mean_size"] == ns.mean_size(mine)
    text = str(comparison)
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    assert all(name in text for name in methods)
    assert "<table" in comparison._repr_html_()
    assert comparison.best.name == comparison.verdict().method
    comparison.best.save(tmp_path / "best.npz")
    again = ns.load(tmp_path / "best.npz")
    assert again.predict(REST).same_as(comparison.best.sets)


def test_a_list_of_methods_names_itself() -> None:
    comparison = ns.compare(GRAPH, P, Y, KNOWN, ~KNOWN, methods=["split", ns.NAPS(pool=20), ns.Auto(prefer="small")])
    assert [result.name for result in comparison] == ["split", "NAPS", "Auto"]


def test_a_comparison_is_drawn() -> None:
    chart = ns.compare(GRAPH, P, Y, KNOWN, ~KNOWN, methods=["split", "naps-exact"]).plot()
    assert "naps-exact" in chart.to_json()


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`methods` must all predict intervals.*'aps'"):
        ns.compare(GRAPH, P, Y, KNOWN, ~KNOWN, methods={"aps": ns.SplitConformal(), "cqr": ns.NAPS(score="cqr")})


# -- weights of one's own ----------------------------------------------------------------------------------------------


def test_a_localiser_of_ones_own_weights() -> None:
    adjacency = GRAPH.to_scipy().astype(float)
    method = ns.Method("aps", ns.Weights(adjacency))
    naps = ns.NAPS(hops=1).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    assert method.calibrate(GRAPH, P, Y, KNOWN).predict(REST).same_as(naps)
    near = ns.Weights(lambda node, reference: np.isin(reference, GRAPH.neighbours(node)).astype(float))
    called = ns.Method("aps", near)
    assert called.calibrate(GRAPH, P, Y, KNOWN).predict(REST).same_as(naps)


def test_weights_are_saved_with_the_method(tmp_path: Path) -> None:
    near = GRAPH.to_scipy().astype(float)
    for level in (ns.Nominal(), ns.Exact()):
        method = ns.Method("aps", ns.Weights(near @ near + 0.01 * sp.eye_array(SIZE), own=0.5), level)
        calibrated = method.calibrate(GRAPH, P, Y, KNOWN)
        calibrated.save(tmp_path / "weights.npz")
        again = ns.load(tmp_path / "weights.npz")
        assert again.predict(REST).same_as(calibrated.predict(REST))
        assert again.method.localiser.own == 0.5
    dense = ns.Method("aps", ns.Weights(near.toarray())).calibrate(GRAPH, P, Y, KNOWN)
    assert dense.predict(REST).same_as(ns.Method("aps", ns.Weights(near)).calibrate(GRAPH, P, Y, KNOWN).predict(REST))
    called = ns.Method("aps", ns.Weights(lambda node, reference: np.ones(reference.size)))
    with pytest.raises(ns.InvalidInputError, match="`weights` must be a matrix to be saved; Weights has a function"):
        called.calibrate(GRAPH, P, Y, KNOWN).save(tmp_path / "called.npz")


def test_weights_and_shifts_are_explained() -> None:
    near = GRAPH.to_scipy().toarray() + 0.2
    place = int(REST[0])
    own = ns.inspect_node(ns.Method("aps", ns.Weights(near)).calibrate(GRAPH, P, Y, KNOWN), place)
    assert own.neighbours.size == KNOWN.sum()
    assert own.reached_mass >= own.needed_mass
    shifted = ns.inspect_node(ns.Method("aps", ns.LabelShift([1, 2, 1, 1])).calibrate(GRAPH, P, Y, KNOWN), place)
    assert shifted.reason().startswith("Labelled nodes are weighted by the ratio of their class")


def test_a_known_shift_has_importance_weights() -> None:
    ratio = 1.0 + (GRAPH.degrees > np.median(GRAPH.degrees))
    shifted = ns.Method("aps", ns.CovariateShift(ratio)).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    assert len(shifted) == REST.size


# -- types -------------------------------------------------------------------------------------------------------------


def test_strict_type_checkers_accept_all_of_this(tmp_path: Path) -> None:
    from mypy import api

    cache = str(Path(__file__).parents[1] / ".mypy_cache" / "guesses")
    output, errors, code = api.run(["--strict", "--cache-dir", cache, __file__])
    assert (errors, code) == ("", 0), output


@pytest.mark.slow
def test_pyright_accepts_all_of_this() -> None:
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout
