"""What every command has: common options, a settings file, one place where errors become messages and exit codes.

The settings file fills in what flags leave open. Keys at the top hold for every command that has the option; keys in a
table named after a command hold for that command and come first. A key that no command has is refused, with the nearest
name. Paths start from the folder of the file.

::

    edges = "edges.parquet"
    alpha = 0.05

    [predict]
    decay = "hyperbolic"
"""

from __future__ import annotations

import difflib
import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperGroup

from napsets import __version__
from napsets.checks.text import visible
from napsets.cli import at_work, report_error
from napsets.cli._options import FILES_PANEL, HELP, Only
from napsets.cli._output import STANDARD, Output, check_inputs, standard_streams
from napsets.errors import NapsetsWarning
from napsets.files.paths import discard_drafts

#: The options of each command that are paths; `add_command` enters them.
PATHS: dict[str, set[str]] = {}

#: Options that make no sense in a file.
_NOT_SETTINGS = {"help", "help_all", "config", "version"}

#: Options that only ``--help-all`` shows.
HIDDEN = {
    "decay", "pool", "alike", "radius", "score", "seed", "allow_empty", "fallback", "level", "direction",
    "weights_are", "skip_unknown", "ignore_columns", "no_header", "separator", "store", "method_file",
    "fail_on", "debug", "p_values", "logits",
}  # fmt: skip


def apply_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make a settings file the source of defaults; called for ``--config`` before other options are read."""
    if path is None or context.resilient_parsing:
        return path
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        settings: dict[str, object] = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # TOML's own errors, bytes that are not text, and endless brackets
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise typer.BadParameter(f"{path} is not TOML: {reason}") from error
    commands = context.find_root().command.commands  # type: ignore[attr-defined]
    known = {name: [str(option.name) for option in command.params] for name, command in commands.items()}
    everywhere = sorted({*known, *(option for options in known.values() for option in options)})
    own = str(context.info_name)
    chosen: dict[str, object] = {}
    for key, value in settings.items():
        table = {key: value}
        if isinstance(value, dict):
            _refuse_unknown(path, key, known, what="table")
            table = value
        for name, setting in table.items():
            own_table = isinstance(value, dict)
            _refuse_unknown(path, name, known[key] if own_table else everywhere, where=f"[{key}] " * own_table)
            option = name.replace("-", "_")
            if (isinstance(value, dict) and key != own) or option not in known[own]:
                continue
            placed = option in PATHS[own] and isinstance(setting, str) and setting != STANDARD
            # Tables come after plain keys, as TOML has it, and win.
            chosen[option] = str(path.parent / str(setting)) if placed else setting
    context.default_map = {**(context.default_map or {}), **chosen}
    return path


def _refuse_unknown(path: Path, key: str, known: Iterable[str], *, what: str = "key", where: str = "") -> None:
    names = [name.replace("_", "-") for name in known if name not in _NOT_SETTINGS]
    if key.replace("_", "-") in names:
        return
    near = difflib.get_close_matches(key.replace("_", "-"), names, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known names: {', '.join(names)}"
    raise typer.BadParameter(f"{path} has an unknown {what} {where}{key!r}{hint}")


def _show_all(context: typer.Context, value: bool) -> None:
    """Show the help with the options that ``--help`` leaves out."""
    if value:
        for option in context.command.params:
            option.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


def _common(*flags: str, **settings: Any) -> Any:
    return typer.Option(*flags, rich_help_panel="Common options", **settings)


@dataclass(frozen=True)
class CommonOptions:
    """What every command has."""

    json: Annotated[bool, _common("--json", help="Print one JSON object instead of tables.")] = False
    quiet: Annotated[
        bool,
        _common("--quiet", "-q", help="No progress and no notes; and no summary of what is written, without --json."),
    ] = False
    debug: Annotated[bool, _common("--debug", help="Show the traceback of an error.", hidden=True)] = False
    config: Annotated[
        Path | None,
        _common(help="Settings file (TOML). Flags take precedence over it.", callback=apply_config, is_eager=True),
    ] = None
    help_all: Annotated[bool, _common("--help-all", help="Show all options.", callback=_show_all, is_eager=True)] = (
        False
    )


class Commands(TyperGroup):
    """All commands. Messages on wrong use show control characters of the user's text as escapes."""

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command, and run it."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if hasattr(error, "format_message"):  # wrong use
                error.message = visible(getattr(error, "message", ""), lines=True)  # type: ignore[attr-defined]
            raise


def add_command(app: typer.Typer, name: str, function: Callable[..., None], *, examples: list[str]) -> None:
    """Register ``function(output, ...)`` as a command, whose help shows its docstring and the examples.

    Its first argument is the `Output` of the run and no option. Its other arguments are the options, annotated for
    Typer where that needs to know more than their type. A `typer.Context` is that of the running command. A dataclass
    stands for its fields, or with ``Annotated[..., Only("directed", ...)]`` for the fields named there. The common
    options are added, and whatever the function raises becomes a message and an exit code.
    """
    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    records = {option.name: record for option in own if (record := _record(option.annotation)) is not None}
    declared = [
        option
        for parameter in own
        for option in (records[parameter.name][1] if parameter.name in records else [_explained(parameter)])
    ]
    declared.sort(key=_is_last)
    types = {option.name: _parts(option.annotation)[0] for option in declared}
    PATHS[name] = {key for key, kind in types.items() if Path in (kind, *get_args(kind))}

    def run(json: bool, quiet: bool, debug: bool, config: Path | None, help_all: bool, **options: Any) -> None:
        output = Output(json=json, quiet=quiet)
        output.check_stream(options.get("output"))
        check_inputs(options | {"config": config})
        with _noted(output), _guarded(name, debug=debug), standard_streams(options) as values:
            filled = {
                key: record(**{field.name: values.pop(field.name) for field in fields})
                for key, (record, fields) in records.items()
            }
            function(output, **filled, **values)

    common = inspect.signature(CommonOptions, eval_str=True).parameters.values()
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in [*declared, *common]]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    epilog = "Examples:\n\n" + "\n\n".join(line.replace("[", "\\[") for line in examples)
    needy = any(option.default is option.empty for option in declared if option.annotation is not typer.Context)
    app.command(name, help=_joined(function.__doc__), epilog=epilog, no_args_is_help=needy)(run)


def _record(annotation: Any) -> tuple[Any, list[inspect.Parameter]] | None:
    """Return the dataclass that an annotation names, and those of its fields that are options; None for others.

    Fields on how files are written are options of every command that has the record.
    """
    kind, *extras = _parts(annotation)
    if not is_dataclass(kind):
        return None
    signature = inspect.signature(kind, eval_str=True)  # type: ignore[arg-type]
    options = {name: _explained(option) for name, option in signature.parameters.items()}
    only = next((extra.names for extra in extras if isinstance(extra, Only)), None)
    names = options if only is None else [*only, *(name for name in options if _is_last(options[name]))]
    return kind, [options[name] for name in names]


def _explained(option: inspect.Parameter) -> inspect.Parameter:
    """Return an option with its help, from `HELP` where it has none; a switch that is off has no flag for that."""
    kind, *extras = _parts(option.annotation)
    if kind is typer.Context:
        return option
    flags = [f"--{option.name.replace('_', '-')}"] if option.default is False else []
    info = copy(extras[0]) if extras else typer.Option(*flags)
    info.help = info.help or HELP[option.name]
    info.hidden = option.name in HIDDEN
    if option.name == "rename":
        option = option.replace(default=[])
    return option.replace(annotation=Annotated[kind, info])


def _parts(annotation: Any) -> tuple[Any, ...]:
    """Return a type, and what it is annotated with."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _is_last(option: inspect.Parameter) -> bool:
    """Return whether an option is on how files are written."""
    return any(getattr(extra, "rich_help_panel", None) == FILES_PANEL for extra in _parts(option.annotation))


@contextmanager
def _noted(output: Output) -> Iterator[None]:
    """Show what the library logs and warns of as notes while a command runs."""
    logger, handler = logging.getLogger("napsets"), logging.Handler(logging.INFO)
    handler.emit = lambda record: output.note(record.getMessage())  # type: ignore[method-assign]
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once", NapsetsWarning)
            warnings.showwarning = lambda message, *rest: output.note(str(message))
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextmanager
def _guarded(name: str, *, debug: bool) -> Iterator[None]:
    """Turn whatever a command raises into a message and an exit code."""
    at_work(name, discard_drafts)
    try:
        yield
    except typer.Exit:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if hasattr(error, "format_message"):  # wrong use, which Typer explains
            raise
        raise typer.Exit(report_error(error, debug=debug)) from None


def _joined(text: str | None) -> str:
    """Join the lines of each paragraph of a docstring, so that the terminal can wrap them."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"napsets {__version__}")
        raise typer.Exit


def version_option(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Prediction sets and intervals with guaranteed coverage for the nodes of a graph, from the outputs of any model.

    Exit codes: 0 fine, 1 failed, 2 wrong use, 3 a warning or an alarm (with --fail-on). Tables go to standard
    output, progress and notes to standard error.
    """
