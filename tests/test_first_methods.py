"""First lines with methods: progress, settings, comparisons, and weights of one's own.

What a researcher writes without the manual works, or says in one sentence what to write instead. The file is typed
like a user's own strict project: mypy --strict and pyright read it too.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import napsets as ns
from first_lines import A_WARNING_IS_AN_ERROR, GRAPH, KNOWN, NAMES, REST, SIZE, P, Y

#: A guess that works says nothing.
pytestmark = A_WARNING_IS_AN_ERROR


# -- progress ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [True, False, None, lambda done, total: None])
def test_progress_is_true_false_or_a_function(progress: Any) -> None:
    out = io.StringIO()
    with redirect_stderr(out):
        auto = ns.Auto().calibrate(GRAPH, P, Y, KNOWN, progress=progress)
        auto.predict(~KNOWN, progress=progress)
        ns.compare(GRAPH, P, Y, KNOWN, ~KNOWN, methods=["split", "naps"], progress=progress)
    assert bool(out.getvalue()) == (progress is True)


@pytest.mark.parametrize("method", [ns.Auto(), ns.NAPS(exact=True), ns.SplitConformal(), ns.make_method("snaps")])
def test_calibration_reports_from_nothing_to_all_labelled_nodes(method: Any) -> None:
    reports: list[tuple[int, int]] = []
    method.calibrate(GRAPH, P, Y, KNOWN, progress=lambda done, total: reports.append((done, total)))
    assert reports == sorted(set(reports))
    assert len(reports) >= 2
    assert reports[-1] == (KNOWN.sum(), KNOWN.sum())


def test_progress_of_another_kind_is_refused() -> None:
    with pytest.raises(ns.InvalidInputError, match="`progress` must be True, False or a function"):
        ns.SplitConformal().calibrate(P, Y, KNOWN).predict(progress="yes")  # type: ignore[call-overload]


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


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (lambda: [P[:100], P[100:]], r"got a list of 2 batches\. Pass np\.concatenate\(batches\)"),
        (lambda: (P[: SIZE // 2], P[SIZE // 2 :]), "got a tuple of 2 batches"),
        (lambda: iter(P), "Run the model on its batches, and join the outputs"),
    ],
)
def test_batches_are_to_be_joined(batches: Any, message: str) -> None:
    with pytest.raises(ns.InvalidInputError, match=f"`probabilities` must be one array.*{message}"):
        ns.SplitConformal().calibrate(batches(), Y, KNOWN)
    ns.SplitConformal().calibrate(list(P), Y, KNOWN)  # rows are no batches
    with pytest.raises(ns.InvalidInputError, match=r"`labels` must be one array.*batches"):
        ns.SplitConformal().calibrate(P, [Y[:100], Y[100:]], KNOWN)


@pytest.mark.gnn
def test_a_loader_gets_a_sentence_wherever_it_is_passed() -> None:
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(torch.tensor(P), batch_size=50)
    with pytest.raises(ns.InvalidInputError, match=r"`probabilities` must be one array.*got a DataLoader"):
        ns.SplitConformal().calibrate(loader, Y, KNOWN)
    with pytest.raises(ns.InvalidInputError, match=r"`graph` must hold all edges at once; a DataLoader"):
        ns.NAPS().calibrate(loader, P, Y, KNOWN)
    pytest.importorskip("torch_geometric")
    with pytest.raises(ns.InvalidInputError, match=r"`data` must hold all edges at once; a DataLoader"):
        ns.gnn.predict_sets(torch.nn.Linear(2, 3), loader, KNOWN, REST)


# -- methods -----------------------------------------------------------------------------------------------------------


def test_a_method_that_is_not_calibrated_says_how() -> None:
    daps = ns.make_method("daps")
    daps.calibrate(GRAPH, P, Y, KNOWN)
    with pytest.raises(ns.NotCalibratedError, match=r"calibrated = method\.calibrate\(.*calibrated\.predict"):
        daps.predict(REST)


def test_new_rows_and_a_missing_graph_get_a_sentence() -> None:
    split = ns.SplitConformal().calibrate(P, Y, KNOWN)
    sets = split.predict(probabilities=P[:2], p_values=True)
    assert sets.p_values is not None
    assert np.array_equal(sets.member, sets.p_values > sets.alpha)
    with pytest.raises(ns.InvalidInputError, match=r"`graph` or `features` must be given: .* got None for both"):
        ns.Auto().calibrate(None, P, Y, KNOWN)


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
    assert [result.name for result in comparison] == ["split", "NAPS", "Auto small"]


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
    method = ns.Method("aps", near)
    assert method.calibrate(GRAPH, P, Y, KNOWN).predict(REST).same_as(naps)


def test_weights_are_saved_with_the_method(tmp_path: Path) -> None:
    near = GRAPH.to_scipy().astype(float)
    for level in (ns.Nominal(), ns.Exact()):
        method = ns.Method("aps", ns.Weights(near @ near + 0.01 * sp.eye_array(SIZE), own=0.5), level)
        calibrated = method.calibrate(GRAPH, P, Y, KNOWN)
        calibrated.save(tmp_path / "weights.npz")
        again = ns.load(tmp_path / "weights.npz")
        assert again.predict(REST).same_as(calibrated.predict(REST))
        assert isinstance(again.method.localiser, ns.Weights)
        assert again.method.localiser.own == 0.5
    dense = ns.Method("aps", ns.Weights(near.toarray())).calibrate(GRAPH, P, Y, KNOWN)
    assert dense.predict(REST).same_as(ns.Method("aps", ns.Weights(near)).calibrate(GRAPH, P, Y, KNOWN).predict(REST))
    method = ns.Method("aps", ns.Weights(lambda node, reference: np.ones(reference.size)))
    with pytest.raises(ns.InvalidInputError, match="`weights` must be a matrix to be saved; Weights has a function"):
        method.calibrate(GRAPH, P, Y, KNOWN).save(tmp_path / "method.npz")


def test_weights_and_shifts_are_explained() -> None:
    near = GRAPH.to_scipy().toarray() + 0.2
    place = int(REST[0])
    own = ns.inspect_node(ns.Method("aps", ns.Weights(near)).calibrate(GRAPH, P, Y, KNOWN), place)
    assert own.neighbours.size == KNOWN.sum()
    assert own.reached_mass >= own.needed_mass
    shifted = ns.inspect_node(ns.Method("aps", ns.LabelShift([1, 2, 1, 1])).calibrate(GRAPH, P, Y, KNOWN), place)
    assert shifted.reason().startswith("Labelled nodes are weighted by the ratio of their class")
