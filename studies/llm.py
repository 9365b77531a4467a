"""The LLM study: ogbn-arxiv, with an LLM's list of categories per paper as the model; no network and no training.

A list has up to five categories. The probability of a class is the share of training papers whose category stood at
that rank of their list; what is left is spread evenly over the classes that the list lacks.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp

import napsets as ns
from napsets.datasets import NodeDataset
from studies.collections import load
from studies.rows import Folders, Kind
from studies.tables import Chart, Floats, Ints, Row, Table, altair, fill_page, percent, select, spread

COMMAND = "python -m studies llm --root DIR --page docs/tasks/llm.md"
DATASET = "ogbn-arxiv"
_RANKS = 5
METHODS: dict[str, Callable[[int, float], ns.Method | ns.Auto]] = {
    "split": lambda seed, alpha: ns.SplitConformal(seed=seed),
    "thr": lambda seed, alpha: ns.SplitConformal(score="thr", seed=seed),
    "naps": lambda seed, alpha: ns.NAPS(hops=2, seed=seed),
    "auto": lambda seed, alpha: ns.Auto(alpha=alpha, seed=seed),
    "auto-small": lambda seed, alpha: ns.Auto(alpha=alpha, prefer="small", seed=seed),
}
#: How labels are used: which nodes are predicted, and which calibrate.
DESIGNS = {
    "random halves": "half of the papers from 2019 on, drawn at random, calibrate; the others are predicted",
    "in order": "the papers of 2018 calibrate; those from 2019 on are predicted",
    "audit": "a random sample of the papers from 2019 on calibrates; the others are predicted",
    "audit and evidence": "the same sample, and all papers up to 2018 are evidence",
    "fixed": "papers up to 2014 calibrate, once; each later year is predicted",
    "refitted": "all papers before the year that is predicted calibrate",
}
_AUDITS, _YEARS = (200, 2000), range(2015, 2021)


def llm_cells(draws: int = 5, alpha: float = 0.1) -> list[Row]:
    """Return the cells; `draws` is the number of random samples."""
    cells = [("random halves", method, 0, 0, 0) for method in METHODS]
    cells += [("in order", method, 0, 0, 0) for method in METHODS]
    for labels in _AUDITS:
        cells += [("audit", method, labels, 0, d) for method in ("split", "thr", "naps") for d in range(draws)]
        cells += [("audit and evidence", "auto-small", labels, 0, draw) for draw in range(draws)]
        cells.append(("audit and evidence", "auto", labels, 0, 0))
    cells += [(d, m, 0, year, 0) for d in ("fixed", "refitted") for m in ("split", "auto-small") for year in _YEARS]
    return [dict(zip(KIND.settings, (DATASET, *cell, alpha), strict=True)) for cell in cells]


def rank_probabilities(data: NodeDataset) -> Floats:
    """Return one row of probabilities per paper, from the ranks of the LLM's categories."""
    classes, ranks = data.num_classes, np.arange(_RANKS)
    listed: Any = sp.csr_array(data.features)  # one-hot by rank and class
    truth = data.labels[data.train][:, None] + classes * ranks
    shares = np.asarray(listed[data.train[:, None], truth].todense()).mean(axis=0)
    probabilities: Floats = listed @ np.kron(shares[:, None], np.eye(classes))
    lacking = probabilities == 0.0
    rest = (1.0 - probabilities.sum(axis=1)) / np.maximum(lacking.sum(axis=1), 1)
    probabilities += np.where(lacking, rest[:, None], 0.0)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


@cache
def _read(root: Path) -> tuple[NodeDataset, Floats, Ints]:
    data = load(DATASET, root=root)
    assert data.times is not None
    years = 1970 + np.round(data.times / 365.2425).astype(np.int64)  # the file gives the day on which a year begins
    return data, rank_probabilities(data), years


def _parts(cell: Row, data: NodeDataset, years: Ints) -> tuple[Ints, Ints | None, Ints, Ints]:
    """Return the calibration nodes, the evidence, the nodes to predict, and the nodes of the graph of that time."""
    design, all_nodes, evidence = cell["design"], np.arange(data.num_nodes), None
    if cell["year"]:
        last = 2014 if design == "fixed" else cell["year"] - 1
        seen = np.flatnonzero(years <= cell["year"])
        return np.flatnonzero(years <= last), None, np.flatnonzero(years == cell["year"]), seen
    if design == "in order":
        return data.validation, None, data.test, all_nodes
    order = np.random.default_rng([cell["seed"], cell["labels"]]).permutation(data.test)
    count = cell["labels"] or order.size // 2
    if design == "audit and evidence":
        evidence = np.sort(np.concatenate([data.train, data.validation]))
    return np.sort(order[:count]), evidence, np.sort(order[count:]), all_nodes


def measure(cell: Row, data: NodeDataset, probabilities: Floats, years: Ints) -> Row:
    """Calibrate and predict; seconds are processor time."""
    calibration, evidence, rest, seen = _parts(cell, data, years)
    place = np.full(data.num_nodes, -1, dtype=np.int64)
    place[seen] = np.arange(seen.size)
    known = np.full(data.num_nodes, -1, dtype=np.int64)
    for nodes in (calibration, evidence):
        if nodes is not None:
            known[nodes] = data.labels[nodes]
    graph = data.graph if seen.size == data.num_nodes else data.graph.subgraph(seen)
    reference = None if evidence is None else place[evidence]
    start, method = time.process_time(), METHODS[cell["method"]](cell["seed"], cell["alpha"])
    calibrated = method.calibrate(graph, probabilities[seen], known[seen], place[calibration], evidence=reference)
    sets = calibrated.predict(place[rest], cell["alpha"])
    return cell | {
        "calibration": int(calibration.size),
        "evidence": 0 if evidence is None else int(evidence.size),
        "nodes": int(rest.size),
        "coverage": ns.coverage(sets, data.labels[seen]),
        "mean_size": ns.mean_size(sets),
        "empty_rate": ns.empty_rate(sets),
        "full_rate": ns.full_rate(sets),
        "seconds": round(time.process_time() - start, 2),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _rows(cells: list[Row], folders: Folders) -> list[Row]:
    return [measure(cell, *_read(folders.root)) for cell in cells]


#: One row for each design, method, number of audited labels, year of the predicted papers (0: 2019 on) and draw.
KIND = Kind(
    "llm",
    ("dataset", "design", "method", "labels", "year", "seed", "alpha"),
    ("dataset", "design", "method", "labels", "year", "seed"),
    _rows,
)


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Return the tables of the page."""
    designs, years = [], []
    for design, method, labels in dict.fromkeys((row["design"], row["method"], row["labels"]) for row in rows):
        chosen = select(rows, design=design, method=method, labels=labels)
        if chosen[0]["year"]:
            years.append([method, design, *(spread(select(chosen, year=year), "coverage") for year in _YEARS)])
            years[-1] += [spread(chosen, "mean_size")]
        else:
            numbers = [spread(chosen, name) for name in ("coverage", "mean_size", "seconds")]
            full = percent(float(np.mean([row["full_rate"] for row in chosen])), 1)
            designs.append([design, method, chosen[0]["calibration"], chosen[0]["evidence"], *numbers, full])
    heads = ["labels", "method", "calibration", "evidence", "coverage", "size", "seconds", "full sets"]
    notes = ["Mean ± standard deviation over draws. Seconds of processor time to calibrate and predict."]
    return {
        "designs": Table("Papers from 2019 on, alpha 0.1", heads, designs, {"size": 2, "seconds": 1}, notes),
        "years": Table(
            "Coverage by year", ["method", "labels", *map(str, _YEARS), "size"], years, {"size": 2, "seconds": 1}
        ),
    }


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return the tables that the command prints."""
    return [*tables(rows).values()] if rows else []


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    if not rows:
        return fill_page("llm", COMMAND, {})
    few = {name: _sizes(rows, design, method) for name, (design, method) in _COMPARED.items()}
    parts = {f"{part}_{name}": value for name, numbers in few.items() for part, value in numbers.items()}
    memory = f"{max(row['megabytes'] for row in rows) / 1024:.1f}"
    designs = "\n".join(f"- *{name}*: {words}." for name, words in DESIGNS.items())
    return fill_page("llm", COMMAND, {**parts, **tables(rows), "memory": memory, "designs_list": designs})


_WORDS = ("split APS", "auto-small, old labels as evidence")
_COMPARED = {"before": ("audit", "split"), "after": ("audit and evidence", "auto-small")}


def _sizes(rows: Sequence[Row], design: str, method: str) -> dict[str, str]:
    chosen = select(rows, design=design, method=method, labels=_AUDITS[0])
    digits = {"mean_size": 2, "coverage": 3, "seconds": 0}
    return {name: f"{fmean(row[name] for row in chosen):.{places}f}" for name, places in digits.items()}


def figures(rows: Sequence[Row]) -> dict[str, Chart]:
    """Return the figure: sizes of sets with a few hundred labels."""
    if not rows:
        return {}
    alt = altair()
    bars = [
        {"labels": f"{labels:,} labels", "method": words, "size": middle.mean}
        for labels in _AUDITS
        for words, (design, method) in zip(_WORDS, _COMPARED.values(), strict=True)
        if (middle := spread(select(rows, design=design, method=method, labels=labels), "mean_size"))
    ]
    chart = alt.Chart(alt.Data(values=bars), width=400, height=60).mark_bar()
    return {
        "llm": chart.encode(
            x=alt.X("size:Q", title="labels per set"),
            y=alt.Y("method:N", sort=None, axis=None),
            row=alt.Row("labels:N", title=None),
            color=alt.Color("method:N", sort=None, legend=alt.Legend(title=None, orient="bottom")),
        )
    }
