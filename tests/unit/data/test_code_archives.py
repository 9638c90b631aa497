"""Code that comes as an archive, with a Python that has filters for it and with one that has none."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from pailot.data import ml_folders
from pailot.data.errors import DataError
from pailot.protocol.model import Channels


def archive(path: Path, *entries: tarfile.TarInfo) -> Channels:
    with tarfile.open(path, "w:gz") as made:
        for entry in entries:
            entry.size = 4 if entry.isreg() else 0
            made.addfile(entry, io.BytesIO(b"text") if entry.isreg() else None)
    return Channels(code=str(path))


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, target, mode
    return found


@pytest.fixture(params=["with filters", "without"])
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without":
        monkeypatch.delattr(tarfile, "tar_filter", raising=False)
    elif not hasattr(tarfile, "tar_filter"):
        pytest.skip("this Python has no filters; use 3.11.4 or newer")
    return str(request.param)


@pytest.mark.usefixtures("python")
def test_an_archive_becomes_the_code(tmp_path: Path) -> None:
    packed = archive(
        tmp_path / "code.tgz", entry("deep", tarfile.DIRTYPE), entry("deep/run"), entry("link", tarfile.SYMTYPE, "deep/run")
    )
    ml_folders.make(packed, str(tmp_path / "ml"))
    code = tmp_path / "ml" / "usercode"
    assert (code / "deep" / "run").read_text() == (code / "link").read_text() == "text"
    assert (code / "deep" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("entries", [(entry("../out"),), (entry("link", tarfile.SYMTYPE, ".."), entry("link/../../out"))])
@pytest.mark.usefixtures("python")
def test_nothing_of_it_comes_to_lie_elsewhere(tmp_path: Path, entries: tuple[tarfile.TarInfo, ...]) -> None:
    with pytest.raises((DataError, tarfile.TarError)):
        ml_folders.make(archive(tmp_path / "code.tgz", *entries), str(tmp_path / "ml"))
    assert not list(tmp_path.rglob("out"))
