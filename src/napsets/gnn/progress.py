"""The progress bar of a training run, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["training_bar"]

#: Called after a batch with (batches done in all, loss, validation accuracy so far).
Report = Callable[[int, float, float], None]


@contextmanager
def training_bar(title: str, total: int, show: bool | None) -> Iterator[Report]:
    """Show a bar with loss and validation accuracy; by default where stderr is a terminal."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda done, loss, accuracy: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  validation {task.fields[accuracy]:.3f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total, loss=float("nan"), accuracy=float("nan"))
        yield lambda done, loss, accuracy: progress.update(task, completed=done, loss=loss, accuracy=accuracy)
