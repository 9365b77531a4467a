"""The drift study: sets of nodes that arrive over time, with thresholds and levels that follow the labels or do not.

The first 30 % of the labelled nodes, in time or in a random order, train a softmax regression; the next 20 % calibrate;
the others are the stream. The features of a node are its words and the mean of those of its neighbours that were there
before it, so that nothing is seen before its time.

Everything is computed from probabilities that are kept in the project, so that the figures are the same everywhere.
The models are convex and fitted to convergence: training them again takes a minute, and gives the same figures but for
rare ties.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

import napsets as ns
from napsets.datasets import NodeDataset, NodePredictions
from napsets.live.alarms import first_alarm, jumper, miss_alarm, smoothed_p_values
from napsets.live.monitoring import worst_window
from napsets.live.steering import Steered
from studies.collections import TIMED, file_name, read_collected, split_seed, time_split
from studies.rows import Folders, Kind, kept_predictions
from studies.tables import Bools, Chart, Columns, Floats, Ints, Row, Table, altair, fill_page, panels, percent, select

COMMAND = "python -m studies drift --page docs/drift.md"
#: The strategies: how thresholds follow the labels.
STRATEGIES: dict[str, str] = {
    "static": "calibrated once, on the labels before the stream",
    "growing": "calibrated on all labels so far",
    "window": "calibrated on the last 500 labels",
    "aci": "all labels so far, the level steered with one rate, .01",
    "dtaci": "all labels so far, the level steered with eight rates",
}

ORDERS = {"time": "in the order of time", "random": "in a random order"}
#: Strategies with late labels, in the order of time, and how many sets late these come.
_LATE, _DELAYS = ("aci", "dtaci", "growing"), (100, 500)
_STEERED = {"aci": Steered("aci", rate=0.01), "dtaci": Steered("dtaci")}
_WINDOW = 500
#: The weight of the squares of the coefficients relative to the sum of the losses.
RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The nodes after training in the order of their arrival, with the model's scores."""

    scores: Floats  #: one less the probability (THR)
    labels: Ints  #: the truth
    calibration: int  #: how many nodes, the first, calibrate; the others are the stream

    @property
    def at_truth(self) -> Floats:
        """The score of each node at its label."""
        return np.asarray(self.scores[np.arange(self.labels.size), self.labels])


@dataclass(frozen=True, eq=False)
class Stream:
    """The sets of a stream: the level and the size of each, and whether it missed."""

    levels: Floats
    sizes: Ints
    missed: Bools


def train_softmax(data: NodeDataset, order: str, seed: int) -> tuple[Ints, Ints, Floats]:
    """Train on the first nodes; return those that calibrate, the stream, and the probabilities of both.

    The model is a softmax regression with a ridge; its loss is convex.
    """
    times = data.times
    if order == "random" or times is None:
        times = np.random.default_rng(split_seed(f"{data.name}/order", seed)).permutation(data.num_nodes)
    train, calibration, stream = time_split(data.labels, times)
    arrived = np.empty(data.num_nodes, dtype=np.int64)
    arrived[np.argsort(times, kind="stable")] = np.arange(data.num_nodes)
    features = _features(data, arrived)
    regression = import_module("sklearn.linear_model").LogisticRegression(C=1.0 / RIDGE, tol=1e-7, max_iter=2000)
    regression.fit(features[train], data.labels[train])
    probabilities = np.zeros((calibration.size + stream.size, data.num_classes))  # a class may come only later
    probabilities[:, regression.classes_] = regression.predict_proba(features[np.concatenate([calibration, stream])])
    return calibration, stream, probabilities


def _features(data: NodeDataset, arrived: Ints) -> Any:
    """Return the words of each node in addition to the mean of those of its neighbours that arrived before it."""
    import scipy.sparse

    sp: Any = scipy.sparse  # SciPy's stubs lack sums of sparse arrays
    own = sp.csr_array(data.features, dtype=np.float64)
    own.data = np.copysign(np.log1p(np.abs(own.data)), own.data)  # features need not be counts
    own = sp.diags_array(1.0 / np.maximum(np.sqrt((own**2).sum(axis=1)), 1e-12)) @ own
    source = np.repeat(np.arange(data.num_nodes), data.graph.degrees)
    before = arrived[data.graph.indices] < arrived[source]
    earlier = sp.csr_array(
        (np.ones(int(before.sum())), (source[before], data.graph.indices[before])), shape=(data.num_nodes,) * 2
    )
    means = sp.diags_array(1.0 / np.maximum(earlier.sum(axis=1), 1.0)) @ (earlier @ own)
    return sp.hstack([own, means]).tocsr()


def follow(arrivals: Arrivals, strategy: str, *, alpha: float, delay: int = 0) -> Stream:
    """Predict the set of each node of the stream from the labels that had come before it, each `delay` sets late.

    A set holds the labels whose p-value exceeds the level.
    """
    at_truth, first = arrivals.at_truth, arrivals.calibration
    p_values = np.empty((at_truth.size - first, arrivals.scores.shape[1]))
    for t in range(p_values.shape[0]):
        come = first + (0 if strategy == "static" else max(t - delay, 0))
        known = np.sort(at_truth[max(come - _WINDOW, 0) if strategy == "window" else 0 : come])
        reached = known.size - np.searchsorted(known, arrivals.scores[first + t])
        p_values[t] = (1 + reached) / (known.size + 1)
    at_label = p_values[np.arange(p_values.shape[0]), arrivals.labels[first:]]
    steered = _STEERED.get(strategy)
    levels = np.full(at_label.size, alpha) if steered is None else steered.levels(at_label, alpha, delay=delay)
    return Stream(levels, (p_values > levels[:, None]).sum(axis=1), at_label <= levels)


#: Points of a curve over time.
_POINTS = 40


def read_timed(name: str, folders: Folders) -> NodeDataset:
    """Read a graph whose nodes have a time; its file need not be one of the project's."""
    with warnings.catch_warnings():  # classes may appear only later in the stream
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        data = read_collected(folders.root / file_name(name), name=name)
    if data.times is None:
        raise ns.InvalidInputError(f"`dataset` must be a graph with time; {file_name(name)} has no node_time")
    return data


def trained(cell: Row, data: NodeDataset) -> NodePredictions:
    """Train the model of a stream; the calibration nodes are the split "validation", the stream is "test"."""
    calibration, stream, probabilities = train_softmax(data, cell["order"], cell["seed"])
    nodes = np.concatenate([calibration, stream])
    split = np.repeat(["validation", "test"], [calibration.size, stream.size])
    rows = probabilities.astype(np.float32)  # not rounded: where classes are new, truth has tiny probabilities
    return NodePredictions(nodes, rows, data.labels[nodes], split, data.name, cell["model"], {"ridge": RIDGE})


def stream_predictions(cell: Row, folders: Folders) -> NodePredictions:
    """Return the predictions of a stream, training the model where they are not kept."""
    name = "_".join(str(cell[setting]) for setting in ("dataset", "model", "order", "seed"))
    file = folders.predictions(f"{name}.parquet")
    return kept_predictions(file, lambda: trained(cell, read_timed(cell["dataset"], folders)))


def _drift_rows(cells: list[Row], folders: Folders) -> list[Row]:
    """Return the rows of the strategies on one stream."""
    predictions = stream_predictions(cells[0], folders)
    scores = 1.0 - predictions.probabilities.astype(np.float64)
    arrivals = Arrivals(scores, predictions.labels, int((predictions.split == "validation").sum()))
    before, stream = np.split(arrivals.at_truth, [arrivals.calibration])
    exchangeability = jumper(smoothed_p_values(stream, before), log=True)
    return [cell | _measure(cell, arrivals, exchangeability) for cell in cells]


#: One row for each strategy on each stream. `order` is that in which nodes arrive; `seed` draws the random order, and
#: plays no part in the order of time; a label comes `delay` sets late.
KIND = Kind(
    "drift",
    ("dataset", "model", "seed", "order", "strategy", "delay", "alpha"),
    ("dataset", "model", "order", "seed"),
    _drift_rows,
)


def _measure(cell: Row, arrivals: Arrivals, exchangeability: Floats) -> Row:
    """Measure one strategy."""
    alpha, size, ring = cell["alpha"], arrivals.scores.shape[1], math.log(100.0)
    stream = follow(arrivals, cell["strategy"], alpha=alpha, delay=cell["delay"])
    shared = arrivals.calibration if cell["strategy"] == "static" else None  # labels that all sets rest on
    covered, coverage = ~stream.missed, miss_alarm(stream.missed, alpha, shared, log=True)
    return {
        "coverage": float(covered.mean()),
        "worst_window": worst_window(stream.missed).coverage,
        "mean_size": float(stream.sizes.mean()),
        "full_rate": float((stream.sizes == size).mean()),
        "coverage_alarm": first_alarm(coverage, ring),
        "exchangeability_alarm": first_alarm(exchangeability, ring),
        "coverage_curve": [float(part.mean()) for part in np.array_split(covered, _POINTS)],
    }


#: The columns of the tables.
_COLUMNS: Columns = {
    "graph": "dataset",
    "strategy": "strategy",
    "delay": "delay",
    "coverage": "coverage",
    "worst": "worst_window",
    "size": "mean_size",
    "full": lambda row: percent(row["full_rate"], 1),
    "coverage alarm": "coverage_alarm",
    "exchangeability": "exchangeability_alarm",
}


def drift_cells(datasets: Sequence[str] = tuple(TIMED), seeds: int = 1, alpha: float = 0.1) -> list[Row]:
    """Return the cells of all strategies on these graphs; the seeds are those of the random orders."""
    cells = []
    for dataset, order in product(datasets, ORDERS):
        for seed in range(seeds if order == "random" else 1):
            stream = {"dataset": dataset, "model": "softmax", "seed": seed, "order": order, "alpha": alpha}
            late = product(_LATE, _DELAYS) if order == "time" else ()
            pairs = [*((strategy, 0) for strategy in STRATEGIES), *late]
            cells += [stream | {"strategy": strategy, "delay": delay} for strategy, delay in pairs]
    return cells


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Return the tables of the page: both orders, and late labels."""

    def table(title: str, lines: Sequence[Row], *heads: str) -> Table:
        columns = {head: _COLUMNS[head] for head in ("graph", "strategy", *heads)}
        return Table.of(title, lines, columns, digits={"size": 2})

    plain = ["coverage", "worst", "size", "full", "coverage alarm", "exchangeability"]
    late = [row for row in select(rows, order="time") if row["strategy"] in _LATE]
    late.sort(key=lambda row: (_graphs(rows).index(row["dataset"]), row["strategy"], row["delay"]))
    return {
        **{
            order: table(f"Strategies {words}", select(rows, order=order, delay=0), *plain)
            for order, words in ORDERS.items()
        },
        "late": table(
            "Labels that come a number of sets late, in the order of time",
            late,
            *("delay", "coverage", "worst", "size", "full"),
        ),
    }


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return the parts that the command prints: the strategies in both orders, and the findings."""
    shown = tables(rows)
    return [*(shown[order] for order in ORDERS), *(f"- {sentence}" for sentence in findings(rows))] if rows else []


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    parts: dict[str, object] = (
        {
            "graphs": len(_graphs(rows)),
            "alpha": rows[0]["alpha"],
            "strategies": "\n".join(f"- `{name}`: {words}." for name, words in STRATEGIES.items()),
            "findings": "\n".join(f"- {sentence}" for sentence in findings(rows)),
            **tables(rows),
        }
        if rows
        else {}
    )
    return fill_page("drift", COMMAND, parts)


def figures(rows: Sequence[Row]) -> dict[str, Chart]:
    """Return one panel per graph: coverage over time in the order of time, one line per strategy."""
    plain = select(rows, order="time", delay=0)
    charts = [_panel(select(plain, dataset=graph), graph) for graph in _graphs(plain)]
    return {"drift-coverage": panels(charts, 2)} if charts else {}


def findings(rows: Sequence[Row]) -> list[str]:
    """Return the findings in sentences."""
    sentences = []
    for graph in _graphs(rows):
        here = {row["strategy"]: row for row in select(rows, dataset=graph, order="time", delay=0)}
        if set(STRATEGIES) <= set(here):
            static, steered = here["static"], here["dtaci"]
            sentences.append(
                f"{graph}: calibrated once, sets cover {static['coverage']:.3f}, and {static['worst_window']:.3f} in "
                f"the worst window; the exchangeability alarm {_raised(static['exchangeability_alarm'])}, the coverage "
                f"alarm {_raised(static['coverage_alarm'])}. `dtaci` covers {steered['coverage']:.3f}, and "
                f"{steered['worst_window']:.3f} in the worst window."
            )
    random = select(rows, order="random")
    if random:
        rang = sum(row["coverage_alarm"] is not None or row["exchangeability_alarm"] is not None for row in random)
        low, high = (end(row["coverage"] for row in random) for end in (min, max))
        sentences.append(
            f"In a random order all {len(random)} streams cover between {low:.3f} and {high:.3f}, and an alarm is "
            f"raised in {rang} of them."
        )
    return sentences


def _panel(rows: Sequence[Row], graph: str) -> Chart:
    alt = altair()
    points = [
        {"strategy": row["strategy"], "share": (i + 0.5) / len(row["coverage_curve"]), "coverage": value}
        for row in rows
        for i, value in enumerate(row["coverage_curve"])
    ]
    level = alt.Chart(alt.Data(values=[{"level": 1.0 - rows[0]["alpha"]}]))
    lines = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=1.5)
    return alt.layer(
        level.mark_rule(strokeDash=[4, 4], color="grey").encode(y="level:Q"),
        lines.encode(
            x=alt.X("share:Q", title="share of the stream", axis=alt.Axis(format="%", tickCount=5)),
            y=alt.Y("coverage:Q", title="coverage", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("strategy:N", sort=list(STRATEGIES), legend=alt.Legend(title=None, orient="bottom")),
        ),
    ).properties(width=300, height=160, title=graph)


def _graphs(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in rows))


def _raised(alarm: int | None) -> str:
    return "is never raised" if alarm is None else f"is raised after {alarm:,} labels"
