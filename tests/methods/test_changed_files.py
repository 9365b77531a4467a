"""Saved methods that somebody changed, or files of another kind: refused with the reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.methods import load

from .test_saving import GRAPH, P, naps, split


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


def test_a_method_whose_held_out_labels_are_evidence_needs_its_graph(tmp_path):
    path = tmp_path / "odd.npz"
    ns.make_method("informed").calibrate(GRAPH, P, np.arange(60) % 4, np.arange(40)).save(path)
    load(path)
    rewrite(path, {"header": put("directed", None)})
    with pytest.raises(ns.FileFormatError, match="`directed` must be True or False where held-out labels are evidence"):
        load(path)


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
