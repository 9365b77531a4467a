"""What all tests share: settings, the command, a small world, a browser, and the line on what was skipped."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from skips import lacking

if TYPE_CHECKING:
    from worlds import World

# Threads of PyTorch and NumPy that wait for one another leave the processor to the other worker instead of spinning:
# on a busy machine training takes about half of the processor time, to the same bits. Read when these libraries are
# loaded, also by the workers and by the processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# The bytecode of the package is kept, as compiled kernels are: otherwise each process that tests start compiles all of
# its modules again, half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

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


def pytest_configure() -> None:
    """Look for no garbage until all tests are collected."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests make: what was loaded and collected stays, half a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let the end of Python free all of it, so that no library reports leaks."""
    gc.unfreeze()


#: Kinds of tests and files of tests that take longest.
LONGEST = (
    "spark", "browser", "test_code_blocks.py", "test_demo.py", "test_signals.py",
    "test_streamed_prediction.py", "test_learned_law.py", "test_golden.py", "test_set_properties.py",
    "test_validity.py", "test_levels.py", "test_live_machine.py", "test_pooling.py", "test_surface.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that in the end no worker waits for the other."""
    items.sort(
        key=lambda item: next(
            (i for i, kind in enumerate(LONGEST) if kind in item.keywords or kind == item.path.name), len(LONGEST)
        )
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each file to one worker in the order above, and all of ``tests/spark``, which start one Java, to one."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "tests/spark" if file.startswith("tests/spark/") else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


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
def app() -> Any:
    pytest.importorskip("typer")
    from napsets.cli import make_app

    return make_app()


@pytest.fixture(scope="session")
def run(app: Any) -> Callable[..., Any]:
    """Return a function that runs ``napsets`` in this process: exit code, standard output and error."""
    from typer.testing import CliRunner

    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})

    def call(*arguments: object, code: int | None = None, stdin: bytes | None = None) -> Any:
        done = runner.invoke(app, [str(argument) for argument in arguments], input=stdin, prog_name="napsets")
        assert code in (None, done.exit_code), done.output
        return done

    return call


@pytest.fixture(scope="session")
def must_run(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return `run`, which insists on success unless another `code` is said."""
    return partial(run, code=0)


@pytest.fixture(scope="session")
def run_json(must_run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs a command with ``--json``, insists on success, and returns what it answers."""

    def call(*arguments: object, **options: Any) -> Any:
        return json.loads(must_run(*arguments, "--json", **options).stdout)

    return call


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A small world as files; ``@pytest.mark.world(suffix=".csv", …)`` says how it is made."""
    from worlds import make_world

    marker = request.node.get_closest_marker("world")
    return make_world(tmp_path / "world", **(marker.kwargs if marker else {}))


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


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: on graphs this small, several spend their time waiting for one another."""
    torch = pytest.importorskip("torch")
    training = pytest.importorskip("napsets.gnn.training")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "THREADS", 1)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny() -> Any:
    """240 nodes in three blocks that features alone separate badly."""
    from napsets.datasets import dcsbm

    return dcsbm(240, 6, 3, num_features=12, homophily=0.85, signal=0.6, seed=1)
