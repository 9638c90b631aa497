"""Several topics in one stream, all logs of a job in one, tasks by page, and the times of all attempts; against a real server."""

from __future__ import annotations

import http.client
import json
from urllib.parse import quote

import pytest

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

LINES = 30_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started
        assert "defect" not in started.log.read_text()


def live(*topics: str) -> str:
    return "/live?" + "&".join(f"topic={quote(each)}" for each in topics)


def test_several_topics_in_one_stream(server: Server) -> None:
    stream = server.events(live("jobs", "job:both", "log:both"))
    assert next(stream)[:1] == ("begin",)  # before the job is there: its topics are refused, the list goes on
    refused = [next(stream)[2] for _ in range(2)]
    assert {each["topic"] for each in refused} == {"job:both", "log:both"}
    assert {each["data"]["status"] for each in refused} == {404}
    server.submit(job("both", "echo hello", instances=2))
    told = next(data for name, _, data in stream if name == "jobs")
    assert [each["name"] for each in told["data"]] == ["both"]
    stream.close()
    server.wait("both")
    texts: dict[tuple[str, int], str] = {}
    ended = []
    for name, _, data in server.events(live("job:both", "log:both")):
        for piece in data.get("data", ()) if name == "log" else ():
            key = piece["role"], piece["index"]
            texts[key] = texts.get(key, "") + piece.get("text", "")
        ended += [data["topic"]] if name == "end" else []
    assert name == "done"
    assert texts == {("main", 0): "hello\n", ("main", 1): "hello\n"}
    assert sorted(ended) == ["job:both", "log:both"]


def test_topics_that_are_none_and_ids_that_are_none(server: Server) -> None:
    for path in ("/live", live("all"), live("log:a/b/c"), live("log:a/b/0/err"), live("job:"), live("jobs") + "&after=%7B"):
        assert (server.get(path).status, server.get(path).code) == (400, "InvalidParametersError"), path
    assert server.get("/jobs/both/logs").status == 400


def test_a_stranger_hears_nothing_of_a_job(server: Server) -> None:
    server.ask("PUT", "/virtual-clusters/closed", {"vcCapacity": 10})
    server.run(job("private", "echo word", more="defaults: {virtualCluster: closed}"))
    told = list(server.events(live("job:admin~private", "log:admin~private/main/0"), server.user("stranger")))
    assert [each[0] for each in told] == ["begin", "error", "error", "done"]
    assert {each[2]["data"]["code"] for each in told[1:3]} == {"ForbiddenUserError"}
    assert server.get("/jobs/admin~private/timeline", server.user("outsider")).status == 403
    server.ask("DELETE", "/virtual-clusters/closed")


def test_a_revoked_token_ends_the_stream(server: Server, tmp_path: Path) -> None:
    release = tmp_path / "release"
    token = server.user("leaver")
    server.submit(job("talks", f"echo begun; until [ -e {release} ]; do sleep 0.05; done; echo secret"))
    stream = server.events(live("log:admin~talks", "jobs"), token)
    assert any(piece["text"] == "begun\n" for name, _, data in stream if name == "log" for piece in data["data"])
    assert server.ask("DELETE", "/authn/basic/logout", token=token).status == 200
    release.touch()
    server.wait("talks")
    assert "secret" not in json.dumps(list(stream))


def test_no_line_is_lost_or_told_twice_when_the_server_is_killed(tmp_path: Path) -> None:
    count = f"i=0; while [ $i -lt {LINES // 2} ]; do echo line $i; i=$((i + 1)); done"
    with Server(tmp_path / "home", "--stop-jobs") as killed:
        killed.submit(job("long", count, instances=2))
        got: dict[int, list[str]] = {0: [], 1: []}
        after, kills, done = "", 0, False
        while not done:
            try:
                for name, mark, data in killed.events(live("jobs", "log:long"), after=after):
                    after = mark
                    for piece in data["data"] if name == "log" else ():
                        got[piece["index"]].append(piece.get("text", ""))
                    done = name == "end"
                    if kills < 2 and sum(len(each) for each in got.values()) > 4 * (kills + 1):
                        kills += 1
                        killed.kill()
                    if done:
                        break
            except (http.client.HTTPException, OSError):
                pass
            if not done:
                killed.start()
        assert kills == 2
        for texts in got.values():
            assert "".join(texts) == "".join(f"line {number}\n" for number in range(LINES // 2))


def test_all_logs_of_a_job_in_one_stream(server: Server) -> None:
    server.run(job("wide", "echo $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX; sleep 0.1; echo end", instances=2))
    after, texts, ended, lines = "", ["" for _ in range(2)], False, 0
    while not ended:  # over a line that breaks four times, after the second event
        lines += 1
        stream = server.events("/jobs/wide/logs?follow=true&role=main&stream=stdout", after=after)
        for turn, (name, mark, data) in enumerate(stream):
            after, ended = mark, name == "end"
            for piece in data["pieces"]:
                texts[piece["index"]] += piece.get("text", "")
            if turn == 1 and lines <= 4:
                break
        stream.close()
    assert texts == [f"{index}\nend\n" for index in range(2)]


def test_tasks_by_page_and_the_timeline_of_retries(server: Server) -> None:
    command = 'echo $FC_TASK_ATTEMPT_ID; [ $FC_TASK_ATTEMPT_ID -ge 2 ] || [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" != 1 ]'
    server.run(job("tries", command, instances=2, retries=2, more="extras: {pailot: {retryDelaySeconds: 0.1}}"))
    page = server.get("/jobs/tries/tasks?offset=1&limit=1&role=main").json
    assert (page["totalCount"], [each["index"] for each in page["data"]]) == (2, [1])
    assert page["data"][0]["attempt"] == 2
    assert sum(page["states"].values()) == 2
    assert server.get("/jobs/tries/tasks?state=FAILED").json["totalCount"] == 0
    told: dict[str, Any] = server.get("/jobs/tries/timeline?role=main").json
    assert [each["state"] for each in told["attempts"]] == ["SUCCEEDED"]
    tries = [each for each in told["tasks"] if each["index"] == 1]
    assert [(each["attempt"], each["state"], each["exitCode"]) for each in tries] == [
        (0, "FAILED", 1),
        (1, "FAILED", 1),
        (2, "SUCCEEDED", 0),
    ]
    moments = [each[key] for each in tries for key in ("started", "ended")]
    assert moments == sorted(moments)
    assert all(each["created"] <= each["started"] for each in tries)
