"""Intervals on two graphs of Wikipedia pages: ``python -m benchmarks.intervals`` makes the table of docs/intervals.md.

The target is the logarithm of a page's monthly traffic. A GraphSAGE of two quantiles is trained on a tenth of the nodes
(another tenth chooses its weights), inductively; of the others, 30 % are labelled at random, and methods are judged on
the rest, in the graph induced on these nodes. With ``--report FILE`` it writes the report about the first draw of the
second graph instead, which docs/make_screenshots.py takes a picture of.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import napsets as ns
from napsets.checks.text import percent
from studies import collections, training

GRAPHS = ("wiki-chameleon-traffic", "wiki-squirrel-traffic")
ROOT = Path(__file__).parent
PAGE = ROOT.parent / "docs" / "intervals.md"
START, END = "<!-- intervals: start -->", "<!-- intervals: end -->"
ALPHA, SHARE = 0.1, 0.3
QUANTILES = (0.05, 0.95)

METHODS: dict[str, Any] = {
    "split CQR": lambda seed: ns.SplitConformal("cqr", seed=seed),
    "local CQR, nominal": lambda seed: ns.NAPS(hops=2, score="cqr", seed=seed),
    "local CQR, pooled 10, nominal": lambda seed: ns.NAPS(hops=2, pool=10.0, score="cqr", seed=seed),
    "local CQR, pooled 10, exact": lambda seed: ns.NAPS(hops=2, pool=10.0, score="cqr", exact=True, seed=seed),
    "informed CQR, exact": lambda seed: ns.SplitConformal(ns.InformedIntervals("cqr"), seed=seed),
    "auto": lambda seed: ns.Auto(score="cqr", seed=seed),
}


@dataclass(frozen=True, eq=False)
class QuantileGoal(training.Goal):
    """Quantiles of the nodes' `targets`, ascending, by the mean pinball loss; they cannot cross.

    The model's first output is the lowest quantile; each further one is the distance to the next, made positive.
    Targets are standardised by the mean and the deviation of the training nodes.
    """

    quantiles: tuple[float, ...] = QUANTILES

    def __post_init__(self) -> None:
        if self.dataset.targets is None:
            raise ns.InvalidInputError("`dataset` must have targets to train a model of quantiles; it has none")

    @property
    def _targets(self) -> Any:
        return np.asarray(self.dataset.targets, dtype=np.float64)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Mean and standard deviation of the training targets."""
        known = self._targets[self.dataset.train]
        return float(known.mean()), float(known.std()) or 1.0

    def width(self) -> int:  # noqa: D102
        return len(self.quantiles)

    def truth(self) -> Any:  # noqa: D102
        mean, spread = self.scale
        return ((self._targets - mean) / spread).astype(np.float32)

    def ordered(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return ascending quantiles from the model's outputs."""
        steps = torch.nn.functional.softplus(outputs[:, 1:])
        return torch.cat([outputs[:, :1], outputs[:, :1] + steps.cumsum(dim=1)], dim=1)

    def loss(self, outputs: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:  # noqa: D102
        levels = torch.tensor(self.quantiles, dtype=outputs.dtype)
        errors = truth[:, None] - self.ordered(outputs)
        return torch.maximum(levels * errors, (levels - 1.0) * errors).mean()

    def merit(self, outputs: torch.Tensor, truth: torch.Tensor) -> float:  # noqa: D102
        return 1.0 / (1.0 + float(self.loss(outputs.double(), truth.double())))

    def predict(self, trained: training.TrainedModel) -> Any:
        """Return the quantiles of all nodes, one column per quantile."""
        mean, spread = self.scale
        return mean + spread * self.ordered(training.outputs_of(trained, self.dataset).double()).numpy()


@dataclass(frozen=True)
class Draw:
    """A model's word on the nodes that it has not seen, and which of them are labelled."""

    seed: int
    draw: int
    graph: ns.Graph
    outputs: Any
    targets: Any
    labelled: Any
    judged: Any


def drawn(graph: str, seeds: int, draws: int) -> Iterator[Draw]:
    """Train, and draw labelled nodes."""
    for seed in range(seeds):
        data = collections.load(graph, seed=seed)
        goal = QuantileGoal(data)
        outputs = goal.predict(training.fit(data, "graphsage-mean", "graph_cp-6fc8783", seed, goal=goal, epochs=60))
        rest = data.test
        induced, outputs, targets = data.graph.subgraph(rest), outputs[rest], np.asarray(data.targets)[rest]
        for draw in range(draws):
            order = np.random.default_rng([seed, draw]).permutation(rest.size)
            labelled, judged = np.sort(order[: int(SHARE * rest.size)]), np.sort(order[int(SHARE * rest.size) :])
            yield Draw(seed, draw, induced, outputs, targets, labelled, judged)


def rows(graph: str, seeds: int, draws: int) -> Iterator[dict[str, Any]]:
    for one in drawn(graph, seeds, draws):
        known = np.full(one.targets.size, np.nan)
        known[one.labelled] = one.targets[one.labelled]
        groups = {
            "degree": ns.groups_by_degree(one.graph, 5, one.judged),
            "neighbourhood": ns.groups_by_neighbourhood(one.graph, one.judged, seed=one.seed),
        }
        for name, make in METHODS.items():
            calibrated = make(one.seed).calibrate(one.graph, one.outputs, known, one.labelled)
            prediction = calibrated.predict(one.judged, ALPHA)
            finite = np.isfinite(prediction.widths)
            gaps = {key: ns.coverage_gap(prediction, one.targets, group).excess for key, group in groups.items()}
            yield {
                "graph": graph, "method": name, "seed": one.seed, "draw": one.draw,
                "coverage": ns.coverage(prediction, one.targets), "width": float(np.mean(prediction.widths[finite])),
                "infinite": 1.0 - float(finite.mean()),
            } | gaps  # fmt: skip


def write_report(path: Path) -> None:
    """Write the report about the first draw of the second graph."""
    from napsets.evaluation.comparison import CURVE_ALPHAS

    one = next(drawn(GRAPHS[1], 1, 1))
    comparison = ns.compare(
        one.graph, one.outputs, one.targets, one.labelled, one.judged, score="cqr", alpha=ALPHA, alphas=CURVE_ALPHAS
    )
    ns.report.write_page(path, comparison, dataset=GRAPHS[1], model="GraphSAGE of two quantiles")
    print(comparison.verdict())


def table(found: list[dict[str, Any]]) -> str:
    lines = [
        "| graph | method | coverage | mean width | infinite | excess gap by degree | by neighbourhood |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for graph in dict.fromkeys(row["graph"] for row in found):
        for method in METHODS:
            mine = [row for row in found if row["graph"] == graph and row["method"] == method]
            mean = {key: np.mean([row[key] for row in mine]) for key in mine[0] if key not in ("graph", "method")}
            error = np.std([row["coverage"] for row in mine], ddof=1) / len(mine) ** 0.5
            spread = np.std([row["width"] for row in mine], ddof=1) / len(mine) ** 0.5
            lines.append(
                f"| {graph} | {method} | {mean['coverage']:.3f} ± {error:.3f} | {mean['width']:.2f} ± {spread:.2f} | "
                f"{percent(mean['infinite'])} | {mean['degree']:+.3f} | {mean['neighbourhood']:+.3f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="models a graph (default: 5)")
    parser.add_argument("--draws", type=int, default=4, help="draws of labelled nodes per model (default: 4)")
    parser.add_argument("--report", type=Path, help="write the report about one draw, and nothing else")
    options = parser.parse_args()
    if options.report is not None:
        write_report(options.report)
        return
    rendered = table([row for graph in GRAPHS for row in rows(graph, options.seeds, options.draws)])
    print(rendered)
    if options.seeds == 5 and options.draws == 4:
        text = PAGE.read_text("utf-8")
        before, after = text.split(START)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{START}\n\n{rendered}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
