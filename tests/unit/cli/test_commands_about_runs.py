"""The commands that look at a run: one body each, over a folder here and over what a server says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pailot.cli.main import main

from ..views.folders import FolderOfARun
from ..views.test_server import JOB, FakeServer, event, log, record

Told = tuple[int, str, str]
Ask = Callable[..., Told]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ask:
    for name in ("PAILOT_SERVER", "PAILOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def asked(*arguments: str) -> Told:
        status = main(arguments)
        return status, *capfd.readouterr()

    return asked


@pytest.fixture
def run(ask: Ask, tmp_path: Path) -> FolderOfARun:
    """Two tasks, of which one was tried twice, and then failed the job."""
    made = FolderOfARun(tmp_path / "home", main=2)
    made.prints(b"first\n")
    made.prints(b"second")
    made.prints(b"again\n", task_attempt=1)
    made.prints(b"other\n", index=1)
    made.task_ends(lastLines=["again"])
    made.ends("FAILED", "main:0 exited with 3", role="main", index=0, exit_code=3)
    return made


@pytest.fixture
def server(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    made = FakeServer()
    monkeypatch.setenv("PAILOT_SERVER", made.stand_in.url)
    monkeypatch.setenv("PAILOT_TOKEN", "token")
    made.answers["GET /api/v2/tokens/check"] = {"username": "ann"}
    yield made
    made.stand_in.close()


def test_logs_of_several_tasks_are_whole_lines_with_their_task(ask: Ask, run: FolderOfARun) -> None:
    told = ["[main:0] first", "[main:0] second", "[main:0] again", "[main:1] other"]
    assert ask("logs", "demo") == (0, "".join(f"{line}\n" for line in told), "")
    assert sorted(ask("logs", "-f", "demo")[1].splitlines()) == sorted(told)


def test_logs_of_one_task_are_as_they_are(ask: Ask, run: FolderOfARun) -> None:
    assert ask("logs", "demo", "main", "0", "--task-attempt", "0") == (0, "first\nsecond", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mian",), "'demo' has no role 'mian'; did you mean 'main'?"),
        (("main", "7"), "role 'main' has tasks 0 to 1"),
        (("--attempt", "7"), "--attempt: 'demo' has attempts 0 to 0"),
        (("--task-attempt", "7"), "--task-attempt: these tasks have attempts 0 to 1"),
        (("main", "1", "--task-attempt", "7"), "--task-attempt: main:1 has attempts 0 to 0"),
    ],
)
def test_logs_that_there_are_not(ask: Ask, run: FolderOfARun, arguments: tuple[str, ...], words: str) -> None:
    assert ask("logs", "demo", *arguments) == (2, "", f"pailot: {words}\n")


def test_where_logs_are(ask: Ask, run: FolderOfARun) -> None:
    places = json.loads(ask("logs", "demo", "main", "0", "--json")[1])
    assert [(each["taskAttempt"], each["url"]) for each in places] == [(0, None), (1, None)]
    assert Path(places[0]["path"]).read_bytes() == b"first\nsecond"


def test_show_wait_why_events_and_ps(ask: Ask, run: FolderOfARun) -> None:
    shown = json.loads(ask("show", "demo", "--json")[1])
    assert (shown["state"], shown["task"], shown["lastLines"]) == ("FAILED", "main:0", ["again"])
    assert ask("wait", "demo") == (1, "demo FAILED: main:0 exited with 3\n", "")
    assert ask("why", "demo")[1].splitlines() == ["demo is FAILED: main:0 exited with 3", "last lines of main:0:", "    again"]
    assert [each["event"] for each in json.loads(ask("events", "demo", "--json")[1])] == ["submitted", "task-ended", "ended"]
    assert [row["name"] for row in json.loads(ask("ps", "--json")[1])] == ["demo"]
    assert ask("stop", "demo")[:2] == (0, "demo FAILED\n")
    assert ask("show", "nothing")[0] == 2


def test_a_wait_that_is_too_short(ask: Ask, tmp_path: Path) -> None:
    run = FolderOfARun(tmp_path / "home")
    assert ask("wait", "demo", "--timeout", "0.01") == (4, "", "pailot: demo is still WAITING after 0.01 s\n")
    run.ends()


def test_the_same_commands_of_a_server(ask: Ask, server: FakeServer) -> None:
    ended: dict[str, Any] = record(state="FAILED", reason="it failed", task="main:0", lastLines=["the cause"])
    server.answers |= {
        f"GET {JOB}/record": ended,
        f"GET {JOB}/why": {"name": "demo", "state": "FAILED", "lines": ["demo is FAILED: it failed"]},
        f"GET {JOB}/journal": [{"event": "submitted", "at": 1.0}],
    }
    assert ask("wait", "demo") == (1, "demo FAILED: it failed\n", "")
    assert json.loads(ask("show", "demo", "--json")[1])["task"] == "main:0"
    assert ask("why", "demo") == (0, "demo is FAILED: it failed\n", "")
    address = json.loads(ask("logs", "demo", "--json")[1])[0]["url"]
    assert address == f"{server.stand_in.url}{JOB}/logs/main/0?stream=all&attempt=0&taskAttempt=0"
    server.answers[f"GET {JOB}/logs/main/0"] = [log(0, 0, 4, "out\n") + event("end", {}, "0.0.4")]
    assert ask("logs", "-f", "demo") == (0, "out\n", "")


def test_a_server_without_the_job_says_where_else_to_look(ask: Ask, server: FakeServer) -> None:
    missing = (404, {"code": "NoJobError", "message": "Job ann~demo is not found."})
    server.answers |= {f"GET {JOB}/{question}": missing for question in ("record", "why", "journal")}
    server.answers[f"PUT {JOB}/executionType"] = missing
    words = "pailot: Job ann~demo is not found; --server none looks at the runs of this machine\n"
    for command in ("show", "wait", "why", "logs", "stop"):
        assert ask(command, "demo") == (2, "", words), command
