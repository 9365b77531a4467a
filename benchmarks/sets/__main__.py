"""``python -m benchmarks.sets``: measure what is not measured yet, and make ``docs/sets.md`` from all rows."""

from __future__ import annotations

import argparse

from benchmarks.sets.measure import ROWS, measure, read_rows
from benchmarks.sets.page import PAGE, summary_text, write_page
from benchmarks.sets.predictions import GRAPHS, MODELS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sets", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three small graphs, two repetitions, nothing is kept")
    parser.add_argument("--repetitions", type=int, default=20, help="draws of labelled nodes (default: 20)")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.3], help="shares of test nodes labelled")
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=GRAPHS, metavar="GRAPH")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS, metavar="MODEL")
    parser.add_argument(
        "--page-only", action="store_true", help="measure nothing, make the page from the rows there are"
    )
    asked = parser.parse_args()
    if asked.quick:
        rows = measure(("cora-ml", "citeseer-full", "squirrel-filtered"), asked.models, asked.shares, 2, None)
        print(summary_text(rows))
        return
    if not asked.page_only:
        measure(asked.graphs, asked.models, asked.shares, asked.repetitions)
    rows = read_rows(ROWS)
    write_page(rows)
    print(summary_text(rows))
    print(f"\n{len(rows):,} rows in {ROWS}, page {PAGE}")


if __name__ == "__main__":
    main()
