"""The command line against a real server: the same verbs, words and JSON as without one."""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pailot.cli.main import main
from pailot.testing.runs import Home, Result, job, role, wait_for

from ..support.servers import PASSWORD, Server, submit
from .conftest import UNIX_USERS, unix_users


@pytest.fixture(scope="module", params=["its own", UNIX_USERS])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    settings = unix_users("ann", "bob", "eve", "dana") if request.param == UNIX_USERS else {}
    folder = Path(tempfile.mkdtemp(prefix="pailot-server-"))
    folder.chmod(0o711)  # the tasks' users pass through
    started = Server(folder, **settings)
    yield started
    started.close()
    shutil.rmtree(folder)


@pytest.fixture
def me(server: Server, tmp_path: Path) -> Iterator[Home]:
    home = server.client(tmp_path)
    yield home
    home.close()


def test_from_submit_to_the_end(me: Home) -> None:
    text = job(role("echo hello; echo bad >&2; [ $FC_TASK_ATTEMPT_ID = 1 ]", instances=2, retries=1), name="whole")
    assert submit(me, text).lines == ["whole is submitted; pailot logs -f whole"]
    done = me.pailot("wait", "whole")
    assert (done.status, done.out.partition(":")[0]) == (0, "whole SUCCEEDED")
    lines = me.pailot("logs", "whole").lines
    assert sorted(lines) == sorted(["[main:0] hello", "[main:1] hello", "[main:0] bad", "[main:1] bad"] * 2)
    assert me.pailot("logs", "-f", "whole", "main", "1").lines == ["hello", "bad", "hello", "bad"]
    assert me.pailot("logs", "whole", "main", "1", "--task-attempt", "1", "--stream", "stderr").lines == ["bad"]
    shown = me.show("whole")
    assert (shown["state"], shown["taskRoles"]["main"]["tasks"][1]["attempts"]) == ("SUCCEEDED", 2)
    listed = json.loads(me.pailot("ps", "--json").out)
    assert [row["id"] for row in listed if row["name"] == "whole"] == [shown["id"]]
    told = [event["event"] for event in json.loads(me.pailot("events", "whole", "--json").out)]
    assert (told[0], told[-1]) == ("submitted", "ended")
    assert "whole is SUCCEEDED" in me.pailot("why", "whole").out
    assert me.pailot("ps", "--server", "none").lines == ["no runs yet; pailot run JOB.yaml starts one"]


ALIKE = {
    "twice": job(role("echo $FC_TASK_ATTEMPT_ID; exit 3", retries=1), name="twice", job_retries=1),
    "fine": job(role("echo fine"), name="fine"),
    "asleep": job(role("echo here; sleep 1000"), name="asleep"),
}
OWN = ("id", "user", "folder", "submitted", "started", "ended", "at", "host", "server", "path", "url", "logs", "ports", "usage")
"""What is of this run alone."""


def alike(value: Any) -> Any:
    """Without what differs from run to run: whether it is there stays."""
    if isinstance(value, list):
        return [alike(each) for each in value]
    if isinstance(value, dict):
        own = {key: each is None for key, each in value.items() if key in OWN and key not in ("server", "url")}
        shared = {key: each for key, each in sorted(value.items()) if key != "notes"}  # of an engine, to who runs it himself
        return {key: own.get(key, None if key in OWN else alike(each)) for key, each in shared.items()}
    return value


def in_order(told: Any) -> Any:
    """Tasks of a job end in any order."""
    return sorted(told, key=json.dumps) if isinstance(told, list) else told


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a command leaves its connections to the end of its process
def test_the_same_verbs_words_and_json_as_without_a_server(
    me: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def pailot(*arguments: str) -> Result:
        """In this process, since so much is asked."""
        return Result(main(arguments), *capfd.readouterr())

    for name, value in me.environment.items():
        monkeypatch.setenv(name, value)
    for name, text in ALIKE.items():
        submit(me, text)
        me.run(text, "--quiet", "--detach")
        if name != "asleep":
            assert me.pailot("wait", name).status == me.pailot("wait", name, "--server", "none").status
    questions = [
        *(f"{verb} {name}" for verb in ("show", "events", "why", "logs", "wait") for name in ("twice", "fine")),
        *("logs twice --attempt 0", "logs twice main 0 --task-attempt 1", "logs fine --stream stderr", "logs -f twice main 0"),
        *("logs twice nope", "logs twice main 7", "logs twice --attempt 7", "logs twice --task-attempt 7"),
        *("wait asleep --timeout 0.01", "show asleep", "why asleep", "stop asleep", "stop asleep fine", "wait asleep"),
        *("ps", "ps --state failed", "ps --state unknown", "ps --state running"),
        *(f"{verb} nobody" for verb in ("show", "events", "why", "logs", "logs -f", "wait", "stop", "rerun")),
    ]
    wait_for(lambda: "here" in me.pailot("logs", "asleep").out, 60, "the job to be asleep")
    wait_for(lambda: "here" in me.pailot("logs", "asleep", "--server", "none").out, 60, "the run to be asleep")
    for question in questions:
        for more in ([], ["--json"]):
            there = pailot(*question.split(), *more)
            here = pailot(*question.split(), *more, "--server", "none")
            assert there.status == here.status, (question, there, here)
            assert bool(there.err) == bool(here.err), (question, there, here)
            if "nobody" in question:
                assert len(there.err.splitlines()) == 1, there
            elif more:
                told = [in_order(alike(json.loads(each.out))) if each.out else None for each in (there, here)]
                if question.startswith("ps"):
                    told = [[row for row in rows or () if row["name"] in ALIKE] for rows in told]
                assert told[0] == told[1], question
            elif question.partition(" ")[0] in ("why", "wait", "stop", "logs"):
                assert sorted(there.lines) == sorted(here.lines), question
                assert there.err == here.err, question
            else:
                assert [len(line.split()) for line in there.lines[:1]] == [len(line.split()) for line in here.lines[:1]], question
    gc.collect()


def test_a_job_goes_by_its_id_too(me: Home) -> None:
    told = json.loads(submit(me, job(role("echo mine"), name="numbered"), "--json").out)
    started = json.loads(me.run(job(role("true"), name="numbered"), "--detach", "--json").out)
    assert set(told) == set(started)
    assert me.pailot("wait", told["id"]).status == 0
    assert me.pailot("logs", told["id"]).lines == ["mine"]
    assert me.show(told["id"])["name"] == "numbered"
    assert json.loads(me.pailot("why", told["id"], "--json").out)["name"] == "numbered"
    assert [row["id"] for row in json.loads(me.pailot("ps", "--json").out) if row["name"] == "numbered"] == [told["id"]]
    assert me.pailot("wait", "numbered", "--server", "none").status == 0


def test_code_goes_along(me: Home) -> None:
    code = me.cwd / "code"
    (code / "data").mkdir(parents=True)
    (code / "train.sh").write_text("echo trained\n")
    (code / "data" / "big").write_text("x")
    (code / ".gitignore").write_text("data/\n")
    done = submit(me, job(role("ls; sh train.sh"), name="coded"), "--code", "code", "--follow")
    assert (done.status, done.lines[:2]) == (0, ["train.sh", "trained"])


def test_a_failed_job_has_its_status_and_its_reason(me: Home) -> None:
    done = submit(me, job(role("echo oops; exit 3"), name="failing"), "--follow")
    assert done.status == 1
    assert done.lines[0] == "oops"
    assert "oops" in me.pailot("why", "failing").out
    again = submit(me, job(role("true"), name="failing"))
    words = "pailot: Job admin~failing already exists; use --name or --unique for another, or --replace if it has ended"
    assert (again.status, again.err.strip()) == (2, words)


def test_stopping(me: Home) -> None:
    submit(me, job(role("echo here; sleep 1000"), name="sleeper"))
    follower = subprocess.Popen(
        [sys.executable, "-m", "pailot", "logs", "-f", "sleeper"],
        env=me.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout
    assert follower.stdout.readline() == "here\n"
    late = me.pailot("wait", "sleeper", "--timeout", "0.1")
    assert late.status == 4
    assert me.pailot("stop", "sleeper").lines == ["sleeper STOPPED"]
    assert me.pailot("wait", "sleeper").status == 3
    follower.communicate(timeout=60)
    assert follower.returncode == 0


@pytest.mark.parametrize("command", [["wait"], ["logs", "-f"]])
def test_who_waits_for_a_waiting_job_is_told_why(me: Home, command: list[str]) -> None:
    name = f"huge-{command[0]}"
    submit(me, job(role("true"), name=name).replace("cpu: 1", "cpu: 90000"))
    with subprocess.Popen(
        [sys.executable, "-m", "pailot", *command, name],
        env=me.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr
        assert waiting.stderr.readline().startswith(f"pailot: {name} is WAITING: it can never start: it asks for 90000 CPUs")
        assert me.pailot("stop", name).status == 0
        waiting.communicate(timeout=60)
    quiet = me.pailot("wait", name)
    assert (quiet.status, quiet.err) == (3, "")


def test_rerun_with_the_kept_secret(me: Home) -> None:
    text = job(role("echo $(echo '<% $secrets.key %>' | wc -c)"), name="secretive", more="secrets: {key: hunter2hunter2}")
    submit(me, text)
    assert me.pailot("wait", "secretive").status == 0
    again = json.loads(me.pailot("rerun", "secretive", "--json").out)
    assert me.pailot("wait", again["name"]).status == 0
    assert me.pailot("logs", again["id"]).lines == ["15"]
    refused = me.pailot("rerun", "secretive", "--set", "jobRetryCount=1")
    assert (refused.status, refused.err.strip()) == (2, "pailot: --set does not work with a server; --name and --secret do")


def test_an_invalid_job_is_refused_before_it_is_sent(me: Home) -> None:
    done = submit(me, job(role("true"), name="invalid").replace("dockerImage: image", "dockerImage: imago"))
    assert done.status == 2
    assert "error[unknown-prerequisite]" in done.err


def test_tags_in_any_order_of_words(me: Home) -> None:
    submit(me, job(role("true"), name="worded"))
    assert me.pailot("tag", "worded", "one", "two").lines == ["one", "two"]
    assert me.pailot("tag", "worded", "--remove", "one").lines == ["two"]
    assert me.pailot("tag", "--remove", "worded", "two").lines == []


def test_tags(me: Home) -> None:
    submit(me, job(role("true"), name="tagged"))
    assert me.pailot("tag", "tagged", "one", "two").lines == ["one", "two"]
    assert me.pailot("tag", "tagged", "one", "--remove").lines == ["two"]
    assert json.loads(me.pailot("tag", "tagged", "--json").out) == ["two"]


def test_tokens_are_shown_once(me: Home) -> None:
    made = json.loads(me.pailot("token", "create", "--json").out)
    listed = me.pailot("token", "list")
    assert made["id"] in listed.out
    assert made["token"] not in listed.out
    me.environment |= {"PAILOT_TOKEN": made["token"]}
    assert me.pailot("ps").status == 0
    del me.environment["PAILOT_TOKEN"]
    assert me.pailot("token", "revoke", made["id"]).lines == [f"{made['id']} is revoked"]
    me.environment |= {"PAILOT_TOKEN": made["token"]}
    assert me.pailot("ps").status == 5


def test_users_see_what_they_may(me: Home, server: Server, tmp_path: Path) -> None:
    (me.cwd / "new").write_text("another-horse\n")
    assert not any(check["name"] == "isolation" for check in json.loads(me.pailot("doctor", "--json").out))
    added = me.pailot("user", "add", "dana", "--password-file", "new")
    assert (added.status, added.lines) == (0, ["dana is added"])
    apart = "PAILOT_UNIX_USERS" in server.settings
    told = "users are not isolated from each other: the tasks of admin, dana run as the server's own," in added.err
    assert told is not apart
    assert any(line.startswith("dana ") for line in me.pailot("user", "list").lines)
    noted = [check for check in json.loads(me.pailot("doctor", "--json").out) if check["name"] == "isolation"]
    assert [check["status"] for check in noted] == ([] if apart else ["note"])
    assert apart or "not isolated" in noted[0]["text"]
    submit(me, job(role("sleep 1000"), name="mine"))
    dana = Home(tmp_path / "dana")
    dana.environment["XDG_CONFIG_HOME"] = str(tmp_path / "dana" / "config")
    (dana.cwd / "password").write_text("another-horse\n")
    assert dana.pailot("login", server.url, "--user", "dana", "--password-file", "password").status == 0
    denied = dana.pailot("stop", "admin~mine")
    assert denied.status == 5, denied
    assert dana.pailot("ps").lines == ["no jobs yet; pailot submit JOB.yaml submits one"]
    assert me.pailot("stop", "mine").status == 0
    assert me.pailot("user", "remove", "dana").lines == ["dana is removed"]
    assert dana.pailot("ps").status == 5


def test_logging_in_and_out(server: Server, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    (home.cwd / "wrong").write_text("battery-staple\n")
    wrong = home.pailot("login", server.url, "--user", "admin", "--password-file", "wrong")
    assert (wrong.status, "battery" in wrong.err) == (5, False)
    (home.cwd / "right").write_text(PASSWORD)
    told = json.loads(home.pailot("login", server.url, "--user", "admin", "--password-file", "right", "--json").out)
    file = Path(told["file"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert PASSWORD not in file.read_text()
    assert home.pailot("logout").lines == [f"logged out of {server.url}"]
    assert home.pailot("ps", "--server", server.url).status == 5
    assert home.pailot("logout").lines == ["nobody is logged in"]


def test_no_server_there(tmp_path: Path) -> None:
    home = Home(tmp_path)
    done = home.pailot("ps", "--server", "http://127.0.0.1:1")
    assert (done.status, done.err.strip()) == (4, "pailot: http://127.0.0.1:1 cannot be reached: Connection refused")
    (home.cwd / "job.yaml").write_text(job(role("true")))
    assert home.pailot("submit", "job.yaml").status == 2


def test_addresses_and_tokens_that_cannot_work(server: Server, me: Home) -> None:
    """One clear line each."""
    tls = server.url.replace("http://", "https://")
    me.environment.pop("PAILOT_TOKEN", None)
    for address, token, status, text in (
        ("http://", "", 2, "'http://' is no address of a server; it looks like http://host:9186"),
        ("ftp://host", "", 2, "'ftp://host' is no address of a server; it looks like http://host:9186"),
        (tls, "t", 4, f"{tls} cannot be reached: it does not speak TLS; is it http:// that is meant?"),
        (f"{server.url}/elsewhere", "t", 4, f"{server.url}/elsewhere answers, but not as OpenPAI's API does"),
        (server.url, "rubbish", 5, "Your token is invalid; pailot login logs in"),
        (server.url, "two\nlines", 5, "the token (PAILOT_TOKEN, or a file) is none: it has characters that no token has"),
    ):
        me.environment["PAILOT_TOKEN"] = token
        done = me.pailot("ps", "--server", address)
        assert (done.status, done.err) == (status, f"pailot: {text}\n"), address
    me.environment["PAILOT_TOKEN"] = ""
    (me.cwd / "wrong").write_text("not-the-horse\n")
    done = me.pailot("login", server.url, "--user", "admin", "--password-file", "wrong")
    assert (done.status, done.err) == (5, "pailot: Password is incorrect.\n")
    assert me.pailot("ps").status == 0  # a login that fails changes nothing


def test_following_goes_on_over_a_restart_of_the_server(tmp_path: Path) -> None:
    """Killed as by a power cut: the task goes on; follower and waiter find the new server; no line is lost or doubled."""
    server = Server(tmp_path / "server")
    try:
        me = server.client(tmp_path / "me")
        gate = tmp_path / "gate"
        script = f"for i in 1 2 3; do echo line $i; done; until [ -e {gate} ]; do sleep 0.1; done; echo last"
        submit(me, job(role(script), name="long"))
        command = [sys.executable, "-m", "pailot"]
        follower = subprocess.Popen([*command, "logs", "-f", "long"], env=me.environment, stdout=subprocess.PIPE, text=True)
        waiter = subprocess.Popen([*command, "wait", "long"], env=me.environment, stdout=subprocess.PIPE, text=True)
        assert follower.stdout
        lines = [follower.stdout.readline() for _ in range(3)]
        wait_for(lambda: server.streams() == 2, what="that both listen")
        server.kill()
        server.start()
        gate.touch()
        assert waiter.communicate(timeout=120)[0].startswith("long SUCCEEDED")
        assert waiter.returncode == 0
        rest = follower.communicate(timeout=120)[0]
        assert "".join(lines) + rest == "line 1\nline 2\nline 3\nlast\n"
        me.close()
    finally:
        server.close()


def test_completion_knows_the_commands(me: Home) -> None:
    words = json.loads(me.pailot("completion", "bash", "--json").out)
    assert {"--server", "--code", "--follow"} <= set(words["submit"])
    assert {"list", "add", "remove"} <= set(words["user"])


def test_completion_knows_the_jobs_of_the_server(me: Home) -> None:
    submit(me, job(role("true", "worker", instances=2), role("true", "ps"), name="completed"))
    assert "completed" in me.pailot("completion", "bash", "--after", "why").lines
    assert me.pailot("completion", "bash", "--after", "logs -f completed").lines == ["worker", "ps"]
    assert me.pailot("completion", "bash", "--after", "logs completed worker").lines == ["0", "1"]
    assert me.pailot("completion", "bash", "--after", "why --server none").lines == []


def test_a_running_job_says_what_it_waits_for(me: Home) -> None:
    submit(me, job(role("true", "worker"), role("sleep 1000", "ps"), name="psw"))
    wait_for(lambda: me.show("psw")["taskRoles"]["worker"]["tasks"][0]["state"] == "SUCCEEDED", 60, "the worker's end")
    assert "psw is RUNNING: all of worker done; ps runs; no role ends the job by success" in me.pailot("why", "psw").out
    assert me.pailot("stop", "--now", "psw").status == 0


def test_a_waiting_job_says_why(tmp_path: Path) -> None:
    server = Server(tmp_path / "server", PAILOT_CPUS="2", PAILOT_MEMORY_MB="1000")
    try:
        me = server.client(tmp_path / "me")
        submit(me, job(role("sleep 1000", instances=2), name="first"))
        submit(me, job(role("true"), name="second"))
        submit(me, job(role("true", instances=3), name="never"))
        wait_for(lambda: me.show("first")["state"] == "RUNNING", 60, "the first job's start")
        assert "admin~first" in me.pailot("why", "second").out
        assert "number 1 of 1 in line" in me.pailot("why", "second").out
        assert "it can never start: it asks for 3 CPUs" in me.pailot("why", "never").out
        assert me.pailot("stop", "--now", "first").status == 0
        assert me.pailot("wait", "second").status == 0
        me.close()
    finally:
        server.close()


def test_a_full_disk(tmp_path: Path) -> None:
    """Submissions are refused in clear words, what runs goes on, and nobody has to help when there is room again."""
    (tmp_path / "server").mkdir()
    small = tmp_path / "server" / "home"
    small.mkdir(0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        server = Server(tmp_path / "server")
        try:
            me = server.client(tmp_path / "me")
            gate = tmp_path / "gate"
            submit(me, job(role(f"echo begin; until [ -e {gate} ]; do sleep 0.1; done; echo end"), name="long"))
            wait_for(lambda: "begin" in me.pailot("logs", "long").out, 60, "the job to run")
            with contextlib.suppress(OSError), open(small / "filler", "wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            for name in ("one", "two"):
                refused = submit(me, job(role("true"), name=name))
                assert (refused.status, refused.err) == (4, f"pailot: {small}/server.db: the disk is full\n")
            gate.touch()
            assert me.pailot("wait", "long").status == 0
            assert [row["name"] for row in json.loads(me.pailot("ps", "--json").out)] == ["long"]
            (small / "filler").unlink()
            assert submit(me, job(role("true"), name="one"), "--follow").status == 0
            assert me.pailot("logs", "long").lines == ["begin", "end"]
            me.close()
        finally:
            server.close()
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
