"""``napsets reproduce``: the paper's tables and studies beside what is printed, and the comparison of all methods."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from napsets.cli._output import Output
from napsets.cli._places import writable_file, writable_folder

if TYPE_CHECKING:
    from napsets.paper import Laboratory, Scope
    from napsets.paper.leaderboard.cells import Board

__all__ = ["EXAMPLES", "reproduce"]

EXAMPLES = [
    "napsets reproduce all --quick",
    "napsets reproduce table2 --dataset amazon-computers --seeds 1",
    "napsets reproduce all --output results --page docs/reproduction.md",
    "napsets reproduce leaderboard --quick",
]


class Target(str, Enum):
    """What can be reproduced."""

    table1 = "table1"
    table2 = "table2"
    table3 = "table3"
    ablation = "ablation"
    sbm = "sbm"
    leaderboard = "leaderboard"
    all = "all"


def reproduce(
    run: Output,
    target: Annotated[Target, typer.Argument(help="Which table or study; all are the paper's.")] = Target.all,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; may be repeated.")] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="Only strict, or only as-published.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Train with the seeds 0 to N-1 (default 5).")] = None,
    preset: Annotated[str | None, typer.Option(help="Training settings: released-code or paper.")] = None,
    inference: Annotated[str | None, typer.Option(help="Only sampled, or only exact inference.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Error rate (default 0.1).")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Leaderboard: only this method; may be repeated.")] = None,
    share: Annotated[
        list[float] | None, typer.Option(help="Leaderboard: this share labelled; may be repeated.")
    ] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, help="Leaderboard: draws of labels (default 2).")] = None,
    sparing: Annotated[
        list[str] | None, typer.Option(help="Leaderboard: this method on the first model and draw only.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that work at the same time.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A minute's version: one model, one seed.")] = False,
    results: Annotated[Path, typer.Option(help="Folder of the rows and of trained predictions.")] = Path("results"),
    root: Annotated[Path | None, typer.Option(help="Folder of the graphs (default data, or benchmarks/data).")] = None,
    output: Annotated[Path | None, typer.Option(help="Write tables and figures into this folder.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page of documentation to this Markdown file.")] = None,
    rows_only: Annotated[bool, typer.Option("--rows-only", help="Run nothing; show the rows that are there.")] = False,
) -> None:
    """Reproduce the paper's tables and figures beside what is printed, or compare all methods (leaderboard).

    Finished cells are not run again: their rows are kept in Parquet files in the results folder, and everything
    shown or written is made from rows.
    """
    from napsets.paper import FULL, QUICK, Laboratory

    if target is Target.leaderboard:
        _refuse(target, {"--protocol": protocol, "--preset": preset, "--inference": inference})
    else:
        _refuse(target, {"--method": method, "--share": share, "--repetitions": repetitions, "--sparing": sparing})
    if target is Target.leaderboard:
        board = _board(quick, dataset, model, seeds, alpha, method, share, repetitions, sparing)
        _check_places(results, output, page)
        _compare(run, Laboratory(results, root), board, jobs, output, page, rows_only)
        return
    scope = _scope(QUICK if quick else FULL, dataset, model, protocol, seeds, preset, inference, alpha)
    _check_places(results, output, page)
    laboratory = Laboratory(results, root)
    if not rows_only:
        _run(run, laboratory, target.value, scope, jobs)
    _show(run, laboratory, target.value, scope)
    if output is not None:
        _write(run, laboratory, target.value, scope, output)
    if page is not None:
        from napsets.paper.page import write_page

        run.note(f"wrote {write_page(page, laboratory.store, scope)}")


def _check_places(results: Path, output: Path | None, page: Path | None) -> None:
    """Refuse places that cannot be written to, before any work is done."""
    writable_folder(results, flag="--results")
    if output is not None:
        writable_folder(output)
    if page is not None:
        writable_file(page, (".md", ".markdown"), flag="--page")
        writable_folder(page.parent / "figures", flag="--page")


def _refuse(target: Target, options: dict[str, object]) -> None:
    """Refuse options that the target does not have: ignored, they would mislead."""
    for flag, value in options.items():
        if value is not None:
            raise typer.BadParameter(f"is no option of {target.value}", param_hint=flag)


def _scope(
    scope: Scope,
    dataset: list[str] | None,
    model: list[str] | None,
    protocol: list[str] | None,
    seeds: int | None,
    preset: str | None,
    inference: str | None,
    alpha: float | None,
) -> Scope:
    """Narrow or change a scope by what was given."""
    from napsets.checks.arguments import check_alpha
    from napsets.checks.names import choose
    from napsets.paper import INFERENCES, MODELS, PROTOCOLS, setups

    changes: dict[str, Any] = {}
    if dataset:
        for name in dataset:
            setups.setup_of(name)
        changes |= {"datasets": tuple(dataset), "ablation_datasets": tuple(dataset)}
    if model:
        for name in model:
            choose("model", name, MODELS)
        changes |= {"models": tuple(model), "ablation_model": model[0]}
    if protocol:
        for name in protocol:
            choose("protocol", name, dict.fromkeys(PROTOCOLS))
        changes["protocols"] = tuple(protocol)
    if seeds is not None:
        changes["seeds"] = tuple(range(seeds))
    if preset is not None:
        changes["preset"] = choose("preset", preset, {name: name for name in ("released-code", "paper")})
    if inference is not None:
        changes["inferences"] = (choose("inference", inference, {name: name for name in INFERENCES}),)
    if alpha is not None:
        changes["alpha"] = check_alpha(alpha)
    return replace(scope, **changes)


def _board(
    quick: bool,
    dataset: list[str] | None,
    model: list[str] | None,
    seeds: int | None,
    alpha: float | None,
    method: list[str] | None,
    share: list[float] | None,
    repetitions: int | None,
    sparing: list[str] | None,
) -> Board:
    """Narrow or change the comparison by what was given."""
    from napsets.checks.arguments import check_alpha
    from napsets.checks.names import choose
    from napsets.methods import METHODS
    from napsets.paper.leaderboard.cells import BOARD, QUICK_BOARD
    from napsets.paper.leaderboard.ground import MODELS, check_dataset

    changes: dict[str, Any] = {}
    if dataset:
        changes["datasets"] = tuple(check_dataset(name) for name in dataset)
    if model:
        changes["models"] = tuple(choose("model", name, {known: known for known in MODELS}) for name in model)
    for name, given in (("methods", method), ("sparing", sparing)):
        if given:
            changes[name] = tuple(choose("method", one, {known: known for known in METHODS}) for one in given)
    if share:
        for part in share:
            if not 0.0 < part < 1.0:
                raise typer.BadParameter(f"must be above 0 and below 1; got {part:g}", param_hint="--share")
        changes["shares"] = tuple(share)
    if seeds is not None:
        changes["seeds"] = tuple(range(seeds))
    if repetitions is not None:
        changes["repetitions"] = repetitions
    if alpha is not None:
        changes["alpha"] = check_alpha(alpha)
    return replace(QUICK_BOARD if quick else BOARD, **changes)


def _compare(
    run: Output,
    laboratory: Laboratory,
    board: Board,
    jobs: int,
    output: Path | None,
    page: Path | None,
    rows_only: bool,
) -> None:
    """Run the comparison, and show what its rows say."""
    from napsets.paper.leaderboard.cells import leaderboard_cells
    from napsets.paper.leaderboard.ground import is_there
    from napsets.paper.leaderboard.page import board_figures, board_tables, write_page
    from napsets.paper.outputs import write_figures, write_tables
    from napsets.paper.table import FORMATS

    cells = leaderboard_cells(board)
    absent = [name for name in board.datasets if not is_there(name, laboratory.root)]
    if absent:
        run.note(f"left out, because --root does not hold their files: {', '.join(absent)}")
    if not rows_only:
        with run.steps() as steps:
            steps.stage("comparing")
            laboratory.run(cells, progress=steps.advance, stage=steps.within, jobs=jobs)
    for name, reason in sorted(laboratory.skipped.items()):
        run.note(f"{name} is left out where it cannot run: {reason}")
    # Sparing says what to run, not what to show: another run may have gone further.
    wanted = {cell.key for cell in leaderboard_cells(replace(board, sparing=()))}
    rows = [row for row in laboratory.store.rows("leaderboard") if row["key"] in wanted]
    tables = board_tables(rows)
    data = {table.name: {"columns": table.columns, "rows": table.rows} for table in tables}
    shown = [part for table in tables if table.for_screen for part in (table.rich(), "")]
    run.result({"tables": data, "rows": len(rows), "skipped": laboratory.skipped}, *shown)
    if output is not None:
        files = write_tables(tables, output / "tables", FORMATS)
        files += write_figures(board_figures(rows), output / "figures")
        run.note(f"wrote {len(files)} files to {output}")
    if page is not None:
        run.note(f"wrote {write_page(page, rows)}")


def _run(run: Output, laboratory: Laboratory, target: str, scope: Scope, jobs: int) -> None:
    from napsets.paper import cells_of

    with run.steps() as steps:
        steps.stage("reproducing")
        laboratory.run(cells_of(target, scope), progress=steps.advance, stage=steps.within, jobs=jobs)


def _show(run: Output, laboratory: Laboratory, target: str, scope: Scope) -> None:
    from napsets.paper.outputs import sentences_of, tables_of

    tables = [table for table in tables_of(target, laboratory.store, scope) if table.rows]
    sentences = sentences_of(target, laboratory.store, scope)
    data = {
        "tables": {table.name: {"columns": table.columns, "rows": table.rows} for table in tables},
        "sentences": sentences,
    }
    shown = [part for table in tables if table.for_screen for part in (table.rich(), "")]
    judged = _judged_on(target, scope)
    told = [*sentences, judged] if judged else sentences
    run.result(data | {"judged_on": judged}, *shown, *(Text(f"{sentence}\n") for sentence in told))


def _judged_on(target: str, scope: Scope) -> str:
    """Say which nodes judge, because the demo judges others; nothing where no sets are judged."""
    from napsets.paper.setups import CUTOFF_HOPS, setup_of

    if target not in ("table2", "table3", "ablation", "all"):
        return ""
    least = ", ".join(f"{setup_of(name).cutoff:,} on {setup_of(name).title}" for name in scope.datasets)
    return (
        f"Judged, as in the paper, on {scope.evaluated:,} nodes a repetition, drawn from those with enough other test "
        f"nodes within {CUTOFF_HOPS} hops ({least}). `napsets demo` and `napsets report` judge every node that did not "
        f"calibrate, also those with few around them, to which NAPS gives large sets."
    )


def _write(run: Output, laboratory: Laboratory, target: str, scope: Scope, output: Path) -> None:
    from napsets.paper.outputs import figures_of, tables_of, write_figures, write_tables
    from napsets.paper.table import FORMATS

    made = [table for table in tables_of(target, laboratory.store, scope) if table.rows]
    files = write_tables(made, output / "tables", FORMATS)
    files += write_figures(figures_of(target, laboratory.store, scope), output / "figures")
    run.note(f"wrote {len(files)} files to {output}")
