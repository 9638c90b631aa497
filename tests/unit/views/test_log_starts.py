"""Where in a log to begin: at its last lines, or at what was printed since a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pailot.runfolder.log_index import LogIndex
from pailot.views import log_starts
from pailot.views.log_starts import LogText


def text_of(data: bytes, begin: int = 0, times: LogIndex | None = None) -> LogText:
    return LogText(begin, len(data), lambda offset, size: data[offset : offset + size], lambda: times)


@given(st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n")), st.integers(0, 8), st.integers(1, 7))
def test_the_last_lines_are_those_that_python_finds(data: bytes, count: int, step: int) -> None:
    before, log_starts.STEP_BYTES = log_starts.STEP_BYTES, step
    try:
        start = text_of(data).start(count, None)
    finally:
        log_starts.STEP_BYTES = before
    lines = data.split(b"\n")
    kept = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    assert data[start:] == b"".join(kept[len(kept) - count :] if count < len(kept) else kept) if count else data[start:] == b""


def test_lines_since_a_time_are_whole() -> None:
    data = b"one\ntwo three\nfour\n"
    times = LogIndex([0, 8, 14], [1000, 2000, 3000], [False, False, True])
    assert data[text_of(data, 0, times).start(None, 0.5) :] == data
    assert data[text_of(data, 0, times).start(None, 1.5) :] == b"four\n", "the line in the middle was begun before"
    assert data[text_of(data, 0, times).start(None, 3.0) :] == b"four\n"
    assert data[text_of(data, 0, times).start(None, 9.0) :] == b""
    assert data[text_of(data, 0, times).start(1, 0.5) :] == b"four\n"
    assert text_of(data, 4).start(None, 9.0) == 4, "without times all of it is shown"
