"""The paper's tables, its ablation figure and its claims, from rows of results and the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from studies.coverage import PROTOCOLS
from studies.setups import BASELINE, CORRECTED, METHODS, MODELS, PRINTED, PRINTED_DATASETS, SETUPS
from studies.tables import (
    Chart,
    Entry,
    Row,
    Spread,
    Table,
    altair,
    colours,
    distinct,
    grouped,
    interval,
    select,
    spread,
)

#: The number of the table of each metric, what tables call it, and digits after the point.
METRIC_NAMES = {
    "coverage": (2, "Coverage", 3),
    "mean_size": (2, "Size", 2),
    "size_given_coverage": (2, "Size | coverage", 2),
    "sscv": (3, "SSCV", 3),
    "pccv": (3, "PCCV", 3),
}
_COUNTS = ("nodes", "edges", "features", "classes", "test_nodes", "test_edges")


@dataclass(frozen=True)
class Scope:
    """How much of the paper to run and show."""

    datasets: tuple[str, ...] = tuple(SETUPS)
    models: tuple[str, ...] = tuple(MODELS)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    #: Training settings. The first is that of the main tables and of the ablation: its accuracies are nearer to print.
    presets: tuple[str, ...] = ("graph_cp-6fc8783", "paper-text")
    alpha: float = 0.1
    repetitions: int = 100
    evaluated: int = 1000
    hops: int = 2  #: the depth of Tables 2 and 3
    ablation_models: tuple[str, ...] = ("graphsage-mean", "label-counts")
    ablation_hops: tuple[int, ...] = (1, 2, 3, 4)


def table1(rows: Sequence[Row]) -> Table:
    """Return dataset statistics, ours above the printed ones."""
    lines: list[list[Entry]] = []
    for name, setup in SETUPS.items():
        ours, theirs = select(rows, dataset=name), PRINTED_DATASETS[name]
        if ours:
            first = min(ours, key=lambda row: row["seed"])
            spreads = [spread(ours, "eligible"), first["edge_homophily"], first["node_homophily"]]
            spreads += [spread(ours, "test_homophily")]
            lines.append([setup.title, "here", *(first[count] for count in _COUNTS), *spreads])
            lines[-1].append(first["expected_homophily"])
        if ours or name not in ("flickr-graph",):
            *counts, eligible, homophily, expected = theirs
            lines.append([setup.title, "printed", *counts, None, eligible, None, homophily, None, expected])
    columns = ["Dataset", "Source", "Nodes", "Edges", "Features", "Classes", "Test nodes", "Test edges", "N^cal"]
    columns += ["Ĥ over edges", "Ĥ over nodes", "Ĥ test subgraph", "H_rand"]
    notes = [
        "The paper defines Ĥ as a mean over the nodes of the test subgraph (last but one column). The printed value is "
        "that over all nodes of the full graph for Amazon, and that over its edges for Flickr. Spread: over splits.",
    ]
    missing = [setup.title for name, setup in SETUPS.items() if not select(rows, dataset=name)]
    if missing:
        notes.append(
            f"Not available here: {', '.join(missing)}. With GraphSAINT's files (adj_full.npz, feats.npy, "
            "class_map.json, role.json) in DIR/reddit2 or DIR/flickr, `--root DIR` adds them."
        )
    return Table("Table 1: datasets", columns, lines, {"N^cal": 0}, notes)


def accuracy(coverage: Mapping[str, Sequence[Row]], scope: Scope) -> Table:
    """Return the models' test accuracies with each preset, and the published ones."""
    lines: list[list[Entry]] = []
    for preset, rows in coverage.items():
        for dataset, model in _models(rows, scope):
            ours = select(rows, dataset=dataset, model=model, method=BASELINE, protocol=scope.protocols[0])
            mean, theirs = spread(ours, "accuracy"), PRINTED.get(("accuracy", dataset, model, BASELINE))
            place = [SETUPS[dataset].title, preset, MODELS[model]]
            lines.append([*place, mean, theirs, _difference(mean, theirs), len(ours)])
    columns = ["Dataset", "Preset", "Model", "Accuracy", "Printed", "Δ", "Seeds"]
    return Table("Table 2: accuracy on the test nodes", columns, lines)


def metric_tables(rows: Sequence[Row], scope: Scope, number: int) -> list[Table]:
    """Return the metrics of Table 2 or 3."""
    return [_metric(rows, scope, name) for name, (table, *_) in METRIC_NAMES.items() if table == number]


def _metric(rows: Sequence[Row], scope: Scope, name: str) -> Table:
    """Return one metric: every protocol, the printed number, the differences."""
    number, title, digits = METRIC_NAMES[name]
    lines: list[list[Entry]] = []
    notes = [
        f"Medians over {scope.repetitions} repetitions of means over {scope.evaluated:,} nodes, as in the released "
        "code; mean ± standard deviation over training seeds. Δ: ours minus the published number."
    ]
    chances = scope.protocols if name == "pccv" else ()
    for (dataset, model), method in product(_models(rows, scope), METHODS):
        here = select(rows, dataset=dataset, model=model, method=method, hops=0 if method == BASELINE else scope.hops)
        ours = [spread(select(here, protocol=protocol), name) for protocol in scope.protocols]
        floors = [spread(select(here, protocol=protocol), f"{name}_chance") for protocol in chances]
        theirs, slip = (numbers.get((name, dataset, model, method)) for numbers in (PRINTED, CORRECTED))
        differences = [_difference(value, theirs) for value in ours]
        lines.append([SETUPS[dataset].title, MODELS[model], method, *ours, *floors, theirs, *differences])
        if slip is not None:
            where = f"{SETUPS[dataset].title}, {MODELS[model]}, {method}"
            notes.append(f"{where}: the paper prints {slip}, a slip for {theirs}.")
    places = [(dataset, SETUPS[dataset].title) for dataset in dict(_models(rows, scope))]
    if name == "sscv":
        notes += [
            f"Strata of set sizes on {title}: {', '.join(f'{low} to {high}' for low, high in SETUPS[dataset].strata)}."
            for dataset, title in places
        ]
    if chances:
        notes.append("By chance: PCCV of sets whose coverage is exactly 1 − alpha everywhere.")
    measured = [*scope.protocols, *(f"{protocol}, by chance" for protocol in chances)]
    columns = ["Dataset", "Model", "Method", *measured, "Printed", *(f"Δ {protocol}" for protocol in scope.protocols)]
    heading = f"Table {number}: {title} at alpha {scope.alpha:g}, K = {scope.hops}"
    return Table(heading, columns, lines, dict.fromkeys(columns, digits), notes)


def ablation(rows: Sequence[Row], scope: Scope) -> Table:
    """Return coverage and size by depth of the neighbourhood."""
    lines: list[list[Entry]] = []
    depths = [(0, BASELINE), *((k, method) for k in scope.ablation_hops for method in METHODS if method != BASELINE)]
    for dataset, protocol, (hops, method) in product(scope.datasets, scope.protocols, depths):
        where = {"dataset": dataset, "model": ablation_model(dataset, scope), "protocol": protocol}
        ours = select(rows, method=method, hops=hops, **where)
        if ours:
            values = [spread(ours, name) for name in ("coverage", "mean_size", "infinite_rate", "support")]
            depth = "all" if method == BASELINE else str(hops)
            lines.append([SETUPS[dataset].title, protocol, method, depth, *values])
    columns = ["Dataset", "Protocol", "Method", "K", "Coverage", "Size", "Too little support", "Support"]
    notes = [
        "Too little support: share of infinite thresholds, whose sets contain every label (strict only).",
        "Under `strict` the geometric weight at K = 1 is 1/2 while the test point weighs 1: the methods differ there. "
        "Under `as-published` it is 2^−(k−1): at K = 1 all three agree, and at K = 2 NAPS-G is NAPS-H.",
    ]
    return Table("Ablation: depth K", columns, lines, {"Size": 2, "Support": 0}, notes)


def ablation_model(dataset: str, scope: Scope) -> str:
    """Return the model of the ablation on a dataset."""
    return next((model for model in scope.ablation_models if model in SETUPS[dataset].models), "")


#: A palette that colour-blind readers can distinguish (Okabe and Ito).
_COLOURS = dict(zip(METHODS, ("#555555", "#0072B2", "#E69F00", "#009E73"), strict=True))
_METRICS = {"coverage": "Coverage", "mean_size": "Set size"}


def ablation_figures(rows: Sequence[Row], scope: Scope) -> dict[str, Chart]:
    """Return coverage and size by depth of the neighbourhood (the paper's figure), one figure per protocol."""
    alt, figures = altair(), {}
    for protocol in scope.protocols:
        charts = []
        for dataset in scope.datasets:
            ours = select(rows, dataset=dataset, model=ablation_model(dataset, scope), protocol=protocol)
            if ours:
                both = alt.hconcat(*(_ablation_panel(ours, scope, metric) for metric in _METRICS))
                charts.append(both.properties(title=f"{SETUPS[dataset].title}, {protocol}"))
        if charts:
            figures[f"ablation-{protocol}"] = alt.vconcat(*charts).resolve_scale(color="shared")
    return figures


def _ablation_panel(rows: Sequence[Row], scope: Scope, metric: str) -> Chart:
    alt = altair()
    values = []
    for hops, method in product(scope.ablation_hops, METHODS):
        middle = spread(select(rows, method=method, hops=0 if method == BASELINE else hops), metric)
        if middle is not None:
            sd = 0.0 if middle.sd != middle.sd else middle.sd
            low, high = middle.mean - sd, middle.mean + sd
            values.append({"K": hops, "method": method, "value": middle.mean, "low": low, "high": high})
    scale = alt.Scale(zero=False)
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("K:O", title="K (hops)", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=list(METHODS)),
        color=colours("method", _COLOURS),
    )
    y = alt.Y("value:Q", title=_METRICS[metric], scale=scale)
    layers = [base.mark_point(filled=True, size=60).encode(y=y)]
    layers.append(base.mark_rule().encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"))
    if metric == "coverage":
        goal = alt.Chart(alt.Data(values=[{"value": 1.0 - scope.alpha}]))
        layers.append(goal.mark_rule(strokeDash=[4, 4], color="black").encode(y=alt.Y("value:Q", scale=scale)))
    return alt.layer(*layers).properties(width=320, height=220)


def _models(rows: Sequence[Row], scope: Scope) -> list[tuple[str, str]]:
    there = {(row["dataset"], row["model"]) for row in rows}
    return [(d, m) for d in scope.datasets for m in scope.models if (d, m) in there]


def _difference(ours: Spread | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours.mean - theirs


#: What the paper claims of NAPS compared with APS: that it has less of a metric, or coverage nearer to 1 − alpha.
CLAIMS = {
    "Tighter sets": "mean_size",
    "Coverage nearer 1−α": "coverage",
    "Lower SSCV": "sscv",
    "Lower PCCV": "pccv",
}


def difference(metric: str, ours: float, theirs: float, alpha: float) -> float:
    """Return the compared value of NAPS less that of APS, which a claim says is negative."""
    if metric == "coverage":
        ours, theirs = abs(ours - (1.0 - alpha)), abs(theirs - (1.0 - alpha))
    return ours - theirs


def verdict(rows: Sequence[Row], metric: str, scope: Scope) -> str:
    """Return ``holds`` or ``fails`` where the 95 % Student interval over seeds excludes 0, and ``open`` elsewhere.

    `rows` are those of one model and protocol. With one seed there is no interval.
    """
    base = {row["seed"]: row[metric] for row in select(rows, method=BASELINE)}
    ours = {row["seed"]: row[metric] for row in select(rows, method="NAPS", hops=scope.hops)}
    pairs = [(value, base[seed]) for seed, value in ours.items() if seed in base]
    differences = [difference(metric, *pair, scope.alpha) for pair in pairs if None not in pair]
    if len(differences) < 2:
        return "open"
    _, low, high = interval(np.array(differences))
    return "holds" if high < 0 else "fails" if low > 0 else "open"


def claims_table(coverage: Mapping[str, Sequence[Row]], scope: Scope) -> Table:
    """Return for how many models each claim about NAPS holds, here and in the published numbers."""
    lines: list[list[Entry]] = []
    for preset, rows in coverage.items():
        for dataset, protocol in product(scope.datasets, scope.protocols):
            here = select(rows, dataset=dataset, protocol=protocol)
            by_model = grouped(here, "model").values()
            words = [[verdict(ours, metric, scope) for ours in by_model] for metric in CLAIMS.values()]
            texts = [f"{w.count('holds')} of {len(w)}, {w.count('fails')} fail" for w in words]
            if here:
                lines.append([SETUPS[dataset].title, preset, protocol, str(len(distinct(here, "seed"))), *texts])
    for dataset in scope.datasets:
        models = [model for model in scope.models if ("mean_size", dataset, model, "NAPS") in PRINTED]
        texts = []
        for metric in CLAIMS.values():
            naps, aps = ([PRINTED[metric, dataset, model, method] for model in models] for method in ("NAPS", BASELINE))
            differences = [difference(metric, *pair, scope.alpha) for pair in zip(naps, aps, strict=True)]
            holds = sum(round(value, 6) < 0 for value in differences)
            texts.append(f"{holds} of {len(models)}")
        if models:
            lines.append([SETUPS[dataset].title, "printed", None, "1", *texts])
    columns = ["Dataset", "Preset", "Protocol", "Seeds", *CLAIMS]
    notes = [
        "Models for which the difference between NAPS and APS has the claimed sign and its 95 % Student interval over "
        "seeds excludes 0, and for which it fails likewise; the others are open. A single seed decides nothing."
    ]
    return Table("For how many models the claims about NAPS hold", columns, lines, notes=notes)
