"""What all tests share: settings, a browser, and the last line of a run: what was skipped and how to get it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from skips import lacking, skipped_line

# The first call of a kernel compiles it, so no single example is held to a deadline. The default draws the same
# examples each time, so that a red run is red again; "explore" draws new ones and many more.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Write what was skipped after everything else, where it is read. Workers have no terminal and write nothing."""
    yield
    terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    line = skipped_line(terminal.stats.get("skipped", [])) if terminal else ""
    if line:
        terminal.write_line(line, yellow=True)


@pytest.fixture(autouse=True)
def only_tests_marked_gnn_train(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no other test train: CI runs those marked gnn a second time, with the last digits of another processor."""
    if "torch" not in sys.modules or request.node.get_closest_marker("gnn"):
        yield
        return
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def refuse(*_: object) -> None:
        pytest.fail("a test that trains a network must be marked gnn")

    handle = register_optimizer_step_pre_hook(refuse)
    yield
    handle.remove()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start a real browser, for pages that are to be read with one."""
    chromium = shutil.which("chromium")
    if chromium is None:
        lacking("no chromium", "apt-get install chromium")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield found
        found.close()
