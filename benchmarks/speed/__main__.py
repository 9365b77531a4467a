"""Command line: measure, keep the figures, write tables and plots."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.render import write_results
from benchmarks.speed.runner import Bench
from benchmarks.speed.sections import SECTIONS, Effort
from napsets.files.paths import replacing

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the temporary folder goes too
    results = arguments.results
    results.mkdir(parents=True, exist_ok=True)
    stored = results / "speed.json"
    figures: dict[str, Any] = json.loads(stored.read_text()) if stored.exists() else {}
    effort = Effort(arguments.quick, arguments.rounds or (1 if arguments.quick else 3))
    if not arguments.render:
        with Bench(arguments.torchcp_python) as bench:
            for name in arguments.only or SECTIONS:
                start = time.time()
                rows = SECTIONS[name](bench, effort)
                figures.setdefault("sections", {})[name] = {
                    "rows": rows,
                    "machine": machine(),
                    "quick": effort.quick,
                    "seconds": round(time.time() - start, 1),
                }
                figures.setdefault("graphs", {}).update(bench.graphs)
                with replacing(stored) as path:
                    path.write_text(json.dumps(figures, indent=1) + "\n")
    print(write_results(figures, results))


def machine() -> dict[str, Any]:
    """Describe the machine by its processor, its cores and its memory."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer graphs and depths, once each: about three minutes")
    parser.add_argument("--rounds", type=int, help="how often each contender runs (3, or 1 with --quick)")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="sections to measure; others are kept")
    parser.add_argument("--render", action="store_true", help="measure nothing, write tables and plots again")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for tables and plots")
    parser.add_argument(
        "--torchcp-python",
        default=os.environ.get("NAPSETS_TORCHCP_PYTHON"),
        help="a Python with torchcp, to measure its NAPS predictor too (or NAPSETS_TORCHCP_PYTHON)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
