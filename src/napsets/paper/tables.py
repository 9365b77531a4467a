"""The paper's tables, made from rows of results and the printed numbers, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from napsets.paper.bands import coverage_law, median_band
from napsets.paper.blockmodel import informative
from napsets.paper.cells import BASELINE, METHODS, MODELS, Row
from napsets.paper.grids import Scope
from napsets.paper.printed import CORRECTED, PRINTED_DATASETS, printed
from napsets.paper.setups import PAPER_DATASETS, SETUPS
from napsets.paper.table import Entry, Spread, Table

__all__ = ["METRIC_NAMES", "ablation", "accuracy", "bound_holds", "metric", "sbm_points", "sbm_summary", "table1"]

#: What tables call the metrics, and digits after the point.
METRIC_NAMES = {
    "coverage": ("Coverage", 3),
    "mean_size": ("Size", 2),
    "size_given_coverage": ("Size | coverage", 2),
    "sscv": ("SSCV", 3),
    "pccv": ("PCCV", 3),
}
_COUNTS = ("nodes", "edges", "features", "classes", "test_nodes")
_HOW_TO_GET = (
    "{title} is not embedded. Put GraphSAINT's files (adj_full.npz, feats.npy, class_map.json, role.json) into "
    "DIR/{name} and give --root DIR."
)


def select(rows: Sequence[Row], **wanted: object) -> list[Row]:
    """Return the rows with these values, in the order of their seeds."""
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return sorted(found, key=lambda row: row["seed"])


def spread(rows: Sequence[Row], name: str) -> Spread | None:
    """Return mean and spread of a metric over the rows of different seeds; None where there are none."""
    values = [row[name] for row in rows if row[name] is not None]
    return Spread.of(values) if values else None


def table1(rows: Sequence[Row]) -> Table:
    """Return dataset statistics, ours above the printed ones."""
    lines: list[list[Entry]] = []
    notes = ["Ĥ is printed for the full graph; the test subgraph's stands beside it. Spread: over random splits."]
    for name in [*PAPER_DATASETS, *(name for name in SETUPS if name not in PAPER_DATASETS)]:
        ours, theirs, title = select(rows, dataset=name), PRINTED_DATASETS.get(name), SETUPS[name].title
        if ours:
            first = ours[0]
            counts = [int(first[count]) for count in _COUNTS]
            spreads = [spread(ours, "eligible"), first["node_homophily"], spread(ours, "test_homophily")]
            lines.append([title, "here", *counts, *spreads, first["expected_homophily"]])
        elif theirs:
            lines.append([title, "not available", *[None] * (len(_COUNTS) + 4)])
            notes.append(_HOW_TO_GET.format(title=title, name=name))
        if theirs:
            counts = [int(theirs[count]) for count in (*_COUNTS, "eligible")]
            lines.append([title, "printed", *counts, theirs["node_homophily"], None, theirs["expected_homophily"]])
    columns = ["Dataset", "Source", "Nodes", "Edges", "Features", "Classes", "Test nodes", "N^cal"]
    columns += ["Ĥ", "Ĥ test subgraph", "H_rand"]
    return Table("table1", "Table 1: datasets", columns, lines, {"N^cal": 0}, notes)


def accuracy(rows: Sequence[Row], scope: Scope) -> Table:
    """Return the models' test accuracies beside the printed ones."""
    lines: list[list[Entry]] = []
    for dataset, model in _models(rows, scope):
        ours = select(rows, dataset=dataset, model=model, method=BASELINE, protocol=scope.protocols[0])
        mean, theirs = spread(ours, "accuracy"), printed("accuracy", dataset, model)
        lines.append([SETUPS[dataset].title, MODELS[model], mean, theirs, _difference(mean, theirs), len(ours)])
    columns = ["Dataset", "Model", "Accuracy", "Printed", "Δ", "Seeds"]
    return Table("table2-accuracy", "Table 2: accuracy on the test nodes", columns, lines)


def metric(rows: Sequence[Row], scope: Scope, name: str) -> Table:
    """Return one metric of Table 2 or 3: every protocol, the printed number, the differences."""
    title, digits = METRIC_NAMES[name]
    lines: list[list[Entry]] = []
    notes = [
        "Medians over repetitions; mean ± standard deviation over training seeds. Δ: ours less the printed number."
    ]
    for dataset, model in _models(rows, scope):
        for method in METHODS:
            hops = 0 if method == BASELINE else scope.hops
            cells = {"dataset": dataset, "model": model, "method": method, "hops": hops}
            ours = [spread(select(rows, protocol=protocol, **cells), name) for protocol in scope.protocols]
            theirs = printed(name, dataset, model, method)
            differences = [_difference(value, theirs) for value in ours]
            lines.append([SETUPS[dataset].title, MODELS[model], method, *ours, theirs, *differences])
            slip = CORRECTED.get((name, dataset, model, method))
            if slip is not None:
                where = f"{SETUPS[dataset].title}, {MODELS[model]}, {method}"
                notes.append(f"{where}: the paper prints {slip}, a slip for {theirs}.")
    if name == "coverage" and rows:
        law = coverage_law(rows[0]["test_nodes"] - scope.evaluated, scope.evaluated, scope.alpha)
        low, high = median_band(law, scope.repetitions)
        notes.append(
            "If eligible nodes were like all others, the median coverage of APS under `strict` would lie between "
            f"{low:.3f} and {high:.3f} with probability 0.999."
        )
    deltas = [f"Δ {protocol}" for protocol in scope.protocols]
    columns = ["Dataset", "Model", "Method", *scope.protocols, "Printed", *deltas]
    number = "2" if name in ("coverage", "mean_size", "size_given_coverage") else "3"
    shown = dict.fromkeys([*scope.protocols, "Printed", *deltas], digits)
    file = f"table{number}-{name.replace('_', '-')}"
    return Table(
        file, f"Table {number}: {title} at alpha {scope.alpha:g}, K = {scope.hops}", columns, lines, shown, notes
    )


def ablation(rows: Sequence[Row], scope: Scope) -> Table:
    """Return coverage and size by depth of the neighbourhood."""
    lines: list[list[Entry]] = []
    datasets = [name for name in scope.ablation_datasets if any(row["dataset"] == name for row in rows)]
    for dataset in datasets:
        for protocol in scope.protocols:
            for hops, method in [
                (0, BASELINE),
                *((k, m) for k in scope.ablation_hops for m in METHODS if m != BASELINE),
            ]:
                ours = select(
                    rows, dataset=dataset, model=scope.ablation_model, protocol=protocol, method=method, hops=hops
                )
                if ours:
                    values = [spread(ours, name) for name in ("coverage", "mean_size", "infinite_rate", "support")]
                    depth = "all" if method == BASELINE else str(hops)
                    lines.append([SETUPS[dataset].title, protocol, method, depth, *values])
    columns = ["Dataset", "Protocol", "Method", "K", "Coverage", "Size", "Too little support", "Support"]
    title = f"Ablation: depth K with {MODELS[scope.ablation_model]}"
    notes = ["Too little support: share of thresholds at +∞, whose sets hold every label (strict only)."]
    return Table("ablation", title, columns, lines, {"Size": 2, "Support": 0}, notes)


def bound_holds(row: Row, name: str, tolerance: float) -> bool:
    """Say whether a method's gaps, over all nodes and in either block, exceed its bound by chance at most.

    By chance: by no more than `tolerance` standard errors.
    """
    gaps = (f"{name}_gap", f"{name}_gap_easy", f"{name}_gap_hard")
    return all(row[gap] <= row[f"{name}_bound"] + tolerance * row[f"{gap}_se"] for gap in gaps)


def sbm_points(rows: Sequence[Row]) -> Table:
    """Return every point of the block-model study."""
    columns = ["n", "p_in", "p_out", "d", "APS gap", "APS gap, harder block", "APS bound"]
    columns += ["NAPS gap", "NAPS gap, harder block", "NAPS bound", "Lemma 1", "Mean field", "Lemma 1 favours"]
    columns += ["Smaller gap in harder block", "Informative"]
    ordered = sorted(rows, key=lambda row: (row["n"], row["tv"], row["p_in"], row["p_out"]))
    lines = [_point(row) for row in ordered]
    return Table("sbm", "Block model: every point of the grid", columns, lines, for_screen=False)


def _point(row: Row) -> list[Entry]:
    gaps = [Spread(row[name], row[f"{name}_se"]) for name in ("aps_gap", "aps_gap_hard", "naps_gap", "naps_gap_hard")]
    return [
        *(row["n"], row["p_in"], row["p_out"], row["tv"]),
        *(gaps[0], gaps[1], row["aps_bound"], gaps[2], gaps[3], row["naps_bound"]),
        *(row["lemma_exact"], row["lemma_mean_field"]),
        "NAPS" if row["lemma_favours_naps"] else "APS",
        winner(row) or "undecided",
        "yes" if informative(row) else "no",
    ]


def winner(row: Row, tolerance: float = 3.0) -> str | None:
    """Return who has the smaller gap in the harder block, if by more than so many standard errors."""
    if abs(row["advantage"]) <= tolerance * row["advantage_se"]:
        return None
    return "NAPS" if row["advantage"] > 0 else "APS"


def sbm_summary(rows: Sequence[Row]) -> Table:
    """Return, for each size and distance, how often bounds held and the lemma named the winner."""
    lines: list[list[Entry]] = []
    for n, tv in sorted({(row["n"], row["tv"]) for row in rows}):
        points = [row for row in rows if (row["n"], row["tv"]) == (n, tv)]
        told = [row for row in points if informative(row) and winner(row)]
        favoured = [row for row in points if row["lemma_favours_naps"]]
        lines.append(
            [
                n,
                tv,
                len(points),
                _share(points, lambda row: bound_holds(row, "aps", 4.0) and bound_holds(row, "naps", 4.0)),
                _share(told, lambda row: (winner(row) == "NAPS") == row["lemma_favours_naps"]),
                _share(favoured, lambda row: winner(row) == "NAPS"),
                _share(favoured, lambda row: row["naps_gap"] < row["aps_gap"]),
            ]
        )
    columns = ["n", "d", "Points", "Bounds hold", "Lemma 1 names the winner, where informative"]
    columns += ["NAPS wins where favoured, harder block", "NAPS wins where favoured, all nodes"]
    notes = [
        "Bounds hold: every gap is at most its bound plus four standard errors. A winner differs by more than three. "
        "Informative: d ≤ 2α and at least 50 neighbours expected."
    ]
    return Table("sbm-summary", "Block model: Lemma 1 against simulation", columns, lines, {"d": 1}, notes)


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> str:
    return f"{sum(map(holds, rows))} of {len(rows)}"


def _models(rows: Sequence[Row], scope: Scope) -> list[tuple[str, str]]:
    there = {(row["dataset"], row["model"]) for row in rows}
    return [(d, m) for d in scope.datasets for m in scope.models if (d, m) in there]


def _difference(ours: Spread | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours.mean - theirs
