"""Folders are removed whatever is in them, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pailot.runfolder.removing import remove_tree


def deep(folder: Path, depth: int) -> None:
    """Folders below each other, more than a path can name."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        Path(f"/proc/self/fd/{here}/file").write_text("x")
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_a_folder_of_3000_levels(tmp_path: Path) -> None:
    """`shutil.rmtree` raises RecursionError; few descriptors are needed, too."""
    target = tmp_path / "deep"
    target.mkdir()
    deep(target, 3000)
    remove_tree(str(target))
    assert not list(tmp_path.iterdir())


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    (outside / "below").mkdir(parents=True)
    (outside / "file").write_text("mine")
    (target / "a" / "b").mkdir(parents=True)
    (target / "a" / "folder").symlink_to(outside)
    (target / "a" / "file").symlink_to(outside / "file")
    (target / "a" / "b" / "nowhere").symlink_to("/not/there")
    os.mkfifo(target / "pipe")
    remove_tree(f"{target}/")
    assert sorted(os.listdir(tmp_path)) == ["outside"]
    assert sorted(os.listdir(outside)) == ["below", "file"]


def test_a_link_in_place_of_the_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to("outside")
    with pytest.raises(NotADirectoryError):
        remove_tree(str(tmp_path / "link"))
    remove_tree(str(tmp_path / "link"), ignore_errors=True)
    with pytest.raises(FileNotFoundError):
        remove_tree(str(tmp_path / "nothing"))
    assert sorted(os.listdir(tmp_path)) == ["link", "outside"]


def test_what_cannot_be_removed_stays_and_the_rest_goes(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can remove it")
    for name in ("open", "closed"):
        (tmp_path / "target" / name).mkdir(parents=True)
        (tmp_path / "target" / name / "file").write_text("x")
    (tmp_path / "target" / "closed").chmod(0o500)
    with pytest.raises(PermissionError):
        remove_tree(str(tmp_path / "target"))
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["closed"]
    (tmp_path / "target" / "closed").chmod(0o700)
