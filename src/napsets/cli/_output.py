"""What the commands say, and where they may write: one rule for all of them, and ``-`` for a standard stream.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from napsets.checks.text import percent as percentage
from napsets.checks.text import visible, visible_json
from napsets.checks.values import number as number
from napsets.errors import InvalidInputError
from napsets.files.paths import check_apart, check_output, temporary_folder

#: What stands for standard input or output in place of a path.
STANDARD = "-"

#: What a report may be called.
REPORT_SUFFIXES = (".html", ".htm")

#: The file, if it is one, that standard input comes from.
_STANDARD_INPUT = Path("/dev/stdin")

#: Options that are paths and no inputs.
_WRITTEN_TO = {"output", "store"}


def check_inputs(options: Mapping[str, Any]) -> None:
    """Raise if the output is an input or lies in one; redirections of the shell count too."""
    named = [value for key, value in options.items() if isinstance(value, Path) and key not in _WRITTEN_TO]
    inputs = [_STANDARD_INPUT if str(path) == STANDARD else path for path in named]
    if options.get("by") is not None:
        inputs.append(Path(options["by"]))  # a file, or a word for which there is none
    if options.get("output") is not None and str(options["output"]) != STANDARD:
        with wrong_use("--output"):
            check_apart(options["output"], inputs)
    for path in inputs:
        with suppress(OSError):
            if path.is_file() and os.path.samestat(path.stat(), os.fstat(1)):  # napsets ... >> labels.csv
                raise typer.BadParameter(f"standard output is the input {path}; send it to another file")


def writable_file(path: Path, suffixes: Iterable[str]) -> None:
    """Raise, before any work is done, if a file may not be written."""
    with wrong_use("--output"):
        check_output(path, suffixes)


@contextmanager
def wrong_use(flag: str | None = None) -> Iterator[None]:
    """Call what is refused inside a wrong use of an option: of this one, or of the one that is being read."""
    try:
        yield
    except InvalidInputError as error:
        raise typer.BadParameter(error.on("terminal"), param_hint=flag) from error


# -- standard streams --------------------------------------------------------------------------------------------------


@contextmanager
def standard_streams(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the options with files in place of ``-``: what came from standard input, and what is to go to output.

    Readers look at a file more than once, and a file that is written is whole or not there; so what comes in is kept in
    a file meanwhile, and what goes out is sent once it is whole.
    """
    streams = [key for key, value in options.items() if isinstance(value, Path) and str(value) == STANDARD]
    inputs = [key for key in streams if key != "output"]
    if len(inputs) > 1:
        named = " and ".join(inputs)
        raise typer.BadParameter(f"only one file can be standard input; {named} are", param_hint=inputs[1])
    if inputs and sys.stdin.isatty():
        raise typer.BadParameter("standard input must be a pipe or a file; it is the terminal", param_hint=inputs[0])
    values = dict(options)
    with ExitStack() as stack:
        if streams:
            folder = stack.enter_context(temporary_folder())
        for key in inputs:
            received = folder / "standard-input"
            with open(received, "w+b") as kept:
                shutil.copyfileobj(sys.stdin.buffer, kept)
                kept.seek(0)
                parquet = kept.read(4) == b"PAR1"
            values[key] = received.rename(f"{received}.{'parquet' if parquet else 'csv'}")
        if "output" in streams:
            values["output"] = folder / "standard-output.csv"
        yield values
        if "output" in streams:
            with open(values["output"], "rb") as finished:
                shutil.copyfileobj(finished, sys.stdout.buffer)
            sys.stdout.buffer.flush()


#: The exit code where --fail-on fires: neither that of an error (1) nor that of wrong use (2).
WARNED = 3
#: Width of tables that go to a file or a pipe, which has no width of its own.
_PIPE_WIDTH = 120


class Output:
    """How one run of a command prints."""

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json, self.quiet = json, quiet
        self._out = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
        self._err = Console(stderr=True, highlight=False)

    def check_stream(self, target: object) -> None:
        """Leave standard output to a file that goes there: what else is to be said goes to standard error."""
        if str(target) != STANDARD:
            return
        if self.json:
            raise typer.BadParameter("standard output can hold the sets or --json, not both", param_hint="--output")
        self._out = self._err

    def result(self, data: Mapping[str, Any], *tables: RenderableType, written: bool = False) -> None:
        """Print the results, as one JSON object or as tables; of `written` files, --quiet leaves the tables out."""
        if self.json:
            sys.stdout.write(visible_json(json.dumps(_plain(data), ensure_ascii=not _has_all_letters())) + "\n")
        elif not (self.quiet and written):
            for shown in tables:
                # Texts come from users' files: square brackets in them are not markup.
                self._out.print(Text(visible(shown, lines=True)) if isinstance(shown, str) else shown)

    def verdict(self, verdict: Mapping[str, Any] | None, fail_on: str) -> None:
        """End with the exit code 3 where a verdict has warnings and the user wants that to be a failure."""
        if fail_on == "warning" and verdict is not None and verdict["warnings"]:
            raise typer.Exit(WARNED)

    def note(self, text: str) -> None:
        """Print a note on standard error."""
        if not self.quiet:
            _say(self._err, f"note: {text}")

    def notes(self, texts: Iterable[str | None]) -> None:
        """Print several notes, leaving out those that are None."""
        for text in texts:
            if text is not None:
                self.note(text)

    @contextmanager
    def steps(self) -> Iterator[Steps]:
        """Show what is being done and how far it is: a bar on a terminal, one line per step elsewhere."""
        with ExitStack() as stack:
            steps = Steps(None, None if self.quiet else self._err)
            if self._err.is_terminal and not self.quiet:
                text = TextColumn("{task.description}", markup=False)
                columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
                # Training makes the pace uneven, so the estimate averages over a long time.
                bar = Progress(*columns, console=self._err, transient=True, speed_estimate_period=3600)
                steps = Steps(stack.enter_context(bar), None)
            yield steps


class Steps:
    """The steps of a piece of work, one after the other."""

    def __init__(self, progress: Progress | None, log: Console | None) -> None:
        self._bar = progress
        self._log = log
        self._task: Any = None
        self._last_line = monotonic()

    def stage(self, text: str) -> None:
        """Start a step whose length is not known."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(visible(text), total=None)
        elif self._log is not None:
            _say(self._log, f"{text} …")
            self._last_line = monotonic()

    def within(self, text: str) -> None:
        """Name the current part of the step; its progress stays."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=visible(text))
        elif self._log is not None:
            _say(self._log, f"  {text} …")

    def advance(self, done: int, total: int) -> None:
        """Show the progress of the step."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif self._log is not None and monotonic() - self._last_line > 10:
            _say(self._log, f"  {done:,} of {total:,}")
            self._last_line = monotonic()


def _say(console: Console, text: str) -> None:
    """Print a line on standard error."""
    console.print(Text(visible(text)), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1) -> Group:
    """Make a table under a title, whose first `left` columns are text and whose others are numbers."""
    # Few lines and little padding, so that wide tables fit a terminal of 80 columns.
    grid = Table(header_style="bold", show_header=any(columns), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        grid.add_column(Text(visible(column)), justify="left" if i < left else "right")
    for row in rows:
        grid.add_row(*(Text(visible(str(cell))) for cell in row))
    # A title of the table itself would be broken at the table's width.
    return Group(Text(visible(title), style="bold"), grid)


def percent(value: float | None) -> str:
    """Write a share for people."""
    return percentage(math.nan if value is None else value, 2)


def _has_all_letters() -> bool:
    """Return whether standard output can hold any letter; otherwise JSON gets escapes, which mean the same."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def _plain(value: Any) -> Any:
    """Turn NumPy values into what JSON has: NaN into null, infinity into a string."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value
