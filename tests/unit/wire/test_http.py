"""Requests against a real server: what is repeated, what is not, and what the errors say."""

from __future__ import annotations

import select
import socket

import pytest

from pailot.client import http
from pailot.client.api import Client, find
from pailot.client.errors import Denied, Failing, NotFound, Refused, Unreachable, WireError

from ...support.stand_in_server import Answer, Request, StandIn


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSES", (0.0,))
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_one_connection_serves_many_requests() -> None:
    with StandIn(lambda _: (200, {"name": "PAI RESTful API"})) as server:
        client = Client(server.url)
        for _ in range(5):
            assert client.info() == {"name": "PAI RESTful API"}
        assert server.connections == 1
        client.close()


def test_a_connection_that_was_closed_meanwhile_is_replaced_even_for_a_post() -> None:
    """The server's time-out for idle connections must not lose a submission."""

    def answer(request: Request) -> Answer:
        request.close_connection = True  # without saying so in a header
        return 202, {"name": "u~demo"}

    with StandIn(answer) as server:
        client = Client(server.url)
        for _ in range(3):
            assert client.submit("name: demo") == "u~demo"
            assert client.http._connection is not None
            select.select([client.http._connection.sock], [], [], 60)
        assert server.requests == ["POST /api/v2/jobs"] * 3
        client.close()


def test_what_is_safe_is_repeated() -> None:
    times = 0

    def answer(request: Request) -> Answer | None:
        nonlocal times
        times += 1
        if times == 1:
            request.close_connection = True
            return None  # hangs up without an answer
        return (503, {"code": "Busy"}) if times < 4 else (200, [])

    with StandIn(answer) as server, Client(server.url) as client:
        assert client.jobs() == []
        assert len(server.requests) == 4


def test_a_post_that_may_have_arrived_is_not_repeated() -> None:
    def answer(request: Request) -> Answer | None:
        request.close_connection = True
        return None

    with StandIn(answer) as server, Client(server.url) as client:
        with pytest.raises(Unreachable) as caught:
            client.submit("name: demo")
        assert len(server.requests) == 1
        assert caught.value.exit_status == 4


@pytest.mark.parametrize(
    ("status", "kind"), [(400, Refused), (401, Denied), (403, Denied), (404, NotFound), (409, Refused), (500, Failing)]
)
def test_a_refusal_carries_the_servers_words(status: int, kind: type[Refused]) -> None:
    with StandIn(lambda _: (status, {"code": "SomeError", "message": "Because."})) as server, Client(server.url) as client:
        with pytest.raises(WireError) as caught:
            client.record("demo")
        error = caught.value
        assert type(error) is kind
        assert isinstance(error, Refused)
        assert (error.status, error.code) == (status, "SomeError")
        assert str(error) == ("Because; pailot login logs in" if status == 401 else "Because.")


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"^{address} cannot be reached: Connection refused$"):
            Client(address).info()


@pytest.mark.parametrize("address", ["ftp://host", "http://", "http://host:port", "http://user:secret@host"])
def test_bad_addresses(address: str) -> None:
    with pytest.raises(WireError) as caught:
        Client(address)
    assert "secret" not in str(caught.value)


def test_a_page_that_is_not_the_api() -> None:
    with StandIn(lambda _: (200, "<html>hello</html>")) as server, Client(server.url) as client:
        with pytest.raises(Unreachable, match="not JSON"):
            client.info()
        with pytest.raises(Unreachable, match="does not answer as OpenPAI's API does"):
            find(server.url)


def test_a_cluster_has_the_api_below_rest_server() -> None:
    def answer(request: Request) -> Answer:
        return (200, {"name": "PAI RESTful API"}) if request.path.startswith("/rest-server/") else (200, "<html>portal</html>")

    with StandIn(answer) as server, find(server.url) as client:
        assert client.server == f"{server.url}/rest-server"


def test_the_token_goes_along() -> None:
    with (
        StandIn(lambda request: (200, {"username": request.headers["Authorization"]})) as server,
        Client(server.url, "t0ken") as client,
    ):
        assert client.whoami() == {"username": "Bearer t0ken"}


def test_a_log_goes_on_from_an_offset() -> None:
    text = b"0123456789"

    def answer(request: Request) -> Answer | None:
        asked = request.headers.get("Range")
        if asked is None:
            return 200, text
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        request.answer(206 if start < len(text) else 416, text[start:])
        return None

    with StandIn(answer) as server, Client(server.url) as client:
        assert client.log("u~j", "main", 0) == text
        assert client.log("u~j", "main", 0, offset=4, attempt=1, task_attempt=2) == b"456789"
        assert client.log("u~j", "main", 0, offset=10) == b""
        assert server.requests[1] == "GET /api/v2/jobs/u~j/logs/main/0?stream=all&attempt=1&taskAttempt=2"


def test_it_costs_little_to_import() -> None:
    import subprocess
    import sys

    code = "import sys; before = set(sys.modules); import pailot.client.api; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"asyncio", "http.client", "urllib.request", "ssl", "tarfile", "dataclasses", "typing"} & set(done.stdout.split())
