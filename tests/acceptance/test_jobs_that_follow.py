"""Jobs that follow jobs, on a real server: they wait, start, or are stopped; over crashes of the server, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from pailot.testing.runs import wait_for

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BY_GATE = "until [ -e {gate} ]; do sleep 0.02; done; "


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started


def held(gate: Path, name: str, command: str = "true") -> str:
    """A job that waits for a file."""
    return job(name, BY_GATE.format(gate=gate) + command)


def why(server: Server, name: str, token: str = "") -> str:
    return str(server.get(f"/jobs/{name}/why", token).json["lines"][-1])


def state(server: Server, name: str) -> str:
    return str(server.get(f"/jobs/{name}").json["jobStatus"]["state"])


def test_a_job_starts_when_those_before_it_have_succeeded(server: Server, tmp_path: Path) -> None:
    gate, other, order = tmp_path / "gate", tmp_path / "other", tmp_path / "order"
    server.submit(held(gate, "first", f"echo first >> {order}"))
    server.submit(held(other, "aside", f"echo aside >> {order}; exit 3"))
    extras = "extras: {pailot: {after: [first, 'admin~aside:end']}}"
    assert server.submit(job("second", f"echo second >> {order}", more=extras)).status == 202
    assert server.submit(job("third", f"echo third >> {order}"), query="?after=second:success").status == 202
    assert why(server, "second") == "second is WAITING: it waits for admin~first to succeed and for admin~aside to end"
    assert why(server, "third") == "third is WAITING: it waits for admin~second to succeed"
    told = server.get("/jobs/second").json
    assert [each["taskState"] for each in told["taskRoles"]["main"]["taskStatuses"]] == ["WAITING"]
    gate.touch()
    server.wait("first")
    assert why(server, "second") == "second is WAITING: it waits for admin~aside to end"
    after = server.get("/jobs/second/record").json["after"]
    assert after == [
        {"name": "admin~first", "on": "success", "state": "SUCCEEDED"},
        {"name": "admin~aside", "on": "end", "state": None},
    ]
    other.touch()
    assert server.wait("third")["jobStatus"]["state"] == "SUCCEEDED"
    assert order.read_text().split() == ["first", "aside", "second", "third"]


def test_what_a_failure_does_to_those_behind_it(server: Server, tmp_path: Path) -> None:
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    server.submit(held(gate, "breaks", "exit 3"))
    server.submit(job("follows", f"touch {ran}"), query="?after=breaks")
    server.submit(job("follows-that", f"touch {ran}"), query="?after=follows")
    server.submit(job("cleans-up", "true"), query="?after=follows:end,breaks:end")
    gate.touch()
    ended = server.wait("follows")["jobStatus"]
    assert ended["state"] == "STOPPED"
    words = "it was to start after admin~breaks succeeded, and admin~breaks FAILED: main:0 exited with 3"
    assert ended["appExitDiagnostics"].startswith(words)
    assert server.wait("follows-that")["jobStatus"]["appExitDiagnostics"].startswith(
        "it was to start after admin~follows succeeded, and admin~follows STOPPED: it was to start"
    )
    assert server.wait("cleans-up")["jobStatus"]["state"] == "SUCCEEDED"
    assert not ran.exists()
    # The same for what has failed already: a script need not know how far the first one is.
    assert server.run(job("too-late", "true", more="extras: {pailot: {after: breaks}}"))["jobStatus"]["state"] == "STOPPED"
    server.submit(job("in-time", "true"), query="?after=breaks:end,cleans-up")
    assert server.wait("in-time")["jobStatus"]["state"] == "SUCCEEDED"


def test_a_job_that_waits_for_another_can_be_stopped(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    server.submit(held(gate, "long"))
    server.submit(job("behind", "true"), query="?after=long")
    server.submit(job("stopped-with-it", "true"), query="?after=behind")
    server.ask("PUT", "/jobs/behind/executionType", {"value": "STOP"})
    assert server.wait("behind")["jobStatus"]["appExitDiagnostics"] == "stopped before it started"
    assert server.wait("stopped-with-it")["jobStatus"]["state"] == "STOPPED"
    server.submit(job("other", "true"), query="?after=long")
    server.ask("PUT", "/jobs/long/executionType", {"value": "STOP", "now": True})
    assert server.wait("other")["jobStatus"]["appExitDiagnostics"] == (
        "it was to start after admin~long succeeded, and admin~long STOPPED: stopped by the user"
    )


def test_only_jobs_that_one_may_see_can_be_followed(server: Server, tmp_path: Path) -> None:
    server.ask("PUT", "/virtual-clusters/closed", {"vcCapacity": 10})
    owner, stranger = server.user("owner", clusters=("closed",)), server.user("stranger")
    in_closed = "defaults: {virtualCluster: closed}"
    server.run(job("private", "true", more=in_closed), owner)
    for wish, name in (("owner~private", "owner~private"), ("private", "stranger~private"), ("nobody~none", "nobody~none")):
        answer = server.submit(job("curious", "true"), stranger, f"?after={wish}")
        assert (answer.status, answer.code) == (400, "InvalidProtocolError")
        assert answer.json["message"] == f"after: there is no job {name} to wait for"
    itself = server.submit(job("itself", "true", more="extras: {pailot: {after: itself}}"), stranger)
    assert itself.json["message"] == "after: there is no job stranger~itself to wait for"
    assert server.submit(job("allowed", "true"), owner, "?after=private").status == 202
    for bad in ("a:b", ":end", "x:", "a b"):
        answer = server.submit(job("bad", "true"), owner, f"?after={bad.replace(' ', '%20')}")
        assert (answer.status, answer.code) == (400, "InvalidProtocolError"), bad
    wrong = server.submit(job("bad", "true", more="extras: {pailot: {after: [3, 'a:late']}}"), owner)
    assert wrong.status == 400
    assert "JOB:success or JOB:end" in wrong.json["message"]
    server.wait("allowed", owner)
    server.ask("DELETE", "/virtual-clusters/closed")


def test_a_job_that_is_gone_has_done_its_part(server: Server, tmp_path: Path) -> None:
    """Its end was counted when it came, so that it may be removed while others are still waited for."""
    gate = tmp_path / "gate"
    server.run(job("done", "true"))
    server.submit(held(gate, "slow"))
    server.submit(job("last", "true"), query="?after=done,slow")
    wait_for(lambda: why(server, "last") == "last is WAITING: it waits for admin~slow to succeed")
    assert server.ask("DELETE", "/jobs/done").status == 200
    gate.touch()
    assert server.wait("last")["jobStatus"]["state"] == "SUCCEEDED"


@pytest.mark.parametrize("ends", ["before", "while it is down", "after"])
def test_followers_outlive_a_crash_of_the_server(tmp_path: Path, ends: str) -> None:
    gate, done = tmp_path / "gate", tmp_path / "done"
    with Server(tmp_path / "home", "--stop-jobs") as server:
        server.submit(held(gate, "first", f"touch {done}"))
        server.submit(job("breaks", "exit 1"))
        server.submit(job("second", "echo second"), query="?after=first,breaks:end")
        server.submit(job("never", "true"), query="?after=first,breaks")
        server.begun("first")
        server.wait("breaks")
        if ends == "before":
            gate.touch()
            server.wait("first")
        server.kill()
        if ends == "while it is down":
            gate.touch()
            from pailot.testing.runs import wait_for

            wait_for(done.exists)
        server.start()
        if ends == "after":
            assert why(server, "second") == "second is WAITING: it waits for admin~first to succeed"
            gate.touch()
        assert server.wait("second")["jobStatus"]["state"] == "SUCCEEDED"
        assert server.wait("never")["jobStatus"]["state"] == "STOPPED"


def test_a_job_that_can_never_start_says_so_at_once(server: Server) -> None:
    answer = server.submit(job("giant", "true").replace("cpu: 1", "cpu: 64"))
    assert answer.json["warnings"] == ["it can never start: it asks for 64 CPUs, and this machine has 16"]
    follows = server.submit(job("giant-too", "true").replace("cpu: 1", "cpu: 64"), query="?after=giant")
    assert follows.json["warnings"] == answer.json["warnings"]
    assert "warnings" not in server.submit(job("small", "true")).json
    for name in ("giant", "giant-too"):
        server.ask("PUT", f"/jobs/{name}/executionType", {"value": "STOP"})
        server.wait(name)
