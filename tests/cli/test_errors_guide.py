"""The guide to errors: complete, at hand without a network, and named below every message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import napsets
from napsets import errors
from napsets.cli.listings import guide

ROOT = Path(__file__).parents[2]
CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


def test_every_topic_that_an_error_can_have_is_in_the_guide():
    of_classes = {vars(kind).get("topic") for kind in CLASSES}
    topics = {topic for topic in of_classes if isinstance(topic, str)} | set(errors._ARGUMENTS) | {"settings"}
    assert topics | set(errors._WARNINGS.values()) | {"other-warnings"} <= set(guide())


def test_every_class_of_errors_and_warnings_is_in_the_guide():
    text = (Path(napsets.__file__).parent / "cli" / "errors.md").read_text(encoding="utf-8")
    assert CLASSES
    assert [kind.__name__ for kind in CLASSES if f"| `{kind.__name__}` |" not in text] == []


@pytest.mark.parametrize("name", guide())
def test_a_topic_says_the_cause_and_the_fix(name):
    text = guide()[name].text
    assert name in ("machine", "other-warnings") or ("\n\nCause: " in text and "\n\nFix: " in text)


def test_the_page_of_the_documentation_is_the_guide():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert '--8<-- "src/napsets/cli/errors.md"' in page


def test_the_topics_are_listed(run):
    shown = run("errors")
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in guide())
    assert json.loads(run("errors", "--json").stdout)["topics"]["alpha"] == "alpha is not an error rate"


def test_a_topic_is_printed_without_links_and_code(run):
    shown = run("errors", "not-calibrated")
    assert shown.exit_code == 0
    assert "Fix: call `calibrate(graph" in shown.stdout
    assert "```" not in shown.stdout
    assert "*" not in shown.stdout
    assert "](" not in run("errors", "files").stdout


def test_a_topic_that_is_not_there_is_wrong_use(run):
    shown = run("errors", "aplha")
    assert shown.exit_code == 2
    assert "did you mean 'alpha'?" in " ".join(shown.stderr.split())


def test_an_error_names_its_topic_on_a_line_of_its_own(run, world, tmp_path):
    shown = run("predict", *world.files, "--probabilities", tmp_path / "none.parquet", "-o", tmp_path / "sets.parquet")
    assert shown.exit_code == 1
    assert shown.stderr.splitlines()[-1] == "help: napsets errors files"


def test_a_warning_names_its_topic_in_the_note(run, world, tmp_path):
    shown = run("predict", *world.files, "--by", "class", "--alpha", "0.01", "-o", tmp_path / "sets.parquet")
    assert shown.exit_code == 0
    assert "(help: napsets errors small-groups)" in " ".join(shown.stderr.split())
