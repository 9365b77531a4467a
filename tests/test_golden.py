"""Nothing that earlier versions answered has changed: thresholds, sets and intervals to the bit, outputs, saved files.

`golden/cases.py` holds the questions that the first version answered; `golden/library.py`, `commands.py` and
`reports.py` those that the second did, before sets and intervals were put on one road. What may differ is declared in
`golden/compare.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import napsets as ns
from napsets.methods import METHODS

sys.path.insert(0, str(Path(__file__).parent))
from golden import adapter, cases, commands, compare, library, reports

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

#: Answers that are means of floats, which another BLAS may add up in another order.
WRITTEN_OUT = ("comparison",)

#: What the comparison has said since the first version, which knew no gaps over groups.
SINCE_FIRST = {"pccv_chance"} | {
    f"{what}_{groups}"
    for what in ("gap", "chance", "excess", "over", "under", "share", "worst", "worst_chance")
    for groups in ("class", "confidence", "degree", "neighbourhood")
}


@pytest.fixture(scope="module")
def committed():
    with np.load(cases.FOLDER / "answers.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("part", [cases.of_sets, cases.of_scores, cases.of_metrics], ids=lambda part: part.__name__)
def test_every_answer_of_the_first_version_stands(part, committed):
    answers = part(cases.World())
    for name, value in answers.items():
        if name in WRITTEN_OUT:
            assert_close(json.loads(str(value)), json.loads(str(committed[name])))
        else:
            np.testing.assert_array_equal(np.asarray(value), committed[name], err_msg=name)


def test_no_committed_answer_is_left_uncompared(committed):
    world = cases.World()
    with pytest.warns(ns.NapsetsWarning):
        assert set(committed) == {*cases.of_sets(world), *cases.of_scores(world), *cases.of_metrics(world)}


def assert_close(value, expected):
    """Compare nested lists and dictionaries leaf by leaf, floats up to the last digits."""
    if isinstance(expected, dict):
        assert value.keys() - SINCE_FIRST == expected.keys()
        for name in expected:
            assert_close(value[name], expected[name])
    elif isinstance(expected, list):
        assert len(value) == len(expected)
        for mine, theirs in zip(value, expected, strict=True):
            assert_close(mine, theirs)
    else:
        assert value == (pytest.approx(expected, rel=1e-12, nan_ok=True) if isinstance(expected, float) else expected)


# -- methods, commands and reports -------------------------------------------------------------------------------------

LIBRARY, CHOICES = cases.FOLDER / "library.npz", cases.FOLDER / "choices.json"
COMMANDS, REPORTS = cases.FOLDER / "commands.json", cases.FOLDER / "reports.json"


def case_name(case):
    return case.name


def another_processor():
    """Return whether this processor's last digits are others than those of the one that wrote the goldens."""
    return compare.read_arrays(LIBRARY)[0] != compare.describe_digits()


def assert_arrays(name, value, golden, *, digits):
    """Every bit is the golden's; where the case depends on the processor and this is another one, nearly."""
    differences = compare.array_differences(value, golden, loose=bool(digits) and another_processor())
    assert not differences, f"{name} differs from its golden:\n" + "\n".join(differences)


def assert_json(name, value, golden, *, exact=False):
    differences = compare.json_differences(name, compare.plain(value), golden, exact=exact)
    assert not differences, f"{name} differs from its golden:\n" + "\n".join(differences)


@pytest.mark.parametrize("case", library.CASES, ids=case_name)
def test_every_method_gives_the_same_bits(case):
    predictor = library.calibrate(case)
    value = library.predicted(predictor, library.world(case.world), case.alphas)
    assert_arrays(case.name, value, compare.read_arrays(LIBRARY)[1][case.name], digits=case.digits)
    choice = library.chosen(predictor)
    assert (choice is not None) == (case.name in compare.read_json(CHOICES))
    if choice is not None:
        assert_json(case.name, choice, compare.read_json(CHOICES)[case.name])
        names = [candidate["name"] for candidate in choice["candidates"]]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", library.FILES, ids=case_name)
def test_a_method_that_is_saved_predicts_what_it_did(case, tmp_path):
    calibrated = library.calibrate(case)
    calibrated.save(tmp_path / "method.npz")
    value = library.predicted(ns.load(tmp_path / "method.npz"), library.world(case.world), case.alphas)
    assert_arrays(case.name, value, compare.read_arrays(LIBRARY)[1][case.name], digits=case.digits)


def test_the_goldens_are_of_every_method():
    assert set(library.TABLE) == set(METHODS)
    assert set(library.NUMBERS) == set(adapter.interval_methods())
    names = [case.name for case in (*library.CASES, *library.FILES)]
    assert len(names) == len(set(names))
    assert set(names) == set(compare.read_arrays(LIBRARY)[1])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield commands.Runs(folder)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_answers_and_writes_the_same(runs, name):
    """JSON may have new keys, and the last digits of its means may differ; what stands in a file may not."""
    result, golden = dict(runs.result(name)), dict(compare.read_json(COMMANDS)[name])
    assert "error" not in result, f"{name} failed, exit code {result['exit']}:\n{result['error']}"
    exact = not (commands.COMMANDS[name].digits and another_processor())
    assert_json(name, {"file": result.pop("file", None)}, {"file": golden.pop("file", None)}, exact=exact)
    assert_json(name, result, golden)
    assert result.keys() == golden.keys()


@pytest.mark.parametrize("name", ["predict/naps.parquet", "evaluate/plain", "wrong/alpha", "wrong/no file"])
def test_a_process_of_its_own_answers_what_a_run_in_this_one_does(runs, name):
    command = commands.COMMANDS[name]
    for other in command.after:
        runs.result(other)
    ran = subprocess.run(
        [sys.executable, "-m", "napsets", *command.line.split()], capture_output=True, text=True, check=False
    )
    golden = compare.read_json(COMMANDS)[name]
    assert ran.returncode == golden["exit"]
    assert all(word in ran.stderr for word in command.names)
    if "json" in golden:
        assert_json(name, {"json": json.loads(ran.stdout)}, {"json": golden["json"]})


@pytest.mark.parametrize("name", reports.REPORTS)
def test_every_comparison_and_report_says_the_same(name):
    assert_json(name, reports.answer(reports.REPORTS[name]), compare.read_json(REPORTS)[name])


def test_metrics_are_the_same():
    for name, value in reports.metrics().items():
        assert_json(name, value, compare.read_json(REPORTS)[name])


def test_no_golden_is_left_uncompared():
    assert set(commands.COMMANDS) == set(compare.read_json(COMMANDS))
    assert {*reports.REPORTS, *reports.metrics()} == set(compare.read_json(REPORTS))
