"""Secrets at rest: only with the key, only for their job, and never in a message."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from pailot.store import SecretBox, StoreError

SECRETS: dict[str, Any] = {"token": "hunter2-hunter2", "number": 7, "more": {"a": ["b", None]}, "kanji": "秘密", "half": "\udc80"}


@pytest.fixture
def box(tmp_path: Path) -> SecretBox:
    return SecretBox(str(tmp_path / "home"))


def test_what_was_sealed_comes_back(box: SecretBox) -> None:
    sealed = box.seal("job1", SECRETS)
    assert b"hunter2" not in sealed
    assert sealed != box.seal("job1", SECRETS)
    assert box.open("job1", sealed) == SECRETS
    assert SecretBox(os.path.dirname(os.path.dirname(box.file))).open("job1", sealed) == SECRETS
    assert box.open("job1", box.seal("job1", {})) == {}


JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SecretBox:
    return SecretBox(str(tmp_path_factory.mktemp("shared")))


@given(st.text(), st.dictionaries(st.text(), JSON))
def test_any_secrets_of_any_job(shared: SecretBox, job: str, secrets: dict[str, object]) -> None:
    assert shared.open(job, shared.seal(job, secrets)) == secrets


def test_only_the_owner_may_read_the_key(box: SecretBox) -> None:
    old = os.umask(0)
    try:
        box.seal("job1", SECRETS)
    finally:
        os.umask(old)
    assert os.stat(box.file).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(box.file)).st_mode & 0o777 == 0o700
    assert os.listdir(os.path.dirname(box.file)) == ["secret.key"]
    os.chmod(box.file, 0o644)
    box.seal("job1", SECRETS)
    assert os.stat(box.file).st_mode & 0o777 == 0o600


def test_secrets_belong_to_one_job(box: SecretBox) -> None:
    sealed = box.seal("job1", SECRETS)
    with pytest.raises(StoreError, match=r"^the secrets of job job2 cannot be opened: they belong to another job$"):
        box.open("job2", sealed)


def test_keys_can_be_changed(box: SecretBox) -> None:
    old = box.seal("job1", SECRETS)
    first = Path(box.file).read_bytes()
    Path(box.file).write_bytes(b"# new\n" + Fernet.generate_key() + b"\r\n\n" + first)
    new = box.seal("job1", SECRETS)
    assert box.open("job1", old) == box.open("job1", new) == SECRETS
    Path(box.file).write_bytes(first)
    assert box.open("job1", old) == SECRETS
    with pytest.raises(StoreError):
        box.open("job1", new)


@pytest.mark.parametrize("kept", [0, 1, 40, -5])
def test_a_wrong_key_or_damage_shows_no_secret(box: SecretBox, kept: int) -> None:
    sealed = box.seal("job1", SECRETS)
    key = Path(box.file).read_text().strip()
    with pytest.raises(StoreError, match="damaged") as damaged:
        box.open("job1", sealed[:kept])
    Path(box.file).write_bytes(Fernet.generate_key())
    with pytest.raises(StoreError, match="sealed with a key that is not in") as refused:
        box.open("job1", sealed)
    for error in (damaged, refused):
        told = "".join(traceback.format_exception(error.value))
        assert "hunter2" not in told
        assert key not in told
        assert "\n" not in str(error.value)


def test_what_is_not_ours_is_refused(box: SecretBox) -> None:
    box.seal("job1", {})
    fernet = Fernet(Path(box.file).read_bytes().strip())
    for plain in (b"[]", b"not json", b"{}", b'{"job": "job1", "secrets": 7}', b"\xff"):
        with pytest.raises(StoreError, match="job1 cannot be opened"):
            box.open("job1", fernet.encrypt(plain))


def test_opening_never_makes_a_key(box: SecretBox) -> None:
    with pytest.raises(StoreError, match="the key is gone"):
        box.open("job1", b"x")
    assert not os.path.exists(os.path.dirname(box.file))


def test_a_bad_key_file_is_said_without_its_text(box: SecretBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pailot.store.secrets.WAIT_SECONDS", 0.05)
    os.makedirs(os.path.dirname(box.file))
    Path(box.file).write_bytes(Fernet.generate_key() + b"\nnot-really-a-key\n")
    with pytest.raises(StoreError, match=r"secret.key:2: this line is not a key$"):
        box.seal("job1", SECRETS)
    for content in ("", "\n# nothing\n"):
        Path(box.file).write_text(content)
        with pytest.raises(StoreError, match="holds no key"):
            box.seal("job1", SECRETS)
    os.unlink(box.file)
    os.mkdir(box.file)
    with pytest.raises(StoreError, match=r"cannot be read: Is a directory$"):
        box.seal("job1", SECRETS)


def test_a_key_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match=r"the key for secrets cannot be made: (Not a directory|File exists)$"):
        SecretBox(str(tmp_path / "home")).seal("job1", SECRETS)


def test_a_file_system_without_links(box: SecretBox, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", link)
    assert box.open("job1", box.seal("job1", SECRETS)) == SECRETS
    box._make_key()  # somebody else was faster
    assert os.listdir(os.path.dirname(box.file)) == ["secret.key"]


def test_what_cannot_be_kept_is_refused_without_showing_it(box: SecretBox) -> None:
    with pytest.raises(StoreError, match=r"^the secrets of job job1 cannot be kept") as refused:
        box.seal("job1", {"token": SECRETS["token"].encode()})
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_a_missing_package_is_said(box: SecretBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(StoreError, match=r"pip install cryptography$"):
        box.seal("job1", SECRETS)
    with pytest.raises(StoreError, match="pip install"):
        box.open("job1", b"x")


def test_nothing_shows_secrets(box: SecretBox) -> None:
    box.seal("job1", SECRETS)
    assert repr(box) == f"SecretBox({box.file!r})"
    assert "hunter2" not in str(vars(box))


def test_processes_that_start_at_once_get_the_same_key(box: SecretBox) -> None:
    home = os.path.dirname(os.path.dirname(box.file))
    code = (
        "import sys; from cryptography.fernet import Fernet; from pailot.store import SecretBox; print(flush=True);"
        "sys.stdin.readline(); sys.stdout.buffer.write(SecretBox(sys.argv[1]).seal('job1', {'from': 'x'}))"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(6)
    ]
    for writer in writers:
        assert writer.stdout
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        sealed, errors = writer.communicate(timeout=300)
        assert errors == b""
        assert box.open("job1", sealed) == {"from": "x"}
    assert len(Path(box.file).read_text().split()) == 1
    assert os.listdir(os.path.dirname(box.file)) == ["secret.key"]
