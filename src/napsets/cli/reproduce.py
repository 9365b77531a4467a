"""``napsets reproduce``: the paper's tables and studies next to the printed ones, and the comparisons of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from napsets.cli import unwinding
from napsets.cli._options import refuse_given
from napsets.cli._output import Output, writable_file, writable_folder

if TYPE_CHECKING:
    from napsets.studies.tables import Table

EXAMPLES = [
    "napsets reproduce all --quick",
    "napsets reproduce table2 --dataset amazon-computers --seeds 1",
    "napsets reproduce all --output results --page docs/reproduction.md",
    "napsets reproduce leaderboard --quick",
    "napsets reproduce drift --quick",
]


#: Largest numbers of seeds, draws and processes: with more, the list of tasks would not fit into memory.
_MOST = 1000


#: Where --root points by default: the graphs that methods are compared on lie in the project's folder of benchmarks.
_ROOTS = dict.fromkeys(("leaderboard", "sets", "drift"), Path("benchmarks/data"))


def _check_shares(shares: list[float] | None) -> list[float] | None:
    for share in shares or ():
        if not 0.0 < share < 1.0:
            raise typer.BadParameter(f"must be above 0 and below 1; got {share:g}", param_hint="--share")
    return shares


def reproduce(
    run: Output,
    target: Annotated[
        Literal["table1", "table2", "table3", "ablation", "sbm", "leaderboard", "sets", "drift", "all"],
        typer.Argument(help="Which table or study; all are the paper's."),
    ] = "all",
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; may be repeated.")] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="Only strict, or only as-published.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Train with the seeds 0 to N-1 (default 5).")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Training settings: released-code or paper.")] = None,
    inference: Annotated[str | None, typer.Option(help="Only sampled, or only exact inference.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Error rate (default 0.1).")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Leaderboard: only this method; may be repeated.")] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(help="Leaderboard: this share labelled; may be repeated.", callback=_check_shares),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Leaderboard: draws of labels (default 2).")
    ] = None,
    sparing: Annotated[
        list[str] | None, typer.Option(help="Leaderboard: this method on the first model and draw only.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=_MOST, help="Processes that work at the same time.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short version of about a minute: one model, one seed.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Folder of the rows and of trained predictions.")] = Path("results"),
    root: Annotated[Path | None, typer.Option(help="Folder of the graphs (default data, or benchmarks/data).")] = None,
    output: Annotated[Path | None, typer.Option(help="Write tables and figures into this folder.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page of documentation to this Markdown file.")] = None,
    rows_only: Annotated[bool, typer.Option("--rows-only", help="Run nothing; show the existing rows.")] = False,
) -> None:
    """Reproduce the paper's tables and figures next to the printed ones, or compare all methods (leaderboard).

    Finished cells are not run again: their rows are kept in Parquet files in the results folder, and everything
    shown or written is made from rows.
    """
    from napsets.studies import STUDIES, Laboratory
    from napsets.studies.tables import write_figures, write_page, write_tables

    study = STUDIES[target]
    particular: dict[str, Any] = {
        "protocol": protocol, "preset": preset, "inference": inference,
        "method": method, "share": share, "repetitions": repetitions, "sparing": sparing,
    }  # fmt: skip
    foreign = {f"--{name}": value is not None and name not in study.options for name, value in particular.items()}
    refuse_given(f"is not an option of {target}", foreign)  # ignored, they would mislead
    scope = study.scope(quick, {"dataset": dataset, "model": model, "seeds": seeds, "alpha": alpha, **particular})
    _check_places(results, output, page)
    laboratory = Laboratory(results, root or _ROOTS.get(target, Path("data")))
    absent = study.left_out(scope, laboratory.root)
    if absent:
        run.note(f"left out, because --root does not hold their files: {', '.join(absent)}")
    if not rows_only:
        with run.steps() as steps, unwinding() if jobs > 1 else nullcontext():
            steps.stage(study.activity)
            laboratory.run(study.cells(scope), progress=steps.advance, stage=steps.within, jobs=jobs)
    for name, reason in sorted(laboratory.skipped.items()):
        run.note(f"{name} is left out where it cannot run: {reason}")
    rows = study.rows(laboratory.store, scope)
    tables = study.tables(rows)
    _show(run, tables, study.facts(rows, laboratory.skipped))
    if output is not None:
        files = write_tables(tables, output / "tables")
        files += write_figures(study.figures(rows), output / "figures")
        run.note(f"wrote {len(files)} files to {output}")
    if page is not None:
        run.note(f"wrote {write_page(page, study.text(rows), study.page_figures(rows))}")


def _check_places(results: Path, output: Path | None, page: Path | None) -> None:
    """Refuse places that cannot be written to, before any work is done."""
    writable_folder(results, flag="--results")
    if output is not None:
        writable_folder(output)
    if page is not None:
        writable_file(page, (".md", ".markdown"), flag="--page")
        writable_folder(page.parent / "figures", flag="--page")


def _show(run: Output, tables: Sequence[Table], facts: Mapping[str, Any]) -> None:
    content = {table.name: {"columns": table.columns, "rows": table.rows} for table in tables}
    shown = [part for table in tables if table.for_screen for part in (table.rich(), "")]
    sentences = [*facts.get("sentences", ()), facts.get("judged_on", "")]
    words = [Text(f"{sentence}\n") for sentence in sentences if sentence]
    run.result({"tables": content, **facts}, *shown, *words)
