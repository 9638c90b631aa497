"""The list of jobs as the web page asks for it: rows, pages from a cursor, and what has not changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        for number in range(5):
            started.run(job(f"job{number}", "[ $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX = 0 ]", instances=1 + number % 2))
        yield started
        assert "defect" not in started.log.read_text()


def test_tasks_by_state(server: Server) -> None:
    rows = {row["name"]: row for row in server.get("/jobs?format=row").json}
    assert rows["job0"]["taskStates"] == {"SUCCEEDED": 1}
    assert sum(rows["job1"]["taskStates"].values()) == 2
    assert rows["job1"]["taskStates"]["FAILED"] == 1


def test_pages_from_a_cursor(server: Server) -> None:
    first = server.get("/jobs?format=row&limit=2").json
    assert [row["name"] for row in first] == ["job4", "job3"]
    told = server.get(f"/jobs?format=row&limit=2&withTotalCount=true&before={first[-1]['cursor']}").json
    assert ([row["name"] for row in told["data"]], told["totalCount"]) == (["job2", "job1"], 5)
    plain = server.get(f"/jobs?before={told['data'][-1]['cursor']}").json
    assert [each["name"] for each in plain] == ["job0"]
    assert "cursor" not in plain[0], "OpenPAI's list is as it was"
    assert [row["name"] for row in server.get(f"/jobs?format=row&order=submissionTime,ASC&before={first[1]['cursor']}").json] == [
        "job4"
    ]


@pytest.mark.parametrize("query", ["before=x", "before=-1", "before=3&order=jobName,ASC"])
def test_a_cursor_that_is_none_is_refused(server: Server, query: str) -> None:
    assert server.get(f"/jobs?format=row&{query}").status == 400


def test_a_list_that_has_not_changed_is_not_sent_again(server: Server) -> None:
    answer = server.get("/jobs?format=row")
    mark = answer.headers["etag"]
    again = server.ask("GET", "/jobs?format=row", headers={"If-None-Match": mark})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", mark)
    other = server.ask("GET", "/jobs?format=row&limit=1", headers={"If-None-Match": mark})
    assert other.status == 200
    packed = server.ask("GET", "/jobs?format=row&limit=5000", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["etag"] == mark


def test_json_is_kept_by_no_cache(server: Server) -> None:
    assert server.get("/jobs/admin~job0").headers["cache-control"] == "no-store"
    assert server.get("/jobs").headers["cache-control"] == "no-store"
    assert server.get("/jobs/admin~none").headers["cache-control"] == "no-store"
    assert server.get("/jobs?format=row").headers["cache-control"] == "private, no-cache"
    assert server.get("/jobs/admin~job0/logs/main/0").headers["cache-control"] == "private, no-cache"


def test_the_last_hours_of_the_machine(tmp_path: Path) -> None:
    with Server(tmp_path, "--stop-jobs") as first:
        assert "history" not in first.get("/capacity").json
        first.submit(job("sleeps", "sleep 600"))
        first.begun("admin~sleeps")
        told = first.get("/capacity?history=24h").json["history"]
        assert len({len(column) for column in told.values()}) == 1
        assert len(told["at"]) in (1, 2)
        for wrong in ("25h", "0m", "x", "-1h", "99999h"):
            assert first.get(f"/capacity?history={wrong}").status == 400
    with Server(tmp_path, "--stop-jobs") as again:
        later = again.get("/capacity?history=1h").json["history"]
        assert set(told["at"][:1]) <= set(later["at"]), "it outlives a restart"
        assert again.get("/capacity?history=1h", None).status == 401
