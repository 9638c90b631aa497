"""Server-sent events: pieces of any size, broken lines, servers that come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.client import sse
from pailot.client.api import Client, LogPiece
from pailot.client.errors import Denied, Refused, Unreachable
from pailot.client.sse import Event, EventParser, parse

from ...support.stand_in_server import Answer, Request, StandIn


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_PAUSES", (0.0,))


words = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20)


@given(
    st.lists(st.tuples(words.filter(lambda word: word != ""), st.lists(words, min_size=1, max_size=3), words), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(1, 9), max_size=200),
)
def test_events_arrive_whatever_the_pieces(sent: list[tuple[str, list[str], str]], end: str, sizes: list[int]) -> None:
    lines: list[str] = []
    for name, data, id_ in sent:
        lines += [": a comment", f"event: {name}", *([f"id: {id_}"] if id_ else []), *(f"data: {line}" for line in data), ""]
    text = "".join(line + end for line in lines).encode()
    chunks, position = [], 0
    for size in sizes:
        chunks.append(text[position : position + size])
        position += size
    chunks.append(text[position:])
    expected, last = [], ""
    for name, data, id_ in sent:
        last = id_ or last
        expected.append(Event(name, "\n".join(data), last))
    assert list(parse(chunks)) == expected


def test_what_the_standard_says() -> None:
    assert list(parse([b"data\n\n", b"id: 1\n\n", b"data: a\ndata:b\n\n", b"data: unfinished\n"])) == [
        Event("message", "", ""),
        Event("message", "a\nb", "1"),
    ]
    parser = EventParser()
    list(parser.feed(b"retry: 1500\nid: 7\n\n"))
    assert (parser.retry, parser.last_id) == (1.5, "7")


def test_it_goes_on_after_the_last_id() -> None:
    def answer(request: Request) -> Answer | None:
        request.begin_events()
        begin = int(request.headers.get("Last-Event-ID") or 0)
        for number in range(begin + 1, begin + 3):
            request.event(f"id: {number}\nevent: job\ndata: {number}\n\n")
        return None  # and the line breaks

    with StandIn(answer) as server:
        found: list[str] = []
        for event in Client(server.url).live("u~j"):
            found.append(event.data if event else "look")
            if event and event.data == "6":
                break
    assert found == ["1", "2", "look", "3", "4", "look", "5", "6"]


def test_a_server_that_is_started_anew() -> None:
    def answer(request: Request) -> Answer | None:
        request.begin_events()
        request.event(f"id: 1\ndata: {request.headers.get('Last-Event-ID', 'first')}\n\n")
        return None

    server = StandIn(answer)
    events = Client(server.url).live("u~j")
    assert next(events) == Event("message", "first", "1")
    server.close()
    assert next(events) is None, "the line is broken, so look"
    assert next(events) is None, "nobody is there"
    with StandIn(answer, server.port):
        assert next(each for each in events if each) == Event("message", "1", "1")


def test_patience_ends() -> None:
    with StandIn(lambda _: (503, {})) as server, pytest.raises(Unreachable, match="status 503"):
        list(Client(server.url).live("u~j", patience=0.0))


def test_no_is_no() -> None:
    answer = {"code": "ForbiddenUserError", "message": "Not yours."}
    with StandIn(lambda _: (403, answer)) as server, pytest.raises(Denied, match="Not yours"):
        list(Client(server.url).live("u~j"))
    with StandIn(lambda _: (200, {})) as server, pytest.raises(Refused, match="has no live events"):
        list(Client(server.url).live("u~j"))


def test_waiting_ends_though_the_end_was_missed() -> None:
    """The line breaks while the job ends: the look after the reconnection finds it."""
    state = "RUNNING"

    def answer(request: Request) -> Answer | None:
        nonlocal state
        if request.path.endswith("/record"):
            return 200, {"name": "j", "state": state}
        request.begin_events()
        request.event(": hello\n\n")
        state = "SUCCEEDED"
        return None

    with StandIn(answer) as server, Client(server.url) as client:
        assert client.wait("u~j") == {"name": "j", "state": "SUCCEEDED"}


def test_waiting_has_an_end_of_its_own() -> None:
    def answer(request: Request) -> Answer | None:
        if request.path.endswith("/record"):
            return 200, {"name": "j", "state": "RUNNING"}
        request.begin_events()
        request.event(": nothing happens\n\n")
        request.rfile.read()  # until the client has gone
        return None

    with StandIn(answer) as server, Client(server.url) as client:
        assert client.wait("u~j", timeout=0.2) is None


def test_following_a_log() -> None:
    def answer(request: Request) -> Answer | None:
        request.begin_events()
        if request.headers.get("Last-Event-ID") == "0.0.0":
            request.event('id: 0.0.6\ndata: {"offset": 6, "text": "hello ", "attempt": 0, "taskAttempt": 0}\n\n')
        else:
            assert request.headers.get("Last-Event-ID") == "0.0.6"
            request.event('id: 0.1.5\ndata: {"offset": 5, "text": "world", "attempt": 0, "taskAttempt": 1}\n\n')
            request.event("event: end\ndata: {}\n\n")
        return None

    with StandIn(answer) as server:
        assert list(Client(server.url).follow_log("u~j", "main", 0, after="0.0.0")) == [
            LogPiece(0, 0, 6, "hello ", "0.0.6"),
            None,
            LogPiece(0, 1, 5, "world", "0.1.5"),
        ]
