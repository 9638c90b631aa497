"""What `pailot submit` says at once, against a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE, Home, job, role

from ..support.servers import Server, submit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"), PAILOT_CPUS="4", PAILOT_MEMORY_MB="4000")
    yield started
    started.close()


@pytest.fixture
def me(server: Server, tmp_path: Path) -> Iterator[Home]:
    home = server.client(tmp_path)
    yield home
    home.close()


def test_a_job_that_can_never_start_is_told_at_once(me: Home) -> None:
    done = submit(me, job(role("true"), name="huge").replace("cpu: 1", "cpu: 64"))
    assert (done.status, done.lines) == (0, ["huge is submitted; pailot logs -f huge"])
    assert done.err == "pailot: it can never start: it asks for 64 CPUs, and this machine has 4\n"
    assert submit(me, job(role("true"), name="huge2").replace("cpu: 1", "cpu: 64"), "--quiet").err == ""
    assert me.pailot("stop", "huge", "huge2").status == 0


def test_a_name_that_is_taken(me: Home) -> None:
    assert submit(me, job(role("exit 1"), name="again"), "--follow").status == 1
    taken = submit(me, job(role("true"), name="again"))
    hint = "use --name or --unique for another, or --replace if it has ended"
    assert (taken.status, taken.err) == (2, f"pailot: Job admin~again already exists; {hint}\n")
    assert submit(me, job(role("true"), name="again"), "--replace", "--follow").status == 0
    assert me.show("again")["state"] == "SUCCEEDED"
    # What runs is not replaced, nor is anything lost to a file that is wrong.
    submit(me, job(role("sleep 1000"), name="busy"))
    refused = submit(me, job(role("true"), name="busy"), "--replace")
    assert refused.status == 2
    assert "stop it before you delete it" in refused.err
    assert submit(me, job(role("true"), name="again"), "--replace", "--after", "nowhere").status == 2
    itself = submit(me, job(role("true"), name="again"), "--replace", "--after", "again:end")
    assert itself.err == "pailot: --replace: 'again' cannot follow the job that it replaces\n"
    assert me.show("again")["state"] == "SUCCEEDED"
    assert me.pailot("stop", "busy", "--now").status == 0


def test_code_that_was_not_sent(me: Home) -> None:
    (me.cwd / "train.py").write_text("print('trained')\n")
    done = submit(me, job(role("python3 train.py"), name="bare"))
    words = "no code was sent, and the commands name 'train.py', which is in this folder: --code . sends it along"
    assert done.err == f"pailot: {words}\n"
    assert submit(me, job(role("python3 train.py"), name="with-code"), "--code", ".", "--quiet", "--follow").lines[0] == "trained"
    other = submit(me, job(role("python3 other.py"), name="other"))
    assert (
        other.err == "pailot: no code was sent (--code DIR), and tasks start in an empty folder: the commands name 'other.py'\n"
    )
    for name in ("bare", "other"):
        me.pailot("wait", name)


def test_jobs_that_follow_from_the_command_line(me: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    submit(me, job(role(f"until [ -e {gate} ]; do sleep 0.05; done"), name="prepare"))
    assert submit(me, job(role("exit 3"), name="train"), "--after", "prepare").status == 0
    assert submit(me, job(role("true"), name="clean"), "--after", "train:end", "--after", "prepare:success").status == 0
    assert submit(me, job(role("true"), name="publish"), "--after", "train").status == 0
    assert me.pailot("why", "clean").lines == [
        "clean is WAITING: it waits for admin~train to end and for admin~prepare to succeed"
    ]
    gate.touch()
    assert me.pailot("wait", "clean").status == 0
    stopped = me.pailot("wait", "publish")
    assert stopped.status == 3
    assert "it was to start after admin~train succeeded, and admin~train FAILED" in stopped.out
    for wrong, words in (
        ("train:later", "--after: 'train:later' should be JOB, JOB:success or JOB:end"),
        ("nowhere", "after: there is no job admin~nowhere to wait for"),
    ):
        refused = submit(me, job(role("true"), name="wrong"), "--after", wrong)
        assert (refused.status, refused.err) == (2, f"pailot: {words}\n")


@pytest.mark.parametrize("how", ["submit", "logs", "wait"])
def test_ctrl_c_in_a_follow_says_that_the_job_goes_on(me: Home, how: str) -> None:
    name = f"long-{how}"
    (me.cwd / "job.yaml").write_text(job(role("echo begun; sleep 1000"), name=name))
    commands = {"submit": ["submit", "job.yaml", "--follow"], "logs": ["logs", "-f", name], "wait": ["wait", name]}
    if how != "submit":
        assert me.pailot("submit", "job.yaml").status == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "pailot", *commands[how]],
        env=me.environment,
        cwd=me.cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stderr
    if how == "wait":
        follower = me.pailot("ps", "--json")
        assert any(each["name"] == name for each in json.loads(follower.out))
        wait_until_listening(process.pid)
    else:
        assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    full = f"admin~{name}" if how == "submit" else name
    assert process.returncode == 130
    assert err.endswith(f"\npailot: {full} goes on; pailot logs -f {full} follows it again, pailot stop {full} ends it\n")
    assert me.show(name)["state"] in ("WAITING", "RUNNING")
    assert me.pailot("stop", name, "--now").status == 0


def wait_until_listening(pid: int) -> None:
    """Until the command has a connection to the server: then it waits."""
    from pailot.testing.runs import wait_for

    wait_for(lambda: any("socket:" in each for each in links(pid)))


def links(pid: int) -> list[str]:
    import os

    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(each))
        except OSError:
            continue
    return found
