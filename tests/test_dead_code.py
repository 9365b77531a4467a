"""Nothing is left over: what a module defines is used, and what docstrings name is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import napsets as ns
from napsets.cli import COMMANDS

SOURCE = Path(ns.__file__).parent
#: The laboratory uses the package as everyone does.
STUDIES = Path(__file__).parents[1] / "studies"
MODULES = [*sorted(SOURCE.rglob("*.py")), *sorted(STUDIES.rglob("*.py"))]
TESTS = sorted(Path(__file__).parent.rglob("*.py"))
#: A decorator that enters a function in a table or a command line uses it.
ENTERED = ("add", "command", "callback")


def short_name(path: Path) -> str:
    folder = STUDIES if path.is_relative_to(STUDIES) else SOURCE
    return path.relative_to(folder.parent).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names_read(path: Path) -> set[str]:
    """Return the names that code reads or imports."""
    return {
        name
        for node in ast.walk(parsed(path))
        for name in (
            [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            else [node.attr] if isinstance(node, ast.Attribute)
            else [node.name.rpartition(".")[2]] if isinstance(node, ast.alias)
            else []
        )
    }  # fmt: skip


def defined(tree: ast.Module) -> list[str]:
    """Return the names of functions, classes and constants of a module, but those that a decorator enters somewhere."""
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            calls = [getattr(each, "func", each) for each in node.decorator_list]
            if not any(getattr(call, "attr", "") in ENTERED for call in calls):
                names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("__")]


@cache
def read_anywhere() -> set[str]:
    return {name for path in (*MODULES, *TESTS) for name in names_read(path)}


@cache
def imported_from_modules() -> set[tuple[str | None, str]]:
    return {
        (node.module, alias.name)
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("path", MODULES, ids=short_name)
def test_what_a_module_defines_is_used(path: Path) -> None:
    module = ".".join(short_name(path).removesuffix(".py").split("/"))
    for name in defined(parsed(path)):
        if name.startswith("_"):  # another module may have one of the same name
            assert name in names_read(path) or (module, name) in imported_from_modules(), name
        else:
            assert name in read_anywhere() or name.replace("_", "-") in COMMANDS, name


@pytest.mark.parametrize("path", MODULES, ids=short_name)
def test_private_names_in_docstrings_and_comments_are_in_the_module(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    code = set(re.findall(r"\w+", re.sub(r"`[^`\n]*`", "", text)))
    assert set(re.findall(r"(?<!`)`(_\w+)`(?!`)", text)) <= code
