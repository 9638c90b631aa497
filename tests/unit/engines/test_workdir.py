"""Working directories: the user's own for one task, one each for several."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pailot.engines.preparation import workdir
from pailot.engines.preparation.workdir import WorkdirError, prepare


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text("print()")
    (folder / ".env").write_text("A=1")
    (folder / "home").mkdir()
    return folder


def folders(tmp_path: Path, count: int) -> list[str]:
    return [str(tmp_path / "job" / str(index) / "work") for index in range(count)]


def test_one_task_works_in_the_current_directory(cwd: Path, tmp_path: Path) -> None:
    assert prepare(str(cwd), folders(tmp_path, 1), "", []) == [str(cwd)]
    assert not (tmp_path / "job").exists()


def test_several_have_new_names_for_themselves_and_share_the_old(cwd: Path, tmp_path: Path) -> None:
    works = [Path(work) for work in prepare(str(cwd), folders(tmp_path, 3), "", [str(cwd / "home")])]
    assert works == [Path(folder) for folder in folders(tmp_path, 3)]
    for work in works:
        assert sorted(os.listdir(work)) == [".env", "data", "train.py"]
        assert (work / "train.py").readlink() == cwd / "train.py"
    (works[0] / "clone").mkdir()
    assert not (works[1] / "clone").exists()
    (works[0] / "data" / "seen").write_text("by all")
    assert (works[1] / "data" / "seen").read_text() == (cwd / "data" / "seen").read_text() == "by all"
    (works[1] / "train.py").unlink()
    (works[1] / "train.py").write_text("mine")
    assert (works[0] / "train.py").read_text() == (works[2] / "train.py").read_text() == "print()"
    (works[0] / ".env").unlink()
    assert (works[2] / ".env").read_text() == (cwd / ".env").read_text() == "A=1"


def test_they_can_share_one_or_have_another(cwd: Path, tmp_path: Path) -> None:
    assert prepare(str(cwd), folders(tmp_path, 2), "shared", []) == [str(cwd)] * 2
    assert prepare(str(cwd), folders(tmp_path, 1), "data", []) == [str(cwd / "data")]
    (cwd / "data" / "set").write_text("")
    works = prepare(str(cwd), folders(tmp_path, 2), str(cwd / "data"), [])
    assert [os.listdir(work) for work in works] == [["set"], ["set"]]
    with pytest.raises(WorkdirError, match=f"{cwd}/nowhere should be the working directory, but there is no such"):
        prepare(str(cwd), folders(tmp_path, 1), "nowhere", [])


def test_a_home_behind_a_link_is_left_out_too(cwd: Path, tmp_path: Path) -> None:
    (cwd / "link").symlink_to(cwd / "home")
    works = prepare(str(cwd), folders(tmp_path, 2), "", [str(cwd / "link"), ""])
    assert sorted(os.listdir(works[1])) == [".env", "data", "train.py"]


def test_a_second_time_changes_nothing(cwd: Path, tmp_path: Path) -> None:
    first = prepare(str(cwd), folders(tmp_path, 2))
    assert prepare(str(cwd), folders(tmp_path, 2)) == first


def test_a_directory_with_too_much_in_it_is_refused(cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "MAX_LINKS", 7)
    with pytest.raises(WorkdirError, match=r"has 4 entries, too many to show them to each of 2 tasks; .*--workdir shared"):
        prepare(str(cwd), folders(tmp_path, 2))
    assert not (tmp_path / "job").exists()


def test_a_place_that_cannot_be_written_is_said(cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "job").write_text("a file")
    with pytest.raises(WorkdirError, match=r"job.*: a working directory cannot be made: Not a directory"):
        prepare(str(cwd), folders(tmp_path, 2))
