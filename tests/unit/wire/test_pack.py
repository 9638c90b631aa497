"""Code folders: what belongs to them, and that the same files make the same archive."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.client import code_archive as packing
from pailot.client.code_archive import pack
from pailot.client.ignore import walk
from pailot.errors import PailotError

NAMES = ["a", "b", "ab", "a.py", "b.txt", "build", "x", ".hidden", "a b", "[a]", "a\\b"]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
patterns = st.one_of(
    st.sampled_from(
        [
            *NAMES,
            *"* ** *.py /a a/ /a/ !a !a.py a/b a/** **/b **/a/** a/*/b /*.py ?b [ab] [!a] [a-b]* \\!a #a \\#a !*/".split(),
            *"*/ /*/b a** **a a/**b [[:alpha:]] []a] [a a\\ / // !".split(),
            "a ",
            "a\\ ",
            "b  ",
            "",
        ]
    ),
    st.text("ab*?/![]-\\.", max_size=5),
)


places = st.sampled_from(["", "a/", "build/", "a/b/"])


@given(st.lists(paths, min_size=1, max_size=12), st.dictionaries(places, st.lists(patterns)))
def test_what_is_ignored_is_what_git_ignores(files: list[str], ignored: dict[str, list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder, file)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")
            except OSError:
                continue  # a file stands where a folder should be, or the other way round
        for place, lines in ignored.items():
            if Path(folder, place).is_dir():
                Path(folder, place, ".gitignore").write_text("\n".join(lines))
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TEMPLATE_DIR": ""}
        subprocess.run(["git", "init", "-q", folder], check=True, env=environment, stderr=subprocess.DEVNULL)
        listed = subprocess.run(
            ["git", "-C", folder, "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"],
            check=True,
            env=environment,
            capture_output=True,
            text=True,
        ).stdout
        ours = [path for path, entry in walk(folder, (".gitignore",)) if not entry.is_dir(follow_symlinks=False)]
        assert sorted(ours) == sorted(each for each in listed.split("\0") if each)


def names(packed: packing.Packed) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=packed.stream, mode="r:gz") as archive:
        return {info.name: info for info in archive}


def fill(folder: Path) -> None:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("print('hello')\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "data.bin").write_bytes(b"x" * 1000)
    (folder / "kept.log").write_text("kept")
    (folder / "dropped.log").write_text("dropped")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / ".pailotignore").write_text("data.bin\n!kept.log\n")
    (folder / "link").symlink_to("src/train.py")


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    fill(tmp_path / "one")
    fill(tmp_path / "two")
    os.utime(tmp_path / "two" / "run.sh", (1, 1))
    with pack(str(tmp_path / "one")) as one, pack(str(tmp_path / "two")) as two:
        assert one.sha256 == two.sha256
        assert one.stream.read() == two.stream.read()
        one.stream.seek(0)
        found = names(one)
    (tmp_path / "two" / "run.sh").write_text("#!/bin/bash\n")
    with pack(str(tmp_path / "two")) as three:
        assert three.sha256 != one.sha256
    assert sorted(found) == [".gitignore", ".pailotignore", "kept.log", "link", "run.sh", "src", "src/train.py"]
    assert (found["run.sh"].mode, found["src/train.py"].mode) == (0o755, 0o644)
    assert found["link"].linkname == "src/train.py"
    assert (one.files, one.notes) == (5, ())


def test_what_cannot_go_along_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to("../other")
    os.mkfifo(tmp_path / "pipe")
    with pack(str(tmp_path)) as packed:
        assert not names(packed)
    assert packed.notes == (
        "out is left out: it is a link to /etc/passwd, outside of the folder",
        "pipe is left out: it is neither a file nor a folder nor a link",
        "up is left out: it is a link to ../other, outside of the folder",
    )


def test_a_large_folder_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "LARGE", 100)
    (tmp_path / "data").write_bytes(b"x" * 101)
    with pack(str(tmp_path)) as packed:
        assert "leave data out with a .pailotignore file" in packed.notes[0]


def test_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(PailotError, match="there is no folder"):
        pack(str(tmp_path / "nowhere"))
