"""What shims tell: nothing that somebody waits for is lost, however many tell at once."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.runtime.shim_events import Channel, Teller


@pytest.fixture
def channel() -> Iterator[Channel]:
    made = Channel()
    yield made
    made.close()


def fill(channel: Channel) -> int:
    """Leave no room for another word; answers how many there are."""
    told = 0
    while True:
        try:
            os.write(channel.writer, b"L0 0 other\n")
        except BlockingIOError:
            return told
        told += 1


def test_a_claim_is_told_as_soon_as_there_is_room(channel: Channel) -> None:
    assert fill(channel) > 4_000, "as many tasks as one machine is asked to run"
    poller = select.poll()
    teller = Teller(channel.writer, "main", 7, poller)
    teller.running(0)
    assert not poller.poll(0)
    assert channel.take() == [{"event": "grown", "role": "other", "index": 0, "attempt": 0}]
    ((descriptor, _),) = poller.poll(0)
    assert descriptor == teller.descriptor
    teller.serve()
    expected = [{"event": "claimed", "role": "main", "index": 7}, {"event": "running", "role": "main", "index": 7, "attempt": 0}]
    assert channel.take() == expected
    assert not poller.poll(0), "it has nothing more to say"


def test_that_a_log_has_grown_is_told_at_the_end_at_the_latest(channel: Channel) -> None:
    fill(channel)
    teller = Teller(channel.writer, "main", 0, select.poll())
    teller.grown(2)
    channel.take()
    teller.flush()
    assert channel.take() == [{"event": "grown", "role": "main", "index": 0, "attempt": 2}]
    teller.flush()
    assert channel.take() == []


def test_whoever_tells_nobody_does_not_care(channel: Channel) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    teller = Teller(writer, "main", 0, select.poll())
    teller.running(0)
    teller.event("retry", reason="exited with 1")
    os.close(writer)


@given(
    st.lists(
        st.tuples(st.sampled_from(["claim", "run", "grown", "retry"]), st.integers(0, 99), st.text(max_size=5_000)), max_size=12
    )
)
def test_every_word_arrives_whole_and_in_order(words: list[tuple[str, int, str]]) -> None:
    channel = Channel()
    expected = []
    for kind, index, reason in words:
        teller = Teller(channel.writer, "ps.server", index, select.poll())
        if kind == "claim":
            teller.running(0)
            expected.append(("claimed", index))
        if kind in ("claim", "run"):
            if kind == "run":
                teller.running(1)
            expected.append(("running", index))
        elif kind == "grown":
            teller.grown(0)
        else:
            teller.event("retry", reason=reason)
            expected.append(("retry", index))
    found = channel.take()
    channel.close()
    assert [(each["event"], each["index"]) for each in found if each["event"] != "grown"] == expected
    assert {each["index"] for each in found if each["event"] == "grown"} == {index for kind, index, _ in words if kind == "grown"}
