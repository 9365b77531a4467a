"""Where commands write: one rule, kept before any work is done."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from worlds import make_world


def message_of(shown):
    return " ".join(shown.output.replace("│", " ").split())


@pytest.fixture
def work(monkeypatch):
    """Fail if anything is read, trained or run."""

    def fail(*arguments, **options):
        pytest.fail("work was done before the output was looked at")

    monkeypatch.setattr("napsets.cli._options.read_inputs", fail)
    monkeypatch.setattr("napsets.datasets.load", fail)


def another_name(kind, source, folder):
    """Return a path that leads to `source` in some way."""
    link = folder / f"link{source.suffix}"
    if kind == "symbolic link":
        link.symlink_to(source)
    elif kind == "hard link":
        link.hardlink_to(source)
    elif kind == "link to a link":
        (folder / "other").symlink_to(source)
        link.symlink_to("other")
    elif kind == "link to a folder":
        (folder / "here").symlink_to(source.parent, target_is_directory=True)
    ways = {
        "itself": source,
        "down and up again": source.parent / "nosuch" / ".." / source.name,
        "far down and up again": source.parent / "nosuch" / "b" / ".." / "c" / ".." / ".." / source.name,
        "link to a folder": folder / "here" / "nosuch" / ".." / source.name,
    }
    return ways.get(kind, link)


NAMES = [
    "itself", "symbolic link", "hard link", "link to a link", "link to a folder", "down and up again",
    "far down and up again",
]  # fmt: skip

#: Commands that write, what they call their output, and the option of an input.
WRITING = [
    *(("predict", "--output", ".csv", flag) for flag in ("--labels", "--nodes", "--features", "--by", "--config")),
    *(("report", "--output", ".html", flag) for flag in ("--edges", "--truth", "--features", "--config")),
    ("demo", "--output", ".html", "--config"),
]


@pytest.mark.parametrize(("command", "output", "suffix", "flag"), WRITING)
@pytest.mark.parametrize("kind", NAMES)
def test_no_command_overwrites_an_input_under_whatever_name(
    run, world, tmp_path, work, command, output, suffix, flag, kind
):
    source = tmp_path / f"source{suffix}"
    source.write_text("# mine\n")
    before = sorted(os.listdir(tmp_path))
    target = another_name(kind, source, tmp_path / "world")
    files = dict(zip(world.files[::2], world.files[1::2], strict=True)) if command in ("predict", "report") else {}
    files |= {flag: source, output: target}
    shown = run(command, *(text for option in files.items() for text in option))
    assert shown.exit_code == 2
    assert "would overwrite the input" in message_of(shown)
    assert source.read_text() == "# mine\n"
    assert sorted(os.listdir(tmp_path)) == before  # no folder was made


@pytest.mark.parametrize("kind", NAMES)
def test_spark_overwrites_no_input_on_this_machine(run, world, monkeypatch, kind):
    pytest.importorskip("pyspark")
    monkeypatch.setattr("napsets.spark.running_session", lambda master: pytest.fail("Spark was started"))
    before = world.labels_file.read_bytes()
    target = another_name(kind, world.labels_file, world.labels_file.parent)
    shown = run("predict", *world.files, "--engine", "spark", "-o", target)
    assert shown.exit_code == 2
    assert "would overwrite the input" in message_of(shown)
    assert world.labels_file.read_bytes() == before


@pytest.mark.parametrize("name", ["loop{}", "first{}", "loop{}/below{}"])
@pytest.mark.parametrize(
    ("command", "output", "suffix"),
    [("predict", "-o", ".csv"), ("report", "-o", ".html"), ("demo", "-o", ".html")],
)
def test_a_link_that_leads_back_to_itself_stays_what_it_is(run, world, tmp_path, work, command, output, suffix, name):
    links = {"loop": "loop", "first": "second", "second": "first"}
    for link, leads_to in links.items():
        (tmp_path / f"{link}{suffix}").symlink_to(f"{leads_to}{suffix}")
    files = world.files if command in ("predict", "report") else []
    shown = run(command, *files, output, tmp_path / name.replace("{}", suffix))
    assert shown.exit_code == 2
    assert "is a link that leads back to itself" in message_of(shown)
    assert all((tmp_path / f"{link}{suffix}").is_symlink() for link in links)


def in_a_shell(command, *arguments):
    """Run the command in a shell, which knows the arguments as $1, $2, …"""
    program = "from napsets.cli import main; main()"
    shell = ["sh", "-c", command.replace("napsets", f"'{sys.executable}' -c '{program}'"), "sh", *map(str, arguments)]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


def test_standard_output_is_no_input(world):
    before = world.labels_file.read_bytes()
    shown = in_a_shell('napsets homophily -e "$1" -l "$2" --json >> "$2"', world.edges, world.labels_file)
    assert shown.returncode == 2
    assert "standard output is the input" in " ".join(shown.stderr.replace("│", " ").split())
    assert world.labels_file.read_bytes() == before


def test_the_file_that_standard_input_comes_from_is_an_input(tmp_path):
    world = make_world(tmp_path, suffix=".csv")
    before = world.labels_file.read_bytes()
    files = (world.edges, world.probabilities_file, world.labels_file)
    shown = in_a_shell('napsets predict -e "$1" -p "$2" -l - -o "$3" < "$3"', *files)
    assert shown.returncode == 2
    assert world.labels_file.read_bytes() == before


@pytest.mark.parametrize(("command", "name"), [("predict", "s.parquet"), ("report", "s.html"), ("demo", "s.html")])
def test_a_folder_is_no_file_to_write(run, world, tmp_path, work, command, name):
    (tmp_path / name).mkdir()
    shown = run(command, *(world.files if command != "demo" else []), "-o", tmp_path / name)
    assert shown.exit_code == 2
    assert "`output` must be a file;" in message_of(shown)
    assert "is a folder" in message_of(shown)


@pytest.mark.parametrize("command", ["predict", "report"])
def test_nothing_is_written_into_an_input_folder(run, world, tmp_path, work, command):
    folder = tmp_path / "edges.parquet"
    folder.mkdir()
    world.edges.rename(folder / "part-0.parquet")
    output = folder / {"predict": "sets.parquet", "report": "report.html"}[command]
    shown = run(command, "--edges", folder, *world.files[2:], "-o", output)
    assert shown.exit_code == 2
    assert "must lie outside the inputs" in message_of(shown)
    assert os.listdir(folder) == ["part-0.parquet"]


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.html.gz"])
@pytest.mark.parametrize("command", ["report", "demo"])
def test_a_report_is_html_and_is_called_so(run, world, tmp_path, work, command, name):
    files = world.files if command == "report" else []
    shown = run(command, *files, "-o", tmp_path / name)
    assert shown.exit_code == 2
    assert "must be a file that ends in .html, .htm; got" in message_of(shown)
    assert not (tmp_path / name).exists()


def test_a_sets_file_has_an_ending_that_says_its_format(run, world, tmp_path, work):
    shown = run("predict", *world.files, "-o", tmp_path / "x.html")
    assert shown.exit_code == 2
    endings = ".parquet, .pq, .csv, .csv.gz, .tsv, .tsv.gz, or a folder of such files"
    assert f"must be a file that ends in {endings}; got" in message_of(shown)


@pytest.mark.parametrize(
    ("name", "message"), [("mine", "must be a new folder"), ("s.csv", "must be a folder of Parquet")]
)
def test_a_folder_that_spark_may_not_replace_is_refused_before_spark_starts(
    run, world, tmp_path, monkeypatch, name, message
):
    pytest.importorskip("pyspark")
    monkeypatch.setattr("napsets.spark.running_session", lambda master: pytest.fail("Spark was started"))
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.txt").write_text("mine")
    shown = run("predict", *world.files, "--engine", "spark", "-o", tmp_path / name)
    assert shown.exit_code == 2
    assert message in message_of(shown)
