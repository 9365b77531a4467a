"""The settings file: fills in what flags leave open.

Keys at the top hold for every command that has the option; keys in a table named after a command hold for that command
and come first. A key that no command has is refused, with the nearest name. Paths start from the folder of the file.

::

    edges = "edges.parquet"
    alpha = 0.05

    [predict]
    decay = "hyperbolic"
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from napsets.cli._places import STANDARD

__all__ = ["PATHS", "apply_config"]

#: The options of each command that are paths; whoever adds a command enters them.
PATHS: dict[str, set[str]] = {}

#: Options that make no sense in a file.
_NOT_SETTINGS = {"help", "config", "version"}


def apply_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make a settings file the source of defaults; called for ``--config`` before other options are read."""
    if path is None or context.resilient_parsing:
        return path
    settings = _read(path)
    root = context.find_root().command
    known = {name: _option_names(command) for name, command in getattr(root, "commands", {}).items()}
    here = context.info_name or ""
    general = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    everywhere = sorted(set().union(*known.values()))
    for key in general:
        _refuse_unknown(path, key, [*everywhere, *known])
    for name, table in settings.items():
        if isinstance(table, dict):
            _refuse_unknown(path, name, known, what="table")
            for key in table:
                _refuse_unknown(path, key, sorted(known[name]), where=f"[{name}] ")
    chosen = {_name(key): value for key, value in general.items() if _name(key) in known[here]}
    chosen |= {_name(key): value for key, value in settings.get(here, {}).items()}
    chosen = {key: _placed(path, value) if key in PATHS[here] else value for key, value in chosen.items()}
    context.default_map = {**(context.default_map or {}), **chosen}
    return path


def _read(path: Path) -> dict[str, Any]:
    toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        settings: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # TOML's own errors, bytes that are not text, and endless brackets
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise typer.BadParameter(f"{path} is not TOML: {reason}") from error
    return settings


def _placed(settings: Path, value: Any) -> Any:
    """Return a path as it is meant in a settings file: from the folder of that file, wherever the command is run."""
    return str(settings.parent / value) if isinstance(value, str) and value != STANDARD else value


def _option_names(command: Any) -> set[str]:
    return {parameter.name for parameter in command.params} - _NOT_SETTINGS


def _refuse_unknown(path: Path, key: str, known: Iterable[str], *, what: str = "key", where: str = "") -> None:
    names = [name.replace("_", "-") for name in known]
    if key.replace("_", "-") in names:
        return
    near = difflib.get_close_matches(key.replace("_", "-"), names, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are: {', '.join(names)}"
    raise typer.BadParameter(f"{path} has an unknown {what} {where}{key!r}{hint}")


def _name(key: str) -> str:
    return key.replace("-", "_")
