"""The view of a run on a server, against a server that says what a test wants and counts what it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pailot.client.api import MOST_FOLLOWED
from pailot.errors import NoSuchRun, PailotError
from pailot.views.base import Which
from pailot.views.cancellation import Quit
from pailot.views.connections import Connections
from pailot.views.server import ServerRuns, ServerView

from ...support.stand_in_server import Answer, Request, StandIn

JOB = "/api/v2/jobs/ann~demo"


def record(tasks: int = 1, **more: Any) -> dict[str, Any]:
    described = [{"index": index, "state": "RUNNING", "attempts": 1, "ports": {}} for index in range(tasks)]
    about = {"name": "demo", "id": "ann~demo", "user": "ann", "state": "RUNNING", "attempt": 0, "submitted": 1.0, "reason": None}
    return {**about, "taskRoles": {"main": {"tasks": described}}, **more}


def event(kind: str, data: dict[str, Any], mark: object) -> str:
    return f"event: {kind}\nid: {mark}\ndata: {json.dumps(data)}\n\n"


class FakeServer:
    """Answers by path; a list is a stream of events, each of its connections takes the next text."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {f"GET {JOB}/record": record()}
        self.resumed: list[str] = []
        self.stand_in = StandIn(self.answer)
        self.view = ServerRuns(Connections(self.stand_in.url, "token", "ann")).find("demo")

    def answer(self, request: Request) -> Answer | None:
        path = f"{request.command} {request.path.partition('?')[0]}"
        found = self.answers.get(path)
        if isinstance(found, list) and "text/event-stream" in request.headers.get("Accept", ""):
            self.resumed.append(request.headers.get("Last-Event-ID", ""))
            request.begin_events()
            request.event(found.pop(0))
            return None
        if callable(found):
            found = found()
        if isinstance(found, tuple):
            return found
        return (200, found) if found is not None else (404, {"code": "NoApiError", "message": "no such API"})

    @property
    def asked(self) -> list[str]:
        return [each.removeprefix("GET /api/v2/jobs/").partition("?")[0] for each in self.stand_in.requests]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.stand_in.close()


def test_events_are_what_the_stream_says_and_go_on_where_it_broke(server: FakeServer) -> None:
    begun = event("journal", {"event": "submitted", "at": 1.0}, 10) + event("job", {"state": "RUNNING"}, 10)
    middle = event("task", {"event": "task-ended", "role": "main", "index": 0, "at": 2.0}, 20)
    ended = event("journal", {"event": "ended", "at": 3.0}, 30) + event("end", {"state": "SUCCEEDED"}, 30)
    server.answers[f"GET {JOB}/live"] = [begun, middle + ended]
    assert [each["event"] for each in server.view.events(Quit())] == ["submitted", "task-ended", "ended"]
    assert server.resumed == ["", "10"]
    assert server.asked == ["ann~demo/record", "ann~demo/live", "ann~demo/live"]  # no record and no journal for each of them


def test_a_job_that_never_started_has_a_beginning_and_an_end(server: FakeServer) -> None:
    brief = {"state": "STOPPED", "reason": "stopped by the user", "ended": 5.0}
    server.answers[f"GET {JOB}/live"] = [event("job", {**brief, "state": "WAITING"}, 0) + event("end", brief, 0)]
    told = list(server.view.events(Quit()))
    assert [(each["event"], each["at"]) for each in told] == [("submitted", 1.0), ("ended", 5.0)]
    assert (told[1]["state"], told[1]["reason"]) == ("STOPPED", "stopped by the user")


def test_a_wait_ends_with_the_word_of_the_server(server: FakeServer) -> None:
    states = iter(("RUNNING", "FAILED"))
    server.answers[f"GET {JOB}/record"] = lambda: record(state=next(states))
    server.answers[f"GET {JOB}/live"] = [event("job", {"state": "RUNNING"}, 1) + event("end", {"state": "FAILED"}, 2)]
    assert server.view.wait(None, Quit())
    assert server.asked == ["ann~demo/record", "ann~demo/live", "ann~demo/record"]


def log(attempt: int, task_attempt: int, offset: int, text: str, **more: Any) -> str:
    where = {"attempt": attempt, "taskAttempt": task_attempt, "offset": offset}
    return event("message", {**where, "text": text, **more}, f"{attempt}.{task_attempt}.{offset}")


def followed(view: ServerView, which: Which | None = None) -> list[tuple[str, int, str]]:
    return list(view.lines(which or Which(), True, Quit()))


def test_a_log_is_followed_over_broken_lines_and_retries(server: FakeServer) -> None:
    server.answers[f"GET {JOB}/logs/main/0"] = [
        log(0, 0, 4, "half"),
        log(0, 0, 6, "!\nx") + log(0, 1, 4, "new\n") + event("end", {}, "0.1.4"),
    ]
    assert [text for _, _, text in followed(server.view)] == ["half!", "x", "new"]
    assert server.resumed == ["0.0.0", "0.0.4"]


def test_only_the_attempt_that_was_asked_for_is_followed(server: FakeServer) -> None:
    server.answers[f"GET {JOB}/record"] = record(attempt=1)
    server.answers[f"GET {JOB}/logs/main/0"] = [log(0, 0, 4, "old\n") + log(1, 0, 4, "new\n") + event("end", {}, "1.0.4")]
    assert followed(server.view, Which(attempt=0)) == [("main", 0, "old")]


def test_a_gap_is_told(server: FakeServer) -> None:
    server.answers[f"GET {JOB}/logs/main/0"] = [log(0, 0, 9, "rest\n", missing=4) + event("end", {}, "0.0.9")]
    with pytest.warns(RuntimeWarning, match="main:0: 4 bytes"):
        assert followed(server.view) == [("main", 0, "rest")]


def test_several_logs_at_once(server: FakeServer) -> None:
    server.answers[f"GET {JOB}/record"] = record(3)
    for index in range(3):
        text = "".join(log(0, 0, number, f"{number}\n") for number in range(500))
        server.answers[f"GET {JOB}/logs/main/{index}"] = [text + event("end", {}, "0.0.500")]
    found = followed(server.view)
    for index in range(3):
        assert [text for _, each, text in found if each == index] == [str(number) for number in range(500)]


def test_too_many_logs_are_refused_before_anything_is_opened(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers[f"GET {JOB}/record"] = record(MOST_FOLLOWED + 1)
    with pytest.raises(PailotError, match="201 tasks are too many to follow at once; name a role and an index"):
        followed(server.view)
    assert server.asked == ["ann~demo/record"]


def test_whole_logs_need_one_request_for_each_attempt(server: FakeServer) -> None:
    found = record(2)
    found["taskRoles"]["main"]["tasks"][1]["attempts"] = 0
    server.answers |= {f"GET {JOB}/record": found, f"GET {JOB}/logs/main/0": "one\ntwo\n"}
    assert [text for _, _, text in server.view.lines(Which(), False, Quit())] == ["one", "two"]
    assert server.asked == ["ann~demo/record", "ann~demo/logs/main/0"]


def test_a_job_that_is_not_there(server: FakeServer) -> None:
    for question in ("record", "journal", "why"):
        server.answers[f"GET {JOB}/{question}"] = (404, {"code": "NoJobError", "message": "Job ann~demo is not found."})
    for ask in (server.view.record, server.view.journal, server.view.why):
        with pytest.raises(NoSuchRun, match="is not found") as caught:
            ask()
        assert caught.value.code == "NoJobError"


def test_what_an_openpai_does_not_know_is_asked_in_its_own_way(server: FakeServer) -> None:
    status = {"state": "FAILED", "username": "ann", "attemptId": 0, "appExitDiagnostics": "out of memory"}
    server.answers = {f"GET {JOB}": {"jobStatus": status, "taskRoles": {}}}
    assert server.view.why().lines == ("demo is FAILED: out of memory",)
    assert [each["event"] for each in server.view.journal()] == ["started", "ended"]
    assert server.view.record()["state"] == "FAILED"
    assert server.asked[0] == "ann~demo/why"
    assert not [each for each in server.asked[1:] if each != "ann~demo"]
    with pytest.raises(PailotError, match="is an OpenPAI, which runs no job again"):
        server.view.rerun()


def test_the_list_is_read_page_by_page(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pailot.views.server.PAGE", 1)
    pages = [
        [{"name": "a", "submitted": 1.0}],
        [{"name": "b", "username": "ann", "state": "RUNNING", "submissionTime": 2000}],
        [],
    ]
    asked: list[str] = []

    def answer(request: Request) -> Answer:
        asked.append(request.path)
        return 200, pages[len(asked) - 1]

    with StandIn(answer) as stand_in:
        runs = ServerRuns(Connections(stand_in.url, "token", "ann"))
        rows = runs.rows((), every=True, everyone=False)
    assert [(row["name"], row["submitted"]) for row in rows] == [("a", 1.0), ("b", 2.0)]
    assert all("username=ann" in path and "format=ps" in path for path in asked)
