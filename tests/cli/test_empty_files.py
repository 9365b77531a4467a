"""Files without rows, and files that hold Python objects: said or refused, never taken for something else."""

from __future__ import annotations

import pytest

from number_worlds import number_files

pytestmark = pytest.mark.world(suffix=".csv")


def header_only(path, header):
    path.write_text(f"{header}\n")
    return path


def command(name, world, edges, tmp_path):
    files = {"-e": edges, "-p": world.probabilities_file, "-l": world.labels_file}
    if name == "homophily":
        del files["-p"]
    rest = {"predict": ["-m", "split", "-o", tmp_path / "sets.csv"], "report": ["-o", tmp_path / "report.html"]}
    rest |= {"inspect": ["--node", world.ids[0], "-m", "split"]}
    return [name, *(text for option in files.items() for text in option), *rest.get(name, [])]


@pytest.mark.parametrize("name", ["predict", "report", "inspect", "homophily"])
def test_edges_without_rows_are_noted(run, world, tmp_path, name):
    edges = header_only(tmp_path / "edges.csv", "source,target")
    shown = run(*command(name, world, edges, tmp_path))
    assert shown.exit_code == 0, shown.output
    assert f"note: {edges} has no rows: no node has a neighbour" in shown.stderr


def test_edges_without_rows_are_noted_where_numbers_are_predicted_and_where_sets_are_judged(run, world, tmp_path):
    edges = header_only(tmp_path / "edges.csv", "source,target")
    message = f"note: {edges} has no rows: no node has a neighbour"
    files = number_files(tmp_path)
    files[files.index("--edges") + 1] = edges
    assert message in run("predict", "--task", "regression", *files, "-m", "split", "-o", tmp_path / "i.csv").stderr
    assert run(*command("predict", world, world.edges, tmp_path)).exit_code == 0
    assert message in run("evaluate", tmp_path / "sets.csv", "-l", world.truth, "-e", edges).stderr


def test_a_file_of_no_nodes_is_not_taken_for_labels_of_all(run, world, tmp_path):
    nodes = header_only(tmp_path / "nodes.csv", "node")
    shown = run(*command("predict", world, world.edges, tmp_path), "--nodes", nodes)
    assert shown.exit_code == 1
    assert f"`nodes` must name at least one node; {nodes} names none" in shown.stderr


def test_groups_without_rows_are_refused(run, world, tmp_path):
    groups = header_only(tmp_path / "groups.csv", "node,group")
    shown = run(*command("predict", world, world.edges, tmp_path), "--by", groups)
    assert shown.exit_code == 1
    assert f"`groups` must have at least one row; {groups} has none" in shown.stderr
