"""napsets: distribution-free prediction sets for the nodes of a graph.

It takes a graph, the probabilities of any classifier and the labels of some nodes, and returns a set of labels for
every other node that contains the true label with probability 1 − alpha.

The public names are listed in ``__init__.pyi`` and imported when they are first used, so that ``import napsets`` loads
nothing heavy and the command can be interrupted (Ctrl-C) from the moment it starts.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "1.0.0"


def _read_stub() -> tuple[dict[str, str], list[str]]:
    """Return the module of each public name of ``__init__.pyi``, and the names of its ``__all__``."""
    *imports, listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body[1:]
    modules = {
        alias.name: str(node.module) for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return modules, ast.literal_eval(listed.value)  # type: ignore[attr-defined]


_MODULES, __all__ = _read_stub()


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'napsets' has no attribute {name!r}")
    # A package of that name is the value itself.
    is_package = module == "napsets" or f"{module}.".startswith(f"napsets.{name}.")
    if module.startswith("napsets.methods"):
        import_module("napsets.evaluation.verdict")  # a later package, which makes `Calibrated.verdict` work
    value = import_module(f"napsets.{name}") if is_package else getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
