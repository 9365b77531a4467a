"""Running the command in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from napsets.cli import make_app
from worlds import World, make_world


@pytest.fixture(scope="session")
def app() -> Any:
    return make_app()


@pytest.fixture
def run(app) -> Callable[..., Any]:
    """Return a function that runs ``napsets`` with arguments and gives exit code, standard output and error."""
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})

    def call(*arguments: object) -> Any:
        return runner.invoke(app, [str(argument) for argument in arguments], prog_name="napsets")

    return call


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "world")
