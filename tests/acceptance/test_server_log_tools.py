"""Logs of a server's jobs: times, search and downloads, over its API and by the command line."""

from __future__ import annotations

import time

import pytest

from .http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
