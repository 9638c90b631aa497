"""Something unforeseen happens in each step of every loop: the job concerned fails with a number, others notice nothing."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pailot.testing.runs import PATIENCE, Home, kill_all_with, no_process_left, wait_for
from tests.parts.injected_faults import FIRED, steps

from ..support.http_server import Server

ROOT = Path(__file__).parents[2]
FINAL = ("SUCCEEDED", "FAILED", "STOPPED")
NUMBER = re.compile(r"defect of Pailot, number ([0-9a-f]{8})")
COMMANDS = {"quick": "true", "again": "exit 1", "stop": "sleep 1000", "neighbour": "until [ -e {go} ]; do sleep 0.05; done"}
JOB = """\
protocolVersion: 2
name: {name}
type: job
jobRetryCount: 1
prerequisites: [{{name: image, type: dockerimage, uri: debian}}]
taskRoles:
  main:
    taskRetryCount: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 0, memoryMB: 0, gpu: 0}}
    commands: ["{command}"]
extras:
  jobStatusChangeNotification: {{running: true, succeeded: true, failed: true, stopped: true, retried: true}}
  pailot: {{retryDelaySeconds: 0, graceSeconds: 1}}
"""
SURELY = {
    "Keeper-_obey", "Keeper-_start", "Keeper-_resume", "Keeper-_step", "Keeper-_watch", "Keeper-_stop", "Keeper-_finished",
    "Keeper-_let_go", "Keeper-_round", "Keeper-_timeout", "Keeper-_send", "Keeper-_flush", "Keeper-_hear",
    "Running-started", "Running-happened", "Driver-steps", "Driver-_prepare", "Driver-_launch", "Driver-_follow",
    "Driver-_finish", "Driver-_stop_tasks",
    "LocalEngine-start", "LocalEngine-_fork", "LocalEngine-changes", "LocalEngine-alive", "LocalEngine-close",
    "LocalEngine-child_ended", "LocalEngine-newly_ended", "LocalEngine-stop",
    "Dispatcher-_start", "Dispatcher-_order_start",
    "Dispatcher-_finish", "Dispatcher-_spawn_finish", "Dispatcher-_decide", "Notices-of_change", "Notices-_post",
}  # fmt: skip
"""Steps that every server goes through with these jobs: were they not met, the test would show nothing."""


AFTER_THE_END = {
    "Keeper-_finished", "Keeper-_let_go", "Keeper-_send", "Keeper-tell", "LocalEngine-close", "Running-standing",
    "Notices-of_change",
}  # fmt: skip
"""Steps in which a job may have ended by itself before: that is its end, and the number is in the log."""
ENDS = {"quick": "SUCCEEDED", "again": "FAILED", "stop": "STOPPED"}
MORE_KINDS = {"Keeper": ("stop",), "Driver": ("again", "stop"), "LocalEngine": ("stop",), "Dispatcher": ("again",)}


@contextmanager
def closing_all(marker: str) -> Iterator[None]:
    """Whatever fails, nothing goes on."""
    try:
        yield
    except BaseException:
        kill_all_with(marker)
        raise


class Faulty(Server):
    program = (sys.executable, "-m", "tests.parts.injected_faults")


def _text(name: str, **more: Any) -> str:
    return JOB.format(name=name, command=COMMANDS[name.partition("-")[0]].format(**more))


def _states(server: Server) -> dict[str, str]:
    time.sleep(0.1)  # the list is long, and whoever asks for it all the time keeps the server from its work
    return {each["name"]: each["state"] for each in server.get("/jobs?limit=5000").json}


def test_no_fault_of_one_job_reaches_another(tmp_path: Path) -> None:
    fired, go = tmp_path / "fired", tmp_path / "go"
    environment = {FIRED: str(fired), "PYTHONPATH": str(ROOT), "PAILOT_WEBHOOK": "http://127.0.0.1:9/"}
    with Faulty(tmp_path / "home", **environment) as server, closing_all(str(tmp_path)):
        assert server.submit(_text("neighbour", go=go)).status == 202
        wait_for(lambda: _states(server).get("neighbour") == "RUNNING")
        keeper = (server.home / "keeper.lock").read_text()
        names = [f"{kind}-{step}" for step in steps() for kind in ("quick", *MORE_KINDS.get(step.partition("-")[0], ()))]
        with ThreadPoolExecutor(4) as pool:
            assert {answer.status for answer in pool.map(lambda name: server.submit(_text(name)), names)} == {202}
            to_stop = [name for name in names if name.startswith("stop")]
            wait_for(lambda: not any(_states(server)[name] == "WAITING" for name in to_stop), 90)
            list(pool.map(lambda name: server.ask("PUT", f"/jobs/admin~{name}/executionType", {"value": "STOP"}), to_stop))
        wait_for(lambda: all(state in FINAL for name, state in _states(server).items() if name != "neighbour"), 90)
        assert server.get("/healthz", None).status == 200
        assert (server.home / "keeper.lock").read_text() == keeper
        assert server.run(_text("quick-after"))["jobStatus"]["state"] == "SUCCEEDED"
        go.touch()
        neighbour = server.wait("admin~neighbour")["jobStatus"]
        assert (neighbour["state"], neighbour["retries"]) == ("SUCCEEDED", 0)
        logs = (server.home / "keeper.log").read_text() + server.log.read_text()
        met = dict(line.split(" ")[::-1] for line in fired.read_text().splitlines())
        met.pop("", None)
        wrong = {}
        for name, step in met.items():
            status = server.get(f"/jobs/admin~{name}").json["jobStatus"]
            told = NUMBER.search(status["appExitDiagnostics"] or "")
            if status["state"] == "FAILED" and told and f"defect {told[1]}" in logs:
                continue
            # The dispatcher hears of a job when it may have gone on: what the keeper wrote down is its end.
            later = step in AFTER_THE_END or step.startswith("Dispatcher")
            natural = later and status["state"] in ("FAILED", ENDS[name.partition("-")[0]])
            if not natural or f"injected into {step}" not in logs:
                wrong[name] = (status["state"], status["appExitDiagnostics"])
        assert not wrong, "\n".join(f"{name}: {why}" for name, why in sorted(wrong.items()))
        assert {line.split(" ")[0] for line in fired.read_text().splitlines()} >= SURELY
    no_process_left(str(tmp_path))


@pytest.mark.parametrize(
    ("options", "prefixes"),
    [((), ("Driver-",)), (("--detach",), ("Driver-steps", "Driver-_follow", "LocalEngine-start", "LocalEngine-newly_ended"))],
    ids=["launcher", "supervisor"],
)
def test_a_run_whose_driver_meets_a_fault_has_a_verdict(tmp_path: Path, options: tuple[str, ...], prefixes: tuple[str]) -> None:
    names = [f"quick-{step}" for step in steps() if step.startswith(prefixes)]

    def run(name: str) -> str:
        home = Home(tmp_path / name)
        home.environment |= {FIRED: str(tmp_path / "fired"), "PYTHONPATH": str(ROOT)}
        (home.cwd / "job.yaml").write_text(_text(name))
        process = home.popen([sys.executable, "-m", "tests.parts.injected_faults", "run", "job.yaml", *options])
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, 1), told
        verdict = home.jobs()[0] / "verdict.json"
        wait_for(verdict.exists)
        return str(json.loads(verdict.read_text())["reason"])

    with ThreadPoolExecutor(2) as pool:
        reasons = dict(zip(names, pool.map(run, names), strict=True))
    met = {line.split(" ")[1] for line in (tmp_path / "fired").read_text().splitlines()} - {""}
    assert len(met) > len(names) / 2
    for name in met:
        number = NUMBER.search(reasons[name])
        assert number, (name, reasons[name])
        (log,) = (tmp_path / name).rglob("supervisor.log")
        assert f"defect {number[1]}" in log.read_text()
    no_process_left(str(tmp_path))
