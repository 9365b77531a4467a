"""Write the goldens: ``python tests/golden/write.py`` from the root of the repository.

The committed files hold the answers of the version before sets and intervals were put on one road; they are written
again only where an answer is meant to change, which then is a line of the changelog. Names of parts (``library``,
``commands``, …) as arguments write these alone. ``prune`` removes the answers of cases that are gone and computes
nothing: every other answer keeps its bits.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from golden import commands, compare, library, reports  # noqa: E402


def write_library() -> None:
    """Write what methods answer, and what automatic ones choose."""
    calibrated = {case.name: library.calibrate(case) for case in (*library.CASES, *library.FILES)}
    choices = {name: library.chosen(predictor) for name, predictor in calibrated.items()}
    compare.write_json(FOLDER / "choices.json", {name: choice for name, choice in choices.items() if choice})
    compare.write_arrays(
        FOLDER / "library.npz",
        {
            case.name: library.predicted(calibrated[case.name], library.world(case.world), case.alphas)
            for case in (*library.CASES, *library.FILES)
        },
    )


def write_commands() -> None:
    """Write what commands answer, and what they write."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        runs = commands.Runs(Path(folder))
        results = {name: runs.result(name) for name in commands.COMMANDS}
        os.chdir(before)
    failed = {name: result for name, result in results.items() if "error" in result or result.get("unnamed")}
    assert not failed, failed
    compare.write_json(FOLDER / "commands.json", results)


def write_reports() -> None:
    """Write what comparisons and reports say."""
    answers = {name: reports.answer(report) for name, report in reports.REPORTS.items()}
    compare.write_json(FOLDER / "reports.json", answers | reports.metrics())


def prune() -> None:
    """Remove the answers of cases that are gone; the others keep their bits, and the mark of their processor."""
    cases = {case.name for case in (*library.CASES, *library.FILES)}
    digits, arrays = compare.read_arrays(FOLDER / "library.npz")
    kept = {name: answer for name, answer in arrays.items() if name in cases}
    compare.write_arrays(FOLDER / "library.npz", kept, digits)
    for file, names in (("choices.json", cases), ("commands.json", set(commands.COMMANDS))):
        answers = compare.read_json(FOLDER / file)
        compare.write_json(FOLDER / file, {name: answer for name, answer in answers.items() if name in names})


PARTS: dict[str, Callable[[], None]] = {
    "library": write_library,
    "commands": write_commands,
    "reports": write_reports,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        {**PARTS, "prune": prune}[part]()
