"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from napsets.checks.text import visible, visible_json
from napsets.checks.values import in_digits
from napsets.cli._places import STANDARD
from napsets.cli._terminal import flush, printing_error, silence
from napsets.scores import training_progress

#: The exit code of --fail-on warning.
WARNED = 3
#: Width of tables that go to a file or a pipe, which has no width of its own.
_PIPE_WIDTH = 120


@dataclass
class Output:
    """How one run of a command prints.

    Attributes
    ----------
    json : bool
        One JSON object instead of tables.
    quiet : bool
        Results and errors only.
    debug : bool
        Tracebacks.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False
    _out: Console = field(init=False, repr=False)
    _err: Console = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._out = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
        self._err = Console(stderr=True, highlight=False)

    def check_stream(self, target: object) -> None:
        """Leave standard output to a file that goes there: what else is to be said goes to standard error."""
        if str(target) != STANDARD:
            return
        if self.json:
            raise typer.BadParameter("standard output can hold the sets or --json, not both", param_hint="--output")
        self._out = self._err

    def result(self, data: Mapping[str, Any], *tables: RenderableType) -> None:
        """Print the results: as one JSON object, or as tables."""
        try:
            if self.json:
                sys.stdout.write(_as_json(data) + "\n")
            else:
                for shown in tables:
                    # Texts come from users' files: square brackets in them are not markup.
                    self._out.print(Text(visible(shown, lines=True)) if isinstance(shown, str) else shown)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise printing_error(error) from error
        flush()

    def verdict(self, verdict: Mapping[str, Any] | None, fail_on: str) -> None:
        """End with the exit code 3 where a verdict has warnings and the user wants that to be a failure."""
        if fail_on == "warning" and verdict is not None and verdict["warnings"]:
            raise typer.Exit(WARNED)

    def note(self, text: str) -> None:
        """Say something worth knowing on standard error."""
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
        with self._steps() as steps, training_progress(steps.advance):
            yield steps

    @contextmanager
    def _steps(self) -> Iterator[Steps]:
        if self.quiet or not self._err.is_terminal:
            yield Steps(None, None if self.quiet else self._err)
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        # Training makes the pace uneven, so the estimate averages over a long time.
        with Progress(*columns, console=self._err, transient=True, speed_estimate_period=3600) as progress:
            yield Steps(progress, None)


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
        """Say what the step is at now; how far it is stays as it was."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=visible(text))
        elif self._log is not None:
            _say(self._log, f"  {text} …")

    def advance(self, done: int, total: int) -> None:
        """Say how far the step is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif self._log is not None and monotonic() - self._last_line > 10:
            _say(self._log, f"  {done:,} of {total:,}")
            self._last_line = monotonic()


def _say(console: Console, text: str) -> None:
    """Print a line on standard error; a closed stream is no reason to stop."""
    try:
        console.print(Text(visible(text)), soft_wrap=True)
    except OSError:
        silence(sys.stderr)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1) -> Group:
    """Make a table under a title, whose first `left` columns are text and whose others are numbers."""
    # Few lines and little padding, so that wide tables fit a terminal of 80 columns.
    grid = Table(header_style="bold", show_header=any(columns), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        grid.add_column(Text(_fitting(column)), justify="left" if i < left else "right")
    for row in rows:
        grid.add_row(*(Text(_fitting(str(cell))) for cell in row))
    # A title of the table itself would be broken at the table's width.
    return Group(Text(_fitting(title), style="bold"), grid)


def number(value: float | None, digits: int = 4) -> str:
    """Write a number for people."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,}" if isinstance(value, int) else in_digits(value, digits)


def signed(value: float) -> str:
    """Write a difference for people, with its sign."""
    return in_digits(value, 4, sign="+")


def percent(value: float | None) -> str:
    """Write a share for people."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.2f} %"


def _fitting(text: str) -> str:
    """Return text as the stream will say it, so that columns are as wide as what stands in them."""
    encoding = _limited()
    text = visible(text)
    return text if encoding is None else text.encode(encoding, sys.stdout.errors or "replace").decode(encoding)


def _limited() -> str | None:
    """Return the encoding of standard output if it does not have every letter."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return None if encoding.lower().startswith("utf") else encoding


def _as_json(data: Mapping[str, Any]) -> str:
    # A stream that does not have every letter gets escapes: replaced letters would be other names.
    plain = _limited() is not None
    return visible_json(json.dumps(_plain(data), ensure_ascii=plain, allow_nan=False))


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
