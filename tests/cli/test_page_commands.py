"""The commands that a report prints run as they are printed, with the names of the user's files."""

from __future__ import annotations

import re
import shlex
from html import unescape

import numpy as np
import pytest

from napsets.files import read_sets
from number_worlds import IDS, KNOWN, REST, Y, number_files
from worlds import make_world, write


def printed(page) -> list[list[str]]:
    """Return the words of the commands on a page, without the name of the program."""
    text = page.read_text(encoding="utf-8")
    commands = [shlex.split(unescape(one)) for one in re.findall(r"<pre[^>]*><code>(.*?)</code>", text)]
    assert [words[:2] for words in commands] == [["napsets", "predict"], ["napsets", "inspect"]]
    return [words[1:] for words in commands]


FLAGS = {
    "plain": [],
    "settings": ["--alpha", 0.2, "--hops", 1, "--seed", 3, "--words", "it's a package, section 50 %"],
    "classes": ["--methods", "naps,by-class", "--title", "T <b>"],
    "features": ["--methods", "split,snaps"],
}


@pytest.mark.parametrize(("name", "truth"), [*zip(FLAGS, (False, True, True, False), strict=True)])
def test_a_page_about_sets_prints_commands_that_run(tmp_path, must_run, monkeypatch, name, truth):
    folder = tmp_path / "my `odd` $files; <b>"
    world = make_world(folder, nodes=240, degree=12, suffix=".csv")
    flags = [*FLAGS[name], *(["--truth", world.truth] if truth else [])]
    if name == "features":
        x = np.random.default_rng(0).normal(size=(240, 3)) + world.labels[:, None]
        flags += ["--features", write(folder / "x.csv", {"node": world.ids} | {f"x{k}": x[:, k] for k in range(3)})]
    page = tmp_path / "report.html"
    must_run("report", *world.files, *flags, "-o", page)
    monkeypatch.chdir(tmp_path)
    predict, inspect = printed(page)
    must_run(*predict)
    file = read_sets(tmp_path / predict[-1])
    assert predict[predict.index("--method") + 1] == file.metadata["method"]
    assert file.metadata["alpha"] == (0.2 if name == "settings" else 0.1)
    assert len(file.sets) == world.rest.size
    must_run(*inspect)


def test_a_page_about_intervals_prints_commands_that_run(tmp_path, must_run, monkeypatch):
    files = number_files(tmp_path)
    truth = write(tmp_path / "truth.parquet", {"node": IDS[REST], "target": Y[REST]})
    must_run("report", "--task", "regression", *files, "--truth", truth, "-o", tmp_path / "report.html")
    monkeypatch.chdir(tmp_path)
    for words in printed(tmp_path / "report.html"):
        assert "regression" in words
        must_run(*words)
    assert KNOWN.size
