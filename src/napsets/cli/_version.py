"""What stands before a command: ``--version``."""

from __future__ import annotations

from typing import Annotated

import typer

from napsets.version import __version__

__all__ = ["version_option"]


def _show(value: bool) -> None:
    if value:
        typer.echo(f"napsets {__version__}")
        raise typer.Exit


def version_option(
    version: Annotated[
        bool, typer.Option("--version", callback=_show, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Distribution-free prediction sets for node classification, calibrated on each node's own neighbourhood.

    Exit codes: 0 fine, 1 failed, 2 wrong use. Tables go to standard output, progress and notes to standard error.
    """
