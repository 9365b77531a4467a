"""What goes wrong is told in one paragraph with the way out, ends with 1, and leaves no file behind."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from napsets.cli import main
from worlds import make_world, write


def check(shown, message: str, output) -> None:
    """Hold a failed run to its promises."""
    assert shown.exit_code == 1, shown.output
    paragraphs = [line for line in shown.stderr.splitlines() if "error:" in line]
    assert len(paragraphs) == 1
    assert message in paragraphs[0]
    assert "Traceback" not in shown.output
    assert not output.exists()
    assert list(output.parent.glob(".*")) == []


def change(path, **columns):
    table = pq.read_table(path)
    for name, column in columns.items():
        table = (
            table.drop_columns(name)
            if column is None
            else table.set_column(table.column_names.index(name), name, pa.array(column))
        )
    pq.write_table(table, path)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "sets.parquet"


def test_the_way_out_of_unknown_ids_works(run, world, target):
    edges = pq.read_table(world.edges).to_pydict()
    more = {name: [*column, 10**6] for name, column in edges.items()}
    write(world.edges, more)
    shown = run("predict", *world.files, "-o", target, "--skip-unknown")
    assert shown.exit_code == 0
    assert shown.stderr.count("note: left out: 1 row of `edges`") == 2  # for each end
    assert pq.read_metadata(target).num_rows == 60


def test_a_folder_without_permission(run, world, target, monkeypatch):
    def refuse(*arguments, **options):  # even where the tests are run by one who may write anywhere
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(options["dir"]))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    check(run("predict", *world.files, "-o", target), f"cannot open or write ({target.parent}): permission", target)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_a_full_disk(run, tmp_path, suffix):
    world = make_world(tmp_path / "world", nodes=20_000, degree=4)
    target = tmp_path / "out" / f"sets{suffix}"
    target.parent.mkdir()
    arguments = ["predict", *world.files, "--hops", 1, "-o"]
    assert run(*arguments, tmp_path / f"warm{suffix}").exit_code == 0  # what is compiled is not written below
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        shown = run(*arguments, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(shown, "the disk is full or the file too large", target)


def test_a_fault_of_ours_is_owned_and_shown_with_debug(run, world, target, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("a surprise")

    monkeypatch.setattr("napsets.cli._options.read_inputs", fail)
    shown = run("predict", *world.files, "-o", target)
    check(
        shown,
        "unexpected RuntimeError: a surprise. This is a bug in napsets; please run the command again with --debug",
        target,
    )
    debug = run("predict", *world.files, "-o", target, "--debug")
    assert debug.exit_code == 1
    assert "Traceback (most recent call last)" in debug.stderr


def test_too_little_memory(run, world, target, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("napsets.cli._options.read_inputs", fail)
    check(run("predict", *world.files, "-o", target), "there is not enough memory for these files", target)


def test_debug_shows_where_bad_input_was_found(run, world, target):
    change(world.edges, target=None)
    shown = run("predict", *world.files, "-o", target, "--debug")
    assert shown.exit_code == 1
    assert "Traceback (most recent call last)" in shown.stderr
    assert "FileFormatError" in shown.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(tmp_path, number):
    # Deep neighbourhoods of many nodes: far more work than is done before the signal comes.
    world = make_world(tmp_path / "world", nodes=30_000, degree=16)
    target = tmp_path / "out" / "sets.parquet"
    target.parent.mkdir()
    target.write_text("what was there before")
    code = "from napsets.cli import main; main()"
    arguments = ["predict", *world.files, "--hops", "6", "-o", str(target)]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and len(list(target.parent.iterdir())) < 2:
        time.sleep(0.02)  # until it has begun to write
    process.send_signal(number)
    _, stderr = process.communicate()
    assert process.returncode == 128 + number, stderr
    assert stderr.splitlines()[-1] == "napsets predict: error: interrupted; no file was left half-written."
    assert "Traceback" not in stderr
    assert [path.name for path in target.parent.iterdir()] == ["sets.parquet"]
    assert target.read_text() == "what was there before"


@pytest.mark.parametrize("debug", [False, True])
def test_whatever_goes_wrong_while_options_are_read_is_told(world, monkeypatch, capsys, debug):
    def fail(name):
        raise RuntimeError("odd")

    monkeypatch.setattr("napsets.cli._command.import_module", fail)
    monkeypatch.setattr("napsets.cli.listen", lambda: None)
    flags = ["--debug"] if debug else []
    monkeypatch.setattr("sys.argv", ["napsets", "inspect", "--node", "1", *world.files, "--config", "s.toml", *flags])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr().err
    assert ended.value.code == 1
    assert ("Traceback" in shown) == debug
    assert "odd" in shown


def test_a_settings_file_of_endless_brackets_is_refused(run, tmp_path):
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    shown = run("demo", "--config", tmp_path / "deep.toml")
    assert shown.exit_code == 2
    assert "is not TOML" in shown.stderr
