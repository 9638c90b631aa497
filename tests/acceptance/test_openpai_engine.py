"""The engine openpai: another Pailot, and a stand-in that answers as a plain OpenPAI does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from pailot import loads
from pailot.testing.runs import Home, job, processes_with, role, wait_for

from ..support.servers import Server
from .openpai_stand_in import TOKEN, Openpai

SECONDS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.close()


def at_home(folder: Path, server: Server) -> Home:
    """Somebody whose jobs go to a server; the login is used by the engine, and commands look at local runs."""
    home = server.client(folder)
    home.environment |= {"PAILOT_ENGINE": "openpai", "PAILOT_SERVER": "none"}
    home.environment["PAILOT_OPENPAI_SERVER"] = server.url
    return home


@pytest.fixture
def me(server: Server, tmp_path: Path) -> Iterator[Home]:
    home = at_home(tmp_path, server)
    yield home
    home.close()


@pytest.fixture
def openpai() -> Iterator[Openpai]:
    made = Openpai()
    yield made
    made.close()


@pytest.fixture
def you(openpai: Openpai, tmp_path: Path) -> Iterator[Home]:
    """Somebody whose jobs go to the stand-in."""
    home = Home(tmp_path)
    home.environment |= {
        "PAILOT_ENGINE": "openpai",
        "PAILOT_OPENPAI_SERVER": openpai.url,
        "PAILOT_OPENPAI_TOKEN": TOKEN,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    yield home
    home.close()


def out(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout
    return process.stdout


def state(home: Home) -> str:
    done = home.pailot("show", "--json", "demo")
    return str(json.loads(done.out)["state"]) if done.status == 0 else ""


def test_it_looks_as_if_it_ran_here(me: Home) -> None:
    done = me.run(job(role("echo out; echo err >&2; [ $FC_TASK_ATTEMPT_ID = 1 ]", retries=1)))
    assert (done.status, done.lines) == (0, ["out", "out"])
    assert "pailot: demo SUCCEEDED" in done.err
    assert [line for line in done.err.splitlines() if not line.startswith("pailot:")] == ["err", "err"]
    assert me.pailot("logs", "demo").lines == ["out", "err", "out", "err"]
    shown = me.show()
    (task,) = shown["taskRoles"]["main"]["tasks"]
    assert (shown["state"], shown["engine"]) == ("SUCCEEDED", "openpai")
    assert (task["state"], task["exitCode"], task["attempts"]) == ("SUCCEEDED", 0, 2)
    assert set(task["ports"]) >= {"ssh", "http"}
    assert me.run(job(role("true"))).status == 0, "the same name again"


def test_several_tasks_and_retries_of_the_job(me: Home) -> None:
    script = "echo hello $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX of $FC_FRAMEWORK_ATTEMPT_ID; exit 7"
    done = me.run(job(role(script, "ps_server", instances=2, failed=2), job_retries=1), "--quiet")
    assert done.status == 1
    assert sorted(done.lines) == sorted(f"[ps_server:{i}] hello {i} of {a}" for i in (0, 1) for a in (0, 1))
    shown = me.show()
    assert (shown["exitCode"], shown["retries"]) == (7, 1)
    assert "exited with 7" in me.pailot("why", "demo").out


def test_secrets_and_changes_go_along_and_are_masked(me: Home) -> None:
    script = "echo <% $secrets.key %> <% $parameters.x %> | tee /dev/stderr | wc -c"
    text = job(role(script), more="parameters: {x: 1}\nsecrets: {key: no}")
    done = me.run(text, "--quiet", "--set", "parameters.x=22", "--secret", "key=env:KEY", KEY="hunter2hunter2")
    assert (done.lines, done.err.strip()) == (["18"], "****** 22")
    for file in me.folder.rglob("*"):
        if file.is_file():
            assert b"hunter2hunter2" not in file.read_bytes(), file


def test_an_interrupt_stops_the_job_there(me: Home, server: Server) -> None:
    process = me.start(job(role("trap 'echo bye; exit 0' TERM; echo here; while :; do sleep 0.05; done"), name="stopped"))
    assert out(process).readline() == "here\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, rest) == (3, "bye\n")
    there = json.loads(me.pailot("ps", "--json", "--server", server.url).out)[0]
    assert (there["name"].rpartition("-")[0], there["state"]) == ("stopped", "STOPPED")


def test_a_killed_launcher_does_not_end_the_job(me: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    process = me.start(job(role(f"echo one; until [ -e {gate} ]; do sleep 0.05; done; echo two")))
    assert out(process).readline() == "one\n"
    process.kill()
    process.wait()
    assert wait_for(lambda: state(me) == "RUNNING", SECONDS, "the run's being found again")
    follower = subprocess.Popen(
        [sys.executable, "-m", "pailot", "logs", "-f", "demo"],
        env=me.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert out(follower).readline() == "one\n"
    gate.touch()
    done = me.pailot("wait", "demo", timeout=SECONDS)
    assert (done.status, done.out.partition(":")[0]) == (0, "demo SUCCEEDED")
    assert follower.communicate(timeout=SECONDS)[0] == "two\n"
    assert me.pailot("logs", "demo").lines == ["one", "two"]


def test_a_run_without_a_launcher_can_be_stopped(me: Home) -> None:
    assert me.run(job(role("echo one; sleep 1000")), "--detach").status == 0
    for driver in wait_for(lambda: processes_with(str(me.folder)), SECONDS, "a driver"):
        os.kill(driver, signal.SIGKILL)
    assert me.pailot("stop", "demo", timeout=SECONDS).lines == ["demo STOPPED"]
    assert me.pailot("wait", "demo").status == 3


def test_the_server_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Meanwhile nothing is known; afterwards nothing is missing and nothing is there twice."""
    server = Server(tmp_path / "server")
    try:
        me = at_home(tmp_path / "me", server)
        gate = tmp_path / "gate"
        script = f"for i in $(seq 1000); do echo line $i; done; until [ -e {gate} ]; do sleep 0.05; done; echo last"
        process = me.start(job(role(script)))
        assert out(process).readline() == "line 1\n"
        server.kill()
        wait_for(lambda: state(me) == "UNKNOWN", SECONDS, "that the state is unknown")
        server.start()
        wait_for(lambda: state(me) == "RUNNING", SECONDS, "that the state is known again")
        gate.touch()
        rest = out(process).read()  # not `communicate`, which does not know what was read ahead
        assert process.wait(SECONDS) == 0
        assert rest.splitlines() == [*(f"line {i}" for i in range(2, 1001)), "last"]
        me.close()
    finally:
        server.close()


def test_no_server_and_no_login(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.environment |= {"PAILOT_ENGINE": "openpai", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = home.run(job(role("true")))
    assert (done.status, "which server? set PAILOT_OPENPAI_SERVER" in done.err) == (4, True)
    home.environment |= {"PAILOT_OPENPAI_SERVER": "http://127.0.0.1:1", "PAILOT_OPENPAI_TOKEN": TOKEN}
    done = home.run(job(role("true"), name="other"))
    assert (done.status, "http://127.0.0.1:1 cannot be reached" in done.err) == (4, True)


def test_it_says_what_the_job_waits_for(tmp_path: Path) -> None:
    server = Server(tmp_path / "server", PAILOT_CPUS="1")
    try:
        me = at_home(tmp_path / "me", server)
        process = me.start(job(role("true", instances=2)))
        assert process.stderr
        wait_for(lambda: state(me) == "WAITING", SECONDS, "that it waits")
        wait_for(lambda: "it can never start: it asks for 2 CPUs" in me.pailot("why", "demo").out, SECONDS, "the reason")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 3
        me.close()
    finally:
        server.close()


# A plain OpenPAI


def test_a_plain_openpai_is_asked_again_and_again(openpai: Openpai, you: Home) -> None:
    process = you.start(job(role("true"), more="secrets: {key: hunter2hunter2}"), "--quiet")
    wait_for(lambda: openpai.submitted, SECONDS, "the submission")
    assert "hunter2hunter2" in openpai.submitted
    wait_for(lambda: state(you) == "WAITING", SECONDS, "that it waits")
    openpai.run()
    openpai.say("one\n")
    assert out(process).readline() == "one\n"
    wait_for(lambda: state(you) == "RUNNING", SECONDS, "that it runs")
    openpai.say("the key is hunter2")
    openpai.say("hunter2.\n")
    assert out(process).readline() == "the key is ******.\n"
    openpai.say("no end of line")
    openpai.end("FAILED", 3, appExitDiagnostics="it was bad\nvery bad", appExitTriggerTaskRoleName="main")
    rest, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, rest) == (1, "no end of line")
    assert "it was bad" in err
    assert not openpai.leaked, "the log service is not given our token"
    assert you.pailot("logs", "demo").out == "one\nthe key is ******.\nno end of line"


@pytest.mark.parametrize("chosen", ["", "environment: {PYTHONUNBUFFERED: ''}"])
def test_an_openpai_is_told_that_python_prints_at_once(openpai: Openpai, you: Home, chosen: str) -> None:
    process = you.start(job(role("echo a\necho b"), options=chosen), "--quiet")
    wait_for(lambda: openpai.submitted, SECONDS, "the submission")
    (script,) = loads(openpai.submitted).task_roles["main"].commands
    openpai.run()
    openpai.end("SUCCEEDED", 0)
    process.communicate(timeout=SECONDS)
    added = "" if chosen else 'export PYTHONUNBUFFERED="${PYTHONUNBUFFERED-1}"; '
    assert script.rstrip() == f"{added}echo a\necho b"


def test_an_openpai_that_is_away_is_unknown_and_nothing_is_doubled(openpai: Openpai, you: Home) -> None:
    process = you.start(job(role("true")), "--quiet")
    wait_for(lambda: openpai.submitted, SECONDS, "the submission")
    openpai.run()
    openpai.say("one\n")
    assert out(process).readline() == "one\n"
    openpai.away = True
    wait_for(lambda: state(you) == "UNKNOWN", SECONDS, "that the state is unknown")
    openpai.say("two\n")
    openpai.away = False
    assert out(process).readline() == "two\n"
    openpai.end()
    assert (process.communicate(timeout=SECONDS)[0], process.returncode) == ("", 0)


def test_attempts_that_came_and_went_between_two_looks(openpai: Openpai, you: Home) -> None:
    openpai.with_all = False
    process = you.start(job(role("true"), job_retries=2), "--quiet")
    wait_for(lambda: openpai.submitted, SECONDS, "the submission")
    openpai.run()
    openpai.say("first\n")
    assert out(process).readline() == "first\n"
    openpai.away = True
    openpai.retry()
    openpai.say("second\n", "stderr")
    openpai.retry()
    openpai.say("third\n")
    openpai.end()
    openpai.away = False
    assert process.communicate(timeout=SECONDS)[0] == "third\n"
    for attempt, line in enumerate(("first", "second", "third")):
        assert you.pailot("logs", "demo", "--attempt", str(attempt)).lines == [line]
    assert you.show()["retries"] == 2


def test_stopping_there(openpai: Openpai, you: Home) -> None:
    process = you.start(job(role("true")), "--quiet")
    wait_for(lambda: openpai.submitted, SECONDS, "the submission")
    openpai.run()
    wait_for(lambda: state(you) == "RUNNING", SECONDS, "that it runs")
    assert you.pailot("stop", "--now", "--no-wait", "demo").status == 0
    wait_for(lambda: openpai.stopped, SECONDS, "the stop")
    assert openpai.stopped == [{"value": "STOP"}]
    openpai.end("STOPPED", -220)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 3


def test_a_launcher_killed_before_it_has_submitted(openpai: Openpai, you: Home) -> None:
    openpai.away = True
    process = you.start(job(role("true")), "--quiet")
    wait_for(lambda: list(you.folder.rglob("remote.json")), SECONDS, "that it is about to submit")
    process.kill()
    process.wait()
    openpai.away = False
    done = you.pailot("wait", "demo", timeout=SECONDS)
    assert done.status == 1
    assert "killed before the job was submitted" in done.out
    assert not openpai.submitted


@pytest.mark.parametrize("patient", [False, True])
def test_whoever_stops_a_job_does_not_wait_for_ever_for_its_server(openpai: Openpai, you: Home, patient: bool) -> None:
    process = you.start(job(role("true"), options="graceSeconds: 1" if patient else ""))
    wait_for(lambda: openpai.submitted, SECONDS, "the submission")
    openpai.run()
    wait_for(lambda: state(you) == "RUNNING", SECONDS, "that it runs")
    openpai.away = True
    wait_for(lambda: state(you) == "UNKNOWN", SECONDS, "that the state is unknown")
    process.send_signal(signal.SIGTERM)
    if not patient:
        wait_for(lambda: state(you) == "STOPPING", SECONDS, "that it is to stop")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, "pailot: the server cannot be reached, so the job may go on there" in err) == (4, True)
    openpai.away = False

    def stop() -> None:
        wait_for(lambda: openpai.stopped, SECONDS, "the stop")
        openpai.end("STOPPED", -220)

    stopper = threading.Thread(target=stop)
    stopper.start()
    assert you.pailot("wait", "demo", timeout=SECONDS).status == 3
    stopper.join()


def test_a_wrong_token(openpai: Openpai, you: Home) -> None:
    you.environment["PAILOT_OPENPAI_TOKEN"] = "wrong"
    done = you.run(job(role("true")))
    assert (done.status, "Your token is invalid" in done.err) == (5, True)
