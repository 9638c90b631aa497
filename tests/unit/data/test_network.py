"""Connections that a server makes for jobs, with a real web server on loopback that the rules name, or do not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pailot.data import provisions
from pailot.data.addresses import NotAllowed, parse
from pailot.data.errors import DataError
from pailot.data.network import check_endpoint, is_own, resolve
from pailot.data.rules import Rules
from tests.support.web_server import WebServer

SECRET = "what only the machine itself may see"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def inner() -> Iterator[WebServer]:
    """A service of the machine."""
    made = WebServer(lambda request: _say(request, SECRET))
    yield made
    made.close()


@pytest.fixture
def outer(inner: WebServer) -> Iterator[WebServer]:
    """One that jobs may use, and that would lead them elsewhere."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        where = {
            "/loopback": f"http://{inner.host}/",
            "/number": f"http://2130706433:{inner.host.rpartition(':')[2]}/",
            "/name": f"http://localhost:{inner.host.rpartition(':')[2]}/",
            "/metadata": "http://169.254.169.254/",
            "/file": "file:///etc/passwd",
            "/ftp": "ftp://127.0.0.1/x",
            "/again": "/loopback",
            "/here": "/fine",
        }.get(request.path)
        if where is None:
            _say(request, json.dumps(dict(request.headers)))
            return
        request.send_response(302)
        request.send_header("Location", where)
        request.end_headers()

    made = WebServer(answer)
    yield made
    made.close()


def _say(request: BaseHTTPRequestHandler, words: str) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(words)))
    request.end_headers()
    request.wfile.write(words.encode())


def fetch(uri: str, rules: Rules, tmp_path: Path) -> str:
    return Path(provisions.fetch(uri, str(tmp_path / "cache"), rules=rules)).read_text()


def naming(*servers: WebServer) -> Rules:
    return Rules(server=True, addresses=tuple(each.host for each in servers))


def test_what_the_settings_name_is_fetched(outer: WebServer, tmp_path: Path) -> None:
    assert "pailot" in fetch(f"http://{outer.host}/fine", naming(outer), tmp_path)
    assert "pailot" in fetch(f"http://{outer.host}/here", naming(outer), tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::ffff:127.0.0.1]"])
def test_the_machine_itself_is_not(inner: WebServer, host: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="allowed_addresses"):
        fetch(f"http://{host}:{inner.host.rpartition(':')[2]}/", Rules(server=True), tmp_path)


@pytest.mark.parametrize("path", ["loopback", "number", "name", "metadata", "again"])
def test_no_redirect_leads_there(outer: WebServer, path: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="allowed_addresses"):
        fetch(f"http://{outer.host}/{path}", naming(outer), tmp_path)


@pytest.mark.parametrize("path", ["file", "ftp"])
def test_no_redirect_leads_out_of_the_web(outer: WebServer, path: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        fetch(f"http://{outer.host}/{path}", naming(outer), tmp_path)


def test_on_a_users_own_machine_all_of_that_works(outer: WebServer, tmp_path: Path) -> None:
    assert fetch(f"http://{outer.host}/again", Rules(), tmp_path) == SECRET


def test_certificates_are_checked_against_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    key, certificate = tmp_path / "key", tmp_path / "certificate"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    more = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run([*words, *more], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    made = WebServer(lambda request: _say(request, "sealed"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    made.server.socket = context.wrap_socket(made.server.socket, server_side=True)
    port = made.host.rpartition(":")[2]
    try:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        rules = Rules(server=True, addresses=("127.0.0.1", "::1"))
        assert fetch(f"https://localhost:{port}/", rules, tmp_path) == "sealed"
        with pytest.raises(DataError, match=r"(?i)certificate|mismatch"):
            fetch(f"https://127.0.0.1:{port}/", rules, tmp_path)
        with pytest.raises(DataError, match="allowed_addresses"):
            fetch(f"https://localhost:{port}/", Rules(server=True), tmp_path)
    finally:
        made.close()


def test_a_name_that_resolves_to_the_machine(tmp_path: Path) -> None:
    own = socket.gethostname()
    try:
        addresses = {str(place[0]) for *_, place in socket.getaddrinfo(own, 80)}
    except OSError:
        pytest.skip("the machine does not know its own name")
    assert all(is_own(each) for each in addresses)
    with pytest.raises(NotAllowed):
        resolve(own, 80, Rules(server=True))
    with pytest.raises(NotAllowed):
        check_endpoint(parse(f"hdfs://{own}:9000/x"), Rules(server=True))
    check_endpoint(parse("hdfs://name-service-of-nobody/x"), Rules(server=True))
    assert not is_own("192.0.2.1")


def test_the_servers_netrc_is_not_used_for_jobs(outer: WebServer, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login server password hush\n")
    (tmp_path / ".netrc").chmod(0o600)
    code = (
        "import sys; from pailot.data.rules import Rules; from pailot.data.job_user import enter;"
        "from pailot.data.provisions import fetch;"
        "rules = Rules(server=True, addresses=(sys.argv[1],), credentials=sys.argv[2] == 'on'); enter(rules);"
        "print(open(fetch(f'http://{sys.argv[1]}/fine', sys.argv[3], rules=rules)).read())"
    )
    environment = os.environ | {"HOME": str(tmp_path), "AWS_SECRET_ACCESS_KEY": "hush"}
    for setting, told in (("off", False), ("on", True)):
        words = [sys.executable, "-c", code, outer.host, setting, str(tmp_path / setting)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert ("Authorization" in done.stdout) is told


def test_a_child_for_a_job_connects_nowhere_else_and_has_nothing_of_the_servers(inner: WebServer, tmp_path: Path) -> None:
    """Whichever driver it loads: here one of Python's own, and one that resolves for itself as those of buckets do."""
    code = """
import asyncio, os, sys, urllib.request
from pailot.data.addresses import NotAllowed
from pailot.data.rules import Rules
from pailot.data.job_user import enter
enter(Rules(server=True))
print(sorted(name for name in os.environ if "SECRET" in name or "GOOGLE" in name), os.environ["HOME"])
host, port = sys.argv[1].split(":")
for work in (lambda: urllib.request.urlopen(f"http://{sys.argv[1]}/"), lambda: asyncio.run(asyncio.open_connection(host, port))):
    try:
        work()
        print("connected")
    except NotAllowed as problem:
        print("refused")
"""
    credentials = {"AWS_SECRET_ACCESS_KEY": "x", "OSS_ACCESS_KEY_SECRET": "x", "GOOGLE_APPLICATION_CREDENTIALS": "/x"}
    done = subprocess.run(
        [sys.executable, "-c", code, inner.host], env=os.environ | credentials, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["[] /nonexistent", "refused", "refused"], done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_child_has_become_the_user_for_good(tmp_path: Path) -> None:
    code = """
import os, pwd, sys
from pailot.data.rules import Rules
from pailot.data.job_user import enter
enter(Rules(server=True), "nobody")
print(os.getresuid() == (pwd.getpwnam("nobody").pw_uid,) * 3, os.getgroups() == [pwd.getpwnam("nobody").pw_gid])
for work in (lambda: os.setuid(0), lambda: os.seteuid(0), lambda: open(sys.argv[1])):
    try:
        work()
        print("root again")
    except PermissionError:
        print("no")
"""
    (tmp_path / "canary").write_text("x")
    (tmp_path / "canary").chmod(0o600)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "canary")], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True", "no", "no", "no"], done
