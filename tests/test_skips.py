"""A run ends with one line on what it skipped and how to get it; in CI what is lacking fails instead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skips import skipped_line

ROOT = Path(__file__).parents[1]


def run_pytest(*arguments: object, path: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a machine without programs, so that neither chromium nor Java is found."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "JAVA_HOME")}
    python_path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    environment = kept | {"PATH": path, "PYTHONPATH": python_path, "PYTEST_ADDOPTS": "-p no:cacheprovider"} | variables
    command = [sys.executable, "-m", "pytest", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


#: Tests that need a browser and tests that need Java, and how to get them.
NEEDY = [ROOT / "tests" / "report" / "test_browser.py", ROOT / "tests" / "spark" / "test_predict.py"]
CHROMIUM = "no chromium: apt-get install chromium"
JAVA = "no Java of 17 or newer: apt-get install openjdk-17-jre-headless"


def test_what_this_machine_lacks_is_skipped_and_the_last_line_says_how_to_get_it():
    ran = run_pytest(*NEEDY, "-m", "not slow")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert last.startswith("skipped: ")
    assert re.search(rf"\d+ browser tests \({re.escape(CHROMIUM)}\)", last)
    assert re.search(rf"\d+ spark tests \({re.escape(JAVA)}\)", last)


def test_in_ci_nothing_is_skipped_for_want_of_it():
    ran = run_pytest(*NEEDY, "-m", "not slow", "--tb=line", CI="true")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert CHROMIUM in ran.stdout
    assert JAVA in ran.stdout
    assert not re.search(r"\b(passed|skipped)\b", ran.stdout.splitlines()[-1])


def test_skips_of_one_reason_are_counted_together_on_one_line(tmp_path):
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "from skips import lacking\n"
        "@pytest.mark.browser\n"
        "@pytest.mark.parametrize('x', range(28))\n"
        "def test_many(x):\n    lacking('no chromium', 'apt-get install chromium')\n"
        "def test_one():\n    pytest.importorskip('nowhere_to_be_found')\n"
        "def test_fine():\n    pass\n"
    )
    expected = (
        "skipped: 28 browser tests (no chromium: apt-get install chromium), "
        "1 test (no nowhere_to_be_found: pip install '.[dev]')"
    )
    ran = run_pytest("-p", "conftest", "-c", ROOT / "pyproject.toml", tmp_path, "-n", 2)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == expected


def test_where_nothing_was_skipped_nothing_is_said():
    assert skipped_line([]) == ""


def test_a_test_that_trains_must_be_marked(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "test_some.py").write_text(
        "import pytest, torch\n"
        "def train():\n"
        "    weight = torch.ones(1, requires_grad=True)\n"
        "    weight.sum().backward()\n"
        "    torch.optim.SGD([weight], lr=0.1).step()\n"
        "def test_unmarked():\n    train()\n"
        "@pytest.mark.gnn\n"
        "def test_marked():\n    train()\n"
    )
    ran = run_pytest("-p", "conftest", "-c", ROOT / "pyproject.toml", tmp_path)
    assert "Failed: a test that trains a network must be marked gnn" in ran.stdout
    assert "test_some.py::test_unmarked" in ran.stdout
    assert "1 failed, 1 passed" in ran.stdout.splitlines()[-1]
