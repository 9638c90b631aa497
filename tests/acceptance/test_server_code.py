"""Code on a real server: archives that were made to do harm, whose code it is, and how much of it there may be."""

from __future__ import annotations

import hashlib
import os
import pwd
import signal
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pailot.testing.runs import processes_with, wait_for
from tests.support.archives import SQUEEZE, entry, folder, link, tar

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def packed(*entries: Any) -> tuple[bytes, str]:
    data = SQUEEZE["gzip"](tar(entries))
    return data, hashlib.sha256(data).hexdigest()


def put(server: Server, archive: tuple[bytes, str], token: str = "") -> Any:
    return server.ask("PUT", f"/code/{archive[1]}", archive[0], token)


def kept(server: Server) -> list[str]:
    """What there is of code, whole or in parts."""
    return sorted(os.listdir(server.home / "code")) if (server.home / "code").exists() else []


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_CODE_QUOTA_MB="1", PAILOT_CODE_QUOTA_FILES="100") as started:
        yield started
        assert "defect" not in started.log.read_text()


@pytest.mark.parametrize("users", ["plain", "unix_users"])
def test_an_archive_as_code_changes_nothing_outside(tmp_path: Path, users: str) -> None:
    """With a hard link and a second entry of its name; as root's server with users of its own, this made its author root."""
    if users == "unix_users" and os.geteuid() != 0:
        pytest.skip("only root can have tasks of other users")
    canary, sent = tmp_path / "canary", tmp_path / "sent"
    canary.write_text("root's")
    canary.chmod(0o600)
    sent.mkdir()
    mine = b"written by an ordinary user"
    hostile = [entry("h", tarfile.LNKTYPE, str(canary)), entry("h", content=mine)]
    for name, entries in (("hostile", hostile), ("honest", [entry("main.sh", content=b"echo from the archive")])):
        (sent / f"{name}.tar.gz").write_bytes(packed(*entries)[0])
    files = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(sent)))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    settings = {"PAILOT_UNIX_USERS": "bob=nobody"} if users == "unix_users" else {}
    try:
        with Server(None, "--stop-jobs", PAILOT_ALLOWED_ADDRESSES="127.0.0.1", **settings) as started:
            bob = started.user("bob")
            for name in ("hostile", "honest"):
                more = f"extras: {{pailot: {{channels: {{code: 'http://127.0.0.1:{files.server_port}/{name}.tar.gz'}}}}}}"
                started.run(job(name, "sh $PAI_WORKING_DIR/main.sh; ls -l $PAI_WORKING_DIR", more=more), bob)
            found = canary.lstat()
            assert (canary.read_text(), found.st_mode & 0o7777, found.st_uid, found.st_nlink) == (
                "root's",
                0o600,
                os.geteuid(),
                1,
            )
            assert started.get("/jobs/bob~hostile", bob).json["jobStatus"]["state"] == "FAILED"
            assert "'h', a hard link" in started.get("/jobs/bob~hostile/why", bob).text
            assert started.get("/jobs/bob~honest/logs/main/0", bob).text.startswith("from the archive\n")
            # The same as an upload.
            archive = packed(*hostile)
            assert put(started, archive, bob).status == 400
            assert kept(started) == []
            honest = packed(entry("main.sh", content=b"echo uploaded"))
            assert put(started, honest, bob).status == 201
            assert started.submit(job("sent", "sh main.sh; stat -c %U main.sh"), bob, query=f"?code={honest[1]}").status == 202
            started.wait("bob~sent", bob)
            tree = started.home / "code" / honest[1] / "tree"
            unpacked_by = tree.stat().st_uid, (tree / "main.sh").stat().st_uid
            assert unpacked_by == ((pwd.getpwnam("nobody").pw_uid,) * 2 if settings else (os.geteuid(),) * 2)
            assert tree.parent.stat().st_mode & 0o777 == 0o700
            whose = "nobody" if users == "unix_users" else "root" if os.geteuid() == 0 else os.environ["USER"]
            assert started.get("/jobs/bob~sent/logs/main/0", bob).text == f"uploaded\n{whose}\n"
    finally:
        files.shutdown()
        files.server_close()


def test_an_upload_that_leads_out_or_is_too_deep_is_refused_in_one_line(server: Server) -> None:
    before = kept(server)
    chained = [link("L", "."), folder("a"), link("L/L/L/esc", "../../../server.db")]
    for entries, words in (
        (chained, "behind a link"),
        ([link("here", "."), link("esc", "here/here/../../server.db")], "leads out"),
        ([entry("a/" * 3000 + "b")], "2,048 bytes"),
        ([entry("a/" * 200 + "b")], "100 folders deep"),
    ):
        answer = put(server, packed(*entries))
        assert (answer.status, answer.code) == (400, "InvalidParametersError"), answer
        assert words in answer.json["message"]
        assert "\n" not in answer.json["message"]
    assert kept(server) == before


def test_a_quota_holds_and_what_is_refused_leaves_nothing(server: Server) -> None:
    ann, bob = server.user("quota-ann"), server.user("quota-bob")
    before = kept(server)
    first = packed(entry("a", content=bytes(600_000)))
    assert put(server, first, ann).status == 201
    many = packed(*(entry(f"{number}", content=b"") for number in range(150)))
    noise = packed(entry("noise", content=os.urandom(1_100_000)))
    for archive in (packed(entry("b", content=bytes(500_000))), packed(entry("b", content=bytes(50_000_000))), many, noise):
        answer = put(server, archive, ann)
        assert (answer.status, answer.code) == (413, "CodeQuotaError"), answer
        assert "all your code on the server may take 1 MB and 100 files" in answer.json["message"]
    assert kept(server) == sorted([*before, first[1]])
    # What somebody else has sent counts for both, and is refused before it is theirs.
    assert put(server, packed(entry("c", content=bytes(700_000))), bob).status == 201
    assert put(server, first, bob).code == "CodeQuotaError"
    assert server.ask("HEAD", f"/code/{first[1]}", token=bob).status == 404
    assert put(server, packed(entry("d", content=bytes(200_000))), bob).status == 201


def test_many_uploads_of_a_user_at_once_keep_to_the_quota(server: Server) -> None:
    token = server.user("quota-many")
    archives = [packed(entry(f"n{number}", content=bytes(300_000))) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(answer.status for answer in pool.map(lambda archive: put(server, archive, token), archives))
    assert statuses == [201] * 3 + [413] * 5
    assert not [name for name in kept(server) if name.startswith(".")]


def test_requests_that_need_a_thread_do_not_wait_for_uploads() -> None:
    """Eight archives are unpacked, by processes that are stopped, so that nothing gets on; everybody else is served."""
    with Server(None, "--stop-jobs") as server:
        server.run(job("asked", "true"))
        tokens = [server.user(f"sender-{number}") for number in range(2)]
        archives = [packed(entry(f"n{number}", content=bytes(10_000_000))) for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(put, server, archive, tokens[number % 2]) for number, archive in enumerate(archives)]
            stopped: list[int] = []

            def stop_two() -> bool:
                for pid in processes_with(f"{server.home}/code/."):
                    try:
                        os.kill(pid, signal.SIGSTOP)
                        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
                    except OSError:
                        continue  # it was quicker
                    if pid not in stopped and state == "T":
                        stopped.append(pid)
                return len(stopped) >= 2

            try:
                wait_for(stop_two, what="two archives that are being unpacked")
                for _ in range(12):
                    assert server.get("/jobs/admin~asked/journal").status == 200
                    assert server.get("/healthz", None).status == 200
                assert processes_with(f"{server.home}/code/.")
                assert len(processes_with(f"{server.home}/code/.")) == 2
                assert sum(answer.done() for answer in answers) < 8
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
            assert [answer.result().status for answer in answers] == [201] * 8
        assert len(kept(server)) == 8


def test_a_rerun_hands_code_to_nobody_who_has_not_sent_it(server: Server) -> None:
    """A secret stands in the script as it is, so who gives the secrets writes the script."""
    server.ask("PUT", "/virtual-clusters/hidden", {})
    owner, member = (server.user(name, clusters=("hidden",)) for name in ("code-owner", "code-member"))
    stranger = server.user("code-stranger")
    archive = packed(entry("main.py", content=b"CONFIDENTIAL"))
    assert put(server, archive, owner).status == 201
    text = job("guarded", 'echo "<% $secrets.s %>"', more="secrets: {s: harmless}\ndefaults: {virtualCluster: hidden}")
    assert server.submit(text, owner, query=f"?code={archive[1]}").status == 202
    server.wait("code-owner~guarded", owner)
    body = {"secrets": {"s": '"; cat main.py; echo "'}}
    for token in (member, ""):
        answer = server.ask("POST", "/jobs/code-owner~guarded/rerun", body, token)
        assert (answer.status, answer.code) == (403, "ForbiddenUserError"), answer
        assert "is its owner's: " in answer.json["message"]
        assert "pailot submit JOB --code" in answer.json["message"]
    answer = server.ask("POST", "/jobs/code-owner~guarded/rerun", body, stranger)
    assert (answer.status, answer.code) == (403, "ForbiddenUserError"), answer
    for token in (member, "", stranger):
        again = server.submit(text.replace("guarded", "other"), token, query=f"?code={archive[1]}")
        assert again.status in (403, 404), again
        assert server.ask("HEAD", f"/code/{archive[1]}", token=token).status == 404
    # The owner may, and so may whoever has the same code.
    assert server.ask("POST", "/jobs/code-owner~guarded/rerun", {"name": "again"}, owner).status == 202
    assert server.wait("code-owner~again", owner)["jobStatus"]["state"] == "SUCCEEDED"
    assert put(server, archive, member).status == 201
    answer = server.ask("POST", "/jobs/code-owner~guarded/rerun", {"name": "mine", "secrets": {"s": "x y z"}}, member)
    assert answer.status == 202, answer
    server.wait("code-member~mine", member)
    # Without code a member reruns as before.
    plain = job("plain", "echo hello", more="defaults: {virtualCluster: hidden}")
    server.run(plain, owner)
    assert server.ask("POST", "/jobs/code-owner~plain/rerun", {}, member).status == 202
