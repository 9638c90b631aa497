"""Code that comes as an archive."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from pailot.data import ml_folders as channels
from pailot.data.errors import DataError
from pailot.job_values import Channels

from ...support.archives import SQUEEZE, entry, folder, link, tar


def archive(path: Path, *entries: object, squeeze: str = "gzip") -> Channels:
    path.write_bytes(SQUEEZE[squeeze](tar(entries)))
    return Channels(code=str(path))


@pytest.mark.parametrize("squeeze", SQUEEZE)
def test_an_archive_becomes_the_code(tmp_path: Path, squeeze: str) -> None:
    entries = (folder("deep"), entry("deep/run", mode=0o755), link("link", "deep/run"))
    channels.make(archive(tmp_path / "code.tgz", *entries, squeeze=squeeze), str(tmp_path / "ml"))
    code = tmp_path / "ml" / "usercode"
    assert (code / "deep" / "run").read_text() == (code / "link").read_text() == "text"
    assert (code / "deep" / "run").stat().st_mode & 0o111


def test_what_is_no_archive_is_the_code_itself(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print()")
    channels.make(Channels(code=str(tmp_path / "main.py")), str(tmp_path / "ml"))
    assert (tmp_path / "ml" / "usercode" / "main.py").read_text() == "print()"


@pytest.mark.parametrize(
    "entries",
    [
        (entry("../out"),),
        (link("link", ".."), entry("link/../../out")),
        (entry("h", tarfile.LNKTYPE, "../../mine"), entry("h")),
    ],
)
def test_nothing_of_it_comes_to_lie_elsewhere(tmp_path: Path, entries: tuple[object, ...]) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    mine.chmod(0o600)
    with pytest.raises(DataError, match=r"the code .* cannot be unpacked: "):
        channels.make(archive(tmp_path / "code.tgz", *entries), str(tmp_path / "ml"))
    assert not os.listdir(tmp_path / "ml" / "usercode")
    assert sorted(os.listdir(tmp_path)) == ["code.tgz", "mine", "ml"]
    assert (mine.read_text(), mine.stat().st_mode & 0o777, mine.stat().st_nlink) == ("mine", 0o600, 1)
