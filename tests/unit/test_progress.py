"""Bars: what they say, how often, and where."""

from __future__ import annotations

import io
import os
import pty
import sys
import types
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot import progress
from pailot.progress import Meter, Pace, Progress


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_says_how_far_how_fast_and_how_long() -> None:
    half = Progress("input train", 1_500_000_000, 3_000_000_000, 30.0)
    assert half.line() == "input train ████████░░░░░░░░ 50 % · 1.5 GB of 3.0 GB · 50.0 MB/s · 30 s left"
    assert Progress("code", 2_000_000, None, 2.0).line() == "code · 2.0 MB · 1.0 MB/s"
    assert half.replace(done=half.total, ended=True).line() == "input train: 3.0 GB in 30 s, 100 MB/s"
    assert Progress("nothing", 0, 0, 0.0, ended=True).line() == "nothing: 0 B in 0.0 s, 0 B/s"
    assert "<progress value='0.500' max='1'>" in half.html()
    assert "&lt;b&gt;" in Progress("<b>", 1, 2, 1.0).html()


@given(st.floats(0, 1e17), st.floats(0, 1e7))
def test_every_size_and_duration_is_short(count: float, seconds: float) -> None:
    assert len(progress.size(count)) <= 9 or count >= 1e15
    assert len(progress.duration(seconds)) <= 14
    assert "1000 " not in progress.size(count) or count >= 9.995e14


@given(st.integers(0, 10**12), st.one_of(st.none(), st.integers(0, 10**12)), st.floats(0, 1e6), st.booleans())
def test_what_is_told_arrives(done: int, total: int | None, seconds: float, ended: bool) -> None:
    told = Progress("x", done, total, round(seconds, 3), ended)
    assert Progress.from_dict(told.to_dict()) == told
    assert 0 <= told.share <= 1
    told.line()


def test_a_meter_tells_a_few_times_a_second_and_at_the_end() -> None:
    clock, heard = Clock(), list[Progress]()
    meter = Meter("x", 1000, heard.append, clock)
    for _ in range(1000):
        clock.now += 0.001
        meter.add(1)
    assert 3 <= len(heard) <= 4
    meter.end()
    assert (heard[-1].done, heard[-1].ended) == (1000, True)


@given(st.lists(st.tuples(st.floats(0.01, 30), st.integers(0, 10**9)), max_size=200))
def test_lines_come_seldom(steps: list[tuple[float, int]]) -> None:
    total = sum(size for _, size in steps)
    pace, now, done, shown = Pace(), 0.0, 0, list[Progress]()
    for seconds, size in steps:
        now, done = now + seconds, done + size
        told = Progress("x", done, total, now)
        if pace.is_due(told):
            shown.append(told)
    for before, after in pairwise(shown):
        assert after.seconds - before.seconds >= 1
        assert after.share - before.share >= 0.1 or after.seconds - before.seconds >= 10
    # Nor too seldom: whoever looks hears something at least every ten seconds, if there is something to hear.
    assert len(shown) >= 1 or now < 1 or not steps
    assert pace.is_due(Progress("x", total, total, now, ended=True)) == bool(shown or now >= 1)


def test_a_log_file_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.display() as shown:
        assert isinstance(shown, progress.Lines)
        for tenth in range(101):
            shown.show(Progress("x", tenth, 100, tenth / 10))
        shown.show(Progress("x", 100, 100, 10.0, ended=True))
    lines = written.getvalue().splitlines()
    assert 10 <= len(lines) <= 12
    assert lines[-1] == "pailot: x: 100 B in 10 s, 10 B/s"
    assert "\r" not in written.getvalue()


def test_quiet_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.display(quiet=True) as shown:
        shown.show(Progress("x", 1, 2, 100.0))
        shown.show(Progress("x", 2, 2, 100.0, ended=True))
    assert written.getvalue() == ""


def test_a_terminal_gets_one_line_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.display() as shown:
            assert isinstance(shown, progress.Terminal)
            shown.show(Progress("x", 1, 2, 1.0))
            shown.show(Progress("x", 2, 2, 2.0, ended=True))
        stream.flush()
        seen = ""
        while "\n" not in seen:  # a terminal hands on what was written in pieces
            seen += os.read(ours, 10_000).decode()
    os.close(ours)
    assert seen.startswith("\rx ████████░░░░░░░░ 50 %")
    assert seen.count("\n") == 1
    assert seen.endswith("pailot: x: 2 B in 2.0 s, 1 B/s\x1b[K\r\n")


def test_a_notebook_gets_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, html: str) -> None:
            shown.append(html)

    def display(html: str, **_: Any) -> Handle:
        shown.append(html)
        return Handle()

    class ZMQInteractiveShell:
        config: Any = {}

    module = types.ModuleType("IPython")
    module.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]  # as in a kernel
    inner = types.ModuleType("IPython.display")
    inner.display, inner.HTML = display, str  # type: ignore[attr-defined]  # all that is used of it
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    with progress.display() as bar:
        bar.show(Progress("x", 1, 2, 1.0))
        bar.show(Progress("x", 2, 2, 2.0, ended=True))
    assert len(shown) == 2
    assert "<progress" in shown[0]
    assert "2 B in 2.0 s" in shown[1]
