"""Saved methods that somebody changed, or files of another kind: refused with the reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.methods import load

from .test_saving import GRAPH, P, naps


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
    """Put another score into a header."""
    return of_method(put("score", {"name": name, "settings": settings}))


MISTYPED = {
    "no header": ({"header": None}, "header"),
    "a header that is no object": ({"header": lambda h: [1, 2]}, "is truncated or of another kind"),
    "another format": ({"header": put("format", "napsets-99")}, "napsets-calibrated file; .* says it is 'napsets-99'"),
    "no format": ({"header": drop("format")}, "format"),
    "no method": ({"header": drop("method")}, "method"),
    "no seed": ({"header": of_method(drop("seed"))}, "seed"),
    "an unknown score": ({"header": scored("XPS", {})}, "`score` must be one of aps"),
    "a setting no score has": ({"header": scored("aps", {"x": 1})}, "x"),
    "a score of numbers": ({"header": scored("cqr", {})}, "`reference_truth` must have one entry per node"),
    "nodes out of range": ({"reference": np.arange(40) + 30}, "`reference` must hold ids from 0 to 59"),
    "nodes that repeat": ({"reference": np.zeros(40, int)}, "`reference` must not repeat"),
    "no nodes": ({"reference": np.empty(0, int), "reference_truth": np.empty(0, int)}, "`calibration` must hold at"),
    "labels of other nodes": ({"reference_truth": np.zeros(3, int)}, "`reference_truth` must have one entry per node"),
    "labels that are no numbers": ({"reference_truth": np.full(40, "a")}, "`reference_truth` must have one entry per"),
    "labels that are no classes": ({"reference_truth": np.full(40, 4)}, "`labels` must"),
    "labels that are unknown": ({"reference_truth": np.full(40, -1)}, "whose label is known; 40 are not"),
    "a level that needs no labels": ({"held_out": np.arange(40, 42), "held_out_truth": [0, 0]}, "no node at"),
    "bad probabilities": ({"outputs": np.ones((60, 4))}, "`probabilities` must have rows that sum to 1"),
    "too few probabilities": ({"outputs": P[:50]}, "`probabilities` must have one row per node, 60; got 50"),
    "names of other nodes": ({"ids": np.arange(3)}, "`ids` must have one name per node, 60"),
    "names that are objects": ({"ids": np.array([{}] * 60)}, "is truncated or of another kind"),
    "names that are no integers": (
        {"ids": np.full(60, "a"), "ids_are_text": np.zeros(60, bool)}, "is truncated or of another kind",
    ),
    "evidence without a level": ({"header": put("evidence", True)}, "`calibration` must hold at least one node"),
    "more trained nodes than labels": ({"header": put("trained", 99)}, "`trained` must be at most 40; got 99"),
    "too many class names": ({"header": put("class_names", list("abcde"))}, "`class_names` must"),
    "broken offsets": ({"indptr": np.arange(61)}, "`indptr` must ascend"),
    "neighbours out of range": ({"indices": np.full(GRAPH.num_edges, 99)}, "`indices` must hold ids"),
    "neighbours out of order": ({"indices": np.zeros(GRAPH.num_edges, int)}, "`indices` must ascend"),
    "edges that go one way": (
        {"indptr": np.r_[0, np.ones(60, int)], "indices": np.array([1], np.int32)}, "0 → 1 has no reverse edge",
    ),
    "a choice that has other parts": ({"header": put("choice", {"candidates": [], "x": 1})}, "`choice` must be what"),
    "a method that is a list": ({"header": put("method", [1])}, "`description` must be what Method.describe returns"),
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


LEVELS = {
    "no label held out": ({"held_out": np.empty(0, int), "held_out_truth": np.empty(0, int)}, "at least one node at"),
    "a node in both parts": (
        {"held_out": np.arange(20), "held_out_truth": np.zeros(20, int)},
        "no node of `reference`",
    ),
    "a label that is unknown": ({"held_out_truth": np.full(20, -1)}, "whose label is known; 20 are not"),
}


@pytest.mark.parametrize("kind", LEVELS)
def test_a_level_without_labels_of_its_own_is_refused(tmp_path, kind):
    changes, message = LEVELS[kind]
    path = tmp_path / "odd.npz"
    naps(exact=True).save(path)
    load(path)
    rewrite(path, changes)
    with pytest.raises(ns.FileFormatError, match=message):
        load(path)


def test_features_of_other_nodes_are_refused(tmp_path):
    path = tmp_path / "odd.npz"
    ns.make_method("snaps").calibrate(GRAPH, P, np.zeros(60, int), np.arange(40), features=P).save(path)
    rewrite(path, {"features": P[:50]})
    with pytest.raises(ns.FileFormatError, match="`features` must have one row per node, 60; got 50"):
        load(path)


@pytest.mark.parametrize("layers", [40, 300])
def test_scores_nested_without_end_are_refused(tmp_path, layers):
    path = tmp_path / "odd.npz"
    naps().save(path)

    def nest(header):
        inner = header["method"]["score"]
        for _ in range(layers):
            inner = {"name": "diffused", "settings": {"base": inner}}
        return of_method(put("score", inner))(header)

    rewrite(path, {"header": nest})
    with pytest.raises(ns.FileFormatError, match="`score` must be nested less deep"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x93NUMPY\x01\x00", b"PK\x03\x04rest"])
def test_files_of_another_kind_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ns.FileFormatError, match="x is truncated or of another kind"):
        load(tmp_path / "x")


def test_arrays_and_pickles_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("a.npy", "p.npy"):
        with pytest.raises(ns.FileFormatError, match=name):
            load(tmp_path / name)


@pytest.mark.parametrize("name", ["absent.npz", "."])
def test_a_file_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(ns.FileFormatError, match="must be a file; there is none"):
        load(tmp_path / name)
