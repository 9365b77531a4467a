"""What every command has: the common options, and one place where errors become messages and exit codes."""

from __future__ import annotations

import functools
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from napsets.cli._config import PATHS, apply_config
from napsets.cli._errors import report_error
from napsets.cli._output import Output
from napsets.cli._places import wrong_use
from napsets.cli._signals import Interrupted, stopping, working
from napsets.cli._streams import standard_streams
from napsets.cli._terminal import visible
from napsets.errors import NapsetsWarning
from napsets.files.dialect import FORMATS, Dialect, speaking
from napsets.files.places import protecting, recording

__all__ = ["Command", "Commands", "add_command", "guarded"]

_COMMON = "Common options"
_FILES = "How files are written"
#: Arguments that are tables: a command with one of them has the options on how files are written.
_TABLES = {"edges", "probabilities", "labels", "nodes", "sets"}

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.", rich_help_panel=_COMMON)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Results and errors only: no progress, no notes.", rich_help_panel=_COMMON)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_COMMON)]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Settings file (TOML) that fills in what flags leave open.",
        callback=apply_config,
        is_eager=True,
        rich_help_panel=_COMMON,
    ),
]

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="What columns are called, where not node, source, target, label: node=id,source=src. In one file alone: "
        "labels.node=uid. Of regression: prediction=yhat, labels.target=price. Sets files have names of their own.",
        rich_help_panel=_FILES,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        help="What separates the cells of CSV, read or written: ';', '|', tab. Without it a comma, in .tsv a tab.",
        rich_help_panel=_FILES,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"Format of files whose name does not say it, - among them: {', '.join(FORMATS)}. Without it, - is CSV.",
        autocompletion=lambda: list(FORMATS),
        rich_help_panel=_FILES,
    ),
]


class _Harmless:
    """What is said about wrong use shows other people's text, instead of obeying it; no option ends in a traceback."""

    def make_context(self, info_name: str | None, args: list[str], *arguments: Any, **options: Any) -> Any:
        debug = "--debug" in args  # the options are not read yet
        with _shown(), _told(info_name or "", debug=debug):
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
            told = visible(error.format_message(), lines=True)
            error.format_message = lambda: told
        raise


@contextmanager
def _told(name: str, *, debug: bool) -> Iterator[None]:
    """Make an error of a message and an exit code, where options are read: no command is there yet to do so."""
    try:
        yield
    except (typer.Exit, typer.Abort, OSError):  # an OSError is one of printing help, which has a place of its own
        raise
    except Exception as error:
        if hasattr(error, "format_message"):
            raise
        raise typer.Exit(report_error(name, error, debug=debug)) from None


def add_command(app: typer.Typer, name: str, function: Callable[..., None], *, examples: list[str]) -> None:
    """Register ``function(output, ...)`` as a command.

    Its first argument is the `Output` of the run and no option. The common options are added, and whatever the function
    raises becomes a message and an exit code.

    Parameters
    ----------
    app : typer.Typer
        The application.
    name : str
        The command's name.
    function : callable
        Its docstring is the help text; its other arguments, annotated for Typer, are the options. One that is a
        `typer.Context` is given the running command's.
    examples : list of str
        Command lines that the help shows.
    """
    hints = {key: as_written(hint) for key, hint in get_type_hints(function, include_extras=True).items()}
    own = list(inspect.signature(function).parameters.values())[1:]
    common = {"json": Json, "quiet": Quiet, "debug": Debug, "config": Config}
    written = {"columns": Columns, "separator": Separator, "format": FormatOption}
    if not _TABLES & {parameter.name for parameter in own}:
        written = {}
    PATHS[name] = {parameter.name for parameter in own if _is_path(hints[parameter.name])}

    @functools.wraps(function)
    def run(**options: Any) -> None:
        config = options.pop("config", None)
        output = Output(**{key: options.pop(key) for key in ("json", "quiet", "debug")})
        dialect = _dialect({key: options.pop(key) for key in written})
        output.check_stream(options.get("output"))
        # The function does not know of the settings file, and must not write over it.
        with warnings.catch_warnings(), _heard(output), protecting(config), speaking(dialect):
            warnings.simplefilter("once", NapsetsWarning)
            warnings.showwarning = lambda message, *rest: output.note(_warned(message))
            guarded(name, functools.partial(_with_streams, function, output, dialect), debug=output.debug)(**options)

    options = [(parameter.name, hints[parameter.name], parameter.default) for parameter in own]
    options += [(key, hint, None) for key, hint in written.items()]
    options += [(key, hint, None if key == "config" else False) for key, hint in common.items()]
    run.__annotations__ = {key: hint for key, hint, _ in options}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for key, hint, default in options
        ]
    )
    del run.__wrapped__  # or Typer would look through to the bare function
    epilog = "Examples:\n\n" + "\n\n".join(line.replace("[", "\\[") for line in examples)
    needy = any(parameter.default is inspect.Parameter.empty for parameter in own)
    app.command(name, cls=Command, help=_joined(function.__doc__), epilog=epilog, no_args_is_help=needy)(run)


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


def _dialect(options: dict[str, Any]) -> Dialect:
    """Return how files are written, as the options say, and call what cannot be wrong use."""
    for key, value in options.items():
        with wrong_use(f"--{key}"):
            Dialect.parse(**{key: value})
    return Dialect.parse(**options)


def _with_streams(function: Callable[..., None], run: Output, dialect: Dialect, /, **options: Any) -> None:
    with standard_streams(options, dialect) as given:
        function(run, **given)


@contextmanager
def _heard(output: Output) -> Iterator[None]:
    """Show what the library logs as notes while a command runs."""
    logger, handler = logging.getLogger("napsets"), _Notes(output)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _warned(message: Warning | str) -> str:
    """Return a warning as a note, with the topic of the guide that is about it."""
    return f"{message} (help: napsets errors {message.topic})" if isinstance(message, NapsetsWarning) else str(message)


class _Notes(logging.Handler):
    """Passes log records on as notes."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.INFO)
        self.output = output

    def emit(self, record: logging.LogRecord) -> None:
        self.output.note(record.getMessage())


def guarded(name: str, function: Callable[..., None], *, debug: bool = False) -> Callable[..., None]:
    """Wrap a command's function: whatever it raises becomes a message and an exit code."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        with recording() as written:
            try:
                with working():
                    function(*arguments, **options)
            except typer.Exit:
                raise
            except (Exception, KeyboardInterrupt) as error:
                if hasattr(error, "format_message"):  # wrong use, which Typer explains
                    raise
                # A library that is interrupted while it is loaded may say something else than that.
                told = Interrupted() if stopping() else error
                raise typer.Exit(report_error(name, told, written=written, debug=debug)) from None

    return run


def _joined(text: str | None) -> str:
    """Join the lines of each paragraph of a docstring, so that the terminal can wrap them."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
