"""Data from and to OSS, through its own driver; the server is a stand-in that checks signatures."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pailot
from pailot.data import filesystems, multipart, upload
from pailot.data.errors import DataError
from pailot.data.provisions import fetch
from pailot.data.upload_journal import UploadJournal
from pailot.processor import Processor, Session
from pailot.progress import Progress

from ..parts.oss import KEY, SECRET, Oss
from .test_stores import STRANGE, fill, publish, tree

# The driver leaves connections whose answers have no body to the garbage collector.
pytestmark = pytest.mark.filterwarnings(r"ignore:unclosed <socket\.socket:ResourceWarning")
WRONG = "a-wrong-secret-of-a-test"


@pytest.fixture(scope="module")
def server() -> Iterator[Oss]:
    with Oss() as running:
        yield running
    gc.collect()  # what the driver did not close is not for other tests to find


@pytest.fixture
def oss(server: Oss, monkeypatch: pytest.MonkeyPatch) -> Oss:
    monkeypatch.delenv("OSS_SESSION_TOKEN", raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    server.seen.clear()
    return server


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A part of the bucket for each test alone."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PAILOT_SERVER", "PAILOT_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def processor(command: str) -> Processor:
    return Processor("python:3.12", command, session=Session(engine="local"), instance_type="local")


# Inputs


def test_a_folder_is_brought_as_it_is(oss: Oss, prefix: str, tmp_path: Path) -> None:
    made = {name: os.urandom(number * 1000) for number, name in enumerate([*STRANGE, *(f"many/{n}" for n in range(150))])}
    for name, data in made.items():
        oss.put(f"{prefix}/data/{name}", data)
    oss.put(f"{prefix}/data/", b"")  # what consoles leave to show a folder
    oss.put(f"{prefix}/data-of-others", b"not ours")
    told: list[Progress] = []
    uri, cache = f"oss://bucket/{prefix}/data", str(tmp_path / "cache")
    assert tree(Path(fetch(uri, cache, "", "input x", told.append))) == made
    assert told[-1] == told[-1].replace(what="input x", done=sum(map(len, made.values())), ended=True)
    told.clear()
    assert tree(Path(fetch(uri, cache, "", "input x", told.append))) == made
    assert told == []  # nothing has changed, so nothing is brought
    oss.put(f"{prefix}/data/a b", b"!")
    oss.put(f"{prefix}/data/new", b"new")
    assert tree(Path(fetch(f"{uri}/", cache))) == {**made, "a b": b"!", "new": b"new"}


def test_a_file_is_brought_and_seen_to_change(oss: Oss, prefix: str, tmp_path: Path) -> None:
    data = os.urandom(17_000_001)  # three blocks, the last of them not full
    oss.put(f"{prefix}/ünï 文", data)
    path = Path(fetch(f"oss://bucket/{prefix}/ünï 文", str(tmp_path)))
    assert (path.name, path.read_bytes()) == ("ünï 文", data)
    assert not [query for method, query, _ in oss.seen if method == "GET" and "prefix" in query]  # no folder is listed for it
    oss.put(f"{prefix}/ünï 文", data[::-1])  # as large as before, in the same second perhaps
    assert Path(fetch(f"oss://bucket/{prefix}/ünï 文", str(tmp_path))).read_bytes() == data[::-1]


MISSING: dict[str, tuple[str, dict[str, str], str]] = {
    "no file": ("oss://bucket/none", {}, "oss://bucket/none: there is no such file"),
    "no folder": ("oss://bucket/none/", {}, "oss://bucket/none/: there is no such f"),
    "no bucket": ("oss://no-such-bucket/x", {}, "oss://no-such-bucket/x: there is no such bucket"),
    "wrong secret": (
        "oss://bucket/x",
        {"OSS_ACCESS_KEY_SECRET": WRONG},
        r"oss://bucket/x: access is denied \(.*\); its credentials come from OSS_ACCESS_KEY_ID, OSS_ACCESS_KEY_SECRET",
    ),
    "wrong key": (
        "oss://bucket/x/",
        {"OSS_ACCESS_KEY_ID": "nobody"},
        r"denied \(The OSS Access Key Id .* does not exist",
    ),
    "no key": (
        "oss://bucket/x",
        {"OSS_ACCESS_KEY_ID": "", "OSS_ACCESS_KEY_SECRET": ""},
        "credentials come from OSS_ACCESS_KEY_ID",
    ),
    "no endpoint": ("oss://bucket/x", {"OSS_ENDPOINT": ""}, "oss://bucket/x: nobody says where the bucket is: set OSS_ENDPOINT"),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_cannot_be_brought_is_said_in_one_line(
    oss: Oss, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    uri, environment, words = MISSING[case]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        if not value:
            monkeypatch.delenv(name)
    for work in (lambda: fetch(uri, str(tmp_path / "cache")), lambda: filesystems.probe_input(uri)):
        with pytest.raises(DataError, match=words) as caught:
            work()
        assert "\n" not in str(caught.value)
        assert SECRET not in str(caught.value)
        assert WRONG not in str(caught.value)
        assert "StringToSign" not in str(caught.value)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
    assert [name for name in os.listdir(tmp_path / "cache" / "fetch") if not name.endswith(".lock")] == []


def test_nobody_answers(oss: Oss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match=r"oss://bucket/x: .*[Cc]onnection") as caught:
        fetch("oss://bucket/x", str(tmp_path))
    assert "\n" not in str(caught.value)


def test_inputs_are_looked_for_before_anything_is_done(oss: Oss, prefix: str) -> None:
    oss.put(f"{prefix}/data/x", b"x")
    for there in ("", "/data", "/data/", "/data/x"):
        filesystems.probe_input(f"oss://bucket/{prefix}{there}")
    for none in ("/dat", "/data/x/", "/data/y"):
        with pytest.raises(DataError, match="there is no such f"):
            filesystems.probe_input(f"oss://bucket/{prefix}{none}")


def test_the_configuration_of_fsspec_is_enough(oss: Oss, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.config import conf

    oss.put(f"{prefix}/x", b"x")
    for name in oss.environment:
        monkeypatch.delenv(name)
    monkeypatch.setitem(conf, "oss", {"key": KEY, "secret": SECRET, "endpoint": oss.environment["OSS_ENDPOINT"]})
    assert Path(fetch(f"oss://bucket/{prefix}/x", str(tmp_path))).read_bytes() == b"x"


# Outputs


def test_objects_appear_only_when_all_of_them_are_complete(
    oss: Oss, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fill(tmp_path / "output", STRANGE)
    made["large"] = os.urandom(9_000_000)  # two parts
    (tmp_path / "output" / "large").write_bytes(made["large"])
    oss.put(f"{prefix}/model/old", b"old")
    oss.put(f"{prefix}/model/a b", b"before")
    before = oss.objects(prefix)
    seen: list[Any] = []
    appear = upload._Objects.appear

    def watched(self: upload._Objects) -> None:
        seen.append((oss.objects(prefix), len(oss.uploads())))
        appear(self)

    monkeypatch.setattr(upload._Objects, "appear", watched)
    told: list[Progress] = []
    publish(f"oss://bucket/{prefix}/model/", tmp_path, tmp_path / "ledger", told)
    assert seen == [(before, len([data for data in made.values() if data]))]  # all bytes are there, and nothing is to be seen
    found = {key.removeprefix(f"{prefix}/model/"): oss.get(key) for key in oss.objects(prefix)}
    assert found == {"old": b"old", **made}
    assert (told[-1].done, told[-1].ended) == (told[-1].total, True)
    assert oss.uploads() == []
    assert {status for _, _, status in oss.seen} <= {200, 204}


@pytest.mark.parametrize("step", ["begin", "send", "complete", "put"])
def test_a_failure_leaves_nothing(oss: Oss, prefix: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fill(tmp_path / "output", ["a", "b", "c", "d"])
    calls = 0
    real = getattr(multipart.Oss, step)

    def fails(self: multipart.Oss, *words: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= (1 if step == "put" else 3):
            raise OSError("the line is dead")
        return real(self, *words)

    uri = f"oss://bucket/{prefix}/model"
    with monkeypatch.context() as patched:
        patched.setattr(multipart.Oss, step, fails)
        with pytest.raises(DataError, match=f"the output 'output' could not be brought to {uri}: the line is dead"):
            publish(uri, tmp_path, tmp_path / "ledger")
    assert (oss.objects(prefix), oss.uploads()) == ({}, [])
    publish(uri, tmp_path, tmp_path / "ledger")
    assert oss.objects(prefix) == {f"{prefix}/model/{name}": len(data) for name, data in made.items()}


KILLED = """
import os, signal, sys
from pailot.data import multipart, upload
from pailot.data.upload_journal import UploadJournal
step, uri, folder = sys.argv[1:]
real, calls = getattr(multipart.Oss, step), 0
def killed(self, *words):
    global calls
    calls += 1
    answer = real(self, *words)
    if calls == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
setattr(multipart.Oss, step, killed)
upload.THREADS = 1
upload.publish({"output": uri}, folder, "/", UploadJournal(folder + "/ledger"))
"""


@pytest.mark.parametrize("step", ["send", "complete"])
def test_whoever_comes_after_a_killed_upload_removes_what_it_left(oss: Oss, prefix: str, step: str, tmp_path: Path) -> None:
    oss.put(f"{prefix}/model/before", b"mine")
    fill(tmp_path / "output", ["a", "b", "c", "d"])
    words = [sys.executable, "-c", KILLED, step, f"oss://bucket/{prefix}/model", str(tmp_path)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert oss.uploads()
    upload.undo(UploadJournal(str(tmp_path / "ledger")))
    assert (oss.objects(prefix), oss.uploads()) == ({f"{prefix}/model/before": 4}, [])
    assert UploadJournal(str(tmp_path / "ledger")).open() == []


@pytest.mark.parametrize(
    ("uri", "environment", "words"),
    [
        ("oss://no-such-bucket/x", {}, "oss://no-such-bucket/x: there is no such bucket"),
        (
            "oss://bucket/x",
            {"OSS_ACCESS_KEY_SECRET": WRONG},
            r"oss://bucket/x: access is denied \(.*\); its cred",
        ),
        ("oss://bucket/x", {"OSS_ACCESS_KEY_ID": ""}, r"oss://bucket/x: access is denied \(.*\); its cred"),
    ],
)
def test_an_output_that_cannot_be_brought_is_refused_before_anything_is_done(
    oss: Oss, uri: str, environment: dict[str, str], words: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystems.probe_output("oss://bucket/anything/at/all")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(pailot.PailotError, match=words) as caught:
        processor("true").run(outputs={"a": uri})
    assert "\n" not in str(caught.value)
    assert WRONG not in str(caught.value)
    assert not home.exists()
    assert {method for method, _, _ in oss.seen} == {"GET"}


def test_a_job_reads_from_and_writes_to_a_bucket(oss: Oss, prefix: str, home: Path) -> None:
    oss.put(f"{prefix}/in/data", b"x" * 100_000)
    made = processor('cat "$PAI_INPUT_A" "$PAI_INPUT_A" >"$PAI_OUTPUT_M/twice"')
    uri = f"oss://bucket/{prefix}"
    job = made.run(inputs={"a": f"{uri}/in/data"}, outputs={"m": f"{uri}/out/m"}, show_logs=False)
    assert oss.objects(f"{prefix}/out") == {f"{prefix}/out/m/twice": 200_000}
    told = [each.details for each in job.run.events() if each.kind == "progress" and each.details.get("ended")]
    assert [(each["what"], each["done"]) for each in told] == [("input a", 100_000), ("output m", 200_000)]
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
