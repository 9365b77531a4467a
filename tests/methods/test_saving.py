"""A calibrated predictor as a file: whole or not at all, the same sets afterwards, and no trust in strangers."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

import napsets as ns
from napsets.files import npz_format
from napsets.localisers import LOCALISERS
from napsets.methods import Calibrated, load
from napsets.scores import SCORES
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE = 60
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 200)), SIZE)
P = RNG.dirichlet(np.ones(4), SIZE)
Y = RNG.integers(4, size=SIZE)
NODES = np.arange(40, 60)


def naps(**settings):
    return ns.NAPS(**settings).calibrate(GRAPH, P, Y, calibration=np.arange(40))


def split(**settings):
    return ns.SplitConformal(**settings).calibrate(P, Y, calibration=np.arange(40))


@pytest.mark.parametrize(
    "predictor",
    [
        naps(hops=2, decay="hyperbolic", seed=3),
        naps(hops=3, decay=lambda k: 1 / k**2, fallback="global", allow_empty=False),
        naps(hops=2, decay=np.array([1.0, 0.3]), score=ns.RAPS(0.2, 1)),
        naps(hops=np.int64(2), seed=np.int32(4), score=ns.SAPS(weight=np.float32(0.25))),
        naps(score=ns.THR()),
        split(seed=5, score=ns.APS(randomized=False), allow_empty=False),
        split(score=ns.SAPS()),
    ],
    ids=["named", "function", "array", "numpy", "thr", "split", "split-saps"],
)
def test_what_is_read_predicts_what_was_written(tmp_path, predictor):
    path = tmp_path / "predictor.npz"
    predictor.save(path)
    again = type(predictor).load(path)
    assert type(again) is type(predictor)
    assert again.score == predictor.score
    for alpha in (0.05, 0.3):
        one, other = predictor.predict(NODES, alpha), again.predict(NODES, alpha)
        assert np.array_equal(one.member, other.member)
        assert same_bits(one.thresholds, other.thresholds)
        assert np.array_equal(one.support, other.support)
    assert os.listdir(tmp_path) == ["predictor.npz"]


@pytest.mark.parametrize("directed", [False, True])
def test_a_function_is_kept_as_far_as_the_graph_is_deep(tmp_path, directed):
    path = ns.Graph.from_edge_index([np.arange(99), np.arange(1, 100)], 100, directed=directed)
    p, y = RNG.dirichlet(np.ones(4), 100), RNG.integers(4, size=100)
    predictor = ns.NAPS(hops=10**9, decay=lambda k: 1 / k).calibrate(path, p, y, calibration=np.arange(50, 100))
    predictor.save(tmp_path / "a.npz")
    again = ns.NAPS.load(tmp_path / "a.npz")
    assert len(again.decay) == again.hops == 99
    assert same_bits(again.predict([0, 20], 0.5).thresholds, predictor.predict([0, 20], 0.5).thresholds)


def test_direction_ids_and_float32_survive(tmp_path):
    graph = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 400)), SIZE, directed=True)
    ids = np.array([f"n{i}" for i in range(SIZE)])
    predictor = ns.NAPS().calibrate(graph, P.astype(np.float32), Y, calibration=np.arange(40), ids=ids)
    predictor.save(tmp_path / "a")
    again = ns.NAPS.load(str(tmp_path / "a"))
    assert again.calibrated_.graph == graph
    assert again.calibrated_.graph.directed
    assert again.calibrated_.score.probabilities.dtype == np.float32
    assert np.array_equal(again.predict(NODES, 0.3).member, predictor.predict(NODES, 0.3).member)


def test_the_file_holds_no_pickle(tmp_path):
    naps().save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["header"]))["format"] == "napsets-predictor-3"
        assert all(archive[name].dtype != object for name in archive.files)


def test_loading_the_other_kind_is_refused(tmp_path):
    split().save(tmp_path / "a.npz")
    with pytest.raises(ns.InvalidInputError, match=r"`path` must hold a NAPS; .*a\.npz holds a Split"):
        ns.NAPS.load(tmp_path / "a.npz")


def test_a_score_of_ones_own_cannot_be_saved_and_leaves_no_file(tmp_path):
    class Mine(ns.APS):
        pass

    with pytest.raises(ns.InvalidInputError, match=r"`score` must be one of aps, .* to be saved; got Mine"):
        naps(score=Mine()).save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


@dataclass(frozen=True)
class Mixed:
    """A localiser of a user's own: neighbours within some hops, weighed by hand."""

    weights: tuple[float, ...] = (1.0, 0.5)
    near: ns.Hops = field(default_factory=ns.Hops)

    def fit(self, reference):
        return replace(self.near, hops=len(self.weights), decay=self.weights).fit(reference)


@pytest.mark.parametrize("level", [ns.Nominal(), ns.Exact()])
@pytest.mark.parametrize("score", ["aps", "cqr"])
def test_a_localiser_of_ones_own_survives_once_it_has_a_name(tmp_path, monkeypatch, score, level):
    monkeypatch.setitem(LOCALISERS, "mixed", Mixed)
    method = ns.Method(score, Mixed((1.0, 0.5, np.float64(0.2)), ns.Hops(1, pool=5.0)), level)
    outputs, truth = (P, Y) if score == "aps" else (np.sort(P[:, :2], axis=1), P[:, 2])
    calibrated = method.calibrate(GRAPH, outputs, truth, np.arange(40))
    calibrated.save(tmp_path / "a.npz")
    again = ns.load(tmp_path / "a.npz")
    assert again.method == method
    assert same_bits(again.predict(NODES, 0.3).thresholds, calibrated.predict(NODES, 0.3).thresholds)
    monkeypatch.delitem(LOCALISERS, "mixed")
    with pytest.raises(ns.FileFormatError, match=r"got 'mixed'. If it is of your own, import what enters it in LOCAL"):
        ns.load(tmp_path / "a.npz")


def test_a_localiser_without_a_name_is_refused_with_what_to_do(tmp_path):
    calibrated = ns.Method("aps", Mixed()).calibrate(GRAPH, P, Y, np.arange(40))
    with pytest.raises(ns.InvalidInputError, match=r"got Mixed\. .* frozen dataclass .*: @LOCALISERS\.add\("):
        calibrated.save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("weights", [np.array([1.0, 0.5]), (lambda k: 1.0,)], ids=["array", "function"])
def test_a_setting_that_is_no_json_is_refused_by_name(tmp_path, monkeypatch, weights):
    monkeypatch.setitem(LOCALISERS, "mixed", Mixed)
    calibrated = ns.Method("aps", Mixed()).calibrate(GRAPH, P, Y, np.arange(40))
    calibrated = replace(calibrated, method=replace(calibrated.method, localiser=Mixed(weights)))
    with pytest.raises(ns.InvalidInputError, match=r"`weights` must be a number, a text, or a tuple .*; Mixed has a"):
        calibrated.save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("score", ["aps", "cqr"])
def test_each_method_of_a_comparison_survives_the_winner_with_its_choice(tmp_path, score):
    rng = np.random.default_rng(2)
    graph = ns.Graph.from_edge_index(rng.integers(400, size=(2, 1600)), 400)
    calibration, nodes = np.arange(300), np.arange(300, 400)
    if score == "aps":
        outputs, truth = rng.dirichlet(np.ones(4), 400), rng.integers(4, size=400)
    else:
        truth = rng.normal(size=400)
        outputs = truth[:, None] + np.sort(rng.normal(size=(400, 2)), axis=1)
    comparison = ns.compare(graph, outputs, truth, calibration, nodes, score=score, alpha=0.2)
    for result in comparison:
        result.calibrated.save(tmp_path / "a.npz")
        again = ns.load(tmp_path / "a.npz")
        assert isinstance(again, Calibrated)
        assert again.method == result.calibrated.method
        assert again.predict(nodes, 0.2).same_as(result.prediction)
        assert str(again.choice) == str(result.calibrated.choice)
    comparison["auto"].calibrated.save(tmp_path / "a.npz")
    again = ns.load(tmp_path / "a.npz")
    assert again.choice.candidates == comparison["auto"].calibrated.choice.candidates


def test_an_interrupted_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    split(seed=1).save(path)
    before = path.read_bytes()

    def half_written(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(npz_format.np, "savez", half_written)
    with pytest.raises(KeyboardInterrupt):
        naps().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.parametrize("make", [naps, split])
def test_a_file_cut_anywhere_is_refused_by_name(tmp_path, make):
    path = tmp_path / "cut.npz"
    make().save(path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ns.FileFormatError, match=r"cut\.npz"):
            load(path)


def test_a_file_with_a_wrong_byte_is_refused_or_reads_the_same(tmp_path):
    path = tmp_path / "bent.npz"
    naps().save(path)
    whole = bytearray(path.read_bytes())
    expected = naps().predict(NODES, 0.3)
    for place in np.random.default_rng(1).integers(len(whole), size=150).tolist():
        bent = bytearray(whole)
        bent[place] ^= 0xFF
        path.write_bytes(bent)
        with suppress(ns.FileFormatError):
            again = load(path)  # that byte means nothing, such as a time of day
            assert np.array_equal(again.predict(NODES, 0.3).member, expected.member)


def rewrite(path, changes):
    """Change parts of a saved file: arrays by value, the header by a function of it; None removes a part."""
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    for name, change in changes.items():
        if callable(change):
            parts[name] = np.array(json.dumps(change(json.loads(str(parts[name])))))
        elif change is None:
            del parts[name]
        else:
            parts[name] = change
    np.savez(path, **parts)


def drop(key):
    return lambda header: {k: v for k, v in header.items() if k != key}


def put(key, value):
    return lambda header: header | {key: value}


def setting(key, value):
    if key == "directed":
        return put(key, value)
    part = {"hops": "localiser", "decay": "localiser", "pool": "localiser", "fallback": "level"}.get(key)
    if part is None:
        return of_method(lambda method: method | {key: value})
    return of_method(lambda m: m | {part: m[part] | {"settings": m[part]["settings"] | {key: value}}})


def of_method(change):
    """Change the description of the method in a header."""
    return lambda header: header | {"method": change(header["method"])}


def scored(name, settings):
    """Put another score into a header, where it was asked for and where it was bound."""
    other = {"name": name, "settings": settings}
    return lambda header: of_method(put("score", other))(header) | {"bound": header["bound"] | {"score": other}}


MISTYPED = {
    "no header": ({"header": None}, "header"),
    "a header that is no object": ({"header": lambda h: [1, 2]}, "is truncated or of another kind"),
    "another format": ({"header": put("format", "napsets-predictor-99")}, "napsets-predictor-3 file; .* says it is '"),
    "no format": ({"header": drop("format")}, "format"),
    "no method": ({"header": drop("method")}, "method"),
    "no seed": ({"header": of_method(drop("seed"))}, "seed"),
    "an unknown kind": ({"header": put("kind", "Oracle")}, "`kind` must be one of NAPS, .*; got 'Oracle'"),
    "an unknown score": ({"header": scored("XPS", {})}, "`score` must be one of aps"),
    "a setting no score has": ({"header": scored("aps", {"x": 1})}, "x"),
    "no uniforms": ({"u": None}, "u"),
    "short uniforms": ({"u": np.zeros(3)}, "`u` must have one entry per node, 60; got 3"),
    "short scores": ({"scores": np.zeros(3)}, "`scores` must have one entry per calibration node, 40; got 3"),
    "scores that are NaN": ({"scores": np.full(40, np.nan)}, "`scores` must not be NaN"),
    "calibration out of range": ({"calibration": np.arange(40) + 30}, "`calibration` must hold ids from 0 to 59"),
    "calibration that repeats": ({"calibration": np.zeros(40, int)}, "`calibration` must not repeat"),
    "bad probabilities": ({"probabilities": np.ones((60, 4))}, "`probabilities` must have rows that sum to 1"),
    "too few probabilities": ({"probabilities": P[:50], "u": np.zeros(50)}, "`probabilities` must have one row per"),
    "broken offsets": ({"indptr": np.arange(61)}, "`indptr` must ascend"),
    "neighbours out of range": ({"indices": np.full(GRAPH.num_edges, 99)}, "`indices` must hold ids"),
    "neighbours out of order": ({"indices": np.zeros(GRAPH.num_edges, int)}, "`indices` must ascend"),
    "edges that go one way": (
        {"indptr": np.r_[0, np.ones(60, int)], "indices": np.array([1], np.int32)}, "0 → 1 has no reverse edge",
    ),
    "uniforms above 1": ({"u": np.full(60, 1.5)}, r"`u` must lie in \[0, 1\]; got values from 1.5 to 1.5"),
    "a method that is a list": ({"header": put("method", [1])}, "is truncated or of another kind"),
    "a header nested without end": ({"header": np.array("[" * 100_000)}, "is truncated or of another kind"),
    **{
        f"{key} {value!r}": ({"header": setting(key, value)}, f"`{key}` (must|as an array must)")
        for key, value in [
            ("fallback", "nonsense"), ("fallback", None), ("fallback", ["full"]), ("seed", "abc"), ("seed", -1),
            ("seed", 0.5), ("seed", None), ("hops", -1), ("hops", "2"), ("hops", 10**20), ("hops", None),
            ("decay", "geometic"), ("decay", [1.0]), ("decay", [1.0, 0.5, 0.2]), ("decay", [1.0, -2.0]),
            ("decay", [1.0, float("nan")]), ("decay", {"a": 1}), ("decay", 7), ("allow_empty", "no"),
            ("allow_empty", 2), ("directed", "yes"), ("pool", -1.0), ("pool", "x"),
        ]
    },
    **{
        f"{name} with {settings}": (
            {"header": scored(name, settings)}, f"`{next(iter(settings))}` must",
        )
        for name, settings in [
            ("aps", {"randomized": "yes"}), ("raps", {"penalty": "x"}), ("raps", {"penalty": float("nan")}),
            ("raps", {"penalty": -1.0}), ("raps", {"free_ranks": 1.5}), ("saps", {"weight": None}),
        ]
    },
    "another score than was used": ({"header": scored("thr", {})}, "those that THR gives"),
    "scores that no label has": ({"scores": np.full(40, -np.inf)}, "`scores` must be those that .* gives"),
    "uniforms of another score": (
        {"header": of_method(put("score", {"name": "raps", "settings": {}}))}, "`bound` must be of the",
    ),
    "a bound form of another score": (
        {"header": put("bound", {"name": "matrix"}), "score_matrix": P}, "`bound` must be that of aps; got 'matrix'",
    ),
    "a bound form in another": (
        {"header": lambda h: h | {"bound": {"name": "by-label", "inner": h["bound"], "mix": 0.5}}}, "`bound` must be",
    ),
    "no calibration": ({"calibration": np.empty(0, int), "scores": np.empty(0)}, "`calibration` must hold at least"),
    "a localiser that is not its own": (
        {"header": of_method(put("localiser", {"name": "everyone", "settings": {}}))}, "`localiser` must be hops in",
    ),
    "a graph that is missing": ({"header": put("directed", None)}, "`graph` must be given"),
    "a score by number": ({"header": scored(3, {})}, "`score` must be one of aps"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTYPED)
def test_a_mistyped_file_is_refused_with_the_reason(tmp_path, kind):
    changes, message = MISTYPED[kind]
    path = tmp_path / "odd.npz"
    naps().save(path)
    rewrite(path, changes)
    with pytest.raises(ns.FileFormatError, match=message) as info:
        load(path)
    assert "odd.npz" in str(info.value)


def swapped(path):
    with np.load(path) as archive:
        return {"level_shares": archive["level_scores"], "level_scores": archive["level_shares"]}


def one_changed(name, value):
    def change(path):
        with np.load(path) as archive:
            array = archive[name].copy()
        array[-1] = value
        return {name: array}

    return change


def overlapping(path):
    with np.load(path) as archive:
        parts = {name: archive[name].copy() for name in ("calibration", "scores", "apart", "apart_scores")}
    parts["apart"][0], parts["apart_scores"][0] = parts["calibration"][0], parts["scores"][0]
    return {"apart": parts["apart"], "apart_scores": parts["apart_scores"]}


def shortened(path):
    with np.load(path) as archive:
        names = ("apart", "apart_scores", "level_shares", "level_scores")
        return {name: archive[name][:0] for name in names}


def moved(path):
    """Give a label held out to the reference: ranks would have to change, too."""
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    return {
        "calibration": np.append(parts["calibration"], parts["apart"][0]),
        "scores": np.append(parts["scores"], parts["apart_scores"][0]),
        "apart": parts["apart"][1:],
        "apart_scores": parts["apart_scores"][1:],
        "level_shares": parts["level_shares"][1:],
        "level_scores": parts["level_scores"][1:],
    }


LEVELS = {
    "infinite shares": (one_changed("level_shares", np.inf), r"`level_shares` must lie in \[0, 1\); got .* to inf"),
    "shares above 1": (one_changed("level_shares", 1.5), r"`level_shares` must lie in \[0, 1\); got .* to 1.5"),
    "shares that are NaN": (one_changed("level_shares", np.nan), "`level_shares` must not be NaN"),
    "scores of other labels": (one_changed("level_scores", 0.5), "`level_scores` must be those"),
    "shares and scores swapped": (swapped, "`level_scores` must be those of the level nodes"),
    "a node in both parts": (overlapping, "`apart` must hold no node of `calibration`; node .* is in both"),
    "no level part": (shortened, "`apart` must hold at least one node; it is empty"),
    "parts of another size": (moved, "`calibration` must hold 20 of 40 labelled nodes"),
}


@pytest.mark.parametrize("make", [naps, lambda exact: split(score=ns.ByLabel())], ids=["naps", "split"])
@pytest.mark.parametrize("kind", LEVELS)
def test_a_level_that_the_labels_do_not_give_is_refused(tmp_path, kind, make):
    change, message = LEVELS[kind]
    path = tmp_path / "odd.npz"
    make(exact=True).save(path)
    load(path)
    rewrite(path, change(path))
    with pytest.raises(ns.FileFormatError, match=message):
        load(path)


def test_a_class_that_could_not_have_written_the_file_refuses_it(tmp_path):
    path = tmp_path / "odd.npz"
    split().save(path)
    rewrite(path, {"header": of_method(put("localiser", {"name": "hops", "settings": {}}))})
    with pytest.raises(ns.FileFormatError, match="`localiser` must be everyone in a file of a Split"):
        ns.SplitConformal.load(path)
    split().save(path)
    rewrite(path, {"header": of_method(put("level", {"name": "nominal", "settings": {"fallback": "global"}}))})
    with pytest.raises(ns.FileFormatError, match="`path` must hold settings that a SplitConformal can have"):
        ns.SplitConformal.load(path)


@pytest.mark.parametrize("layers", [40, 300])
@pytest.mark.parametrize("part", ["score", "bound"])
def test_scores_nested_without_end_are_refused(tmp_path, layers, part):
    path = tmp_path / "odd.npz"
    naps().save(path)

    def nest(header):
        inner = header["method"]["score"] if part == "score" else header["bound"]
        for _ in range(layers):
            inner = (
                {"name": "diffused", "settings": {"base": inner}}
                if part == "score"
                else {"name": "by-label", "inner": inner, "mix": 0.5}
            )
        return header | {"bound": inner} if part == "bound" else of_method(put("score", inner))(header)

    rewrite(path, {"header": nest})
    with pytest.raises(ns.FileFormatError, match=r"`score` must be nested less deep|`bound` must be that of aps"):
        load(path)


@pytest.mark.parametrize(
    "score", [ns.Diffused("raps"), ns.ByLabel(ns.Informed()), ns.Informed(ns.Sharpened("aps", 2.0)), ns.Informed("thr")]
)
def test_scores_of_scores_survive(tmp_path, score):
    predictor = naps(score=score, exact=True)
    predictor.save(tmp_path / "a.npz")
    again = ns.NAPS.load(tmp_path / "a.npz")
    assert again.score == score
    assert same_bits(again.predict(NODES, 0.3).thresholds, predictor.predict(NODES, 0.3).thresholds)


def test_a_score_bound_to_something_that_cannot_be_written_is_refused_by_name(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Odd(ns.APS):
        def bind(self, outputs, u, graph=None, reference=None):
            bound = super().bind(outputs, u)
            return SimpleNamespace(probabilities=outputs, at=bound.at, matrix=bound.matrix)

    monkeypatch.setitem(SCORES, "odd", Odd)
    with pytest.raises(ns.InvalidInputError, match="`score` must be bound to something with the method parts"):
        naps(score=Odd()).save(tmp_path / "a.npz")
    assert not os.listdir(tmp_path)


def test_what_was_scored_cannot_be_written_to_here_or_in_another_process():
    for scored in (
        naps(exact=True).calibrated_.scored,
        pickle.loads(pickle.dumps(naps(exact=True).calibrated_.scored)),
    ):
        for array in (scored.u, scored.level_nodes, scored.level_scores, scored.reference.scores, scored.calibration):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x93NUMPY\x01\x00", b"PK\x03\x04rest"])
def test_files_of_another_kind_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ns.FileFormatError, match="x is truncated or of another kind"):
        ns.NAPS.load(tmp_path / "x")


def test_arrays_and_pickles_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("a.npy", "p.npy"):
        with pytest.raises(ns.FileFormatError, match=name):
            ns.NAPS.load(tmp_path / name)


@pytest.mark.parametrize("name", ["absent.npz", "."])
def test_a_file_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(ns.FileFormatError, match="must be a file; there is none"):
        ns.NAPS.load(tmp_path / name)
