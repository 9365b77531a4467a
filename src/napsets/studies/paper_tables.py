"""The paper's tables, its ablation figure and its claims, made from rows of results and the printed numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.errors import imported
from napsets.levels import hits_law
from napsets.studies.coverage import MODELS
from napsets.studies.protocols import BASELINE, CORRECTED, METHODS, PAPER_DATASETS, PRINTED_DATASETS, SETUPS, printed
from napsets.studies.study import Row
from napsets.studies.tables import Entry, Spread, Table, colours, interval, select

if TYPE_CHECKING:
    from napsets.studies.paper import Scope


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


def spread(rows: Sequence[Row], name: str) -> Spread | None:
    """Return mean and spread of a metric over the rows of different seeds; None if there are none."""
    values = [row[name] for row in rows if row[name] is not None]
    return Spread.of(values) if values else None


def table1(rows: Sequence[Row]) -> Table:
    """Return dataset statistics, ours above the printed ones."""
    lines: list[list[Entry]] = []
    notes = [
        "The paper gives Ĥ for the full graph; the next column is for the test subgraph. Spread: over random splits."
    ]
    for name in [*PAPER_DATASETS, *(name for name in SETUPS if name not in PAPER_DATASETS)]:
        ours, theirs, title = select(rows, dataset=name), PRINTED_DATASETS.get(name), SETUPS[name].title
        if ours:
            first = min(ours, key=lambda row: row["seed"])
            counts = [int(first[count]) for count in _COUNTS]
            spreads = [spread(ours, "eligible"), first["node_homophily"], spread(ours, "test_homophily")]
            lines.append([title, "here", *counts, *spreads, first["expected_homophily"]])
        elif theirs:
            lines.append([title, "not available", *[None] * (len(_COUNTS) + 4)])
            notes.append(_HOW_TO_GET.format(title=title, name=name))
        if theirs:
            *counts, homophily, expected = theirs
            lines.append([title, "printed", *counts, homophily, None, expected])
    columns = ["Dataset", "Source", "Nodes", "Edges", "Features", "Classes", "Test nodes", "N^cal"]
    columns += ["Ĥ", "Ĥ test subgraph", "H_rand"]
    return Table("table1", "Table 1: datasets", columns, lines, {"N^cal": 0}, notes)


def accuracy(rows: Sequence[Row], scope: Scope) -> Table:
    """Return the models' test accuracies and the published ones."""
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
        "Medians over repetitions; mean ± standard deviation over training seeds. Δ: ours minus the published number."
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
        law = hits_law(rows[0]["test_nodes"] - scope.evaluated, scope.alpha, scope.evaluated)
        low, high = median_band(law, scope.repetitions)
        notes.append(
            "If eligible nodes were like all others, the median coverage of APS under `strict` would be between "
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
    depths = [(0, BASELINE), *((k, method) for k in scope.ablation_hops for method in METHODS if method != BASELINE)]
    for dataset, protocol, (hops, method) in product(datasets, scope.protocols, depths):
        wanted = {"dataset": dataset, "protocol": protocol, "method": method, "hops": hops}
        ours = select(rows, model=scope.ablation_model, **wanted)
        if ours:
            values = [spread(ours, name) for name in ("coverage", "mean_size", "infinite_rate", "support")]
            depth = "all" if method == BASELINE else str(hops)
            lines.append([SETUPS[dataset].title, protocol, method, depth, *values])
    columns = ["Dataset", "Protocol", "Method", "K", "Coverage", "Size", "Too little support", "Support"]
    title = f"Ablation: depth K with {MODELS[scope.ablation_model]}"
    notes = ["Too little support: share of infinite thresholds, whose sets contain every label (strict only)."]
    return Table("ablation", title, columns, lines, {"Size": 2, "Support": 0}, notes)


#: A palette that colour-blind readers can distinguish (Okabe and Ito).
_COLOURS = dict(zip(METHODS, ("#555555", "#0072B2", "#E69F00", "#009E73"), strict=True))
_METRICS = {"coverage": "Coverage", "mean_size": "Set size"}


def ablation_figures(rows: Sequence[Row], scope: Scope) -> dict[str, Any]:
    """Return coverage and size by depth of the neighbourhood (the paper's figure), one figure per protocol."""
    alt, figures = imported("altair", "report"), {}
    for protocol in scope.protocols:
        charts = []
        for dataset in scope.ablation_datasets:
            ours = select(rows, dataset=dataset, model=scope.ablation_model, protocol=protocol)
            if ours:
                both = alt.hconcat(*(_ablation_panel(ours, scope, metric) for metric in _METRICS))
                charts.append(both.properties(title=f"{SETUPS[dataset].title}, {protocol}"))
        if charts:
            figures[f"ablation-{protocol}"] = alt.vconcat(*charts).resolve_scale(color="shared")
    return figures


def _ablation_panel(rows: Sequence[Row], scope: Scope, metric: str) -> Any:
    alt = imported("altair", "report")
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


def median_band(law: FloatArray, repetitions: int, outside: float = 1e-3) -> tuple[float, float]:
    """Return the range of the median coverage of independent repetitions, up to a probability of at most `outside`.

    `law` is from `napsets.levels.hits_law`. With an even number of repetitions the median is the mean of the two middle
    values: it lies above the lower end of the lower one and below the upper end of the upper one.
    """
    from scipy.stats import binom

    evaluated = law.size - 1
    # The j-th smallest of r values is at most x exactly if j of them are: a binomial count with chance F(x).
    lower = np.asarray(binom.sf((repetitions + 1) // 2 - 1, repetitions, law))
    upper = np.asarray(binom.sf(repetitions // 2, repetitions, law))
    low = int(np.searchsorted(lower, outside / 2, side="right"))
    high = int(np.searchsorted(upper, 1.0 - outside / 2, side="left"))
    return low / evaluated, min(high, evaluated) / evaluated


def _models(rows: Sequence[Row], scope: Scope) -> list[tuple[str, str]]:
    there = {(row["dataset"], row["model"]) for row in rows}
    return [(d, m) for d in scope.datasets for m in scope.models if (d, m) in there]


def _difference(ours: Spread | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours.mean - theirs


class Claim(NamedTuple):
    """A claim about NAPS compared with APS: that a metric, or its distance from the target, is smaller for NAPS."""

    #: Column heading, and its wording in a sentence.
    name: str
    words: str
    metric: str  #: the metric it is about
    digits: int = 3  #: digits after the point

    def difference(self, ours: float, theirs: float, alpha: float) -> float:
        """Return the compared value of NAPS less that of APS; coverage is to be near 1 − alpha."""
        if self.metric == "coverage":
            ours, theirs = abs(ours - (1.0 - alpha)), abs(theirs - (1.0 - alpha))
        return ours - theirs


CLAIMS = (
    Claim("Tighter sets", "smaller sets", "mean_size", digits=2),
    Claim("Coverage nearer 1−α", "coverage nearer to 1 − alpha", "coverage"),
    Claim("Lower SSCV", "a lower SSCV", "sscv"),
    Claim("Lower PCCV", "a lower PCCV", "pccv"),
)


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim for one dataset, model, protocol and method."""

    claim: Claim
    dataset: str
    model: str
    protocol: str
    method: str
    differences: tuple[float, ...]  #: NAPS minus APS, for each seed; the claim is that they are negative
    printed: bool | None  #: whether the claim holds for the paper's published numbers

    @property
    def text(self) -> str:
        """The verdict with the mean difference."""
        return f"{self.word} ({self.mean:+.{self.claim.digits}f})" if self.differences else "–"

    @property
    def mean(self) -> float:
        """Mean difference over seeds."""
        return fmean(self.differences)

    @property
    def word(self) -> str:
        """Return ``holds`` or ``fails`` if the 95 % Student interval of the mean difference excludes 0, else ``open``.

        With one seed there is no interval, and the sign decides.
        """
        if not self.differences:
            return "open"
        mean, low, high = interval(np.array(self.differences))
        if math.isnan(low):
            low = high = mean
        return "holds" if high < 0 else "fails" if low > 0 else "open"


def judge(rows: Sequence[Row], scope: Scope) -> list[ClaimVerdict]:
    """Return the verdicts on every NAPS method, over all datasets, models and protocols that have rows of it."""
    verdicts = []
    for dataset, model, protocol in product(scope.datasets, scope.models, scope.protocols):
        here = select(rows, dataset=dataset, model=model, protocol=protocol)
        base = {row["seed"]: row for row in select(here, method=BASELINE)}
        methods = [name for name in METHODS if name != BASELINE and select(here, method=name)]
        for method, claim in product(methods, CLAIMS):
            ours = {row["seed"]: row for row in select(here, method=method, hops=scope.hops)}
            pairs = [(ours[seed][claim.metric], base[seed][claim.metric]) for seed in sorted(ours.keys() & base.keys())]
            differences = tuple(claim.difference(*pair, scope.alpha) for pair in pairs if None not in pair)
            theirs, aps = (printed(claim.metric, dataset, model, name) for name in (method, BASELINE))
            as_printed = None
            if theirs is not None and aps is not None:
                as_printed = round(claim.difference(theirs, aps, scope.alpha), 6) < 0
            verdicts.append(ClaimVerdict(claim, dataset, model, protocol, method, differences, as_printed))
    return verdicts


def claims_table(rows: Sequence[Row], scope: Scope) -> Table:
    """Return the verdicts on every NAPS method."""
    texts: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for verdict in judge(rows, scope):
        title, model = SETUPS[verdict.dataset].title, MODELS[verdict.model]
        texts[title, model, verdict.protocol, verdict.method].append(verdict.text)
    lines = [[*where, *words] for where, words in texts.items()]
    columns = ["Dataset", "Model", "Protocol", "Method", *(claim.name for claim in CLAIMS)]
    notes = [
        "In brackets: the method minus APS, mean over training seeds. `holds` and `fails`: the 95 % Student interval "
        "of the paired difference excludes 0; `open`: it does not."
    ]
    return Table("claims", "The paper's claims", columns, lines, notes=notes)


def paragraph(rows: Sequence[Row], scope: Scope) -> str:
    """Return a paragraph on the number of models for which each claim holds, here and in the published numbers."""
    verdicts = select(judge(rows, scope), method="NAPS")
    sentences = []
    for dataset in scope.datasets:
        ours = select(verdicts, dataset=dataset)
        if not ours:
            continue
        seeds = max(len(verdict.differences) for verdict in ours)
        sentences.append(
            f"On {SETUPS[dataset].title} ({_count(seeds, 'training seed')}, alpha {scope.alpha:g}, "
            f"K = {scope.hops}), NAPS compares with APS as follows."
        )
        for protocol in scope.protocols:
            clauses = [_clause(select(ours, protocol=protocol, claim=claim)) for claim in CLAIMS]
            sentences.append(f"Under `{protocol}` it has {'; '.join(clause for clause in clauses if clause)}.")
        in_print = [_printed_clause(select(ours, protocol=scope.protocols[0], claim=claim)) for claim in CLAIMS]
        if any(in_print):
            sentences.append(f"In the paper's numbers it has {', '.join(text for text in in_print if text)}.")
    return " ".join(sentences)


def _clause(verdicts: Sequence[ClaimVerdict]) -> str:
    verdicts = [verdict for verdict in verdicts if verdict.differences]
    if not verdicts:
        return ""
    models = {word: [MODELS[v.model] for v in verdicts if v.word == word] for word in ("holds", "fails", "open")}
    claim, means = verdicts[0].claim, [verdict.mean for verdict in verdicts]
    text = f"{claim.words} for {len(models['holds'])} of {_count(len(verdicts), 'model')}"
    text += f" (difference {min(means):+.{claim.digits}f} to {max(means):+.{claim.digits}f}"
    text += f"; the opposite for {', '.join(models['fails'])}" if models["fails"] else ""
    text += f"; undecided for {', '.join(models['open'])}" if models["open"] else ""
    return text + ")"


def _printed_clause(verdicts: Sequence[ClaimVerdict]) -> str:
    known = [v for v in verdicts if v.printed is not None]
    return f"{verdicts[0].claim.words} for {sum(bool(v.printed) for v in known)} of {len(known)}" if known else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
