"""How an answer is compared with its golden, and which differences are allowed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

#: How far numbers may be apart whose last digits depend on the processor; those of JSON are differences of means too.
#: What is fitted in alternating steps that stop once the likelihood no longer grows differs by some 1e-9.
REL, ABS, JSON_ABS = 1e-7, 1e-12, 1e-8


@dataclass(frozen=True)
class Allowed:
    """A difference from the goldens that is no fault.

    Attributes
    ----------
    where : str
        Which leaves of which cases, as a pattern: ``case: path.to.leaf``.
    reason : str
        Why.
    what : {"wording", "gone"}
        Whether the text may be another (some text must be there still), or the leaf is not compared at all.
    """

    where: str
    reason: str
    what: str = "wording"


#: Beside these, JSON may have new keys anywhere: `evaluate --json` is to get a chance band for sets too, `level_labels`
#: is to be recorded for sets too, and the page about sets is to shade the promised band. What goldens have must stay.
ALLOWED: tuple[Allowed, ...] = (
    Allowed("*seconds", "a time", "gone"),
    Allowed("*metadata.napsets.napsets", "the version", "gone"),
    Allowed("*about.napsets", "the version", "gone"),
    Allowed("*settings.napsets", "the version", "gone"),
    Allowed("*candidates.*.name", "what a candidate is called is prose"),
    Allowed("*: choice", "what was chosen, and why, is prose"),
    Allowed("*: json.choice", "what was chosen, and why, is prose"),
    Allowed("*verdict.choice", "what was chosen, and why, is prose"),
    Allowed("*verdict.baseline", "what the baseline is called is prose"),
    Allowed("*verdict.lines", "the verdict in sentences"),
    Allowed("*verdict.warnings.*", "a warning is a sentence; how many there are is not"),
    Allowed("inspect/*: json.reason", "why a threshold is what it is, in words"),
    Allowed("inspect/*: json.rule", "the interval in words"),
    Allowed("methods/*: json.*.description", "what a method is for, in words"),
)


def describe_digits() -> str:
    """Return a mark of this processor's last digits: what exponentials, logarithms, powers and BLAS give here."""
    x = np.linspace(0.01, 3.0, 999)
    table = np.stack([np.exp(-x), np.log(x), x**1.6, np.sqrt(x), np.exp2(-x), np.log1p(x), np.log2(x)])
    parts = (table, table @ table.T, table.T[:7] @ table[:, :7], table.sum(axis=1), np.linalg.inv(table @ table.T))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


# -- arrays ------------------------------------------------------------------------------------------------------------


def write_arrays(path: Path, answers: Mapping[str, Mapping[str, np.ndarray]], digits: str | None = None) -> None:
    """Write the arrays of many cases to one file: all of one type in one array, which is small."""
    index, parts = [], {}
    for case, arrays in answers.items():
        for key, array in arrays.items():
            index.append([case, key, array.dtype.str, list(array.shape)])
            parts.setdefault(array.dtype.str, []).append(np.ascontiguousarray(array).ravel())
    together = {kind.lstrip("<|"): np.concatenate(arrays) for kind, arrays in parts.items()}
    about = {"digits": digits or describe_digits(), "index": index}
    np.savez_compressed(path, about=np.array(json.dumps(about)), **together)


@cache
def read_arrays(path: Path) -> tuple[str, dict[str, dict[str, np.ndarray]]]:
    """Return the mark of the processor that wrote the file, and its arrays by case and key."""
    answers: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path, allow_pickle=False) as archive:
        about, together = json.loads(str(archive["about"])), {name: archive[name] for name in archive.files}
    at = dict.fromkeys(together, 0)
    for case, key, kind, shape in about["index"]:
        name, size = kind.lstrip("<|"), math.prod(shape)
        answers.setdefault(case, {})[key] = together[name][at[name] : at[name] + size].reshape(shape)
        at[name] += size
    return about["digits"], answers


def array_differences(
    value: Mapping[str, np.ndarray], golden: Mapping[str, np.ndarray], *, loose: bool = False
) -> list[str]:
    """Say in which arrays an answer differs, and where first."""
    differences = [f"{key}: missing" for key in golden.keys() - value.keys()]
    differences += [f"{key}: new" for key in value.keys() - golden.keys()]
    for key in golden.keys() & value.keys():
        ours, theirs = np.asarray(value[key]), golden[key]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            differences.append(f"{key}: {ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}")
            continue
        floats = ours.dtype.kind == "f"
        same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
        if floats and loose:
            same |= np.isclose(ours, theirs, rtol=REL, atol=ABS)
        if not same.all():
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            differences.append(
                f"{key}: {int((~same).sum())} of {same.size} differ, at {at} {ours[at]!r} != {theirs[at]!r}"
            )
    return sorted(differences)


# -- JSON --------------------------------------------------------------------------------------------------------------


def json_differences(case: str, value: Any, golden: Any, *, exact: bool = False) -> list[str]:
    """Say where JSON differs from its golden; new keys are allowed, those that are gone or changed are not.

    Floats are means and sums more often than not, and may differ in their last digits; with `exact` they may not.
    """
    return list(_leaf_differences(case, "", value, golden, exact))


def allowed(case: str, path: str) -> Allowed | None:
    """Return the declared difference that a leaf is under, if any."""
    return next((one for one in ALLOWED if fnmatchcase(f"{case}: {path}", one.where)), None)


def _leaf_differences(case: str, path: str, value: Any, golden: Any, exact: bool) -> Iterator[str]:
    excuse = allowed(case, path)
    if excuse is not None:
        if excuse.what == "wording" and (type(value) is not type(golden) or bool(value) != bool(golden)):
            yield f"{path}: {value!r} instead of some {type(golden).__name__} such as {golden!r}"
    elif isinstance(golden, dict) and isinstance(value, dict):
        for key, theirs in golden.items():
            inner = f"{path}.{key}" if path else key
            if key in value:
                yield from _leaf_differences(case, inner, value[key], theirs, exact)
            else:
                yield f"{inner}: missing; it was {theirs!r}"
    elif isinstance(golden, list) and isinstance(value, list):
        if len(value) != len(golden):
            yield f"{path}: {len(value)} entries instead of {len(golden)}: {value!r} != {golden!r}"[:500]
        for i, (ours, theirs) in enumerate(zip(value, golden, strict=False)):
            yield from _leaf_differences(case, f"{path}.{i}" if path else str(i), ours, theirs, exact)
    elif not _same_leaf(value, golden, exact):
        yield f"{path}: {value!r} != {golden!r}"[:500]


def _same_leaf(value: Any, golden: Any, exact: bool) -> bool:
    if isinstance(golden, float) and isinstance(value, (int, float)) and not isinstance(value, bool):
        if math.isnan(golden) or math.isnan(value):
            return math.isnan(golden) and math.isnan(value)
        return value == golden or (not exact and math.isclose(value, golden, rel_tol=REL, abs_tol=JSON_ABS))
    return type(value) is type(golden) and value == golden


def plain(value: Any) -> Any:
    """Turn tuples, NumPy values and arrays into what JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def write_json(path: Path, answers: Mapping[str, Any]) -> None:
    """Write JSON, one line per case, so that a changed case is a changed line."""
    kept = {case: _without_prose(case, "", plain(value)) for case, value in answers.items()}
    lines = [f"{json.dumps(case)}: {json.dumps(value, ensure_ascii=False)}" for case, value in kept.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _without_prose(case: str, path: str, value: Any) -> Any:
    """Leave out what is never compared, and all but the beginning of what may be said in other words."""
    if allowed(case, path) is not None:
        return value[:1] if isinstance(value, list) else value[:20] if isinstance(value, str) else value
    if isinstance(value, dict):
        inner = {key: f"{path}.{key}" if path else key for key in value}
        gone = {key for key in value if (one := allowed(case, inner[key])) is not None and one.what == "gone"}
        return {key: _without_prose(case, inner[key], item) for key, item in value.items() if key not in gone}
    if isinstance(value, list):
        return [_without_prose(case, f"{path}.{i}" if path else str(i), item) for i, item in enumerate(value)]
    return value


@cache
def read_json(path: Path) -> dict[str, Any]:
    """Return what `write_json` wrote."""
    answers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return answers
