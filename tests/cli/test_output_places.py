"""Where commands write: one rule, kept before any work is done."""

from __future__ import annotations

import os

import pytest

from worlds import make_world


def told(shown):
    return " ".join(shown.output.replace("│", " ").split())


@pytest.fixture
def world(tmp_path):
    return make_world(tmp_path / "world")


@pytest.fixture
def work(monkeypatch):
    """Fail if anything is read, trained or run."""

    def fail(*arguments, **options):
        pytest.fail("work was done before the output was looked at")

    monkeypatch.setattr("napsets.cli.predict.read_inputs", fail)
    monkeypatch.setattr("napsets.cli.report.read_inputs", fail)
    monkeypatch.setattr("napsets.datasets.load", fail)
    monkeypatch.setattr("napsets.paper.Laboratory.run", fail)


@pytest.mark.parametrize("command", ["predict", "report"])
@pytest.mark.parametrize("link", ["same", "symlink", "hard link"])
def test_no_command_overwrites_its_input(run, world, tmp_path, work, command, link):
    suffix = {"predict": ".parquet", "report": ".html"}[command]
    output = tmp_path / f"out{suffix}"
    source = tmp_path / f"labels{suffix}"
    source.write_bytes(world.labels_file.read_bytes())
    if link == "same":
        output = source
    else:
        (output.symlink_to if link == "symlink" else output.hardlink_to)(source)
    shown = run(command, *world.files[:4], "--labels", source, "-o", output)
    assert shown.exit_code == 2
    assert "would overwrite the input" in told(shown)
    assert source.read_bytes() == world.labels_file.read_bytes()


def test_the_truth_is_an_input_of_the_report_too(run, world, tmp_path, work):
    truth = tmp_path / "truth.html"
    truth.write_text("truth")
    shown = run("report", *world.files, "--truth", truth, "-o", truth)
    assert (shown.exit_code, truth.read_text()) == (2, "truth")


@pytest.mark.parametrize(
    ("command", "name"), [("predict", "s.csv"), ("report", "s.html"), ("demo", "s.html"), ("reproduce", "s.md")]
)
def test_the_settings_file_is_an_input_of_every_command_that_writes(run, world, tmp_path, work, command, name):
    settings = tmp_path / name
    settings.write_text("# mine\n")
    files = world.files if command in ("predict", "report") else []
    where = ["--results", tmp_path / "results", "--page"] if command == "reproduce" else ["-o"]
    shown = run(command, *files, "--config", settings, *where, settings)
    assert shown.exit_code == 2
    assert "would overwrite the input" in told(shown)
    assert settings.read_text() == "# mine\n"


@pytest.mark.parametrize(("command", "name"), [("predict", "s.parquet"), ("report", "s.html"), ("demo", "s.html")])
def test_a_folder_is_no_file_to_write(run, world, tmp_path, work, command, name):
    (tmp_path / name).mkdir()
    shown = run(command, *(world.files if command != "demo" else []), "-o", tmp_path / name)
    assert shown.exit_code == 2
    assert "`output` must be a file;" in told(shown)
    assert "is a folder" in told(shown)


@pytest.mark.parametrize("command", ["predict", "report"])
def test_nothing_is_written_into_an_input_folder(run, world, tmp_path, work, command):
    folder = tmp_path / "edges.parquet"
    folder.mkdir()
    world.edges.rename(folder / "part-0.parquet")
    output = folder / {"predict": "sets.parquet", "report": "report.html"}[command]
    shown = run(command, "--edges", folder, *world.files[2:], "-o", output)
    assert shown.exit_code == 2
    assert "must lie outside the inputs" in told(shown)
    assert os.listdir(folder) == ["part-0.parquet"]


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.html.gz"])
@pytest.mark.parametrize("command", ["report", "demo"])
def test_a_report_is_html_and_is_called_so(run, world, tmp_path, work, command, name):
    files = world.files if command == "report" else []
    shown = run(command, *files, "-o", tmp_path / name)
    assert shown.exit_code == 2
    assert "must be a file that ends in .html, .htm; got" in told(shown)
    assert not (tmp_path / name).exists()


def test_a_sets_file_has_an_ending_that_says_its_format(run, world, tmp_path, work):
    shown = run("predict", *world.files, "-o", tmp_path / "x.html")
    assert shown.exit_code == 2
    endings = ".parquet, .pq, .csv, .csv.gz, .tsv, .tsv.gz, .jsonl, .jsonl.gz, .ndjson, .npz"
    assert f"must be a file that ends in {endings}; got" in told(shown)


@pytest.mark.parametrize("flag", ["--output", "--results"])
def test_a_file_is_no_folder_to_reproduce_into(run, tmp_path, work, flag):
    (tmp_path / "file").write_text("mine")
    shown = run("reproduce", "--quick", "--results", tmp_path / "results", flag, tmp_path / "file")
    assert shown.exit_code == 2
    assert "must be a folder;" in told(shown)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["page.html", "page", "data.csv"])
def test_the_page_of_the_reproduction_is_markdown(run, tmp_path, work, name):
    (tmp_path / name).write_text("mine")
    shown = run("reproduce", "--quick", "--results", tmp_path / "results", "--page", tmp_path / name)
    assert shown.exit_code == 2
    assert "`page` must be a file that ends in .md, .markdown; got" in told(shown)
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_that_is_not_there_yet_is_made_for_a_report_too(run, tmp_path):
    world = make_world(tmp_path / "world", nodes=300)
    shown = run("report", *world.files, "-o", tmp_path / "new" / "r.html", "--quiet")
    assert shown.exit_code == 0, shown.output
    assert os.listdir(tmp_path / "new") == ["r.html"]


@pytest.mark.parametrize(("name", "message"), [("mine", "holds 'a.txt', which it did not write"), ("s.csv", "got")])
def test_a_folder_that_spark_may_not_replace_is_refused_before_spark_starts(
    run, world, tmp_path, monkeypatch, name, message
):
    places = pytest.importorskip("napsets.spark.places")
    monkeypatch.setattr("napsets.spark.predict_files", lambda **options: pytest.fail("Spark was started"))
    monkeypatch.setattr(places.SparkSession, "getActiveSession", lambda: None)
    for variable in ("HADOOP_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.txt").write_text("mine")
    shown = run("predict", *world.files, "--engine", "spark", "-o", tmp_path / name)
    assert shown.exit_code == 2
    assert message in told(shown)
