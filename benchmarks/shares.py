"""How many labels should teach the score: the share of the reference part at a full level.

Run with ``python -m benchmarks.shares``; writes ``benchmarks/results/shares.json`` and prints the table of
``docs/informed.md``. The graphs and the predictions are those of the sets study, GraphSAGE-mean, seed 0; the draws of
labelled nodes are others than those of the study.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from napsets.errors import NapsetsWarning
from napsets.files.paths import replacing
from napsets.levels import Full, Nominal
from napsets.localisers import Everyone
from napsets.methods import CalibrationData, Method
from napsets.scores import APS, Informed, Sharpened
from napsets.studies import STUDIES, Laboratory
from napsets.studies.sets import SetsCell

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "shares.json"
LABELS = (50, 150, 500, 5000)
SHARES = (0.25, 1 / 3, 0.5)


def measure(draws: int, datasets: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the mean set sizes of split APS and of an informed score at each share, draw by draw."""
    laboratory = Laboratory(ROOT / "results", ROOT / "benchmarks" / "data")
    score, rows = Informed(Sharpened(APS(), 1.6)), []
    for dataset in datasets:
        predicted = laboratory.test_graph(SetsCell(dataset, "graphsage-mean", 0, 0.3, 0, "split"))
        for labels in LABELS:
            if 2 * labels > predicted.labels.size:
                continue
            for draw in range(draws):
                order = np.random.default_rng([1000 + draw, labels]).permutation(predicted.labels.size)
                known, rest = np.sort(order[:labels]), np.sort(order[labels:])[:5000]
                data = CalibrationData.check(predicted.graph, predicted.probabilities, predicted.labels, known)
                sizes = [
                    float(method.fit(data).predict(rest, 0.1).member.sum(axis=1).mean())
                    for method in (
                        Method(APS(), Everyone(), Nominal(), draw),
                        *(Method(score, Everyone(), Full(share), draw) for share in SHARES),
                    )
                ]
                rows.append({"dataset": dataset, "labels": labels, "draw": draw, "split": sizes[0], "sizes": sizes[1:]})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return sizes relative to split APS, averaged over draws and then over graphs, as a table in Markdown."""
    lines = ["| labels | graphs | ¼ | ⅓ | ½ |", "|---|---|---|---|---|"]
    for labels in LABELS:
        mine = [row for row in rows if row["labels"] == labels]
        ratios = []
        for dataset in dict.fromkeys(row["dataset"] for row in mine):
            some = [row for row in mine if row["dataset"] == dataset]
            split = np.mean([row["split"] for row in some])
            ratios.append(np.mean([row["sizes"] for row in some], axis=0) / split)
        means = " | ".join(f"{value:.3f}" for value in np.mean(ratios, axis=0))
        lines.append(f"| {labels:,} | {len(ratios)} | {means} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, keep the rows and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shares", description=__doc__)
    parser.add_argument("--draws", type=int, default=5, help="draws of labelled nodes for each graph and number")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file for the rows")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)
        rows = measure(arguments.draws, STUDIES["sets"].full.datasets)
    with replacing(arguments.results) as path:
        path.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
