"""``python -m napsets.paper``: the command ``napsets reproduce`` on its own."""

from __future__ import annotations

from napsets.cli import run_app
from napsets.cli._signals import leave_at_once

if __name__ == "__main__":
    leave_at_once()

    import typer

    from napsets.cli.reproduce import register

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    register(app)
    run_app(app, "python -m napsets.paper")
