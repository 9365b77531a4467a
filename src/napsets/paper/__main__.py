"""``python -m napsets.paper``: the command ``napsets reproduce`` on its own."""

from __future__ import annotations

import typer

from napsets.cli.reproduce import register

if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    register(app)
    app(prog_name="python -m napsets.paper")
