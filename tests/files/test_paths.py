"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os

import pytest

from napsets.errors import FileFormatError, InvalidInputError, MissingDependencyError
from napsets.files.paths import check_output, reading, replacing


def test_a_file_appears_whole_under_its_name(tmp_path):
    with (
        pytest.raises(InvalidInputError, match=r"in a folder that exists; there is no folder .*deep"),
        replacing(tmp_path / "deep" / "a.txt"),
    ):
        pass
    (tmp_path / "deep").mkdir()
    with replacing(tmp_path / "deep" / "a.txt") as draft:
        draft.write_text("new")
        assert draft.parent == tmp_path / "deep"
        assert draft.suffix == ".txt"
        assert not (tmp_path / "deep" / "a.txt").exists()
    assert (tmp_path / "deep" / "a.txt").read_text() == "new"
    assert os.listdir(tmp_path / "deep") == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_any_error_leaves_what_was_there(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write_half():
        with replacing(target) as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to none yet"])
def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path, there):
    target, link = tmp_path / "real" / "old.dat", tmp_path / "link.txt"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    link.symlink_to(os.path.join("real", "old.dat"))
    with replacing(check_output(link)) as draft:
        assert (draft.parent, draft.suffix) == (target.parent, ".txt")
        draft.write_text("new")
    assert link.is_symlink()
    assert (link.read_text(), target.read_text()) == ("new", "new")
    assert os.listdir(target.parent) == ["old.dat"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with replacing(tmp_path / "made") as draft:
        draft.write_text("")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_damaged_file_is_named_and_the_cause_kept(tmp_path):
    path = tmp_path / "a.bin"
    with pytest.raises(FileFormatError, match=r"a\.bin must be a file; there is none"), reading(path):
        pass
    path.write_text("x")
    with pytest.raises(FileFormatError, match=r"a\.bin is truncated or of another kind: odd") as info, reading(path):
        raise RuntimeError("odd")
    assert isinstance(info.value.__cause__, RuntimeError)
    with pytest.raises(MissingDependencyError), reading(path):
        raise MissingDependencyError("pyarrow", "cli")
    with pytest.raises(FileFormatError, match=r"a\.bin: `u` must be small$"), reading(path):
        raise InvalidInputError("`u` must be small")


def test_an_argument_opens_the_message_about_its_file(tmp_path):
    path = tmp_path / "a.csv"
    message = r"^`edges` must be a file; there is none at .*a\.csv\. Check the path\.$"
    with pytest.raises(FileFormatError, match=message), reading(path, "edges"):
        pass
    with pytest.raises(FileFormatError, match=r"^`edges` must be a file; .* is a folder$"), reading(tmp_path, "edges"):
        pass
    path.write_text("x")
    message = r"^`edges` must be a whole file of the kind its name says; .*a\.csv is truncated or of another kind: odd$"
    with pytest.raises(FileFormatError, match=message), reading(path, "edges"):
        raise EOFError("odd")


def test_a_folder_of_parts_will_do_where_that_is_said(tmp_path):
    with reading(tmp_path, "edges", folder=True) as source:
        assert source == tmp_path


def test_a_file_that_is_taken_away_meanwhile_is_missing(tmp_path):
    path = tmp_path / "a.bin"
    path.write_text("x")
    with pytest.raises(FileFormatError, match="there is none"), reading(path) as source:
        source.rename(tmp_path / "elsewhere").with_name("a.bin").read_text()


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "no"), OSError(errno.EIO, "bad disk"), MemoryError()])
def test_what_is_not_the_files_fault_is_not_said_of_it(tmp_path, error):
    (tmp_path / "a.bin").write_text("x")
    with pytest.raises(type(error)) as info, reading(tmp_path / "a.bin"):
        raise error
    assert info.value is error
