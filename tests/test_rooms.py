"""Data takes one road: a room imports only from the rooms before it, lazily or not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import napsets

ROOT = Path(napsets.__file__).parent

#: The road. What stands left of another never imports it.
ROOMS = [
    "errors", "kernels", "checks", "randomness", "features", "other_graphs", "edges", "graph", "quantile",
    "predictions", "scores", "localisers", "levels", "groups", "files", "methods", "evaluation", "advice", "live",
    "datasets", "gnn", "report", "spark", "service", "cli", "__main__",
]  # fmt: skip


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "napsets"


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports anywhere: at its top, in a function, or for the type checker alone."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            rooms |= {room_of(name.name) for name in node.names if name.name.split(".")[0] == "napsets"}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "napsets":
            if node.module == "napsets":
                names = {name.name for name in node.names} - {"__version__"}  # which every room may know
                rooms |= {name if name in ROOMS else "napsets" for name in names}
            else:
                rooms.add(room_of(node.module))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
    return rooms


def files_of(room: str) -> list[Path]:
    folder = ROOT / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [ROOT / f"{room}.py"]


def test_every_module_has_its_room():
    there = {path.stem if path.is_file() else path.name for path in ROOT.iterdir()}
    assert there - {"__init__", "__pycache__", "py", "py.typed"} == set(ROOMS)
    assert len([path for path in ROOT.glob("*.py") if path.name != "__init__.py"]) <= 12


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_those_before_it(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    for path in files_of(room):
        beyond = imported_rooms(path) - allowed
        assert not beyond, f"{path.relative_to(ROOT)} imports {', '.join(sorted(beyond))}"


def test_kernels_know_nothing_of_the_package():
    for path in files_of("kernels"):
        assert imported_rooms(path) <= {"kernels"}, path
