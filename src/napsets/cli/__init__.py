"""The ``napsets`` command: thin wrappers around the library."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from napsets.cli._terminal import listen, prepare_streams, printing, report_error
from napsets.errors import MissingDependencyError

__all__ = ["main", "make_app", "run_app"]

#: Commands in the order in which the help lists them, and the modules that hold them.
COMMANDS = {
    "demo": "report",
    "predict": "predict",
    "calibrate": "calibrate",
    "evaluate": "evaluate",
    "inspect": "inspect",
    "recommend": "recommend",
    "homophily": "recommend",
    "report": "report",
    "methods": "listings",
    "reproduce": "reproduce",
    "datasets": "listings",
    "errors": "listings",
    "serve": "stores",
    "update": "stores",
    "status": "stores",
    "warm-up": "warm_up",
}


def make_app(names: Iterable[str] = COMMANDS) -> Any:
    """Put the commands together, all of them or some."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        raise MissingDependencyError("typer", "cli") from error
    from napsets.cli._command import Commands, add_command, version_option

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
    for name in names:
        module = import_module(f"napsets.cli.{COMMANDS[name]}")
        examples = [line for line in module.EXAMPLES if line.split()[1] == name]
        add_command(app, name, getattr(module, name.replace("-", "_")), examples=examples)
    return app


def main() -> None:
    """Run the command; the process ends with 0 (fine), 1 (failed), 2 (wrong use), 130 (Ctrl-C) or 143 (SIGTERM)."""
    listen()
    try:
        app = make_app(_needed(sys.argv[1:]))
    except MissingDependencyError as error:
        sys.stderr.write(f"napsets: error: {error}\n")
        sys.exit(1)
    run_app(app, "napsets")


def _needed(arguments: Sequence[str]) -> Iterable[str]:
    """Return the commands to load for some arguments: the one that they name; all for help and settings files."""
    alone = arguments and arguments[0] in COMMANDS and not any(word.startswith("--config") for word in arguments)
    return arguments[:1] if alone else COMMANDS


def run_app(app: Any, name: str) -> None:
    """Run an application of commands in this process, which ends with it."""
    prepare_streams()
    try:
        with printing():
            app(prog_name=name)
    except Exception as error:  # while options were read, or help was printed
        sys.exit(report_error(error, debug="--debug" in sys.argv))
