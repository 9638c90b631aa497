"""Logs of a server's jobs: times, search and downloads, over its API and by the command line."""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
import zipfile

import pytest

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PRINTS = "echo one; sleep 0.3; echo oh >&2; sleep 0.3; echo two"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        started.ask("PUT", "/virtual-clusters/lab", {"vcCapacity": 10})
        yield started
        assert "defect" not in started.log.read_text()


@pytest.fixture(scope="module")
def role(server: Server) -> str:
    """The role of a job that has printed something, out of the reach of other users."""
    before = time.time()
    server.run(job("prints", PRINTS, more="defaults: {virtualCluster: lab}\n"))
    assert time.time() - before >= 0.6
    (task,) = server.get("/jobs/admin~prints/tasks").json["data"]
    return str(task["role"])


def test_each_part_of_a_log_has_its_time_and_its_stream(server: Server, role: str) -> None:
    base = f"/jobs/admin~prints/logs/{role}/0/index"
    told = server.get(base).json
    entries = told["entries"]
    assert (told["indexed"], told["ended"], told["more"], told["begin"], told["size"]) == (True, True, False, 0, 11)
    assert entries["offset"] == [0, 4, 7]
    assert entries["stderr"] == [False, True, False]
    first, second, third = entries["at"]
    assert 0.2 <= (second - first) / 1000 <= 5
    assert 0.2 <= (third - second) / 1000 <= 5
    assert abs(first / 1000 - time.time()) < 120
    assert server.get(f"{base}?from=5&to=6").json["entries"]["offset"] == [4]
    assert server.get(f"{base}?stream=stdout").json["entries"]["offset"] == [0, 4]
    cut = server.get(f"{base}?limit=2").json
    assert (cut["more"], cut["entries"]["offset"]) == (True, [0, 4])


@pytest.mark.parametrize("query", ["from=x", "to=-1", "limit=0", "limit=99999999", "stream=no", "attempt=a"])
def test_a_wrong_question_about_times_is_refused(server: Server, role: str, query: str) -> None:
    assert server.get(f"/jobs/admin~prints/logs/{role}/0/index?{query}").status == 400


def test_times_of_other_users_jobs_are_not_shown(server: Server, role: str) -> None:
    other = server.user("eve")
    assert server.get(f"/jobs/admin~prints/logs/{role}/0/index", other).status == 403
    assert server.get(f"/jobs/admin~prints/logs/{role}/9/index").status == 404
    assert server.get(f"/jobs/admin~prints/logs/{role}/0/index?attempt=7").status == 404


def found(server: Server, query: str, token: str = "", job: str = "admin~prints") -> list[dict[str, Any]]:
    answer = server.get(f"/jobs/{job}/search?{query}", token)
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.text.splitlines()]


def test_lines_are_found_over_all_tasks_and_attempts(server: Server) -> None:
    server.run(
        job(
            "retries",
            'echo "Loss nan in $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"; [ $FC_TASK_ATTEMPT_ID = 1 ]',
            instances=2,
            retries=1,
        )
    )
    *hits, end = found(server, "q=loss%20NAN", job="admin~retries")
    assert sorted((each["index"], each["taskAttempt"], each["text"]) for each in hits) == [
        (index, number, f"Loss nan in {index}") for index in (0, 1) for number in (0, 1)
    ]
    assert {(each["line"], each["offset"], each["match"], each["stderr"]) for each in hits} == {(1, 0, 0, False)}
    assert all(abs(each["at"] / 1000 - time.time()) < 120 for each in hits)
    assert (end["end"], end["hits"], end["stopped"]) == (True, 4, "")
    assert len(found(server, "q=loss%20nan&case=true", job="admin~retries")) == 1
    assert [each["index"] for each in found(server, "q=%5EL.*0%24&regex=1&case=1", job="admin~retries")[:-1]] == [0, 0]
    *some, end = found(server, "q=n&limit=3", job="admin~retries")
    assert (len(some), end["stopped"]) == (3, "limit")
    *some, end = found(server, "q=n&regex=1&limit=3", job="admin~retries")
    assert (len(some), end["stopped"]) == (3, "limit")
    assert len(found(server, "q=nan&index=1&taskAttempt=0", job="admin~retries")) == 2


@pytest.mark.parametrize("query", ["", "q=", "q=(&regex=1", "q=x&limit=0", "q=a%0Ab", "q=" + "x" * 1001, "q=x&stream=no"])
def test_a_search_that_is_none_is_refused(server: Server, role: str, query: str) -> None:
    answer = server.get(f"/jobs/admin~prints/search?{query}")
    assert (answer.status, answer.code) == (400, "InvalidParametersError"), answer


def test_logs_of_others_are_not_searched(server: Server, role: str) -> None:
    other = server.user("mallory")
    assert server.get("/jobs/admin~prints/search?q=one", other).status == 403
    assert server.get("/jobs/admin~prints/search?q=one", None).status == 401
    assert server.get("/jobs/admin~none/search?q=one").status == 404
    assert server.get("/jobs/admin~prints/search?q=one&role=nope").status == 404


def test_a_pattern_that_never_ends_holds_nobody_up(server: Server) -> None:
    server.run(job("long-line", "printf 'a%.0s' $(seq 5000); echo"))
    patient = server.user("eva")
    answers: list[list[dict[str, Any]]] = []
    thread = threading.Thread(target=lambda: answers.append(found(server, "regex=1&q=(a*)*b", job="admin~long-line")))
    began = time.monotonic()
    thread.start()
    slowest = 0.0
    while thread.is_alive():
        before = time.monotonic()
        assert server.get("/jobs/admin~long-line", patient).status == 200
        assert len(found(server, "q=aaa", patient, job="admin~long-line")) == 2
        assert len(found(server, "q=aaa&regex=1", patient, job="admin~long-line")) == 2
        slowest = max(slowest, time.monotonic() - before)
        time.sleep(0.2)
    thread.join()
    assert answers == [[{"end": True, "hits": 0, "bytes": 0, "stopped": "time"}]]
    assert time.monotonic() - began < 40
    assert slowest < 10


def test_logs_are_downloaded_as_files(server: Server, role: str) -> None:
    path = f"/jobs/admin~prints/logs/{role}/0"
    plain = server.get(f"{path}?download=1")
    assert plain.headers["content-disposition"] == f'attachment; filename="admin~prints-{role}-0-0.0-all.log"'
    assert plain.headers["x-content-type-options"] == "nosniff"
    assert plain.body == b"one\noh\ntwo\n"
    packed = server.get(f"{path}?download=gz&stream=stdout")
    assert packed.headers["content-disposition"] == f'attachment; filename="admin~prints-{role}-0-0.0-stdout.log.gz"'
    assert gzip.decompress(packed.body) == b"one\ntwo\n"
    assert server.get(f"{path}?download=1").headers["content-type"].startswith("text/plain")
    assert "content-disposition" not in server.get(path).headers
    assert server.get(f"{path}?download=x").status == 400


def test_all_logs_of_a_job_are_one_file(server: Server) -> None:
    text = job("archive", "head -c 3000000 /dev/zero | tr '\\0' x; echo; [ $FC_TASK_ATTEMPT_ID = 1 ]", instances=2, retries=1)
    server.run(text)
    answer = server.get("/jobs/admin~archive/logs.zip")
    assert answer.headers["content-disposition"] == 'attachment; filename="admin~archive.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.body)) as file:
        assert file.testzip() is None
        assert sorted(file.namelist()) == [
            f"admin~archive/attempt-0/main-{index}/try-{number}.log" for index in (0, 1) for number in (0, 1)
        ]
        assert {each.file_size for each in file.infolist()} == {3_000_001}
    assert len(answer.body) < 200_000
    assert server.get("/jobs/admin~archive/logs.zip?role=nope").status == 404


def test_a_key_opens_the_files_of_one_job(server: Server, role: str) -> None:
    key = server.get("/jobs/admin~prints/logs/key").json["key"]
    assert server.get(f"/jobs/admin~prints/logs.zip?key={key}", None).status == 200
    assert server.get(f"/jobs/admin~prints/logs/{role}/0?download=1&key={key}", None).body == b"one\noh\ntwo\n"
    assert server.get(f"/jobs/admin~retries/logs.zip?key={key}", None).status == 401
    assert server.get(f"/jobs/admin~prints/search?q=one&key={key}", None).status == 401
    assert server.get("/jobs/admin~prints/logs.zip", None).status == 401
    other = server.user("trudy")
    assert server.get("/jobs/admin~prints/logs.zip", other).status == 403
    assert server.get("/jobs/admin~prints/logs/key", other).status == 403
