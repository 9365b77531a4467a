"""The ``napsets`` command: thin wrappers around the library; and how it gets on with the terminal that runs it.

The handler of signals itself ends the process, at whatever moment it is called: an exception would be lost in a
callback, or come out of a library as something else. Only work that has to be wound up elsewhere (Spark, other
processes) gets one.

Names of classes, nodes and files come from users' files. Whatever in them a terminal would obey instead of show is
written as an escape that it shows. An error is one paragraph that says what is wrong and how to put it right, with an
exit code.
"""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from napsets.checks.text import visible
from napsets.errors import MissingDependencyError, NapsetsError

__all__ = ["main", "make_app", "run_app"]

#: Commands in the order in which the help lists them, and the modules that hold them.
COMMANDS = {
    "demo": "report",
    "predict": "predict",
    "calibrate": "calibrate",
    "evaluate": "evaluate",
    "inspect": "inspect",
    "recommend": "recommend",
    "homophily": "recommend",
    "report": "report",
    "methods": "listings",
    "reproduce": "reproduce",
    "datasets": "listings",
    "errors": "listings",
    "serve": "stores",
    "update": "stores",
    "status": "stores",
    "warm-up": "warm_up",
}


def make_app(names: Iterable[str] = COMMANDS) -> Any:
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
        add_command(app, name, getattr(module, name.replace("-", "_")), examples=examples)
    return app


def main() -> None:
    """Run the command; the process ends with 0 (fine), 1 (failed), 2 (wrong use), 130 (Ctrl-C) or 143 (SIGTERM)."""
    listen()
    try:
        app = make_app(_needed(sys.argv[1:]))
    except MissingDependencyError as error:
        sys.stderr.write(f"napsets: error: {error}\n")
        sys.exit(1)
    run_app(app, "napsets")


def _needed(arguments: Sequence[str]) -> Iterable[str]:
    """Return the commands to load for some arguments: the one that they name; all for help and settings files."""
    alone = arguments and arguments[0] in COMMANDS and not any(word.startswith("--config") for word in arguments)
    return arguments[:1] if alone else COMMANDS


def run_app(app: Any, name: str) -> None:
    """Run an application of commands in this process, which ends with it."""
    prepare_streams()
    try:
        with printing():
            app(prog_name=name)
    except Exception as error:  # while options were read, or help was printed
        sys.exit(report_error(error, debug="--debug" in sys.argv))


# -- signals -----------------------------------------------------------------------------------------------------------

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The process was asked to end."""


#: What the handler has to know of the run: it is called at any moment, with nothing but this.
_run: Any = SimpleNamespace(command="napsets", written=(), discard=list, unwinding=False, stopped=None)


def listen() -> None:
    """From now on, end as this module says."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # set by the parent process (nohup)
            signal.signal(number, _stop)


def at_work(command: str, written: Sequence[Path], discard: Callable[[], list[Path]]) -> None:
    """Enter the command that runs, the list of what it has written, and what removes what it is writing.

    What `discard` returns has been written too, a moment ago.
    """
    _run.command, _run.written, _run.discard, _run.stopped = f"napsets {command}".strip(), written, discard, None


@contextmanager
def unwinding() -> Iterator[None]:
    """Meanwhile, raise `Interrupted` instead: other processes must be shut down."""
    _run.unwinding = True
    try:
        yield
    finally:
        _run.unwinding = False


def _whole() -> str:
    """Say what is there now that was not before; what was on its way to standard output is gone with its folder."""
    written = [path for path in _run.written if path.exists()]
    if not written:
        return "nothing was written"
    if len(written) == 1:
        return f"{written[0]} was written completely"
    return f"{len(written)} files were written completely; the last of them is {written[-1]}"


def _stop(number: int, frame: Any) -> None:
    code = 128 + number
    if _run.unwinding:
        _run.stopped = code
        raise Interrupted
    for other in _NUMBERS:
        signal.signal(other, signal.SIG_IGN)  # once is enough
    try:
        _run.written = [*_run.written, *(path for path in _run.discard() if path not in _run.written)]
        text = visible(f"{_run.command}: error: {_describe(Interrupted())}") + "\n"
        # Past the stream, which may be busy with another line; a progress bar has hidden the cursor.
        start = b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b""
        os.write(2, start + text.encode(getattr(sys.stderr, "encoding", None) or "utf-8", "backslashreplace"))
    finally:
        os._exit(code)


# -- streams, which text from a file never harms -----------------------------------------------------------------------

#: For streams that know only a few letters: what our own words use beyond ASCII.
_PLAIN = {
    "∞": "inf", "–": "-", "−": "-", "…": "...", "±": "+/-", "≤": "<=", "≥": ">=", "τ": "tau", "•": "*", "←": "<-",
    "→": "->", "×": "x", "·": "*", "α": "alpha", "Δ": "delta ", "Ĥ": "H", "Σ": "sum ", "²": "^2", "⁻": "-", "ᵏ": "k",
    "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "━": "-", "╸": "-", "╺": "-",
}  # fmt: skip


class PrintingError(OSError):
    """Standard output could not take what was to be printed."""


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Say what an encoding cannot: our own signs in ASCII, other letters as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    plain = "".join(_PLAIN.get(letter, letter.encode("unicode_escape").decode()) for letter in part)
    return plain, error.end


def prepare_streams() -> None:
    """Make standard output and standard error what the rest relies on: there, and able to say every letter."""
    codecs.register_error("napsets.plainly", _plainly)
    _fill_gaps()
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="napsets.plainly")


def _fill_gaps() -> None:
    """Open something in place of a closed stream (``>&-``), or the next file that is opened would take its number.

    Nothing can be written there, and trying to print says so. What goes to standard error is lost.
    """
    while (number := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115  (stays open)


@contextmanager
def printing() -> Iterator[None]:
    """Raise a `PrintingError` where standard output does not take what is printed meanwhile."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, PrintingError):
        raise
    except OSError as error:
        silence(sys.stdout)
        raise PrintingError(error.errno or errno.EIO, error.strerror or str(error)) from error


def silence(stream: Any) -> None:
    """Discard everything that is still to be written to a stream: it cannot be shown."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def tell(text: str) -> None:
    """Write a line to standard error, if there is anyone to read it."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


# -- errors ------------------------------------------------------------------------------------------------------------

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def report_error(error: BaseException, *, debug: bool = False) -> int:
    """Print an error of the run on standard error and return the exit code; 2, for wrong use, is the parser's."""
    if _run.stopped is not None:
        error = Interrupted()  # a library that is interrupted may raise something else
    if debug:
        tell(visible("".join(traceback.format_exception(error)).rstrip(), lines=True))
    elif isinstance(error, BrokenPipeError):
        silence(sys.stdout)  # the reader of our output has gone
    else:
        tell(_paragraph(visible(f"{_run.command}: error: {_describe(error)}")))
        if isinstance(error, NapsetsError):
            tell(f"help: napsets errors {error.topic}")
    return _run.stopped or (128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1)


def _describe(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted; {_whole()}."
    if isinstance(error, NapsetsError):
        return str(error)
    if isinstance(error, PrintingError):
        reason = (error.strerror or "").lower()
        return f"cannot write to standard output ({reason}); {_whole()}."
    if isinstance(error, OSError) and error.errno is not None:
        return _describe_system(error)
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for these files. Pass fewer --nodes, store probabilities as float32, or use "
            "--engine spark."
        )
    return (
        f"unexpected {type(error).__name__}: {error}. This is a bug in napsets; please run the command again with "
        "--debug and report the output."
    )


def _describe_system(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return (
            f"the disk is full or the file too large{where}; {_whole()}. Free some space, or write to "
            "another place with --output."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.EISDIR):
        reason = (error.strerror or str(error)).lower()
        return f"cannot open or write{where}: {reason}. Check that the folder exists and that you may write there."
    return f"{error.strerror or error}{where}."


def _paragraph(text: str) -> str:
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
