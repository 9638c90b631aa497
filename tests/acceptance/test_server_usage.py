"""What the tasks of a server's jobs use, over its API: a real job that runs for longer than the time between samples."""

from __future__ import annotations

import time

import pytest

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "python3 -c 'import time; block = bytearray(30 << 20); time.sleep(8)'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started
        assert "defect" not in started.log.read_text()


def test_the_curve_and_the_peaks_of_a_job(server: Server) -> None:
    assert server.submit(job("long", LONG)).status == 202
    deadline = time.monotonic() + 60
    while True:
        (task,) = server.get("/jobs/admin~long/usage").json["tasks"]
        if task["now"] is not None or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert task["now"]["memoryMB"] == pytest.approx(37, abs=8)
    assert task["now"]["processes"] >= 1
    assert task["asked"]["memoryMB"] > 0
    server.wait("admin~long")
    told = server.get(f"/jobs/admin~long/usage/{task['role']}/0?points=10").json
    assert told["now"] is None
    (attempt,) = told["attempts"]
    series = attempt["series"]
    assert len({len(column) for column in series.values() if column is not None}) == 1
    assert series["at"] == sorted(series["at"])
    assert attempt["peak"]["memoryMB"] == pytest.approx(37, abs=8)
    assert series["gpuPercent"] is None
    record = server.get("/jobs/admin~long/record").json
    assert record["taskRoles"][task["role"]]["tasks"][0]["usage"]["peakMemoryMB"] == told["peak"]["peakMemoryMB"]


def test_what_is_asked_for_wrongly_or_by_others_is_refused(server: Server) -> None:
    server.ask("PUT", "/virtual-clusters/lab", {"vcCapacity": 10})
    server.run(job("short", more="defaults: {virtualCluster: lab}\n"))
    (task,) = server.get("/jobs/admin~short/usage").json["tasks"]
    assert task["peak"]["peakMemoryMB"] > 0
    path = f"/jobs/admin~short/usage/{task['role']}"
    assert server.get(f"{path}/0").json["attempts"] == []
    assert server.get(f"{path}/7").status == 404
    assert server.get(f"{path}/0?points=1").status == 400
    assert server.get("/jobs/admin~short/usage?attempt=9").status == 404
    other = server.user("eve")  # who may use the virtual cluster `default` alone
    assert server.get(f"{path}/0", other).status == 403
    assert server.get("/jobs/admin~short/usage", other).status == 403
