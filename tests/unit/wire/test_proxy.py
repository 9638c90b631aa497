"""Servers behind a proxy that asks for a password, and servers that have moved: real proxies, real TLS."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.client import http
from pailot.client.api import Client, find
from pailot.client.errors import Redirected, Unreachable, WireError
from pailot.client.proxy import BadProxy, is_direct, proxy_for
from pailot.client.sse import follow
from tests.parts.web_proxy import HOST, WebProxy, make_certificate

from ...support.stand_in_server import Answer, Request, StandIn

USER = "ann:p@ss word"
QUOTED = "ann:p%40ss%20word"
BASIC = "Basic " + b64encode(USER.encode()).decode()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSES", (0.0,))
    for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def context(certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    return certificate[1]


def told(request: Request) -> Answer:
    return 200, {"name": "PAI", "headers": {name.lower(): value for name, value in request.headers.items()}}


@pytest.fixture
def plain() -> Iterator[StandIn]:
    with StandIn(told) as server:
        yield server


@pytest.fixture
def secure(context: ssl.SSLContext) -> Iterator[StandIn]:
    with StandIn(told, context=context) as server:
        yield server


def test_https_through_a_proxy_that_asks_for_a_password(secure: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebProxy(secure.port, USER) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{QUOTED}@{proxy.address}")
        with Client(f"https://{HOST}", "t0ken") as client:
            headers = [client.info()["headers"] for _ in range(3)][-1]
        assert headers["authorization"] == "Bearer t0ken"
        assert "proxy-authorization" not in headers, "the proxy's password is not the server's business"
    assert len(proxy.seen) == 1
    assert proxy.seen[0].startswith(f"CONNECT {HOST}:443 HTTP/1.")
    assert f"Proxy-Authorization: {BASIC}" in proxy.seen[0]
    assert "t0ken" not in proxy.seen[0]


def test_http_through_a_proxy_that_asks_for_a_password(plain: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebProxy(plain.port, USER) as proxy:
        monkeypatch.setenv("http_proxy", f"{QUOTED}@{proxy.address}")
        with Client(f"http://{HOST}:8000", "t0ken") as client:
            headers = client.info()["headers"]
        assert (headers["host"], headers["authorization"]) == (f"{HOST}:8000", "Bearer t0ken")
        assert "proxy-authorization" not in headers
        assert proxy.seen[0].startswith(f"GET http://{HOST}:8000/api/v2/info HTTP/1.1\r\n")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("", "asks for a user and a password: ALL_PROXY=http://USER:PASSWORD@HOST:PORT"),
        ("ann:wr0ng@", "does not accept the user"),
    ],
)
def test_a_proxy_that_says_no_is_asked_once(
    plain: StandIn, monkeypatch: pytest.MonkeyPatch, scheme: str, user: str, words: str
) -> None:
    with WebProxy(plain.port, USER) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{user}{proxy.address}")
        with pytest.raises(Unreachable) as caught, Client(f"{scheme}://{HOST}", "t0ken") as client:
            client.info()
        said = str(caught.value)
        assert f"{scheme}://{HOST} cannot be reached: the proxy {proxy.address} (ALL_PROXY) {words}" in said
        assert "wr0ng" not in said
        assert "\n" not in said
        assert len(proxy.seen) == 1


def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://ann:s3cret@127.0.0.1:{port}")
        words = rf"^https://{HOST} cannot be reached: the proxy 127.0.0.1:{port} \(https_proxy\): Connection refused$"
        with pytest.raises(Unreachable, match=words):
            Client(f"https://{HOST}").info()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("socks5://ann:s3cret@proxy:1080", "socks5://, which is not spoken here"),
        ("https://ann:s3cret@proxy", "https://, which is not spoken here"),
        ("http://ann:s3cret@", "is no address of a proxy"),
        ("http://ann:s3cret@proxy:port", "is no address of a proxy"),
        ("http://[ann:s3cret@", "is no address of a proxy"),
    ],
)
def test_proxies_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, value: str, words: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(WireError) as caught:
        Client(f"https://{HOST}").info()
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(BadProxy):
        proxy_for("https", HOST, 443, {"ALL_PROXY": value})


@pytest.mark.parametrize(
    ("scheme", "environment", "expected"),
    [
        ("https", {}, None),
        ("https", {"HTTPS_PROXY": "upper", "https_proxy": "lower:1"}, ("https_proxy", "lower", 1)),
        ("https", {"HTTPS_PROXY": "upper", "ALL_PROXY": "all"}, ("HTTPS_PROXY", "upper", 8080)),
        ("https", {"HTTP_PROXY": "http", "all_proxy": "all"}, ("all_proxy", "all", 8080)),
        ("http", {"HTTPS_PROXY": "upper"}, None),
        ("http", {"HTTP_PROXY": "http://[::1]:3128/"}, ("HTTP_PROXY", "::1", 3128)),
        ("http", {"HTTP_PROXY": "forged", "REQUEST_METHOD": "GET"}, None),
        ("http", {"http_proxy": "", "HTTP_PROXY": "upper"}, ("HTTP_PROXY", "upper", 8080)),
        ("http", {"HTTP_PROXY": "proxy", "NO_PROXY": f"other, {HOST}"}, None),
        ("http", {"HTTP_PROXY": "nonsense://", "no_proxy": "*"}, None),
    ],
)
def test_which_proxy(scheme: str, environment: dict[str, str], expected: tuple[str, str, int] | None) -> None:
    found = proxy_for(scheme, HOST, 443, environment)
    assert (found and (found.variable, found.host, found.port)) == expected


def test_the_credentials_of_a_proxy_are_not_shown() -> None:
    found = proxy_for("https", HOST, 443, {"HTTPS_PROXY": "http://ann:s3cret@proxy:1"})
    assert found is not None
    assert found.headers()
    assert "s3cret" not in f"{found} {found!r}"
    assert found.credentials not in f"{found} {found!r}"


@pytest.mark.parametrize(
    ("no_proxy", "host", "direct"),
    [
        ("", "localhost", True),
        ("", "127.0.0.5", True),
        ("", "::1", True),
        ("", "pai.test", False),
        ("*", "pai.test", True),
        ("test", "pai.test", True),
        (".test", "pai.test", True),
        ("*.test", "pai.test", True),
        ("ai.test", "pai.test", False),
        ("PAI.Test", "pai.test", True),
        ("pai.test", "PAI.TEST.", True),
        ("pai.test:443", "pai.test", True),
        ("pai.test:80", "pai.test", False),
        ("a b,pai.test", "pai.test", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.1/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "pai.test", False),
        ("10.0.0.0/99", "10.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("fd00::/8", "fd12::1", True),
        ("[fd12::1]", "fd12::1", True),
        ("[fd12::1]:443", "fd12::1", True),
        ("fd12::1", "fd12::1", True),
        (".", "pai.test", False),
    ],
)
def test_what_goes_straight(no_proxy: str, host: str, direct: bool) -> None:
    assert is_direct(host, 443, no_proxy) is direct


# Servers that have moved


def moved(where: str, status: int = 308) -> StandIn:
    def answer(request: Request) -> None:
        location = where if "://" not in where or where.count("/") > 2 else where + request.path
        request.answer(status, b"", Location=location)

    return StandIn(answer)


def test_from_http_to_https_on_the_same_host(secure: StandIn) -> None:
    with moved(f"https://127.0.0.1:{secure.port}") as old, find(old.url, "t0ken") as client:
        assert client.server == f"https://127.0.0.1:{secure.port}", "a login remembers this one"
        assert client.http.request("POST", "/api/v2/jobs", b"").status == 200
        assert client.http.clone().server == client.server
        assert old.requests == ["GET /api/v2/info"], "nothing more is sent in clear"
        assert secure.requests == ["GET /api/v2/info", "POST /api/v2/jobs"]


def test_to_another_path_of_the_same_server() -> None:
    def answer(request: Request) -> Answer | None:
        if request.path.endswith("/"):
            return 200, [request.headers["Authorization"]]
        request.answer(301, b"", Location=request.path.split("?")[0] + "/?x=1")
        return None

    with StandIn(answer) as server, Client(server.url, "t0ken") as client:
        server_requests = server.requests
        assert client.http.request("GET", "/api/v2/jobs/").json() == ["Bearer t0ken"]
        with pytest.raises(Redirected, match="again and again"):
            client.http.request("GET", "/api/v2/jobs")
        assert len(server_requests) == 1 + 1 + http.MOST_REDIRECTS


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_what_changes_something_is_not_sent_elsewhere(plain: StandIn, status: int) -> None:
    with moved("/api/v3/jobs", status) as old, Client(old.url, "t0ken") as client:
        with pytest.raises(Redirected) as caught:
            client.submit("name: demo")
        assert str(caught.value) == f"the server {old.url} redirects to {old.url}/api/v3/jobs; set PAILOT_SERVER={old.url}"
        assert caught.value.exit_status == 4
        assert len(old.requests) == 1


def test_another_host_another_port_or_http_gets_no_token(plain: StandIn, context: ssl.SSLContext) -> None:
    elsewhere = [f"http://localhost:{plain.port}", plain.url, f"http://ann@127.0.0.1:{plain.port}"]
    for where in elsewhere:
        with moved(where) as old, Client(old.url, "t0ken") as client:
            with pytest.raises(Redirected) as caught:
                client.info()
            base = where.replace("ann@", "")
            assert str(caught.value) == f"the server {old.url} redirects to {base}/api/v2/info; set PAILOT_SERVER={base}"
            with pytest.raises(Redirected):
                find(old.url)
            with pytest.raises(Redirected):
                next(follow(client.http, "/api/v2/live/jobs"))

    def down(request: Request) -> None:
        request.answer(302, b"", Location=plain.url + request.path)

    with StandIn(down, context=context) as old, Client(old.url, "t0ken") as client, pytest.raises(Redirected):
        client.info()
    assert plain.requests == []


@pytest.mark.parametrize(
    "where", ["", "/\xe4", "/\x1b]52;c;eA==", "ftp://127.0.0.1/x", "http://[", "javascript:alert(1)", "http://127.0.0.1:x/"]
)
def test_nowhere(where: str) -> None:
    def answer(request: Request) -> None:
        request.answer(302, b"", **({"Location": where} if where else {}))

    with StandIn(answer) as server, Client(server.url, "t0ken") as client, pytest.raises(Redirected) as caught:
        client.info()
    assert str(caught.value) == f"{server.url} redirects (status 302) without saying where to"


def test_live_events_follow_to_https(context: ssl.SSLContext) -> None:
    def answer(request: Request) -> None:
        request.begin_events()
        request.event("data: hello\n\n")

    with (
        StandIn(answer, context=context) as new,
        moved(f"https://127.0.0.1:{new.port}") as old,
        Client(old.url, "t0ken") as client,
    ):
        event = next(follow(client.http, "/api/v2/live/jobs"))
        assert event is not None
        assert event.data == "hello"
        client.close()
