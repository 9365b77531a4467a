"""A settings file fills in what flags leave open, and nothing else."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def config(tmp_path):
    def write(text: str):
        path = tmp_path / "napsets.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def files_as_toml(world) -> str:
    return f'edges = "{world.edges}"\nprobabilities = "{world.probabilities_file}"\nlabels = "{world.labels_file}"\n'


def test_flags_come_first_then_the_command_then_the_rest(tmp_path, run_json, world, config):
    path = config(files_as_toml(world) + "alpha = 0.3\nhops = 3\nseed = 7\n[predict]\nhops = 1\nseed = 8\n")
    answer = run_json("predict", "--seed", 9, "--config", path, "-o", tmp_path / "s.parquet")
    assert (answer["alpha"], answer["hops"], answer["seed"]) == (0.3, 1, 9)


def test_paths_start_from_the_folder_of_the_file(tmp_path, run, world, config, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    near = "".join(
        f'{key} = "world/{path.name}"\n'
        for key, path in (
            ("edges", world.edges),
            ("probabilities", world.probabilities_file),
            ("labels", world.labels_file),
        )
    )
    path = config(near + '[predict]\nmethod = "naps"\noutput = "out/s.parquet"\n')
    (tmp_path / "out").mkdir()
    shown = run("predict", "--config", path)
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "out" / "s.parquet").exists()
    shown = run("predict", "--config", "../napsets.toml", "-o", "here.parquet")
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "elsewhere" / "here.parquet").exists()  # what is typed starts from where one is


def test_standard_output_is_no_path_of_its_folder(run, world, config):
    path = config(files_as_toml(world) + '[predict]\nmethod = "naps"\noutput = "-"\n')
    shown = run("predict", "--config", path)
    assert shown.exit_code == 0, shown.output
    assert len(shown.stdout.splitlines()) == 1 + world.rest.size


def test_switches_and_dashes_work(tmp_path, run, world, config):
    path = config(files_as_toml(world) + "json = true\nskip-unknown = true\n[predict]\nallow_empty = false\n")
    answer = json.loads(run("predict", "--config", path, "-o", tmp_path / "s.parquet").stdout)
    assert answer["allow_empty"] is False


def test_tables_of_other_commands_are_left_alone(run, world, config):
    path = config(files_as_toml(world) + '[predict]\nhops = 5\n[inspect]\nmethod = "naps"\n[report]\ntitle = "x"\n')
    answer = json.loads(run("inspect", "--node", world.ids[0], "--config", path, "--json").stdout)
    assert len(answer["hops"]) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alhpa = 0.1", "unknown key 'alhpa'; did you mean 'alpha'?"),
        ("[predict]\nhop = 2", "unknown key [predict] 'hop'; did you mean 'hops'?"),
        ("[pedict]\nhops = 2", "unknown table 'pedict'; did you mean 'predict'?"),
        ("[evaluate]\nhops = 2", "unknown key [evaluate] 'hops'"),
        ("config = 'x'", "unknown key 'config'"),
        ("alpha = ", "is not TOML"),
        ("alpha = 'much'", "Invalid value for '--alpha'"),
        ("alpha = 7", "must lie strictly between 0 and 1; got 7"),
    ],
)
def test_what_it_cannot_hold_is_refused_with_the_nearest_name(tmp_path, run, world, config, text, message):
    shown = run("predict", *world.files, "-o", tmp_path / "s.parquet", "--config", config(text + "\n"))
    assert shown.exit_code == 2
    assert message in " ".join(shown.output.replace("│", " ").split())
    assert not (tmp_path / "s.parquet").exists()


def test_a_file_that_is_not_there_is_named(tmp_path, run, world):
    shown = run("predict", *world.files, "-o", tmp_path / "s.parquet", "--config", tmp_path / "no.toml")
    assert shown.exit_code == 2
    assert "cannot read" in shown.output
