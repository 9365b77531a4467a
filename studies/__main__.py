"""``python -m studies``: the paper's tables and figures next to the printed ones, and the comparisons of methods.

Finished rows are not computed again: they are kept in Parquet files in the results folder, and everything that is shown
or written is made from rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from napsets import InvalidInputError, NapsetsError
from napsets.methods import METHODS
from studies import drift, leaderboard, llm, paper, sets
from studies.collections import COLLECTION, DATA, TIMED, file_name, is_available
from studies.coverage import PROTOCOLS
from studies.draws import FEATURED, MODELS, DrawScope
from studies.paper_tables import Scope
from studies.rows import Folders, Kind
from studies.setups import MODELS as PAPER_MODELS
from studies.setups import SETUPS
from studies.tables import Row, write_page

#: The modules of the studies by their commands: each has a `KIND` of rows, and makes `summary`, `page` and `figures`.
STUDIES: dict[str, Any] = {"leaderboard": leaderboard, "sets": sets, "drift": drift, "llm": llm}
#: The commands with their help.
COMMANDS = {
    **paper.TARGETS,
    "leaderboard": "All methods on a dozen graphs, on the same draws of labels.",
    "sets": "Size and evenness of sets compared with split APS, with many repetitions.",
    "drift": "Nodes that arrive over time, and levels that follow the labels or do not.",
    "llm": "ogbn-arxiv with an LLM as the model, old papers as evidence, and drift over the years.",
}


ScopeT = TypeVar("ScopeT", DrawScope, Scope)


def _rate(text: str) -> float:
    value = float(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must lie strictly between 0 and 1; got {text}")
    return value


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: one command per table, figure and study."""
    parser = argparse.ArgumentParser(prog="python -m studies", description=(__doc__ or "").split("\n\n")[1])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words in COMMANDS.items():
        command = commands.add_parser(name, help=words, description=words)
        _add_options(command, name)
        command.add_argument("--alpha", type=_rate, default=0.1, help="error rate (default 0.1)")
        command.add_argument("--quick", action="store_true", help="a short version of a minute or two")
        command.add_argument("--jobs", type=int, default=1, help="processes that work at the same time")
        command.add_argument("--results", type=Path, default=Path("results"), help="folder of rows and predictions")
        command.add_argument("--root", type=Path, default=DATA, help="folder of graphs that are read from files")
        command.add_argument("--page", type=Path, help="write the page of the docs here, with its figures")
        command.add_argument("--rows-only", action="store_true", help="compute nothing; show the rows that there are")
    return parser


def _add_options(command: argparse.ArgumentParser, name: str) -> None:
    """Add the options that narrow a study; each may be repeated, except the numbers of seeds and repetitions."""

    def only(option: str, choices: Sequence[str] | None = None, kind: Callable[[str], object] = str) -> None:
        command.add_argument(
            f"--{option}", action="append", choices=choices, type=kind, help=f"only this {option}; may be repeated"
        )

    if name in ("leaderboard", "sets"):
        only("dataset", ["amazon-computers", *COLLECTION])
        only("model", MODELS)
        only("method", [*METHODS, *FEATURED])
        only("share", kind=_rate)
        command.add_argument("--repetitions", type=int, help="draws of labelled nodes")
    elif name in ("drift", "llm"):
        only("dataset")
    else:
        only("dataset", [*SETUPS])
        only("model", [*PAPER_MODELS])
        only("protocol", [*PROTOCOLS])
        only("preset", ["paper-text", "graph_cp-6fc8783", "graph_cp-26bae8f"])
    if name != "sets":
        command.add_argument("--seeds", type=int, help="use the seeds 0 to N-1")


def _narrowed(scope: ScopeT, arguments: argparse.Namespace, **changes: Any) -> ScopeT:
    """Return a scope as changed by the options that were given."""
    given = {part: getattr(arguments, part.removesuffix("s"), None) for part in _LISTS}
    changes |= {part: tuple(names) for part, names in given.items() if names}
    if getattr(arguments, "seeds", None):
        changes["seeds"] = tuple(range(arguments.seeds))
    return replace(scope, alpha=arguments.alpha, **{name: value for name, value in changes.items() if value})


#: The options that may be repeated, by the field of a scope that they narrow.
_LISTS = ("datasets", "models", "methods", "shares", "protocols", "presets")


def _compute(arguments: argparse.Namespace, cells: Mapping[Kind, list[Row]]) -> None:
    """Compute the rows that are missing; a graph that is not there is an error if it was named or nothing else is."""
    if arguments.rows_only:
        return
    missing = {kind: kind.missing(part, arguments.results) for kind, part in cells.items()}
    names = dict.fromkeys(cell["dataset"] for part in missing.values() for cell in part if "dataset" in cell)
    absent = [name for name in names if not is_available(name, arguments.root)]
    if absent:
        text = f"{arguments.root} (--root) does not hold {', '.join(map(file_name, absent))}"
        if arguments.dataset or len(absent) == len(names):
            raise InvalidInputError(text)
        _note(f"left out: {text}")
    for kind, part in missing.items():
        there = [cell for cell in part if cell.get("dataset") not in absent]
        kind.run(there, Folders(arguments.results, arguments.root), jobs=arguments.jobs, note=_note)


def run(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Compute what is missing; return the module of the study, and its rows."""
    command, quick, results = arguments.command, arguments.quick, arguments.results
    if command in paper.TARGETS:
        extent = paper.QUICK if quick else paper.FULL
        extent = _narrowed(extent, arguments, ablation_models=tuple(arguments.model or ()))
        _compute(arguments, paper.cells_of(command, extent, quick=quick))
        return paper, paper.PaperRows.read(results, extent, command, quick=quick)
    study = STUDIES[command]
    if command == "llm":
        cells = llm.llm_cells(arguments.seeds or (1 if quick else 5), arguments.alpha)
    elif command == "drift":
        names = arguments.dataset or (["metamath-nf", "eips"] if quick else [*TIMED])
        cells = drift.drift_cells(names, arguments.seeds or 1, arguments.alpha)
    else:
        scopes = [study.QUICK] if quick else study.SCOPES[:1] if arguments.share else study.SCOPES
        scopes = [_narrowed(scope, arguments, repetitions=arguments.repetitions) for scope in scopes]
        cells = [cell for scope in scopes for cell in scope.cells()]
    _compute(arguments, {study.KIND: cells})
    return study, study.KIND.rows_of(cells, results)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(command_line: Sequence[str] | None = None) -> None:
    """Run a command: compute what is missing, print the tables in Markdown, and write the page if it is wanted."""
    arguments = make_parser().parse_args(command_line)
    try:
        study, rows = run(arguments)
    except NapsetsError as error:
        sys.exit(f"error: {error}")
    print("\n\n".join(str(part).strip() for part in study.summary(rows)))
    if arguments.page is not None:
        write_page(arguments.page, study.page(rows), study.figures(rows))
        _note(f"wrote {arguments.page}")


if __name__ == "__main__":
    main()
