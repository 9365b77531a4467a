"""The ``napsets`` command: one module a command, thin wrappers around the library."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from napsets.cli._signals import leave_at_once
from napsets.errors import MissingDependencyError

__all__ = ["main", "make_app", "run_app"]

#: Commands in the order in which the help lists them.
COMMANDS = (
    "demo",
    "predict",
    "evaluate",
    "inspect",
    "recommend",
    "homophily",
    "report",
    "methods",
    "reproduce",
    "datasets",
    "errors",
)


def make_app() -> Any:
    """Put the commands together."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        raise MissingDependencyError("typer", "cli") from error
    from napsets.cli._command import Commands, add_command
    from napsets.cli._version import version_option

    app = typer.Typer(
        name="napsets",
        cls=Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Examples:\n\nnapsets demo\n\n"
        "napsets predict --edges edges.parquet --probabilities p.parquet --labels y.parquet -o sets.parquet\n\n"
        "napsets --install-completion",
    )
    app.callback()(version_option)
    for name in COMMANDS:
        module = import_module(f"napsets.cli.{name}")
        add_command(app, name, getattr(module, name), examples=module.EXAMPLES)
    return app


def main() -> None:
    """Run the command; the process ends with 0 (fine), 1 (failed) or 2 (wrong use)."""
    leave_at_once()
    try:
        app = make_app()
    except MissingDependencyError as error:
        sys.stderr.write(f"napsets: error: {error}\n")
        sys.exit(1)
    run_app(app, "napsets")


def run_app(app: Any, name: str) -> None:
    """Run an application of commands in this process, which ends with it."""
    from napsets.cli._errors import report_error
    from napsets.cli._terminal import PrintingError, flush, prepare_streams

    leave_at_once()
    prepare_streams()
    try:
        try:
            app(prog_name=name)
        finally:
            flush()
    except OSError as error:  # of help and the like, which no command prints
        told = error if isinstance(error, BrokenPipeError) else PrintingError(error.errno, error.strerror)
        sys.exit(report_error("", told))
