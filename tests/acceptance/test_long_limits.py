"""Limits of a month and of a year are honest: they hold, and disturb nobody."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, role

from ..support.http_server import Server
from ..support.http_server import job as server_job

YEAR = "maxRunSeconds: 31536000, graceSeconds: 86400, retryDelaySeconds: 86400, holdOnFailureMinutes: 43200"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_run_may_last_a_year(home: Home) -> None:
    done = home.run(job(role("echo done"), options=YEAR))
    assert (done.status, done.out) == (0, "done\n"), done


def test_a_detached_run_may_last_a_year(home: Home) -> None:
    done = home.run(job(role("echo done"), options=YEAR), "--detach")
    assert done.status == 0, done
    assert home.pailot("wait", "demo", "--timeout", "1e9").status == 0
    assert home.show()["state"] == "SUCCEEDED"


def test_a_wait_that_no_clock_can_count_is_refused(home: Home) -> None:
    for seconds in ("inf", "nan", "1e400", "-1"):
        done = home.pailot("wait", "demo", f"--timeout={seconds}")
        assert (done.status, "Traceback" in done.err) == (2, False), done


@pytest.mark.parametrize("seconds", [30 * 86_400, 31_536_000])
def test_a_long_limit_on_a_server_disturbs_nobody(tmp_path: Path, seconds: int) -> None:
    go = tmp_path / "go"
    with Server(tmp_path / "home") as server:
        neighbour, long = server.user("neighbour"), server.user("long")
        waiting = f"until [ -e {go} ]; do sleep 0.05; done"
        assert server.submit(server_job("calm", waiting), neighbour).status == 202
        limit = f"extras: {{pailot: {{maxRunSeconds: {seconds}}}}}"
        assert server.run(server_job("long", f"{waiting} & sleep 0.2", more=limit), long)["jobStatus"]["state"] == "SUCCEEDED"
        keeper = (server.home / "keeper.lock").read_text()
        go.touch()
        status = server.wait("neighbour~calm", neighbour)["jobStatus"]
        assert (status["state"], status["retries"]) == ("SUCCEEDED", 0)
        assert (server.home / "keeper.lock").read_text() == keeper
        assert (server.home / "keeper.log").read_text() == ""


def test_too_few_descriptors_are_said_at_once(home: Home) -> None:
    (home.cwd / "job.yaml").write_text(job(role("echo done")))
    for limit in (8, 20, 24):
        words = f"ulimit -n {limit}; exec {sys.executable} -m pailot run job.yaml"
        process = home.popen(["bash", "-c", words])
        _, told = process.communicate()
        assert process.returncode
        assert told == f"pailot: the limit on open files (ulimit -n) is {limit}, 32 are needed and 64 are enough\n"
    assert json.loads(home.pailot("ps", "--all", "--json").out) == []
