"""Processing jobs whose data is elsewhere, for real: events, stops, what a task may write, where credentials are not."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pailot.engines.preparation import sandbox
from pailot.processor import Processor, Session
from pailot.testing.runs import wait_for

from ..parts.stores import S3, SECRET
from ..support.web_server import WebServer


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PAILOT_SERVER", "PAILOT_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    (tmp_path / "s3").mkdir()
    with S3(tmp_path / "s3") as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def processor(command: str, **more: str) -> Processor:
    return Processor("python:3.12", command, session=Session(engine="local"), instance_type="local", **more)  # type: ignore[arg-type]  # texts


def test_data_of_a_bucket_and_back(s3: S3, here: Path, tmp_path: Path) -> None:
    s3.put("in/data", b"x" * 100_000)
    (here / "code").mkdir()
    (here / "code" / "file").write_text("x")
    made = processor('cat "$PAI_INPUT_A" "$PAI_INPUT_A" >"$PAI_OUTPUT_M/twice"', source_dir="code")
    job = made.run(inputs={"a": "s3://bucket/in/data"}, outputs={"m": "s3://bucket/out/m"}, show_logs=False)
    assert s3.objects("out") == {"out/m/twice": 200_000}
    told = [each.details for each in job.run.events() if each.kind == "progress" and each.details.get("ended")]
    assert [(each["what"], each["done"], each["total"]) for each in told] == [
        ("input a", 100_000, 100_000),
        ("output m", 200_000, 200_000),
    ]
    again = made.run(inputs={"a": "s3://bucket/in/data"}, outputs={"m": "s3://bucket/out/m2"}, show_logs=False)
    packed = [each.details["packed"] for run in (job.run, again.run) for each in run.events() if each.kind == "code"]
    assert packed == [True, False]
    assert not [each for each in again.run.events() if each.details.get("what") == "input a"]  # it is here already
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.skipif(not sandbox.works(), reason="bubblewrap is missing; enable this test with: sudo apt-get install bubblewrap")
def test_inputs_are_for_reading_only(s3: S3, here: Path) -> None:
    s3.put("in/data", b"far")
    (here / "near").mkdir()
    (here / "near" / "data").write_text("near")
    for way in ({"a": "s3://bucket/in"}, {"a": "near"}, {"a": "near/data"}):
        command = "cat /ml/input/data/a/data; for f in data new; do (echo x >>/ml/input/data/a/$f) 2>/dev/null && exit 1; done; :"
        job = processor(command).run(inputs=way, show_logs=False)
        assert next(iter(job.logs())) in ("far", "near")
    assert os.listdir(here / "near") == ["data"]
    assert (here / "near" / "data").read_text() == "near"


def test_a_job_can_be_stopped_while_its_input_comes(here: Path, tmp_path: Path) -> None:
    stalled = threading.Event()
    release = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "2000000")
        request.end_headers()
        request.wfile.write(b"x" * 1_000_000)
        stalled.set()
        release.wait(60)

    web = WebServer(answer)
    try:
        job = processor("true").run(inputs={"a": f"http://{web.host}/data"}, wait=False)
        assert stalled.wait(60)
        job.stop()
        assert job.status == "Terminated"
        kept = list((tmp_path / "home").rglob("*.part"))
        wait_for(lambda: not any(path.exists() for path in kept))
        assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.stat().st_size == 1_000_000]
    finally:
        release.set()
        web.close()
