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
import functools
import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from napsets.checks.text import visible
from napsets.cli._options import FILES_PANEL, Only
from napsets.cli._output import STANDARD, Output, check_standard_output, inputs_of, standard_streams
from napsets.cli._terminal import Interrupted, at_work, report_error, stopped
from napsets.errors import NapsetsWarning
from napsets.files.places import discard_drafts, recording
from napsets.version import __version__

#: The options of each command that are paths; `add_command` enters them.
PATHS: dict[str, set[str]] = {}

#: Options that make no sense in a file.
_NOT_SETTINGS = {"help", "config", "version"}


def apply_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make a settings file the source of defaults; called for ``--config`` before other options are read."""
    if path is None or context.resilient_parsing:
        return path
    settings = _read(path)
    root = context.find_root().command
    known = {
        name: {parameter.name for parameter in command.params} - _NOT_SETTINGS
        for name, command in getattr(root, "commands", {}).items()
    }
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
    named = {key.replace("-", "_"): value for key, value in (general | settings.get(here, {})).items()}
    chosen = {
        key: _placed(path, value) if key in PATHS[here] else value for key, value in named.items() if key in known[here]
    }
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


def _refuse_unknown(path: Path, key: str, known: Iterable[str], *, what: str = "key", where: str = "") -> None:
    names = [name.replace("_", "-") for name in known]
    if key.replace("_", "-") in names:
        return
    near = difflib.get_close_matches(key.replace("_", "-"), names, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known names: {', '.join(names)}"
    raise typer.BadParameter(f"{path} has an unknown {what} {where}{key!r}{hint}")


_COMMON = "Common options"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.", rich_help_panel=_COMMON)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Results and errors only: no progress, no notes.", rich_help_panel=_COMMON)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_COMMON)]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Settings file (TOML). Flags take precedence over it.",
        callback=apply_config,
        is_eager=True,
        rich_help_panel=_COMMON,
    ),
]


class _Harmless:
    """Messages on wrong use show control characters of the user's text as escapes; no option ends in a traceback."""

    def make_context(self, info_name: str | None, args: list[str], *arguments: Any, **options: Any) -> Any:
        debug = "--debug" in args  # the options are not read yet
        with _shown(), _reported(info_name or "", debug=debug):
            return super().make_context(info_name, args, *arguments, **options)  # type: ignore[misc]

    def invoke(self, ctx: Any) -> Any:
        with _shown():
            return super().invoke(ctx)  # type: ignore[misc]


class Command(_Harmless, TyperCommand):
    """One command."""


class Commands(_Harmless, TyperGroup):
    """All commands."""


@contextmanager
def _shown() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):
            message = visible(error.format_message(), lines=True)
            error.format_message = lambda: message
        raise


@contextmanager
def _reported(name: str, *, debug: bool) -> Iterator[None]:
    """Turn an error into a message and an exit code while options are read, before any command runs."""
    try:
        yield
    except (typer.Exit, typer.Abort, OSError):  # an OSError is one of printing help, which has a place of its own
        raise
    except Exception as error:
        if hasattr(error, "format_message"):
            raise
        raise typer.Exit(report_error(name, error, debug=debug)) from None


def add_command(app: typer.Typer, name: str, function: Callable[..., None], *, examples: list[str]) -> None:
    """Register ``function(output, ...)`` as a command, whose help shows its docstring and the examples.

    Its first argument is the `Output` of the run and no option. Its other arguments, annotated for Typer, are the
    options: one that is a `typer.Context` is given the running command's, and one that is a dataclass stands for its
    fields, which are annotated likewise; with ``Annotated[..., Only("ids", ...)]`` for some of them. Choices are
    Literals. The common options are added, and whatever the function raises becomes a message and an exit code.
    """
    hints = {key: as_written(hint) for key, hint in get_type_hints(function, include_extras=True).items()}
    own = list(inspect.signature(function).parameters.values())[1:]
    records = {option.name: record for option in own if (record := _record(hints[option.name])) is not None}
    declared: list[tuple[str, Any, Any]] = []
    for parameter in own:
        if parameter.name in records:
            declared += _options(*records[parameter.name])
        else:
            declared.append((parameter.name, hints[parameter.name], parameter.default))
    declared = sorted(map(_with_choices, declared), key=lambda option: _panel(option[1]) == FILES_PANEL)
    PATHS[name] = {key for key, hint, _ in declared if _is_path(hint)}

    @functools.wraps(function)
    def run(**options: Any) -> None:
        config = options.pop("config", None)
        output = Output(**{key: options.pop(key) for key in ("json", "quiet", "debug")})
        options = {key: getattr(value, "value", value) for key, value in options.items()}
        output.check_stream(options.get("output"))
        inputs = inputs_of(options | {"config": config})
        check_standard_output(inputs)
        with _noted(output), _guarded(name, inputs, debug=output.debug), standard_streams(options) as values:
            filled = {
                key: record(**{field: values.pop(field) for field in names}) for key, (record, names) in records.items()
            }
            function(output, **filled, **values)

    common = {"json": Json, "quiet": Quiet, "debug": Debug, "config": Config}
    options = declared + [(key, hint, None if key == "config" else False) for key, hint in common.items()]
    run.__annotations__ = {key: hint for key, hint, _ in options}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for key, hint, default in options
        ]
    )
    del run.__wrapped__  # otherwise Typer would inspect the wrapped function
    epilog = "Examples:\n\n" + "\n\n".join(line.replace("[", "\\[") for line in examples)
    needy = any(default is inspect.Parameter.empty for _, hint, default in declared if hint is not typer.Context)
    app.command(name, cls=Command, help=_joined(function.__doc__), epilog=epilog, no_args_is_help=needy)(run)


def _record(hint: Any) -> tuple[Any, tuple[str, ...]] | None:
    """Return the dataclass that an annotation names, and which of its fields are options; None for anything else."""
    kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not is_dataclass(kind):
        return None
    only = next((extra.names for extra in extras if isinstance(extra, Only)), None)
    return kind, tuple(field.name for field in fields(kind)) if only is None else (*only, *_files_fields(kind))


def _files_fields(record: Any) -> list[str]:
    """Return the fields of a record on how files are written, which every command has that has the record."""
    return [
        key
        for key, hint, _ in _options(record, [field.name for field in fields(record)])
        if _panel(hint) == FILES_PANEL
    ]


def _options(record: Any, names: Iterable[str]) -> list[tuple[str, Any, Any]]:
    """Return name, annotation and default of some fields of a record."""
    hints = get_type_hints(record, include_extras=True)
    defaults = {
        field.name: inspect.Parameter.empty if field.default is MISSING else field.default for field in fields(record)
    }
    return [(key, as_written(hints[key]), defaults[key]) for key in names]


def _with_choices(option: tuple[str, Any, Any]) -> tuple[str, Any, Any]:
    """Return an option with an Enum in place of a Literal, which not every version of Typer knows."""
    name, hint, default = option
    kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    literal = next((part for part in (kind, *get_args(kind)) if get_origin(part) is Literal), None)
    if literal is None:
        return option
    choices: Any = Enum(name, {text: text for text in get_args(literal)}, type=str)  # type: ignore[misc]
    chosen = choices if kind is literal else choices | None
    return name, Annotated[(chosen, *extras)], default if default is None else choices(default)


def _panel(hint: Any) -> Any:
    """Return the heading under which the help lists an option."""
    return next((extra.rich_help_panel for extra in get_args(hint)[1:] if hasattr(extra, "rich_help_panel")), None)


def as_written(hint: Any) -> Any:
    """Return an annotation without the Optional that Python 3.10 puts around it where None is the default.

    Examples
    --------
    >>> as_written(Annotated[int | None, "help"] | None) == Annotated[int | None, "help"]
    True
    """
    inside = [part for part in get_args(hint) if get_origin(part) is Annotated]
    return inside[0] if inside and get_origin(hint) is not Annotated else hint


def _is_path(hint: Any) -> bool:
    """Whether an annotated argument is a path, or a path or None."""
    kind = get_args(hint)[0] if get_args(hint) else hint
    return Path in (kind, *get_args(kind))


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
            warnings.showwarning = lambda message, *rest: output.note(_warned(message))
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _warned(message: Warning | str) -> str:
    """Return a warning as a note, with the topic of the guide that is about it."""
    return f"{message} (help: napsets errors {message.topic})" if isinstance(message, NapsetsWarning) else str(message)


@contextmanager
def _guarded(name: str, inputs: Iterable[Path], *, debug: bool) -> Iterator[None]:
    """Turn whatever a command raises into a message and an exit code; it may not write to its inputs."""
    with recording(*inputs) as written:
        at_work(name, written, discard_drafts)
        try:
            yield
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            if hasattr(error, "format_message"):  # wrong use, which Typer explains
                raise
            failure = error if stopped() is None else Interrupted()
            code = report_error(name, failure, written=written, debug=debug)
            raise typer.Exit(stopped() or code) from None


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
