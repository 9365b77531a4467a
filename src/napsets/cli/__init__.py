"""The ``napsets`` command: thin wrappers around the library, signals, and errors as messages with exit codes.

Names of classes, nodes and files come from users' files: control characters in them are shown as escapes.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING

from napsets.checks.text import visible
from napsets.errors import InvalidInputError, MissingDependencyError, NapsetsError

if TYPE_CHECKING:
    import typer

__all__ = ["main", "make_app"]

#: Commands in the order in which the help lists them, and the modules that hold them.
COMMANDS = {
    "demo": "report",
    "predict": "predict",
    "calibrate": "calibrate",
    "evaluate": "evaluate",
    "inspect": "inspect",
    "homophily": "homophily",
    "report": "report",
    "methods": "methods",
    "serve": "stores",
    "update": "update",
    "status": "stores",
}


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Put the commands together, all of them or some."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        raise MissingDependencyError("typer", "cli") from error
    from napsets.cli._command import Commands, add_command, version_option

    app = typer.Typer(
        name="napsets",
        cls=Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Examples:\n\nnapsets demo\n\n"
        "napsets predict --edges edges.parquet --probabilities p.parquet --labels y.parquet -o sets.parquet\n\n"
        "napsets --install-completion",
    )
    app.callback()(version_option)
    for name in names:
        module = import_module(f"napsets.cli.{COMMANDS[name]}")
        examples = [line for line in module.EXAMPLES if line.split()[1] == name]
        add_command(app, name, getattr(module, name), examples=examples)
    return app


def main() -> None:
    """Run the command; the process ends with 0 (fine), 1 (failed), 2 (wrong use), 130 (Ctrl-C) or 143 (SIGTERM)."""
    listen()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # letters that the terminal's encoding lacks
    try:
        make_app(_needed(sys.argv[1:]))(prog_name="napsets")
    except Exception as error:  # while options were read, or help was printed
        sys.exit(report_error(error, debug="--debug" in sys.argv))


def _needed(arguments: Sequence[str]) -> Iterable[str]:
    """Return the commands to load for some arguments: the one that they name; all for help and settings files."""
    alone = arguments and arguments[0] in COMMANDS and not any(word.startswith("--config") for word in arguments)
    return arguments[:1] if alone else COMMANDS


# -- signals -----------------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """What the handler of signals has to know of the run: it is called at any moment, with nothing but this."""

    command: str = "napsets"
    discard: Callable[[], None] = lambda: None


_run = _Run()


def listen() -> None:
    """From now on, end on Ctrl-C and SIGTERM at once, without drafts of files."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # set by the parent process (nohup)
            signal.signal(number, _stop)


def at_work(command: str, discard: Callable[[], None]) -> None:
    """Register the command that runs, and the function that removes its unfinished files."""
    _run.command, _run.discard = f"napsets {command}".strip(), discard


def _stop(number: int, frame: FrameType | None) -> None:
    # Ends the process itself: an exception would be lost in a callback, or come out of a library as something else.
    code = 128 + number
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)  # once is enough
    try:
        _run.discard()
        text = visible(f"{_run.command}: error: {_describe(KeyboardInterrupt())}") + "\n"
        # Past the stream, which may be busy with another line; a progress bar has hidden the cursor.
        os.write(2, (b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b"") + text.encode(errors="backslashreplace"))
    finally:
        os._exit(code)


# -- errors ------------------------------------------------------------------------------------------------------------


def report_error(error: BaseException, *, debug: bool = False) -> int:
    """Print an error of the run on standard error and return the exit code; 2, for wrong use, is the parser's."""
    if debug:
        text = visible("".join(traceback.format_exception(error)).rstrip(), lines=True)
    else:
        text = visible(f"{_run.command}: error: {_describe(error)}")
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(text + "\n")
    return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _describe(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; no file was left half-written."
    if isinstance(error, InvalidInputError):
        return error.on("terminal")
    if isinstance(error, NapsetsError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        where = f" ({error.filename})" if error.filename else ""
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return f"the disk is full or the file too large{where}. Free some space, or use another disk."
        return f"cannot open or write{where}: {reason.lower()}. Check the path, and that you may read or write there."
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for these files. Store probabilities as float32, or predict on Spark from "
            "Python (napsets.spark)."
        )
    return (
        f"unexpected {type(error).__name__}: {error}. This is a bug in napsets; please run the command again with "
        "--debug and report the output."
    )
