"""Seeds and hops that make no sense are refused alike by every command; deep ones end where the graph does."""

from __future__ import annotations

import json

import pytest
import typer

from napsets import scores
from napsets.cli._options import make_score
from napsets.scores import SCORES


def files(world, *names):
    options = dict(zip(world.files[::2], world.files[1::2], strict=True))
    return [text for name in names for text in (f"--{name}", options[f"--{name}"])]


def commands(world, target):
    everything = ("edges", "probabilities", "labels")
    return {
        "predict": ["predict", *files(world, *everything), "-o", target],
        "inspect": ["inspect", world.ids[0], *files(world, *everything)],
        "report": ["report", *files(world, *everything), "-o", target.with_suffix(".html")],
        "demo": ["demo", "-o", target.with_suffix(".html")],
    }


@pytest.mark.parametrize("command", ["predict", "inspect", "report", "demo"])
@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused_alike_by_every_command(run, world, tmp_path, command, seed):
    shown = run(*commands(world, tmp_path / "sets.parquet")[command], "--seed", seed)
    assert shown.exit_code == 2, shown.output
    assert "Invalid value for '--seed'" in shown.output  # the rest is the words of the command-line library
    assert "Traceback" not in shown.output


@pytest.mark.parametrize("hops", [65, 10**20])
def test_more_than_64_hops_are_refused(run, world, tmp_path, hops):
    target = tmp_path / "sets.parquet"
    shown = run(*commands(world, target)["predict"], "--hops", hops, "--json")
    assert shown.exit_code == 2
    assert "Invalid value for '--hops' / '-k'" in shown.output
    assert not target.exists()
    assert run(*commands(world, target)["predict"], "--hops", 64, "--json").exit_code == 0


def test_every_score_has_a_name_on_the_command_line():
    for name in SCORES:
        assert make_score(name) == scores.make_score(name)
    with pytest.raises(typer.BadParameter, match="must be one of aps"):
        make_score("apps")


def test_a_score_that_needs_settings_is_refused_in_words(monkeypatch):
    monkeypatch.setitem(SCORES, "needy", lambda features: None)
    with pytest.raises(typer.BadParameter, match="needy needs settings, which can be given only in Python"):
        make_score("needy")


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("inspect", "--neighbours"),
    ],
)
def test_counts_without_end_are_refused(run, world, tmp_path, command, flag):
    arguments = commands(world, tmp_path / "sets.parquet").get(command, [command, "--results", tmp_path / "results"])
    for count in (10**10, 10**30):
        shown = run(*arguments, flag, count)
        assert shown.exit_code == 2
        assert f"Invalid value for '{flag}'" in shown.output


def test_the_smallest_error_rate_gives_every_label(run, world, tmp_path):
    shown = run(*commands(world, tmp_path / "sets.parquet")["predict"], "--method", "naps", "--alpha", 5e-324, "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["full_rate"] == 1.0
