"""Every command explains itself, with examples that would run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from napsets import __version__
from napsets.cli import main, make_app

COMMANDS = get_command(make_app()).commands


def examples(command) -> list[str]:
    return [line.replace("\\[", "[") for line in (command.epilog or "").split("\n\n")[1:]]


def test_the_commands_are_those_that_are_promised():
    promised = {"demo", "predict", "evaluate", "inspect", "homophily", "report", "methods"}
    assert promised <= set(COMMANDS)
    assert set(COMMANDS) <= promised | {"serve", "update", "status", "calibrate"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_help_text_and_an_example(name):
    command = COMMANDS[name]
    assert len((command.help or "").split()) >= 8
    assert examples(command)
    assert all(line.startswith(f"napsets {name}") for line in examples(command))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name):
    silent = [parameter.name for parameter in COMMANDS[name].params if not getattr(parameter, "help", None)]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_use_options_that_exist(name):
    known = {flag for parameter in COMMANDS[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for line in examples(COMMANDS[name]):
        flags = {word for word in shlex.split(line) if word.startswith("-")} - {"-"}  # which is a standard stream
        assert flags <= known


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_examples_and_ends_well(run, name):
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert "Examples:" in shown.stdout
    assert "napsets " + name in shown.stdout
    assert "--json" in shown.stdout
    assert "--config" in shown.stdout


def test_the_command_alone_shows_its_help(run):
    shown = run("--help")
    assert shown.exit_code == 0
    for name in COMMANDS:
        assert name in shown.stdout
    assert "Exit codes: 0 fine, 1 failed, 2 wrong use, 3 a warning" in shown.stdout
    assert "--install-completion" in shown.stdout


def test_the_version_is_shown(run):
    shown = run("--version")
    assert (shown.exit_code, shown.stdout) == (0, f"napsets {__version__}\n")


def test_the_memory_bound_is_stated_where_it_is_needed(run):
    shown = " ".join(run("predict", "--help").stdout.split())
    assert "at most 500 MB + nodes × (2 × bytes per probability × classes + 150 bytes) + edges × 30 bytes" in shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("predcit", "No such command 'predcit'"),
        ("predict --alfa 0.1", "No such option: --alfa"),
        ("predict --level fuzzy", "'fuzzy' is not one of 'nominal', 'exact'"),
        ("predict", "Usage: napsets predict"),
        ("evaluate --json", "Missing argument 'sets'"),
        ("predict --seed -1", "Invalid value for '--seed'"),
        ("demo --seed 18446744073709551616", "Invalid value for '--seed'"),
        ("predict --hops 65", "Invalid value for '--hops' / '-k'"),
        ("predict --hops 100000000000000000000", "Invalid value for '--hops' / '-k'"),
        ("inspect --neighbours 10000000000", "Invalid value for '--neighbours'"),
    ],
)
def test_wrong_use_ends_with_two_and_says_what_is_wrong(run, line, message):
    shown = run(*line.split())
    assert shown.exit_code == 2
    assert "Traceback" not in shown.output
    assert "Usage: napsets" in shown.output
    assert message in " ".join(shown.output.replace("│", " ").split())


def test_completion_knows_commands_options_and_values(app):
    from typer._completion_shared import get_completion_script

    assert "_NAPSETS_COMPLETE" in get_completion_script(
        prog_name="napsets", complete_var="_NAPSETS_COMPLETE", shell="bash"
    )

    def complete(line: str) -> list[str]:
        code = "from napsets.cli import main; main()"
        environment = {"_NAPSETS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )
        return done.stdout.split()

    assert complete("napsets pre") == ["predict"]
    assert "--probabilities" in complete("napsets predict --prob")
    assert complete("napsets predict --decay hyp") == ["hyperbolic"]
    assert complete("napsets predict --method naps-h") == ["naps-h"]


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom napsets.cli import make_app\nmake_app()\n"
        "heavy = {'torch', 'pyspark', 'pandas', 'altair', 'numba', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_run_loads_the_command_that_it_names_and_no_other(monkeypatch):
    loaded = []
    monkeypatch.setattr("napsets.cli.make_app", lambda names: loaded.append(list(names)) or (lambda **options: None))
    monkeypatch.setattr("napsets.cli.listen", lambda: None)
    for line in (
        "predict -e edges.csv",
        "predict --config all.toml",
        "predict --config=all.toml",
        "--help",
        "pred",
        "",
    ):
        monkeypatch.setattr("sys.argv", ["napsets", *line.split()])
        main()
    assert loaded == [["predict"], *[list(COMMANDS)] * 5]


def test_a_command_that_needs_no_option_runs_without_one(run, monkeypatch):
    ran = []
    monkeypatch.setattr("napsets.cli.report.writable_file", lambda *arguments: ran.append(arguments) or 1 / 0)
    assert run("demo").exit_code == 1
    assert ran
