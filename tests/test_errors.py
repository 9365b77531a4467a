"""The tree of errors."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import napsets as ns


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (ns.InvalidInputError, (ns.NapsetsError, ValueError)),
        (ns.FileFormatError, (ns.InvalidInputError, ns.NapsetsError, ValueError)),
        (ns.NotCalibratedError, (ns.NapsetsError, RuntimeError)),
        (ns.MissingDependencyError, (ns.NapsetsError, ImportError)),
        (ns.NapsetsWarning, (UserWarning,)),
    ],
)
def test_each_error_is_also_what_python_would_raise(error, parents):
    assert all(issubclass(error, parent) for parent in parents)


def test_a_missing_dependency_names_package_and_extra_even_from_another_process():
    error = pickle.loads(pickle.dumps(ns.MissingDependencyError("torch", "gnn")))
    assert str(error) == "this needs the package 'torch'; install it with: pip install 'napsets[gnn]'"
    assert (error.package, error.extra) == ("torch", "gnn")


def test_what_helps_is_in_the_words_of_the_surface_even_from_another_process():
    error = ns.InvalidInputError("`x` must be 1; got 2.", {"python": "Pass x=1.", "terminal": "Pass --x 1."})
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == one.on("python") == "`x` must be 1; got 2. Pass x=1."
        assert one.on("terminal") == "`x` must be 1; got 2. Pass --x 1."
        assert one.on("http") == "`x` must be 1; got 2."


def test_every_class_of_errors_and_warnings_is_in_the_guide():
    guide = (Path(__file__).parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")
    kinds = [kind for kind in vars(ns.errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) == 6
    assert [kind.__name__ for kind in kinds if f"| `{kind.__name__}` |" not in guide] == []


def test_a_section_of_the_guide_says_the_cause_and_the_fix():
    guide = (Path(__file__).parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")
    sections = [section for section in guide.split("\n## ")[1:] if "#machine }" not in section]
    sections = [section for section in sections if "#other-warnings }" not in section]
    assert len(sections) > 10
    assert [text.splitlines()[0] for text in sections if "\n\nCause: " not in text or "\n\nFix: " not in text] == []
