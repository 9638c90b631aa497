"""The parts of the HTTP toolkit: routes, bodies, limits, ranges, events."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.jobserver.models import LogPiece
from pailot.protocol.schema_types import Record, Text, Whole
from pailot.server.routes.logs import byte_range, follow
from pailot.server.toolkit import http
from pailot.server.toolkit.bodies import check, parse_body, parse_form
from pailot.server.toolkit.errors import HttpError
from pailot.server.toolkit.http import Response
from pailot.server.toolkit.rate_limits import Limiter, TooMany, parse_limits
from pailot.server.toolkit.routing import Router, Routes
from pailot.server.toolkit.sse import event, with_beats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

routes = Routes("test")


@routes("GET", "/jobs/{job}", "/api/v1/job/{job}")
async def one(request: Any) -> Response:
    """One job."""
    return Response()


@routes("PUT", "/jobs/me")
async def me(request: Any) -> Response:
    """Oneself."""
    return Response()


@routes("GET", "/jobs/{job}/attempts/{attempt}")
async def attempt(request: Any) -> Response:
    """An attempt."""
    return Response()


ROUTER = Router(routes.list)


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/api/v2/jobs/a~b", {"job": "a~b"}),
        ("/API/V2/Jobs/A~b/", {"job": "A~b"}),
        ("/rest-server/api/v2/jobs/a~b", {"job": "a~b"}),
        ("/Rest-Server/api/v1/job/x", {"job": "x"}),
        ("//api//v2/jobs/x//", {"job": "x"}),
        ("/api/v2/jobs/a%7Eb", {"job": "a~b"}),
        ("/api/v2/jobs/x/ATTEMPTS/3", {"job": "x", "attempt": "3"}),
        ("/api/v2/jobs/me", {"job": "me"}),
    ],
)
def test_paths_are_found_as_express_finds_them(path: str, parameters: dict[str, str]) -> None:
    assert ROUTER.find("GET", path)[1] == parameters


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(HttpError) as raised:
        ROUTER.find("GET", "/api/v2/nothing")
    assert (raised.value.status, raised.value.code) == (404, "NoApiError")
    assert raised.value.message == "API /api/v2/nothing is not found."


def test_a_method_that_is_not_there_names_all_that_are() -> None:
    with pytest.raises(HttpError) as raised:
        ROUTER.find("DELETE", "/api/v2/jobs/me")
    assert raised.value.status == 405
    assert dict(raised.value.headers)[b"allow"] == b"GET, HEAD, OPTIONS, PUT"


@pytest.mark.parametrize("name", ["%2e%2e%2f", "%00", "a%0ab", "%ff", "a%2Fb"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(HttpError) as raised:
        ROUTER.find("GET", f"/api/v2/jobs/{name}")
    assert raised.value.status == 400


@given(st.text(), st.sampled_from(["GET", "PUT", "HEAD", "POST"]))
def test_any_path_is_answered(path: str, method: str) -> None:
    assert status_of(lambda: ROUTER.find(method, "/" + path)) in (200, 400, 404, 405)


def status_of(work: Callable[[], object]) -> int:
    try:
        work()
    except HttpError as error:
        return error.status
    return 200


def test_forms_nest() -> None:
    sent = urlencode(
        {
            "jobName": "x",
            "taskRoles[0][name]": "a",
            "taskRoles[0][portList][0][label]": "p",
            "taskRoles[1][name]": "b",
            "t[]": "1",
        }
    )
    assert parse_form(sent) == {
        "jobName": "x",
        "taskRoles": [{"name": "a", "portList": [{"label": "p"}]}, {"name": "b"}],
        "t": ["1"],
    }


@given(st.text())
def test_any_form_is_read_or_refused(text: str) -> None:
    assert status_of(lambda: parse_form(text)) in (200, 400)


@given(st.binary(), st.sampled_from(["application/json", "text/plain", "application/x-www-form-urlencoded", "x; charset=utf-16"]))
def test_any_body_is_read_or_refused(body: bytes, kind: str) -> None:
    assert status_of(lambda: parse_body(body, kind)) in (200, 400)


def test_json_may_come_as_text_and_a_strange_charset_is_refused() -> None:
    assert parse_body(b'{"value": "STOP"}', "text/plain") == {"value": "STOP"}
    with pytest.raises(HttpError) as raised:
        parse_body(b"{}", "application/json; charset=koi8-r")
    assert raised.value.status == 415


def test_all_that_is_wrong_with_a_body_is_told() -> None:
    shape = Record({"name": Text(), "count": Whole(least=1)}, required=("name",), what="in the request")
    with pytest.raises(HttpError) as raised:
        check({"count": 0, "nmae": "x"}, shape)
    assert raised.value.code == "InvalidParametersError"
    for part in ("count: should be at least 1, is 0", "did you mean 'name'?", "'name' is missing in the request"):
        assert part in raised.value.message


@pytest.mark.parametrize(("pause", "status"), [(0.0, 200), (0.05, 408)])
def test_a_body_comes_at_some_speed(monkeypatch: pytest.MonkeyPatch, pause: float, status: int) -> None:
    """Each byte comes soon enough for itself, and all of them would take for ever."""
    monkeypatch.setattr(http, "_IDLE_SECONDS", 0.5)
    left = 400

    async def receive() -> dict[str, Any]:
        nonlocal left
        left -= 1
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": b"x", "more_body": left > 0}

    request = http.Request(None, {"headers": []}, receive, {})  # type: ignore[arg-type]  # it needs no site

    async def body() -> int:
        try:
            return 200 if await request.body() == b"x" * 400 else 500
        except HttpError as error:
            return error.status

    assert asyncio.run(body()) == status
    assert (left == 0) == (status == 200)


def test_limits_count_in_windows() -> None:
    now = [0.0]
    limiter = Limiter(parse_limits("all=2/60"), lambda: now[0])
    limiter.take("all", "a")
    assert dict(limiter.take("all", "a"))[b"x-ratelimit-remaining"] == b"0"
    with pytest.raises(TooMany) as raised:
        limiter.take("all", "a")
    assert raised.value.response().body == b"Too many requests, please try again later."
    assert dict(raised.value.headers)[b"retry-after"] == b"60"
    limiter.take("all", "b")
    now[0] = 61
    limiter.take("all", "a")
    assert limiter.take("submit", "a") == []


def test_limits_can_be_off_and_must_make_sense() -> None:
    assert not Limiter(parse_limits("off"))
    for wrong in ("all", "all=5", "all=0/60", "some=1/1", "all=x/1"):
        with pytest.raises(ValueError, match=r"."):
            parse_limits(wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=0-4", (0, 5)),
        ("bytes=5-", (5, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=5-100", (5, 10)),
        ("bytes=10-", None),
        ("bytes=-0", None),
        ("bytes=4-2", (-1, -1)),
        ("bytes=0-1,3-4", (-1, -1)),
        ("lines=0-1", (-1, -1)),
    ],
)
def test_ranges(text: str, expected: tuple[int, int] | None) -> None:
    assert byte_range(text, 10) == expected


@given(st.text(), st.integers(0, 100))
def test_any_range_is_within_the_log(text: str, size: int) -> None:
    bounds = byte_range("bytes=" + text, size)
    assert bounds is None or bounds == (-1, -1) or 0 <= bounds[0] < bounds[1] <= size


@given(st.text(), st.lists(st.integers(1, 4), max_size=40))
def test_a_followed_log_is_the_log_and_every_id_is_a_place_to_go_on_from(text: str, sizes: list[int]) -> None:
    data = text.encode("utf-8", "replace")
    cuts = [0]
    for size in sizes:
        cuts.append(min(len(data), cuts[-1] + size))
    cuts.append(len(data))

    async def pieces() -> AsyncIterator[LogPiece]:
        for begin, end in pairwise(cuts):
            yield LogPiece(0, 0, end, data[begin:end])
        yield LogPiece(0, 0, len(data), ended=True)

    async def told() -> list[tuple[str, dict[str, Any]]]:
        found = []
        async for raw in follow(pieces()):
            lines = dict(line.split(": ", 1) for line in raw.decode().strip().split("\n"))
            found.append((lines["id"], json.loads(lines["data"])))
        return found

    events = asyncio.run(told())
    so_far = ""
    for mark, said in events:
        so_far += said.get("text", "")
        assert mark == f"0.0.{said['offset']}"
        assert data[: said["offset"]].decode() == so_far
    assert so_far == data.decode()


def test_silence_is_broken_and_the_source_closed() -> None:
    closed = []

    async def slow() -> AsyncIterator[bytes]:
        try:
            yield event("job", {"state": "RUNNING"}, 7)
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def first_three() -> list[bytes]:
        stream = with_beats(slow(), 0.001)
        found = [await anext(stream) for _ in range(3)]
        await stream.aclose()  # type: ignore[attr-defined]  # a generator
        return found

    assert asyncio.run(first_three()) == [
        b": begin\n\n",
        b'id: 7\nevent: job\ndata: {"state":"RUNNING"}\n\n',
        b": still here\n\n",
    ]
    assert closed
