"""Nothing is left over: what a module defines is used, and what docstrings name is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import napsets as ns
from napsets.cli import COMMANDS

SOURCE = Path(ns.__file__).parent
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
TESTS = Path(__file__).parent
#: A decorator that enters a function in a table or a command line uses it.
ENTERED = ("add", "command", "callback")


def names_read(tree: ast.AST) -> Counter[str]:
    """Count the names that code reads or imports."""
    return Counter(
        name
        for node in ast.walk(tree)
        for name in (
            [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            else [node.attr] if isinstance(node, ast.Attribute)
            else [node.name.rpartition(".")[2]] if isinstance(node, ast.alias)
            else []
        )
    )  # fmt: skip


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


READ = {path: names_read(tree) for path, tree in MODULES.items()}
ANYWHERE = sum(READ.values(), Counter())
READ_IN_TESTS = sum((names_read(ast.parse(path.read_text("utf-8"))) for path in TESTS.rglob("*.py")), Counter())
IMPORTED_PRIVATELY = Counter(
    (node.module, alias.name)
    for tree in MODULES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_a_module_defines_is_used(path: Path) -> None:
    module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
    for name in defined(MODULES[path]):
        if name.startswith("_"):  # another module may have one of the same name
            assert READ[path][name] or IMPORTED_PRIVATELY[module, name], name
        else:
            assert ANYWHERE[name] or READ_IN_TESTS[name] or name.replace("_", "-") in COMMANDS, name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_private_names_in_docstrings_and_comments_are_in_the_module(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    code = set(re.findall(r"\w+", re.sub(r"`[^`\n]*`", "", text)))
    assert set(re.findall(r"(?<!`)`(_\w+)`(?!`)", text)) <= code
