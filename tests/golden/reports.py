"""What comparisons and reports say, as data: rows, verdicts and records, and hashes of the explorer's arrays."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import napsets as ns
from golden import adapter
from golden.inputs import CLASSES, world


@dataclass(frozen=True)
class Report:
    """One comparison, and the report about it.

    Attributes
    ----------
    world : str
        What is compared on.
    score : str or None
        A score of numbers, for intervals.
    settings : dict
        What the comparison is told.
    named : bool
        Whether nodes and classes have names.
    """

    world: str
    score: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    named: bool = False


_FOUR = ("split", "naps", "naps-h", "naps-g")

REPORTS: dict[str, Report] = {
    "report/sets": Report("report"),
    "report/sets, the paper's": Report("report", settings={"methods": _FOUR, "hops": 1, "seed": 3}, named=True),
    "report/sets, directed": Report(
        "report, directed",
        settings={"methods": ("naps", "by-class", "daps", "split"), "alpha": 0.2, "direction": "in"},
    ),
    "report/intervals": Report("report", "cqr"),
    "report/intervals, normalised": Report(
        "report, directed", "normalised", {"methods": ("split", "naps", "by-degree"), "alpha": 0.2, "direction": "both"}
    ),
    "report/intervals, absolute": Report("report", "absolute", {"methods": _FOUR, "hops": 1, "pool": 5.0}, named=True),
}


def answer(report: Report) -> dict[str, Any]:
    """Return all data of a comparison and of the report about it."""
    around = world(report.world)
    names: dict[str, Any] = {"ids": around.ids} if report.named else {}
    settings = {"alphas": adapter.CURVE_ALPHAS, "groups": {"own": around.numbers}, **report.settings, **names}
    if report.score is None:
        compared = adapter.compare(
            around.graph, around.probabilities, around.labels, around.calibration, around.rest, **settings
        )
    else:
        compared = adapter.compare(
            around.graph,
            around.outputs(report.score),
            around.targets,
            around.calibration,
            around.rest,
            score=report.score,
            **settings,
        )
    named = {"class_names": CLASSES} if report.named and report.score is None else {}
    data = adapter.report_data(compared, dataset="ring", model="dice", **named)
    rows = adapter.report_rows(data)
    return {
        "rows": compared.rows(),
        "verdict": compared.verdict().row(),
        "partition": digest(np.concatenate([np.empty(0, np.int64), *compared.partition])),
        **{name: rows[name] if name in WHOLE else by_column(rows[name]) for name in rows},
        "explorer": digest(np.array(adapter.explorer_shown(data))),
    }


#: Rows of a report that are kept as they are; of others a hash per column is.
WHOLE = ("alpha", "hops", "front", "left_out", "class_names", "skewed", "shared")


def by_column(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return a hash of each column of some rows: one that is new changes no other."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: digest(np.array([repr(rounded(row.get(name))) for row in rows])) for name in names}


def rounded(value: Any) -> Any:
    """Return a float with ten digits, so that a hash holds on another processor; anything else as it is."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{round(value, 10) + 0.0:.9e}")
    return value.item() if isinstance(value, np.generic) else value


def digest(array: np.ndarray) -> str:
    """Return a hash of an array, its floats rounded."""
    values = array.ravel().tolist()
    if array.dtype.kind == "f":
        single = array.dtype.itemsize == 4
        values = [round(value, 4) + 0.0 if single and math.isfinite(value) else rounded(value) for value in values]
    text = " ".join(map(str, values))
    return f"{array.dtype.kind}{list(array.shape)} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def metrics() -> dict[str, Any]:
    """Return what the metrics say of sets and of intervals, and their tables."""
    around = world("report")
    graph, nodes = around.graph, around.rest
    parts = ns.neighbourhood_partition(graph, nodes, seed=2)
    inputs = (graph, around.probabilities, around.known, around.calibration)
    naps = ns.NAPS(pool=5.0).calibrate(*inputs, ids=around.ids, class_names=CLASSES)
    sets = naps.predict(nodes, 0.2)
    split = ns.SplitConformal(score="cqr")
    split = split.calibrate(around.outputs("cqr"), around.known_targets, around.calibration, ids=around.ids)
    intervals = split.predict(nodes, 0.2)
    groups = {
        "class": ns.groups_by_class(around.labels),
        "degree": ns.groups_by_degree(graph, nodes=nodes),
        "neighbourhood": ns.groups_by_neighbourhood(graph, nodes=nodes, seed=2),
        "confidence": ns.groups_by_confidence(around.probabilities, nodes=nodes),
        "own": around.names,
    }
    answers: dict[str, Any] = {}
    for name, prediction, truth in (("sets", sets, around.labels), ("intervals", intervals, around.targets)):
        answers[f"metrics/{name}"] = {
            "coverage": ns.coverage(prediction, truth),
            "pccv": ns.pccv(prediction, truth, parts),
            "gaps": {kind: asdict(ns.coverage_gap(prediction, truth, of)) for kind, of in groups.items()},
            "by_degree": asdict(ns.coverage_by_degree(prediction, truth, graph)) if prediction is sets else None,
            "infinite": prediction.infinite,
            "first": [prediction[i] for i in range(3)],
            "named": prediction[str(around.ids[nodes[5]])],
            "rows": prediction[:8].to_arrow().to_pydict(),
            "types": [[one.name, str(one.type)] for one in prediction.to_arrow().schema],
        }
    summary = sets.summary()
    answers["metrics/sets"] |= {
        "mean_size": ns.mean_size(sets),
        "rates": [ns.empty_rate(sets), ns.singleton_rate(sets), ns.full_rate(sets)],
        "size_given_coverage": ns.size_given_coverage(sets, around.labels),
        "sscv": ns.sscv(sets, around.labels, [(0, 1), (2, 3), (4, 5)]),
        "by_class": asdict(ns.coverage_by_class(sets, around.labels)),
        "summary": [summary.size_counts, summary.infinite, summary.unreached, summary.mean_size],
    }
    answers["metrics/intervals"] |= {"mean_width": ns.mean_width(intervals), "widths": intervals.widths[:8]}
    return answers
