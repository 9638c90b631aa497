"""What a server must bear: abuse, slow clients, its own end, and thousands of random requests without one defect."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pailot.install_lines import install_line
from pailot.problem import MOST_SHOWN
from pailot.store.server import ServerStore
from pailot.testing.runs import PATIENCE, wait_for
from tests.support.growing_jobs import FAMILIES
from tests.support.postgres import Postgres

from ..support.http_server import PASSWORD, Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started
        log = started.log.read_text()
        assert "defect" not in log
        assert "ASGI" not in log


def raw(server: Server, data: bytes, *more: bytes) -> bytes:
    """Bytes to the server, and all it answers until it closes the connection or that is whole."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
        line.sendall(data)
        for each in more:
            try:
                line.sendall(each)
            except OSError:
                break  # it has heard enough
        answer = b""
        while b"\r\n\r\n" not in answer:
            try:
                piece = line.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            answer += piece
        return answer


def test_job_files_full_of_problems_are_answered_in_few_words(server: Server) -> None:
    """16 KB of these kept everybody waiting for seconds; some 60 families of files are in `test_growth`."""
    for name, size in (("empty tags", 4_000), ("unresolved tags", 800), ("unknown keys", 1_000), ("secrets", 5_000)):
        answer = server.ask("POST", "/jobs", FAMILIES[name](size), kind="text/yaml")
        assert answer.status == 400, name
        assert len(answer.json["problems"]) <= MOST_SHOWN + 1
        assert len(answer.body) < 100_000


def test_a_long_chain_of_requires_is_no_defect(server: Server) -> None:
    text = FAMILIES["a circle of required ones"](1_500)
    answer = server.ask("POST", "/jobs", text, kind="text/yaml")
    assert (answer.status, [each["code"] for each in answer.json["problems"]]) == (400, ["require-cycle"])


def test_bodies_that_are_too_large(server: Server) -> None:
    for size in (1024 * 1024 + 1, 6 * 1024 * 1024):  # who sends all before it reads hears the answer, too
        answer = server.ask("POST", "/jobs", "#" * size, kind="text/yaml")
        assert (answer.status, "too large" in answer.json["message"]) == (413, True)
    head = f"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"40000\r\n" + b"#" * 0x40000 + b"\r\n"
    assert b" 413 " in raw(server, head.encode(), *[piece] * 8)
    # All that a job file may hold, and no more.
    assert server.ask("POST", "/jobs", "#" * (1024 * 1024), kind="text/yaml").code == "InvalidProtocolError"
    assert server.get("/info", None).status == 200


def test_heads_that_are_too_large(server: Server) -> None:
    filler = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(70))
    answer = raw(server, b"GET /api/v2/info HTTP/1.1\r\n", filler, filler)
    assert b" 431 " in answer or answer == b""
    assert server.get("/info", None).status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /api/v2/info HTTP/9.9\r\n\r\n",
        b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"GET /api/v2/info HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n",
        b"GET /api/v2/info HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
        b"GET /api/v2/info HTTP/1.1\r\n\r\n",
        b"GET /api/v2/info HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /api/v2/info HTTP/1.0\r\nHost: x\r\nhost: x\r\n\r\n",
        b"GET /api/v2/info HTTP/1.1\r\nHost: x y\r\n\r\n",
        b"GET /api/v2/info HTTP/1.1\r\nHost: x/../y\r\n\r\n",
        b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_http(server: Server, data: bytes) -> None:
    answer = raw(server, data)
    assert answer == b"" or b" 400 " in answer.split(b"\r\n")[0], answer
    assert server.get("/info", None).status == 200


def test_a_request_of_old_needs_no_host(server: Server) -> None:
    assert b" 200 " in raw(server, b"GET /api/v2/info HTTP/1.0\r\n\r\n").split(b"\r\n")[0]


def test_who_asks_twice_and_goes_is_forgotten(server: Server) -> None:
    """The first of two requests on a line was answered for nobody, and its failing taken for a defect of ours."""
    server.run(job("two-at-once", "head -c 3000000 /dev/zero | tr '\\\\0' x"))
    head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
    log = f"GET /api/v2/jobs/two-at-once/logs/main/0 {head}\r\n".encode()
    upload = f"PUT /api/v2/code/{'0' * 64} {head}Content-Length: 1000\r\n\r\nx".encode()
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
            line.sendall(log + upload)
            assert line.recv(10).startswith(b"HTTP/1.1 2")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # hangs up with data on its way
    wait_for(lambda: "pailot_http_streams 0" in server.get("/metrics", None).text)


def test_requests_without_end_on_one_line(server: Server) -> None:
    follow = f"GET /api/v2/live/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
        line.sendall(follow)
        assert line.recv(10).startswith(b"HTTP/1.1 2")
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        try:
            while line.recv(65536):
                pass
        except ConnectionResetError:
            pass  # it has closed, which is what we wait for


def test_paths_lead_nowhere_else(server: Server) -> None:
    server.run(job("inside", "echo x"))
    for path in (
        "/jobs/..%2f..%2fetc%2fpasswd",
        "/jobs/admin~inside/logs/..%2f..%2f..%2f/0",
        "/jobs/admin~inside/logs/../0",
        "/jobs/admin~inside/logs/main/..%2f0",
        "/jobs/admin~inside/logs/main/-1",
        "/jobs/admin~..%2f..",
        "/jobs/..~..",
        "/code/..%2f..%2fserver.db",
        "/jobs/admin~inside/logs/main/0?stream=../../job.json",
        "/jobs/admin~inside/logs/main/0?attempt=../0",
        "/users/..%2fadmin",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
    ):
        answer = server.get(path)
        assert answer.status in (400, 404, 405), (path, answer)
        assert b"root:" not in answer.body


def test_files_made_to_exhaust_a_reader(server: Server) -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
    )
    for text in (
        laughs,
        "[" * 100_000,
        "{a: " * 50_000,
        "- " * 100_000,
        "? " * 100_000,
        "&a " * 10_000,
        "\x00",
        "\ud7ff",
        "!!python/x y",
    ):
        answer = server.submit(text)
        assert (answer.status, answer.code) == (400, "InvalidProtocolError"), text[:20]
    for body in ("[" * 100_000, '{"a":' * 100_000, "nul", "{", "NaN", '{"username": NaN}', '"\\ud800"'):
        answer = server.ask("POST", "/authn/basic/login", body, None, kind="application/json")
        assert answer.status == 400, body[:20]
    form = "&".join(f"a[{number}]=1" for number in range(20_000))
    assert server.ask("POST", "/authn/basic/login", form, None, kind="application/x-www-form-urlencoded").status == 400
    deep = "a" + "[b]" * 50_000 + "=1"
    assert server.ask("POST", "/authn/basic/login", deep, None, kind="application/x-www-form-urlencoded").status == 400
    assert server.ask("POST", "/users", {"username": "x" * 100_000, "password": PASSWORD}).status == 400
    assert server.ask("POST", "/users", {"username": "long", "password": "x" * 100_000}).status == 400


def test_a_client_that_sends_slowly_or_goes_away_holds_up_nobody(server: Server) -> None:
    head = f"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 1000\r\n\r\nname"
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    try:
        for line in slow:
            line.sendall(head.encode())
        with socket.create_connection(("127.0.0.1", server.port)) as half:
            half.sendall(b"GET /api/v2/in")
            assert server.run(job("beside", "true"))["jobStatus"]["state"] == "SUCCEEDED"
    finally:
        for line in slow:
            line.close()
    assert server.get("/info", None).status == 200


def test_a_reader_who_does_not_read_holds_up_nobody(server: Server) -> None:
    server.run(job("large", "head -c 30000000 /dev/zero | tr '\\\\0' x"))
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(
            f"GET /api/v2/jobs/large/logs/main/0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
        )
        assert line.recv(10).startswith(b"HTTP/1.1 2")
        assert len(server.get("/jobs/large/logs/main/0").body) == 30_000_000
    assert server.get("/info", None).status == 200


def test_a_crowd_that_follows_misses_nothing(server: Server, tmp_path: Path) -> None:
    """With many to tell, news waits for more of it; a log is told to its end all the same."""
    release = tmp_path / "release"
    wait = f"until [ -e {release} ]; do sleep 0.05; done"
    server.submit(
        job("crowd", f"echo begun; {wait}; for i in $(seq 300); do echo line $i; done; head -c 200000 /dev/zero | tr '\\0' x")
    )
    crowd = [server.events("/jobs/crowd/logs/main/0?follow=true") for _ in range(30)]
    for each in crowd:
        assert next(each)[2]["text"] == "begun\n"
    release.touch()
    expected = "".join(f"line {number}\n" for number in range(1, 301)) + "x" * 200_000
    for each in crowd:
        pieces = list(each)
        assert "".join(data["text"] for name, _, data in pieces if name == "message") == expected
        assert pieces[-1][0] == "end"


def test_a_crowd_hears_all_that_a_task_printed_before_it_was_killed(server: Server, tmp_path: Path) -> None:
    """A follow ends with the task, whatever ended it, and never before its last line."""
    release = tmp_path / "release"
    wait = f"until [ -e {release} ]; do sleep 0.05; done"
    server.submit(job("killed", f"echo begun; {wait}; for i in $(seq 9); do echo line $i; sleep 0.02; done; kill -9 $$"))
    crowd = [server.events("/jobs/killed/logs/main/0?follow=true") for _ in range(30)]
    for each in crowd:
        assert next(each)[2]["text"] == "begun\n"
    release.touch()
    for each in crowd:
        pieces = list(each)
        assert "".join(data["text"] for name, _, data in pieces if name == "message") == "".join(
            f"line {number}\n" for number in range(1, 10)
        )
        assert pieces[-1][0] == "end"


def test_who_stops_following_is_forgotten(server: Server) -> None:
    server.submit(job("followed", "sleep 1000"))
    streams = [server.events("/jobs/followed/live") for _ in range(5)]
    for each in streams:
        next(each)
    assert "pailot_http_streams 5" in server.get("/metrics", None).text
    for each in streams:
        each.close()
    watch = server.events("/live/jobs")
    server.ask("PUT", "/jobs/followed/executionType", {"value": "STOP"})
    for _, _, data in watch:
        if data.get("name") == "followed" and data["state"] == "STOPPED":
            break
    watch.close()
    for _ in range(2000):
        if "pailot_http_streams 0" in server.get("/metrics", None).text:
            break
    else:
        raise AssertionError(server.get("/metrics", None).text)


def test_methods_and_heads(server: Server) -> None:
    answer = server.ask("DELETE", "/info", token=None)
    assert answer.status in (200, 405)
    answer = server.ask("PATCH", "/jobs")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    answer = server.ask("HEAD", "/jobs")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
    assert server.ask("OPTIONS", "/jobs", token=None).status == 204
    assert server.ask("GET", "/jobs", headers={"Upgrade": "websocket", "Connection": "Upgrade"}).status in (200, 400, 426)


def test_pages_of_others_may_not_read_unless_allowed(server: Server) -> None:
    origin = {"Origin": "https://page.example"}
    assert "access-control-allow-origin" not in server.ask("GET", "/info", token=None, headers=origin).headers
    with Server(None, PAILOT_CORS="https://page.example") as other:
        answer = other.ask("GET", "/info", token=None, headers=origin)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        assert "ETag" in answer.headers["access-control-expose-headers"]
        before = other.ask("OPTIONS", "/jobs", token=None, headers=origin)
        assert before.status == 204
        assert "Authorization" in before.headers["access-control-allow-headers"]
        elsewhere = other.ask("GET", "/info", token=None, headers={"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in elsewhere.headers


def test_limits_and_the_access_log(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    limits = "all=30/3600, list=3/3600, submit=2/3600"
    with Server(None, PAILOT_RATE_LIMITS=limits, PAILOT_ACCESS_LOG=str(log)) as server:
        answers = [server.get("/jobs?token=in-the-query") for _ in range(4)]
        assert [each.status for each in answers] == [200, 200, 200, 429]
        assert answers[0].headers["x-ratelimit-limit"] == "3"
        assert answers[-1].text == "Too many requests, please try again later."
        assert [server.submit(job(f"n{number}")).status for number in range(3)] == [202, 202, 429]
        server.ask("DELETE", "/tokens/a-token-in-the-path")
        statuses = [server.get("/info", None).status for _ in range(40)]
        assert statuses[-1] == 429
        lines = log.read_text()
        assert " admin GET /api/v2/jobs 200 " in lines
        for secret in (server.token, "in-the-query", "a-token-in-the-path", PASSWORD):
            assert secret not in lines


def test_callers_behind_a_trusted_proxy_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    settings = {"PAILOT_TRUSTED_PROXIES": "127.0.0.1, 10.9.0.0/16", "PAILOT_RATE_LIMITS": "all=60/3600"}
    with Server(None, "--stop-jobs", PAILOT_ACCESS_LOG=str(log), **settings) as server:

        def ask(path: str, forwarded: str = "", peer: str = "127.0.0.1", body: object = None) -> int:
            line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE, source_address=(peer, 0))
            headers = {"X-Forwarded-For": forwarded} if forwarded else {}
            try:
                if body is None:
                    line.request("GET", path, headers=headers)
                else:
                    line.request("POST", path, json.dumps(body), {**headers, "Content-Type": "application/json"})
                return line.getresponse().status
            finally:
                line.close()

        # The limit of an address is the caller's own; what the caller says before the proxy does counts for nothing.
        assert [ask("/api/v2/info", "1.2.3.4, 9.9.9.9") for _ in range(61)][-1] == 429
        assert ask("/api/v2/info", "9.9.9.9, 10.9.1.1") == 429
        assert ask("/api/v2/info", "1.2.3.4") == 200
        assert ask("/api/v2/info", "9.9.9.9", "127.0.0.2") == 200, "not a proxy that is trusted"
        wait_for(lambda: " 127.0.0.2 - GET /api/v2/info 200 " in log.read_text())  # written after the answer
        assert " 9.9.9.9 - GET /api/v2/info 429 " in log.read_text()
        # So are log-ins that fail, also where somebody has all addresses of a network.
        login = "/api/v2/authn/basic/login"
        wrong = {"username": "admin", "password": "wrong-one"}
        guesses = [ask(login, f"2001:db8::{number:x}", body=wrong) for number in range(8)]
        assert (guesses[0], guesses[-1]) == (400, 429)
        assert ask(login, "2001:db8:1::1", body={"username": "admin", "password": PASSWORD}) == 200
        # Version 1 without a token is for this machine; the proxy is not who asks.
        jobs = "/api/v1/jobs"
        assert ask(jobs, peer="127.0.0.2") == 200
        assert ask(jobs) == 401
        assert ask(jobs, "127.0.0.2") == 401
        assert ask(jobs, "127.0.0.1", "127.0.0.2") == 401


@pytest.mark.parametrize("value", ["*", "proxy.example", "10.0.0.1/8"])
def test_a_proxy_is_named_by_its_address(tmp_path: Path, value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pailot", "serve", "--port", "0"],
        env={**os.environ, "PAILOT_HOME": str(tmp_path), "PAILOT_TRUSTED_PROXIES": value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"pailot: trusted_proxies: should be addresses or networks of proxies, is '{value}' (")
    assert done.stderr.count("\n") == 1


def test_the_end_does_not_wait_for_followers_and_jobs_go_on(tmp_path: Path) -> None:
    server = Server(tmp_path / "home").start()
    release = tmp_path / "release"
    server.submit(job("goes-on", f"echo begun; until [ -e {release} ]; do sleep 0.05; done; echo done"))
    stream = server.events("/jobs/goes-on/logs/main/0?follow=true")
    assert next(stream)[2]["text"] == "begun\n"
    ended = []
    reader = threading.Thread(target=lambda: ended.extend(stream))
    reader.start()
    assert server.stop() == 0
    reader.join(PATIENCE)
    assert not reader.is_alive()
    release.touch()
    with server:
        assert server.wait("goes-on")["jobStatus"]["state"] == "SUCCEEDED"
        assert server.get("/jobs/goes-on/logs/main/0").text == "begun\ndone\n"


def test_a_server_whose_database_another_one_took_over_stops(postgres: Postgres, tmp_path: Path) -> None:
    """Each in a home of its own with the same keys, as two pods of which one was cut off."""
    url = postgres.new_url()
    with Server(None, "--stop-jobs", PAILOT_DATABASE=url) as first, ServerStore.open(url) as looker:
        assert first.process
        shutil.copytree(first.home / "keys", tmp_path / "keys")
        first.process.send_signal(signal.SIGSTOP)
        try:
            looker.database.read("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
            second = Server(tmp_path, "--stop-jobs", PAILOT_DATABASE=url).start()
        finally:
            first.process.send_signal(signal.SIGCONT)
        try:
            assert first.process.wait(PATIENCE) == 75
            assert first.log.read_text().rstrip().endswith("another server has taken this database over; this one stops")
            assert second.run(job("goes-on"))["jobStatus"]["state"] == "SUCCEEDED"
        finally:
            second.stop()


def test_a_home_has_one_server(server: Server) -> None:
    environment = {**server.environment}
    done = subprocess.run(
        [sys.executable, "-m", "pailot", "serve", "--port", "0"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "another server" in done.stderr
    assert done.stderr.count("\n") == 1
    taken = subprocess.run(
        [sys.executable, "-m", "pailot", "serve", "--port", str(server.port)],
        env={**environment, "PAILOT_HOME": str(server.home / "other")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (taken.returncode, "cannot listen" in taken.stderr) == (2, True)


def test_the_first_start_makes_a_password_and_shows_it_once(tmp_path: Path) -> None:
    server = Server(tmp_path / "home", "--stop-jobs", PAILOT_ADMIN_PASSWORD="")
    server.start()
    password = server.told["password"]
    assert len(password) >= 12
    server.login("admin", password)
    server.stop()
    server.start()
    assert server.told["password"] is None
    server.login("admin", password)
    assert server.process
    server.process.send_signal(signal.SIGINT)
    assert server.stop() == 0


def test_without_its_parts_the_server_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError('No module named uvicorn', name='uvicorn')")
    done = subprocess.run(
        [sys.executable, "-m", "pailot", "serve"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"pailot: the server needs more parts (uvicorn): {install_line('server')}\n"


def test_thousands_of_random_requests_find_no_defect() -> None:
    """schemathesis, over everything that the OpenAPI document holds; but for what logs it out or never ends."""
    with Server(None, "--stop-jobs") as server:
        server.run(job("found", "echo x"))
        done = subprocess.run(
            [
                Path(sys.executable).with_name("st"),
                "run",
                f"{server.url}/openapi.json",
                f"--header=Authorization: Bearer {server.token}",
                "--checks=not_a_server_error,unsupported_method,ignored_auth,content_type_conformance,response_schema_conformance",
                "--phases=coverage,fuzzing",
                "--max-examples=3",
                "--exclude-path-regex=logout|/live",
                "--request-timeout=300",
                "--warnings=off",
                "--no-color",
            ],
            cwd=server.home,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        assert "No issues found" in done.stdout
        assert "defect" not in server.log.read_text()
